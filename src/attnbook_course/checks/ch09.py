"""Checks for chapter 9. Each knows the usual wrong answers by what they give."""

from typing import Any

import numpy as np

from attnbook.attention import softmax
from attnbook.kernel.gaussian_process import covariance
from attnbook_course.checks.call import call, call_pair
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.verdict import Function, Wrong, check, expect, one_number, show


@check
def one_pair(function: Function) -> str:
    """function(distance, value, length_scale, noise): posterior mean and variance, one pair."""
    for r, y, scale, noise in ((0.4, 1.5, 0.7, 0.5), (0.3, -2.0, 0.4, 0.3)):
        k, s = np.exp(-0.5 * (r / scale) ** 2), 1 + noise**2
        mean, variance = k * y / s, 1 - k**2 / s
        first, second = call_pair(function, r, y, scale, noise)
        where = f"for ({r}, {y}, {scale}, {noise})"
        first, second = (one_number(part, where) for part in (first, second))
        if np.allclose([first, second], [variance, mean], atol=1e-5):
            raise Wrong(f"{where} the first is the variance: return the mean first.")
        mistakes = [
            (y, "That is Nadaraya–Watson: with one key its weight is 1 at any distance."),
            (k * y, "The noise is missing."),
            (k * y / (1 + noise), "The noise is a standard deviation: square it."),
        ]
        expect(first, mean, f"{where}, in the mean,", mistakes, secret=True)
        mistakes = [
            (1 - k / s, "The covariance stands there twice, on the left and on the right."),
            (variance + noise**2, "That is for a noisy value: the function itself has no noise."),
        ]
        expect(second, variance, f"{where}, in the variance,", mistakes, secret=True)
    return "far from its key a value says nothing, and close to it noise still counts."


@check
def bandwidths_of(function: Function) -> str:
    """function(form): two bandwidths, from the entries (x, x') and (1, x'²) of the matrix A."""
    for first, second in ((0.5, 0.2), (0.085, 0.09)):
        form = np.random.default_rng(6).normal(size=(3, 3)) / first**2
        form[1, 1], form[0, 2] = 1 / first**2, -1 / (2 * second**2)
        got = call_pair(function, form)
        where = f"for a matrix of bandwidths {first} and {second},"
        one, two = (one_number(part, where) for part in got)
        if np.allclose([one, two], [second, first], rtol=1e-5):
            raise Wrong(f"{where} the first is that of x'²: return that of x x' first.")
        mistakes = [
            (first**2, "That is h². Take the root."),
            (first / 2**0.5, "There is a 2 too many: x x' stands in the square twice, halved."),
        ]
        expect(one, first, f"{where} in the first,", mistakes)
        mistakes = [
            (second * 2**0.5, "The entry is −1/(2h²): there is a 2."),
            (np.nan, "The entry is negative, and a root of it is no number: mind the sign."),
            (abs(2 * form[2, 0]) ** -0.5, "Rows are the query's: nothing determines this column."),
        ]
        expect(two, second, f"{where} in the second,", mistakes)
    return "where the two agree, the layer is a Gaussian kernel, and this is its bandwidth."


IN_TURN = '''
def answers_in_turn(x, y, bandwidth):
    """Predict y[1:] by kernel regression, each from the pairs before it."""
    squares = (x[1:, None] - x[None, :]) ** 2
    allowed = np.tri(len(x) - 1, len(x), k=1, dtype=bool)
    s = np.where(allowed, -squares / (2 * bandwidth**2), -np.inf)
    return softmax(s) @ y
'''


@check
def mended_in_turn(function: Function) -> str:
    """function(x, y, bandwidth): IN_TURN, mended so that no answer sees its own value."""
    fault = "allowed = np.tri(len(x) - 1, len(x), k=1, dtype=bool)"
    return repaired(function, IN_TURN, fault=fault, test=_in_turn)


