"""The writer of text grown piece by piece: what each piece of the transformer buys.

Every model reads chapter 8's text in the same batches, for as many steps. Each has the best of
three learning rates, chosen with seed 0 on the last tenth of the training text, which these runs do
not read; where the largest is the best, its double is tried too, at most twice. Then seeds 0, 1, 2
learn from the whole training text, none is left out, and the held-out text judges. Takes an hour of
one processor.
"""

from operator import itemgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softmax

from attnbook import causal_mask, datasets
from attnbook import torch as torch_layers
from attnbook.attention import heads
from attnbook.generate import ngrams
from attnbook.models.transformer import INIT_STD
from experiments.harness import Experiment, learn
from experiments.transformers import TEXT_STEPS, WINDOW, bits, text_loss, windows

# In the order in which they come; each model has all up to its own.
PIECES = (
    "the last character",
    "the mean of the past",
    "one head",
    "positions",
    "four heads",
    "the sum",
    "the MLP",
    "the norms",
    "a second block",
)
RATES = (2e-3, 4e-3, 8e-3)
WIDER = 2  # so often is the largest rate doubled where it is the best
SEEDS, WIDTH, HEADS = 3, 128, 4


class Attention(nn.Module):
    """Causal attention, of as many heads."""

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        parts = self.query(x), self.key(x), self.value(x)
        q, k, v = (heads.split_heads(part, self.num_heads) for part in parts)
        scores = q @ k.mT / (WIDTH / self.num_heads) ** 0.5
        weights = softmax(scores.masked_fill(~causal_mask(x.shape[1], x), -torch.inf), dim=-1)
        return self.output(heads.merge_heads(weights @ v))


class Grown(nn.Module):
    """A language model with the pieces up to one."""

    def __init__(self, vocab: int, piece: str) -> None:
        super().__init__()
        self.has = {name: at <= PIECES.index(piece) for at, name in enumerate(PIECES)}
        self.embedding = nn.Embedding(vocab, WIDTH)
        nn.init.normal_(self.embedding.weight, std=INIT_STD)
        if self.has["positions"]:
            self.position = nn.Parameter(INIT_STD * torch.randn(WINDOW, WIDTH))
        number = 1 + self.has["a second block"]
        if self.has["one head"]:
            num_heads = HEADS if self.has["four heads"] else 1
            self.attention = nn.ModuleList(Attention(num_heads) for _ in range(number))
        if self.has["the MLP"]:
            self.hidden = nn.ModuleList(nn.Linear(WIDTH, 4 * WIDTH) for _ in range(number))
            self.output = nn.ModuleList(nn.Linear(4 * WIDTH, WIDTH) for _ in range(number))
        if self.has["the norms"]:
            self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2 * number + 1))
        self.readout = nn.Linear(WIDTH, vocab)

    def forward(self, tokens: Tensor) -> Tensor:
        has, x = self.has, self.embedding(tokens)
        if has["positions"]:
            x = x + self.position[: tokens.shape[1]]
        if has["the mean of the past"] and not has["one head"]:
            x = x.cumsum(1) / torch.arange(1, tokens.shape[1] + 1)[:, None]
        for b in range(len(self.attention) if has["one head"] else 0):
            attended = self.attention[b](self.normed(2 * b, x))
            x = x + attended if has["the sum"] else attended
            if has["the MLP"]:
                hidden = self.hidden[b](self.normed(2 * b + 1, x))
                x = x + self.output[b](nn.functional.gelu(hidden))
        return self.readout(self.normed(-1, x))

    def normed(self, at: int, x: Tensor) -> Tensor:
        return self.norms[at](x) if self.has["the norms"] else x


def trained(piece: str, train: Any, judged: Any, rate: float, seed: int, steps: int) -> Any:
    """Train once; bits of the text that judges, processor seconds, parameters."""
    torch.manual_seed(seed)
    model = Grown(len(datasets.python_reference().vocabulary), piece)
    batches = windows(train, steps, seed)
    model, history = learn(torch_layers, model, text_loss, batches, rate, steps)
    return {
        "bits": bits(model, judged),
        "rate": rate,
        "seed": seed,
        "cpu_seconds": history.cpu_seconds,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


def main(experiment: Experiment) -> None:
    quick = experiment.quick
    text = datasets.python_reference()
    cut = 9 * len(text.train) // 10
    apart = text.train[:cut], text.train[cut:]
    steps = 20 if quick else TEXT_STEPS
    found, tried = {}, {}
    for piece in PIECES:
        tried[piece] = [
            trained(piece, *apart, rate, 0, steps) for rate in (RATES[:1] if quick else RATES)
        ]
        for _ in range(0 if quick else WIDER):
            if (last := tried[piece][-1]) is min(tried[piece], key=itemgetter("bits")):
                tried[piece].append(trained(piece, *apart, 2 * last["rate"], 0, steps))
        best = min(tried[piece], key=itemgetter("bits"))["rate"]
        found[piece] = [
            trained(piece, text.train, text.held_out, best, seed, steps)
            for seed in range(1 if quick else SEEDS)
        ]
        print(piece, best, *(f"{run['bits']:.3f}" for run in found[piece]), flush=True)
    of_pairs = ngrams.bits(text.train, text.held_out, 2, vocab_size=len(text.vocabulary))
    pairs = float(of_pairs[WINDOW // 2 :].mean())
    experiment.store(steps=steps, rates=RATES, pairs=pairs, tried=tried, found=found)
