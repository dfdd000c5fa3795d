"""Checks for chapter 1. Each knows the usual wrong answers by what they give."""

import numpy as np

from attnbook import datasets
from attnbook.checks.answers import call
from attnbook.checks.verdict import Function, Wrong, check, expect
from attnbook.regression import nadaraya_watson


@check
def epanechnikov(function: Function) -> str:
    """function(u): the Epanechnikov kernel, u an array of any shape."""
    for u in (np.asarray([0.6]), np.asarray([[0.0, 0.25], [0.9, 1.0]]), np.asarray([1.5, 3.0])):
        expect(
            call(function, u),
            0.75 * np.maximum(0, 1 - u**2),
            f"at u = {', '.join(f'{one:g}' for one in u.ravel())}",
            [
                (
                    np.maximum(0, 1 - u),
                    "That is the triangular kernel; Epanechnikov's is a parabola.",
                ),
                (
                    np.maximum(0, 1 - u**2),
                    "The parabola is right, the constant is not.",
                ),
                (0.75 * (1 - u**2), "A kernel is not negative: beyond u = 1 it is 0."),
                (0.75 * np.maximum(0, 1 - u), "The constant is right, but u is not squared."),
                (0.75 * (u <= 1), "That is constant within the bandwidth: a boxcar."),
            ],
        )
    return "a parabola with area 1, and 0 beyond u = 1."


@check
def effective_neighbours(function: Function) -> str:
    """function(weights): one over the sum of the squared weights, for weights of shape (m, n)."""
    w = np.asarray([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])
    entropy = np.asarray([np.log(2), 1.5 * np.log(2)])
    expect(
        call(function, w),
        [2.0, 8 / 3],
        "for the rows (½, ½, 0) and (¼, ¼, ½)",
        [
            ([0.5, 0.375], "That is the sum of squares: take one over it."),
            ([1.0, 1.0], "One over the sum is always 1: square the weights first."),
            ([2.0, 3.0], "That counts every weight above 0, however small."),
            (np.exp(entropy), "That is the exponential of the entropy, another measure."),
            (1 / np.sqrt([0.5, 0.375]), "Take one over the sum of squares, without a square root."),
        ],
    )  # fmt: skip
    square = np.asarray([[0.9, 0.1], [0.4, 0.6]])
    expect(
        call(function, square),
        1 / np.sum(square**2, axis=1),
        "for the rows (0.9, 0.1) and (0.4, 0.6)",
        [(1 / np.sum(square**2, axis=0), "You sum over the queries: a query's weights are a row.")],
    )
    return "from 1, all weight on one key, to n, equal weights."


@check
def gaussian_weights(function: Function) -> str:
    """function(distances, bandwidth): Gaussian weights of one query, also far from all data."""
    d, h = np.asarray([0.0, 1.0, 3.0]), 3.0

    def normal(k: np.ndarray) -> np.ndarray:
        return k / k.sum()

    kernel = np.exp(-(d**2) / (2 * h**2))
    expect(
        call(function, d, h),
        normal(kernel),
        "for distances 0, 1, 3 and h = 3",
        [
            (kernel, "These are kernel values: weights sum to 1."),
            (normal(np.exp(-(d**2) / h**2)), "The 2 of 2h² is missing: that is the ℓ convention."),
            (normal(np.exp(-(d**2) / (2 * h))), "The bandwidth is not squared."),
            (normal(np.exp(-d / (2 * h**2))), "The distance is not squared."),
            (
                normal(np.exp(d**2 / (2 * h**2))),
                "The sign is missing: far keys get the most weight.",
            ),
        ],
    )
    far = np.asarray([1000.0, 1001.0, 1002.0], dtype=np.float32)
    with np.errstate(invalid="ignore", divide="ignore"):
        got = call(function, far, 1.0)
    expect(
        got,
        [1.0, 0.0, 0.0],
        "for distances 1000, 1001, 1002 and h = 1",
        [
            (np.full(3, np.nan), "Every exponential underflows: subtract the largest one."),
            (np.zeros(3), "A small constant in the sum hides 0/0 as weights of 0."),
            (np.full(3, 1 / 3), "Equal weights: the nearest key should win by exp(1000.5)."),
        ],
    )  # fmt: skip
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
    expect(
        call(function, query, keys, values, h),
        slope,
        "for five points and h = 0.7",
        [
            (-slope, "The sign is turned: a larger h makes far keys count more."),
            (np.sum(w * d2 * values) / h**3, "The denominator has h too: subtract the mean of d²."),
            (slope * h, "That is the derivative by log h: h times too large."),
            (slope * h**3, "The h³ is missing: the exponent −d²/2h² has the derivative d²/h³."),
        ],
    )  # fmt: skip
    return "the covariance of d² and the values under the weights, over h³."


