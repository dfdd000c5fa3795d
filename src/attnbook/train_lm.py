"""Train a language model from the command line, on one device or on many.

    python -m attnbook.train_lm --steps 200
    torchrun --nproc-per-node 2 -m attnbook.train_lm --mode fsdp --checkpoint run --resume
    python -m attnbook.train_lm --backend jax

The model is chapter 8's writer, the text the book's own or yours. The batch of a step depends on
the seed and the step alone, so that any number of workers, and a run that was killed and goes on,
sees the same batches. Go on (--resume) only from a folder that you, or people whom you trust, have
written: a checkpoint runs nothing when it is read, but its numbers are believed.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from attnbook.train.language_model.checkpoints import newest as newest_checkpoint
from attnbook.train.language_model.options import Options, parse
from attnbook.train.language_model.text import TrainingText, read_text, text_loss
from attnbook.train.language_model.workers import (
    REFUSED,
    Refused,
    Workers,
    barrier,
    check_world,
    share,
)

__all__ = [
    "Options",
    "Refused",
    "TrainingText",
    "main",
    "newest_checkpoint",
    "parse",
    "read_text",
    "share",
    "text_loss",
]
INTERRUPTED = 130  # the exit status


class Engine(Protocol):
    """A back end's half: attnbook.torch.train_lm and attnbook.jax.train_lm."""

    def workers(self, options: Options) -> AbstractContextManager[Workers]:
        """Meet the other workers, and part from them at the end."""
        ...

    def train(self, options: Options, text: TrainingText, workers: Workers) -> list[float]:
        """Train, and give the losses of the steps that were logged."""
        ...


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status.

    Args:
        arguments: the words after the name; None for the process's own.
    """
    options = parse(arguments, __doc__ or "")
    try:
        engine = _engine(options.backend)
    except ModuleNotFoundError as missing:
        extra = options.backend
        print(
            f"--backend {extra}: got no module {missing.name}, expected it: "
            f'python -m pip install "attnbook[{extra}]"',
            file=sys.stderr,
        )
        return REFUSED
    with engine.workers(options) as workers:
        try:
            barrier(workers, lambda: check_world(options, workers.world))
            text = barrier(workers, lambda: read_text(options))
            engine.train(options, text, workers)
        except Refused as refused:
            who = f"rank {workers.rank}: " if workers.world > 1 else ""
            print(f"{who}{refused}", file=sys.stderr, flush=True)
            workers.gather("")  # a launcher ends the others when the first one leaves
            return REFUSED
    return 0


def _engine(backend: str) -> Engine:
    if backend == "torch":
        from attnbook.torch import train_lm as torch_engine

        return torch_engine
    from attnbook.jax import train_lm as jax_engine

    return jax_engine


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted; --resume goes on from the newest checkpoint", file=sys.stderr)
        sys.stderr.flush()
        os._exit(INTERRUPTED)  # without the other workers, who would be waited for
