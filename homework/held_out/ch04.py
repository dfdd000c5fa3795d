"""Checks of chapter 4's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import check, expect


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 4])
    return {"s": int(rng.integers(1, 14))}


def checks(seed):
    """The check of each exercise, by its label."""
    s = numbers(seed)["s"]

    @check
    def mean_state(function):
        rng = np.random.default_rng([seed, 41])
        states, lengths = rng.normal(size=(3, s + 6, 2)), np.asarray([s + 2, s + 4, s + 6])
        positions = np.arange(s + 6)

        def mean(first, beyond, divisor):
            counts = (positions >= first) & (positions < np.reshape(beyond, (-1, 1)))
            total = np.where(counts[:, :, None], states, 0).sum(axis=1)
            return total / np.reshape(divisor, (-1, 1))

        full = np.full(3, s + 6)
        by_n = mean(s, lengths, full)
        mistakes = [
            (mean(0, lengths, lengths), "The marks in front do not count."),
            (states.mean(axis=1), "That is the mean of all positions, marks and padding too."),
            (
                mean(s, lengths, lengths),
                "The sum is right; divide by how many positions count.",
                0.4,
            ),
            (by_n, "The sum is right; divide by the row's own number, not by n.", 0.4),
        ]
        right = mean(s, lengths, lengths - s)
        expect(call(function, states, lengths), right, "for three rows", mistakes)
        hidden = np.where(positions[None, :, None] >= lengths[:, None, None], np.nan, states)
        spoilt = np.where(lengths[:, None] < s + 6, np.nan, right)
        mistakes = [(spoilt, "Zero times NaN is NaN: leave the padding out of the sum.")]
        got, where = call(function, hidden, lengths), "with NaN in the padding"
        expect(got, right, where, mistakes, earned=0.6)
        return "each row is averaged over its own tokens."

    return {"ho-mean-state": mean_state}
