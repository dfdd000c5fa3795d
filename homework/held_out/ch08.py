"""Checks of chapter 8's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import check, expect


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 8])
    return {
        "t": float(rng.choice([0.5, 0.6, 0.7, 1.5, 1.6, 1.8, 2.0])),
        "r": float(rng.choice([0.05, 0.1, 0.15, 0.2, 0.25, 0.3])),
    }


def checks(seed):
    """The check of each exercise, by its label."""
    n = numbers(seed)
    t, r = n["t"], n["r"]

    @check
    def cut_by_the_best(function):
        one = -np.log(r)  # how far below the best a token may be, once the temperature has acted
        below = np.asarray([1.3 * t, 0.0, 0.9 * t, 0.4 * t, 1.1 * t, 0.9, 1.1, 0.2 * t]) * one
        logits = 2.5 - below

        def normal(parts):
            return parts / parts.sum()

        def cut(of, at):
            return np.where(at >= r * at.max(), of, 0)

        plain, warm = normal(np.exp(logits)), normal(np.exp(logits / t))
        cold, where = np.exp(logits * t), "for eight logits"
        mistakes = [
            (cut(warm, warm), "The kept probabilities must sum to 1.", 0.6),
            (warm, "Nothing is cut."),
            (normal(cut(warm, plain)), "The temperature comes first, then the cut.", 0.4),
            (normal(cut(plain, plain)), "The temperature has no effect.", 0.4),
            (normal(cut(normal(cold), cold)), "Divide the logits by the temperature."),
        ]
        expect(call(function, logits), normal(cut(warm, warm)), where, mistakes, secret=True)
        return "a sure model cuts much, an unsure one little."

    return {"ho-min-p": cut_by_the_best}
