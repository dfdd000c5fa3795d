"""Chapter 3's checks accept right answers of any library and name each usual wrong one."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from mending import mended

from attnbook.course.checks import ch03


def softmax(s, axis=-1):
    e = np.exp(s - s.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def naive_softmax(s):
    e = np.exp(s)
    return e / e.sum()


def effective(w):
    return 1 / (w**2).sum()


def perplexity(w):
    return np.exp(-(w * np.log(w + 1e-300)).sum())


def bisected(count=effective, weights=softmax, steps=60, wrong_way=False, low=1e-4, high=1e4):
    """A search for the temperature, and its neighbours."""

    def answer(scores, neighbours):
        a, b = np.log(low), np.log(high)
        for _ in range(steps):
            middle = (a + b) / 2
            if (count(weights(scores / np.exp(middle))) < neighbours) != wrong_way:
                a = middle
            else:
                b = middle
        return np.exp((a + b) / 2)

    return answer


def not_above(scores, neighbours):
    """Where NaN is in the way, it goes up and not down."""
    a, b = -10.0, 10.0
    for _ in range(60):
        middle = (a + b) / 2
        if effective(naive_softmax(scores / np.exp(middle))) > neighbours:
            b = middle
        else:
            a = middle
    return np.exp(a)


def naive_grid(scores, neighbours):
    grid = np.geomspace(1e-4, 1e4, 4000)
    found = np.asarray([effective(naive_softmax(scores / t)) for t in grid])
    return grid[np.argmin(np.abs(found - neighbours))]


def weights_there(scores, neighbours):
    return softmax(scores / bisected()(scores, neighbours))


def jacobian(p):
    return np.diag(p) - np.outer(p, p)


def masks(lengths, n):
    j = np.arange(n)
    return j <= j[:, None], j < lengths[:, None, None]


def mask(lengths, n):
    causal, real = masks(lengths, n)
    return causal & real


def strictly_earlier(lengths, n):
    return mask(lengths, n) & ~np.eye(n, dtype=bool)


def on_the_queries(lengths, n):
    causal, real = masks(lengths, n)
    return causal & real.mT


def on_both(lengths, n):
    return mask(lengths, n) & on_the_queries(lengths, n)


def one_place(lengths, n):
    answer = mask(lengths, n)
    answer[0, 4, 4] = True
    return answer


def concat(q, k, w, v, hidden=np.tanh, join=np.add, at=None):
    at = q.shape[1] if at is None else at
    return hidden(join((q @ w[:, :at].T)[:, None], k @ w[:, at:].T)) @ v


def pairs(q, k, w, v):
    rows = [np.concatenate([np.tile(one, (len(k), 1)), k], axis=1) for one in q]
    return np.tanh(np.stack(rows) @ w.T) @ v


def concat_by_comprehension(q, k, w, v):
    return [[np.tanh(w @ np.concatenate([one, other])) @ v for other in k] for one in q]


def concat_by_loop(q, k, w, v):
    scores = np.zeros((len(q), len(k)))
    for i in range(len(q)):
        scores[i] = concat(q[i : i + 1], k, w, v)[0]
    return scores


def keys_first(q, k, w, v):
    d_k = k.shape[1]
    return np.tanh((q @ w[:, d_k:].T)[:, None] + k @ w[:, :d_k].T) @ v


def exchanged(q, k, w, v):
    d_q = q.shape[1]
    return np.tanh((q @ w[:, d_q:].T)[:, None] + k @ w[:, :d_q].T) @ v


def tanh_each(*a):
    return concat(*a, hidden=lambda x: x, join=lambda a, b: np.tanh(a) + np.tanh(b))


def v_inside(*a):
    return np.tanh(concat(*a, hidden=lambda x: x))


def no_v(q, k, w, v):
    return concat(q, k, w, 1 + 0 * v)


def hidden_layer(q, k, w, v):
    d_q = q.shape[1]
    return np.tanh((q @ w[:, :d_q].T)[:, None] + k @ w[:, d_q:].T) * v


def fused(q_power=2, k_power=0, norm=0.5, norm_power=2, both=1.0, root=1.0):
    """The right answer, and its neighbours, by their powers of h and their factors."""

    def answer(q, k, h):
        norms = norm * (k**2).sum(1, keepdims=True) ** root / h**norm_power
        new_q = np.hstack([q / h**q_power, np.ones((len(q), 1))])
        return both * new_q, np.hstack([k / h**k_power, -norms])

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


def anchor_first(digits):
    return tuple(np.roll(a, 1) for a in counts()(digits))


def count_in_the_anchor(digits):
    c = np.sum(digits == 4)
    shut = np.full(len(digits), -50.0)
    return np.append(shut, 0.0), np.append(shut, c / (c + 1))


def multiplied_mask(digits):
    return np.append(-np.inf * (digits != 4), 0.0), counts()(digits)[1]


S, T, B, M = ch03.unit_variance_scale, ch03.temperature_for, ch03.softmax_backward, ch03.combined_mask  # fmt: skip
K, G, C = ch03.concat_score, ch03.fused_gaussian, ch03.counting_scores
L, A = ch03.lead_for, ch03.causal_attention


def causal(old="0.0, s", new="0.0, s"):
    """The broken code of the exercise with one text replaced."""
    return mended(ch03.LEAKY, "causal_attention", (old, new))


WRONG = [
    (L, lambda w, n: w * (n - 1) / (1 - w), "take its logarithm"),
    (L, lambda w, n: -np.log(w * (n - 1) / (1 - w)), "The sign is turned: the key needs"),
    (L, lambda w, n: np.log(w / (1 - w)), "the lead over one other key"),
    (L, lambda w, n: np.log(w * n / (1 - w)), "the key itself is not among the others"),
    (L, lambda w, n: np.log(w * (n - 1)), "The others share 1 − w"),
    (L, lambda w, n: np.log(w), "what do the others have?"),
    (L, lambda w, n: np.log(w * n), "compare with one of the others"),
    (L, lambda w, n: np.log((n - 1) / (1 - w)), "The key's own weight is missing"),
    (L, lambda w, n: np.log(w / (1 - w) / (n - 1)), "Each of the others has (1 − w)/(n − 1)"),
    (L, lambda w, n: np.log10(w * (n - 1) / (1 - w)), "powers of e, not of 10"),
    (L, lambda w, n: np.log2(w * (n - 1) / (1 - w)), "powers of e, not of 2"),
    (L, lambda w, n: np.log(n - 1), "the lead for the weight one half"),
    (A, causal("k=1", "k=0"), "the fault is in another line than you changed"),
    (A, causal("later, 0.0, s", "~later, -np.inf, s"), "The wrong way round: that hides all keys"),
    (A, causal("later, 0.0, s", "later.T, -np.inf, s"), "That hides the earlier keys"),
    (A, causal("0.0, s", "s, s"), "No key is hidden at all"),
    (A, causal("0.0, s", "-1.0, s"), "A score of −1 makes a key less likely"),
    (A, causal("0.0, s", "-10.0, s"), "Through a score of −10 a little weight comes"),
    (A, causal("0.0, s", "-1e4, s"), "A finite number is not low enough there"),
    (A, causal("s = s - s.max", "s[later] = -np.inf; s = s - s.max"), "the faulty line still stands"),
    (T, lambda s, n: 1 / bisected()(s, n), "That is 1/τ"),
    (T, lambda s, n: np.log(bisected()(s, n)), "That is log τ"),
    (T, bisected(count=perplexity), "exp of the entropy"),
    (T, bisected(count=perplexity, steps=12), "exp of the entropy"),
    (T, bisected(wrong_way=True), "runs to a limit"),
    (T, bisected(wrong_way=True, low=1e-3, high=1e3), "runs to a limit"),
    (T, bisected(count=lambda w: (w**2).sum()), "runs to a limit"),
    (T, bisected(weights=naive_softmax), "subtract the largest"),
    (T, not_above, "subtract the largest"),
    (T, naive_grid, "runs to a limit"),
    (T, bisected(weights=lambda s: naive_softmax(np.clip(s, -600, 600))), "subtract the largest"),
    (T, lambda s, n: np.nan, "subtract the largest"),
    (T, lambda s, n: 0.0, "above 0"),
    (T, lambda s, n: -bisected()(-s, n), "above 0"),
    (T, bisected(steps=6), "1.659. Come within 1 % of 1.5"),
    (T, bisected(high=100), "1.693. Come within 1 % of 3"),
    (T, weights_there, "These are weights"),
    (T, lambda s, n: s, "give shape (4,). Return τ"),
    (S, lambda d, a, b: d, "a and b count too"),
    (S, lambda d, a, b: d**0.5, "where a = b = 1"),
    (S, lambda d, a, b: a * b, "d is missing"),
    (S, lambda d, a, b: a**2 * b**2 * d, "variance of q · k"),
    (S, lambda d, a, b: a * b * d, "Independent terms"),
    (S, lambda d, a, b: a**2 * b**2 * d**0.5, "a² b² belongs"),
    (S, lambda d, a, b: (a * b * d) ** 0.5, "for variances"),
    (S, lambda d, a, b: ((a**2 + b**2) * d) ** 0.5, "A sum adds the two variances"),
    (S, lambda d, a, b: 1 / (a * b * d**0.5), "the factor"),
    (S, lambda d, a, b: 12, "you give 12, expected a smaller number"),
    (B, lambda p, g: p * g, "is not subtracted"),
    (B, lambda p, g: p * (g - g.mean()), "plain mean"),
    (B, lambda p, g: p * (1 - p) * g, "the diagonal alone"),
    (B, lambda p, g: p * (p @ g - g), "sign is turned"),
    (B, lambda p, g: g - p @ g, "The factor p is missing"),
    (B, lambda p, g: p * g - p @ g, "both terms"),
    (B, lambda p, g: -p * (p @ g), "denominator's part"),
    (B, lambda p, g: g - p * g.sum(), "by log p"),
    (B, lambda p, g: softmax(p) * (g - softmax(p) @ g), "you take it again"),
    (B, lambda p, g: jacobian(p) * g, "give shape (4, 4)"),
    (B, lambda p, g: jacobian(p) @ g, "array of all pairs"),
    (B, lambda p, g: jacobian(p.astype(np.float32)) @ g, "array of all pairs"),
    (B, lambda p, g: g, "expected 0.4375"),
    (M, lambda lengths, n: np.logical_or(*masks(lengths, n)), "Or in place of and"),
    (M, lambda lengths, n: masks(lengths, n)[0].T & masks(lengths, n)[1], "transposed"),
    (M, lambda lengths, n: mask(lengths, n).mT, "Rows and columns"),
    (M, strictly_earlier, "No token sees itself"),
    (M, on_the_queries, "Padded queries are shut out"),
    (M, on_both, "Padded queries are shut out"),
    (M, lambda lengths, n: mask(lengths + 1, n), "One key too many"),
    (M, lambda lengths, n: np.tril(np.ones((n, n))), "Only the causal mask"),
    (M, lambda lengths, n: np.tril(np.ones((len(lengths), n, n))), "Only the causal mask"),
    (M, lambda lengths, n: masks(lengths, n)[1], "Only the padding"),
    (M, lambda lengths, n: masks(lengths, n)[1] & np.ones((n, 1), bool), "Only the padding"),
    (M, lambda lengths, n: ~mask(lengths, n), "inverted"),
    (M, lambda lengths, n: np.where(mask(lengths, n), 0, -np.inf), "adding to scores"),
    (M, one_place, "sequence 0, query 4, key 4, counted from 0, you give 1"),
    (M, lambda lengths, n: masks(lengths, n)[1][:, 0], "give shape (3, 5), expected"),
    (K, exchanged, "parts of W are exchanged"),
    (K, keys_first, "parts of W are exchanged"),
    (K, lambda q, k, w, v: concat(q, k, w, v, at=w.shape[1] // 2), "split after its first d_q"),
    (K, lambda *a: concat(*a, hidden=lambda x: x), "tanh is missing"),
    (K, tanh_each, "before the sum"),
    (K, lambda *a: concat(*a, join=np.multiply), "A product inside the tanh"),
    (K, lambda *a: concat(*a, hidden=lambda x: x, join=np.multiply), "a tanh of a sum"),
    (K, no_v, "v is forgotten"),
    (K, v_inside, "it comes after it"),
    (K, hidden_layer, "v makes one number"),
    (K, lambda *a: concat(*a).T, "a row is a query's"),
    (K, lambda *a: softmax(concat(*a)), "These are weights"),
    (K, pairs, "array of all pairs"),
    (K, concat_by_loop, "the scores are right, but by a loop"),
    (K, concat_by_comprehension, "the scores are right, but by a loop"),
    (K, lambda q, k, w, v: concat(q, k, w.T, v), "d_q, d_k, r = 3, 5, 4, 4, 7 it stops"),
    (K, lambda q, k, w, v: concat(q, k, w, v) / len(v) ** 0.5, "in entry [0, 0], counted from 0, you give −0.941, expected −2.49"),
    (G, fused(norm=0), "norms of the keys have no effect"),
    (G, fused(norm=-0.5), "wrong sign"),
    (G, fused(norm_power=0), "missing in the term"),
    (G, fused(norm_power=4), "h⁴ and not h²"),
    (G, fused(q_power=0), "missing in the dot product"),
    (G, fused(q_power=0, norm_power=0), "missing altogether"),
    (G, fused(norm=1), "factor ½"),
    (G, lambda q, k, h: fused()(q / 2, k, h), "twice the product"),
    (G, fused(both=2), "2 of 2h²"),
    (G, fused(root=0.5), "not squared"),
    (G, fused(q_power=0.5, k_power=0.5), "in all: count the h"),
    (G, fused(q_power=0.5, k_power=0.5, norm_power=1), "in all: count the h"),
    (G, fused(q_power=2, k_power=2), "in all: count the h"),
    (G, fused(q_power=2, k_power=2, norm_power=4), "in all: count the h"),
    (G, fused(both=3**0.5), "√(d + 1)"),
    (G, lambda q, k, h: fused()(q, k, h)[::-1], "queries first"),
    (G, one_too_many, "one coordinate more is enough"),
    (G, lambda q, k, h: (q / h, k / h), "expected (5, 3) and (7, 3)"),
    (G, lambda q, k, h: softmax(fused()(q, k, h)[0] @ fused()(q, k, h)[1].T), "two arrays"),
    (G, lambda q, k, h: None, "returns nothing"),
    (C, counts(other=-1), "the other digits hold 77.13%"),
    (C, counts(other=-13), "is 29.998, not 30"),
    (C, counts(other=0), "the other digits hold 90.16%"),
    (C, counts(other=0, anchor=-np.inf), "a frequency and no count"),
    (C, counts(anchor=-50), "a frequency and no count"),
    (C, counts(values=(1, 0, 1)), "which values"),
    (C, counts(values=(4, 0, 0)), "which values"),
    (C, counts(values=(0, 0, 1)), "swapped"),
    (C, counts(values=(0.5, 0, 0)), "is 0.71429, not 5"),
    (C, counts(four=1), "is 13.591, not 5: do a 4"),
    (C, counts(digit=6), "the number of 6s"),
    (C, multiplied_mask, "0 times ∞"),
    (C, count_in_the_anchor, "the counts are right, but"),
    (C, anchor_first, "the counts are right, but"),
    (C, lambda digits: (0.0 * digits, 0.0 * digits), "shapes (60,) and (60,)"),
    (C, lambda digits: counts()(digits)[0], "two arrays"),
]  # fmt: skip

WRONG += [
    (ch03.unit_variance_scale, lambda d, a, b: np.sqrt(d) * (a + b), "A product of independent entries: multiply a and b"),
    (ch03.unit_variance_scale, lambda d, a, b: np.sqrt(d) / (a * b), "a and b make the product larger: divide by them too"),
    (ch03.unit_variance_scale, lambda d, a, b: int(np.sqrt(d) * a * b), "Do not round"),
    (ch03.unit_variance_scale, lambda d, a, b: np.sqrt(2 * d) * a * b, "There are d terms, not 2d: each has one variance, a² b²"),
    (ch03.unit_variance_scale, lambda d, a, b: np.sqrt(d) * a, "The keys' standard deviation is missing"),
    (ch03.softmax_backward, lambda p, g: p * (g - g.sum()), "The mean to subtract is weighted, p · g: that is the"),
    (ch03.softmax_backward, lambda p, g: p * (1 - p), "That has no ∂L/∂p in it: multiply by the gradient"),
    (ch03.softmax_backward, lambda p, g: (1 - p) * g, "The other scores count too: subtract the mean p · g,"),
    (ch03.softmax_backward, lambda p, g: p * (g - p * p @ g), "p is in the mean once"),
    (ch03.softmax_backward, lambda p, g: p * (g - p @ g) / len(p), "Nothing divides by n"),
    (ch03.softmax_backward, lambda p, g: p * (g - g.max()), "The mean is subtracted, not the largest"),
    (ch03.softmax_backward, lambda p, g: p * (1 - p) * (g - p @ g), "One factor too many: 1 − p is in the mean already"),
    (ch03.fused_gaussian, lambda q, k, h: (np.hstack([q / h ** 2, np.ones((5, 1))]), np.hstack([k, -(k ** 2).sum(1, keepdims=True) / (2 * h)])), "The term with the norm has h once: h² and not h"),
    (ch03.fused_gaussian, lambda q, k, h: (np.hstack([q / h ** 2, np.ones((5, 1))]), np.hstack([k, -k.sum(1, keepdims=True) / 2 / h / h])), "The norm is a sum of squares: square first"),
    (ch03.fused_gaussian, lambda q, k, h: (np.hstack([q / h ** 2, np.ones((5, 1))]), np.hstack([k, -(k ** 2).mean(1, keepdims=True) / 2 / h / h])), "The norm is a sum over the coordinates, not a mean"),
    (ch03.fused_gaussian, lambda q, k, h: (np.hstack([q * h ** 2, np.ones((5, 1))]), np.hstack([k, -(k ** 2).sum(1, keepdims=True) / 2 * h * h])), "You multiply by h²: divide by it"),
    (ch03.fused_gaussian, lambda q, k, h: (np.hstack([-q / h ** 2, np.ones((5, 1))]), np.hstack([k, -(k ** 2).sum(1, keepdims=True) / 2 / h / h])), "The product has a plus: −(q − k)² has +2 q k"),
]  # fmt: skip


def torch_temperature(scores, neighbours):
    import torch

    low, high = 1e-4, 1e4
    while high / low > 1.0001:
        middle = math.sqrt(low * high)
        few = 1 / torch.softmax(scores / middle, dim=-1).square().sum() < neighbours
        low, high = (middle, high) if few else (low, middle)
    return torch.tensor([low], requires_grad=True)


def jax_temperature(scores, neighbours):
    import jax
    import jax.numpy as jnp

    grid = jnp.geomspace(1e-4, 1e4, 8000)
    w = jax.nn.softmax(scores / grid[:, None])
    return grid[jnp.argmin(jnp.abs(1 / jnp.sum(w**2, axis=1) - neighbours))]


def newton_in_place(scores, neighbours):
    """1/Σ w² is Z(β)²/Z(2β): Newton's method in β = 1/τ for its logarithm, kept in a bracket."""
    scores -= scores.max()
    low, high, beta = 0.0, 1e4, 1.0
    for _ in range(200):
        one, two = np.exp(beta * scores), np.exp(2 * beta * scores)
        over = 2 * np.log(one.sum()) - np.log(two.sum()) - np.log(neighbours)
        low, high = (beta, high) if over > 0 else (low, beta)
        slope = 2 * (one @ scores / one.sum() - two @ scores / two.sum())
        beta -= over / slope if slope else 0
        if not low < beta < high:
            beta = (low + high) / 2
    return 1 / beta


