"""Chapter 8's writer of text with other weights: with a state of fixed size, and with a gate.

    python -m experiments.linear_text            all; stores the results (about forty minutes)
    python -m experiments.linear_text --quick    twenty steps of one seed; stores nothing

One model, seven kinds of attention in its blocks: all else, the batches, the steps and the learning
rate are chapter 8's, which were chosen for the softmax, and nothing was tuned for any other kind.
"sum", "decay", "delta" and "gated_delta" are one layer, GatedDelta, with neither, the one, the
other or both of its options; "linear" is LinearAttention. "softmax_gate" is multi-head attention
with the gate of "decay": the sum of the log decays between two tokens joins their score. Seeds are
0, 1, 2 throughout and none is left out; the results are written after every run.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnbook import datasets, scores
from attnbook import torch as torch_layers
from attnbook.linear_attention.linear_heads import DECAY_START
from attnbook.train import training
from experiments.storing import asked_quick, store
from experiments.transformers import (
    PEAK,
    ROWS,
    TEXT_STEPS,
    WARMUP,
    WINDOW,
    bits,
    text_loss,
    windows,
)

KINDS = ("softmax", "softmax_gate", "gated_delta", "decay", "delta", "sum", "linear")
SEEDS = 3


class GatedSoftmax(torch_layers.MultiHeadAttention):
    """Multi-head attention that forgets: the weight of an older token shrinks by the decays since.

    The score of query i and key j is q_iᵀ k_j / √d + log a_{j+1} + … + log a_i, with
    a = σ(W_a x + b_a) per head and token, as in GatedDelta.

    Source: Lin et al. (2025), section 3.
    """

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__(embed_dim, num_heads)
        self.decay = nn.Linear(embed_dim, num_heads)
        nn.init.constant_(self.decay.bias, DECAY_START)

    def forward(self, queries: Tensor, *others: Any, **how: Any) -> Any:
        """Output (..., n, e), or the pair (output, weights); the tokens attend to themselves."""
        logs = nn.functional.logsigmoid(self.decay(queries)).transpose(-1, -2).cumsum(-1)
        since = logs[..., :, None] - logs[..., None, :]

        def score(q: Tensor, k: Tensor) -> Tensor:
            found: Tensor = scores.scaled_dot(q, k) + since
            return found

        return super().forward(queries, *others, score=score, **how)


def model_of(kind: str, vocab: int) -> torch_layers.DecoderOnly:
    """Chapter 8's model with one kind of attention in its blocks."""
    inside = {"softmax_gate": "softmax", "sum": "delta"}
    model = torch_layers.DecoderOnly(vocab, WINDOW, attention=inside.get(kind, kind))
    for block in model.decoder if kind in inside else ():
        sizes = model.embed_dim, model.num_heads
        if kind == "softmax_gate":
            block.attention = GatedSoftmax(*sizes)
        else:
            block.attention = torch_layers.GatedDelta(*sizes, gate=False, delta=False)
    return model


def run(kind: str, seed: int, steps: int) -> dict[str, float]:
    """Train once: bits per character of the last training batches, and of what was held out."""
    text = datasets.python_reference()
    torch.manual_seed(seed)
    model = model_of(kind, len(text.vocabulary))
    rates = training.warm_cosine(PEAK, steps, warmup=min(WARMUP, steps))
    batches = windows(text.train, steps, seed)
    model, history = torch_layers.train(model, text_loss, batches, learning_rate=rates, clip=1.0)
    return {
        "seed": seed,
        "held_out": float(bits(model, text.held_out, torch.tensor)),
        "train": float(np.mean(history.losses[-100:]) / np.log(2)),
        "cpu_seconds": history.cpu_seconds,
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def main() -> None:
    quick = asked_quick(__doc__)
    torch.set_num_threads(1)
    steps = 20 if quick else TEXT_STEPS
    runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for seed in range(1 if quick else SEEDS):
        for kind in KINDS:
            runs[kind].append(run(kind, seed, steps))
            print(kind, runs[kind][-1], flush=True)
            if not quick:
                sizes = {"window": WINDOW, "rows": ROWS, "steps": steps}
                store("linear_text", threads=1, **sizes, runs=runs)


if __name__ == "__main__":
    main()
