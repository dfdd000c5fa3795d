"""Attention weights of a large model on a few sentences, stored for chapter 10.

A file is the length of a JSON header in 8 bytes, the header with model and sentences, then the
weights, one byte each. Of a causal head only the rows' parts up to the diagonal are kept:
n (n + 1) / 2 bytes.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnbook_course.live import models

UNITS = 255  # a weight of 1; rounding to whole units changes a weight by 1/510 at most
ENDING = ".weights"


@dataclass(frozen=True)
class Sentence:
    """The attention weights of all heads of a causal model on one sentence.

    Args:
        title: what the sentence is called.
        tokens: the text of each of n tokens, blanks included.
        weights: of shape (layers, heads, n, n), queries down and keys across. Each row sums to 1,
            and no token attends to a later one.

    Raises:
        ValueError: weights that do not fit the tokens, or that are none of a causal model.
    """

    title: str
    tokens: Sequence[str]
    weights: Any

    def __post_init__(self) -> None:
        n, array = len(self.tokens), np.asarray(self.weights, dtype=float)
        if array.ndim != 4 or array.shape[2:] != (n, n):
            raise ValueError(
                f"weights: got shape {array.shape}, expected (layers, heads, {n}, {n})"
            )
        one = np.abs(array.sum(axis=-1) - 1) <= 0.01 + n / (2 * UNITS)  # half precision, or rounded
        if not (np.all(array >= 0) and np.all(one)) or np.any(np.triu(array, 1)):
            raise ValueError("weights: got others, expected rows of a causal model that sum to 1")

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
    """What a file holds: the model's name in words, and sentences of weights in 1/255."""

    model: str
    sentences: Sequence[Sentence]


def store(name: str, model: str, sentences: Sequence[Sentence]) -> Path:
    """Write a file into the package, its weights rounded to multiples of 1/255.

    Args:
        name: of the file, without its ending.
        model: that the sentences are of, in words.
        sentences: all of the same numbers of layers and heads.
    """
    ((layers, heads),) = {sentence.shape for sentence in sentences}
    told = [{"title": one.title, "tokens": list(one.tokens)} for one in sentences]
    about = {"model": model, "layers": layers, "heads": heads, "sentences": told}
    text = json.dumps(about, separators=(",", ":")).encode()
    numbers = b"".join(sentence.units().tobytes() for sentence in sentences)
    file = models.file_of(name, ENDING)
    file.write_bytes(len(text).to_bytes(8, "little") + text + numbers)
    return file


def load(name: str) -> StoredWeights:
    """Stored weights by the name of their file.

    Raises:
        ValueError: a name under which nothing is stored.
    """
    data = models.read(name, ENDING)
    at = 8 + int.from_bytes(data[:8], "little")
    about = json.loads(data[8:at])
    layers, heads, sentences = about["layers"], about["heads"], []
    for one in about["sentences"]:
        n = len(one["tokens"])
        rows, columns = np.tril_indices(n)
        units = np.frombuffer(data, np.uint8, layers * heads * len(rows), at)
        weights = np.zeros((layers, heads, n, n), dtype=np.float32)
        weights[:, :, rows, columns] = units.reshape(layers, heads, -1) / np.float32(UNITS)
        sentences.append(Sentence(one["title"], one["tokens"], weights))
        at += units.size
    return StoredWeights(about["model"], sentences)
