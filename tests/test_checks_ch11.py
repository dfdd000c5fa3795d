"""Chapter 11's checks accept right answers of any library and name each usual wrong one."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from mending import mended

from attnbook import linear_attention
from attnbook.course.checks import ch11, gated
from attnbook.course.checks.repair import define
from attnbook.linear_attention import online_regression


def error(s=lambda q, k: np.sum((q + k) ** 2), form=lambda x, m: np.sqrt((np.cosh(x) - 1) / m)):
    """The right answer, and its neighbours, by the exponent and what is made of it."""
    return lambda q, k, m: form(s(q, k), m)


def torch_error(q, k, m):
    return torch.sqrt((torch.cosh(torch.sum((q + k) ** 2)) - 1) / m)


def tokens(first=lambda a, b, c, e: c @ a, second=lambda a, b, c, e: c @ b + e):
    return lambda *maps: (first(*maps), second(*maps))


def average(weigh=np.tril, below=None, value=lambda w, v: w @ v):
    """The right answer, and its neighbours, by the weights of numerator and denominator."""

    def answer(q, k, v):
        w = q @ k.T
        total = (below or weigh)(w).sum(axis=1, keepdims=True)
        return value(weigh(w), v) / total

    return answer


def running(q, k, v):
    """The right answer as a loop, with two sums."""
    state, norm, outputs = np.zeros((q.shape[1], v.shape[1])), np.zeros(q.shape[1]), []
    for t in range(len(q)):
        state, norm = state + np.outer(k[t], v[t]), norm + k[t]
        outputs.append(q[t] @ state / (q[t] @ norm))
    return np.asarray(outputs)


def read_first(q, k, v):
    state, norm, outputs = np.zeros((q.shape[1], v.shape[1])), np.zeros(q.shape[1]), []
    for t in range(len(q)):
        outputs.append(q[t] @ state / (q[t] @ norm))
        state, norm = state + np.outer(k[t], v[t]), norm + k[t]
    return np.asarray(outputs)


def torch_running(q, k, v):
    one = torch.cat([v, torch.ones(len(v), 1, dtype=v.dtype)], dim=1)
    sums = torch.einsum("td,tdp->tp", q, torch.cumsum(k[:, :, None] * one[:, None], dim=0))
    return sums[:, :-1] / sums[:, -1:]


def jax_running(q, k, v):
    sums = jnp.einsum("td,tdp->tp", q, jnp.cumsum(k[:, :, None] * v[:, None], axis=0))
    return sums / jnp.sum(q * jnp.cumsum(k, axis=0), axis=1, keepdims=True)


FAULT = "error = v[t] - k[t] @ state"
WRITE = "state = decay[t] * state + beta[t] * np.outer(k[t], error)"


def gate(new, *others):
    return mended(ch11.GATED_DELTA, "gated_delta", (FAULT, new), *others)


RIGHT_GATE = "error = v[t] - decay[t] * k[t] @ state"


def put(change, keep=1.0):
    """A state changed by a form of the key, the error, the value and the key's square."""

    def answer(state, key, value):
        return keep * state + change(key, value - key @ state, value, key @ key)

    return answer


def torch_written(state, key, value):
    return state + torch.outer(key, value - key @ state) / (key @ key)


def solved(matrix, right=lambda y, b: b * y):
    """Coefficients from a matrix of K's part below the diagonal, K and β."""

    def answer(gram, values, beta):
        return np.linalg.solve(matrix(np.tril(gram, -1), gram, beta), right(values, beta))

    return answer


def one_after_another(gram, values, beta):
    u = np.zeros(values.shape)
    for t in range(len(values)):
        u[t] = beta * (values[t] - gram[t, :t] @ u[:t])
    return u


def torch_one_pass(gram, values, beta):
    n = len(gram)
    lower = torch.eye(n, dtype=gram.dtype) + beta * torch.tril(gram, -1)
    return torch.linalg.solve_triangular(lower, beta * values, upper=False)


def whole_row(gram, values, beta):
    """Right where K is whole: the u that are still 0 take what is not to count."""
    u = np.zeros(values.shape)
    for t in range(len(values)):
        u[t] = beta * (values[t] - gram[t] @ u)
    return u


def jax_one_pass(gram, values, beta):
    u = jnp.zeros(values.shape)
    for t in range(len(values)):
        u = u.at[t].set(beta * (values[t] - gram[t, :t] @ u[:t]))
    return u


