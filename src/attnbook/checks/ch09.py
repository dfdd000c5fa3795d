"""Checks for chapter 9. Each knows the usual wrong answers by what they give."""

import numpy as np

from attnbook.checks.answers import call, call_pair
from attnbook.checks.verdict import Function, Wrong, check, expect


@check
def one_pair(function: Function) -> str:
    """function(distance, value, length_scale, noise): posterior mean and variance, one pair."""
    for r, y, scale, noise in ((0.4, 1.5, 0.7, 0.5), (0.3, -2.0, 0.4, 0.3)):
        k, s = np.exp(-0.5 * (r / scale) ** 2), 1 + noise**2
        mean, variance = k * y / s, 1 - k**2 / s
        first, second = call_pair(function, r, y, scale, noise)
        where = f"for ({r}, {y}, {scale}, {noise})"
        if np.allclose([first, second], [variance, mean], atol=1e-5):
            raise Wrong(f"{where} the first is the variance: return the mean first.")
        expect(first, mean, f"{where}, in the mean,", [
            (y, "That is Nadaraya–Watson: with one key its weight is 1 at any distance."),
            (k * y, "The noise is missing."),
            (k * y / (1 + noise), "The noise is a standard deviation: square it."),
            (y / s, "The distance has no effect."),
            (k**2 * y / s, "The exponent is −(r/ℓ)²/2: there is a 2."),
        ])  # fmt: skip
        expect(second, variance, f"{where}, in the variance,", [
            (1 - k**2, "The noise plays no part: what is divided by?"),
            (1 - k**2 / (1 + noise), "Here σ is not squared."),
            (1 - k / s, "The covariance stands there twice, on the left and on the right."),
            (variance + noise**2, "That is for a noisy value: the function itself has no noise."),
            (variance**0.5, "That is a standard deviation."),
            (k**2 / s, "That is what the pair takes away. How much is there before?"),
        ])  # fmt: skip
    return "far from its key a value says nothing, and close to it noise still counts."


@check
def posterior_weights(function: Function) -> str:
    """function(queries, keys, length_scale, noise): weights (m, n) of the posterior mean."""
    rng = np.random.default_rng(2)
    for m, n, scale, noise in ((3, 5, 0.3, 0.4), (2, 7, 0.5, 0.2)):
        queries, keys = rng.uniform(-1, 1, m), rng.uniform(-1, 1, n)
        between, among = _gauss(queries, keys, scale), _gauss(keys, keys, scale)
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
        between = _gauss(queries, keys, scale)
        noisy = _gauss(keys, keys, scale) + noise**2 * np.eye(n)
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
        noisy = _gauss(keys, keys, scale) + noise**2 * np.eye(n)
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
            (1 / np.diag(silent), "There is no noise on the diagonal of K."),
        ])  # fmt: skip
    return "n refits for the price of one inverse."


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
            (right.T, "It is transposed: rows attend, columns are attended to."),
            (right[order][:, order], "Pairs and queries alternate: first come all pairs."),
        ):
            if n > 1 and np.array_equal(got, wrong):
                raise Wrong(f"{where}: {cause}")
        if np.any(got[:n, n:]):
            raise Wrong(f"{where} a pair attends to a query: none may but that query itself.")
        expect(got[n:, :n], before, f"{where}, queries on pairs,", [
            (causal, "Query i sees pair i: that pair holds the answer."),
            (np.ones((n, n)), "Every query sees every pair, its own answer too."),
            (own, "Query i sees pair i alone: that is the answer, and nothing before it."),
            (1 - own, "Query i sees later pairs: it is to predict from the first i alone."),
        ])  # fmt: skip
        expect(got[n:, n:], own, f"{where}, queries on queries,", [
            (0 * own, "Query 0 has nothing to attend to: let a query see itself."),
            (causal, "A query may not attend to another one."),
        ])  # fmt: skip
        leak = "Pair 0 sees a later pair; query 1 sees pair 0 a layer later, and with it its answer"
        expect(got[:n, :n], causal, f"{where}, pairs on pairs,", [
            (np.ones((n, n)), f"{leak}."),
            (1 - own, f"{leak}. A pair may see itself, too."),
            (own, "Pairs may see more than themselves: which pairs do no harm?"),
            (before, "Pair 0 has nothing to attend to: let a pair see itself."),
        ])  # fmt: skip
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
        expect(added[n:, p], -step[n:], f"{where}, in the last entry of the queries,", [
            (step[n:], "The sign: it should hold minus the prediction."),
            (-step[n:] * n, "The loss is a mean: divide by n."),
            (-step[n:] * 2, "The loss has a ½: its gradient has no 2."),
            (-step[n:] / rate, "The learning rate is missing."),
            (-step[n:] * rate, "The learning rate is in it twice."),
            (-step[n:] * (p + 1) ** 0.5, "This layer does not divide scores by √d: undo nothing."),
            (0 * step[n:], "Nothing is added: do keys and values read the right entries?"),
        ])  # fmt: skip
        expect(added[:n, p], -step[:n], f"{where}, in the last entry of the pairs,", [
            (-step[:n] - rate * y[:n] * (y[:n] @ y[:n]) / n, "Scores of pairs may not contain y."),
        ])  # fmt: skip
    return "what is left of y goes through the layers: as many steps as layers."


