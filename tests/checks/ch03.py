"""Answers to chapter 3's exercises, right and wrong."""

from __future__ import annotations

import math

import numpy as np
import torch
from mending import mended, softmax

from attnbook_course.checks import ch03


def naive_softmax(s):
    e = np.exp(s)
    return e / e.sum()


def effective(w):
    return 1 / (w**2).sum()


def bisected(count=effective, weights=softmax, steps=60, wrong_way=False, high=1e4):
    """A search for the temperature, and its neighbours."""

    def answer(scores, neighbours):
        a, b = np.log(1e-4), np.log(high)
        for _ in range(steps):
            middle = (a + b) / 2
            if (count(weights(scores / np.exp(middle))) < neighbours) != wrong_way:
                a = middle
            else:
                b = middle
        return np.exp((a + b) / 2)

    return answer


def masks(lengths, n):
    j = np.arange(n)
    return j <= j[:, None], j < lengths[:, None, None]


def mask(lengths, n):
    causal, real = masks(lengths, n)
    return causal & real


def concat(q, k, w, v, hidden=np.tanh, join=np.add, at=None):
    at = q.shape[1] if at is None else at
    return hidden(join((q @ w[:, :at].T)[:, None], k @ w[:, at:].T)) @ v


def pairs(q, k, w, v):
    rows = [np.concatenate([np.tile(one, (len(k), 1)), k], axis=1) for one in q]
    return np.tanh(np.stack(rows) @ w.T) @ v


def concat_by_loop(q, k, w, v):
    return [concat(one[None], k, w, v)[0] for one in q]


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


def torch_temperature(scores, neighbours):
    low, high = 1e-4, 1e4
    while high / low > 1.0001:
        middle = math.sqrt(low * high)
        few = 1 / torch.softmax(scores / middle, dim=-1).square().sum() < neighbours
        low, high = (middle, high) if few else (low, middle)
    return torch.tensor([low], requires_grad=True)


def torch_backward(p, gradient):
    s = p.log().requires_grad_()
    return torch.autograd.grad(s.softmax(0), s, gradient)[0]


def torch_mask(lengths, n):
    return torch.ones(n, n).tril().bool() & (torch.arange(n) < lengths[:, None])[:, None]


RIGHT = {
    "lead_for": [lambda w, n: np.log(w) + np.log(n - 1) - np.log(1 - w)],
    "causal_attention": [causal("0.0, s", "-np.inf, s")],
    "temperature_for": [torch_temperature],
    "unit_variance_scale": [lambda d, a, b: torch.sqrt(d) * a * b],
    "softmax_backward": [torch_backward],
    "combined_mask": [torch_mask],
}

WRONG = {
    "lead_for": [(lambda w, n: w * (n - 1) / (1 - w), "take its logarithm")],
    "causal_attention": [
        (causal("s = s - s", "s[later] = -np.inf; s = s - s"), "the faulty line still stands")
    ],
    "temperature_for": [
        (lambda s, n: 1 / bisected()(s, n), "That is 1/τ"),
        (lambda s, n: np.log(bisected()(s, n)), "That is log τ"),
        (bisected(wrong_way=True), "runs to a limit"),
        (bisected(weights=naive_softmax), "subtract the largest"),
        (lambda s, n: 0.0, "above 0"),
        (bisected(steps=6), "1.659. Come within 1 % of 1.5"),
        (bisected(high=100), "1.693. Come within 1 % of 3"),
        (lambda s, n: softmax(s / bisected()(s, n)), "These are weights"),
        (lambda s, n: s, "give shape (4,). Return τ"),
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
        (
            lambda lengths, n: mask(lengths, n) | np.diag(np.arange(n) == n - 1),
            "sequence 0, query 4, key 4",
        ),
        (lambda lengths, n: masks(lengths, n)[1][:, 0], "give shape (3, 5), expected"),
    ],
    "concat_score": [
        (lambda q, k, w, v: concat(q, k, w, v, at=w.shape[1] // 2), "split after its first d_q"),
        (lambda q, k, w, v: np.tanh(q[:, None, :1] + k[:, :1] + v), "v makes one number"),
        (lambda *a: concat(*a).T, "a row is a query's"),
        (pairs, "array of all pairs"),
        (concat_by_loop, "the scores are right, but by a loop"),
        (lambda q, k, w, v: concat(q, k, w.T, v), "d_q, d_k, r = 3, 5, 4, 4, 7 it stops"),
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
