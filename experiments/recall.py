"""Associative recall: attention, n-grams and a kernel look up what stood behind a key.

The learning rate is chosen with another seed, 100, on rows of its own. All models see the same rows
for the same number of steps. experiments/recall_gru.py gives a GRU the same rows; here it has ten
times the steps. Takes about half an hour.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from attnbook import nadaraya_watson, softmax
from attnbook import torch as torch_layers
from attnbook.generate import ngrams
from attnbook.models.losses import cross_entropy
from experiments.harness import Experiment, columns, in_order, learn

KEYS = VALUES = 32  # tokens 0 to 31 are keys, 32 to 63 values
STEPS, SIZE = 1000, 64
RATES = (0.001, 0.003, 0.01)
PAIRS = (2, 4, 8, 16)
TUNED = 8  # pairs with which learning rates are chosen
SEEDS = 5
LONGER = 0.003  # the GRU's rate with ten times the steps, two pairs

Rows = tuple[np.ndarray, np.ndarray]
Make = Callable[[], nn.Module]


def rows(count: int, pairs: int, seed: int) -> Rows:
    """Rows key, value, key, value, …, then all keys again in random order; and their values.

    Tokens (count, 3 · pairs) and the values (count, pairs) of the last third. No key comes twice
    among the pairs; values may.
    """
    rng = np.random.default_rng(seed)
    keys = np.argsort(rng.random((count, KEYS)), axis=1)[:, :pairs]
    values = KEYS + rng.integers(0, VALUES, size=(count, pairs))
    asked = np.argsort(rng.random((count, pairs)), axis=1)
    told = np.stack([keys, values], axis=-1).reshape(count, -1)
    asks = np.take_along_axis(keys, asked, axis=1)
    return np.hstack([told, asks]), np.take_along_axis(values, asked, axis=1)


class GRU(nn.Module):
    """A gated recurrent network that reads tokens, of about as many parameters as two layers."""

    def __init__(self, embed_dim: int = 64, hidden_dim: int = 80) -> None:
        super().__init__()
        self.embedding = nn.Embedding(KEYS + VALUES, embed_dim)
        self.cell = nn.GRU(embed_dim, hidden_dim, batch_first=True)
        self.readout = nn.Linear(hidden_dim, KEYS + VALUES)

    def forward(self, tokens: Int[Tensor, "b n"]) -> Tensor:
        """Logits (b, n, tokens)."""
        logits: Tensor = self.readout(self.cell(self.embedding(tokens))[0])
        return logits


def two_layers(pairs: int) -> nn.Module:
    return torch_layers.AttentionOnly(KEYS + VALUES, 3 * pairs)


def loss(model: Any, tokens: Any, values: Any) -> Any:
    """Cross-entropy of the values asked for."""
    return cross_entropy(model(tokens)[:, -values.shape[1] :], values)


def trained(
    make: Make, pairs: int, rate: float, seed: int, steps: int, cooled: bool = True
) -> dict[str, float]:
    """Train a model once; its share of right answers on 2000 new rows, CPU seconds, parameters.

    The rate rises for 50 steps and falls as half a cosine, or stays as it is.
    """
    torch.manual_seed(seed)
    model = make()
    batches = in_order(rows(steps * SIZE, pairs, seed), SIZE)
    if cooled:
        model, history = learn(torch_layers, model, loss, batches, rate, steps)
    else:
        model, history = torch_layers.train(model, loss, batches, learning_rate=rate, clip=1.0)
    tokens, values = rows(2000, pairs, 1_000_000 + seed)
    with torch.no_grad():
        said = model(torch.tensor(tokens))[:, -pairs:].argmax(-1).numpy()
    return {
        "right": float(np.mean(said == values)),
        "cpu_seconds": history.cpu_seconds,
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def one_question(found: Rows) -> Rows:
    """Rows that ask for one value only, and that value: what simple methods get."""
    tokens, values = found
    pairs = values.shape[1]
    return tokens[:, : 2 * pairs + 1], values[:, 0]


def gram_right(text: np.ndarray, order: int, judged: Rows) -> float:
    """How often the n-gram's likeliest value is right."""
    contexts = judged[0][:, judged[0].shape[1] - (order - 1) :]
    values = np.arange(KEYS, KEYS + VALUES)
    each = np.tile(values, len(contexts))[:, None]
    asked = np.hstack([np.repeat(contexts, VALUES, axis=0), each])
    needed = ngrams.bits(text, asked.ravel(), order, vocab_size=KEYS + VALUES)
    said = values[needed[order - 1 :: order].reshape(-1, VALUES).argmin(axis=1)]
    return float(np.mean(said == judged[1]))


