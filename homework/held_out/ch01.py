"""Checks of chapter 1's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import check, expect


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 1])
    return {
        "p": int(rng.integers(3, 7)),
        "d": int(rng.integers(2, 6)),
        "k": int(rng.integers(3, 8)),
    }


def checks(seed):
    """The check of each exercise, by its label."""
    n = numbers(seed)
    p, d, k = n["p"], n["d"], n["k"]

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

    @check
    def data_for_less_error(function):
        where = "As an answer"
        mistakes = [
            (k ** (5 / 4), "That is for one input.", 0.5),
            (k ** (-(4 + d) / 4), "That is one over the factor: n must grow.", 0.5),
            (k ** (4 / (4 + d)), "That is the power of n, not its inverse: solve for r."),
            (float(k), "That is the rate 1/n of a mean or a line."),
        ]
        expect(call(function), k ** ((4 + d) / 4), where, mistakes, tolerance=1e-3, secret=True)
        return "every input makes data dearer."

    return {"ho-power-kernel": power_kernel, "ho-many-inputs": data_for_less_error}
