"""Attention weights of a large model on a few sentences, stored for a live figure.

A file is like that of a stored model (course.live.models): the length of a JSON header in 8
bytes, the header with model and sentences, then the weights, one byte each. Of a causal head only
the rows' parts up to the diagonal are kept: n (n + 1) / 2 bytes. The website serves the files from
_static/models.
"""

import json
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnbook_course.live import models

UNITS = 255  # a weight of 1; rounding to whole units changes a weight by 1/510 at most
KIND, ENDING = "attention weights", ".weights"


@dataclass(frozen=True)
class Sentence:
    """The attention weights of all heads of a causal model on one sentence.

    Args:
        title: what the sentence is called.
        tokens: the text of each of n tokens, blanks included.
        weights: of shape (layers, heads, n, n), queries down and keys across. Each row sums to 1,
            and no token attends to a later one.

    Raises:
        ValueError: one token or none, weights that are none or do not fit the tokens.
    """

    title: str
    tokens: Sequence[str]
    weights: Any

    def __post_init__(self) -> None:
        if not isinstance(self.tokens, Sized):
            raise TypeError(f"tokens: got {self.tokens!r}, expected a list of tokens")
        n, array = len(self.tokens), np.asarray(self.weights, dtype=float)
        if n < 2:
            raise ValueError(f"tokens: got {n}, expected two or more")
        if array.ndim != 4 or array.shape[2:] != (n, n) or 0 in array.shape:
            raise ValueError(
                f"weights: got shape {array.shape}, expected (layers, heads, {n}, {n}), a row and "
                "a column for each token"
            )
        one = np.abs(array.sum(axis=-1) - 1) <= 0.01 + n / (2 * UNITS)  # half precision, or rounded
        if not (np.all(array >= 0) and np.all(one)):
            raise ValueError("weights: got rows that do not sum to 1, expected numbers from 0 to 1")
        if np.any(np.triu(array, 1)):
            raise ValueError("weights: got one on a later token, expected those of a causal model")

    @property
    def shape(self) -> tuple[int, int]:
        """How many layers there are, and heads in each."""
        layers, heads = np.shape(self.weights)[:2]
        return int(layers), int(heads)

    def units(self) -> np.ndarray:
        """The weights in whole units of 1/255, head after head and row after row, as uint8."""
        rows, columns = np.tril_indices(len(self.tokens))
        kept = np.asarray(self.weights, dtype=float)[:, :, rows, columns]
        return np.rint(UNITS * kept).astype(np.uint8).ravel()


@dataclass(frozen=True)
class StoredWeights:
    """What a file holds.

    Args:
        model: that the weights are of, in words.
        sentences: with weights in multiples of 1/255.
    """

    model: str
    sentences: Sequence[Sentence]


def pack(model: str, sentences: Sequence[Sentence]) -> bytes:
    """Sentences as the bytes of a file, their weights rounded to multiples of 1/255.

    Args:
        model: that they are of, in words.
        sentences: of the same model.

    Raises:
        ValueError: no sentence, or numbers of layers and heads that differ.
    """
    shapes = sorted({sentence.shape for sentence in sentences})
    if len(shapes) != 1:
        raise ValueError(f"sentences: got layers and heads {shapes}, expected the same for all")
    ((layers, heads),) = shapes
    about = {
        "kind": KIND,
        "model": model,
        "layers": layers,
        "heads": heads,
        "sentences": [{"title": one.title, "tokens": list(one.tokens)} for one in sentences],
    }
    text = json.dumps(about, separators=(",", ":")).encode()
    numbers = b"".join(sentence.units().tobytes() for sentence in sentences)
    return len(text).to_bytes(8, "little") + text + numbers


def unpack(data: bytes) -> StoredWeights:
    """What a file's bytes hold.

    Args:
        data: what pack has given.

    Raises:
        ValueError: something else, or a part of it.
    """
    length = int.from_bytes(data[:8], "little")
    try:
        about = json.loads(data[8 : 8 + length])
        layers, heads = about["layers"], about["heads"]
        counts = [len(one["tokens"]) for one in about["sentences"]]
        whole = about["kind"] == KIND
    except (ValueError, KeyError, TypeError):
        whole, layers, heads, counts = False, 0, 0, []
    kept = [n * (n + 1) // 2 for n in counts]
    if not whole or len(data) != 8 + length + layers * heads * sum(kept):
        raise ValueError(f"data: got {len(data)} bytes that are no stored weights, or not all")
    sentences, at = [], 8 + length
    for one, n, size in zip(about["sentences"], counts, kept, strict=True):
        units = np.frombuffer(data, np.uint8, layers * heads * size, at)
        weights = np.zeros((layers, heads, n, n), dtype=np.float32)
        rows, columns = np.tril_indices(n)
        weights[:, :, rows, columns] = units.reshape(layers, heads, size) / np.float32(UNITS)
        sentences.append(Sentence(one["title"], one["tokens"], weights))
        at += layers * heads * size
    return StoredWeights(about["model"], sentences)


def store(name: str, model: str, sentences: Sequence[Sentence]) -> Path:
    """Write a file into the package, from where the website takes it.

    Args:
        name: of the file, without its ending: small letters, digits and hyphens.
        model: as in pack.
        sentences: as in pack.

    Returns:
        The file.

    Raises:
        ValueError: another name, and as in pack.
    """
    file, data = models.file_of(name, ENDING), pack(model, sentences)
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)
    return file


def load(name: str) -> StoredWeights:
    """Stored weights by the name of their file.

    Raises:
        ValueError: a name under which nothing is stored.
    """
    return unpack(models.read(name, ENDING))
