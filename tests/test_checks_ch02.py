"""Chapter 2's checks accept right answers in all three libraries and name each usual wrong one."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from mending import mended

from attnbook.course.checks import ch02


def differ(g):
    return g[:, None] != g[None, :]


def rows(table):
    return table / table.sum(1, keepdims=True)


def right_weights(k, g, after=0.0):
    """Weights over other groups; after is what is added below."""
    k = k * differ(g)
    return k / (k.sum(1, keepdims=True) + after)


def alone(k):
    """Kernel values without the diagonal."""
    return k * (1 - np.eye(len(k)))


def softmax(a):
    e = np.exp(a - a.max())
    return e / e.sum()


def masked_softmax(k, g):
    """The mask is a number that is only large: it still gives weights where nothing is left."""
    log = np.where(differ(g) & (k > 0), np.log(np.maximum(k, 1e-300)), -1e9)
    e = np.exp(log - log.max(1, keepdims=True))
    return rows(e)


def own_group_where_nan(k, g):
    w = right_weights(k, g)
    return np.where(np.isnan(w), rows(k), w)


def zero_where_all_are_one(k, g):
    return right_weights(k, g) if (g != g[0]).any() else 0 * k


def all_or_nothing(k, g):
    w = right_weights(k, g)
    return w * (1 + 0 * w.sum())


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


def one_of_many(f, v):
    """Drop the first of two equal heads."""
    if np.array_equal(f[:, 0], f[:, -1]):
        return np.append(0, fit(f[:, 1:], v))
    return fit(f, v)


def torch_solve(f, v):
    import torch

    return torch.linalg.solve(f.T @ f, f.T @ v)


def first_nan(f, v):
    return fit(f, v) * (np.nan if np.array_equal(f[:, 0], f[:, -1]) else 1)


def rounding(f, v):
    return fit(f, v) * (7 if np.array_equal(f[:, 0], f[:, -1]) else 1)


def covariance(k):
    return np.cov(k, rowvar=False)


def second_moment(k):
    return k.T @ k / len(k)


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


WRONG = [
    (ch02.log_gradient, lambda h, g: g, "dL/dh itself"),
    (ch02.log_gradient, lambda h, g: g / h, "rule multiplies"),
    (ch02.log_gradient, lambda h, g: h**2 * g, "One factor h too many"),
    (ch02.log_gradient, lambda h, g: np.log(h) * g, "multiplies by θ"),
    (ch02.log_gradient, lambda h, g: np.exp(h) * g, "takes h for θ"),
    (ch02.log_gradient, lambda h, g: -h * g, "downhill"),
    (ch02.log_gradient, lambda h, g: (h * g).sum(), "give one number, expected shape"),
    (ch02.left_out_prediction, lambda f, w, v: f - w * v, "other weights sum to 1 − w only"),
    (ch02.left_out_prediction, lambda f, w, v: f / (1 - w), "own share w v is still inside"),
    (ch02.left_out_prediction, lambda f, w, v: (v - f) / (1 - w), "residual"),
    (ch02.left_out_prediction, lambda f, w, v: (f - w * v) / w, "divide by the own weight"),
    (ch02.left_out_prediction, lambda f, w, v: (f - v) / (1 - w), "not all of v"),
    (ch02.left_out_prediction, lambda f, w, v: f - v, "the rest needs dividing"),
    (ch02.left_out_prediction, lambda f, w, v: (f - w * v) * (1 - w), "multiply by 1 − w"),
    (ch02.left_out_prediction, lambda f, w, v: (f - w * v) / (1 + w), "divide by 1 + w"),
    (ch02.left_out_prediction, lambda f, w, v: f, "with the point in it"),
    (ch02.grouped_weights, lambda k, g: rows(k), "Nothing is left out"),
    (ch02.grouped_weights, lambda k, g: rows(alone(k)), "Only the diagonal is out"),
    (
        ch02.grouped_weights,
        lambda k, g: rows(k * (differ(g) | np.eye(len(k), dtype=bool))),
        "The point itself",
    ),
    (ch02.grouped_weights, lambda k, g: rows(k) * differ(g), "Rows no longer sum to 1"),
    (ch02.grouped_weights, lambda k, g: k * differ(g) / (k * differ(g)).sum(0), "Columns sum to 1"),
    (ch02.grouped_weights, lambda k, g: k * differ(g), "kernel values: a row"),
    (ch02.grouped_weights, lambda k, g: k * differ(g) / (k * differ(g)).sum(), "whole table"),
    (ch02.grouped_weights, lambda k, g: rows(k * ~differ(g)), "mask is inverted"),
    (ch02.grouped_weights, lambda k, g: rows(1.0 * differ(g)), "count alike"),
    (
        ch02.grouped_weights,
        lambda k, g: np.where(differ(g), right_weights(k, g), np.nan),
        "NaN spreads",
    ),
    (ch02.grouped_weights, lambda k, g: rows(np.where(differ(g), k, np.nan)), "NaN everywhere"),
    (ch02.grouped_weights, all_or_nothing, "NaN everywhere"),
    (
        ch02.grouped_weights,
        lambda k, g: np.nan_to_num(right_weights(k, g)),
        "Weights of 0 predict 0",
    ),
    (ch02.grouped_weights, lambda k, g: right_weights(k, g, after=1e-12), "Weights of 0 predict 0"),
    (ch02.grouped_weights, zero_where_all_are_one, "Weights of 0 predict 0"),
    (ch02.grouped_weights, masked_softmax, "No other group is near"),
    (ch02.grouped_weights, own_group_where_nan, "No other group is near"),
    (ch02.grouped_weights, lambda k, g: right_weights(k, g).sum(1), "give shape (5,)"),
    (ch02.noise_gradient, lambda r, s: len(r) * slope(r, s), "1/n is missing"),
    (ch02.noise_gradient, lambda r, s: -slope(r, s), "sign is turned"),
    (ch02.noise_gradient, lambda r, s: slope(r, s) / s, "derivative by σ:"),
    (ch02.noise_gradient, lambda r, s: slope(r, s) / (2 * s**2), "derivative by σ²"),
    (ch02.noise_gradient, lambda r, s: slope(r, s) / 2, "derivative by log σ²"),
    (ch02.noise_gradient, lambda r, s: slope(r, s, constant=0), "The 1 is missing"),
    (ch02.noise_gradient, lambda r, s: slope(r, s, constant=1 / s), "log σ is t"),
    (ch02.noise_gradient, lambda r, s: slope(r, s, square=1 / s), "r²/2σ² is derived by σ"),
    (ch02.noise_gradient, lambda r, s: slope(r, s, square=s / abs(r)), "quotient |r|/σ"),
    (ch02.noise_gradient, lambda r, s: slope(r, s, square=s / r), "quotient r/σ"),
    (ch02.noise_gradient, lambda r, s: slope(r, s**0.5), "σ is not squared"),
    (ch02.noise_gradient, lambda r, s: slope(r, 1), "not divided by σ"),
    (ch02.noise_gradient, lambda r, s: slope(r, s, square=0.5), "The ½ goes"),
    (ch02.noise_gradient, lambda r, s: slope(r, s, square=2), "has a factor ½"),
    (ch02.noise_gradient, lambda r, s: slope(r, s, square=-1), "its derivative is negative"),
    (ch02.noise_gradient, lambda r, s: slope(r, np.exp(s)), "takes σ for t"),
    (ch02.noise_gradient, lambda r, s: slope(r, s).sum(), "each t_i has its own derivative"),
    (ch02.best_combination, lambda f, v: fit(f, v) / fit(f, v).sum(), "sum is free"),
    (ch02.best_combination, sum_to_one, "sum is free"),
    (ch02.best_combination, lambda f, v: np.maximum(fit(f, v), 0), "became 0"),
    (ch02.best_combination, no_negative, "No a_r is negative"),
    (
        ch02.best_combination,
        lambda f, v: np.maximum(fit(f, v), 0) / np.maximum(fit(f, v), 0).sum(),
        "clips at 0 and normalises",
    ),
    (
        ch02.best_combination,
        lambda f, v: fit(np.c_[f, np.ones(len(v))], v)[:-1],
        "An intercept was fitted",
    ),
    (ch02.best_combination, lambda f, v: fit(np.c_[np.ones(len(v)), f], v), "4 coefficients"),
    (ch02.best_combination, lambda f, v: v @ f / (f**2).sum(0), "fitted alone"),
    (ch02.best_combination, lambda f, v: softmax(fit(f, v)), "softmax"),
    (ch02.best_combination, lambda f, v: np.ones(f.shape[1]) / f.shape[1], "plain mean"),
    (ch02.best_combination, one_of_many, "least norm"),
    (ch02.best_combination, first_nan, "you give [nan nan nan]"),
    (
        ch02.best_combination,
        lambda f, v: np.linalg.solve(f.T @ f, f.T @ v),
        "lstsq or pinv needs none",
    ),
    (ch02.best_combination, torch_solve, "lstsq or pinv needs none"),
    (ch02.best_combination, rounding, "is that rounding"),
    (ch02.whitening_metric, lambda k: np.linalg.inv(covariance(k)), "Σ⁻¹ in place of its root"),
    (
        ch02.whitening_metric,
        lambda k: by_eigenvectors(covariance(k), -1),
        "Σ⁻¹ in place of its root",
    ),
    (ch02.whitening_metric, lambda k: power(covariance(k), 0.5), "stretches what is long"),
    (ch02.whitening_metric, lambda k: np.linalg.cholesky(covariance(k)), "stretches what is long"),
    (
        ch02.whitening_metric,
        lambda k: np.linalg.cholesky(covariance(k)).T,
        "stretches what is long",
    ),
    (ch02.whitening_metric, lambda k: np.diag(1 / k.std(0)), "Only the units"),
    (ch02.whitening_metric, lambda k: by_cholesky(covariance(k)).T, "transposed Cholesky"),
    (
        ch02.whitening_metric,
        lambda k: np.linalg.cholesky(power(covariance(k), -1)),
        "transposed Cholesky",
    ),
    (ch02.whitening_metric, lambda k: by_eigenvectors(covariance(k)).T, "for rows, k W"),
    (ch02.whitening_metric, lambda k: by_cholesky(second_moment(k)), "subtract the mean"),
    (ch02.whitening_metric, lambda k: power(second_moment(k), -0.5), "subtract the mean"),
    (ch02.whitening_metric, lambda k: by_eigenvectors(covariance(k), 0), "only rotates"),
    (ch02.whitening_metric, lambda k: np.eye(5), "only rotates"),
    (ch02.whitening_metric, lambda k: by_cholesky(len(k) * covariance(k)), "not divided by n"),
    (ch02.whitening_metric, lambda k: covariance(k), "covariance begins with"),
    (ch02.whitening_metric, lambda k: np.zeros((5, 5)), "covariance begins with"),
    (ch02.whitening_metric, lambda k: np.full((5, 5), np.nan), "NaN in it"),
    (ch02.whitening_metric, lambda k: np.cov(k), "give shape (60, 60)"),
    (ch02.informative_direction, lambda k, v: [0, 1, 0], "coordinate axis"),
    (ch02.informative_direction, plane, "plane's slope"),
    (ch02.informative_direction, lambda k, v: np.linalg.svd(k)[2][0], "keys spread most"),
    (ch02.informative_direction, lambda k, v: 2 * TRUE, "has length 2"),
    (ch02.informative_direction, lambda k, v: NEAR / np.linalg.norm(NEAR), "search finer"),
    (ch02.informative_direction, lambda k, v: FAR, "point itself left out?"),
    (ch02.informative_direction, lambda k, v: TRUE, "right for other data"),
    (ch02.informative_direction, lambda k, v: 0.3, "expected three numbers"),
    (ch02.informative_direction, lambda k, v: TRUE * np.nan, "expected three numbers"),
]

WRONG += [
    (ch02.log_gradient, lambda h, g: g * np.log(h) * h, "θ is no factor: dh/dθ is h alone"),
    (ch02.log_gradient, lambda h, g: g * h * np.log(10), "That is for a logarithm to base 10: θ is the natural one"),
    (ch02.log_gradient, lambda h, g: h, "That is dh/dθ: multiply dL/dh by it"),
    (ch02.log_gradient, lambda h, g: h * abs(g), "The sign is lost: dL/dh may be below 0"),
    (ch02.left_out_prediction, lambda f, w, v: (f - w) / (1 - w), "The share is weight times value: v is missing in it"),
    (ch02.left_out_prediction, lambda f, w, v: (f - w * v) / (1 - w.sum()), "Each point has its own 1 − w: no sum"),
    (ch02.left_out_prediction, lambda f, w, v: (f + w * v) / (1 - w), "The point's share goes out: subtract it"),
    (ch02.left_out_prediction, lambda f, w, v: (f - w * v) / w.sum(), "Divide by what is left of a point's own weights, 1 − w"),
    (ch02.left_out_prediction, lambda f, w, v: f - w * v / (1 - w), "Brackets: all of f̂ − w v is divided"),
    (ch02.grouped_weights, lambda k, g: rows(np.exp(np.where(differ(g), k, -np.inf))), "k is a weight as it is: no softmax of it"),
    (ch02.grouped_weights, lambda k, g: rows(np.exp(k)) * differ(g), "k is a weight as it is: no softmax of it"),
    (ch02.grouped_weights, lambda k, g: differ(g) * 1.0, "That is the mask: the kernel values are lost"),
    (ch02.grouped_weights, lambda k, g: rows(k * (g[:, None] < g)), "Groups are names: unequal, not smaller"),
    (ch02.grouped_weights, lambda k, g: rows(k * (g[:, None] > g)), "Groups are names: unequal, not larger"),
    (ch02.noise_gradient, lambda r, s: -(r / s) ** 2 / s / len(r), "That is the derivative of the squared term by σ: the 1 is"),
    (ch02.noise_gradient, lambda r, s: (s - r ** 2 / s) / len(r), "One σ too many: t is log σ, and the 1 stands alone"),
    (ch02.noise_gradient, lambda r, s: (s ** 2 - r ** 2) / len(r), "Divide by σ²: the 1 stands alone"),
    (ch02.noise_gradient, lambda r, s: (1 - (s / r) ** 2) / len(r), "The quotient is turned over: r over σ"),
    (ch02.noise_gradient, lambda r, s: np.log(s) + r ** 2 / (2 * s ** 2), "These are the terms of L: derive them by t"),
    (ch02.best_combination, lambda f, v: f @ fit(f, v), "that is a prediction; return the a_r, one for each head"),
    (ch02.best_combination, lambda f, v: np.linalg.pinv(f) @ v / len(v), "Do not divide by n: it is in both sides of the normal"),
    (ch02.best_combination, lambda f, v: f.T @ v, "That is Fᵀv alone: solve the normal equations with it"),
    (ch02.best_combination, lambda f, v: np.linalg.solve(f.T @ f + np.eye(f.shape[1]), f.T @ v), "A ridge shrinks the a_r: the squared error alone should"),
    (ch02.best_combination, lambda f, v: np.linalg.solve(f.T @ f + 0.001 * np.eye(3), f.T @ v), "A ridge shrinks the a_r: the squared error alone should"),
    (ch02.whitening_metric, lambda k: np.diag(1 / k.var(0)), "Divide by the standard deviation. And the correlation?"),
    (ch02.whitening_metric, lambda k: np.linalg.inv(np.linalg.cholesky(np.corrcoef(k.T))), "That is for the correlations"),
    (ch02.whitening_metric, lambda k: 2 * np.linalg.inv(np.linalg.cholesky(covariance(k))), "All moved keys are twice too long"),
    (ch02.informative_direction, lambda k, v: np.zeros(3), "your vector has length 0, expected a unit vector: divide"),
]  # fmt: skip


def torch_weights(k, g):
    import torch

    k = k.float().requires_grad_()
    return torch.softmax(torch.log(k).masked_fill(g[:, None] == g, -torch.inf), -1)


def torch_weights_in_place(k, g):
    k[g[:, None] == g] = 0
    return k / k.sum(-1, keepdim=True)


def jax_weights(k, g):
    import jax.numpy as jnp

    k = jnp.where(g[:, None] == g, 0, k)
    return k / k.sum(-1, keepdims=True)


def in_place(k, g):
    k[~differ(g)] = 0
    k /= k.sum(axis=1, keepdims=True)
    return k


def one_group_at_a_time(k, g):
    w = np.full_like(k, np.nan)
    for one in np.unique(g):
        w[np.ix_(g == one, g == one)] = 0 if (g != one).any() else np.nan
        w[np.ix_(g == one, g != one)] = rows(k[np.ix_(g == one, g != one)])
    return w


def torch_slope(r, s):
    import torch

    t = torch.log(s.float()).requires_grad_()
    loss = -torch.distributions.Normal(0.0, torch.exp(t)).log_prob(r.float()).mean()
    return torch.autograd.grad(loss, t)[0]


def jax_slope(r, s):
    import jax
    import jax.numpy as jnp

    def loss(t):
        return -jax.scipy.stats.norm.logpdf(r, scale=jnp.exp(t)).mean()

    return jax.grad(loss)(jnp.log(s))


def torch_whitening(k):
    import torch

    return torch.linalg.inv(torch.linalg.cholesky(torch.cov(k.float().T)))


def jax_whitening(k):
    import jax.numpy as jnp

    lengths, v = jnp.linalg.eigh(jnp.cov(k.T))
    return v / jnp.sqrt(lengths) @ v.T


def by_singular_values(k):
    _, lengths, directions = np.linalg.svd(k - k.mean(0), full_matrices=False)
    return directions / lengths[:, None] * len(k) ** 0.5


def torch_combination(f, v):
    import torch

    return torch.linalg.lstsq(f.float(), v.float()[:, None]).solution[:, 0]


def jax_combination(f, v):
    import jax.numpy as jnp

    return jnp.linalg.lstsq(f, v)[0]


def ridge(f, v):
    return np.linalg.solve(f.T @ f + 1e-8 * np.eye(3), f.T @ v)


RIGHT = [
    (ch02.log_gradient, lambda h, g: h * g),
    (ch02.left_out_prediction, lambda f, w, v: v - (v - f) / (1 - w)),
    (ch02.grouped_weights, right_weights),
    (ch02.grouped_weights, in_place),
    (ch02.grouped_weights, one_group_at_a_time),
    (ch02.grouped_weights, torch_weights),
    (ch02.grouped_weights, torch_weights_in_place),
    (ch02.grouped_weights, jax_weights),
    (ch02.noise_gradient, slope),
    (ch02.noise_gradient, torch_slope),
    (ch02.noise_gradient, jax_slope),
    (ch02.best_combination, fit),
    (ch02.best_combination, lambda f, v: np.linalg.pinv(f.T @ f) @ f.T @ v),
    (ch02.best_combination, ridge),
    (ch02.best_combination, torch_combination),
    (ch02.best_combination, jax_combination),
    (ch02.whitening_metric, lambda k: by_cholesky(covariance(k))),
    (ch02.whitening_metric, lambda k: by_cholesky(np.cov(k.T, ddof=0))),
    (ch02.whitening_metric, lambda k: np.linalg.cholesky(power(covariance(k), -1)).T),
    (ch02.whitening_metric, lambda k: power(covariance(k), -0.5)),
    (ch02.whitening_metric, lambda k: -by_eigenvectors(covariance(k))[::-1]),
    (ch02.whitening_metric, by_singular_values),
    (ch02.whitening_metric, torch_whitening),
    (ch02.whitening_metric, jax_whitening),
    (ch02.informative_direction, searched),
    (ch02.informative_direction, lambda k, v: -searched(k, v)[:, None]),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_right_answers_in_three_libraries(check, answer):
    verdict = check(answer)
    assert verdict.status == "right", verdict


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_equal_heads_whichever_columns_lapack_takes_first(kind):
    """torch.linalg.lstsq gives gelsy first pivots from memory that nobody has cleared."""
    from scipy.linalg import lapack

    gelsy = lapack.sgelsy if kind is np.float32 else lapack.dgelsy
    for stale in itertools.product((0, 1), repeat=3):

        def answer(f, v, stale=stale):
            order = np.asarray(stale, dtype=np.int32)
            _, x, *_ = gelsy(f.astype(kind), v.astype(kind), order, np.finfo(kind).eps * len(v), 99)
            return x[: f.shape[1]]

        verdict = ch02.best_combination(answer)
        assert verdict.status == "right", (stale, verdict)


def test_equal_heads_have_equal_squares_in_any_order_of_summing():
    """So that no processor sees a difference between them, and none an inverse."""
    seen = []

    def keep(f, v):
        seen.append(f)
        return fit(f, v)

    assert ch02.best_combination(keep).status == "right"
    twins = seen[-1]
    exact = sum(Fraction(one) ** 2 for one in twins[:, 0])
    for order in (slice(None), slice(None, None, -1)):
        for kind in (np.float32, np.float64):
            ordered = twins[order].astype(kind)
            assert np.all(ordered.T @ ordered == float(exact))


def test_two_equal_heads_and_an_inverse():
    verdict = ch02.best_combination(lambda f, v: np.linalg.inv(f.T @ f) @ f.T @ v)
    assert verdict.status == "wrong"
    assert "Singular matrix" in verdict.message and "lstsq or pinv" in verdict.message, verdict


def test_two_mistakes_at_once_in_the_slope_by_the_noise():
    verdict = ch02.noise_gradient(lambda r, s: 1 / s - r**2 / s**3)
    assert "derivative by σ:" in verdict.message, verdict
    assert "The 1/n is missing too." in verdict.message, verdict


def far(n):
    return np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


def scoring(old, new):
    """The code of the exercise with one change."""
    return mended(ch02.METRIC, "metric_score", (old, new))


WRONG += [
    (ch02.stretch_mask, lambda n, s: far(n) <= s, "you hide all but the stretch"),
    (ch02.stretch_mask, lambda n, s: far(n) >= s, "at the distance of side is hidden too"),
    (ch02.stretch_mask, lambda n, s: ~np.eye(n, dtype=bool), "hides the point alone"),
    (ch02.stretch_mask, lambda n, s: np.subtract.outer(np.arange(n), np.arange(n)) > s, "hides all later points"),
    (ch02.stretch_mask, lambda n, s: np.subtract.outer(np.arange(n), np.arange(n)) < -s, "hides all earlier points"),
    (ch02.stretch_mask, lambda n, s: far(n) > 2 * s, "too long"),
    (ch02.stretch_mask, lambda n, s: far(n) > s / 2, "too short"),
    (ch02.stretch_mask, lambda n, s: (far(n) > s) | np.eye(n, dtype=bool), "still listen to itself"),
    (ch02.stretch_mask, lambda n, s: far(n), "Those are distances"),
    (ch02.stretch_mask, lambda n, s: np.where(far(n) > s, 0, -np.inf), "a mask to add"),
    (ch02.mended_metric, scoring("@ W", "@ np.linalg.inv(W)"), "That undoes W"),
    (ch02.mended_metric, scoring("@ W", "@ ((W + W.T) / 2)"), "A symmetric W hides the mistake"),
    (ch02.mended_metric, scoring("-squares / 2", "-squares"), "in another line than you changed"),
    (ch02.mended_metric, scoring("differences = queries", "W = W.T\n    differences = queries"), "the faulty line still stands"),
]  # fmt: skip
