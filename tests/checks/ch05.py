"""Answers to chapter 5's exercises, right and wrong."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch
from mending import mended, softmax

from attnbook_course.checks import ch05


def theta(d):
    return 10000.0 ** -(np.arange(0, d, 2) / d)


def sinusoid(p, d):
    return np.stack([np.sin(p * theta(d)), np.cos(p * theta(d))], axis=1).ravel()


def blocks(k, d):
    m = np.zeros((d, d))
    for pair, angle in enumerate(k * theta(d)):
        c, s = np.cos(angle), np.sin(angle)
        m[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = [[c, s], [-s, c]]
    return m


def in_halves(k, d):
    c, s = np.diag(np.cos(k * theta(d))), np.diag(np.sin(k * theta(d)))
    return np.block([[c, s], [-s, c]])


def rotary_in_halves(x, positions):
    angles = positions[:, None] * theta(x.shape[1])
    (a, b), c, s = np.split(x, 2, axis=1), np.cos(angles), np.sin(angles)
    return np.concatenate([a * c - b * s, a * s + b * c], axis=1)


def still_complex(x, positions):
    return (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * positions[:, None] * theta(x.shape[1]))


def filtered(score=lambda place, value: -(place + value) / 2):
    """The right answer, pixel by pixel, and its neighbours by squared distances over h²."""

    def answer(image, h_space, h_value):
        new, (rows, columns) = np.zeros(image.shape), np.indices(image.shape)
        for (r, c), v in np.ndenumerate(image):
            place = ((rows - r) ** 2 + (columns - c) ** 2) / h_space**2
            new[r, c] = np.sum(
                softmax(score(place, ((image - v) / h_value) ** 2), axis=(0, 1)) * image
            )
        return new

    return answer


def running(q, k, v):
    state, out = np.zeros((k.shape[1], v.shape[1])), []
    for a, b, c in zip(q, k, v, strict=True):
        state += b[:, None] * c
        out.append(a @ state)
    return out


def stale(q, k, v):
    state, out = np.zeros((k.shape[1], v.shape[1])), []
    for a, b, c in zip(q, k, v, strict=True):
        out.append(a @ state)
        state = state + np.outer(b, c)
    return out


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


def torch_shift(k, d):
    angles = k * 10000 ** (-torch.arange(0, d, 2) / d)
    turns = [torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]]) for a in angles]
    return torch.block_diag(*turns)


def jax_shift(k, d):
    def turn(angle):
        return jax.scipy.linalg.expm(jnp.array([[0, angle], [-angle, 0]]))

    return jax.scipy.linalg.block_diag(*map(turn, k * 10000.0 ** (-jnp.arange(0, d, 2) / d)))


def torch_rotary(x, positions):
    angles = torch.outer(positions.float(), 10000 ** (-torch.arange(0, x.shape[1], 2) / x.shape[1]))
    z = torch.view_as_complex(x.float().reshape(len(x), -1, 2))
    return torch.view_as_real(z * torch.polar(torch.ones_like(angles), angles)).flatten(1)


def jax_rotary(x, positions):
    z = (x[:, 0::2] + 1j * x[:, 1::2]) * jnp.exp(1j * positions[:, None] * theta(x.shape[1]))
    return jnp.stack([jnp.real(z), jnp.imag(z)], axis=-1).reshape(x.shape)


def view_rotary(x, positions):
    turned = x.view(complex) * np.exp(1j * np.outer(positions, theta(x.shape[1])))
    return turned.view(float)


def torch_bilateral(image, h_space, h_value):
    where = torch.cartesian_prod(*(torch.arange(size) for size in image.shape)) / h_space
    points = torch.cat([where, image.reshape(-1, 1) / h_value], dim=1)
    weights = torch.softmax(-(torch.cdist(points, points) ** 2) / 2, dim=-1)
    return (weights @ image.reshape(-1, 1)).reshape(image.shape)


def jax_bilateral(image, h_space, h_value):
    r, c = jnp.indices(image.shape, dtype=image.dtype)
    s = [-((a.ravel()[:, None] - a.ravel()) ** 2) / (2 * h * h) for a, h in
         ((r, h_space), (c, h_space), (image, h_value))]  # fmt: skip
    return (jax.nn.softmax(sum(s)) @ image.ravel()).reshape(image.shape)


def torch_running(q, k, v):
    """PyTorch's own default type is mixed in."""
    state, out = torch.zeros(k.shape[1], v.shape[1]), []
    for a, b, c in zip(q, k, v, strict=True):
        state = state + torch.outer(b, c)
        out.append(torch.ones(1, len(a)) * a @ state)
    return torch.cat(out)


def jax_running(q, k, v):
    def step(state, token):
        a, b, c = token
        state = state + jnp.outer(b, c)
        return state, a @ state

    return jax.lax.scan(step, jnp.zeros((k.shape[1], v.shape[1]), v.dtype), (q, k, v))[1]


