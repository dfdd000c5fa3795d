"""Answers to chapter 2's exercises, right and wrong."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import torch
from mending import mended

from attnbook_course.checks import ch02


def differ(g):
    return g[:, None] != g[None, :]


def rows(table):
    return table / table.sum(1, keepdims=True)


def walking(own=0, after=False, of_h=False, on_h=False, sign=1, kept=0, mean=np.mean, two=2):
    """The build in other lines, and its neighbours; own is the own point's weight."""

    def answer(keys, values, start, rate, steps):
        squares = ((keys[:, None] - keys) ** 2).sum(-1)
        eye, h, slope, path = np.eye(len(keys)), start, 0, [start]
        for _ in range(steps):
            k = np.exp(-squares / (2 * h * h)) * (1 - eye + own * eye)
            w = rows(k)
            change = w * squares / h**2
            change = change - w * change.sum(1, keepdims=True)
            w, change = (one * (1 - eye) if after else one for one in (w, change))
            new = mean(-two * (values - w @ values) * (change @ values))
            slope = kept * slope + (new / h if of_h or on_h else new)
            h = h - rate * slope if on_h else h * np.exp(-sign * rate * slope)
            path.append(h)
        return path

    return answer


def walked_by_torch(keys, values, start, rate, steps):
    theta = torch.tensor(math.log(start), dtype=keys.dtype, requires_grad=True)
    shut, path = torch.eye(len(keys), dtype=torch.bool), [start]
    for _ in range(steps):
        s = -(torch.cdist(keys, keys) ** 2) / (2 * theta.exp() ** 2)
        w = s.masked_fill(shut, -torch.inf).softmax(1)
        (slope,) = torch.autograd.grad(((values - w @ values) ** 2).mean(), theta)
        theta = (theta - rate * slope).detach().requires_grad_()
        path.append(theta.exp().item())
    return path


def walked_by_jax(keys, values, start, rate, steps):
    def error(theta):
        s = -jnp.sum((keys[:, None] - keys) ** 2, axis=-1) / (2 * jnp.exp(2 * theta))
        w = jax.nn.softmax(jnp.where(jnp.eye(len(keys), dtype=bool), -jnp.inf, s), axis=1)
        return jnp.mean((values - w @ values) ** 2)

    theta, path = jnp.log(start), [start]
    for _ in range(steps):
        theta = theta - rate * jax.grad(error)(theta)
        path.append(jnp.exp(theta))
    return jnp.stack(path)


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


RIGHT = {
    "descend": [walking(), walked_by_torch, walked_by_jax],
    "whitening_metric": [lambda k: np.linalg.cholesky(power(covariance(k), -1)).T],
}

WRONG = {
    "descend": [
        (walking(own=1), "Each point predicts itself too"),
        (walking(own=1, after=True), "hidden after the division"),
        (walking(of_h=True), "derivative with respect to h"),
        (walking(on_h=True), "one of log h, not of h"),
        (walking(sign=-1), "walks uphill"),
        (walking(two=1), "has a factor 2"),
        (walking(mean=np.sum), "A sum over the points"),
        (lambda *a: np.log(walking()(*a)), "the path of log h"),
        (lambda k, v, *a: walking()(k, np.subtract(v, v.mean(), out=v), *a), "its caller's v:"),
        (walking(kept=1), "set the gradient to zero"),
        (lambda *a: walking()(*a)[1:], "the first is start itself"),
    ],
    "log_gradient": [(lambda h, g: g / h, "rule multiplies")],
    "left_out_prediction": [(lambda f, w, v: f - w * v, "other weights sum to 1 − w only")],
    "grouped_weights": [(masked_softmax, "No other group is near")],
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