def pairs(
    among=lambda inner, f, noise: inner + noise**2 * np.eye(len(f)),
    along=lambda cov, f: cov @ f.T,
    mean=lambda w, f, y, g: w + g @ (y - f @ w),
):
    """The right pair, and its neighbours, by what G divides by, where it goes and what it moves."""

    def answer(w, cov, f, y, noise):
        wide = cov @ f.T
        g = along(cov, f) @ inv(among(f @ wide, f, noise))
        return mean(w, f, y, g), cov - g @ wide.T

    return answer


def other_covariance(form):
    """The right mean beside another covariance, a form of P, Φ, G, PΦᵀ and σ."""

    def answer(w, cov, f, y, noise):
        wide = cov @ f.T
        g = wide @ inv(f @ wide + noise**2 * np.eye(len(f)))
        return pairs()(w, cov, f, y, noise)[0], form(cov, f, g, wide, noise)

    return answer


def one_by_one(w, cov, features, values, noise):
    for f, y in zip(features, values, strict=True):
        g = cov @ f / (f @ cov @ f + noise**2)
        w, cov = w + g * (y - f @ w), cov - np.outer(g, f @ cov)
    return w, cov


def torch_pairs(w, cov, f, y, noise):
    among = f @ cov @ f.T + noise**2 * torch.eye(len(y), dtype=f.dtype)
    g = torch.linalg.solve(among, f @ cov).T
    return w + g @ (y - f @ w), cov - g @ f @ cov


def by_precision(w, cov, f, y, noise):
    new = inv(inv(cov) + f.T @ f / noise**2)
    return w + new @ f.T @ (y - f @ w) / noise**2, new


def late(w, cov, f, y, noise):
    new = pairs()(w, cov, f, y, noise)[1]
    return pairs()(w, new, f, y, noise)[0], new


def gauss(a, b, scale):
    return np.exp(-0.5 * ((a[:, None] - b) / scale) ** 2)


def landmark(make, kernel=gauss):
    """Features made of the kernel values of x and landmarks, and of the landmarks' own."""
    return lambda x, z, scale: make(kernel(x, z, scale), kernel(z, z, scale))


def by_root(kx, kz):
    values, vectors = np.linalg.eigh(kz)
    return kx @ vectors / values**0.5


inv, cholesky = np.linalg.inv, np.linalg.cholesky


def torch_landmark(x, z, scale):
    def kernel(a, b):
        return torch.exp(-0.5 * ((a[:, None] - b) / scale) ** 2)

    root = torch.linalg.cholesky(kernel(z, z))
    return torch.linalg.solve_triangular(root, kernel(x, z).T, upper=False).T


def step_by_step(beta, n, d, noise):
    error = 1.0
    for _ in range(n):
        error = (1 - beta * (2 - beta) / d) * error + beta**2 * noise**2 / d
    return error


CHUNKED = '''
def chunked(q, k, v, decay, beta, chunk):
    """Outputs (n, p) of the gated delta rule, a chunk of tokens at a time."""
    state, outputs = np.zeros((k.shape[1], v.shape[1])), []
    for start in range(0, len(k), chunk):
        own = slice(start, start + chunk)
        query, key, value, a, b = q[own], k[own], v[own], decay[own], beta[own]
        m = len(a)
        later = np.tri(m, k=-1, dtype=bool)
        d = np.tril(np.cumprod(np.where(later, a[:, None], 1), axis=0))
        g = np.cumprod(a)[:, None]
        errors = value - g * (key @ state)
        system = np.eye(m) + b[:, None] * np.where(later, key @ key.T * d, 0)
        u = np.linalg.solve(system, b[:, None] * errors)
        outputs.append(g * (query @ state) + (query @ key.T * d) @ u)
        state = g[-1] * state + (key * d[-1][:, None]).T @ u
    return np.concatenate(outputs)
'''


def chunks(*changes):
    return mended(CHUNKED, "chunked", *changes)


def torch_chunks(q, k, v, decay, beta, chunk):
    """The right answer in PyTorch, by the package."""
    return linear_attention.chunked(q, k, v, decay=decay, beta=beta, chunk=chunk)[0]


def recurrence(q, k, v, decay, beta, chunk):
    """Right numbers, but a token at a time."""
    state, outputs = torch.zeros(k.shape[1], v.shape[1], dtype=k.dtype), []
    for t in range(len(k)):
        state = decay[t] * state
        state = state + beta[t] * torch.outer(k[t], v[t] - k[t] @ state)
        outputs.append(q[t] @ state)
    return torch.stack(outputs)


