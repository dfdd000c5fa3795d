"""Answers to chapter 1's exercises, right and wrong."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import torch
from mending import mended, softmax

from attnbook import leave_one_out, nadaraya_watson
from attnbook_course.checks import ch01


def tensors_in_lists(u):
    """Each number a tensor with a gradient."""
    top = torch.tensor(0.75, requires_grad=True)
    return [tensors_in_lists(x) if x.ndim else top * torch.relu(1 - x**2) for x in u]


def weights_in_place(d, h):
    d /= h
    d *= d
    d -= d.min()
    np.exp(-d / 2, out=d)
    return d / d.sum()


def predicting_by(axis=1, largest=1, two=2, power=2, least=0.0, summed=True, root=1, shares=True):
    """The build in lines of its own, and its neighbours: where it sums, what it subtracts."""

    def answer(q, k, v, h):
        squares = (q[:, None] - k) ** 2
        s = -((squares.sum(-1) if summed else squares) ** root) / (two * h**power)
        e = np.exp(s - (0 if largest is None else s.max(largest or None, keepdims=True)))
        return e / (e.sum(axis, keepdims=True) + least if shares else 1) @ v

    return answer


def predicted_in_place(q, k, v, h):
    q /= h
    return predicted_by_loop(q, k / h, v, 1)


def predicted_by_loop(queries, keys, values, h):
    rows = []
    for q in queries:
        squares = [sum((a - b) ** 2 for a, b in zip(q, k, strict=True)) for k in keys]
        w = [math.exp((min(squares) - one) / (2 * h * h)) for one in squares]
        rows.append(sum(a * v for a, v in zip(w, values, strict=True)) / sum(w))
    return rows


def predicted_by_torch(queries, keys, values, h):
    return torch.softmax(-(torch.cdist(queries, keys) ** 2) / (2 * h**2), 1) @ values


def predicted_by_jax(queries, keys, values, h):
    squares = jax.vmap(lambda q: jnp.sum((q - keys) ** 2, axis=-1))(queries)
    return jax.nn.softmax(-squares / (2 * h**2), axis=1) @ values


def for_one_input(q, k, v, h):
    return softmax(-((q - k.T) ** 2) / (2 * h**2)) @ v


def slope(q, k, v, h, step=1e-5):
    """The derivative by h, as a difference."""
    above, below = (softmax(-((q - k) ** 2) / (2 * (h + s) ** 2)) @ v for s in (step, -step))
    return (above - below) / (2 * step)


def two_bandwidths(keys, values, error=leave_one_out, grid=(0.08, 0.15, 0.27, 0.5, 3.0, 30.0)):
    """By a search, with another error or on another grid."""
    pairs = [[first, second] for first in grid for second in grid]
    errors = [np.mean((values - error(keys, values, bandwidth=pair)) ** 2) for pair in pairs]
    return pairs[int(np.nanargmin(errors))]


def of_all(keys, values, bandwidth):
    """The error on the training points themselves."""
    return nadaraya_watson(keys, keys, values, bandwidth=bandwidth)


def predicting(old, new):
    """The code of the exercise with one change."""
    return mended(ch01.PREDICT, "predict", (old, new))


RIGHT = {
    "nadaraya_watson": [predicted_by_loop, predicted_by_torch, predicted_by_jax],
    "epanechnikov": [tensors_in_lists],
    "gaussian_weights": [weights_in_place],
}

WRONG = {
    "nadaraya_watson": [
        (predicting_by(axis=0), "You normalise over the queries"),
        (predicting_by(summed=False), "the squares of all coordinates belong in one sum"),
        (for_one_input, "the squares of all coordinates belong in one sum"),
        (predicting_by(largest=None, shares=False), "These weights are no shares"),
        (predicting_by(two=-2), "The minus is missing"),
        (predicting_by(root=0.5, two=1, power=1), "The distance is not squared"),
        (predicting_by(power=-2), "/ 2 * h**2 needs parentheses"),
        (predicting_by(two=4), "only h is squared"),
        (lambda *a: (predicting_by()(*a), np.ones((4, 7))), "returns several arrays"),
        (predicted_in_place, "writes into its caller's q:"),
        (predicting_by(power=1), "bandwidth is not squared"),
        (predicting_by(two=1), "The 2 of 2h²"),
        (predicting_by(largest=0), "yours is one for all queries"),
        (predicting_by(largest=None), "0/0 is left: subtract"),
        (predicting_by(largest=None, least=1e-9), "hides 0/0"),
    ],
    "epanechnikov": [(lambda u: np.maximum(0, 1 - u), "triangular")],
    "effective_neighbours": [(lambda w: (w > 0).sum(1), "counts every weight")],
    "gaussian_weights": [(lambda d, h: torch.softmax(-(d**2), dim=3), "Dimension out of range")],
    "bandwidth_gradient": [(lambda *a: -slope(*a), "sign")],
    "two_bandwidths": [
        (lambda k, v: [0.3, 0.3], "One bandwidth for both"),
        (lambda k, v: two_bandwidths(k, v, of_all, (0.02, 0.1, 3.0)), "leave the point itself out"),
        (lambda k, v: [0.15, 30], "is right if the first input matters"),
        (lambda k, v: [30, 0.15], "is right if the second input matters"),
        (lambda k, v: two_bandwidths(k, v, grid=(0.08, 0.15, 0.4)), "grid wide enough"),
        (lambda k, v: [[0.15, 30]], "0.15, 30, of shape (1, 2); expected two numbers above 0"),
        (lambda k, v: two_bandwidths(k, v)[::-1], "swapped"),
        (lambda k, v: [0.3, -1.0], "two numbers above 0"),
    ],
    "half_distance": [(lambda h: h * 0.5**0.5, "Epanechnikov's kernel")],
    "mended_prediction": [
        (predicting("= -squares", "= (squares.min(1, keepdims=True) - squares)"), "still stands")
    ],
}
