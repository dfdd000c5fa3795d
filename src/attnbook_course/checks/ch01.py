"""Checks for chapter 1. Each knows the usual wrong answers by what they give."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from attnbook import datasets
from attnbook.kernel import regression
from attnbook_course import builds
from attnbook_course.checks.build import build
from attnbook_course.checks.call import call, refuse_writing
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.verdict import (
    Function,
    Wrong,
    check,
    expect,
    not_written,
    show,
)

SUMMED = "the squares of all coordinates belong in one sum"


@build
def nadaraya_watson(function: Function) -> str:
    """function(queries, keys, values, bandwidth): (m, p) from (m, d), (n, d), (n, p) and h.

    The build: Gaussian kernel regression, far from all keys too.
    """
    rng = np.random.default_rng(11)
    queries, keys, values = (rng.normal(size=size) for size in ((4, 3), (7, 3), (7, 2)))
    h, where = 0.8, "for 4 queries, 7 keys, 3 inputs and 2 values"
    apart = queries[:, None] - keys
    squares = np.sum(apart**2, axis=-1)
    s = -squares / (2 * h**2)
    kernels = np.exp(s), np.exp(s - s.max(axis=1, keepdims=True))

    def predicted(s: np.ndarray, axis: int = 1) -> np.ndarray:
        kernel = np.exp(s)
        return kernel / kernel.sum(axis=axis, keepdims=True) @ values

    by_column = "You normalise over the queries: the weights of each query sum to 1."
    no_shares = "These weights are no shares: divide each query's kernel values by their own sum."
    no_square = "The distance is not squared."
    mistakes = [
        (predicted(s, axis=0), by_column),
        (predicted(s - s.max(axis=1, keepdims=True), axis=0), by_column),
        (predicted(-(np.sum(apart, axis=-1) ** 2) / (2 * h**2)), f"Square first: {SUMMED}."),
        *((predicted(-(squares**0.5) / by), no_square) for by in (h, 2 * h, h**2, 2 * h**2)),
        *((k / by @ values, no_shares) for k in kernels for by in (1, k.sum())),
        (predicted(-s), "The minus is missing: the nearest keys must weigh most."),
        (predicted(h * s), "The bandwidth is not squared."),
        (predicted(2 * s), "The 2 of 2h² is missing."),
        (predicted(s / 2), "In 2h² only h is squared, and not the 2."),
        (predicted(h**4 * s), "That multiplies by h²: / 2 * h**2 needs parentheses, / (2 * h**2)."),
    ]
    try:
        got = call(function, queries, keys, values, h)
    except Wrong:
        raise
    except Exception as error:
        if not_written(error) or not _forgets_the_sum(function):
            raise
        words = f"{where} it stops with {type(error).__name__}: {SUMMED}, which leaves (m, n)"
        raise Wrong(f"{words} of them.") from None
    expect(got, builds.nadaraya_watson(queries, keys, values, h), where, mistakes)
    refuse_writing(function, queries, keys, values, h)
    _far_away(function, queries, keys, values, h)
    got = call(function, queries, keys, values, 1e6)
    expect(
        got, np.tile(values.mean(axis=0), (4, 1)), "for h = 1000000, where all keys count alike,"
    )
    return "near the keys, a thousand bandwidths away, and the mean for a very large bandwidth."


def _forgets_the_sum(function: Function) -> bool:
    """Whether a function that stops is right for one input, or gives a third axis for n of them."""
    q, k, v = np.asarray([[0.2], [0.5]]), np.asarray([[0.0], [1.0], [3.0]]), np.eye(3)
    with suppress(Exception):
        one_input = call(function, q, k, v, 0.8)
        if one_input.shape == (2, 3):
            return np.allclose(one_input, builds.nadaraya_watson(q, k, v, 0.8))
    with suppress(Exception):
        return call(function, q * np.ones(3), k * np.ones(3), v, 0.8).ndim == 3
    return False


def _far_away(
    function: Function, queries: np.ndarray, keys: np.ndarray, values: np.ndarray, h: float
) -> None:
    """Wrong unless a query that is 1000 h away gets the nearest value, beside one that is not."""
    queries, keys, values = (one.astype(np.float32) for one in (queries, keys, values))
    far = keys[2] + 1000 * h * keys[2] / np.linalg.norm(keys[2])
    nearest = values[np.argmin(np.sum((far - keys) ** 2, axis=1))]
    both = np.stack([queries[0], far])
    where = "in float32, for one query near the keys and one 1000 h away,"
    alone = call(function, far[None], keys, values, h)
    underflow = "Every exponential underflows, and 0/0 is left: subtract the largest score first."
    if np.all(np.isfinite(alone)) and not np.any(alone):
        raise Wrong(f"{where} you give 0:", f"a small constant in the sum hides 0/0. {underflow}")
    common = "Each query needs the largest score of its own: yours is one for all queries."
    cause = common if np.allclose(alone, nearest, rtol=1e-4) else underflow
    near = builds.nadaraya_watson(queries[:1], keys, values, h)[0]
    mistakes = [(np.stack([near, np.full(2, np.nan)]), cause)]
    expect(call(function, both, keys, values, h), np.stack([near, nearest]), where, mistakes)


@check
def epanechnikov(function: Function) -> str:
    """function(u): the Epanechnikov kernel, u an array of any shape."""
    constant = "The parabola is right, the constant is not.", 0.0
    for case in ([[0.0, 0.25], [0.9, 1.0]], [0.6], [1.5, 3.0], [0.5, 1.5]):
        u = np.asarray(case)
        parabola = np.maximum(0, 1 - u**2)
        where = f"at u = {', '.join(f'{one:g}' for one in u.ravel())}"
        mistakes = [
            (np.maximum(0, 1 - u), "That is the triangular kernel; Epanechnikov's is a parabola."),
            (0.75 * (1 - u**2), "A kernel is not negative: beyond u = 1 it is 0."),
            (0.75 * np.maximum(0, 1 - u), "The constant is right, but u is not squared."),
            (np.exp(-(u**2) / 2), "That is the Gaussian kernel."),
            (0 * u, "All values are 0: is a fraction rounded, as in 3 // 4?"),
        ]
        got = call(function, u)
        expect(got, 0.75 * parabola, where, mistakes, but_for_a_factor=constant)
    return "a parabola with area 1, and 0 beyond u = 1."


@check
def effective_neighbours(function: Function) -> str:
    """function(weights): one over the sum of the squared weights, for weights of shape (m, n)."""
    w = np.asarray([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    entropy = np.asarray([np.log(2), 1.5 * np.log(2)])
    by_key = "You sum over the queries: a query's weights are a row."
    mistakes = [
        (1 / np.sum(w**2, axis=0), by_key),
        ([0.5, 0.375], "That is the sum of squares: take one over it."),
        ([1.0, 1.0], "One over the sum is always 1: square the weights first."),
        ([2.0, 3.0], "That counts every weight above 0, however small."),
        (entropy, "That is the entropy: count with squares."),
    ]
    expect(call(function, w), [2.0, 8 / 3], "for the rows (½, ½, 0) and (¼, ¼, ½)", mistakes)
    square = np.asarray([[0.9, 0.1], [0.4, 0.6]])
    right, over_queries = (1 / np.sum(square**2, axis=axis) for axis in (1, 0))
    where = "for the rows (0.9, 0.1) and (0.4, 0.6)"
    expect(call(function, square), right, where, [(over_queries, by_key)])
    return "from 1, all weight on one key, to n, equal weights."


@check
def half_distance(function: Function) -> str:
    """function(bandwidth): the distance at which the Gaussian kernel is half of K(0)."""
    mistakes = [
        (3.0, "At a distance of h the kernel is e^(−1/2) = 0.61, not one half."),
        (3 / np.sqrt(2), "That holds for Epanechnikov's kernel: solve e^(−u²/2) = 1/2."),
        (3 * np.sqrt(np.log(2)), "The 2 of u²/2 is missing."),
        (3 * np.log(2), "The kernel falls with the square of u: solve u²/2 = ln 2."),
        (np.sqrt(2 * np.log(2)), "That is u: a distance is u times h."),
    ]
    expect(call(function, 3.0), 3 * np.sqrt(2 * np.log(2)), "for h = 3", mistakes, secret=True)
    return "h √(2 ln 2), a little more than one bandwidth."


@check
def gaussian_weights(function: Function) -> str:
    """function(distances, bandwidth): Gaussian weights of one query, also far from all data."""
    d, h = np.asarray([0.0, 1.0, 3.0]), 3.0

    def normal(k: np.ndarray) -> np.ndarray:
        return k / k.sum()

    kernel = np.exp(-(d**2) / (2 * h**2))
    mistakes = [
        (kernel, "These are kernel values: weights sum to 1."),
        (normal(np.exp(-(d**2) / h**2)), "The 2 of 2h² is missing."),
        (normal(np.exp(-(d**2) / (2 * h))), "The bandwidth is not squared."),
    ]
    expect(call(function, d, h), normal(kernel), "for distances 0, 1, 3 and h = 3", mistakes)
    far = np.asarray([1000.0, 1001.0, 1002.0], dtype=np.float32)
    got = call(function, far, 1.0)
    least = "Subtract the largest score, not the least distance: the squares of distances"
    mistakes = [
        (np.full(3, np.nan), "Every exponential underflows: subtract the largest one."),
        (np.zeros(3), "A small constant in the sum hides 0/0 as weights of 0."),
        (normal(np.exp([0, -0.5, -2])), f"{least} do not shift together."),
    ]
    expect(got, [1.0, 0.0, 0.0], "for distances 1000, 1001, 1002 and h = 1", mistakes)
    return "right near the data, and the nearest key far from them."


@check
def bandwidth_gradient(function: Function) -> str:
    """function(query, keys, values, bandwidth): the derivative of the Gaussian prediction by h."""
    rng = np.random.default_rng(1)
    keys, values, query, h = rng.normal(size=5), rng.normal(size=5), 0.3, 0.7
    d2 = (query - keys) ** 2
    w = np.exp(-d2 / (2 * h * h))
    w = w / w.sum()
    slope = np.sum(w * (d2 - np.sum(w * d2)) * values) / h**3
    mistakes = [
        (-slope, "The sign is turned: a larger h makes far keys count more."),
        (np.sum(w * d2 * values) / h**3, "The denominator has h too: subtract the mean of d²."),
        (slope * h, "That is the derivative with respect to log h: h times too large."),
        (slope * 2, "The 2 of 2h² goes: h⁻² has the derivative −2h⁻³."),
        (slope * h**3, "The h³ is missing: the exponent −d²/2h² has the derivative d²/h³."),
    ]
    expect(call(function, query, keys, values, h), slope, "for five points and h = 0.7", mistakes)
    return "the covariance of d² and the values under the weights, over h³."


PREDICT = '''
def predict(queries, keys, values, bandwidth):
    """Gaussian kernel regression: queries (m, d), keys (n, d), values (n, p)."""
    squares = ((queries[:, None, :] - keys[None, :, :]) ** 2).sum(axis=-1)
    s = -squares / (2 * bandwidth**2)
    kernel_values = np.exp(s - s.max())
    weights = kernel_values / kernel_values.sum(axis=1, keepdims=True)
    return weights @ values
'''


@check
def mended_prediction(function: Function) -> str:
    """function(queries, keys, values, bandwidth): PREDICT, mended so that it holds far away too."""
    return repaired(function, PREDICT, fault="kernel_values = np.exp(s - s.max())", test=_predicts)


def _predicts(function: Function) -> str:
    rng = np.random.default_rng(4)
    keys, values, h = rng.uniform(-1, 1, (7, 1)), rng.normal(size=(7, 1)), 0.5
    queries, nan = np.asarray([[0.0], [0.3], [40.0]]), np.full((3, 1), np.nan)
    s = -((queries - keys.T) ** 2) / (2 * h * h)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    right = e / e.sum(axis=1, keepdims=True) @ values
    near, far = np.arange(3)[:, None] < 2, "for queries at 0, 0.3 and 40"
    by_key = np.exp(s - s.max(axis=0))
    by_key = by_key / by_key.sum(axis=1, keepdims=True) @ values
    got = call(function, queries, keys, values, h)
    mistakes = [
        (np.where(near, right, nan), "All exponentials of the far query underflow: 0/0 is NaN."),
        (np.where(near, right, 0), "A silent 0 is worse than NaN: keep 0/0 from arising."),
        (np.where(near, right, values.mean()), "Far away the nearest key counts, not all alike."),
        (by_key, "That is the largest score of each key: a softmax runs along a query's row."),
    ]
    expect(got, right, far, mistakes)
    return "each query has a largest score of its own."


@check
def two_bandwidths(function: Function) -> str:
    """function(keys, values): one bandwidth a coordinate, for keys of shape (n, 2).

    Twice: first the second input does nothing, then the first one.
    """
    cases, found = [_one_input(seed, useful) for seed, useful in ((3, 0), (5, 1))], []
    for keys, values, _, _ in cases:
        h = call(function, keys, values)
        if h.shape != (2,) or not np.all((h > 0) & np.isfinite(h)):
            numbers = ", ".join(show(one) for one in h.ravel()[:4])
            shape = "" if h.shape == (2,) else f", of shape {h.shape}"
            raise Wrong(f"you give {numbers}{shape}; expected two numbers above 0, of shape (2,).")
        found.append(h)
    errors = [_error(h, case) for h, case in zip(found, cases, strict=True)]
    best = [_error(h, case) for h, case in zip(([0.15, 30], [30, 0.15]), cases, strict=True)]
    right = [e <= 1.15 * b for e, b in zip(errors, best, strict=True)]
    if any(right) and not all(right) and np.allclose(found[0], found[1]):
        pair = f"h = ({found[0][0]:.2g}, {found[0][1]:.2g})"
        other = "second" if right[1] else "first"
        raise Wrong(
            f"{pair} is right if the {other} input matters, and you give it if the other does."
        )
    for h, case, got, least, good in zip(found, cases, errors, best, right, strict=True):
        words = (
            f"h = ({h[0]:.2g}, {h[1]:.2g}) has held-out error {got:.3f}, {least:.3f} is possible."
        )
        if good:
            continue
        if h.min() < 0.05:
            raise Wrong(words, "So small an h recalls each point: leave the point itself out.")
        if np.isclose(h[0], h[1]):
            raise Wrong(words, "One bandwidth for both treats the noise input like the other.")
        if _error(h[::-1], case) <= 1.15 * least:
            raise Wrong(words, "The two bandwidths are swapped.")
        grid = "Is the grid wide enough for the one input, fine enough for the other?"
        raise Wrong(f"{words} {grid}")
    return f"{words} One input does not matter, and its bandwidth says so."


def _one_input(seed: int, useful: int) -> tuple[np.ndarray, ...]:
    """Keys, values, queries and true values, of a curve of one of the two inputs."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, (700, 2))
    y = datasets.curve(x[:, [useful]]) + 0.3 * rng.standard_normal((700, 1))
    return x[:200], y[:200], x[200:], y[200:]


def _error(bandwidth: Sequence[float] | np.ndarray, case: tuple[np.ndarray, ...]) -> float:
    keys, values, queries, truth = case
    h = [float(one) for one in bandwidth]
    found = regression.nadaraya_watson(queries, keys, values, bandwidth=h)
    return float(np.mean((truth - found) ** 2))