E, T, A, G = ch11.relative_error, ch11.two_tokens, ch11.linear_averages, ch11.gated_delta
W, F, R, N = ch11.written, ch11.one_pass, ch11.more_pairs, ch11.landmark_features
C = ch11.chunked
D = "d = np.tril(np.cumprod(np.where(later, a[:, None], 1), axis=0))"
LOGS = "d = np.tril(np.cumprod(a)[:, None] / np.cumprod(a))"

WRONG = [
    (E, error(form=lambda x, m: np.sqrt((np.exp(x) - 1) / 2 / m)), "for 2m independent"),
    (E, error(form=lambda x, m: np.sqrt((np.exp(x) - 1) / m)), "for m independent"),
    (E, error(form=lambda x, m: np.sqrt(np.exp(x) / 2 / m)), "in a pair much cancels"),
    (E, error(form=lambda x, m: np.exp(x / 2) / np.sqrt(m)), "in a pair much cancels"),
    (E, error(form=lambda x, m: (np.cosh(x) - 1) / m), "That is the variance"),
    (E, error(form=lambda x, m: np.sqrt(np.cosh(x) - 1)), "That is one pair"),
    (E, error(form=lambda x, m: np.sqrt(np.cosh(x) - 1) / m), "falls by m, its root by √m"),
    (E, error(form=lambda x, m: np.sqrt((np.cosh(x) - 1) / 2 / m)), "divide by m alone"),
    (E, error(form=lambda x, m: np.sqrt(np.cosh(x) / m)), "subtract the mean's square, 1"),
    (E, error(form=lambda x, m: np.cosh(x) / m), "subtract 1, then take the root"),
    (E, lambda q, k, m: error()(q, k, m) * np.exp(q @ k), "That is the deviation itself"),
    (E, lambda q, k, m: error()(q, k, m) / np.exp(q @ k), "the cosh is relative already"),
    (E, error(lambda q, k: np.sum((q - k) ** 2)), "equal keys are the hard ones"),
    (E, error(lambda q, k: q @ q + k @ k), "has the term 2 q·k too"),
    (E, error(lambda q, k: np.sum((q + k) ** 2) / 2), "The mean of e^(2ω·s)"),
    (E, error(lambda q, k: 2 * np.sum((q + k) ** 2)), "divide by it"),
    (E, error(form=lambda x, m: np.sqrt((np.exp(2 * x) - 1) / 2 / m)), "stand in the square too"),
    (E, error(form=lambda x, m: np.sqrt(np.sinh(x) / m)), "Subtract 1 from the cosh"),
    (E, error(form=lambda x, m: (np.cosh(x) - 1) * m), "divide by m, then take the root"),
    (E, lambda q, k, m: q + k, "expected one number"),
    (T, lambda *m: tokens()(*m)[::-1], "the first is B"),
    (T, lambda a, b, c, e: (a @ c, a @ e + b), "what comes later stands on the left"),
    (T, tokens(second=lambda a, b, c, e: a @ e + b), "what comes later stands on the left"),
    (T, tokens(lambda a, b, c, e: c * a), "not entry by entry"),
    (T, tokens(lambda a, b, c, e: c + a), "A₂ times A₁"),
    (T, tokens(lambda a, b, c, e: (c @ a).T), "A₂ A₁, not its transpose"),
    (T, tokens(lambda a, b, c, e: c.T @ a), "Nothing is transposed"),
    (T, tokens(lambda a, b, c, e: c), "A₁ is missing"),
    (T, tokens(lambda a, b, c, e: a), "A₂ is missing"),
    (T, tokens(second=lambda a, b, c, e: b + e), "The second token changes B₁ too"),
    (T, tokens(second=lambda a, b, c, e: a @ b + e), "what happens to it is A₂"),
    (T, tokens(second=lambda a, b, c, e: c @ (b + e)), "B₂ is added last"),
    (T, tokens(second=lambda a, b, c, e: c @ a @ b + e), "B₁ is added after it"),
    (T, tokens(second=lambda a, b, c, e: c @ b), "B₂ is missing"),
    (T, tokens(second=lambda a, b, c, e: e), "B₁ is missing"),
    (T, tokens(second=lambda a, b, c, e: c @ e + b), "The two B are exchanged"),
    (T, tokens(second=lambda a, b, c, e: c @ b * e), "B₂ is added."),
    (T, lambda a, b, c, e: c @ a, "two arrays, with a comma"),
    (A, lambda q, k, v: np.tril(q @ k.T) @ v, "Nothing is divided: the weights"),
    (A, lambda q, k, v: q @ (k.T @ v), "Nothing is divided, and a query sees"),
    (A, average(below=lambda w: np.tri(len(w))), "not by how many there are"),
    (A, average(below=np.ones_like), "not by how many there are"),
    (A, average(lambda w: w), "A query sees later tokens too"),
    (A, average(below=lambda w: w), "The denominator has the weights of later"),
    (A, average(lambda w: w, np.tril), "The numerator has later tokens too"),
    (A, lambda q, k, v: average()(q, k, v) * np.tril(q @ k.T).sum(1, keepdims=True)
     / np.cumsum(k, axis=0).sum(1, keepdims=True), "a product with the query too"),
    (A, average(lambda w: np.tril(w, -1), np.tril), "The token's own value is missing"),
    (A, lambda q, k, v: np.nan_to_num(read_first(q, k, v)), "The token's own value is missing"),
    (A, read_first, "the first output is NaN"),
    (A, average(lambda w: np.tril(np.exp(w))), "That is a softmax"),
    (A, average(lambda w: np.tri(len(w))), "All values count the same"),
    (A, average(lambda w: np.tril(w.T)), "Queries and keys are exchanged"),
    (A, average(below=lambda w: np.sqrt((np.tril(w) ** 2).sum(1, keepdims=True))),
     "not by their length"),
    (A, lambda q, k, v: np.tril(q @ k.T), "those are weights, average values"),
    (A, average(), "holds"),
    (G, gate("error = v[t] - 1.0 * k[t] @ state"), "still that before the gate"),
    (G, gate("error = v[t] - 1.0 * k[t] @ state", (WRITE, WRITE.replace("decay[t] * ", ""))),
     "The gate is gone"),
    (G, gate("error = decay[t] * (v[t] - k[t] @ state)"), "The new value does not fade"),
    (G, gate("error = decay[t] * v[t] - k[t] @ state"), "The old answer fades, not the value"),
    (G, gate("error = v[t] - decay[t] ** 2 * k[t] @ state"), "The old answer fades once"),
    (G, gate(RIGHT_GATE, (WRITE, WRITE.replace("decay[t]", "decay[t] ** 2"))), "fades twice now"),
    (G, gate("error = v[t] - k[t] @ state / decay[t]"), "is smaller by then"),
    (G, gate("error = v[t] - (1 - decay[t]) * k[t] @ state"), "a is what is left, not lost"),
    (G, gate("error = v[t] + decay[t] * k[t] @ state"), "The old answer is subtracted"),
    (G, gate("error = v[t]"), "that is a gated sum."),
    (G, gate("error = v[t] - beta[t] * decay[t] * k[t] @ state"), "β is in the next line already"),
    (G, gate("error = v[t] - beta[t] * k[t] @ state"), "β does not say how much is left"),
    (G, gate(FAULT, (WRITE, "state = decay[t] * state\n        " + WRITE)),
     "in another line than you changed"),
    (G, gate(FAULT, (WRITE, WRITE.replace("error", "error + (1 - decay[t]) * k[t] @ state"))),
     "Mend the line itself"),
    (W, put(lambda k, e, v, s: np.outer(k, e)), "divide by its square"),
    (W, put(lambda k, e, v, s: np.outer(k, e) / s**0.5), "Divide by ‖k‖², not by ‖k‖"),
    (W, put(lambda k, e, v, s: np.outer(k, e) / (1 + s)), "be exact"),
    (W, put(lambda k, e, v, s: np.outer(k, v)), "is to go: subtract it"),
    (W, put(lambda k, e, v, s: np.outer(k, v) / s), "is to go: subtract it"),
    (W, put(lambda k, e, v, s: np.outer(k, v) / s, 0), "All else is forgotten"),
    (W, put(lambda k, e, v, s: np.outer(k, e - v) / s), "Only erased"),
    (W, put(lambda k, e, v, s: -np.outer(k, e) / s), "doubles the error"),
    (W, put(lambda k, e, v, s: np.outer(k, e) / s, 0), "That is the change"),
    (W, put(lambda k, e, v, s: np.outer(k, e) / (v @ v)), "‖k‖² divides, not ‖v‖²"),
    (W, put(lambda k, e, v, s: e), "All rows change alike"),
    (W, put(lambda k, e, v, s: e / k.sum()), "Exact, but with a larger change"),
    (W, put(lambda k, e, v, s: np.outer(1 / k, e) / len(k)), "Exact, but with a larger change"),
    (W, lambda s, k, v: torch_written(*map(torch.from_numpy, (s, k, v))).numpy().T,
     "Is it transposed"),
    (F, lambda g, y, b: b * (y - np.tril(g, -1) @ y), "use each u at once"),
    (F, lambda g, y, b: b * (y - b * np.tril(g, -1) @ y), "have been corrected too"),
    (F, solved(lambda low, g, b: np.eye(len(g)) + b * np.tril(g)), "The diagonal is in it"),
    (F, solved(lambda low, g, b: np.eye(len(g)) + b * np.triu(g, 1)), "in the place of earlier"),
    (F, solved(lambda low, g, b: np.eye(len(g)) + b * low.T), "The matrix is transposed"),
    (F, solved(lambda low, g, b: np.eye(len(g)) + b * np.tril(g.T, -1)), "row t is gram[t, :t]"),
    (F, solved(lambda low, g, b: np.eye(len(g)) + b * (g - np.diag(np.diag(g)))), "sum over s < t"),
    (F, solved(lambda low, g, b: np.eye(len(g)) + b * g), "too: that is a whole inverse"),
    (F, solved(lambda low, g, b: np.eye(len(g)) + g), "That is the whole inverse"),
    (F, solved(lambda low, g, b: np.eye(len(g)) + low, lambda y, b: y), "β is missing"),
    (F, solved(lambda low, g, b: np.eye(len(g)) + low), "the old answers too"),
    (F, solved(lambda low, g, b: np.eye(len(g)) + b * low, lambda y, b: y),
     "β multiplies the value too"),
    (F, solved(lambda low, g, b: np.eye(len(g)) - b * low), "answered already is subtracted"),
    (F, lambda g, y, b: b * y, "that is the sum, M = β I"),
    (F, whole_row, "you give NaN where K is NaN"),
    (R, lambda *a: pairs()(*a)[::-1], "return the mean first"),
    (R, pairs(lambda inner, f, s: inner), "The noise is missing"),
    (R, pairs(lambda inner, f, s: inner + s * np.eye(len(f))), "deviation: square it"),
    (R, pairs(lambda inner, f, s: inner + np.eye(len(f))), "is σ², not 1"),
    (R, pairs(lambda inner, f, s: f @ f.T + s**2 * np.eye(len(f))), "ΦPΦᵀ, not ΦΦᵀ"),
    (R, pairs(lambda inner, f, s: s**2 * np.eye(len(f))), "ΦPΦᵀ is missing"),
    (R, pairs(lambda inner, f, s: np.eye(len(f))), "Divide by the covariance of the values"),
    (R, pairs(lambda inner, f, s: f @ f.T + s**2 * np.eye(len(f)), lambda c, f: f.T),
     "That is for P = I"),
    (R, pairs(lambda inner, f, s: np.eye(len(f)), lambda c, f: f.T), "That is the delta rule"),
    (R, pairs(along=lambda c, f: f.T), "along PΦᵀ, not along Φᵀ"),
    (R, late, "P before its update"),
    (R, pairs(along=lambda c, f: -c @ f.T), "The sign is turned"),
    (R, pairs(lambda inner, f, s: np.diag(np.diag(inner)) + s**2 * np.eye(len(f))),
     "not its diagonal"),
    (R, pairs(lambda inner, f, s: inner + s**2), "on the diagonal alone"),
    (R, pairs(mean=lambda w, f, y, g: w + g @ y), "Subtract what is predicted"),
    (R, pairs(mean=lambda w, f, y, g: g @ (y - f @ w)), "add it to the weights"),
    (R, pairs(mean=lambda w, f, y, g: g @ y), "The weights before are missing"),
    (R, lambda w, c, f, y, s: pairs()(0 * w, np.eye(len(w)), f, y, s), "That begins with w = 0"),
    (R, other_covariance(lambda c, f, g, wide, s: c), "Nothing is learned"),
    (R, other_covariance(lambda c, f, g, wide, s: c - g @ f), "P is missing: subtract GΦP"),
    (R, other_covariance(lambda c, f, g, wide, s: c - g @ g.T), "one of the two is not divided"),
    (R, other_covariance(lambda c, f, g, wide, s: c - wide @ wide.T),
     "Divide by the covariance of the values"),
    (R, other_covariance(lambda c, f, g, wide, s: c + g @ wide.T), "The sign is turned"),
    (R, other_covariance(lambda c, f, g, wide, s: g @ wide.T), "That is what is learned"),
    (R, lambda *a: (by_precision(*a)[0], inv(by_precision(*a)[1])), "That is the inverse"),
    (R, other_covariance(lambda c, f, g, wide, s: c - g @ wide.T + s**2 * np.eye(len(c))), "belongs to y"),
    (R, other_covariance(lambda c, f, g, wide, s: c - f.T @ inv(f @ f.T + s**2 * np.eye(len(f))) @ f),
     "That is for P = I"),
    (N, landmark(lambda kx, kz: kx), "those features are the kernel values"),
    (N, landmark(lambda kx, kz: kx @ cholesky(kz)), "A root of K_z is in them"),
    (N, landmark(lambda kx, kz: kx @ cholesky(kz).T), "A root of K_z is in them"),
    (N, landmark(lambda kx, kz: kx @ kz), "K_z is in them: take a root"),
    (N, landmark(lambda kx, kz: kx @ inv(kz)), "The inverse is there twice"),
    (N, landmark(lambda kx, kz: kx @ inv(cholesky(kz))), "C is on the wrong side"),
    (N, landmark(lambda kx, kz: kx @ kz**-0.5), "A root of each entry"),
    (N, landmark(lambda kx, kz: kx / kz.sum(1) ** 0.5), "divides by sums of rows"),
    (N, landmark(lambda kx, kz: by_root(kx, kz) / len(kz) ** 0.5), "not random features"),
    (N, landmark(lambda kx, kz: by_root(kx, kz + np.eye(len(kz)))), "Nothing is added to K_z"),
    (N, landmark(by_root, lambda a, b, s: gauss(a, b, s / 2**0.5)), "The ½ in the kernel"),
    (N, landmark(by_root, lambda a, b, s: gauss(a, b, s**0.5)), "The length scale is squared"),
    (N, landmark(by_root, lambda a, b, s: gauss(a, b, 1)), "The length scale is missing"),
    (N, landmark(lambda kx, kz: kx @ inv(kz) ** 0.5), "you give NaN: the root of each entry"),
    (N, lambda *a: landmark(by_root)(*a).T, "points are rows, features columns"),
    (N, lambda x, z, s: gauss(x, x, s), "expected (5, 3)"),
    (C, chunks(("state = g[-1] * state +", "state = 0 * state; new =")), "with an empty state"),
    (C, chunks(("append(g * (query", "append((query")), "In the outputs, what stands in the state"),
    (C, chunks(("value - g * (key", "value - (key")), "In the errors, what stands in the state"),
    (C, chunks(("append(g * (query", "append((query"), ("value - g * (key", "value - (key")),
     "The state at the start of a chunk fades"),
    (C, chunks(("state = g[-1] * state", "state = state")), "only g of the last token"),
    (C, chunks(("(key * d[-1][:, None])", "key")), "What a chunk writes fades until its end"),
    (C, chunks((" - g * (key @ state)", "")), "leave out what the state at the start answers"),
    (C, chunks((D, D + " * a")), "D_tt is 1"),
    (C, chunks(("np.where(later, key @ key.T * d, 0)", "(key @ key.T * d)")),
     "a token does not correct itself"),
    (C, chunks(("np.eye(m) + b[:, None] * ", "np.eye(m) + ")), "it stands in the system too"),
    (C, chunks(("np.linalg.solve(system, ", "(")), "solve for u"),
    (C, chunks(("np.linalg.solve(system, ", "("), (" - g * (key @ state)", "")),
     "that is a gated sum, without the delta"),
    (C, chunks((" + (query @ key.T * d) @ u", "")), "leave out what the chunk itself writes"),
    (C, chunks(("(query @ key.T * d) @ u", "np.where(later, query @ key.T * d, 0) @ u")),
     "s = t counts in the outputs"),
    (C, chunks(("len(k), chunk)", "len(k) // chunk * chunk, chunk)")), "the last chunk is shorter"),
    (C, chunks((D, LOGS)), "multiply decays"),
    (C, lambda *a: gated.misplaced(list(a[:5]))[0][0], "still that before the gate"),
    (C, lambda *a: gated.recurrent(list(a[:5]), lambda v, s, a, b: b * (v - 0.5 * a * s)),
     ", expected"),
    (C, recurrence, "that is the recurrence. Solve for all u of a chunk"),
]  # fmt: skip
RIGHT = [
    (E, error()),
    (E, torch_error),
    (T, tokens()),
    (A, running),
    (A, torch_running),
    (A, jax_running),
    (G, gate(RIGHT_GATE)),
    (G, gate("error = v[t] - k[t] @ (decay[t] * state)")),
    (W, put(lambda k, e, v, s: np.outer(k, e) / s)),
    (W, torch_written),
    (F, one_after_another),
    (F, torch_one_pass),
    (F, jax_one_pass),
    (F, solved(lambda low, g, b: np.eye(len(g)) + b * low)),
    (R, pairs()),
    (R, one_by_one),
    (R, torch_pairs),
    (R, by_precision),
    (N, landmark(by_root)),
    (N, torch_landmark),
    (C, chunks()),
    (C, torch_chunks),
]