def linear_bisection(scores, neighbours):
    low, high = 1e-4, 1e4
    for _ in range(60):
        middle = (low + high) / 2
        if effective(softmax(np.float32(scores) / np.float32(middle))) < neighbours:
            low = middle
        else:
            high = middle
    return low


def torch_scale(d, a, b):
    import torch

    return torch.sqrt(d) * a * b


def torch_backward(p, gradient):
    import torch

    s = p.log().requires_grad_()
    return torch.autograd.grad(s.softmax(0), s, gradient)[0]


def jax_backward(p, gradient):
    import jax
    import jax.numpy as jnp

    return jax.vjp(jax.nn.softmax, jnp.log(p))[1](gradient)[0]


def in_place_backward(p, gradient):
    gradient -= np.dot(p, gradient)
    gradient *= p
    return gradient


def loop_backward(p, gradient):
    mean = sum(a * b for a, b in zip(p, gradient, strict=True))
    return [a * (b - mean) for a, b in zip(p, gradient, strict=True)]


def torch_mask(lengths, n):
    import torch

    real = torch.arange(n) < lengths[:, None]
    return torch.ones(n, n).tril().bool() & real[:, None]


def jax_mask(lengths, n):
    import jax.numpy as jnp

    return jnp.tril((jnp.arange(n) < lengths[:, None])[:, None].repeat(n, axis=1))


