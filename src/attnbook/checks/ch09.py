"""Checks for chapter 9. Each knows the usual wrong answers by what they give."""

import numpy as np

from attnbook.checks._ch09_layers import gradient_layer, prefix_mask, unknown_scale
from attnbook.checks._numbers import gauss, softmax
from attnbook.checks.answers import call, call_pair
from attnbook.checks.verdict import Function, Wrong, check, expect, one_number

__all__ = [
    "gradient_layer",
    "one_pair",
    "posterior_left_out",
    "posterior_weights",
    "prefix_mask",
    "unknown_scale",
    "weights_error",
]


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
        expect(first, mean, f"{where}, in the mean,", [
            (y, "That is Nadaraya–Watson: with one key its weight is 1 at any distance."),
            (k * y, "The noise is missing."),
            (k * y / (1 + noise), "The noise is a standard deviation: square it."),
            (y / s, "The distance has no effect."),
            (k**2 * y / s, "The exponent is −(r/ℓ)²/2: there is a 2."),
            (k**0.5 * y / s, "There is one 2 too many: the exponent is −(r/ℓ)²/2."),
            (k * y / noise**2, "The pair's own variance is 1 + σ²: its covariance is missing."),
            (k * y + 0 * s if s == 1 else k * y * s, "You multiply by 1 + σ²: divide."),
            (np.exp(-0.5 * r / scale) * y / s, "The distance is not squared."),
            (np.exp(-0.5 * r**2 / scale) * y / s, "The length scale is squared too."),
            (k * y / s**0.5, "Divide by 1 + σ², without a root."),
        ], secret=True)  # fmt: skip
        expect(second, variance, f"{where}, in the variance,", [
            (1 - k**2, "The noise plays no part: what is divided by?"),
            (1 - k**2 / (1 + noise), "Here σ is not squared."),
            (1 - k / s, "The covariance stands there twice, on the left and on the right."),
            (variance + noise**2, "That is for a noisy value: the function itself has no noise."),
            (variance**0.5, "That is a standard deviation."),
            (k**2 / s, "That is what the pair takes away. How much is there before?"),
            (s - k**2 / s, "That is for a noisy value: the function itself has no noise."),
            (1 - k**2 / noise**2, "The pair's own variance is 1 + σ²: its covariance is missing."),
            (1 + k**2 / s, "The sign: a pair makes the variance smaller."),
            (1 - k**2 / s**2, "Divide once by 1 + σ²."),
            (1 - k**2 / s**0.5, "Divide by 1 + σ², without a root."),
        ], secret=True)  # fmt: skip
    return "far from its key a value says nothing, and close to it noise still counts."


@check
def posterior_weights(function: Function) -> str:
    """function(queries, keys, length_scale, noise): weights (m, n) of the posterior mean."""
    rng = np.random.default_rng(2)
    for m, n, scale, noise in ((3, 5, 0.3, 0.4), (2, 7, 0.5, 0.2)):
        queries, keys = rng.uniform(-1, 1, m), rng.uniform(-1, 1, n)
        between, among = gauss(queries, keys, scale), gauss(keys, keys, scale)
        noisy = among + noise**2 * np.eye(n)
        right = between @ np.linalg.inv(noisy)
        got = call(function, queries, keys, scale, noise)
        where = f"for {m} queries and {n} keys"
        if got.shape == (n, m):
            raise Wrong(f"{where} you give shape {got.shape}: queries are rows, keys columns.")
        sd = np.linalg.inv(among + noise * np.eye(n))
        everywhere = np.linalg.inv(noisy + noise**2 * (1 - np.eye(n)))
        expect(got, right, where, [
            (right / right.sum(1, keepdims=True), "These weights need not sum to 1: no division."),
            (between / between.sum(1, keepdims=True), "Those are Nadaraya–Watson's weights."),
            (between, "Those are the covariances: K + σ²I is missing."),
            (between / noise**2, "K is missing: only σ²I is divided by."),
            (between / (1 + noise**2), "K is more than its diagonal: keys know of each other."),
            (between @ np.linalg.inv(among), "The noise is missing."),
            (between @ sd, "The noise is a standard deviation: square it."),
            (between @ everywhere, "σ² belongs on the diagonal alone: noise is independent."),
            (between @ noisy, "K + σ²I is multiplied by, in place of its inverse."),
            (softmax(right), "There is no softmax: weights may be below 0, and need not sum to 1."),
            (np.abs(right), "Weights below 0 are right here: leave their sign."),
            (-right, "The sign is turned."),
            (between @ np.linalg.inv(among + noise**4 * np.eye(n)), "σ is squared once."),
            (between @ np.linalg.inv(among - noise**2 * np.eye(n)), "The noise is added: K + σ²I."),
            (between / noisy.sum(0), "Take the inverse of the matrix, not of its sums."),
            *((_gauss_weights(queries, keys, scale * f, noise), cause) for f, cause in (
                (scale**-0.5, "The length scale is squared in the exponent."),
                (2**-0.5, "The exponent is −(r/ℓ)²/2: there is a 2."),
                (2**0.5, "The exponent is −(r/ℓ)²/2: the 2 is there once."))),
            (np.maximum(right, 0), "Weights below 0 are right here: leave them."),
        ])  # fmt: skip
    return "a weighted average whose keys know of each other."


