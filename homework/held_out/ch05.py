"""Checks of chapter 5's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import check, expect, one_number


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 5])
    return {"d": int(8 * rng.integers(4, 17))}


def checks(seed):
    """The check of each exercise, by its label."""
    d = numbers(seed)["d"]

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
        return "slow pairs tell positions apart over a whole text."

    return {"ho-slow-pairs": slow_pairs}