@pytest.mark.parametrize(("check", "right"), RIGHT)
def test_right_answers_pass(check, right):
    verdict = check(right)
    assert verdict.status == "right", verdict


@pytest.mark.parametrize("check", [E, T, A, G, W, F, R, N, C])
def test_not_written_yet_is_a_friendly_line(check):
    def stub(*arguments):
        raise NotImplementedError

    verdict = check(define(ch11.GATED_DELTA, "gated_delta", {"np": np}) if check is G else stub)
    assert verdict.status == "not yet"


def test_the_measured_error_of_opposite_frequencies_is_the_derived_one():
    rng = np.random.default_rng(0)
    q, k = np.asarray([0.3, -0.2, 0.1]), np.asarray([0.1, 0.3, 0.2])
    omega = rng.normal(size=(100_000, 4, 3))
    s, scale = omega @ (q + k), np.exp(-(q @ q + k @ k) / 2 - q @ k)
    z = scale * (np.exp(s) + np.exp(-s)).mean(axis=1) / 2
    assert abs(z.mean() - 1) < 0.005
    assert abs(z.std() / error()(q, k, 4) - 1) < 0.02
    assert error()(q, -q, 1) == 0


def test_a_key_written_again_is_answered_exactly_after_the_mending_alone():
    k, v = np.asarray([[0.6, 0.8]] * 2), np.asarray([[1.0], [3.0]])
    for line, last in ((RIGHT_GATE, 3.0), (f"error = 1.0 * v[t] - {FAULT[15:]}", 2.5)):
        got = gate(line)(k, k, v, np.full(2, 0.5), np.ones(2))
        np.testing.assert_allclose(got[:, 0], [1.0, last])