@check
def unknown_scale(function: Function) -> str:
    """function(queries, keys, values, length_scales, noise): mean over all length scales (m,)."""
    rng = np.random.default_rng(8)
    scales = np.asarray([0.15, 0.3, 0.6, 1.2])
    for m, n, noise, size in ((3, 5, 0.4, 1.0), (2, 41, 0.5, 50.0)):
        queries, keys = rng.uniform(-1, 1, m), rng.uniform(-1, 1, n)
        values = size * (np.sin(3 * keys) + rng.normal(size=n))
        noisy = [_gauss(keys, keys, scale) + noise**2 * np.eye(n) for scale in scales]
        solved = [np.linalg.solve(a, values) for a in noisy]
        means = np.stack([_gauss(queries, keys, scales[i]) @ x for i, x in enumerate(solved)])
        fit = np.asarray([values @ x for x in solved])
        volume = np.linalg.slogdet(np.stack(noisy))[1]
        got = call(function, queries, keys, values, scales, noise)
        where = f"for {m} queries, {n} pairs and {len(scales)} length scales"
        if got.shape == (len(scales), m):
            raise Wrong(f"{where} you give shape {got.shape}: average over the length scales.")
        if np.any(np.isnan(got)):
            raise Wrong(f"{where} you give NaN: do all exponentials underflow to 0?")
        expect(got, _softmax(-(fit + volume) / 2) @ means, where, [
            (means.mean(0), "All length scales count the same: the data should tell."),
            (means[np.argmin(fit + volume)], "That is the likeliest one alone: average."),
            (_softmax(-fit / 2) @ means, "log |A| / 2 is missing: every short scale fits."),
            (_softmax(-volume / 2) @ means, "yᵀA⁻¹y / 2 is missing: do the values matter?"),
            (_softmax(-fit - volume) @ means, "Both terms have a ½."),
            (_softmax(-fit / 2 - volume) @ means, "log |A| has a ½."),
            (_softmax((volume - fit) / 2) @ means, "The sign of log |A|."),
            (_softmax((fit + volume) / 2) @ means, "The sign: the better fit has less weight."),
            ((fit + volume) / (fit + volume).sum() @ means, "That is no weight yet: take exp."),
        ], tolerance=1e-4)  # fmt: skip
    return "attention once more: keys are hypotheses, values what each predicts."


def _gauss(x: np.ndarray, z: np.ndarray, scale: float) -> np.ndarray:
    """Covariance exp(−(x − z)² / (2ℓ²)), of shape (m, n)."""
    return np.asarray(np.exp(-0.5 * ((x[:, None] - z) / scale) ** 2))


def _softmax(scores: np.ndarray) -> np.ndarray:
    e = np.exp(scores - scores.max())
    return np.asarray(e / e.sum())
