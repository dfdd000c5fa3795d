"""Chapter 8's writer of text with other weights: with a state of fixed size, and with a gate.

Seven kinds of attention: all else, batches, steps and learning rate too, is chapter 8's, chosen for
the softmax, and nothing was tuned for any other kind. "sum", "decay", "delta" and "gated_delta" are
one layer, GatedDelta, with neither, the one, the other or both of its options; "linear" is
LinearAttention. "softmax_gate" is multi-head attention with the gate of "decay": the sum of the log
decays between two tokens joins their score. Takes about forty minutes.
"""

import functools
from typing import Any

from torch import Tensor, nn

from attnbook import scores
from attnbook import torch as torch_layers
from attnbook.linear_attention.linear_heads import DECAY_START
from experiments.harness import Experiment
from experiments.transformers import ROWS, TEXT_STEPS, WINDOW, language_model

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


def model_of(kind: str, vocab: int, window: int) -> torch_layers.DecoderOnly:
    """Chapter 8's model with one kind of attention in its blocks."""
    inside = {"softmax_gate": "softmax", "sum": "delta"}
    model = torch_layers.DecoderOnly(vocab, window, attention=inside.get(kind, kind))
    for block in model.decoder if kind in inside else ():
        sizes = model.embed_dim, model.num_heads
        if kind == "softmax_gate":
            block.attention = GatedSoftmax(*sizes)
        else:
            block.attention = torch_layers.GatedDelta(*sizes, gate=False, delta=False)
    return model


def main(experiment: Experiment) -> None:
    steps = 20 if experiment.quick else TEXT_STEPS
    runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for seed in range(1 if experiment.quick else SEEDS):
        for kind in KINDS:
            made = language_model(seed, "torch", steps, make=functools.partial(model_of, kind))
            runs[kind].append({"seed": seed, **made})
            print(kind, runs[kind][-1], flush=True)
            sizes = {"window": WINDOW, "rows": ROWS, "steps": steps}
            experiment.store(threads=1, **sizes, runs=runs)
