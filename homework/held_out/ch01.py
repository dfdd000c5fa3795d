"""Checks of chapter 1's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import check, expect


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 1])
    return {"p": int(rng.integers(3, 17))}


def checks(seed):
    """The check of each exercise, by its label."""
    p = numbers(seed)["p"]

    @check
    def power_kernel(function):
        i = np.arange(1, p + 1)
        area = 2 * np.prod(2 * i / (2 * i + 1))
        u = np.random.default_rng([seed, 11]).uniform(0, 0.9, size=(3, 4))
        u[1, 1:3] = 1.2, 1.7
        base = np.maximum(0, 1 - u**2)
        but = ("The shape is right, but not the constant.", 0.5)
        got = call(function, u)
        where = "for twelve distances, two of them above 1,"
        mistakes = [
            (base**p, "The shape is right, but the area is not one.", 0.5),
            (2 * base**p / area, "That has area one from 0 to 1: a kernel has two sides.", 0.6),
            ((1 - u**2) ** p / area, "Beyond u = 1 it is 0.", 0.6),
            (0.75 * base, "That is Epanechnikov's kernel, p = 1."),
        ]
        expect(got, base**p / area, where, mistakes, secret=True, but_for_a_factor=but)
        return "area one, 0 beyond u = 1, and no corner there."

    return {"ho-power-kernel": power_kernel}
