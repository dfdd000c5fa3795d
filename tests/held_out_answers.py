"""Wrong answers to the held-out exercises, each with what it must hear; by label, for any class.

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


def masked(states, lengths, first, divisor):
    places = np.arange(states.shape[1])
    counts = (places >= first) & (places < lengths[:, None])
    return np.where(counts[:, :, None], states, 0).sum(1) / divisor[:, None]


def multiplied(states, lengths, first):
    places = np.arange(states.shape[1])
    counts = (places >= first) & (places < lengths[:, None])
    return (states * counts[:, :, None]).sum(1) / (lengths - first)[:, None]


def min_p(logits, n, first=True, keep_sum=True):
    q = softmax(logits / n["t"])
    seen = q if first else softmax(logits)
    q = np.where(seen >= n["r"] * seen.max(), q, 0)
    return q / q.sum() if keep_sum else q


def per_head(x, h, norm):
    return norm(x.reshape(len(x), h, -1)).reshape(x.shape)


def rms(x, eps=1e-5):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps)


def layer_norm(x):
    return rms(x - x.mean(-1, keepdims=True))


def reordered(w, h, order):
    return w.reshape(len(w), h, -1)[:, order].reshape(w.shape)


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
    b, c, d, h, k, p = (n[name] for name in "bcdhkp")
    pairs = np.arange(0, d, 2) / d
    return {
        "ho-power-kernel": [
            (lambda u: np.maximum(0, 1 - u**2) ** p, "the area is not one"),
            (lambda u: (1 - u**2) ** p / area(p), "Beyond u = 1 it is 0"),
            (lambda u: 2 * np.maximum(0, 1 - u**2) ** p / area(p), "a kernel has two sides"),
        ],
        "ho-many-inputs": [
            (lambda: k**1.25, "for one input"),
            (lambda: k ** (-(4 + d) / 4), "one over the factor"),
            (lambda: k ** (4 / (4 + d)), "not its inverse"),
        ],
        "ho-two-kernels": [
            (lambda g, h: (1 / g**2 + 1 / h**2) ** -0.5, "The powers are missing"),
            (lambda g, h: 1 / (n["a"] / g**2 + b / h**2), "the square of the bandwidth"),
            (lambda g, h: (n["a"] * g**2 + b * h**2) ** 0.5, "Variances add in a convolution"),
        ],
        "ho-noise-groups": [
            (lambda r, poor: np.sqrt(squares(r)), "takes all values alike"),
            (lambda r, poor: squares(np.where(poor, r / k, r)), "the square of the noise level"),
            (lambda r, poor: np.sqrt(squares(np.where(poor, r * k, r))), "you multiply them"),
        ],
        "ho-slope-of-lead": [
            (lambda: np.log(4 * k), "holds for large leads only"),
            (lambda: (1 + np.sqrt(1 - 1 / k)) / 2, "That is the weight"),
            (lambda: 2 * np.arccosh(np.sqrt(k / 4)), "The largest slope is 1/4"),
        ],
        "ho-prefix-mask": [
            (lambda m: (past(m) | (np.arange(m) < p)).T, "It is transposed"),
            (lambda m: past(m) | (np.arange(m)[:, None] < p), "The question sees the answer"),
            (lambda m: past(m) | (np.arange(m) <= p), "One token too many"),
        ],
        "ho-half-life": [
            (lambda z: np.log(k) / np.log(z), "The sign is turned"),
            (lambda z: -np.log(k) / np.log(1 - z), "z is what is kept"),
            (lambda z: (1 - 1 / k) / (1 - z), "by a factor in each step"),
        ],
        "ho-mean-state": [
            (lambda x, ends: x.mean(1), "all places, marks and padding"),
            (lambda x, ends: masked(x, ends, n["s"], ends), "divide by how many places count"),
            (lambda x, ends: multiplied(x, ends, n["s"]), "Zero times NaN is NaN"),
        ],
        "ho-alibi-share": [
            (lambda t: np.exp(-t / n["q"]), "the share of all the others"),
            (lambda t: 1 - np.exp(-(t - 1) / n["q"]), "The query's own place counts"),
            (lambda t: 1 - 2.0 ** (-t / n["q"]), "The softmax has e, not 2"),
        ],
        "ho-slow-pairs": [
            (lambda m: d // 2 - slow(m, pairs), "Those are the pairs that have turned"),
            (lambda m: 2 * slow(m, pairs), "A pair has two columns"),
            (lambda m: slow(m, np.arange(d // 2) / d), "The exponent is −2i/d"),
        ],
        "ho-reorder-heads": [
            (lambda w, o: w, "Nothing has moved"),
            (lambda w, o: reordered(w, h, np.argsort(o)), "That is the way back"),
            (lambda w, o: reordered(w.T, h, o).T, "You move rows, which are outputs: heads"),
        ],
        "ho-lost-share": [
            (lambda w: weighed(shares(n), w), "the share that is kept"),
            (lambda w: 1 - shares(n) @ w, "The explained share has squares"),
            (lambda w: 1 - shares(n) @ w**2, "Divide by the variance of the mixture"),
        ],
        "ho-longer-stream": [
            (lambda s, c: (k**2 - 1) * s**2 / c**2, "A block has two parts, and each"),
            (lambda s, c: (k - 1) * s / (2 * c), "Lengths do not add: the changes"),
            (lambda s, c: k**2 * s**2 / (2 * c**2), "has its start already"),
        ],
        "ho-head-norm": [
            (rms, "The mean runs over the whole row"),
            (lambda x: per_head(x, h, layer_norm), "That is a layer norm"),
            (lambda x: per_head(x, h, lambda z: rms(z, 0)), "The ε under the root is missing"),
        ],
        "ho-min-p": [
            (lambda x: min_p(x, n, keep_sum=False), "must sum to 1"),
            (lambda x: min_p(x, n, first=False), "The temperature comes first"),
            (lambda x: softmax(x / n["t"]), "Nothing is cut"),
        ],
        "ho-bits-of-tokens": [
            (np.log2, "bits per token"),
            (lambda p: np.log(p) / c, "Those are nats"),
            (lambda p: np.log2(p) * c, "Divide by the characters"),
        ],
        "ho-repeats": [
            (lambda s: k * s**2, "the mean of the values alone"),
            (lambda s: (k - 1) * s, "The noise enters by its variance, σ²"),
            (lambda s: s**2 / (k - 1), "Turned over"),
        ],
        "ho-divided-form": [
            (lambda a: a**-0.5, "The division by √d is missing"),
            (lambda a: d**0.5 / a, "the square of the bandwidth: take the root"),
            (lambda a: (d / a) ** 0.5, "by the root of d, not by d"),
        ],
        "ho-document-blocks": [
            (lambda r: seen(n, r, lambda i: max(0, i - d) // b), "That is a window of this length"),
            (lambda r: seen(n, r, lambda i: -(-(i // d * d) // b)), BACK),
            (lambda r: seen(n, r, lambda i: (i + b - 1) // d * d // b), BACK),
        ],
        "ho-older-part": [
            (lambda x, p, y, q: merged(x, p, y, q - c), "The older part's average is multiplied"),
            (lambda x, p, y, q: merged(x, p, k * (y - c), q), "off the scores, not off values"),
            (lambda x, p, y, q: overflowing(x, p, k * y, q - c), "only differences go into exp"),
        ],
        "ho-two-levels": [
            (lambda size: 2 * size * (k - 1) / k, "a device reduces one piece"),
            (lambda size: size / n["g"] * (k - 1) / k, "half of an all-reduce"),
            (lambda size: 2 * size * (1 - 1 / (n["g"] * k)), "count what leaves"),
        ],
        "ho-uneven-shares": [
            (lambda q, a: len(q) * (q + a) / (q + a).sum(), "A token of an answer counts more"),
            (lambda q, a: np.mean(q + c * a) / (q + c * a), "Turned over"),
            (lambda q, a: (q + c * a) / np.mean(q + a), "not by their tokens"),
        ],
        "ho-block-bits": [
            (lambda w: (b, w / (2**b - 1) / 2), "Scale and least value cost bits too"),
            (lambda w: (b + 16 / n["n"], 0), "two numbers of 16 bits"),
            (lambda w: (b + 32 / n["n"], w / 2**b / 2), "one step fewer than values"),
        ],
        "ho-sink-share": [
            (lambda m, a: a + np.log(k - 1), "where is n?"),
            (lambda m, a: a - np.log((k - 1) * m), "a sink that takes more"),
            (lambda m, a: (k - 1) * m * np.exp(a), "take the logarithm"),
        ],
        "ho-state-crossing": [
            (lambda d: n["m"] * d / 2, "one number per feature"),
            (lambda d: (d + 1) / 2, "more features than a head is wide"),
            (lambda d: n["m"] * (d + 1), "The cache keeps two rows per token"),
        ],
        "ho-kept-answer": [
            (lambda b: np.log(k) / np.log(1 - b / d), "The sign is turned"),
            (lambda b: np.log(k) * d / b, "for very wide states"),
            (lambda b: -np.log(k) / np.log(1 - b * (2 - b) / d), "not a square"),
        ],
    }


def shares(n):
    return np.asarray([n["a"], n["b"], n["c"]]) / n["n"]
