"""Chapter 11's right answers, of any library, and usual wrong ones."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch
from mending import altered, mended, solutions

from attnbook import linear_attention
from attnbook_course.checks import ch11

solved = solutions(11)
error, tokens, written = solved.relative_error, solved.two_tokens, solved.written
one_after_another, pairs = solved.one_pass, solved.more_pairs
landmark, chunks = solved.landmark_features, solved.chunked


def torch_error(q, k, m):
    return torch.sqrt((torch.cosh(torch.sum((q + k) ** 2)) - 1) / m)


def running(q, k, v):
    """A loop, with two sums."""
    state, norm, outputs = np.zeros((q.shape[1], v.shape[1])), np.zeros(q.shape[1]), []
    for t in range(len(q)):
        state, norm = state + np.outer(k[t], v[t]), norm + k[t]
        outputs.append(q[t] @ state / (q[t] @ norm))
    return np.asarray(outputs)


def masked(q, k, v):
    """Right numbers, from an array of all pairs."""
    w = np.tril(q @ k.T)
    return w @ v / w.sum(axis=1, keepdims=True)


def torch_running(q, k, v):
    one = torch.cat([v, torch.ones(len(v), 1, dtype=v.dtype)], dim=1)
    sums = torch.einsum("td,tdp->tp", q, torch.cumsum(k[:, :, None] * one[:, None], dim=0))
    return sums[:, :-1] / sums[:, -1:]


def jax_running(q, k, v):
    sums = jnp.einsum("td,tdp->tp", q, jnp.cumsum(k[:, :, None] * v[:, None], axis=0))
    return sums / jnp.sum(q * jnp.cumsum(k, axis=0), axis=1, keepdims=True)


FAULT = "error = v[t] - k[t] @ state"
WRITE = "state = decay[t] * state + beta[t] * np.outer(k[t], error)"
RIGHT_GATE = "error = v[t] - decay[t] * k[t] @ state"


def gate(new, *others):
    return mended(ch11.GATED_DELTA, "gated_delta", (FAULT, new), *others)


def torch_written(state, key, value):
    return state + torch.outer(key, value - key @ state) / (key @ key)


def torch_one_pass(gram, values, beta):
    lower = torch.eye(len(gram), dtype=gram.dtype) + beta * torch.tril(gram, -1)
    return torch.linalg.solve_triangular(lower, beta * values, upper=False)


def jax_one_pass(gram, values, beta):
    u = jnp.zeros(values.shape)
    for t in range(len(values)):
        u = u.at[t].set(beta * (values[t] - gram[t, :t] @ u[:t]))
    return u


def one_by_one(w, cov, features, values, noise):
    for f, y in zip(features, values, strict=True):
        g = cov @ f / (f @ cov @ f + noise**2)
        w, cov = w + g * (y - f @ w), cov - np.outer(g, f @ cov)
    return w, cov


def torch_pairs(w, cov, f, y, noise):
    among = f @ cov @ f.T + noise**2 * torch.eye(len(y), dtype=f.dtype)
    g = torch.linalg.solve(among, f @ cov).T
    return w + g @ (y - f @ w), cov - g @ f @ cov


def late(w, cov, f, y, noise):
    new = pairs(w, cov, f, y, noise)[1]
    return pairs(w, new, f, y, noise)[0], new


def gauss(a, b, scale):
    return np.exp(-0.5 * ((a[:, None] - b) / scale) ** 2)


def root_of_each_entry(x, z, scale):
    return gauss(x, z, scale) @ np.linalg.inv(gauss(z, z, scale)) ** 0.5


def torch_landmark(x, z, scale):
    def kernel(a, b):
        return torch.exp(-0.5 * ((a[:, None] - b) / scale) ** 2)

    root = torch.linalg.cholesky(kernel(z, z))
    return torch.linalg.solve_triangular(root, kernel(x, z).T, upper=False).T


def torch_chunks(q, k, v, decay, beta, chunk):
    return linear_attention.chunked(q, k, v, decay=decay, beta=beta, chunk=chunk)[0]


def recurrence(q, k, v, decay, beta, chunk):
    """Right numbers, but a token at a time."""
    state, outputs = torch.zeros(k.shape[1], v.shape[1], dtype=k.dtype), []
    for t in range(len(k)):
        state = decay[t] * state
        state = state + beta[t] * torch.outer(k[t], v[t] - k[t] @ state)
        outputs.append(q[t] @ state)
    return torch.stack(outputs)


D = "np.cumprod(np.where(later, a[:, None], 1), axis=0)"
RIGHT = {
    "relative_error": [torch_error],
    "linear_averages": [running, torch_running, jax_running],
    "gated_delta": [gate(RIGHT_GATE), gate("error = v[t] - k[t] @ (decay[t] * state)")],
    "written": [torch_written],
    "one_pass": [torch_one_pass, jax_one_pass],
    "more_pairs": [one_by_one, torch_pairs],
    "landmark_features": [torch_landmark],
    "chunked": [torch_chunks],
}
WRONG = {
    "relative_error": [
        (altered(error, "q + k", "q - k"), "equal keys are the hard ones"),
        (altered(error, "np.sqrt", ""), "That is the variance"),
        (altered(error, " - 1", ""), "subtract the mean's square, 1"),
    ],
    "two_tokens": [
        (lambda a, b, c, e: (a @ c, a @ e + b), "what comes later stands on the left"),
        (altered(tokens, "a_2 @ a_1", "a_2 * a_1"), "not entry by entry"),
        (altered(tokens, "a_2 @ b_1", "b_1"), "The second token changes B₁ too"),
        (altered(tokens, ", a_2 @ b_1 + b_2", ""), "two arrays, with a comma"),
        (lambda *maps: tokens(*maps)[::-1], "the first is B"),
    ],
    "linear_averages": [
        (altered(running, " / (q[t] @ norm)", ""), "Nothing is divided: the weights"),
        (altered(running, "(q[t] @ norm)", "norm.sum()"), "a product with the query too"),
        (altered(masked, "np.tril(q @ k.T)", "q @ k.T"), "A query sees later tokens too"),
        (altered(masked, "np.tril(q @ k.T)", "np.tril(q @ k.T, -1)"), "the first output is NaN"),
        (altered(masked, "w @ v", "w"), "those are weights, average values"),
        (masked, "holds"),
    ],
    "gated_delta": [
        (gate("error = v[t] - 1.0 * k[t] @ state"), "still that before the gate"),
        (gate("error = decay[t] * (v[t] - k[t] @ state)"), "The new value does not fade"),
        (gate("error = v[t] - beta[t] * k[t] @ state"), "β does not say how much is left"),
        (gate(FAULT, (WRITE, f"state = decay[t] * state; {WRITE}")), "in another line than you"),
        (
            gate(FAULT, ("k[t], error", "k[t], error + (1 - decay[t]) * k[t] @ state")),
            "Mend the line",
        ),
    ],
    "written": [
        (altered(written, " / (key @ key)", ""), "divide by its square"),
        (altered(written, "value - key @ state", "value"), "is to go: subtract it"),
        (altered(written, "state + np.", "np."), "That is the change"),
        (lambda *given: written(*given).T, "Is it transposed"),
    ],
    "one_pass": [
        (altered(one_after_another, "u[:t])", "values[:t])"), "use each u at once"),
        (altered(one_after_another, "gram[t, :t]", "gram[:t, t]"), "row t is gram[t, :t]"),
        (altered(one_after_another, "= beta *", "="), "β is missing"),
        (altered(one_after_another, "[t, :t] @ u[:t]", "[t] @ u"), "you give NaN where K is NaN"),
    ],
    "more_pairs": [
        (altered(pairs, "noise**2", "noise"), "deviation: square it"),
        (altered(pairs, " * np.eye(len(values))", ""), "on the diagonal alone"),
        (altered(pairs, "(values - features @ weights)", "values"), "Subtract what is predicted"),
        (altered(one_by_one, "np.outer(g, f @ cov)", "np.outer(g, f)"), "P is missing"),
        (late, "P before its update"),
        (lambda *given: pairs(*given)[::-1], "return the mean first"),
    ],
    "landmark_features": [
        (
            altered(
                landmark, "np.linalg.solve(root, kernel(x, landmarks).T).T", "kernel(x, landmarks)"
            ),
            "those features are the kernel values",
        ),
        (
            altered(
                landmark,
                "np.linalg.solve(root, kernel(x, landmarks).T)",
                "(root @ kernel(x, landmarks).T)",
            ),
            "A root of K_z is in them",
        ),
        (altered(landmark, "np.linalg.cholesky", ""), "The inverse is there twice"),
        (root_of_each_entry, "you give NaN: the root of each entry"),
        (lambda *given: landmark(*given).T, "points are rows, features columns"),
        (lambda x, z, scale: gauss(x, x, scale), "expected (5, 3)"),
    ],
    "chunked": [
        (altered(chunks, "state = g[-1] *", "state ="), "only g of the last token"),
        (altered(chunks, "b[:, None] * np.where", "np.where"), "it stands in the system too"),
        (altered(chunks, D, f"{D} * a"), "D_tt is 1"),
        (altered(chunks, D, "np.cumprod(a)[:, None] / np.cumprod(a)"), "multiply decays"),
        (altered(chunks, "len(k), chunk", "len(k) // chunk * chunk, chunk"), "chunk is shorter"),
        (altered(recurrence, "- k[t] @ state", "- 0.5 * k[t] @ state"), ", expected"),
        (recurrence, "that is the recurrence. Solve for all u of a chunk"),
    ],
}