def test_writing_is_a_projection():
    rng = np.random.default_rng(0)
    state, key, value = rng.normal(size=(4, 2)), rng.normal(size=4), rng.normal(size=2)
    write = put(lambda k, e, v, s: np.outer(k, e) / s)
    once = write(state, key, value)
    np.testing.assert_allclose(key @ once, value)
    np.testing.assert_allclose(write(once, key, value), once)
    for _ in range(20):  # others that answer the key exactly are farther away
        beside = rng.normal(size=(4, 2))
        beside -= np.outer(key, key @ beside) / (key @ key)
        assert np.sum((once + beside - state) ** 2) > np.sum((once - state) ** 2)


def test_pairs_in_parts_are_the_posterior_in_any_order():
    rng = np.random.default_rng(0)
    features, values, noise = rng.normal(size=(7, 4)), rng.normal(size=7), 0.3
    precision = features.T @ features + noise**2 * np.eye(4)
    for order in (np.arange(7), rng.permutation(7)):
        w, cov = np.zeros(4), np.eye(4)
        for part in (order[:1], order[1:4], order[4:]):
            w, cov = pairs()(w, cov, features[part], values[part], noise)
        np.testing.assert_allclose(w, np.linalg.solve(precision, features.T @ values))
        np.testing.assert_allclose(cov, noise**2 * inv(precision), atol=1e-12)
    mean, covariance = online_regression.recursive(features, values[:, None], noise=noise)
    np.testing.assert_allclose(w, mean[:, 0])
    np.testing.assert_allclose(cov, covariance, atol=1e-12)


