"""Chapter 11's right answers, of any library, and usual wrong ones."""

from __future__ import annotations

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


def masked(q, k, v):
    """Right numbers, from an array of all pairs."""
    w = np.tril(q @ k.T)
    return w @ v / w.sum(axis=1, keepdims=True)


FAULT = "error = v[t] - k[t] @ state"


def gate(new, *others):
    return mended(ch11.GATED_DELTA, "gated_delta", (FAULT, new), *others)


def torch_written(state, key, value):
    return state + torch.outer(key, value - key @ state) / (key @ key)


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
    "written": [torch_written],
    "landmark_features": [torch_landmark],
    "chunked": [torch_chunks],
}
WRONG = {
    "two_tokens": [
        (altered(tokens, ", a_2 @ b_1 + b_2", ""), "two arrays, with a comma"),
        (lambda *maps: tokens(*maps)[::-1], "the first is B"),
    ],
    "linear_averages": [
        (altered(masked, "np.tril(q @ k.T)", "np.tril(q @ k.T, -1)"), "the first output is NaN"),
        (masked, "holds"),
    ],
    "gated_delta": [
        (
            gate(FAULT, ("k[t], error", "k[t], error + (1 - decay[t]) * k[t] @ state")),
            "Mend the line",
        )
    ],
    "one_pass": [
        (altered(one_after_another, "[t, :t] @ u[:t]", "[t] @ u"), "you give NaN where G is NaN")
    ],
    "landmark_features": [
        (root_of_each_entry, "you give NaN: the root of each entry"),
        (lambda x, z, scale: gauss(x, x, scale), "expected (5, 3)"),
    ],
    "chunked": [
        (altered(chunks, D, "np.cumprod(a)[:, None] / np.cumprod(a)"), "multiply decays"),
        (altered(chunks, "len(k), chunk", "len(k) // chunk * chunk, chunk"), "chunk is shorter"),
        (recurrence, "that is the recurrence. Solve for all u of a chunk"),
    ],
}
