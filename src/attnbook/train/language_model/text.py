"""What is learned from: the book's own text or files, as characters or byte pairs."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from attnbook import datasets
from attnbook._types import Array
from attnbook._validation import check_floating, upcast_half
from attnbook.models import losses
from attnbook.train.byte_pairs import learn_pairs
from attnbook.train.language_model.options import Options
from attnbook.train.language_model.workers import Refused

SHARE = 10  # of a text of one's own the last tenth is held out
HELD_OUT = 256  # windows on which the held-out loss is measured, at most


@dataclass(frozen=True)
class TrainingText:
    """A text to learn from and one held out, as numbers of tokens.

    Args:
        train: of shape (n,).
        held_out: of shape (m,).
        vocabulary: the token of every number; byte pairs as their signs.
        name: what is said of it.
    """

    train: Int[np.ndarray, " n"]
    held_out: Int[np.ndarray, " m"]
    vocabulary: list[str]
    name: str

    def sha256(self) -> str:
        """A hash of all its tokens, in order; another text has another."""
        found = hashlib.sha256()
        for part in (self.train, self.held_out):
            found.update(len(part).to_bytes(8, "little"))
            found.update(np.ascontiguousarray(part, dtype="<i8").tobytes())
        return found.hexdigest()


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
        train, held_out = own.decode(own.train), own.decode(own.held_out)
        vocabulary, name = list(own.vocabulary), "the book's own text"
    else:
        train, name = _read(options.text, "--text"), str(options.text)
        if options.held_out is None:
            cut = len(train) - len(train) // SHARE
            train, held_out = train[:cut], train[cut:]
        else:
            held_out = _read(options.held_out, "--held-out")
        vocabulary = sorted({*train, *held_out})
    if options.tokens == "pairs":
        try:
            pairs = learn_pairs(train, options.vocabulary)
        except ModuleNotFoundError as missing:
            needs = f"the library {missing.name}, which attnbook[pretrained] installs"
            raise Refused(f"--tokens: got pairs, expected {needs}") from missing
        parts = [np.array(pairs.encode(part), dtype=np.int64) for part in (train, held_out)]
        vocabulary = pairs.tokens
    else:
        number = {character: i for i, character in enumerate(vocabulary)}
        parts = [np.array([number[c] for c in part], dtype=np.int64) for part in (train, held_out)]
    if min(map(len, parts)) <= options.window:
        got = f"{len(parts[0])} tokens to learn from and {len(parts[1])} held out in {name}"
        raise Refused(f"--text: got {got}, expected more than a window of {options.window} of each")
    return TrainingText(parts[0], parts[1], vocabulary, name)


def held_out_windows(
    text: TrainingText, window: int, world: int, most: int = HELD_OUT
) -> tuple[Int[np.ndarray, "rows {window}+1"], Bool[np.ndarray, " rows"]]:
    """Windows of the held-out text, evenly spread, and filled up so that the workers share them.

    Args:
        text: with more held-out tokens than a window.
        window: tokens that are read.
        world: workers; the number of rows is a multiple of it.
        most: windows that count.

    Returns:
        The windows, and which of them count: the others repeat the first, so that every worker
        has as many.
    """
    last = len(text.held_out) - window - 1
    count = min(most, last // window + 1)
    first = np.linspace(0, last, count).astype(np.int64)
    filled = np.concatenate([first, np.repeat(first[:1], -count % world)])
    return text.held_out[filled[:, None] + np.arange(window + 1)], np.arange(len(filled)) < count


def text_loss(
    model: Callable[[Any], Any],
    windows: Int[Array, "rows {window}+1"],
    mask: Bool[Array, "rows {window}"] | None = None,
) -> Float[Any, ""]:
    """The mean cross-entropy of each token's next one, in nats, in float32 or wider.

    Args:
        model: gives logits (rows, window, vocab) of tokens (rows, window).
        windows: tokens, of shape (rows, window + 1).
        mask: as in losses.cross_entropy, True = counts.
    """
    logits = model(windows[:, :-1])
    (logits,) = upcast_half(check_floating(logits=logits), logits)
    return losses.cross_entropy(logits, windows[:, 1:], mask)


def _read(path: Path, option: str) -> str:
    """A file, or all files of a folder in the order of their names, hidden ones left out."""
    files = [path]
    if path.is_dir():
        files = sorted(f for f in path.rglob("*") if f.is_file() and not _hidden(f, path))
    parts = []
    for file in files:
        try:
            parts.append(file.read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            got = f"byte 0x{error.object[error.start]:02x} at {error.start} in {file}"
            raise Refused(f"{option}: got {got}, expected UTF-8") from None
        except OSError as error:
            got = f"got '{error.strerror}' for {file}"
            raise Refused(f"{option}: {got}, expected a text") from None
    return "\n".join(parts)


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)