def test_the_package_gives_the_same():
    arrays = q, k, v, decay, beta = gated.tokens(0, 9, 4, 3)
    gated_delta, _ = linear_attention.recurrent(q, k, v, decay=decay, beta=beta)
    np.testing.assert_allclose(gate(RIGHT_GATE)(*arrays), gated_delta)
    np.testing.assert_allclose(gated.chunked(arrays, 4), gated_delta)
    np.testing.assert_allclose(gated.misplaced(arrays)[0][0], gate(f"{FAULT} + 0")(*arrays))
    u = online_regression.one_pass(k @ k.T, v, beta=0.7)
    np.testing.assert_allclose(one_after_another(k @ k.T, v, 0.7), u)
    last, _ = linear_attention.recurrent(q, k, v, beta=np.full(9, 0.7))
    np.testing.assert_allclose(last[-1], q[-1] @ k.T @ u)


def test_eight_landmarks_are_within_a_hundredth():
    x = np.linspace(-1, 1, 401)
    worst = {}
    for r in (7, 8, 12):
        f = landmark(by_root)(x, np.linspace(-1, 1, r), 0.3)
        worst[r] = np.abs(f @ f.T - gauss(x, x, 0.3)).max()
    assert worst[8] < 0.01 < worst[7]
    assert round(worst[12], 5) == 0.00014


