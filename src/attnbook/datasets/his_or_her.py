"""Sentences in which only the order of the words tells "his" from "her"."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Int

from attnbook._validation import nonnegative_int, positive_int

Array = np.ndarray

HIS, HER = ("king", "monk", "boy", "uncle"), ("queen", "nun", "girl", "aunt")
OWNED = ("crown", "book", "kite", "hat")  # by the two persons at the same place
THINGS = ("castle", "garden", "river")
ADJECTIVES = ("old", "little", "lovely", "dark")
ADVERBS = ("then", "soon", "later", "once")
MET = ("saw", "left", "loved", "painted")
LOST = ("lost", "found", "sold", "hid")
WORDS = ("the", "and", "his", "her", ".")
VOCABULARY = (*WORDS, *HIS, *HER, *OWNED, *THINGS, *ADJECTIVES, *ADVERBS, *MET, *LOST)
FILLED = [  # adjectives of the first and of the second, adverbs before the verb and at the end
    *((2, 0, 0, 0), (0, 2, 0, 0), (1, 1, 0, 0), (0, 0, 1, 1)),
    *((1, 0, 1, 0), (1, 0, 0, 1), (0, 1, 1, 0), (0, 1, 0, 1)),
]
WITH_A_THING = 0.25  # share of the sentences


@dataclass(frozen=True)
class Sentences:
    """Sentences of 12 tokens, the full stop among them.

    Args:
        tokens: of shape (n, 12).
        first: the position of the first person, whom the pronoun means.
        second: the position of whom, or what, the first person met.
        pronoun: the position of "his" or "her". What that person owns follows.
        undecided: true where the other pronoun would be right if the two persons changed places.
        vocabulary: the word of every token number.
    """

    tokens: Int[Array, "n 12"]
    first: Int[Array, " n"]
    second: Int[Array, " n"]
    pronoun: Int[Array, " n"]
    undecided: Bool[Array, " n"]
    vocabulary: tuple[str, ...] = field(default=VOCABULARY, repr=False)

    def read(self, row: int) -> str:
        """A sentence in words."""
        return " ".join(self.vocabulary[token] for token in self.tokens[row])


def his_or_her(n: int, *, seed: int = 0) -> Sentences:
    """Draw sentences such as "the old queen saw the king and soon lost her crown .".

    The pronoun means the first person, and each person owns one thing. Two adjectives or adverbs
    stand where they may, so that no person is always at the same position. The second person, or in
    a quarter of the sentences a thing, does not depend on the first. So a sentence in which the two
    have changed places is as likely, with the pronoun and the thing of who is now the first.

    Args:
        n: the number of sentences.
        seed: of NumPy's default generator.

    Raises:
        ValueError: a number below 1, a seed that is no integer of at least 0.
    """
    rng = np.random.default_rng(nonnegative_int(seed=seed))
    number_of = {word: number for number, word in enumerate(VOCABULARY)}
    rows, positions, undecided = [], [], []
    for _ in range(positive_int(n=n)):
        who, whom = rng.integers(8, size=2)
        of_first, of_second, early, late = FILLED[rng.integers(len(FILLED))]
        adjectives, adverbs = rng.permutation(ADJECTIVES), rng.permutation(ADVERBS)
        met, lost = (words[rng.integers(4)] for words in (MET, LOST))
        with_a_thing = rng.random() < WITH_A_THING
        second = THINGS[rng.integers(len(THINGS))] if with_a_thing else (HIS + HER)[whom]
        start = ["the", *adjectives[:of_first], (HIS + HER)[who]]
        middle = [met, "the", *adjectives[of_first:][:of_second], second]
        end = ["and", *adverbs[:early], lost, "his" if who < 4 else "her", OWNED[who % 4]]
        words = [*start, *middle, *end, *adverbs[early:][:late], "."]
        rows.append([number_of[word] for word in words])
        positions.append([of_first + 1, len(start + middle) - 1, len(start + middle + end) - 2])
        undecided.append(not with_a_thing and (who < 4) != (whom < 4))
    first, second, pronoun = np.array(positions).T
    return Sentences(np.array(rows), first, second, pronoun, np.array(undecided))
