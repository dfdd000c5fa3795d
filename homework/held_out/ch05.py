"""Checks of chapter 5's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import check, expect, one_number


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 5])
    return {"q": int(2 ** rng.integers(2, 6)), "d": int(rng.choice([32, 48, 64, 80, 96, 128]))}


def checks(seed):
    """The check of each exercise, by its label."""
    n = numbers(seed)
    q, d = n["q"], n["d"]

    @check
    def share_of_the_nearest(function):
        t = 6
        right = 1 - np.exp(-t / q)
        mistakes = [
            (1 - right, "That is the share of all the others.", 0.5),
            (1 - np.exp(-(t - 1) / q), "The query's own place counts: the six are at 0 to 5.", 0.5),
            (1 - 2 ** (-t / q), "The softmax has e, not 2.", 0.5),
            (1 - (1 - 1 / q) ** t, "A weight falls by the factor e^(−m), not by 1 − m."),
            (right / (1 - np.exp(-1 / q)), "That is a sum of parts: divide it by that of the row."),
        ]
        expect(call(function, t), right, "for 6 places", mistakes, secret=True, tolerance=1e-6)
        return "the slope says how far a head looks."

    @check
    def slow_pairs(function):
        lengths = (40, 700, 9000)
        i = np.arange(d // 2)
        theta = 10000.0 ** (-2 * i / d)

        def count(turned):
            return np.asarray([np.sum(turned(size) < 2 * np.pi) for size in lengths])

        where = f"for n = {', '.join(map(str, lengths))}"
        got = np.stack([one_number(call(function, size), f"for n = {size}") for size in lengths])
        right = count(lambda size: size * theta)
        mistakes = [
            (d // 2 - right, "Those are the pairs that have turned all the way round.", 0.5),
            (2 * right, "A pair has two columns: count pairs.", 0.5),
            (count(lambda size: 2 * np.pi * size * theta), "θ is an angle: a full turn is 2π."),
            (count(lambda size: size * 10000.0 ** (-i / d)), "The exponent is −2i/d."),
            (count(lambda size: 2 * size * theta), "A full turn is 2π, not π.", 0.5),
        ]
        expect(got, right, where, mistakes, secret=True)
        return "slow pairs tell places apart over a whole text."

    return {"ho-alibi-share": share_of_the_nearest, "ho-slow-pairs": slow_pairs}
