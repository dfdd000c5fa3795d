"""Answers to chapter 1's exercises, right and wrong."""

from __future__ import annotations

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


def slope(q, k, v, h, step=1e-5):
    """The derivative by h, as a difference."""
    above, below = (softmax(-((q - k) ** 2) / (2 * (h + s) ** 2)) @ v for s in (step, -step))
    return (above - below) / (2 * step)


def line(query, keys, values, h, rows=0.5, centre=True, part=1):
    w = np.exp(-((query - keys) ** 2) / (2 * h * h)) ** rows
    return np.polyfit(keys - query * centre, values, 1, w=w)[part]


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
    "epanechnikov": [tensors_in_lists],
    "data_for_half_the_error": [lambda: [[2.378]]],
    "gaussian_weights": [weights_in_place],
}

WRONG = {
    "epanechnikov": [(lambda u: np.maximum(0, 1 - u), "triangular")],
    "effective_neighbours": [(lambda w: (w > 0).sum(1), "counts every weight")],
    "data_for_half_the_error": [(lambda: 2, "mean")],
    "gaussian_weights": [(lambda d, h: torch.softmax(-(d**2), dim=3), "Dimension out of range")],
    "bandwidth_gradient": [(lambda *a: -slope(*a), "sign")],
    "local_linear": [
        (lambda q, k, v, h: line(q, k, v, h, part=slice(2)), "These are both coefficients")
    ],
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
