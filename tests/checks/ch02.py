"""Answers to chapter 2's exercises, right and wrong."""

from __future__ import annotations

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


def right_weights(k, g, after=0.0):
    """Weights over other groups; after is what is added below."""
    k = k * differ(g)
    return k / (k.sum(1, keepdims=True) + after)


def masked_softmax(k, g):
    """The mask is a number that is only large: it still gives weights where nothing is left."""
    log = np.where(differ(g) & (k > 0), np.log(np.maximum(k, 1e-300)), -1e9)
    e = np.exp(log - log.max(1, keepdims=True))
    return rows(e)


def slope(r, s, constant=1.0, square=1.0):
    return (constant - square * (r / s) ** 2) / len(r)


def fit(f, v):
    return np.linalg.lstsq(f, v, rcond=None)[0]


def sum_to_one(f, v):
    """Least squares under the constraint that the sum is one: the last head takes the rest."""
    a = fit(f[:, :-1] - f[:, -1:], v - f[:, -1])
    return np.append(a, 1 - a.sum())


def no_negative(f, v):
    a = fit(f, v)
    a[a > 0] = fit(f[:, a > 0], v)
    return np.maximum(a, 0)


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


def searched(keys, values):
    """The direction along which the neighbours of a point predict it best."""
    rng = np.random.default_rng(1)
    best = np.zeros(3)
    for width, number in ((1.0, 300), (0.1, 60)):
        tried = best + width * rng.standard_normal((number, 3))
        tried /= np.linalg.norm(tried, axis=1, keepdims=True)
        order = [np.argsort(keys @ one) for one in tried]
        best = tried[np.argmin([np.mean(np.diff(values[i, 0]) ** 2) for i in order])]
    return best


def torch_weights(k, g):
    k = k.float().requires_grad_()
    return torch.softmax(torch.log(k).masked_fill(g[:, None] == g, -torch.inf), -1)


def torch_weights_in_place(k, g):
    k[g[:, None] == g] = 0
    return k / k.sum(-1, keepdim=True)


def jax_weights(k, g):
    k = jnp.where(g[:, None] == g, 0, k)
    return k / k.sum(-1, keepdims=True)


def torch_slope(r, s):
    t = torch.log(s.float()).requires_grad_()
    loss = -torch.distributions.Normal(0.0, torch.exp(t)).log_prob(r.float()).mean()
    return torch.autograd.grad(loss, t)[0]


def jax_slope(r, s):
    density = jax.scipy.stats.norm.logpdf
    return jax.grad(lambda t: -density(r, scale=jnp.exp(t)).mean())(jnp.log(s))


def jax_whitening(k):
    lengths, v = jnp.linalg.eigh(jnp.cov(k.T))
    return v / jnp.sqrt(lengths) @ v.T


def by_singular_values(k):
    _, lengths, directions = np.linalg.svd(k - k.mean(0), full_matrices=False)
    return directions / lengths[:, None] * len(k) ** 0.5


def torch_combination(f, v):
    return torch.linalg.lstsq(f.float(), v.float()[:, None]).solution[:, 0]


def ridge(f, v):
    return np.linalg.solve(f.T @ f + 1e-8 * np.eye(3), f.T @ v)


def far(n):
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


def scoring(old, new):
    """The code of the exercise with one change."""
    return mended(ch02.METRIC, "metric_score", (old, new))


RIGHT = {
    "grouped_weights": [torch_weights, torch_weights_in_place, jax_weights],
    "noise_gradient": [torch_slope, jax_slope],
    "best_combination": [ridge, torch_combination, lambda f, v: jnp.linalg.lstsq(f, v)[0]],
    "whitening_metric": [
        lambda k: np.linalg.cholesky(power(covariance(k), -1)).T,
        lambda k: -by_eigenvectors(covariance(k))[::-1],
        by_singular_values,  # of the variance over n, not n − 1
        lambda k: torch.linalg.inv(torch.linalg.cholesky(torch.cov(k.float().T))),
        jax_whitening,
    ],
    "informative_direction": [searched, lambda k, v: -searched(k, v)[:, None]],
}

