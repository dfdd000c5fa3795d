"""Checks of chapter 9's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import check, expect


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 9])
    return {"k": int(rng.integers(4, 15))}


def checks(seed):
    """The check of each exercise, by its label."""
    k = numbers(seed)["k"]

    @check
    def repeats_needed(function):
        s = 0.7
        right = (k - 1) * s**2
        mistakes = [
            (k * s**2, "That is the mean of the values alone: the variance of 1 counts too."),
            ((k - 1) * s, "The noise enters by its variance, σ².", 0.5),
            (s**2 / (k - 1), "Turned over: a smaller share takes more values."),
            ((k - 1) ** 0.5 * s, "That is the root of the number.", 0.5),
        ]
        expect(call(function, s), right, "for σ = 0.7", mistakes, secret=True)
        return "with little noise even one value says nearly all."

    return {"ho-repeats": repeats_needed}
