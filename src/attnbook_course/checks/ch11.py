"""Checks for chapter 11. Each knows the usual wrong answers by what they give."""

from collections.abc import Callable
from typing import Any

import numpy as np

from attnbook_course.checks.call import call, call_pair, call_with_memory_limit
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.verdict import Function, Wrong, check, expect


@check
def relative_error(function: Function) -> str:
    """function(q, k, m): relative deviation of the mean over m opposite pairs of features."""
    rng = np.random.default_rng(1)
    for m in (5, 12):
        q, k = rng.uniform(0.2, 0.6, (2, 3))
        both = ((q + k) ** 2).sum()
        more, kernel = np.cosh(both) - 1, np.exp(q @ k)
        right = np.sqrt(more / m)
        mistakes = [
            (np.sqrt(np.expm1(both) / 2 / m), "That is for 2m independent frequencies."),
            (np.sqrt(np.expm1(both) / m), "That is for m independent frequencies."),
            (more / m, "That is the variance: take the root."),
            (np.sqrt((more + 1) / m), "That is the mean square: subtract the mean's square, 1."),
            (right * kernel, "That is the deviation itself: divide by exp(q·k)."),
        ]
        expect(call(function, q, k, m), right, f"for m = {m}", mistakes, secret=True)
    return "much is gained for small ‖q + k‖, nothing for large, where a softmax looks."


@check
def two_tokens(function: Function) -> str:
    """function(a_1, b_1, a_2, b_2): the pair (A, B) of both tokens, in that order."""
    rng = np.random.default_rng(2)
    for d, p in ((3, 2), (4, 4)):
        a, c = rng.normal(size=(2, d, d))
        b, e = rng.normal(size=(2, d, p))
        first, second = call_pair(function, a, b, c, e)
        where = f"for d = {d} and p = {p}"
        if first.shape == (d, p) and np.allclose(first, c @ b + e):
            raise Wrong(f"{where} the first is B:", "return A first.")
        turned = "The second token is applied to A₁ S + B₁: what comes later stands on the left."
        mistakes = [(a @ c, turned)]
        expect(first, c @ a, f"{where}, in A,", mistakes, secret=True)
        mistakes = [
            (a @ e + b, turned),
            (b + e, "The second token changes B₁ too: it is part of the state by then."),
            (c @ (b + e), "B₂ is added last: A₂ does not act on it."),
        ]
        expect(second, c @ b + e, f"{where}, in B,", mistakes, secret=True)
    return "brackets are free, the order is not: that is all a scan needs."


@check
def linear_averages(function: Function) -> str:
    """function(q, k, v): causal averages (n, p) of values by positive features (n, d)."""
    rng = np.random.default_rng(3)
    for n, d, p in ((6, 3, 2), (5, 4, 4)):
        q, k = rng.uniform(0.1, 2, (2, n, d))
        v = rng.normal(size=(n, p))
        got, where = call(function, q, k, v), f"for {n} tokens"
        w = q @ k.T
        causal, before = np.tril(w), np.tril(w, -1)
        if got.shape == (n, p) and np.all(np.isnan(got[0])):
            raise Wrong(f"{where} the first output is NaN:", "write a token before you read it.")
        total = causal.sum(1, keepdims=True)
        lengths = np.arange(1, n + 1)[:, None]
        every = w.sum(1, keepdims=True)
        mistakes = [
            (causal @ v, "Nothing is divided: the weights do not sum to 1."),
            (causal @ v / lengths, "Divide by the sum of the weights, not by how many there are."),
            (w @ v / every, "A query sees later tokens too: read the state before they come."),
            (before @ v / total, "The token's own value is missing: write it, then read."),
        ]
        expect(got, causal @ v / total, where, mistakes)
    n = 2000
    q, k = rng.uniform(0.1, 2, (2, n, 4))
    v = rng.normal(size=(n, 3))
    got = call_with_memory_limit(function, q, k, v)
    w = np.tril(q @ k.T)
    expect(got, w @ v / w.sum(1, keepdims=True), "for 2000 tokens")
    return "a state for the numerator and one column more for the denominator."


Arrays = list[np.ndarray]
Error = Callable[[np.ndarray, np.ndarray, float, float], np.ndarray]