WRONG = {
    "log_gradient": [
        (lambda h, g: g / h, "rule multiplies"),
        (lambda h, g: np.log(h) * g, "multiplies by θ"),
        (lambda h, g: h * abs(g), "The sign is lost: dL/dh may be below 0"),
    ],
    "left_out_prediction": [
        (lambda f, w, v: f - w * v, "other weights sum to 1 − w only"),
        (lambda f, w, v: f - w * v / (1 - w), "Brackets: all of f̂ − w v is divided"),
        (lambda f, w, v: (f - w * v) / (1 - w.sum()), "Each point has its own 1 − w: no sum"),
    ],
    "grouped_weights": [
        (lambda k, g: right_weights(k, g) + 0 * right_weights(k, g).sum(), "NaN everywhere"),
        (lambda k, g: right_weights(k, g, after=1e-12), "Weights of 0 predict 0"),
        (lambda k, g: right_weights(k, g).sum(1), "give shape (5,)"),
        (masked_softmax, "No other group is near"),
    ],
    "noise_gradient": [
        (lambda r, s: slope(r, s, constant=1 / s), "log σ is t"),
        (lambda r, s: slope(r, np.exp(s)), "takes σ for t"),
        (lambda r, s: 1 / s - r**2 / s**3, "dσ/dt, which is σ. The 1/n is missing too."),
        (lambda r, s: slope(r, s).sum(), "each t_i has its own derivative"),
    ],
    "best_combination": [
        (sum_to_one, "sum is free"),
        (lambda f, v: np.linalg.solve(f.T @ f + 0.001 * np.eye(3), f.T @ v), "A ridge shrinks"),
        (no_negative, "No a_r is negative"),
        (lambda f, v: fit(np.c_[np.ones(len(v)), f], v), "4 coefficients"),
        (if_equal(lambda a: a * np.nan), "you give [nan nan nan]"),
        (if_equal(lambda a: [0, 0, a.sum()]), "least norm"),
        (if_equal(lambda a: 7 * a), "is that rounding"),
        (lambda f, v: torch.linalg.solve(f.T @ f, f.T @ v), "lstsq or pinv needs none"),
        (lambda f, v: np.linalg.inv(f.T @ f) @ f.T @ v, "lstsq or pinv needs none"),
        (lambda f, v: f @ fit(f, v), "that is a prediction; return the a_r"),
    ],
    "whitening_metric": [
        (lambda k: np.linalg.inv(covariance(k)), "Σ⁻¹ in place of its root"),
        (lambda k: power(covariance(k), 0.5), "stretches what is long"),
        (lambda k: np.diag(1 / k.std(0)), "Only the units"),
        (lambda k: by_cholesky(covariance(k)).T, "transposed Cholesky"),
        (lambda k: by_eigenvectors(covariance(k)).T, "for rows, k W"),
        (lambda k: by_cholesky(k.T @ k / len(k)), "subtract the mean"),
        (lambda k: by_eigenvectors(covariance(k), 0), "only rotates"),
        (lambda k: by_cholesky(len(k) * covariance(k)), "not divided by n"),
        (lambda k: covariance(k), "covariance begins with"),
        (lambda k: np.full((5, 5), np.nan), "NaN in it"),
        (lambda k: np.cov(k), "give shape (60, 60)"),
        (lambda k: np.diag(1 / k.var(0)), "Divide by the standard deviation"),
        (lambda k: by_cholesky(np.corrcoef(k.T)), "That is for the correlations"),
        (lambda k: 2 * by_cholesky(covariance(k)), "All moved keys are twice too long"),
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
    "stretch_mask": [
        (lambda n, s: far(n) >= s, "at the distance of side is hidden too"),
        (lambda n, s: ~np.eye(n, dtype=bool), "hides the point alone"),
        (lambda n, s: np.where(far(n) > s, 0, -np.inf), "a mask to add"),
    ],
    "mended_metric": [
        (scoring("@ W", "@ np.linalg.inv(W)"), "That undoes W"),
        (scoring("@ W", "@ ((W + W.T) / 2)"), "A symmetric W hides the mistake"),
        (scoring("-squares / 2", "-squares"), "in another line than you changed"),
        (
            scoring("differences = q", "W = W.T\n    differences = q"),
            "the faulty line still stands",
        ),
    ],
}