def loop_mask(lengths, n):
    return [
        [[int(j <= i and j < length) for j in range(n)] for i in range(n)] for length in lengths
    ]


def torch_concat(q, k, w, v):
    import torch
    from torch.nn.functional import linear

    w_q, w_k = w.split([q.shape[1], k.shape[1]], dim=1)
    return torch.tanh(linear(q, w_q).unsqueeze(1) + linear(k, w_k)) @ v


def jax_concat(q, k, w, v):
    import jax.numpy as jnp

    w_q, w_k = jnp.split(w, [q.shape[1]], axis=1)
    return jnp.tanh((q @ w_q.T)[:, None] + k @ w_k.T) @ v


def padded_concat(q, k, w, v):
    """Both sides at the full width, with zeros in the other's place."""
    q = np.pad(q, ((0, 0), (0, k.shape[1])))
    k = np.pad(k, ((0, 0), (q.shape[1] - k.shape[1], 0)))
    return np.einsum("mnr,r->mn", np.tanh((q @ w.T)[:, None] + k @ w.T), v)


def torch_fused(q, k, h):
    import torch

    q /= h
    k /= h
    return torch.cat([q, torch.ones(len(q), 1)], 1), torch.cat([k, -(k**2).sum(1, True) / 2], 1)


def jax_fused(q, k, h):
    import jax.numpy as jnp

    norms = jnp.square(jnp.linalg.norm(k, axis=1))
    new_q = jnp.pad(q, ((0, 0), (0, 1)), constant_values=-0.5) / h
    return [new_q, jnp.column_stack([k, norms]) / h]


