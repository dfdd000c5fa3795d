"""The options of the trainer, and the command line that says them."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from attnbook.train.training import warm_cosine

MODES, TOKENS = ("none", "ddp", "fsdp"), ("characters", "pairs")


class Refused(ValueError):
    """What cannot be trained, or written, as asked for: one line says why."""


def number(kind: type, expected: str, allowed: Callable[[Any], bool]) -> Callable[[str], Any]:
    """Reads a word of a command line as a number that is allowed; expected says which are."""

    def read(word: str) -> Any:
        try:
            found = kind(word)
        except ValueError:
            found = None
        if found is None or not allowed(found):
            raise argparse.ArgumentTypeError(f"got {word}, expected {expected}")
        return found

    return read


COUNT = number(int, "an integer, 1 or more", lambda n: n >= 1)
WHOLE = number(int, "an integer, 0 or more", lambda n: n >= 0)
POSITIVE = number(float, "a number above 0", lambda x: 0 < x < float("inf"))
NOT_NEGATIVE = number(float, "a number of at least 0", lambda x: 0 <= x < float("inf"))
PATH = {"type": Path}
SHARE = number(float, "a number from 0 to below 1", lambda x: 0 <= x < 1)


def _option(default: Any, kind: Callable[[str], Any], about: str, **more: Any) -> Any:
    """A field, and how argparse reads it."""
    return field(default=default, metadata={"type": kind, "help": about} | more)


@dataclass(frozen=True)
class Options:
    """What is trained, on what and how; the command line's options of the same names."""

    steps: int = _option(2000, COUNT, "of the training (%(default)s)")
    seed: int = _option(0, WHOLE, "of the parameters and of the batches (%(default)s)")
    text: Path | None = field(
        default=None, metadata=PATH | {"help": "a file or a folder; else the book's text"}
    )
    held_out: Path | None = field(
        default=None, metadata=PATH | {"help": "to test with; else the last tenth"}
    )
    tokens: str = _option("characters", str, "characters, or pairs of bytes", choices=TOKENS)
    vocabulary: int = _option(512, COUNT, "tokens that pairs may make, 256 or more (%(default)s)")
    mode: str | None = _option(None, str, "copies (ddp) or shares (fsdp) of it", choices=MODES)
    checkpoint: Path | None = field(
        default=None, metadata=PATH | {"help": "a folder, which all workers see"}
    )
    every: int = _option(100, COUNT, "steps between checkpoints, and held-out losses (%(default)s)")
    resume: bool = field(
        default=False, metadata={"action": "store_true", "help": "go on, in --checkpoint"}
    )
    metrics: Path | None = field(
        default=None, metadata=PATH | {"help": "a file for a line of JSON a step"}
    )
    backend: str = _option("torch", str, "(%(default)s)", choices=("torch", "jax"))
    rows: int = _option(16, COUNT, "windows a step, of all workers together (%(default)s)")
    window: int = _option(64, COUNT, "tokens that the model reads (%(default)s)")
    embed_dim: int = _option(128, COUNT, "width; an MLP is four times as wide (%(default)s)")
    heads: int = _option(4, COUNT, "of each attention (%(default)s)")
    layers: int = _option(2, COUNT, "blocks (%(default)s)")
    learning_rate: float = _option(4e-3, POSITIVE, "its peak (%(default)s)")
    warmup: int = _option(50, WHOLE, "steps of its rise, at most all (%(default)s)")
    dropout: float = _option(0.0, SHARE, "the share left out (%(default)s)")
    weight_decay: float = _option(0.0, NOT_NEGATIVE, "times the rate, what a matrix loses")
    precision: str = _option("float32", str, "of products", choices=("float32", "bfloat16"))
    device: str = _option("auto", str, "auto: a GPU where there is one", choices=("auto", "cpu"))

    def rates(self) -> Float[np.ndarray, " steps"]:
        """The learning rate of every step; that of step n stands at n − 1."""
        return warm_cosine(self.learning_rate, self.steps, warmup=min(self.warmup, self.steps))

    def mode_of(self, devices: int, processes: int) -> str:
        """The mode with so many devices: where none was asked for, copies if there are several.

        Raises:
            Refused: processes that would all do the same, rows that the devices cannot share.
        """
        mode = self.mode or ("ddp" if devices > 1 else "none")
        if mode == "none" and processes > 1:
            raise Refused(f"--mode: got none with {processes} workers, expected ddp or fsdp")
        if mode != "none" and self.rows % devices:
            expected = f"expected a multiple of {devices}, the workers"
            raise Refused(f"--rows: got {self.rows}, {expected}")
        return mode


def parse(arguments: Sequence[str] | None = None, description: str = "") -> Options:
    """The options of a command line; what is wrong in it ends the process with status 2.

    Args:
        arguments: the words after the name; None for the process's own.
        description: what --help begins with.
    """
    raw = argparse.RawDescriptionHelpFormatter
    usage = "python -m attnbook.train_lm [options]; --help names them"
    parser = argparse.ArgumentParser(usage=usage, description=description, formatter_class=raw)
    for one in fields(Options):
        name = f"--{one.name.replace('_', '-')}"
        parser.add_argument(name, default=one.default, **one.metadata)
    options = Options(**vars(parser.parse_args(arguments)))
    if options.embed_dim % options.heads:
        parser.error(f"--heads: got {options.heads}, expected a divisor of {options.embed_dim}")
    if options.held_out is not None and options.text is None:
        parser.error("--held-out: got no --text, expected the text to learn from")
    if options.resume and options.checkpoint is None:
        parser.error("--resume: got no --checkpoint, expected the folder to go on from")
    return options
