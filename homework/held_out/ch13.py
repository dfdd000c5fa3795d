"""Checks of chapter 13's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import check, expect

# devices in a machine, and machines, for which no two wrong answers are the same number
MACHINES = ((4, 5), (4, 9), (4, 11), (5, 6), (5, 7), (5, 12), (6, 4), (6, 7), (6, 9), (7, 5),
            (7, 9), (7, 10), (9, 4), (9, 10), (10, 6), (10, 7), (12, 5), (12, 9))  # fmt: skip


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 13])
    g, k = rng.choice(MACHINES)
    return {"g": int(g), "k": int(k), "c": int(rng.integers(3, 10)) + 0.5}


def checks(seed):
    """The check of each exercise, by its label."""
    given = numbers(seed)
    g, k, c = (given[name] for name in "gkc")

    @check
    def between_machines(function):
        for size in (9e5, 1.1e4):
            right = 2 * size / g * (k - 1) / k
            inside = 2 * size * (g - 1) / g
            mistakes = [
                (g * right, "Inside the machine the array was cut: a device reduces one piece."),
                (right / 2, "That is half of an all-reduce: the sums must come back too.", 0.5),
                (inside, "That stays inside the machine."),
                (2 * size / g, "Its own part does not travel: W − 1 pieces of W are sent."),
            ]
            expect(call(function, size), right, f"for {size:.0f} bytes", mistakes, secret=True)
        return "the slow link carries one piece, and not the whole."

    @check
    def factors(function):
        for q, a in (([30, 11, 24], [4, 21, 9]), ([7, 40, 15, 26], [31, 2, 12, 18])):
            q, a = np.array(q), np.array(a)
            w, weights, tokens = len(q), q + c * a, q + a
            right = w * weights / weights.sum()
            where = f"for {w} workers"
            mistakes = [
                (right / w, "Those are shares: the all-reduce divides by the workers too.", 0.5),
                (weights, "Where is the sum over all workers?", 0.5),
                (w * tokens / tokens.sum(), "A token of an answer counts more."),
                (1 / right, "Turned over: who has more counts more."),
            ]
            got, factor = call(function, q, a), ("The proportions are right.", 0.5)
            expect(got, right, where, mistakes, secret=True, but_for_a_factor=factor)
        return "a mean of means is right once each counts by its weight."

    return {"ho-two-levels": between_machines, "ho-uneven-shares": factors}
