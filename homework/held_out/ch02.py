"""Checks of chapter 2's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import check, expect


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 2])
    return {"k": int(rng.integers(2, 15))}


def checks(seed):
    """The check of each exercise, by its label."""
    k = numbers(seed)["k"]

    @check
    def noise_level(function):
        rng = np.random.default_rng([seed, 21])
        poor = np.arange(12) % 3 == 1
        factor = np.where(poor, k, 1)
        r = 0.4 + rng.normal(size=12) * factor
        scaled = r / factor

        def root(squares):
            return np.sqrt(np.mean(squares))

        where = "for twelve residuals, four of them poor,"
        mistakes = [
            (np.mean(scaled**2), "That is the square of the noise level: take the root.", 0.5),
            (root(r**2), "That takes all values alike: bring poor ones to the scale of the good."),
            (root(r**2 / factor), "Divide, then square: the square has the factor squared.", 0.5),
            (np.sqrt(np.sum(scaled**2) / 11), "The loss has a mean over n, not over n − 1.", 0.5),
        ]
        expect(call(function, r, poor), root(scaled**2), where, mistakes, secret=True)
        return "on one scale, all residuals count alike."

    return {"ho-noise-groups": noise_level}
