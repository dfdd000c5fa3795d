"""What each part of the block buys, in training: the share right against the learning rate.

A house of 24 rooms has 24 doors; each leads from every room to some room. A row names a room and a
door in turn, and the answer at a door is the room behind it. Stacks of six blocks, whole and with a
part taken out, learn it at rates a factor of 2.5 apart, and those where it is decided whether norms
help at two more; at the largest of these twelve blocks follow. A loss that is not finite ends a
run, which is stored as null. A second house has eight rooms and doors, and walks through several,
at the best of four rates. All runs warm up but those that say so. Takes twenty minutes of one
processor.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnbook import causal_mask
from attnbook import torch as torch_layers
from attnbook.models import losses
from attnbook.models.transformer import INIT_STD
from attnbook.train import training
from experiments.harness import Experiment, columns, learn, rounded

ROOMS, FEW, LENGTH, WIDTH, HEADS = 24, 8, 16, 32, 4
STEPS, SIZE, SEEDS, WARMUP = 400, 64, 3, 50
RATES = (0.0016, 0.004, 0.01, 0.025, 0.0625, 0.15625)
FINER = (0.0016, 0.004, 0.0063, 0.01, 0.0158, 0.025, 0.0625, 0.15625)
DEEP, COLD = (0.01, 0.0158, 0.025), (0.01, 0.025, 0.0625)


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
    """The same with a new start at three positions of ten, and doors at the others."""
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

    def __init__(self, vocab: int, depth: int, case: str) -> None:
        super().__init__()
        self.case = case
        self.embedding = nn.Embedding(vocab, WIDTH)
        self.position = nn.Parameter(INIT_STD * torch.randn(LENGTH, WIDTH))
        nn.init.normal_(self.embedding.weight, std=INIT_STD)
        self.decoder = nn.ModuleList(
            torch_layers.EncoderBlock(
                WIDTH, HEADS, 4 * WIDTH, norm="post" if case == "post-norm" else "pre"
            )
            for _ in range(depth)
        )
        self.decoder_norm = nn.LayerNorm(WIDTH)
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
        norms = (block.attention_norm, block.mlp_norm)
        first, second = (nn.Identity(), nn.Identity()) if self.case == "no norm" else norms
        kept = 0 if self.case == "no sum" else 1
        if self.case != "no attention":
            x = kept * x + block.attention(first(x), mask=mask)
        if self.case != "no MLP":
            x = kept * x + block.mlp(second(x))
        return x


def loss(model: Stack, tokens: Tensor, answers: Tensor, doors: Tensor) -> Tensor:
    """Over the positions that are asked: where a door was taken; on long walks all of them."""
    asked = doors > 0 if model.embedding.num_embeddings == ROOMS else doors >= 0
    return losses.cross_entropy(model(tokens), answers, asked)


def trained(
    rows: Rows, case: str, depth: int, warmup: int, rate: float, seed: int, steps: int
) -> dict[str, Any]:
    """Train once; the share right on new rows, by doors too, the loss, processor seconds."""
    torch.manual_seed(seed)
    model = Stack(ROOMS if rows is one_door else 2 * FEW, depth, case)
    batches = [rows(SIZE, [seed, step]) for step in range(steps)]
    try:
        model, history = learn(torch_layers, model, loss, batches, rate, steps, warmup)
    except training.TrainingFailed:  # a loss that is not finite
        return {"right": None, "loss": None, "by_doors": None, "cpu_seconds": None}
    tokens, answers, doors = rows(2000, [seed, 1_000_000])
    with torch.no_grad():
        right = model(torch.tensor(tokens)).argmax(dim=-1).numpy() == answers
        judged = float(loss(model, *map(torch.tensor, (tokens, answers, doors))))
    by_doors = [right[doors == k].mean() for k in range(1, int(doors.max()) + 1)][:8]
    return {
        "right": rounded(right[doors > 0].mean()),
        "loss": rounded(judged),
        "by_doors": rounded(by_doors),
        "cpu_seconds": rounded(history.cpu_seconds),
    }


CASES: dict[str, tuple[tuple[Rows, str, int, int], tuple[float, ...]]] = {
    "whole, 6": ((one_door, "whole", 6, WARMUP), FINER),
    "no norm, 6": ((one_door, "no norm", 6, WARMUP), FINER),
    "no MLP, 6": ((one_door, "no MLP", 6, WARMUP), RATES),
    "no sum, 6": ((one_door, "no sum", 6, WARMUP), RATES),
    "whole, 12": ((one_door, "whole", 12, WARMUP), DEEP),
    "no norm, 12": ((one_door, "no norm", 12, WARMUP), DEEP),
    "post-norm, 6": ((one_door, "post-norm", 6, WARMUP), RATES),
    "no attention, 6": ((one_door, "no attention", 6, WARMUP), RATES),
    "whole, 6, no warm-up": ((one_door, "whole", 6, 0), COLD),
    "no norm, 6, no warm-up": ((one_door, "no norm", 6, 0), COLD),
    "walks, 1": ((many_doors, "whole", 1, WARMUP), (0.025,)),
    "walks, 2": ((many_doors, "whole", 2, WARMUP), (0.01,)),
    "walks, 6": ((many_doors, "whole", 6, WARMUP), (0.01,)),
}


def main(experiment: Experiment) -> None:
    steps, seeds = (10, 1) if experiment.quick else (STEPS, SEEDS)
    for name, (setting, rates) in CASES.items():
        found: dict[str, list[Any]] = {"rates": []}
        for rate in rates[:1] if experiment.quick else rates:
            runs = [trained(*setting, rate, seed, steps) for seed in range(seeds)]
            found["rates"].append(rate)
            for what, of_seeds in columns(runs).items():
                found.setdefault(what, []).append(of_seeds)
            print(name, rate, found["right"][-1], flush=True)
            experiment.store(steps=steps, found=experiment.found | {name: found})
        experiment.found[name] = found