def _in_turn(function: Function) -> str:
    (x, y), h = np.random.default_rng(7).uniform(-1, 1, (2, 6)), 0.4
    s = -((x[1:, None] - x) ** 2) / (2 * h**2)

    def by(seen: np.ndarray) -> np.ndarray:
        kernel = np.exp(s) * seen
        return kernel @ y / kernel.sum(axis=1)

    got = call(function, x, y, h)
    first = np.where(np.arange(5) == 0, np.nan, by(np.tri(5, 6, k=-1)))
    mistakes = [
        (by(np.tri(5, 6, k=1)), "Each answer still sees the pair that it is to predict."),
        (first, "The pair directly before is hidden too, and the first answer has nothing to see."),
        (by(1 - np.eye(5, 6, k=1)), "Its own pair is hidden, but the later ones are not."),
        (by(np.ones((5, 6))), "Every answer sees every pair."),
    ]
    expect(got, by(np.tri(5, 6)), "for 6 pairs", mistakes)
    return "An error below the noise is too good to be true: look for the answer in the input."


@check
def posterior_weights(function: Function) -> str:
    """function(queries, keys, length_scale, noise): weights (m, n) of the posterior mean."""
    rng = np.random.default_rng(2)
    for m, n, scale, noise in ((3, 5, 0.3, 0.4), (2, 7, 0.5, 0.2)):
        queries, keys = rng.uniform(-1, 1, m), rng.uniform(-1, 1, n)
        between, among = covariance(queries, keys, scale), covariance(keys, keys, scale)
        noisy = among + noise**2 * np.eye(n)
        right = between @ np.linalg.inv(noisy)
        got = call(function, queries, keys, scale, noise)
        where = f"for {m} queries and {n} keys"
        sd = np.linalg.inv(among + noise * np.eye(n))
        mistakes = [
            (right / right.sum(1, keepdims=True), "These weights need not sum to 1: no division."),
            (between / between.sum(1, keepdims=True), "Those are Nadaraya–Watson's weights."),
            (between @ np.linalg.inv(among), "The noise is missing."),
            (between @ sd, "The noise is a standard deviation: square it."),
        ]
        expect(got, right, where, mistakes)
    return "a weighted average whose keys know of each other."


@check
def weights_error(function: Function) -> str:
    """function(weights, queries, keys, length_scale, noise): expected squared error (m,)."""
    rng = np.random.default_rng(4)
    for m, n, scale, noise in ((3, 5, 0.4, 0.5), (5, 2, 0.3, 0.3)):
        queries, keys = rng.uniform(-1, 1, m), rng.uniform(-1, 1, n)
        w = rng.dirichlet(np.ones(n), size=m) + rng.normal(size=(m, n)) / 3
        between = covariance(queries, keys, scale)
        noisy = covariance(keys, keys, scale) + noise**2 * np.eye(n)
        cross = (w * between).sum(1)
        right = (w @ noisy * w).sum(1) - 2 * cross + 1
        got = call(function, w, queries, keys, scale, noise)
        where = f"for {m} queries and {n} keys"
        least = 1 - (between * np.linalg.solve(noisy, between.T).T).sum(1)
        squares = noise**2 * (w**2).sum(1)
        mistakes = [
            (right - squares, "The noise of the values is missing."),
            (right - squares + noise * (w**2).sum(1), "Its standard deviation is σ: square it."),
            (right + noise**2, "The target is the function, without noise."),
            (least, "That is for the posterior's own weights: use the weights given."),
        ]
        expect(got, right, where, mistakes)
    return "an error curve without a single function drawn."