def _tokens(seed: int, n: int, d: int, p: int) -> Arrays:
    """Queries and keys of length 1 (n, d), values (n, p), decays (n,) and β (n,)."""
    rng = np.random.default_rng(seed)
    q, k = rng.normal(size=(2, n, d))
    q, k = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (q, k))
    return [q, k, rng.normal(size=(n, p)), rng.uniform(0.3, 0.9, n), rng.uniform(0.3, 1, n)]


def _recurrent(arrays: Arrays, error: Error, fade: Callable[[float], float] = float) -> np.ndarray:
    """Outputs (n, p) where error(v, answer, a, b) is written, and fade(a) of the state is left."""
    state, outputs = np.zeros((arrays[1].shape[1], arrays[2].shape[1])), []
    for q, k, v, a, b in zip(*arrays, strict=True):
        state, u = fade(a) * state, error(v, k @ state, a, b)
        state = state + np.outer(k, u)
        outputs.append(q @ state)
    return np.asarray(outputs)


def _misplaced(arrays: Arrays) -> list[tuple[np.ndarray, str]]:
    """Outputs of a gate at a wrong place, each with its cause."""
    return [
        (_recurrent(arrays, error, fade), cause)
        for error, fade, cause in (
            (lambda v, s, a, b: b * (v - s), float, "The error is still that before the gate."),
            (lambda v, s, a, b: b * (v - s), lambda a: 1, "The gate is gone."),
            (lambda v, s, a, b: b * (a * v - s), float, "The old answer fades, not the value."),
            (lambda v, s, a, b: b * (v - a * s), lambda a: a * a, "The state fades twice now."),
            (lambda v, s, a, b: b * v, float, "Nothing is subtracted: that is a gated sum."),
        )
    ]


def _by_chunks(
    arrays: Arrays, chunk: int, *, carried: bool = True, fades: bool = True, solve: bool = True
) -> np.ndarray:
    """Outputs (n, p) by chunks of arrays as _tokens() gives them, or wrong ones.

    Args:
        arrays: as _tokens() gives them.
        chunk: how many tokens at a time.
        carried: the state goes on from chunk to chunk.
        fades: what stands in the state fades inside a chunk.
        solve: errors know one another.
    """
    state, outputs = np.zeros((arrays[1].shape[1], arrays[2].shape[1])), []
    for start in range(0, len(arrays[0]), chunk):
        q, k, v, a, b = (x[start : start + chunk] for x in arrays)
        m, g = len(a), np.cumprod(a)[:, None]
        later = np.tri(m, k=-1, dtype=bool)
        d = np.tril(np.cumprod(np.where(later, a[:, None], 1), axis=0))
        inside = g if fades else 1
        system = np.tril(k @ k.T * d, -1) * b[:, None]
        u = np.linalg.solve(np.eye(m) + solve * system, b[:, None] * (v - inside * (k @ state)))
        outputs.append(inside * (q @ state) + np.tril(q @ k.T * d) @ u)
        state = carried * (g[-1] * state + (k * d[-1][:, None]).T @ u)
    return np.concatenate(outputs)


GATED_DELTA = '''
def gated_delta(q, k, v, decay, beta):
    """Outputs (n, p) of the gated delta rule, each read after its token is written."""
    state = np.zeros((k.shape[1], v.shape[1]))
    outputs = []
    for t in range(len(k)):
        error = v[t] - k[t] @ state
        state = decay[t] * state + beta[t] * np.outer(k[t], error)
        outputs.append(q[t] @ state)
    return np.array(outputs)
'''


@check
def gated_delta(function: Function) -> str:
    """function(q, k, v, decay, beta): GATED_DELTA, mended so that the error is after the gate."""
    return repaired(function, GATED_DELTA, fault="error = v[t] - k[t] @ state", test=_gated)


def _gated(function: Function) -> str:
    arrays = _tokens(4, 6, 3, 2)
    right = _recurrent(arrays, lambda v, s, a, b: b * (v - a * s))
    expect(call(function, *arrays), right, "for 6 tokens", _misplaced(arrays))
    return "A key of length 1 written with β = 1 is answered exactly again."