def torch_heads(x, kernel, sharpness):
    i, j = torch.arange(len(x))[:, None], torch.arange(-1, len(x) + 1)
    places = i + torch.tensor([-1, 0, 1])[:, None, None]
    w = torch.softmax(-sharpness * (places - j).double() ** 2, dim=-1)
    return torch.einsum("h,hij,j->i", kernel, w, torch.nn.functional.pad(x, (1, 1)))


def jax_heads(x, kernel, sharpness):
    queries, keys = (jnp.arange(a, len(x) - a, dtype=x.dtype) for a in (0, -1))
    k = jnp.stack([keys, keys**2], axis=1)
    heads = [
        jax.nn.softmax(sharpness * jnp.stack([2 * (queries + o), -jnp.ones_like(x)], axis=1) @ k.T)
        for o in (-1, 0, 1)
    ]
    return sum(f * (w @ jnp.pad(x, 1)) for f, w in zip(kernel, heads, strict=True))


def causal(hidden):
    """Weights under a mask whose hidden scores are these."""
    return lambda s: softmax(np.where(np.tri(len(s)) > 0, s, hidden(s)))


def leaking(old, new):
    """The code of the exercise with one change."""
    return mended(ch05.CAUSAL_WEIGHTS, "causal_weights", (old, new))


RIGHT = {
    "crossover_length": [lambda d: [d + d / 2]],
    "sliding_mask": [
        lambda n, width: torch.ones(n, n).tril().triu(1 - width).bool(),
        lambda n, width: jnp.tril(jnp.triu(jnp.ones((n, n)), 1 - width)),
        lambda n, width: [[0 <= i - j < width for j in range(n)] for i in range(n)],
    ],
    "shift_matrix": [torch_shift, jax_shift],
    "rotary_complex": [torch_rotary, jax_rotary, view_rotary],
    "bilateral": [torch_bilateral, jax_bilateral],
    "running_attention": [
        torch_running,
        jax_running,
        lambda *a: running(*(x.astype(np.float32) for x in a)),
    ],
    "convolution_by_heads": [torch_heads, jax_heads, heads],
    "causal_weights": [causal(lambda s: -1e9), leaking("1, n + 1", "n")],
}

WRONG = {
    "crossover_length": [
        (lambda d: 1.5, "That is n/d"),
        (lambda d: 1.5 * d**2, "one d too many"),
        (lambda d: 5, "you give 5, expected a larger number"),
    ],
    "sliding_mask": [
        (lambda n, width: np.tril(np.triu(np.ones((n, n))), width - 1), "It is transposed"),
        (lambda n, width: np.triu(np.tri(n, k=-1), 1 - width), "No token sees itself"),
        (lambda n, width: [[1] * n] * n, "All see all"),
    ],
    "shift_matrix": [
        (lambda k, d: blocks(1, d), "It shifts by 1"),
        (in_halves, "not in the first half"),
        (lambda k, d: np.outer(sinusoid(k, d), sinusoid(0, d)) * 2 / d, "right for p = 0"),
        (lambda k, d: np.eye(d), "expected −0.99"),
    ],
    "rotary_complex": [
        (rotary_in_halves, "as some libraries do"),
        (lambda x, p: x + np.stack([sinusoid(one, x.shape[1]) for one in p]), "You add"),
        (still_complex, "numbers are complex"),
    ],
    "bilateral": [
        (filtered(lambda place, value: -place / 2), "that is a blur"),
        (filtered(lambda place, value: -value / 2), "The value alone"),
        (lambda *a: filtered()(*a).ravel(), "give shape (15,), expected (3, 5)"),
        (triples, "Average the values alone, not the triples"),
        (weights, "Those are weights: average the pixels"),
    ],
    "running_attention": [
        (lambda q, k, v: q @ (k.T @ v), "sees all keys"),
        (stale, "read before you add"),
        (lambda q, k, v: np.tril(q @ k.T) @ v, "Or keep a state"),
        (lambda *a: running(*a)[::-1], "expected "),
    ],
    "convolution_by_heads": [
        (lambda x, f, a: heads(x, f[::-1], a), "The kernel is flipped"),
        (lambda x, f, a: heads(x, f, a, anchors=0), "At an end there is no such neighbour"),
        (lambda x, f, a: heads(np.pad(x, 1), f, a), "anchors are keys, and no queries"),
    ],
    "half_distance": [
        (lambda m: 1 / m, "has fallen to 1/e"),
        (lambda m: np.log10(2) / m, "of base 10"),
        (lambda m: np.log(0.5) / m, "the distance is positive"),
    ],
    "causal_weights": [
        (causal(np.min), "The lowest score still gives"),
        (causal(lambda s: -100.0), "A finite number hides a key"),
        (leaking("1, n + 1", "2, n + 2"), "0], counted from 0, you give 0.3238, expected 1."),
        (leaking("max(axis=1", "max(axis=0"), "the fault is in another line than you changed."),
        (
            leaking("masked = n", "allowed = np.tri(n) > 0\n    masked = n"),
            "faulty line still stands",
        ),
    ],
}
