"""Checks of chapter 3's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import check, expect


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 3])
    return {"p": int(rng.integers(2, 15))}


def checks(seed):
    """The check of each exercise, by its label."""
    p = numbers(seed)["p"]

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

    return {"ho-prefix-mask": prefix_mask}
