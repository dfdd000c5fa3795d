"""Answers to chapter 5's exercises, right and wrong."""

from __future__ import annotations

import numpy as np
import torch
from mending import mended, softmax

from attnbook_course.checks import ch05


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


def torch_running(q, k, v):
    """PyTorch's own default type is mixed in."""
    state, out = torch.zeros(k.shape[1], v.shape[1]), []
    for a, b, c in zip(q, k, v, strict=True):
        state = state + torch.outer(b, c)
        out.append(torch.ones(1, len(a)) * a @ state)
    return torch.cat(out)


def leaking(old, new):
    """The code of the exercise with one change."""
    return mended(ch05.CAUSAL_WEIGHTS, "causal_weights", (old, new))


def sinusoids(p, d):
    a = p / 10_000 ** (np.arange(0, d, 2) / d)
    return np.stack([np.sin(a), np.cos(a)], axis=-1).ravel()


RIGHT = {
    "crossover_length": [lambda d: [d + d / 2]],
    "sliding_mask": [lambda n, width: torch.ones(n, n).tril().triu(1 - width).bool()],
    "running_attention": [torch_running],
}

WRONG = {
    "crossover_length": [(lambda d: 1.5, "That is n/d")],
    "sliding_mask": [
        (lambda n, width: np.tril(np.triu(np.ones((n, n))), width - 1), "It is transposed")
    ],
    "shift_matrix": [
        (lambda k, d: np.outer(sinusoids(k, d), sinusoids(0, d)) * 2 / d, "right for p = 0")
    ],
    "rotary_complex": [(still_complex, "numbers are complex")],
    "bilateral": [
        (triples, "Average the values alone, not the triples"),
        (weights, "Those are weights: average the pixels"),
    ],
    "running_attention": [(lambda q, k, v: np.tril(q @ k.T) @ v, "Or keep a state")],
    "convolution_by_heads": [(lambda x, f, a: heads(x, f[::-1], a), "The kernel is flipped")],
    "half_distance": [(lambda m: 1 / m, "has fallen to 1/e")],
    "causal_weights": [
        (
            leaking("masked = n", "allowed = np.tri(n) > 0\n    masked = n"),
            "faulty line still stands",
        )
    ],
}
