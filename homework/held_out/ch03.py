"""Checks of chapter 3's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import check, expect


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 3])
    return {"k": int(rng.integers(5, 13)), "p": int(rng.integers(2, 6))}


def checks(seed):
    """The check of each exercise, by its label."""
    n = numbers(seed)
    k, p = n["k"], n["p"]

    @check
    def lead_of_small_slope(function):
        w = (1 + np.sqrt(1 - 1 / k)) / 2
        right = np.log(w / (1 - w))
        quarter = (1 + np.sqrt(1 - 4 / k)) / 2
        mistakes = [
            (w, "That is the weight: which lead gives it?", 0.5),
            (w / (1 - w), "That is the ratio of the weights: the lead is its logarithm."),
            (np.log(quarter / (1 - quarter)), "The largest slope is 1/4, not 1."),
            (np.log(4 * k), "That takes the slope for e^(−Δ), which holds for large leads only."),
        ]
        expect(call(function), right, "As an answer", mistakes, tolerance=1e-4, secret=True)
        return "far ahead, a softmax hardly learns."

    @check
    def prefix_mask(function):
        for size in (p + 5, p - 1):
            i, j = np.arange(size)[:, None], np.arange(size)[None, :]
            right = (j <= i) | (j < p)
            mistakes = [
                (j <= i, "That is the causal mask: the question sees its own later tokens too."),
                (right.T, "It is transposed: queries are rows.", 0.6),
                ((j <= i) | (i < p), "The question sees the answer: only its tokens are known."),
                ((j <= i) | (j <= p), "One token too many belongs to your question.", 0.6),
                (~right, "The mask is turned over: true is where a query may see.", 0.6),
            ]
            expect(call(function, size), right, f"for {size} tokens", mistakes)
        return "reading goes both ways, writing does not."

    return {"ho-slope-of-lead": lead_of_small_slope, "ho-prefix-mask": prefix_mask}
