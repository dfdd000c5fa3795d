"""Answers to chapter 5's exercises, right and wrong."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch
from mending import altered, mended, softmax, solutions

from attnbook_course.checks import ch05

BUILT = solutions(5).causal_self_attention
VALUES = "v = positions.rotary(v, np.arange(n))"
HIDDEN = "np.where(np.tri(n, dtype=bool), s, -np.inf)"


def theta(d):
    return 10000.0 ** -(np.arange(0, d, 2) / d)


def still_complex(x, positions):
    return (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * positions[:, None] * theta(x.shape[1]))


def heads(x, kernel, sharpness, anchors=1):
    """Head by head and token by token."""
    keys, values = np.arange(-anchors, len(x) + anchors), np.pad(x, anchors)
    y = np.zeros(len(x))
    for f, o in zip(kernel, (-1, 0, 1), strict=True):
        for i in range(len(x)):
            y[i] += f * (softmax(-sharpness * (i + o - keys) ** 2.0) @ values)
    return y


def weights(image, h_space, h_value):
    rows, columns = np.indices(image.shape)
    parts = (rows / h_space, columns / h_space, image / h_value)
    return softmax(-sum((a.ravel()[:, None] - a.ravel()) ** 2 for a in parts) / 2)


def triples(image, *bandwidths):
    return weights(image, *bandwidths) @ np.stack([image.ravel()] * 3, axis=1)


def leaking(old, new):
    """The code of the exercise with one change."""
    return mended(ch05.CAUSAL_WEIGHTS, "causal_weights", (old, new))


def turned_pairs(x):
    """Rotary positions by complex numbers."""
    turned = still_complex(x, np.arange(len(x)))
    return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)


def causal_by_loop(x, w_q, w_k, w_v, rotary=False):
    q, k = (turned_pairs(x @ w.T) if rotary else x @ w.T for w in (w_q, w_k))
    by_token = [softmax(k[: i + 1] @ q[i] / np.sqrt(len(w_q))) for i in range(len(x))]
    return [weights @ (x[: len(weights)] @ w_v.T) for weights in by_token]


def causal_by_torch(x, w_q, w_k, w_v, rotary=False):
    q, k, v = (torch.nn.functional.linear(x, w)[None] for w in (w_q, w_k, w_v))
    if rotary:
        angles = torch.arange(len(x))[:, None] * torch.from_numpy(theta(len(w_q)))
        turn = torch.polar(torch.ones_like(angles), angles)
        pairs = (torch.view_as_complex(one.unflatten(-1, (-1, 2))) * turn for one in (q, k))
        q, k = (torch.view_as_real(one).flatten(-2).to(v.dtype) for one in pairs)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)[0]


@jax.numpy_dtype_promotion("standard")  # other tests are strict
def causal_by_jax(x, w_q, w_k, w_v, rotary=False):
    q, k, v = (jnp.asarray(x) @ w.T for w in (w_q, w_k, w_v))
    if rotary:
        angles = jnp.arange(len(x))[:, None] * theta(len(w_q))
        q, k = (_turned(one, jnp.cos(angles), jnp.sin(angles)) for one in (q, k))
    s = jnp.einsum("id,jd->ij", q, k) / jnp.sqrt(len(w_q))
    return jax.nn.softmax(s, axis=1, where=jnp.tri(len(x), dtype=bool)) @ v


def _turned(x, cos, sin):
    a, b = x[:, ::2], x[:, 1::2]
    return jnp.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape)


RIGHT = {
    "causal_self_attention": [causal_by_loop, causal_by_torch, causal_by_jax],
    "crossover_length": [lambda d: [d + d / 2]],
    "sliding_mask": [lambda n, width: torch.ones(n, n).tril().triu(1 - width).bool()],
}

WRONG = {
    "causal_self_attention": [
        (altered(BUILT, HIDDEN, "s"), "The mask is missing"),
        (altered(BUILT, "np.tri(n,", "np.tri(n, k=-1,"), "A token sees itself too"),
        (altered(BUILT, "np.tri(n,", "np.tri(n, k=1,"), "One too far"),
        (altered(BUILT, "-np.inf", "-10.0"), "Only a score of −∞"),
        (altered(BUILT, "-np.inf", "-1e9"), "in place of −∞ leaks"),
        (altered(BUILT, "s.max(axis=1, keepdims=True)", "s.max()"), "Mask first"),
        (altered(BUILT, "s - s.max(axis=1, keepdims=True)", "s"), "Exponentials overflow"),
        (altered(BUILT, "w_q.T", "w_q", "w_k.T", "w_k", "w_v.T", "w_v"), "Tokens are rows"),
        (altered(BUILT, "q.shape[1]", "x.shape[1]"), "divided by √e"),
        (altered(BUILT, "weights.sum(axis=1", "weights.sum(axis=0"), "over the queries"),
        (altered(BUILT, "if rotary:", f"if rotary:\n        {VALUES}"), "not values"),
        (altered(BUILT, "    s = q", "    q = x @ w_q.T\n    s = q"), "Turn the queries too"),
        (altered(BUILT, "if rotary", "if False"), "Nothing is turned"),
        (altered(BUILT, "return weights @ v", "return weights @ v, weights"), "the output alone"),
        (altered(BUILT, "return weights @ v", "return x + weights @ v"), "x is added"),
    ],
    "crossover_length": [(lambda d: 1.5, "That is n/d")],
    "sliding_mask": [
        (lambda n, width: np.tril(np.triu(np.ones((n, n))), width - 1), "It is transposed")
    ],
    "rotary_complex": [(still_complex, "numbers are complex")],
    "bilateral": [
        (triples, "Average the values alone, not the triples"),
        (weights, "Those are weights: average the pixels"),
    ],
    "convolution_by_heads": [(lambda x, f, a: heads(x, f[::-1], a), "The kernel is flipped")],
    "half_distance": [(lambda m: 1 / m, "has fallen to 1/e")],
    "causal_weights": [
        (
            leaking("masked = n", "allowed = np.tri(n) > 0\n    masked = n"),
            "faulty line still stands",
        )
    ],
}
