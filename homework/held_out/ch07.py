"""Checks of chapter 7's held-out exercises: they run with the lecturer, never with a student."""

import numpy as np

from attnbook_course.checks.call import call
from attnbook_course.checks.verdict import check, expect


def numbers(seed):
    """The numbers of a class, from its seed."""
    rng = np.random.default_rng([seed, 7])
    return {"h": int(rng.integers(3, 15))}


def checks(seed):
    """The check of each exercise, by its label."""
    h = numbers(seed)["h"]

    @check
    def head_norm(function):
        rng = np.random.default_rng([seed, 71])
        x = rng.normal(size=(4, 3 * h)) * np.exp(rng.normal(size=(4, 1))) + 0.5
        heads = x.reshape(4, h, 3)

        def over(part, axis):
            return part / np.sqrt((part**2).mean(axis=axis, keepdims=True) + 1e-5)

        def merged(part):
            return part.reshape(4, 3 * h)

        centred = heads - heads.mean(axis=-1, keepdims=True)
        square = (heads**2).mean(axis=-1, keepdims=True)
        no_epsilon = "The ε under the root is missing: it holds small queries down."
        where = f"for 4 tokens, {h} heads of width 3"
        mistakes = [
            (over(x, -1), "The mean runs over the whole row: each head has its own."),
            (merged(over(heads, 1)), "The mean runs over the heads: each head has its own."),
            (merged(heads / np.sqrt(square)), no_epsilon, 0.6),
            (merged(over(centred, -1)), "That is a layer norm: an RMS norm subtracts nothing."),
        ]
        expect(call(function, x), merged(over(heads, -1)), where, mistakes)
        small = np.full((1, 3 * h), 1e-3)
        where = "for entries of 0.001"
        mistakes = [
            (np.ones((1, 3 * h)), no_epsilon, 0.6),
            (small / (1e-3 + 1e-5), "The ε stands under the root, beside the mean square."),
        ]
        expect(call(function, small), merged_small(small, h), where, mistakes, earned=0.6)
        return "no head can make its scores large by long queries."

    return {"ho-head-norm": head_norm}


def merged_small(x, h):
    """The right answer for rows of equal entries."""
    heads = x.reshape(len(x), h, -1)
    return (heads / np.sqrt((heads**2).mean(axis=-1, keepdims=True) + 1e-5)).reshape(x.shape)