@check
def local_linear(function: Function) -> str:
    """function(query, keys, values, bandwidth): the weighted line's height at the query."""
    rng = np.random.default_rng(2)
    keys = np.sort(rng.uniform(0, 1, 11))
    values, query, h = np.sin(5 * keys), 0.9, 0.2
    w = np.exp(-((query - keys) ** 2) / (2 * h * h))
    root, centred = np.sqrt(w), keys - query
    slope, height = np.polyfit(centred, values, 1, w=root)
    at_zero = np.polyfit(keys, values, 1, w=root)[1]
    for_all = np.polyval(np.polyfit(keys, values, 1), query)
    twice = np.polyfit(centred, values, 1, w=w)[1]
    expect(
        call(function, query, keys, values, h),
        height,
        "for eleven points of a sine, query 0.9, h = 0.2",
        [
            (np.sum(w * values) / w.sum(), "That is the local constant: fit a slope too."),
            (slope, "That is the slope of the line: return its height at the query."),
            (at_zero, "That is the height at x = 0, not at the query."),
            (for_all, "That is one line for all: weight the squares."),
            (twice, "The kernel enters twice: rows by √K, not by K."),
        ],
    )  # fmt: skip
    return "a straight line is fitted without bias, at the edge too."


@check
def data_for_half_the_error(function: Function) -> str:
    """function(): the factor by which n must grow for half the error, h always the best."""
    expect(
        call(function),
        2**1.25,
        "As an answer",
        [
            (2.0, "That is the rate 1/n of a mean or a line."),
            (4.0, "That halves a standard error, n^(−1/2): the error here is squared."),
            (32.0, "That factor halves the best bandwidth, n^(−1/5), not the error."),
            (2**0.8, "That is 2^(4/5): solve r^(−4/5) = 1/2 for r."),
        ],
        tolerance=0.01,
    )  # fmt: skip
    return "r^(−4/5) = 1/2, r = 2^(5/4): the price of not knowing the curve's form."


@check
def two_bandwidths(function: Function) -> str:
    """function(keys, values): one bandwidth a coordinate, for keys of shape (n, 2)."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-3, 3, (700, 2))
    y = datasets.curve(x[:, :1]) + 0.3 * rng.standard_normal((700, 1))
    keys, values, queries, truth = x[:200], y[:200], x[200:], y[200:]
    h = call(function, keys, values)
    if h.shape != (2,) or not np.all((h > 0) & np.isfinite(h)):
        raise Wrong(f"you give {h}, expected two numbers above 0.")

    def error(bandwidth: list[float]) -> float:
        residuals = truth - nadaraya_watson(queries, keys, values, bandwidth=bandwidth)
        return float(np.mean(residuals**2))

    got, best = error(list(h)), error([0.15, 30.0])
    words = f"h = ({h[0]:.2g}, {h[1]:.2g}) has held-out error {got:.3f}, {best:.3f} is possible."
    if got <= 1.15 * best:
        return f"{words} The second input does not matter, and its bandwidth says so."
    if np.isclose(h[0], h[1]):
        raise Wrong(f"{words} One bandwidth for both treats the noise input like the other.")
    if error(list(h[::-1])) <= 1.15 * best:
        raise Wrong(f"{words} The two bandwidths are swapped.")
    if h.min() < 0.05:
        raise Wrong(f"{words} So small an h recalls each point: leave the point itself out.")
    raise Wrong(f"{words} Is the grid wide enough for the second input, fine enough for the first?")
