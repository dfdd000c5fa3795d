"""The running sentence: six words, four of them different, small enough to check by hand."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

Array = np.ndarray

VOCABULARY = ("to", "be", "or", "not")
TOKENS = (0, 1, 2, 3, 0, 1)
EMBEDDING = (
    (1.0, 0.0, 0.5, 0.0),
    (0.0, 1.0, 0.0, 0.5),
    (0.5, 0.5, -1.0, 0.0),
    (-1.0, 0.0, 0.0, 1.0),
)


@dataclass(frozen=True)
class SixWords:
    """A sentence as words, as token numbers, and as one row per word."""

    words: tuple[str, ...]
    tokens: Int[Array, "6"]
    embedding: Float[Array, "4 4"] = field(repr=False)  # a row for each word of the vocabulary
    vocabulary: tuple[str, ...] = VOCABULARY

    @property
    def x(self) -> Float[Array, "6 4"]:
        """The embedding of each word of the sentence."""
        return self.embedding[self.tokens]


def six_words() -> SixWords:
    """The sentence "to be or not to be", with four round numbers for each word.

    Returns:
        words, six strings; tokens, six numbers below 4; embedding, float64, of shape (4, 4), a row
        for each word of the vocabulary; x, float64, of shape (6, 4), the embedded sentence. "to"
        and "be" come twice, and so do their rows.
    """
    words = tuple(VOCABULARY[token] for token in TOKENS)
    return SixWords(words, np.asarray(TOKENS), np.asarray(EMBEDDING))
