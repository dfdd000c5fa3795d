"""Sentences about persons, in which "his" and "her" tell who came first."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Int

from attnbook._validation import nonnegative_int, positive_int

Array = np.ndarray

HIS = ("king", "boy", "uncle", "monk")
HER = ("queen", "girl", "aunt", "nun")
KINDS = {
    "person": HIS + HER,
    "thing": ("castle", "garden", "river"),
    "adjective": ("old", "young", "little", "lovely"),
    "met": ("saw", "left", "loved", "painted"),
    "lost": ("lost", "found", "sold", "hid"),
    "owned": ("crown", "hat", "coat", "horse", "ring"),
}
VOCABULARY = ("the", "and", "his", "her", ".", *(w for words in KINDS.values() for w in words))
LENGTH = 12  # with the full stop
THINGS = 0.25  # share of sentences in which the subject meets no second person


@dataclass(frozen=True)
class Whose:
    """Sentences of 12 words, as rows of token numbers.

    Args:
        tokens: of shape (n, 12).
        subject: where in its row the first person stands, whom the pronoun means.
        other: where the second person stands, or the thing that comes in its stead.
        pronoun: where "his" or "her" stands.
        differ: whether the two are persons, one of whom would be "his" and one "her".
        vocabulary: the word of every token number.
    """

    tokens: Int[Array, "n words"]
    subject: Int[Array, " n"]
    other: Int[Array, " n"]
    pronoun: Int[Array, " n"]
    differ: Bool[Array, " n"]
    vocabulary: tuple[str, ...] = field(default=VOCABULARY, repr=False)

    def read(self, row: int) -> str:
        """The words of a row."""
        return " ".join(self.vocabulary[token] for token in self.tokens[row])


def whose_crown(n: int, seed: int = 0) -> Whose:
    """Draw sentences such as "the queen saw the old king and lost her lovely crown .".

    The pronoun means the first person. A quarter of the sentences has a thing for the second, and
    half of the others a second person of the other sex. Two adjectives stand before any of the three
    nouns, both before the same one in a third of the sentences... All sentences of the same kind are equally likely, so
    that exchanging the two persons gives a sentence that is as likely, with the other pronoun.
    """
    positive_int(n=n)
    rng = np.random.default_rng(nonnegative_int(seed=seed))
    number_of = {word: number for number, word in enumerate(VOCABULARY)}
    drawn = {
        kind: np.array([number_of[word] for word in words])[rng.integers(len(words), size=(n, 2))]
        for kind, words in KINDS.items()
    }
    placed = np.sort(rng.integers(3, size=(n, 2)), axis=1)
    rows, at = [], []
    ...