@check
def written(function: Function) -> str:
    """function(state, key, value): the closest state that answers the key with the value."""
    rng = np.random.default_rng(5)
    for d, p in ((4, 3), (3, 3)):
        state, key, value = rng.normal(size=(d, p)), rng.normal(size=d) * 2, rng.normal(size=p)
        error, square = value - key @ state, key @ key
        right = state + np.outer(key, error) / square
        got = call(function, state, key, value)
        where = f"for a state of shape ({d}, {p})"
        mistakes = [
            (state + np.outer(key, error), "A key of another length than 1: divide by its square."),
            (state + np.outer(key, error) / square**0.5, "Divide by ‖k‖², not by ‖k‖."),
            (state + np.outer(key, value), "The key's old answer is to go: subtract it."),
            (np.outer(key, value) / square, "All else is forgotten: the state is to stay close."),
            (state - np.outer(key, key @ state) / square, "Only erased: the value is missing."),
        ]
        expect(got, right, where, mistakes)
    return "the delta rule with β = 1 is a projection; written twice, nothing more happens."


@check
def one_pass(function: Function) -> str:
    """function(gram, values, beta): u with (I + β tril(G, −1)) u = β v."""
    rng = np.random.default_rng(6)
    for n, p, beta in ((6, 2, 0.7), (4, 1, 0.5)):
        x = rng.uniform(-1, 1, n)
        gram = np.exp(-2 * (x[:, None] - x) ** 2) * rng.uniform(0.8, 1.2, (n, n))
        y = rng.normal(size=(n, p))
        below, one = np.tril(gram, -1), np.eye(n)

        def solved(matrix: np.ndarray, times: float = beta, y: np.ndarray = y) -> np.ndarray:
            return np.linalg.solve(matrix, times * y)

        right = solved(one + beta * below)
        where = f"for {n} pairs and β = {beta}"
        with_own = solved(one + beta * np.tril(gram))
        mistakes = [
            (beta * (y - below @ y), "Earlier pairs count by u, not by v: use each u at once."),
            (with_own, "The diagonal is in it: at its own step a pair is not written yet."),
            (solved(one + beta * (gram - gram * one)), "Later pairs count too: sum over s < t."),
            (solved(one + below), "β multiplies the bracket, the old answers too."),
        ]
        expect(call(function, gram, y, beta), right, where, mistakes)
        gram = np.where(np.tri(n, k=-1) > 0, gram, np.nan)
        got = call(function, gram, y, beta)
        if np.any(np.isnan(got)):
            cause = "only what lies below it is known in time."
            raise Wrong(f"{where} you give NaN where G is NaN from the diagonal upwards:", cause)
        expect(got, right, where)
    return "each pair subtracts what those before it answer at its key."


@check
def more_pairs(function: Function) -> str:
    """function(weights, covariance, features, values, noise): mean and covariance after them."""
    rng = np.random.default_rng(7)
    for m, r, noise in ((1, 3, 0.6), (2, 3, 0.6), (3, 4, 0.4)):
        w, f, root = rng.normal(size=r), rng.normal(size=(m, r)), rng.normal(size=(r, r))
        cov, y, one = root @ root.T / r + 0.2 * np.eye(r), rng.normal(size=m) + 1.7, np.eye(m)
        first, second = call_pair(function, w, cov, f, y, noise)
        where = f"for {r} features, {m} pair{'s' * (m > 1)} and σ = {noise}"
        along, error, inner = cov @ f.T, y - f @ w, f @ cov @ f.T

        def gain(matrix: np.ndarray, along: np.ndarray = along) -> np.ndarray:
            return np.asarray(along @ np.linalg.inv(matrix))

        g, old = gain(inner + noise**2 * one), noise**2 * one
        right = cov - g @ along.T
        causes = [
            (gain(inner), "The noise is missing."),
            (gain(inner + noise * one), "The noise is a standard deviation: square it."),
            (gain(inner + old, f.T), "The step goes along PΦᵀ, not along Φᵀ."),
        ]
        mistakes: list[tuple[Any, str]] = [
            *((w + wrong @ error, cause) for wrong, cause in causes),
            (w + g @ y, "Subtract what is predicted already: the error moves the weights."),
        ]
        expect(first, w + g @ error, f"{where}, in the mean,", mistakes, secret=True)
        mistakes = [
            (cov, "Nothing is learned: the pairs make the covariance smaller."),
            *((cov - wrong @ along.T, cause) for wrong, cause in causes),
        ]
        expect(second, right, f"{where}, in the covariance,", mistakes, secret=True)
    return "in whichever order and parts the pairs come, it is the posterior."


