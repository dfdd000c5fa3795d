"""The sentences about persons: read as words, and as likely with the persons exchanged."""

import numpy as np

from attnbook import datasets

OWNED = {"king queen": "crown", "monk nun": "book", "boy girl": "kite", "uncle aunt": "hat"}
OWNER = {
    person: (pronoun, thing)
    for pair, thing in OWNED.items()
    for person, pronoun in zip(pair.split(), ("his", "her"), strict=True)
}


def test_the_pronoun_means_the_first_person() -> None:
    drawn = datasets.his_or_her(500, seed=3)
    for row in range(500):
        words = drawn.read(row).split()
        who, what = words[drawn.first[row]], words[drawn.second[row]]
        persons = [at for at, word in enumerate(words) if word in OWNER]
        assert len(words) == 12 and words[-1] == "." and words.count("the") == 2
        assert persons == [drawn.first[row], drawn.second[row]][: len(persons)]
        at = drawn.pronoun[row]
        assert (words[at], words[at + 1]) == OWNER[who]
        assert drawn.undecided[row] == (what in OWNER and OWNER[what][0] != OWNER[who][0])


def test_persons_exchanged_are_as_likely() -> None:
    """In words and in where they stand: four standard errors of counts of n draws."""
    n = 8000
    drawn = datasets.his_or_her(n, seed=4)
    rows = np.flatnonzero(drawn.undecided)
    assert abs(len(rows) - 3 * n / 8) < 4 * np.sqrt(n * 3 / 8 * 5 / 8)
    his = drawn.tokens[rows, drawn.pronoun[rows]] == drawn.vocabulary.index("his")
    for chosen in (rows >= 0, *(drawn.first[rows] == at for at in (1, 2, 3))):
        assert abs(his[chosen].sum() - chosen.sum() / 2) < 2 * np.sqrt(chosen.sum())
