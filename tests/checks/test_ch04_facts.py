"""Facts behind chapter 4's exercises."""

from __future__ import annotations

import re

import numpy as np
import pytest
from checks.ch04 import FIRST, SECOND, loop_crossings

from attnbook_course.checks import ch04


def test_what_the_beam_exercise_praises():
    message = ch04.greedy_fails(lambda: (FIRST, SECOND)).message
    assert "writes (0, 0), with probability 0.2, a beam of two finds 0.36" in message


def begins(text):
    """Where the words of a German or French numeral begin, as the last exercise finds it."""
    french = " " in text or "-" in text
    word = "[^ -]+" if french else "hundert|tausend|und|.+?(?=hundert|tausend|und|$)"
    return [m.start() for m in re.finditer(word, text) if m[0] not in ("und", "et")]


def test_the_words_that_the_crossings_exercise_finds():
    words = {
        "einundzwanzig": [0, 6],
        "dreihunderteinundzwanzig": [0, 4, 11, 17],
        "hunderttausend": [0, 7],
        "quatre-vingt-dix-huit": [0, 7, 13, 17],
        "soixante et onze": [0, 12],
    }
    for text, expected in words.items():
        assert begins(text) == expected


def test_how_many_german_numbers_cross():
    crosses = [n % 100 > 20 and n % 10 > 0 for n in range(1000)]
    below_a_million = 1 - (1 - sum(crosses) / 1000) ** 2
    assert below_a_million == pytest.approx(0.9216)
    ideal = np.eye(2)[[1] * 3 + [0] * 7]  # the letters of ein and zwanzig
    assert loop_crossings(ideal) == 21
    assert loop_crossings(ideal[[0, 3]]) == 1
