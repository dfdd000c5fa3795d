"""Checks of chapter 11's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import check, expect


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 11])
    return {
        "h": int(rng.integers(5, 13)),
        "m": int(rng.integers(2, 5)),
        "d": int(rng.choice([10, 14, 18, 20, 26, 30])),
        "k": int(rng.integers(3, 15)),
    }


def checks(seed):
    """The check of each exercise, by its label."""
    c = numbers(seed)
    m, d, k = c["m"], c["d"], c["k"]

    @check
    def equal_tokens(function):
        width = 22
        right = m * (width + 1) / 2
        mistakes = [
            (m * width / 2, "The denominator needs a sum too: one number per feature.", 0.5),
            (right / m, "There are more features than a head is wide."),
            (2 * right, "The cache keeps two rows per token: a key and a value.", 0.5),
            (m * (m * width + 1) / 2, "Values are as wide as a head: features stand in the rows."),
        ]
        expect(call(function, width), right, f"for heads of width {width}", mistakes, secret=True)
        return "a short text has the smaller cache, a long one the smaller state."

    @check
    def pairs_until(function):
        beta = 0.6
        left, own = np.log(k), -np.log(1 - beta / d)
        mistakes = [
            (-left / own, "The sign is turned: both logarithms are below 0, or above.", 0.5),
            (left * d / beta, "That is for very wide states: keep the logarithm of 1 − β/d.", 0.5),
            (left / -np.log(1 - beta), "That is one key again and again: here they are new."),
            (left / -np.log(1 - beta * (2 - beta) / d), "The mean is asked for, not a square."),
            (own / left, "Turned over: how often does the factor make 1/k?", 0.5),
        ]
        expect(call(function, beta), left / own, f"for β = {beta}", mistakes, secret=True)
        return "a wide state forgets slowly, even at β = 1."

    return {"ho-state-crossing": equal_tokens, "ho-kept-answer": pairs_until}
