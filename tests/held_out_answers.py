"""A wrong answer to each held-out exercise, with what it must hear; by label, for any class.

A table's entry takes the class's numbers and gives pairs of an answer and a part of the message.
"""

from __future__ import annotations

import numpy as np
from mending import softmax


def squares(x):
    return np.mean(np.asarray(x) ** 2)


def past(m):
    return np.tri(m) > 0


def weighed(s, w, power=2):
    return s @ w**power / np.sum(w**2)


def multiplied(states, lengths, first):
    places = np.arange(states.shape[1])
    counts = (places >= first) & (places < lengths[:, None])
    return (states * counts[:, :, None]).sum(1) / (lengths - first)[:, None]


def min_p(logits, n, first=True, keep_sum=True):
    q = softmax(logits / n["t"])
    seen = q if first else softmax(logits)
    q = np.where(seen >= n["r"] * seen.max(), q, 0)
    return q / q.sum() if keep_sum else q


def rms(x, eps=1e-5):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)


def slow(m, powers):
    return np.sum(m * 1e4**-powers < 2 * np.pi)


def area(p):
    i = np.arange(1, p + 1)
    return 2 * np.prod(2 * i / (2 * i + 1))


def seen(n, rows, first=None):
    """Blocks of documents, if a row begins at this block of its first query's token."""
    first = first or (lambda i: i // n["d"] * n["d"] // n["b"])
    return sum(r - first(r * n["b"]) + 1 for r in range(rows))


def merged(x, p, y, q):
    w = 1 / (1 + np.exp(p - q))
    return (1 - w) * x + w * y


def overflowing(x, p, y, q):
    u, v = np.exp(p), np.exp(q)
    return (u * x + v * y) / (u + v)


BACK = "sees back to the block in which"


def wrong(n):
    """The wrong answers of a class with these numbers, by label."""
    b, c, d, k, p = (n[name] for name in "bcdkp")
    pairs = np.arange(0, d, 2) / d
    return {
        "ho-power-kernel": [(lambda u: np.maximum(0, 1 - u**2) ** p, "the area is not one")],
        "ho-many-inputs": [(lambda: k**1.25, "for one input")],
        "ho-two-kernels": [(lambda g, h: (1 / g**2 + 1 / h**2) ** -0.5, "The powers are missing")],
        "ho-noise-groups": [(lambda r, poor: np.sqrt(squares(r)), "takes all values alike")],
        "ho-slope-of-lead": [(lambda: np.log(4 * k), "holds for large leads only")],
        "ho-prefix-mask": [(lambda m: (past(m) | (np.arange(m) < p)).T, "It is transposed")],
        "ho-half-life": [(lambda z: np.log(k) / np.log(z), "The sign is turned")],
        "ho-mean-state": [(lambda x, ends: x.mean(1), "all places, marks and padding")],
        "ho-alibi-share": [(lambda t: np.exp(-t / n["q"]), "the share of all the others")],
        "ho-slow-pairs": [
            (lambda m: d // 2 - slow(m, pairs), "Those are the pairs that have turned")
        ],
        "ho-reorder-heads": [(lambda w, o: w, "Nothing has moved")],
        "ho-lost-share": [(lambda w: weighed(shares(n), w), "the share that is kept")],
        "ho-longer-stream": [
            (lambda s, c: (k**2 - 1) * s**2 / c**2, "A block has two parts, and each")
        ],
        "ho-head-norm": [(rms, "The mean runs over the whole row")],
        "ho-min-p": [(lambda x: min_p(x, n, keep_sum=False), "must sum to 1")],
        "ho-bits-of-tokens": [(np.log2, "bits per token")],
        "ho-repeats": [(lambda s: k * s**2, "the mean of the values alone")],
        "ho-divided-form": [(lambda a: a**-0.5, "The division by √d is missing")],
        "ho-document-blocks": [(lambda r: seen(n, r, lambda i: -(-(i // d * d) // b)), BACK)],
        "ho-older-part": [
            (lambda x, p, y, q: merged(x, p, y, q - c), "The older part's average is multiplied"),
            (lambda x, p, y, q: overflowing(x, p, k * y, q - c), "only differences go into exp"),
        ],
        "ho-two-levels": [(lambda size: 2 * size * (k - 1) / k, "a device reduces one piece")],
        "ho-uneven-shares": [
            (lambda q, a: len(q) * (q + a) / (q + a).sum(), "A token of an answer counts more")
        ],
        "ho-block-bits": [
            (lambda w: (b, w / (2**b - 1) / 2), "Scale and least value cost bits too")
        ],
        "ho-sink-share": [(lambda m, a: a + np.log(k - 1), "where is n?")],
        "ho-state-crossing": [(lambda d: n["m"] * d / 2, "one number per feature")],
        "ho-kept-answer": [(lambda b: np.log(k) / np.log(1 - b / d), "The sign is turned")],
    }


def shares(n):
    return np.asarray([n["a"], n["b"], n["c"]]) / n["n"]
