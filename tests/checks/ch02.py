"""Answers to chapter 2's exercises, right and wrong."""

from __future__ import annotations

import numpy as np
import torch
from mending import mended

from attnbook_course.checks import ch02


def differ(g):
    return g[:, None] != g[None, :]


def rows(table):
    return table / table.sum(1, keepdims=True)


def slope(r, s, constant=1.0, square=1.0):
    return (constant - square * (r / s) ** 2) / len(r)


def fit(f, v):
    return np.linalg.lstsq(f, v, rcond=None)[0]


def if_equal(change):
    """Least squares, with this change where the heads are equal."""

    def answer(f, v):
        equal = np.array_equal(f[:, 0], f[:, -1])
        return change(fit(f, v)) if equal else fit(f, v)

    return answer


def covariance(k):
    return np.cov(k, rowvar=False)


def power(c, p):
    """A symmetric matrix to the power p."""
    lengths, v = np.linalg.eigh(c)
    return (v * lengths**p) @ v.T


def by_cholesky(c):
    return np.linalg.inv(np.linalg.cholesky(c))


def by_eigenvectors(c, p=-0.5):
    lengths, v = np.linalg.eigh(c)
    return (v * lengths**p).T


def plane(keys, values):
    slope = np.linalg.lstsq(np.c_[keys, np.ones(len(keys))], values, rcond=None)[0][:3, 0]
    return slope / np.linalg.norm(slope)


TRUE = np.asarray([0.6, -0.64, 0.48])
NEAR = TRUE + 0.5 * np.asarray([0.8, 0.48, -0.36])
FAR = np.asarray([0.0, 0.48, 0.64]) / 0.8


def far(n):
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


def scoring(old, new):
    """The code of the exercise with one change."""
    return mended(ch02.METRIC, "metric_score", (old, new))


def masked_softmax(k, g):
    """The mask is a number that is only large: it still gives weights where nothing is left."""
    log = np.where(differ(g) & (k > 0), np.log(np.maximum(k, 1e-300)), -1e9)
    return rows(np.exp(log - log.max(1, keepdims=True)))


RIGHT = {"whitening_metric": [lambda k: np.linalg.cholesky(power(covariance(k), -1)).T]}

WRONG = {
    "log_gradient": [(lambda h, g: g / h, "rule multiplies")],
    "left_out_prediction": [(lambda f, w, v: f - w * v, "other weights sum to 1 − w only")],
    "grouped_weights": [(masked_softmax, "No other group is near")],
    "best_combination": [
        (if_equal(lambda a: [0, 0, a.sum()]), "least norm"),
        (lambda f, v: torch.linalg.solve(f.T @ f, f.T @ v), "lstsq or pinv needs none"),
    ],
    "whitening_metric": [
        (lambda k: np.linalg.inv(covariance(k)), "Σ⁻¹ in place of its root"),
        (lambda k: power(covariance(k), 0.5), "stretches what is long"),
        (lambda k: np.diag(1 / k.std(0)), "Only the units"),
        (lambda k: by_eigenvectors(covariance(k)).T, "for rows, k W"),
        (lambda k: by_cholesky(k.T @ k / len(k)), "subtract the mean"),
        (lambda k: covariance(k), "covariance begins with"),
        (lambda k: np.full((5, 5), np.nan), "NaN in it"),
        (lambda k: np.cov(k), "give shape (60, 60)"),
    ],
    "informative_direction": [
        (lambda k, v: [0, 1, 0], "coordinate axis"),
        (plane, "plane's slope"),
        (lambda k, v: np.linalg.svd(k)[2][0], "keys spread most"),
        (lambda k, v: 2 * TRUE, "has length 2"),
        (lambda k, v: NEAR / np.linalg.norm(NEAR), "search finer"),
        (lambda k, v: FAR, "point itself left out?"),
        (lambda k, v: TRUE, "right for other data"),
        (lambda k, v: 0.3, "expected three numbers"),
        (lambda k, v: np.zeros(3), "your vector has length 0, expected a unit vector: divide"),
    ],
    "stretch_mask": [(lambda n, s: far(n) >= s, "at the distance of side is hidden too")],
    "mended_metric": [
        (scoring("differences = q", "W = W.T\n    differences = q"), "the faulty line still stands")
    ],
}
