"""Chapter 7's right answers, of any library, and usual wrong ones."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch
from mending import altered, mended, solutions

from attnbook_course.checks import ch07

solved = solutions(7)
width, fold, written = solved.swiglu_width, solved.folded, solved.logit_parts
variance, stream = solved.dropout_variance, solved.stream_parts


def even(e, f):
    """Multiplications per token: the matrices' by those of a pair."""
    return (4 * e * e + 2 * e * f) / (2 * e)


OLD, FIRST = "x = normed + change", "change = part(normed)"


def stacking(line, old=OLD):
    """The broken stack with one of its lines changed."""
    return mended(ch07.PRE_NORM_STACK, "pre_norm_stack", (old, line))


def torch_written(parts, g, b, w, c):
    """By a matrix that takes the mean away."""
    centre = torch.eye(len(g), dtype=parts.dtype) - 1 / len(g)
    s = torch.sqrt(parts.sum(0).var(correction=0) + 1e-5)
    return parts @ centre @ (w * g).T / s, torch.nn.functional.linear(b, w, c)


def jax_variance(w, x, p):
    return p / (1 - p) * jnp.sum(jnp.square(w * x), axis=1)


def torch_stream(x, weights, placement):
    """Every part divided on its own, by the norm of the sum."""
    found = [x]
    for w in weights:
        now = torch.stack(found).sum(0)
        read = now / now.square().mean(-1, keepdim=True).sqrt() if placement == "pre" else now
        found.append(read @ w.T)
        scale = torch.stack(found).sum(0).square().mean(-1, keepdim=True).sqrt()
        found = [f / scale if placement == "post" else f for f in found]
    return torch.stack(found)


def block(sums, own=40.0, near=20.0):
    n = len(sums)
    scores = own * n * (sums != 1) + near * np.arange(n)
    scores = np.where(np.tri(n, k=-1, dtype=bool), scores, -np.inf)
    scores[0, 0] = 0
    w = np.exp(scores - scores.max(1, keepdims=True))
    w /= w.sum(1, keepdims=True)
    u = sums + w @ (sums == 2)
    return w, np.maximum(0, u) - 2 * np.maximum(0, u - 1) + 2 * np.maximum(0, u - 2)


def loop_block(sums):
    """Weights by search, digits by counting on."""
    w, digits, carry = np.zeros((len(sums), len(sums))), [], 0
    for i, s in enumerate(sums):
        below = [j for j in range(i) if sums[j] != 1]
        w[i, below[-1] if below else 0] = 1
        digits.append((s + carry) % 2)
        carry = (s + carry) // 2
    return w, digits


SPREAD, MEAN = "np.var(np.sum(parts, axis=0))", " - np.mean(parts, axis=1, keepdims=True)"
RIGHT = {
    "even_length": [even],
    "logit_parts": [torch_written],
    "dropout_variance": [jax_variance],
    "stream_parts": [torch_stream],
}
WRONG = {
    "swiglu_width": [(lambda e, f: f, "a third matrix")],
    "folded": [(altered(fold, "weight * norm_weight", "norm_weight"), "a weight of shape (5,)")],
    "pre_norm_stack": [
        (stacking("change = x - normed + part(normed)", FIRST), "the faulty line still stands")
    ],
    "logit_parts": [
        (
            altered(written, "return (centred", "return sum(centred"),
            "shapes (2,) and (2,), expected",
        )
    ],
    "stream_parts": [
        (lambda *given: stream(*given)[1:], "The embedding is a part too"),
        (lambda *given: stream(*given).sum(0), "Return parts, not a sum"),
    ],
    "add_by_block": [
        (altered(block, "20.0", "0.5"), "of its weight to the last sum before it"),
        (altered(block, "k=-1", "k=1"), "a place looks at a higher one"),
        (altered(loop_block, "] = 1\n", "] = -1\n"), "not below 0 and sum to 1"),
        (altered(loop_block, "return w", "return sums"), "shapes (8,) and (8,), expected (8, 8)"),
        (altered(loop_block, "return w", "return np.eye(len(w))"), "do not find the carries"),
    ],
}
