"""Checks for chapter 2. Each knows the usual wrong answers by what they give."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from attnbook.attention import softmax
from attnbook.kernel import kernels
from attnbook_course.checks.build import build
from attnbook_course.checks.call import call, refuse_writing
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.verdict import Function, Wrong, check, expect

METRIC = '''
def metric_score(queries, keys, W):
    """The score −½ ‖W (q − k)‖², (m, n), from queries (m, d), keys (n, d), W (r, d)."""
    differences = queries[:, None, :] - keys[None, :, :]
    moved = differences @ W
    squares = (moved**2).sum(axis=-1)
    return -squares / 2
'''


@build
def descend(function: Function) -> str:
    """function(keys, values, start, rate, steps): the path of h, (steps + 1,), start included.

    The build: gradient descent on log h of the leave-one-out error, the mean over all points of the
    squared difference between a value and its prediction from the other points, Gaussian weights.
    """
    rng = np.random.default_rng(5)
    keys = rng.uniform(-2, 2, (40, 2))
    values = np.sin(2 * keys[:, :1]) + keys[:, 1:] + 0.2 * rng.standard_normal((40, 1))
    left_out, with_own, hidden_late = _errors(keys, values)
    start, rate = 1.3, 0.3
    for steps in (1, 3, 60):
        where = f"for h = {start:g} at first, rate {rate:g} and steps = {steps}"
        got = call(function, keys, values, start, rate, steps)
        if got.shape == (steps,):
            raise Wrong(
                f"{where} you give {steps} of the bandwidths:", "the first is start itself."
            )
        right = _path(left_out, start, rate, steps)
        late = "The own point is hidden after the division: the others no longer sum to 1."
        added = "The slopes of earlier steps are added up: set the gradient to zero before each."
        of_h = "That is the derivative with respect to h. What moves is log h: h times it."
        mistakes = [
            (_path(with_own, start, rate, steps), "Each point predicts itself too: hide it."),
            (_path(hidden_late, start, rate, steps), late),
            (_path(left_out, start, rate / 2, steps), "The square's derivative has a factor 2."),
            (_path(left_out, start, 40 * rate, steps), "A sum over the points, not their mean."),
            (np.log(right), "That is the path of log h: return that of h."),
            (_path(left_out, start, rate, steps, of_h=True), of_h),
            (_path(left_out, start, rate, steps, on_h=True), "The step is one of log h, not of h."),
            (_path(left_out, start, -rate, steps), "The sign is turned: that walks uphill."),
            (_path(left_out, start, rate, steps, kept=1.0), added),
        ]
        expect(got, right, where, mistakes, tolerance=1e-4)
    refuse_writing(function, keys, values, start, rate, 1)
    grid = np.geomspace(0.1, 2, 400)
    best = grid[np.argmin([left_out(np.log(h)) for h in grid])]
    return f"after {steps} steps h is {got[-1]:.3f}; the best of a grid is {best:.3f}."


Error = Callable[[float], float]


def _errors(keys: np.ndarray, values: np.ndarray) -> tuple[Error, Error, Error]:
    """Errors as functions of log h: left out, the own point counted, hidden after the division."""
    squares = ((keys[:, None] - keys) ** 2).sum(axis=-1)
    others = ~np.eye(len(keys), dtype=bool)

    def error(theta: float, mask: np.ndarray | None, after: Any = 1.0) -> float:
        weights: Any = softmax(-squares / (2 * math.exp(2 * theta)), mask)
        return float(np.mean((values - (weights * after) @ values) ** 2))

    return (
        lambda theta: error(theta, others),
        lambda theta: error(theta, None),
        lambda theta: error(theta, None, others),
    )


def _path(
    error: Error,
    start: float,
    rate: float,
    steps: int,
    *,
    kept: float = 0.0,
    of_h: bool = False,
    on_h: bool = False,
) -> np.ndarray:
    """The path of h whose slopes are differences; kept is what stays of the slopes before."""
    h, slope, path = start, 0.0, [start]
    for _ in range(steps):
        theta, small = math.log(h), 1e-5
        new = (error(theta + small) - error(theta - small)) / (2 * small)
        slope = kept * slope + (new / h if of_h or on_h else new)
        h = h - rate * slope if on_h else h * math.exp(-rate * slope)
        path.append(h)
    return np.asarray(path)


@check
def log_gradient(function: Function) -> str:
    """function(bandwidth, gradient): dL/dθ for θ = log h, from h and dL/dh."""
    per_input = np.asarray([0.2, 3.0, 20.0]), np.asarray([5.0, -2.0, 0.4])
    for where, (h, g) in {
        "for h = (0.2, 3, 20) and dL/dh = (5, −2, 0.4)": per_input,
        "for h = 0.5 and dL/dh = −3": (np.asarray(0.5), np.asarray(-3.0)),
    }.items():
        mistakes = [
            (g, "That is dL/dh itself: a step of θ is not a step of h."),
            (g / h, "That divides by dh/dθ: the chain rule multiplies."),
            (np.log(h) * g, "That multiplies by θ: the factor is dh/dθ, with h = exp θ."),
            (np.exp(h) * g, "That takes h for θ: h is exp θ already."),
        ]
        expect(call(function, h, g), h * g, where, mistakes, secret=True)
    return "h dL/dh: a step of θ multiplies h, whether it is 0.2 or 20."


@check
def left_out_prediction(function: Function) -> str:
    """function(prediction, own_weight, values): the leave-one-out predictions, all of (n,)."""
    f, w = np.asarray([1.2, -0.4, 0.9]), np.asarray([0.1, 0.25, 0.6])
    v = np.asarray([2.0, 0.8, -1.5])
    where = "for f̂ = (1.2, −0.4, 0.9), own weights (0.1, 0.25, 0.6) and v = (2, 0.8, −1.5)"
    mistakes = [
        (f - w * v, "The other weights sum to 1 − w only: divide by that."),
        (f / (1 - w), "The point's own share w v is still inside: subtract it first."),
        ((f - v) / (1 - w), "Subtract the point's share w v, not all of v."),
        (f - w * v / (1 - w), "Brackets: all of f̂ − w v is divided."),
        (f, "That is the prediction with the point in it."),
    ]
    expect(call(function, f, w, v), (f - w * v) / (1 - w), where, mistakes)
    return "the point's share is out, and the other weights sum to 1 again; no refit."


@check
def grouped_weights(function: Function) -> str:
    """function(kernel_values, groups): weights (n, n) of the keys that are in other groups."""
    for x, numbers in (
        ([0.0, 0.3, 0.5, 0.9, 1.1], [3, 1, 3, 1, 7]),
        ([9.0, 9.2, 0.0, 0.3, 0.5], [4, 4, 0, 0, 2]),  # 9 has only its own group near it
        ([0.0, 0.3, 0.5], [2, 2, 2]),
    ):
        keys, groups, eye = np.asarray(x)[:, None], np.asarray(numbers), np.eye(len(x))
        k: Any
        k, same = kernels.epanechnikov(kernels.distance(keys, keys)), groups[:, None] == groups
        others = k * ~same
        got = call(function, k, groups)
        right = _rows(others)
        causes = [
            (np.nan_to_num(right), "Weights of 0 predict 0: with no one else near, give NaN."),
            (_rows(k), "Nothing is left out: the own group still counts."),
            (_rows(k * (1 - eye)), "Only the diagonal is out: the whole group must go."),
            (_rows(k) * ~same, "Rows no longer sum to 1: mask first, then normalise."),
            (others, "These are kernel values: a row of weights sums to 1."),
        ]
        if got.shape == right.shape:
            lonely = np.isnan(right)  # one NaN in such a row is enough for no prediction
            causes.append((np.where(lonely, got, right), "No other group is near: give NaN."))
            got = np.where(lonely & np.isnan(got).any(axis=1, keepdims=True), np.nan, got)
        expect(got, right, f"for the keys {x} in groups {numbers}", causes)
    return "each row sums to 1 over the other groups, and is NaN where none of them is near."


def _rows(table: Any) -> Any:
    """A table with each row divided by its sum."""
    return table / np.sum(table, axis=1, keepdims=True)


@check
def whitening_metric(function: Function) -> str:
    """function(keys): a W (d, d) with W Σ Wᵀ = I, for the covariance Σ of the keys (n, d)."""
    keys = np.random.default_rng(6).standard_normal((60, 5))
    keys = (keys + 0.9 * keys[:, [1, 2, 3, 4, 0]] + [3, 0, 1, -2, 1]) * [0.5, 1.0, 2.0, 5.0, 10.0]
    got = call(function, keys)
    if got.shape != (5, 5):
        hint = "These are moved keys: return W." if got.shape == keys.shape else ""
        raise Wrong(f"for keys (60, 5) you give shape {got.shape}, expected (5, 5).", hint)
    if np.any(np.isnan(got)):
        raise Wrong("W has NaN in it:", "the root of a matrix is not that of its entries.")
    c = np.cov(keys, rowvar=False)
    inverse, variances = np.linalg.inv(c), np.diag(c)
    gram, turned = got.T @ got, got @ got.T  # a rotation of W leaves WᵀW as it is
    if _alike(gram, inverse, 0.005) or _alike(gram, inverse * 60 / 59, 0.005):
        return "W Σ Wᵀ = I; every other such W is this one, rotated or mirrored."
    for matrix, target, cause in (
        (gram, inverse @ inverse, "That is Σ⁻¹ in place of its root: the norm squares W."),
        (turned, c, "That is Σ's root: it stretches what is long already. Take the inverse."),
        (gram, np.diag(1 / variances), "Only the units are gone: the correlation is left."),
        (turned, inverse, "That W is for rows, k W. The distance has columns, W k: transpose it."),
        (gram, np.linalg.inv(keys.T @ keys / 60), "Second moments about 0: subtract the mean."),
    ):
        if _alike(matrix, target, 0.05):
            raise Wrong("the moved keys' covariance is not the identity.", cause)
    begin = ", ".join(f"{v:.3g}" for v in (got @ c @ got.T)[0, :3])
    raise Wrong(f"the moved keys' covariance begins with {begin}, expected 1, 0, 0.")


def _alike(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    """Whether two symmetric matrices are equal in every direction, relative to the second."""
    root = np.linalg.inv(np.linalg.cholesky(b))
    return bool(np.allclose(root @ a @ root.T, np.eye(len(b)), rtol=0, atol=tolerance))


@check
def informative_direction(function: Function) -> str:
    """function(keys, values): the unit vector that the values depend on, for keys (n, 3)."""
    words, given = "", []
    for seed, order in ((7, [0, 1, 2]), (9, [2, 0, 1])):
        keys, values, b = _one_direction(seed, order)
        got = call(function, keys, values).ravel()
        if got.size != 3 or not np.all(np.isfinite(got)):
            raise Wrong(f"you give {got}, expected three numbers.")
        length = float(np.linalg.norm(got))
        if abs(length - 1) > 1e-3:
            hint = "expected a unit vector: divide by it."
            raise Wrong(f"your vector has length {length:.3g}, {hint}")
        given.append(got)
        words = _miss(got, keys, values, b, given)
    return f"{words} 18° are allowed; one row of W is enough here."


def _miss(
    got: np.ndarray, keys: np.ndarray, values: np.ndarray, b: np.ndarray, given: list[np.ndarray]
) -> str:
    """How far a unit vector is from b; Wrong if it is too far."""
    cosine = abs(float(got @ b))
    words = f"your direction is {np.degrees(np.arccos(min(1.0, cosine))):.0f}° from the true one."
    if cosine >= 0.95:
        return words
    if len(given) > 1 and np.allclose(got, given[0]):
        raise Wrong(words, "It was right for other data: find it from these keys and values.")
    slope = np.linalg.lstsq(keys, values, rcond=None)[0][:, 0]
    if np.sum(np.abs(got) > 0.01) == 1:
        raise Wrong(words, "It is a coordinate axis: the values depend on a mixture.")
    if abs(got @ slope) > 0.99 * np.linalg.norm(slope):
        raise Wrong(words, "It is a plane's slope: rises and falls of the curve cancel there.")
    if abs(got @ np.linalg.svd(keys)[2][0]) > 0.99:
        raise Wrong(words, "It is where the keys spread most: the values play no part in it.")
    if cosine >= 0.8:
        raise Wrong(words, "Near, 18° are allowed: search finer around it.")
    raise Wrong(words, "Is the search fine, the bandwidth narrow, the point itself left out?")


def _one_direction(seed: int, order: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys (200, 3) that spread most at a right angle to b, values cos(2 b·x) + noise, and b."""
    rng = np.random.default_rng(seed)
    b, wide = np.asarray([[0.6, -0.64, 0.48], [0.8, 0.48, -0.36]])[:, order]
    keys = rng.standard_normal((200, 3)) + 1.2 * rng.standard_normal((200, 1)) * wide
    keys = keys - keys.mean(axis=0)
    return keys, np.cos(2 * keys @ b[:, None]) + 0.2 * rng.standard_normal((200, 1)), b