TABLE = {16: (0.73, 0.47, 0.52, 0.47, 0.39), 64: (0.48, 0.125, 0.26, 0.115, 0.074),
         256: (0.18, 0.030, 0.25, 0.020, 0.016), 1024: (0.06, 0.008, 0.25, 0.004, 0.004)}  # fmt: skip


def delta_error(k, y, w, rates):
    state = np.zeros(w.shape)
    for t, rate in enumerate(rates):
        state += rate * (y[:, t] - (k[:, t] * state).sum(-1))[:, None] * k[:, t]
    return ((state - w) ** 2).sum(-1).mean() / w.shape[1]


@pytest.mark.parametrize("n", [16, 64, 256])
def test_the_table_of_learning_rates(n):
    d, noise, rng = 16, 0.5, np.random.default_rng(0)
    rates = np.arange(1, 200) / 100
    errors = step_by_step(rates, n, d, noise)
    best, least, one, falling, squares = TABLE[n]
    assert rates[errors.argmin()] == best
    assert abs(errors.min() - least) < 0.005
    assert abs(step_by_step(1.0, n, d, noise) - one) < 0.005
    k = rng.normal(size=(400, n, d))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    w = rng.normal(size=(400, d))
    w *= d**0.5 / np.linalg.norm(w, axis=-1, keepdims=True)
    y = (k @ w[..., None])[..., 0] + noise * rng.normal(size=(400, n))
    assert abs(delta_error(k, y, w, np.full(n, best)) / errors.min() - 1) < 0.06
    left, falls = 1.0, []
    for _ in range(n):
        falls.append(left / (left + noise**2))
        left *= 1 - falls[-1] / d
    assert abs(delta_error(k, y, w, falls) / falling - 1) < 0.06
    gram = k.mT @ k + noise**2 * np.eye(d)
    fit = np.linalg.solve(gram, k.mT @ y[..., None])[..., 0]
    assert abs(((fit - w) ** 2).sum(-1).mean() / d / squares - 1) < 0.08


def test_maps_of_tokens_put_together_are_the_recurrence():
    q, k, v, a, b = arrays = gated.tokens(0, 6, 3, 2)
    maps = [(a[t] * (np.eye(3) - b[t] * np.outer(k[t], k[t])), b[t] * np.outer(k[t], v[t]))
            for t in range(6)]  # fmt: skip
    chain = maps[0]
    for one in maps[1:]:
        chain = tokens()(*chain, *one)
    halves = [tokens()(*tokens()(*maps[i], *maps[i + 1]), *maps[i + 2]) for i in (0, 3)]
    np.testing.assert_allclose(chain[1], tokens()(*halves[0], *halves[1])[1])
    np.testing.assert_allclose(q[5] @ chain[1], recurrence(*map(torch.asarray, arrays), 1)[5])


def test_a_chunk_of_any_size_is_the_recurrence():
    arrays = gated.tokens(0, 13, 4, 3)
    right = recurrence(*map(torch.asarray, arrays), 1)
    for size in (1, 2, 5, 13, 40):
        np.testing.assert_allclose(gated.chunked(arrays, size), right)
        np.testing.assert_allclose(chunks()(*arrays, size), right)
