"""The options of the trainer, and the command line that says them."""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from jaxtyping import Float

from attnbook.train import training

MODES, BACKENDS = ("none", "ddp", "fsdp"), ("torch", "jax")
TOKENS, PRECISIONS = ("characters", "pairs"), ("float32", "bfloat16", "float64")
DEVICES = ("auto", "cpu")
MOST_STEPS = 10**7  # the learning rate of each is an entry of an array
MOST_SEED = 2**32 - 1  # of a larger one JAX drops the upper bits
MOST_WIDE = 10**6  # rows, tokens, entries, heads, blocks: far beyond what a machine holds


@dataclass(frozen=True)
class Options:
    """What is trained, on what and how; the command line's options of the same names."""

    steps: int = 2000
    seed: int = 0
    text: Path | None = None
    held_out: Path | None = None
    mode: str | None = None
    checkpoint: Path | None = None
    every: int = 100
    resume: bool = False
    metrics: Path | None = None
    backend: str = "torch"
    rows: int = 16
    window: int = 64
    embed_dim: int = 128
    heads: int = 4
    layers: int = 2
    learning_rate: float = 4e-3
    warmup: int | None = None
    dropout: float = 0.0
    weight_decay: float = 0.0
    tokens: str = "characters"
    vocabulary: int = 512
    precision: str = "float32"
    device: str = "auto"
    log_every: int = 1

    def rates(self) -> Float[np.ndarray, " steps"]:
        """The learning rate of every step; that of step n stands at n − 1."""
        warmup = min(50, self.steps) if self.warmup is None else self.warmup
        return training.warm_cosine(self.learning_rate, self.steps, warmup=warmup)

    def mode_of(self, world: int) -> str:
        """The mode with so many workers: where none was asked for, copies if there are several."""
        return self.mode or ("ddp" if world > 1 else "none")


def parse(arguments: Sequence[str] | None = None, description: str = "") -> Options:
    """The options of a command line; what is wrong in it ends the process with status 2.

    Args:
        arguments: the words after the name; None for the process's own.
        description: what --help begins with.
    """
    parser = _Parser(
        prog="python -m attnbook.train_lm",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    usual, size = Options(), _whole(1, MOST_WIDE)

    def add(name: str, kind: Callable[[str], Any], about: str, **more: Any) -> None:
        default = getattr(usual, name.replace("-", "_"))
        parser.add_argument(f"--{name}", type=kind, default=default, help=about, **more)

    add("steps", _whole(1, MOST_STEPS), "of the training (%(default)s)")
    add("seed", _whole(0, MOST_SEED), "of the parameters and of the batches (%(default)s)")
    add("text", Path, "a file or a folder of text files, UTF-8; without it the book's own text")
    add("held-out", Path, "a file or a folder that is not learned from (the last tenth of --text)")
    add("mode", str, "copies (ddp) or shares (fsdp) of the parameters", choices=MODES)
    add("checkpoint", Path, "a folder, which all workers see, for checkpoints")
    add("every", _whole(1), "steps from checkpoint to checkpoint, and held-out loss (%(default)s)")
    go_on = "from the newest whole checkpoint, of a folder whose writers you trust"
    parser.add_argument("--resume", action="store_true", help=go_on)
    add("metrics", Path, "a file for a line of JSON a logged step: step, loss, held_out")
    add("backend", str, "torch or jax (%(default)s)", choices=BACKENDS)
    add("rows", size, "windows in a step's batch, of all workers together (%(default)s)")
    add("window", size, "tokens that the model reads (%(default)s)")
    add("embed-dim", size, "width of the model (%(default)s); an MLP is four times as wide")
    add("heads", size, "of each attention (%(default)s)")
    add("layers", size, "blocks (%(default)s)")
    add("learning-rate", _positive, "its peak (%(default)s)")
    add("warmup", _whole(0), "steps of its rise (50, or all steps where there are fewer)")
    add("dropout", _share, "the share left out of stream, weights and MLPs (%(default)s)")
    decay = "times the rate, what a matrix loses of itself in a step (%(default)s)"
    add("weight-decay", _nonnegative, decay)
    add("tokens", str, "characters, or byte pairs learned from the text", choices=TOKENS)
    add("vocabulary", _whole(256, MOST_WIDE), "tokens that byte pairs may make (%(default)s)")
    add("precision", str, "of products; parameters keep 32 bits or more", choices=PRECISIONS)
    add("device", str, "auto, a GPU of each worker's own where there is one", choices=DEVICES)
    add("log-every", _whole(1), "steps from one logged loss to the next (%(default)s)")
    options = Options(**vars(parser.parse_args(arguments)))
    if options.embed_dim % options.heads:
        parser.error(f"--heads: got {options.heads}, expected a divisor of {options.embed_dim}")
    if options.held_out is not None and options.text is None:
        parser.error("--held-out: got no --text, expected the text to learn from")
    if options.warmup is not None and options.warmup > options.steps:
        parser.error(f"--warmup: got {options.warmup}, expected at most {options.steps}, the steps")
    if options.resume and options.checkpoint is None:
        parser.error("--resume: got no --checkpoint, expected the folder to go on from")
    return options


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong: several workers say it, each for itself."""

    def error(self, message: str) -> NoReturn:
        """End the process with status 2."""
        self.exit(2, f"{message.removeprefix('argument ')}; --help names the options\n")


def _whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Reads a whole number that is not below the least and not above the most."""
    expected = f"{least} or more" if most is None else f"{least} to {most}"

    def read(word: str) -> int:
        within = word.isdecimal() and least <= int(word) and (most is None or int(word) <= most)
        if not within:
            raise argparse.ArgumentTypeError(f"got {word}, expected an integer, {expected}")
        return int(word)

    return read


def _number(word: str, expected: str, allowed: Callable[[float], bool]) -> float:
    refused = argparse.ArgumentTypeError(f"got {word}, expected a number {expected}")
    try:
        number = float(word)
    except ValueError:
        raise refused from None
    if not (math.isfinite(number) and allowed(number)):
        raise refused
    return number


def _positive(word: str) -> float:
    return _number(word, "above 0", lambda number: number > 0)


def _nonnegative(word: str) -> float:
    return _number(word, "of at least 0", lambda number: number >= 0)


def _share(word: str) -> float:
    return _number(word, "from 0 to below 1", lambda number: 0 <= number < 1)