@check
def posterior_left_out(function: Function) -> str:
    """function(keys, values, length_scale, noise): mean and variance of y_i from the others."""
    rng = np.random.default_rng(5)
    for n, scale, noise in ((5, 0.5, 0.4), (7, 0.3, 0.3)):
        keys = np.linspace(-1, 1, n) + rng.uniform(-0.1, 0.1, n)
        values = rng.normal(size=n)
        noisy = covariance(keys, keys, scale) + noise**2 * np.eye(n)
        inverse = np.linalg.inv(noisy)
        variance = 1 / np.diag(inverse)
        solved = inverse @ values
        residual = solved * variance
        first, second = call_pair(function, keys, values, scale, noise)
        where = f"for {n} keys"
        if first.shape == second.shape == (n,) and np.allclose(first, variance, atol=1e-5):
            raise Wrong(f"{where} the first is the variance: return the mean first.")
        mistakes = [
            (residual, "That is y − mean: what is left, not the prediction."),
            (values - noise**2 * solved, "That is with all keys: key i still sees its own value."),
            (values - solved, "Divide by the diagonal of the inverse."),
        ]
        expect(first, values - residual, f"{where}, in the mean,", mistakes)
        mistakes = [
            (np.diag(inverse), "Turn it over: that is one over the variance."),
            (variance - noise**2, "That is the function's: a noisy value has σ² more."),
        ]
        expect(second, variance, f"{where}, in the variance,", mistakes)
    return "n refits for the price of one inverse."


def _gauss_weights(queries: np.ndarray, keys: np.ndarray, scale: float, noise: float) -> np.ndarray:
    noisy = covariance(keys, keys, scale) + noise**2 * np.eye(len(keys))
    return np.asarray(covariance(queries, keys, scale) @ np.linalg.inv(noisy))


@check
def prefix_mask(function: Function) -> str:
    """function(n): mask (2n, 2n) of n pairs, then n queries: query i knows the pairs before it."""
    for n in (5, 3, 1):
        got = call(function, n)
        where = f"for n = {n}"
        if got.shape != (2 * n, 2 * n):
            tokens = f"{n} pairs and {n} queries are {2 * n} tokens"
            raise Wrong(f"{where} you give shape {got.shape}: {tokens}.")
        if not np.all((got == 0) | (got == 1)):
            raise Wrong(f"{where} some entries are neither True nor False: nothing is added here.")
        causal, before, own = np.tri(n), np.tri(n, k=-1), np.eye(n)
        right = np.block([[causal, 0 * own], [before, own]])
        order = np.arange(2 * n).reshape(2, n).T.ravel()
        for wrong, cause in (
            (1 - right, "It is the other way round: True = may attend."),
            (right[order][:, order], "Pairs and queries alternate: first come all pairs."),
        ):
            if n > 1 and np.array_equal(got, wrong):
                raise Wrong(f"{where}: {cause}")
        if np.any(got[:n, n:]):
            raise Wrong(f"{where} a pair attends to a query: none may but that query itself.")
        mistakes = [(causal, "Query i sees pair i: that pair holds the answer.")]
        expect(got[n:, :n], before, f"{where}, queries on pairs,", mistakes)
        mistakes = [(0 * own, "Query 0 has nothing to attend to: let a query see itself.")]
        expect(got[n:, n:], own, f"{where}, queries on queries,", mistakes)
        leak = "Pair 0 sees a later pair; query 1 sees pair 0 a layer later, and with it its answer"
        mistakes = [(np.ones((n, n)), f"{leak}.")]
        expect(got[:n, :n], causal, f"{where}, pairs on pairs,", mistakes)
    return "n context sizes in one pass, and no answer leaks through the layers."


