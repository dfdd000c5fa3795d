"""Checks of chapter 9's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import check, expect


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 9])
    return {"k": int(rng.integers(4, 15)), "d": int(rng.choice([8, 12, 24, 32, 48, 64]))}


def checks(seed):
    """The check of each exercise, by its label."""
    n = numbers(seed)
    k, d = n["k"], n["d"]

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

    @check
    def bandwidth_behind(function):
        a = 30.0
        right = np.sqrt(np.sqrt(d) / a)
        mistakes = [
            (1 / np.sqrt(a), "The division by √d is missing: the softmax sees a smaller score."),
            (right**2, "That is the square of the bandwidth: take the root.", 0.5),
            (np.sqrt(d / a), "The scores are divided by the root of d, not by d.", 0.5),
            (1 / np.sqrt(a * np.sqrt(d)), "You multiply the scores by √d: they are divided."),
            (np.sqrt(a / np.sqrt(d)), "That is one over the bandwidth.", 0.5),
        ]
        expect(call(function, a), right, "for a = 30", mistakes, secret=True)
        return "what a head divides by is a part of its bandwidth."

    return {"ho-repeats": repeats_needed, "ho-divided-form": bandwidth_behind}
