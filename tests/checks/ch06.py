"""Answers to chapter 6's exercises, right and wrong."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch
from mending import altered, mended, softmax, solutions

from attnbook_course.checks import ch06

BUILT = solutions(6).multi_head
SPLIT, MERGE = "(n, num_heads, d).swapaxes(0, 1)", "(weights @ v).swapaxes(0, 1)"
HIDDEN = "np.where(mask, s, -np.inf)"


def one_head_at_a_time(x, w_q, w_k, w_v, w_o, num_heads, mask=True):
    d, output = len(w_q) // num_heads, 0
    for i in range(0, len(w_q), d):
        q, k, v = (x @ w[i : i + d].T for w in (w_q, w_k, w_v))
        output = output + softmax(q @ k.T / d**0.5, mask) @ v @ w_o[:, i : i + d].T
    return output


def by_torch_s_layer(x, w_q, w_k, w_v, w_o, num_heads, mask=None):
    layer = torch.nn.MultiheadAttention(x.shape[1], num_heads, bias=False, dtype=x.dtype)
    layer.in_proj_weight.data, layer.out_proj.weight.data = torch.cat([w_q, w_k, w_v]), w_o
    return layer(x, x, x, attn_mask=None if mask is None else ~mask)[0]


@jax.numpy_dtype_promotion("standard")  # other tests are strict
def by_jax_s_attention(x, w_q, w_k, w_v, w_o, num_heads, mask=None):
    q, k, v = ((jnp.asarray(x) @ w.T).reshape(1, len(x), num_heads, -1) for w in (w_q, w_k, w_v))
    mask = None if mask is None else mask[None, None]
    return jax.nn.dot_product_attention(q, k, v, mask=mask).reshape(x.shape) @ w_o.T


def cached(t, layers, g, d, b):
    return 2 * t * layers * g * d * b


def read(qk=lambda q, k, r: q[r].T @ k[r], ov=lambda v, o, r: o[:, r] @ v[r]):
    """The right answer, and its neighbours, by what is done with the rows of a head."""

    def answer(w_q, w_k, w_v, w_o, h):
        d = len(w_q) // h
        rows = [slice(i, i + d) for i in range(0, len(w_q), d)]
        return np.stack([qk(w_q, w_k, r) for r in rows]), np.stack([ov(w_v, w_o, r) for r in rows])

    return answer


def frequencies(d):
    return 10_000.0 ** (-np.arange(0, d, 2) / d)


def previous(turn=-1.0, size=100.0, theta=frequencies, pairs=None):
    """The right answer, and its neighbours, by the turn of the query."""

    def answer(d):
        key, query = np.zeros((2, d))
        key[: None if pairs is None else 2 * pairs : 2] = 1
        angle = turn * theta(d)
        query[::2], query[1::2] = size * key[::2] * np.cos(angle), size * key[::2] * np.sin(angle)
        return query, key

    return answer


def induction(size=50.0, step=1, masks=(1, 1), look="before", first=True, itself=True):
    """The right answer, and its neighbours: what is matched and masked."""

    def answer(tokens, vocab):
        n = len(tokens)
        own, position = np.eye(vocab)[tokens], np.eye(n)
        causal = np.tri(n, dtype=bool)
        masked = [causal if m else np.ones((n, n), bool) for m in masks]
        before = softmax(size * np.eye(n, k=-step), masked[0]) @ own
        places = own if look == "token" else before
        scores = size * own @ places.T - size * first * position[0]
        others = ~np.eye(n, dtype=bool) | (np.arange(n) == 0)
        return softmax(scores, masked[1] & (itself | others)) @ own

    return answer


def ahead(tokens, vocab):
    """The first attention asks for the next token, which its mask hides."""
    own, causal = np.eye(vocab)[tokens], np.tri(len(tokens), dtype=bool)
    marks = softmax(50 * np.eye(len(tokens), k=1), causal) @ own
    return softmax(50 * own @ marks.T, causal) @ own


def scattered(tokens, vocab):
    return np.random.default_rng(0).normal(size=(len(tokens), vocab))


def grouped_by(keys, values, over=lambda q: np.sqrt(q.shape[2])):
    """An average per query head, from the keys and the values with these numbers."""

    def answer(q, k, v):
        h, g = len(q), len(k)
        s = q @ k[keys(h, g)].swapaxes(1, 2) / over(q)
        w = np.exp(s - s.max(axis=2, keepdims=True))
        return w / w.sum(axis=2, keepdims=True) @ v[values(h, g)]

    return answer


def neighbours(h, g):
    return np.arange(h) // (h // g)


def grouping(old, new):
    """The code of the exercise with one change."""
    return mended(ch06.GROUPED_HEADS, "grouped_heads", (old, new))


# What undoes np.tile, one line below it.
ORDERED = "v[np.argsort(np.arange(len(q)) % (len(q) // shared), kind='stable')]"

RIGHT = {
    "multi_head": [one_head_at_a_time, by_torch_s_layer, by_jax_s_attention],
    "induction_by_hand": [induction(size=8)],
    "grouped_heads": [grouped_by(neighbours, neighbours)],
}


def parts_of_tokens(x, w_q, w_k, w_v, w_o, num_heads, mask=None):
    """The columns of x are cut before they meet the matrices."""
    own = np.kron(np.eye(num_heads), np.ones((x.shape[1] // num_heads,) * 2))
    return BUILT(x, own * w_q, own * w_k, own * w_v, w_o, num_heads, mask)


WRONG = {
    "multi_head": [
        (altered(BUILT, SPLIT, "(num_heads, n, d)"), "to (heads, n, d) mixes tokens"),
        (altered(BUILT, MERGE, "(weights @ v)"), "move the heads back"),
        (altered(BUILT, SPLIT, "(n, num_heads, d)", MERGE, "(weights @ v)"), "ask each other"),
        (altered(BUILT, MERGE, "(weights @ v).transpose(1, 2, 0)"), "keep the d numbers of a head"),
        (parts_of_tokens, "a part of the token"),
        (altered(BUILT, "d**0.5", "e**0.5"), "divided by √e"),
        (altered(BUILT, "@ w_o.T", "@ w_o"), "W_o is turned"),
        (altered(BUILT, "x @ w.T", "x @ w"), "W_q, W_k and W_v are turned"),
        (altered(BUILT, "(mask,", "(mask[:, None],"), "on the wrong axes"),
        (altered(BUILT, "(mask,", "(mask[:, :, None],"), "on the wrong axes"),
        (altered(BUILT, "(mask,", "(mask.T,"), "its rows are queries"),
        (altered(BUILT, HIDDEN, "s"), "The mask has no effect"),
        (altered(BUILT, "s - s.max(axis=-1, keepdims=True)", "s"), "Exponentials overflow"),
    ],
    "cache_bytes": [(lambda *a: cached(*a) / 2, "Keys or values alone")],
    "circuits": [
        (lambda *a: read()(*a)[::-1], "return QK first"),
        (lambda q, k, v, o, h: (q.T @ k, o @ v), "shapes (6, 6) and (6, 6): for each"),
    ],
    "source_token": [(lambda n, h, d: np.indices((n, h * d))[0], "the right merge")],
    "previous_token_qk": [
        (previous(turn=0), "Without a turn"),
        (previous(turn=1), "at the token after"),
        (previous(turn=-2), "at position i − 2"),
        (previous(turn=3), "at position i + 3"),
        (previous(size=10), "all scores larger"),
        (previous(turn=-0.5), "It gives itself the same score, at any size: turn by one position"),
        (previous(turn=-1.5, size=1e4), "It gives the token 2 back the same score, at any size"),
        (previous(turn=-0.4), "the columns 2i and 2i + 1"),
        (previous(size=0), "weight of 0.005. All scores"),
        (previous(theta=lambda d: np.full(d // 2, 1.0)), "one angle"),
        (lambda d: (np.eye(d), np.eye(d)), "one query and one key for all tokens"),
        (lambda d: (np.full(d, np.nan), np.ones(d)), "a weight of nan. All scores"),
    ],
    "induction_by_hand": [
        (induction(first=False), "Only the first token fails"),
        (induction(itself=False), "twice in a row fails"),
        (induction(step=2), "two tokens back"),
        (induction(step=-1, masks=(0, 1)), "sees the future"),
        (ahead, "an average of all tokens so far"),
        (lambda t, v: induction()(t, v).argmax(1), "Return logits"),
        (lambda t, v: induction()(t, v).T, "shape (13, 22), expected"),
        (lambda t, v: np.full((len(t), v), np.nan), "NaN"),
        (scattered, "you rank 6"),
    ],
    "lost_share": [(lambda w: w**2 / (w**2 + (1 - w) ** 2), "what is kept of a")],
    "grouped_heads": [
        (grouping("    s = q", f"    v = {ORDERED}\n    s = q"), "the faulty line still stands")
    ],
}