@check
def weights_error(function: Function) -> str:
    """function(weights, queries, keys, length_scale, noise): expected squared error (m,)."""
    rng = np.random.default_rng(4)
    for m, n, scale, noise in ((3, 5, 0.4, 0.5), (5, 2, 0.3, 0.3)):
        queries, keys = rng.uniform(-1, 1, m), rng.uniform(-1, 1, n)
        w = rng.dirichlet(np.ones(n), size=m) + rng.normal(size=(m, n)) / 3
        between = gauss(queries, keys, scale)
        noisy = gauss(keys, keys, scale) + noise**2 * np.eye(n)
        cross = (w * between).sum(1)
        right = (w @ noisy * w).sum(1) - 2 * cross + 1
        got = call(function, w, queries, keys, scale, noise)
        where = f"for {m} queries and {n} keys"
        if got.shape in ((m, m), ()):
            raise Wrong(f"{where} you give shape {got.shape}: one error for each query, ({m},).")
        least = 1 - (between * np.linalg.solve(noisy, between.T).T).sum(1)
        squares = noise**2 * (w**2).sum(1)
        expect(got, right, where, [
            (right - squares, "The noise of the values is missing."),
            (right - squares + noise * (w**2).sum(1), "Its standard deviation is σ: square it."),
            (right - squares + noise**2 * w.sum(1) ** 2, "The noise gives σ² Σ w², not σ² (Σ w)²."),
            (right - squares + noise**2, "Each value's noise is weighted too: by w²."),
            (right + noise**2, "The target is the function, without noise."),
            (right + cross, "The cross term stands there twice: the square has 2ab."),
            (right + 4 * cross, "The sign: where f is close to the keys' values, the error falls."),
            (least, "That is for the posterior's own weights: use the weights given."),
            (right - 1, "The 1 is missing: f(q) has the variance 1."),
            (1 - cross, "That is for the posterior's own weights: use the weights given."),
            (right + 2 * cross, "The cross term is missing: f(q) and the values are related."),
            (right - 1 - (w @ noisy * w).sum(1), "Two terms of the square are missing."),
            (right + 2 * cross - cross**2, "The square of a sum has 2ab, not the square of it."),
            (2 * right, "There is a factor 2 too many."),
            (right + 2 * noise**2, "The target is the function, without noise."),
            (squares, "That is the noise alone: the weights miss the function too."),
            (right**0.5, "That is the root: return the expected square."),
        ])  # fmt: skip
    return "an error curve without a single function drawn."


@check
def posterior_left_out(function: Function) -> str:
    """function(keys, values, length_scale, noise): mean and variance of y_i from the others."""
    rng = np.random.default_rng(5)
    for n, scale, noise in ((5, 0.5, 0.4), (7, 0.3, 0.3)):
        keys = np.linspace(-1, 1, n) + rng.uniform(-0.1, 0.1, n)
        values = rng.normal(size=n)
        noisy = gauss(keys, keys, scale) + noise**2 * np.eye(n)
        inverse = np.linalg.inv(noisy)
        variance = 1 / np.diag(inverse)
        solved = inverse @ values
        residual = solved * variance
        first, second = call_pair(function, keys, values, scale, noise)
        where = f"for {n} keys"
        if first.shape == second.shape == (n,) and np.allclose(first, variance, atol=1e-5):
            raise Wrong(f"{where} the first is the variance: return the mean first.")
        silent = np.linalg.inv(noisy - noise**2 * np.eye(n))
        sd = np.linalg.inv(noisy + (noise - noise**2) * np.eye(n))
        expect(first, values - residual, f"{where}, in the mean,", [
            (residual, "That is y − mean: what is left, not the prediction."),
            (values + residual, "The sign: the prediction is y less what is left."),
            (values - noise**2 * solved, "That is with all keys: key i still sees its own value."),
            (residual - values, "The sign: the prediction is y less what is left."),
            (values - solved * np.diag(inverse), "Divide by the diagonal: you multiply."),
            (values - solved * variance**2, "Divide by the diagonal once."),
            (values - solved / inverse.sum(1), "Divide by the diagonal, not by sums of rows."),
            ((noisy - noise**2 * np.eye(n)) @ solved,
             "That is with all keys: key i still sees its own value."),
            (values - solved, "Divide by the diagonal of the inverse."),
            (values - solved / (1 + noise**2), "Take the diagonal of the inverse, not of K + σ²I."),
            (values - silent @ values / np.diag(silent), "The noise is missing."),
            (values - sd @ values / np.diag(sd), "The noise is a standard deviation: square it."),
        ])  # fmt: skip
        expect(second, variance, f"{where}, in the variance,", [
            (np.diag(inverse), "Turn it over: that is one over the variance."),
            (variance - noise**2, "That is the function's: a noisy value has σ² more."),
            (noise**2 - noise**4 * np.diag(inverse), "That is with all keys: leave key i out."),
            (variance**0.5, "That is a standard deviation."),
            (variance + noise**2, "The noise is in it already: A has σ² on its diagonal."),
            (1 - variance, "That is what the others tell. What is left?"),
            (variance**2, "One over the diagonal, once."),
            (1 / np.diag(noisy), "Take the diagonal of the inverse, not of K + σ²I."),
            (np.diag(noisy), "That is before the other values are seen."),
            (1 / np.diag(silent), "There is no noise on the diagonal of K."),
        ])  # fmt: skip
    return "n refits for the price of one inverse."


def _gauss_weights(queries: np.ndarray, keys: np.ndarray, scale: float, noise: float) -> np.ndarray:
    noisy = gauss(keys, keys, scale) + noise**2 * np.eye(len(keys))
    return np.asarray(gauss(queries, keys, scale) @ np.linalg.inv(noisy))
