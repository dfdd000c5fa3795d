"""The processes that train together: what they agree on before any of them goes on."""

import os
import sys
from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from attnbook.train.language_model.options import Options

Found = TypeVar("Found")
REFUSED, LOST = 2, 3  # exit statuses: of what cannot be, and of a worker whose fellow is gone
GONE = (  # how gloo, NCCL, PyTorch's store and JAX's say that a worker does not answer
    "closed by peer", "reset by peer", "Broken pipe", "Connection refused", "likely closed",
    "remote process exit", "imed out waiting", "collective operation timeout",
    "communicator was aborted", "UNAVAILABLE", "DEADLINE_EXCEEDED",
)  # fmt: skip


class Refused(ValueError):
    """What cannot be trained as asked for: one line says why."""


class Workers(Protocol):
    """The processes that train together, as one of them sees them."""

    rank: int
    world: int

    def gather(self, message: str) -> list[str]:
        """What every worker has to say, by rank; waits for all of them."""
        ...


def share(rows: np.ndarray, rank: int, world: int) -> np.ndarray:
    """A worker's rows of a batch, by their place.

    Args:
        rows: of shape (n, ...), n a multiple of world.
        rank: the worker's number.
        world: how many there are.
    """
    each = len(rows) // world
    return rows[rank * each : (rank + 1) * each]


def barrier(workers: Workers, action: Callable[[], Found]) -> Found:
    """Wait for all workers, and go on only if an action has succeeded for every one of them.

    Args:
        workers: of whom this process is one.
        action: of this one; what it gives is given back.

    Raises:
        Refused: it failed, here or elsewhere; with the worker's own reason, or another's.
    """
    error: Exception | None = None
    try:
        found = action()
    except (Refused, OSError) as refused:
        error = refused
    reasons = workers.gather("" if error is None else str(error) or type(error).__name__)
    for rank, reason in enumerate([reasons[workers.rank], *reasons]):
        if reason and rank == 0:
            raise Refused(reason) from error
        if reason:
            raise Refused(f"rank {rank - 1} failed: {reason}")
    return found


def leave_if_lost(workers: Workers, error: RuntimeError) -> None:
    """End at once where another worker is gone: whoever waits for it waits long.

    Args:
        workers: of whom this process is one.
        error: of a back end.
    """
    if workers.world > 1 and any(word in str(error) for word in GONE):
        said = "another worker is gone; --resume goes on from the newest checkpoint"
        print(f"rank {workers.rank}: {said}", file=sys.stderr, flush=True)
        os._exit(LOST)


def check_world(options: Options, world: int) -> None:
    """Refuse workers that cannot share the rows, or that would all do the same.

    Args:
        options: of the run.
        world: how many workers there are.

    Raises:
        Refused: rows that are no multiple of the workers; mode none with several.
    """
    if options.rows % world:
        raise Refused(f"--rows: got {options.rows}, expected a multiple of {world}, the workers")
    if world > 1 and options.mode == "none":
        raise Refused(f"--mode: got none with {world} workers, expected ddp or fsdp")
