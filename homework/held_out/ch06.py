"""Checks of chapter 6's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import check, expect


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 6])
    return {"h": int(rng.integers(3, 15))}


def checks(seed):
    """The check of each exercise, by its label."""
    h = numbers(seed)["h"]

    @check
    def reordered_output(function):
        rng = np.random.default_rng([seed, 61])
        weight, order = rng.normal(size=(2 * h, 2 * h)), np.roll(np.arange(h), 1)
        shape = weight.shape
        columns, rows = weight.reshape(2 * h, h, 2), weight.reshape(h, 2, 2 * h)
        back, where = np.argsort(order), f"for {h} heads of width 2 and order {order}"
        right = columns[:, order].reshape(shape)
        strided = weight.reshape(2 * h, 2, h)[:, :, order].reshape(shape)
        mistakes = [
            (
                columns[:, back].reshape(shape),
                "That is the way back: position r gets order[r].",
                0.5,
            ),
            (rows[order].reshape(shape), "You move rows, which are outputs: heads are columns."),
            (weight, "Nothing has moved."),
            (strided, "A head's columns stand side by side: cut them as (heads, width)."),
        ]
        expect(call(function, weight, order), right, where, mistakes)
        return "heads have no order of their own."

    return {"ho-reorder-heads": reordered_output}
