"""Answers to chapter 3's exercises, right and wrong."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import torch
from mending import mended, softmax

from attnbook_course.checks import ch03


def added(s, mask):
    return s - 1e9 * ~mask


def assigned(s, mask):
    s[~mask] = -np.inf
    return s


def attending(
    axis=-1, by=None, hide=-np.inf, after=False, inverted=False, turned=False, masked=None
):
    """The build in other lines, and its neighbours; by gives a divisor of d, n and p."""

    def answer(q, k, v, mask=None):
        s = q @ (k.T if turned else np.swapaxes(k, -1, -2))
        s = s / (by or (lambda d, n, p: d**0.5))(q.shape[-1], k.shape[-2], v.shape[-1])
        s = masked(s, mask) if masked and mask is not None else s
        mask = True if mask is None else mask != inverted
        s = s if after or masked else np.where(mask, s, hide)
        e = np.exp(s - s.max(axis, keepdims=True))
        w = e / e.sum(axis, keepdims=True)
        w = w * mask if after else w
        return w @ v, w

    return answer


def largest_of_all(q, k, v, mask=None):
    s = q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5
    e = np.exp(s - s.max(-1, keepdims=True)) * (1 if mask is None else mask)
    w = e / e.sum(-1, keepdims=True)
    return w @ v, w


def by_einsum(q, k, v, mask=None):
    s = np.einsum("md,nd->mn", q, k) / q.shape[-1] ** 0.5
    w = softmax(s if mask is None else np.where(mask, s, -np.inf))
    return w @ v, w


def attending_in_place(q, k, v, mask=None):
    k /= q.shape[-1] ** 0.5
    return attending(by=lambda d, n, p: 1)(q, k, v, mask)


def attending_by_loop(q, k, v, mask=None):
    if q.ndim > 2:
        pairs = [attending_by_loop(*one, mask) for one in zip(q, k, v, strict=True)]
        return tuple(np.stack(part) for part in zip(*pairs, strict=True))
    weights = np.zeros((len(q), len(k)))
    for i in range(len(q)):
        seen = [j for j in range(len(k)) if mask is None or mask[i, j]]
        weights[i, seen] = softmax(np.array([q[i] @ k[j] for j in seen]) / math.sqrt(len(q[i])))
    return weights @ v, weights


def attending_by_torch(q, k, v, mask=None):
    s = q @ k.mT / q.shape[-1] ** 0.5
    w = (s if mask is None else s.masked_fill(~mask, -torch.inf)).softmax(-1)
    return w @ v, w


def attending_by_jax(q, k, v, mask=None):
    s = jnp.einsum("...id,...jd->...ij", q, k) / jnp.sqrt(q.shape[-1])
    w = jax.nn.softmax(s, axis=-1, where=None if mask is None else jnp.asarray(mask))
    return w @ v, w


def overflowing(q, k, v, mask=None):
    e = np.exp(q @ np.swapaxes(k, -1, -2) / 2) * (1 if mask is None else mask)
    w = e / e.sum(-1, keepdims=True)
    return w @ v, w


def masks(lengths, n):
    j = np.arange(n)
    return j <= j[:, None], j < lengths[:, None, None]


def mask(lengths, n):
    causal, real = masks(lengths, n)
    return causal & real


def fused(q_power=2, k_power=0, norm=0.5):
    """The right answer, and its neighbours, by the powers of h and the factor of the norm."""

    def answer(q, k, h):
        norms = norm * (k**2).sum(1, keepdims=True) / h**2
        new_q = np.hstack([q / h**q_power, np.ones((len(q), 1))])
        return new_q, np.hstack([k / h**k_power, -norms])

    return answer


def one_too_many(q, k, h):
    new_q, new_k = fused()(q, k, h)
    own = -(q**2).sum(1, keepdims=True) / (2 * h * h)
    return np.hstack([new_q, own]), np.hstack([new_k, np.ones((len(k), 1))])


def counts(four=0.0, other=-np.inf, anchor=0.0, values=(1.0, 0.0, 0.0), digit=4):
    """The right answer, and its neighbours, by scores and values of a 4, another and the anchor."""

    def answer(digits):
        is_it = digits == digit
        scores = np.append(np.where(is_it, four, other), anchor)
        return scores, np.append(np.where(is_it, values[0], values[1]), values[2])

    return answer


def count_in_the_anchor(digits):
    fours = np.sum(digits == 4)
    return np.append(np.full(len(digits), -50), 0), np.append(digits, fours / (fours + 1))


def multiplied_mask(digits):
    return np.append(-np.inf * (digits != 4), 0.0), counts()(digits)[1]


def causal(old="0.0, s", new="0.0, s"):
    """The broken code of the exercise with one text replaced."""
    return mended(ch03.LEAKY, "causal_attention", (old, new))


def torch_backward(p, gradient):
    s = p.log().requires_grad_()
    return torch.autograd.grad(s.softmax(0), s, gradient)[0]


def torch_mask(lengths, n):
    return torch.ones(n, n).tril().bool() & (torch.arange(n) < lengths[:, None])[:, None]


RIGHT = {
    "attention": [attending_by_loop, attending_by_torch, attending_by_jax],
    "lead_for": [lambda w, n: np.log(w) + np.log(n - 1) - np.log(1 - w)],
    "causal_attention": [causal("0.0, s", "-np.inf, s")],
    "unit_variance_scale": [lambda d, a, b: torch.sqrt(d) * a * b],
    "softmax_backward": [torch_backward],
    "combined_mask": [torch_mask],
}

WRONG = {
    "attention": [
        (attending(axis=-2), "softmax runs over the queries"),
        (attending(by=lambda d, n, p: d), "by d: it should be √d"),
        (attending(hide=0.0), "e⁰ = 1"),
        (attending(after=True), "Masked after the softmax"),
        (attending(inverted=True), "The mask is inverted"),
        (attending(masked=np.add), "An added mask"),
        (lambda q, k, v, mask=None: (v[:3], q @ k.swapaxes(-1, -2) / 2), "The softmax is missing"),
        *((attending(hide=fill), "A finite number instead of −∞") for fill in (-20, -1e4, -1e9)),
        (attending(masked=lambda s, m: np.where(m, s, 10 * s.min() - 50)), "Only a score of −∞"),
        (largest_of_all, "Mask first"),
        (attending(turned=True), "Leading axes must stay"),
        (by_einsum, "Leading axes must stay"),
        (attending(masked=assigned), "The mask lacks the leading axis"),
        (attending_in_place, "writes into its caller's k:"),
        (overflowing, "exponentials overflow"),
        (lambda *a: attending()(*a)[::-1], "output, then weights"),
    ],
    "lead_for": [(lambda w, n: w * (n - 1) / (1 - w), "take its logarithm")],
    "causal_attention": [
        (causal("s = s - s", "s[later] = -np.inf; s = s - s"), "the faulty line still stands")
    ],
    "unit_variance_scale": [(lambda d, a, b: d, "a and b count too")],
    "softmax_backward": [(lambda p, g: (np.diag(p) - np.outer(p, p)) @ g, "array of all pairs")],
    "combined_mask": [
        (lambda lengths, n: np.logical_or(*masks(lengths, n)), "Or in place of and"),
        (lambda lengths, n: masks(lengths, n)[0].T & masks(lengths, n)[1], "transposed"),
        (
            lambda lengths, n: np.tril(masks(lengths, n)[1].mT * np.ones(n)),
            "Padded queries are shut",
        ),
        (lambda lengths, n: ~mask(lengths, n), "inverted"),
        (lambda lengths, n: np.where(mask(lengths, n), 0, -np.inf), "adding to scores"),
        (lambda lengths, n: mask(lengths + 1, n), "you give True, expected False. One token too"),
        (
            lambda lengths, n: mask(lengths, n) | np.diag(np.arange(n) == n - 1),
            "sequence 0, query 4, key 4",
        ),
        (lambda lengths, n: masks(lengths, n)[1][:, 0], "give shape (3, 5), expected"),
    ],
    "fused_gaussian": [
        (lambda q, k, h: fused()(q, k, h)[::-1], "queries first"),
        (one_too_many, "one coordinate more is enough"),
        (lambda q, k, h: (q / h, k / h), "expected (5, 3) and (7, 3)"),
        (lambda q, k, h: None, "returns nothing"),
    ],
    "counting_scores": [
        (counts(other=-1), "the other digits hold 77.13%"),
        (counts(other=-13), "is 29.998, not 30"),
        (counts(other=0, anchor=-np.inf), "a frequency and no count"),
        (counts(values=(1, 0, 1)), "which values"),
        (counts(values=(0, 0, 1)), "swapped"),
        (counts(values=(0.5, 0, 0)), "is 0.71429, not 5"),
        (counts(four=1), "is 13.591, not 5: do a 4"),
        (multiplied_mask, "0 times ∞"),
        (count_in_the_anchor, "the counts are right, but"),
        (lambda digits: (0.0 * digits, 0.0 * digits), "shapes (60,) and (60,)"),
        (lambda digits: counts()(digits)[0], "two arrays"),
    ],
}
