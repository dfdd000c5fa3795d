"""Checks of chapter 6's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import check, expect


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 6])
    a, b, c = (int(one) for one in rng.choice(np.arange(1, 7), size=3, replace=False))
    return {"h": int(rng.integers(3, 6)), "a": a, "b": b, "c": c, "n": a + b + c}


def checks(seed):
    """The check of each exercise, by its label."""
    n = numbers(seed)
    h = n["h"]

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
            (columns[:, back].reshape(shape), "That is the way back: place r gets order[r].", 0.5),
            (rows[order].reshape(shape), "You move rows, which are outputs: heads are columns."),
            (weight, "Nothing has moved."),
            (strided, "A head's columns stand side by side: cut them as (heads, width)."),
        ]
        expect(call(function, weight, order), right, where, mistakes)
        return "heads have no order of their own."

    @check
    def share_of_three_lost(function):
        s = np.asarray([n["a"], n["b"], n["c"]]) / n["n"]
        w = np.asarray([0.6, 0.3, 0.1])
        squares = np.sum(w**2)
        right = 1 - s @ w**2 / squares
        mistakes = [
            (1 - right, "That is the share that is kept.", 0.5),
            (1 - s @ w**2, "Divide by the variance of the mixture, the sum of squared weights."),
            (1 - s @ w, "The explained share has squares: the variance of w a is w²."),
            (1 - s @ w / np.sqrt(squares), "That is a correlation: the share is its square."),
            (1 - s @ (w**2)[::-1] / squares, "The words are in the opposite order.", 0.5),
        ]
        expect(call(function, w), right, "for the weights 0.6, 0.3 and 0.1", mistakes, secret=True)
        return "one average is one answer, so the other words are lost."

    return {"ho-reorder-heads": reordered_output, "ho-lost-share": share_of_three_lost}
