"""Seven ways to tell self-attention the places, in two tests of their own, over ten seeds.

"Which came first" asks whether A stands before B: the model and the training are those of chapter
5, rows of 12 tokens, one layer, the mean of its outputs, 400 steps. "Two before" asks which of
eight kinds of token stands two places before A, and reads the answer off the layer's output at A;
the rest is the same. The share of right answers is on 4000 new rows of 12 tokens and of 24. Takes
some minutes, on one core.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from attnbook import scores
from attnbook import torch as torch_layers
from attnbook.attention import positions
from attnbook.train.training import minibatches
from experiments.harness import Experiment, over


def rows_with_order(n: int, seed: int, length: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.integers(2, 10, size=(n, length))
    place = np.argsort(rng.random((n, length)), axis=1)[:, :2]
    np.put_along_axis(rows, place, np.array([[0, 1]]), axis=1)
    return rows, (place[:, 0] < place[:, 1]).astype(np.float32)


class Order(nn.Module):
    def __init__(self, added: Any = None, score: Any = scores.scaled_dot, causal: bool = False):
        super().__init__()
        self.embedding = nn.Embedding(10, 32)
        self.attention = torch_layers.SelfAttention(32)
        self.readout = nn.Linear(32, 1)
        self.added, self.score, self.causal = added, score, causal

    def mixed(self, rows: Tensor) -> Tensor:
        x = self.embedding(rows)
        x = x if self.added is None else x + self.added
        averages: Tensor = self.attention(x, score=self.score, causal=self.causal)
        return averages

    def forward(self, rows: Tensor) -> Tensor:
        answer: Tensor = self.readout(self.mixed(rows).mean(dim=-2))[:, 0]
        return answer


def waves(length: int) -> Tensor:
    return torch.tensor(positions.sinusoidal(length, 32), dtype=torch.float32)


def turned(q: Tensor, k: Tensor) -> Any:
    places = torch.arange(q.shape[-2])
    return scores.scaled_dot(positions.rotary(q, places), positions.rotary(k, places))


def lowered(q: Tensor, k: Tensor) -> Any:
    bias = torch.tensor(positions.alibi(4, q.shape[-2])[0])  # slope 1/4
    return scores.scaled_dot(q, k) + bias.to(q.dtype)


def rows_with_two_before(n: int, seed: int, length: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Rows with one A, token 0, among tokens 2 to 9; and the token two places before it, less 2."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(2, 10, size=(n, length))
    place = rng.integers(2, length, size=n)
    rows[np.arange(n), place] = 0
    return rows, rows[np.arange(n), place - 2] - 2


class TwoBefore(Order):
    """The same layer; eight logits are read off its output at A."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.readout = nn.Linear(32, 8)

    def forward(self, rows: Tensor) -> Tensor:
        answer: Tensor = self.readout(self.mixed(rows)[rows == 0])
        return answer


def kinds() -> dict[str, dict[str, Any]]:
    return {
        "no positions": {},
        "sinusoidal": {"added": waves(12)},
        "learned": {"added": nn.Parameter(0.1 * torch.randn(12, 32))},
        "rotary": {"score": turned},
        "ALiBi": {"score": lowered},
        "ALiBi, causal": {"score": lowered, "causal": True},
        "no positions, causal": {"causal": True},
    }


def shares(make: Any, rows_of: Any, loss_of: Any, said: Any, seed: int) -> dict[str, list[float]]:
    """Every kind trained once; its share of right answers on rows of 12 and of 24."""
    train_rows = rows_of(20_000, seed=3 * seed)
    test_rows = rows_of(4_000, seed=3 * seed + 1)
    long_rows = rows_of(4_000, seed=3 * seed + 2, length=24)
    torch.manual_seed(seed)

    def loss(model: nn.Module, rows: Tensor, labels: Tensor) -> Tensor:
        return loss_of(model(rows), labels)

    @torch.no_grad()
    def share(model: nn.Module, rows: np.ndarray, labels: np.ndarray) -> float:
        return float(np.mean(said(model(torch.tensor(rows))).numpy() == labels))

    found = {}
    for name, options in kinds().items():
        torch.manual_seed(seed)
        batches = minibatches(train_rows, size=128, steps=400, seed=seed)
        model, _ = torch_layers.train(make(**options), loss, batches, learning_rate=0.003)
        found[name] = [share(model, *test_rows)]
        if name == "sinusoidal":
            model.added = waves(24)
        if name != "learned":  # its table has no more than 12 rows
            found[name].append(share(model, *long_rows))
    return found


def which_first(seed: int) -> dict[str, list[float]]:
    return shares(Order, rows_with_order, binary_cross_entropy_with_logits, lambda a: a > 0, seed)


def two_before(seed: int) -> dict[str, list[float]]:
    return shares(TwoBefore, rows_with_two_before, cross_entropy, lambda a: a.argmax(dim=-1), seed)


def guess_by_counting(seeds: int) -> float:
    """How often the commonest token of a row is the one two before A, the first of equals."""
    right = []
    for seed in range(seeds):
        rows, labels = rows_with_two_before(4_000, seed=3 * seed + 1)
        counts = (rows[:, :, None] == np.arange(2, 10)).sum(axis=1)
        right.append(np.mean(counts.argmax(axis=1) == labels))
    return float(np.mean(right))


def main(experiment: Experiment) -> None:
    seeds = 1 if experiment.quick else 10
    first, before = over(which_first, seeds), over(two_before, seeds)
    guess = guess_by_counting(seeds)
    print(guess)
    experiment.store(shares=first, two_before=before, guess_by_counting=guess)