@check
def stretch_mask(function: Function) -> str:
    """function(n, side): true where i and j are more than side apart, of shape (n, n)."""
    for n, side in ((9, 3), (5, 1), (4, 0)):
        apart = np.subtract.outer(np.arange(n), np.arange(n))
        far = np.abs(apart)
        mistakes = [
            (far <= side, "True says who may listen: you hide all but the stretch."),
            (far >= side, "The neighbour at the distance of side is hidden too."),
            (far > 0, "That hides the point alone: hide side neighbours on either side as well."),
            ((far > side) | (far == 0), "Each point may still listen to itself."),
            (np.where(far > side, 0, -np.inf), "That is a mask to add: return true and false."),
        ]
        expect(call(function, n, side), far > side, f"for n = {n} and side = {side}", mistakes)
    return "side = 0 hides the diagonal alone, which is leave-one-out."


@check
def mended_metric(function: Function) -> str:
    """function(queries, keys, W): METRIC, mended so that any W is right."""
    return repaired(function, METRIC, fault="moved = differences @ W", test=_scores_in_metric)


def _scores_in_metric(function: Function) -> str:
    rng = np.random.default_rng(6)
    queries, keys = rng.normal(size=(2, 3)), rng.normal(size=(4, 3))
    apart = queries[:, None, :] - keys[None, :, :]
    square, flat = rng.normal(size=(3, 3)), rng.normal(size=(2, 3))
    symmetric = (square + square.T) / 2
    for name, metric in (("a square W", square), ("a W with two rows", flat)):
        moved = apart @ metric.T
        right = -0.5 * np.sum(moved**2, axis=-1)
        found = [
            (-np.sum(moved**2, axis=-1), "The factor ½ is missing."),
            (-right, "The sign is missing: near keys need the highest score."),
        ]
        if metric is square:
            turned = -0.5 * np.sum((apart @ metric) ** 2, axis=-1)
            even = -0.5 * np.sum((apart @ symmetric) ** 2, axis=-1)
            found += [
                (turned, "Still the transpose: for a row, W (q − k) is (q − k) @ W.T."),
                (even, "A symmetric W hides the mistake: use W as it is."),
            ]
        expect(call(function, queries, keys, metric), right, f"for {name}", found)
    return "points are rows, so W acts as W.T from the right."