@check
def landmark_features(function: Function) -> str:
    """function(x, landmarks, length_scale): features (n, r) whose product is Nyström's kernel."""
    rng = np.random.default_rng(8)
    for n, r, scale in ((5, 3, 0.7), (4, 4, 0.5)):
        x, other = rng.uniform(-1, 1, (2, n))
        z = np.linspace(-1, 1, r) + rng.uniform(-0.1, 0.1, r)
        first, second = (call(function, points, z, scale) for points in (x, other))
        where = f"for {n} points and {r} landmarks"
        if np.any(np.isnan(first)):
            raise Wrong(
                f"{where} you give NaN:", "the root of each entry of K_z⁻¹ is none of K_z⁻¹."
            )
        if first.shape != (n, r):
            raise Wrong(f"{where} you give shape {first.shape}, expected ({n}, {r}).")
        s = 0.5 / scale**2
        k, left, right = _gauss(z, z, s), _gauss(x, z, s), _gauss(z, other, s)
        inverse = np.linalg.inv(k)
        where = f"{where}, in the products of features,"
        mistakes = [
            (left @ right, "K_z is missing: those features are the kernel values."),
            (left @ k @ right, "A root of K_z is in them: take one of its inverse."),
            (left @ inverse @ inverse @ right, "The inverse is there twice: take its root."),
            (_nystrom(x, z, other, 2 * s), "The ½ in the kernel is missing."),
        ]
        expect(first @ second.T, left @ inverse @ right, where, mistakes)
    return "exact wherever one of the two points is a landmark."


def _gauss(a: np.ndarray, b: np.ndarray, s: float) -> np.ndarray:
    return np.asarray(np.exp(-s * (a[:, None] - b) ** 2))


def _nystrom(x: np.ndarray, z: np.ndarray, other: np.ndarray, s: float) -> np.ndarray:
    return _gauss(x, z, s) @ np.asarray(np.linalg.solve(_gauss(z, z, s), _gauss(z, other, s)))


@check
def chunked(function: Function) -> str:
    """function(q, k, v, decay, beta, chunk): outputs (n, p) of the gated delta rule."""
    for n, chunk in ((8, 4), (11, 3), (4, 9)):
        arrays = _tokens(n, n, 4, 2)
        where = f"for {n} tokens in chunks of {chunk}"
        got = call(function, *arrays, chunk)
        if got.shape == (n // chunk * chunk, 2) != (n, 2):
            raise Wrong(f"{where} you give {len(got)} outputs:", "the last chunk is shorter.")
        right = _recurrent(arrays, lambda v, s, a, b: b * (v - a * s))
        empty = "Every chunk begins with an empty state: carry it on."
        fades = "The state at the start of a chunk fades inside it: g_t."
        solve = "Inside a chunk, errors subtract what earlier tokens wrote: solve for u."
        mistakes = [
            (_by_chunks(arrays, chunk, carried=False), empty),
            (_by_chunks(arrays, chunk, fades=False), fades),
            (_by_chunks(arrays, chunk, solve=False), solve),
        ]
        expect(got, right, where, mistakes)
    arrays[3][1] = 0
    right = _recurrent(arrays, lambda v, s, a, b: b * (v - a * s))
    got = call(function, *arrays, chunk)
    if not np.all(np.isfinite(got)):
        raise Wrong(
            "with a decay of 0 you give NaN or ∞:", "multiply decays, do not divide by them."
        )
    expect(got, right, "with a decay of 0,")
    arrays = _tokens(5, 40, 4, 2)
    first, *others = (call(function, *arrays, chunk) for chunk in (1, 5, 40))
    if all(np.array_equal(first, other) for other in others):  # by other sums not
        same = "to the last bit the same for chunks of 1, 5 and 40 tokens: that is the recurrence."
        raise Wrong(f"the numbers are right, and {same} Solve for all u of a chunk.")
    return "one definition in three forms: recurrent, masked, and this one between them."