def torch_counts(digits):
    import torch

    is_four = torch.cat([digits, torch.tensor([4])]) == 4
    values = torch.cat([(digits == 4).double(), torch.zeros(1)])
    return torch.where(is_four, 0.0, -torch.inf), values


def jax_counts(digits):
    import jax.numpy as jnp

    is_four = (digits == 4).astype(float)
    return jnp.stack([jnp.append(50 * is_four, 50), jnp.append(is_four, 0)])


def loop_counts(digits):
    scores, values = [], []
    for digit in digits:
        scores.append(3 if digit == 4 else -20)
        values.append(digit == 4)
    return [*scores, 3], [*values, 0]


RIGHT = [
    (L, lambda w, n: np.log(w) + np.log(n - 1) - np.log(1 - w)),
    (L, lambda w, n: math.log(w / ((1 - w) / (n - 1)))),
    (A, causal("0.0, s", "-np.inf, s")),
    (A, causal("0.0, s", "-1e9, s")),
    (A, causal("np.where(later, 0.0, s)", "np.where(~later, s, -np.inf)")),
    (T, torch_temperature),
    (T, jax_temperature),
    (T, newton_in_place),
    (T, linear_bisection),
    (T, bisected()),
    (T, bisected(steps=12)),
    (S, torch_scale),
    (S, lambda d, a, b: float(np.sqrt(d)) * a * b),
    (B, torch_backward),
    (B, jax_backward),
    (B, in_place_backward),
    (B, loop_backward),
    (B, lambda p, g: p * (g - np.einsum("i,i->", p, g))),
    (B, lambda p, g: np.float32(p) * (np.float32(g) - np.float32(p) @ np.float32(g))),
    (M, torch_mask),
    (M, jax_mask),
    (M, loop_mask),
    (K, torch_concat),
    (K, jax_concat),
    (K, padded_concat),
    (K, lambda *a: np.float32(concat(*a))),
    (G, torch_fused),
    (G, jax_fused),
    (G, fused()),
    (G, fused(q_power=1, k_power=1)),
    (C, torch_counts),
    (C, jax_counts),
    (C, loop_counts),
    (C, counts()),
    (C, counts(other=-50, values=(1, 1, 0))),
]


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_right_answers_in_three_libraries(check, answer):
    verdict = check(answer)
    assert verdict.status == "right", verdict


@pytest.mark.parametrize("check", [S, L, T, B, M, K, G, C])
def test_not_written_yet_is_a_friendly_line(check):
    def stub(*arguments):
        raise NotImplementedError

    verdict = check(stub)
    assert verdict.status == "not yet"
    assert repr(verdict).startswith(f"… {check.__name__}: not written yet")


def test_how_low_the_other_scores_of_the_counting_exercise_must_be():
    def error(s):
        n, c = np.mgrid[:61, :61]
        return np.max(np.abs(c - c / (1 + (n - c) * np.exp(s))), where=c <= n, initial=0)

    assert error(-7.5) < 0.5 < error(-7.4)
    assert round(30 / (1 + 30 * np.exp(-1)), 1) == 2.5


def test_a_trace_of_memory_that_runs_already_goes_on():
    tracemalloc.start()
    try:
        assert B(lambda p, g: p * (g - p @ g)).status == "right"
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()
    assert B(lambda p, g: p * (g - p @ g)).status == "right"
    assert not tracemalloc.is_tracing()
