"""A fact behind chapter 3's checks."""

from __future__ import annotations

import numpy as np


def test_how_low_the_other_scores_of_the_counting_exercise_must_be():
    def error(s):
        n, c = np.mgrid[:61, :61]
        return np.max(np.abs(c - c / (1 + (n - c) * np.exp(s))), where=c <= n, initial=0)

    assert error(-7.5) < 0.5 < error(-7.4)
    assert round(30 / (1 + 30 * np.exp(-1)), 1) == 2.5