def by_gram(pairs: int, seed: int, count: int) -> dict[str, float]:
    """The n-gram, of the order that is best on rows of its own, fitted to the training rows."""
    tokens, values = one_question(rows(count, pairs, seed))
    text = np.hstack([tokens, values[:, None]]).ravel()
    orders = range(2, min(6, 2 * pairs + 2))
    choice, judged = (one_question(rows(1000, pairs, s + seed)) for s in (2_000_000, 1_000_000))
    order = max(orders, key=lambda order: gram_right(text, order, choice))
    return {"order": order, "right": gram_right(text, order, judged)}


def by_gram_in_row(pairs: int, seed: int) -> dict[str, float]:
    """A bigram that is fitted to the pairs of the very row that asks, and to nothing else."""
    tokens, values = one_question(rows(1000, pairs, 1_000_000 + seed))
    right = [
        gram_right(row[:-1], 2, (row[None], value[None]))
        for row, value in zip(tokens, values, strict=True)
    ]
    return {"right": float(np.mean(right))}


def by_kernel(pairs: int, seed: int) -> dict[str, float]:
    """Kernel regression on random embeddings; it is told that a token's value is the next token."""
    tokens, values = one_question(rows(1000, pairs, 1_000_000 + seed))
    embedding = np.random.default_rng(seed).normal(size=(KEYS + VALUES, 64))
    said = [
        nadaraya_watson(
            embedding[row[-1:]], embedding[row[:-2]], np.eye(KEYS + VALUES)[row[1:-1]], bandwidth=1
        )[0].argmax()
        for row in tokens
    ]
    return {"right": float(np.mean(np.array(said) == values))}


def by_kernel_on_rows(pairs: int, seed: int, count: int) -> dict[str, float]:
    """Kernel regression from a whole row to its answer; it is told nothing.

    A row's tokens are one-hot, so half its squared distance to another one is the number of places
    at which they differ, and a Gaussian's weight a softmax over that of places at which they agree.
    """
    tokens, values = one_question(rows(count, pairs, seed))
    one_hot = np.eye(KEYS + VALUES, dtype=np.float32)[values]

    def said(judged: Rows, bandwidths: tuple[float, ...]) -> list[float]:
        equal = np.zeros((len(judged[1]), count), dtype=np.float32)
        for place in range(tokens.shape[1]):
            equal += judged[0][:, place, None] == tokens[:, place]
        weights = (softmax(equal / h**2) for h in bandwidths)
        return [float(np.mean((w @ one_hot).argmax(axis=1) == judged[1])) for w in weights]

    choice, judged = (one_question(rows(500, pairs, s + seed)) for s in (2_000_000, 1_000_000))
    bandwidths = (0.3, 0.4, 0.5, 0.7, 1.0, 1.5)
    bandwidth = bandwidths[int(np.argmax(said(choice, bandwidths)))]
    return {"bandwidth": bandwidth, "right": said(judged, (bandwidth,))[0]}


def main(experiment: Experiment) -> None:
    steps, seeds = (20, 1) if experiment.quick else (STEPS, SEEDS)
    found: dict[str, dict[str, Any]] = {}
    tried = {
        str(rate): trained(partial(two_layers, TUNED), TUNED, rate, 100, steps)["right"]
        for rate in RATES
    }
    rate = max(RATES, key=lambda rate: tried[str(rate)])

    def note(name: str, pairs: int, runs: list[dict[str, Any]]) -> None:
        found.setdefault(name, {})[str(pairs)] = columns(runs)
        print(name, pairs, found[name][str(pairs)], flush=True)
        rates = {"two layers": {"chosen": rate, "tried": tried}}
        experiment.store(steps=STEPS, batch=SIZE, rates=rates, found=found)

    for pairs in (4,) if experiment.quick else PAIRS:
        make = partial(two_layers, pairs)
        runs = [trained(make, pairs, rate, seed, steps) for seed in range(seeds)]
        note("two layers", pairs, runs)
        for name, how in (
            ("bigram, counted in the row", by_gram_in_row),
            ("kernel, told what follows", by_kernel),
        ):
            note(name, pairs, [how(pairs, seed) for seed in range(seeds)])
        for name, fit in (("n-gram", by_gram), ("kernel on whole rows", by_kernel_on_rows)):
            note(name, pairs, [fit(pairs, seed, steps * SIZE) for seed in range(min(seeds, 2))])
    name = f"GRU, ten times the steps, rate {LONGER}"
    note(name, 2, [trained(GRU, 2, LONGER, 0, 10 * steps)])
