"""Workers on a ring, simulated in one process: right, and as readers get it wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np

Place = Callable[[int, int, int, int], Any]


def key_places(rank: int, step: int, world: int, block: int) -> Any:
    """Positions in the text of the keys that worker `rank` holds in this step."""
    return (rank - step) % world * block + np.arange(block)


def ring_average(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray, place: Place = key_places
) -> np.ndarray:
    """Causal averages (W, b, p) of blocks that travel, masked by these positions of the keys."""
    world, block, width = queries.shape
    total = np.zeros((world, block, 1))
    weighted = np.zeros((world, block, values.shape[2]))
    for step in range(world):
        for rank in range(world):
            owner, i = (rank - step) % world, rank * block + np.arange(block)
            scores = queries[rank] @ keys[owner].T / np.sqrt(width)
            kernel = np.where(place(rank, step, world, block) <= i[:, None], np.exp(scores), 0)
            total[rank] += kernel.sum(axis=1, keepdims=True)
            weighted[rank] += kernel @ values[owner]
    return weighted / total


MISPLACED: tuple[tuple[Place, str], ...] = (
    (lambda r, s, w, b: s * b + np.arange(b), "The step is no position: whose block has arrived?"),
    (lambda r, s, w, b: np.arange(b), "Now every block is masked as if it were the first."),
    (lambda r, s, w, b: (r + s) % w * b + np.arange(b), "Blocks travel the other way round."),
    (lambda r, s, w, b: (r - s) % w + np.arange(b), "A block before has as many tokens as this."),
    (lambda r, s, w, b: (r - s) % w * b, "Each key of the block has a position of its own."),
    (lambda r, s, w, b: (r - s) * b + np.arange(b), "Behind the first worker comes the last."),
    (lambda r, s, w, b: np.full(b, -1), "Nothing is masked."),
    (lambda r, s, w, b: r * b + np.arange(b), "The keys still have the queries' positions."),
)  # fmt: skip


def ring_all_reduce(
    arrays: np.ndarray,
    pieces: list[np.ndarray] | None = None,
    back: bool = False,
    steps: int | None = None,
    always_add: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """What each of W workers ends with (W, n), and how many numbers it sends (2(W − 1), W).

    Args:
        arrays: of shape (W, n), a row per worker.
        pieces: the places in a row that travel together; W of nearly equal lengths by default.
        back: send to the worker before, not to the next.
        steps: how many are made; all by default.
        always_add: add in the second half too, where finished sums are copied.
    """
    world, n = arrays.shape
    pieces = pieces or np.array_split(np.arange(n), world)
    held, sent = arrays.copy(), np.zeros((2 * (world - 1), world))
    way = -1 if back else 1
    for step in range(len(sent) if steps is None else steps):
        for rank in range(world):  # no worker sends the piece that it receives in this step
            piece, there = pieces[(rank - way * step) % world], (rank + way) % world
            before = held[there, piece] if step < world - 1 or always_add else 0
            held[there, piece] = before + held[rank, piece]
            sent[step, rank] = len(piece)
    return held, sent
