"""What each part of the block buys, in training: stacks of 2, 6 and 12 blocks, a part taken out.

A house of 24 rooms has 24 doors; each leads from every room to some room. A row names a room and a
door in turn, and the answer at a door is the room behind it. Every stack has the best of three
learning rates, chosen with a seed and on rows of its own; where the best is the least or the
largest of them, the next one is tried too. A second house has eight rooms and doors, and walks
through several. Last comes what the first leaves open, at rates that are given: post-norm at
smaller ones, RMS norms, and SwiGLU, narrower so that it has as many parameters as the MLP. Takes 25
minutes of one processor.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnbook import causal_mask
from attnbook import torch as torch_layers
from attnbook.models import losses
from attnbook.models.transformer import INIT_STD
from attnbook.train import training
from experiments.harness import Experiment, learn, rounded

ROOMS, FEW, LENGTH, WIDTH, HEADS = 24, 8, 16, 32, 4
STEPS, SIZE, SEEDS, CHOOSER = 400, 64, 3, 100
CASES = ("whole", "no MLP", "no attention", "no sum", "no norm", "post-norm")
RATES = (0.004, 0.01, 0.025)
FACTOR, WIDER = 2.5, 2  # a best rate at the edge widens the grid, at most twice
DEPTHS, WALKED = (2, 6, 12), (1, 2, 6)
ONE_RATE, SMALLER = 0.01, (0.0016, 0.0006)
STDS = (0.02, 1.0)  # beside INIT_STD: GPT-2's, PyTorch's


def house(rooms: int) -> np.ndarray:
    """The room behind each door, from each room: (doors, rooms)."""
    rows = np.tile(np.arange(rooms), (rooms, 1))
    return np.random.default_rng(0).permuted(rows, axis=1)


Rows = Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]
PLAN, SMALL = house(ROOMS), house(FEW)


def one_door(n: int, seed: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tokens, the room after each, and through how many doors it was reached: a room, a door."""
    room, door = np.random.default_rng(seed).integers(0, ROOMS, size=(2, n, LENGTH // 2))
    tokens = np.stack([room, door], axis=-1).reshape(n, LENGTH)
    answers = np.stack([room, PLAN[door, room]], axis=-1).reshape(n, LENGTH)
    return tokens, answers, np.broadcast_to(np.arange(LENGTH) % 2, tokens.shape)


def many_doors(n: int, seed: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same with a new start at three places of ten, and doors at the others."""
    rng = np.random.default_rng(seed)
    named = rng.integers(0, FEW, size=(n, LENGTH))
    start = rng.random((n, LENGTH)) < 0.3
    start[:, 0] = True
    answers, doors = np.zeros_like(named), np.zeros_like(named)
    for i in range(LENGTH):
        behind = SMALL[named[:, i], answers[:, i - 1]]
        answers[:, i] = np.where(start[:, i], named[:, i], behind)
        doors[:, i] = np.where(start[:, i], 0, doors[:, i - 1] + 1)
    return np.where(start, named, FEW + named), answers, doors


class Stack(nn.Module):
    """Chapter 7's model, with a part taken out."""

    def __init__(self, vocab: int, depth: int, case: str, std: float) -> None:
        super().__init__()
        self.case = case
        self.embedding = nn.Embedding(vocab, WIDTH)
        self.position = nn.Parameter(std * torch.randn(LENGTH, WIDTH))
        nn.init.normal_(self.embedding.weight, std=std)
        options: dict[str, Any] = {
            "post-norm": {"norm": "post"},
            "RMS norm": {"rms_norm": True},
            "SwiGLU": {"activation": "swiglu"},
        }.get(case, {})
        inside = 8 * WIDTH // 3 if case == "SwiGLU" else 4 * WIDTH  # three matrices in place of two
        self.decoder = nn.ModuleList(
            torch_layers.EncoderBlock(WIDTH, HEADS, inside, **options) for _ in range(depth)
        )
        last = nn.RMSNorm(WIDTH, eps=1e-5) if case == "RMS norm" else nn.LayerNorm(WIDTH)
        self.decoder_norm = last
        self.readout = nn.Linear(WIDTH, vocab)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.position[: tokens.shape[1]]
        mask = causal_mask(tokens.shape[1], x)
        for block in self.decoder:
            x = self.through(block, x, mask)
        # Post-norm ends with a norm; "no norm" has none at all.
        last = self.case not in ("no norm", "post-norm")
        return self.readout(self.decoder_norm(x) if last else x)

    def through(self, block: Any, x: Tensor, mask: Tensor) -> Tensor:
        if self.case == "post-norm":
            return block(x, mask)
        keep: Callable[[Tensor], Tensor] = lambda z: z  # noqa: E731
        normed = (keep, keep) if self.case == "no norm" else (block.attention_norm, block.mlp_norm)
        if self.case != "no attention":
            change = block.attention(normed[0](x), mask=mask)
            x = change if self.case == "no sum" else x + change
        if self.case != "no MLP":
            change = block.mlp(normed[1](x))
            x = change if self.case == "no sum" else x + change
        return x


def loss(model: Stack, tokens: Tensor, answers: Tensor, doors: Tensor) -> Tensor:
    """Over the places that are asked: where a door was taken; on long walks all of them."""
    asked = doors > 0 if model.embedding.num_embeddings == ROOMS else doors >= 0
    return losses.cross_entropy(model(tokens), answers, asked)


def trained(
    rows: Rows, depth: int, case: str, rate: float, seed: int, steps: int, std: float = INIT_STD
) -> dict[str, Any]:
    """Train once; the share right on new rows, by doors too, the loss, processor seconds."""
    torch.manual_seed(seed)
    model = Stack(ROOMS if rows is one_door else 2 * FEW, depth, case, std)
    batches = [rows(SIZE, [seed, step]) for step in range(steps)]
    model, history = learn(torch_layers, model, loss, batches, rate, steps)
    tokens, answers, doors = rows(2000, [seed, 1_000_000])
    with torch.no_grad():
        right = model(torch.tensor(tokens)).argmax(dim=-1).numpy() == answers
        judged = float(loss(model, *map(torch.tensor, (tokens, answers, doors))))
    return {
        "right": float(right[doors > 0].mean()),
        "loss": rounded(judged),
        "by_doors": [float(right[doors == k].mean()) for k in range(1, int(doors.max()) + 1)][:8],
        "rate": rate,
        "seed": seed,
        "cpu_seconds": round(history.cpu_seconds, 2),
        "parameters": sum(p.numel() for p in model.parameters() if p.grad is not None),
    }


def best(rows: Rows, depth: int, case: str, quick: bool, **how: float) -> dict[str, Any]:
    """Choose the rate with a seed of its own, then train every seed."""
    steps = 10 if quick else STEPS

    def tried(rate: float) -> dict[str, Any]:
        try:
            return trained(rows, depth, case, rate, CHOOSER, steps, **how)
        except training.TrainingFailed:  # a loss that is not finite
            return {"rate": rate, "right": 0.0, "loss": 1e9}

    found = {rate: tried(rate) for rate in (RATES[:1] if quick else RATES)}
    for _ in range(0 if quick else WIDER):
        first, *_, last = by_rate = sorted(found)
        inner = {first: by_rate[1], last: by_rate[-2]}
        chosen = min(found, key=lambda rate: float(found[rate]["loss"]))
        if chosen not in inner or found[chosen]["loss"] > 0.99 * found[inner[chosen]]["loss"]:
            break
        beyond = chosen * (1 / FACTOR if chosen == first else FACTOR)
        found[beyond] = tried(beyond)
    chosen = min(found, key=lambda rate: float(found[rate]["loss"]))
    seeds = range(1 if quick else SEEDS)
    runs = [trained(rows, depth, case, chosen, seed, steps, **how) for seed in seeds]
    print(rows.__name__, depth, case, how, chosen, *(run["right"] for run in runs), flush=True)
    return {
        "runs": runs,
        "tried": [{k: run[k] for k in ("rate", "right", "loss")} for run in found.values()],
    }


def main(experiment: Experiment) -> None:
    quick = experiment.quick
    parts = {
        f"{case}, {depth}": best(one_door, depth, case, quick)
        for depth in (DEPTHS[:1] if quick else DEPTHS)
        for case in CASES
    }
    stds = {str(std): best(one_door, DEPTHS[0], "whole", quick, std=std) for std in STDS}
    walked = {f"whole, {depth}": best(many_doors, depth, "whole", quick) for depth in WALKED}
    steps, seeds = (10, range(1)) if quick else (STEPS, range(SEEDS))
    low, high = DEPTHS[0], DEPTHS[-1]
    left_open = {
        f"{case}, {low}": [trained(one_door, low, case, ONE_RATE, seed, steps) for seed in seeds]
        for case in ("post-norm", "RMS norm", "SwiGLU")
    }
    left_open[f"post-norm, {high}"] = [
        trained(one_door, high, "post-norm", rate, seed, steps)
        for rate, seed in product(SMALLER, seeds)
    ]
    print(left_open)
    experiment.store(steps=STEPS, parts=parts, walked=walked, std=stds, left_open=left_open)