@check
def gradient_layer(function: Function) -> str:
    """function(p, n, rate): W_q, W_k, W_v, each (p + 1, p + 1): a layer that is one step."""
    rng = np.random.default_rng(7)
    for p, n, rate in ((2, 5, 0.3), (3, 7, 0.7)):
        got = call(function, p, n, rate)
        where = f"for p = {p}, n = {n}, rate = {rate}"
        if got.shape != (3, p + 1, p + 1):
            form = f"expected three matrices of shape ({p + 1}, {p + 1})"
            raise Wrong(f"{where} you give shape {got.shape}, {form}.")
        x, y = rng.normal(size=(n + 4, p)), np.append(rng.normal(size=n), np.zeros(4))
        tokens = np.column_stack([x, y])
        q, k, v = (tokens @ w.T for w in got)
        added = q @ k[:n].T @ v[:n]
        if not np.allclose(added[:, :p], 0, atol=1e-5):
            raise Wrong(f"{where} the layer changes x: values may have a last entry alone.")
        step = rate * x @ (x[:n].T @ y[:n]) / n  # x · β after one step from 0
        mistakes = [
            (step[n:], "The sign: it should hold minus the prediction."),
            (-step[n:] * n, "The loss is a mean: divide by n."),
            (-step[n:] / rate, "The learning rate is missing."),
            (added[n:, p], _of_step(added[n:, p], -step[n:])),
        ]
        expect(added[n:, p], -step[n:], f"{where}, in the last entry of the queries,", mistakes)
        mistakes = [(added[:n, p], "The queries are right: y may enter no score of a pair.")]
        expect(added[:n, p], -step[:n], f"{where}, in the last entry of the pairs,", mistakes)
    return "what is left of y goes through the layers: as many steps as layers."


def _of_step(added: np.ndarray, right: np.ndarray) -> str:
    """What is wrong with a step of no known cause."""
    times = float(added @ right / (right @ right))
    if np.allclose(added, times * right, rtol=0, atol=1e-5 * np.abs(right).max()):
        return f"That is {show(times)} times one step: the factor should be −rate/n, once."
    return "That is no multiple of a step: scores are x · x_j, and values the last entry alone."


@check
def unknown_scale(function: Function) -> str:
    """function(queries, keys, values, length_scales, noise): mean and variance (m,) over all."""
    rng = np.random.default_rng(8)
    scales = np.asarray([0.15, 0.3, 0.6, 1.2])
    for m, n, noise, size in ((3, 5, 0.4, 1.0), (2, 41, 0.5, 50.0)):
        queries, keys = rng.uniform(-1, 1, m), rng.uniform(-1, 1, n)
        values = size * (np.sin(3 * keys) + rng.normal(size=n))
        noisy = [covariance(keys, keys, scale) + noise**2 * np.eye(n) for scale in scales]
        solved = [np.linalg.solve(a, values) for a in noisy]
        means = np.stack([covariance(queries, keys, scales[i]) @ x for i, x in enumerate(solved)])
        fit = np.asarray([values @ x for x in solved])
        volume = np.linalg.slogdet(np.stack(noisy))[1]
        got, spread = call_pair(function, queries, keys, values, scales, noise)
        where = f"for {m} queries, {n} pairs and {len(scales)} length scales"
        if np.any(np.isnan(got)):
            raise Wrong(f"{where} you give NaN: do all exponentials underflow to 0?")
        if size > 1 and got.shape == (m,) and not np.any(got):
            raise Wrong(f"{where} you give 0: do all exponentials underflow?")
        share: Any = softmax(-(fit + volume) / 2)
        mean = share @ means
        mistakes = [
            (means.mean(0), "All length scales count the same: the data should tell."),
            (means[np.argmin(fit + volume)], "That is the likeliest one alone: average."),
            (softmax(-fit / 2) @ means, "log |A| / 2 is missing: every short scale fits."),
        ]
        expect(got, mean, f"{where}, in the mean,", mistakes, tolerance=1e-4)
        if size > 1:
            continue  # in float32 the squares of such values drown their difference
        inner = np.stack([_variance(queries, keys, float(s), noise) for s in scales])
        apart = share @ (means - mean) ** 2
        right = share @ inner + apart
        mistakes = [(share @ inner, "The hypotheses' means differ too: that is missing.")]
        expect(spread, right, f"{where}, in the variance,", mistakes, tolerance=1e-4)
    return "what a mixture does not know is what its parts do not know, and which part is true."


def _variance(queries: np.ndarray, keys: np.ndarray, scale: float, noise: float) -> np.ndarray:
    taken = _gauss_weights(queries, keys, scale, noise) * covariance(queries, keys, scale)
    return np.asarray(1 - taken.sum(1))
