"""What is learned from: the book's own text or files, as characters or byte pairs."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from attnbook import datasets
from attnbook._types import Array
from attnbook._validation import check_floating, upcast_half
from attnbook.models import losses
from attnbook.train.byte_pairs import BytePairs, learn_pairs
from attnbook.train.language_model.options import Options, Refused

PART = 10  # of a text of one's own the last tenth is held out
HELD_OUT = 256  # windows on which the held-out loss is measured, or few more


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of a text, by their numbers.

    Args:
        tokens: characters; or byte pairs as their signs.
        merges: of the byte pairs; None for characters.
    """

    tokens: list[str]
    merges: list[list[str]] | None = None

    def encode(self, text: str) -> Int[np.ndarray, " n"]:
        """A text as numbers of tokens; a ValueError names a character that is none."""
        if self.merges is not None:
            return np.array(self._pairs().encode(text), dtype=np.int64)
        number = {token: place for place, token in enumerate(self.tokens)}
        for character in text:
            if character not in number:
                known = "".join(self.tokens)
                raise ValueError(f"text: got {character!r}, expected characters of {known!r}")
        return np.array([number[character] for character in text], dtype=np.int64)

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of numbers of tokens."""
        if self.merges is not None:
            return self._pairs().decode(list(tokens))
        return "".join(self.tokens[token] for token in tokens)

    def _pairs(self) -> BytePairs:
        return BytePairs(self.tokens, [(a, b) for a, b in self.merges or []])


@dataclass(frozen=True)
class TrainingText:
    """A text to learn from and one held out, as numbers of tokens.

    Args:
        train: of shape (n,).
        held_out: of shape (m,).
        vocabulary: what the numbers mean.
    """

    train: Int[np.ndarray, " n"]
    held_out: Int[np.ndarray, " m"]
    vocabulary: Vocabulary

    def held_out_batches(self, rows: int, window: int) -> Iterator[Int[np.ndarray, "rows _"]]:
        """Windows of the held-out text, evenly spread, the same for any number of workers."""
        last = len(self.held_out) - window - 1
        batches = -(-min(HELD_OUT, last // window + 1) // rows)
        first = np.linspace(0, last, batches * rows).astype(np.int64)
        for part in first.reshape(batches, rows, 1):
            yield self.held_out[part + np.arange(window + 1)]


def read_text(options: Options) -> TrainingText:
    """The text of the options, as tokens.

    Args:
        options: text, held_out, tokens, vocabulary and window count here.

    Raises:
        Refused: a file that cannot be read, is no UTF-8 or is too short; byte pairs without the
            library regex.
    """
    if options.text is None:
        own = datasets.python_reference()
        train, held_out, signs = own.decode(own.train), own.decode(own.held_out), own.vocabulary
    else:
        train = _read(options.text, "--text")
        cut = len(train) - len(train) // PART
        if options.held_out is None:
            train, held_out = train[:cut], train[cut:]
        else:
            held_out = _read(options.held_out, "--held-out")
        signs = "".join(sorted({*train, *held_out}))
    vocabulary = Vocabulary(list(signs))
    if options.tokens == "pairs":
        try:
            pairs = learn_pairs(train, options.vocabulary)
        except ModuleNotFoundError as missing:
            needs = f"the library {missing.name}, which attnbook[pretrained] installs"
            raise Refused(f"--tokens: got pairs, expected {needs}") from missing
        vocabulary = Vocabulary(pairs.tokens, [list(pair) for pair in pairs.rank])
    found = TrainingText(vocabulary.encode(train), vocabulary.encode(held_out), vocabulary)
    if min(len(found.train), len(found.held_out)) <= options.window:
        got = f"{len(found.train)} tokens to learn from and {len(found.held_out)} held out"
        raise Refused(f"--text: got {got}, expected more than a window of {options.window} of each")
    return found


def share(rows: np.ndarray, rank: int, world: int) -> np.ndarray:
    """A worker's rows of a batch, by their place.

    Args:
        rows: of shape (n, ...), n a multiple of world.
        rank: the worker's number.
        world: how many there are.
    """
    each = len(rows) // world
    return rows[rank * each : (rank + 1) * each]


def text_loss(
    model: Callable[[Any], Any], windows: Int[Array, "rows {window}+1"]
) -> Float[Any, ""]:
    """The mean cross-entropy of each token's next one, in nats, in float32 or wider.

    Args:
        model: gives logits (rows, window, vocab) of tokens (rows, window).
        windows: tokens, of shape (rows, window + 1).
    """
    logits = model(windows[:, :-1])
    (logits,) = upcast_half(check_floating(logits=logits), logits)
    return losses.cross_entropy(logits, windows[:, 1:])


def _read(path: Path, option: str) -> str:
    """A file, or all files of a folder in the order of their names, hidden ones left out."""
    inside = (file.relative_to(path) for file in path.rglob("*") if file.is_file())
    shown = (file for file in inside if not any(part.startswith(".") for part in file.parts))
    files = [path / file for file in sorted(shown)] if path.is_dir() else [path]
    try:
        return "\n".join(file.read_text(encoding="utf-8") for file in files)
    except (UnicodeDecodeError, OSError) as error:
        raise Refused(f"{option}: got {path}, expected a text in UTF-8: {error}") from None
