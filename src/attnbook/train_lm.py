"""Train a language model from the command line, on one device or on many.

    python -m attnbook.train_lm --steps 200
    torchrun --nproc-per-node 2 -m attnbook.train_lm --mode fsdp --checkpoint run --resume
    python -m attnbook.train_lm --backend jax

The model is chapter 8's writer, the text the book's own or yours; attnbook.write writes with what
was learned. The batch of a step depends on the seed and the step alone, so that any number of
workers, and a run that was killed and goes on, sees the same batches. Go on (--resume) only from a
folder that you, or people whom you trust, have written: a part of PyTorch's checkpoint is a pickle.
"""

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from attnbook.train.language_model.loop import train_loop
from attnbook.train.language_model.options import Options, Refused, parse
from attnbook.train.language_model.text import read_text, share, text_loss

__all__ = ["Options", "engine_of", "main", "parse", "read_text", "share", "text_loss"]
REFUSED = 2  # the exit status


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit status.

    Args:
        arguments: the words after the name; None for the process's own.
    """
    options = parse(arguments, __doc__ or "")
    try:
        engine = engine_of(options.backend)
        with engine.workers(options):
            text = read_text(options)
            train_loop(options, text, engine.Run(options, len(text.vocabulary.tokens)))
    except (Refused, OSError) as refused:
        print(refused, file=sys.stderr, flush=True)
        return REFUSED
    return 0


def engine_of(backend: str) -> Any:
    """The half of the trainer that knows a back end: attnbook.torch.train_lm, or JAX's.

    Raises:
        Refused: a library that is not installed.
    """
    try:
        return import_module(f"attnbook.{backend}.train_lm")
    except ModuleNotFoundError as missing:
        got = f"got no module {missing.name}"
        how = f'python -m pip install "attnbook[{backend}]"'
        raise Refused(f"--backend {backend}: {got}, expected it: {how}") from missing


if __name__ == "__main__":
    try:
        status = main()
    except Exception:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    if status:
        os._exit(status)  # without the other workers, who would be waited for
