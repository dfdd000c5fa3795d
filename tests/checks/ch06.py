"""Answers to chapter 6's exercises, right and wrong."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F
from mending import mended, softmax

from attnbook.attention.positions import rotary
from attnbook_course.checks import ch06


def parameters(e, h, g, *, bias=True, output=1):
    return (e + bias) * (e * (1 + output) + 2 * g * (e // h))


def cached(t, layers, g, d, b):
    return 2 * t * layers * g * d * b


def read(qk=lambda q, k, r: q[r].T @ k[r], ov=lambda v, o, r: o[:, r] @ v[r]):
    """The right answer, and its neighbours, by what is done with the rows of a head."""

    def answer(w_q, w_k, w_v, w_o, h):
        d = len(w_q) // h
        rows = [slice(i, i + d) for i in range(0, len(w_q), d)]
        return np.stack([qk(w_q, w_k, r) for r in rows]), np.stack([ov(w_v, w_o, r) for r in rows])

    return answer


def flat(n, h, d):
    return np.arange(n * h * d).reshape(n, h * d)


def grouped(weight, h, g):
    return weight.reshape(g, h // g, -1, weight.shape[1])


def pooled(weight, h, g):
    return grouped(weight, h, g).mean(1).reshape(-1, weight.shape[1])


def spread(shared, h, g):
    """Each shared head for every query head."""
    split = shared.reshape(g, -1, shared.shape[1])
    return np.repeat(split, h // g, axis=0).reshape(-1, shared.shape[1])


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


def commonest(tokens, vocab):
    own = np.eye(vocab)[tokens]
    return np.eye(vocab)[own.cumsum(axis=0).argmax(axis=1)]


def scattered(tokens, vocab):
    return np.random.default_rng(0).normal(size=(len(tokens), vocab))


def turned(d, by, size=100):
    return size * rotary(np.ones((1, d)), np.array([by]))[0]


def torch_circuits(w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (w.unflatten(0, (num_heads, -1)) for w in (w_q, w_k, w_v))
    o = w_o.unflatten(1, (num_heads, -1))
    return torch.einsum("hda,hdb->hab", q, k), torch.einsum("ahd,hdb->hab", o, v)


def jax_circuits(w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (jnp.stack(jnp.split(w, num_heads)) for w in (w_q, w_k, w_v))
    o = jnp.stack(jnp.split(w_o, num_heads, axis=1))
    return q.mT @ k, o @ v


def torch_source(n, num_heads, head_dim):
    x = torch.arange(n)[None, :, None].expand(num_heads, n, head_dim)
    return x.reshape(n, num_heads * head_dim)


def loop_source(n, num_heads, head_dim):
    order = [t for _ in range(num_heads) for t in range(n) for _ in range(head_dim)]
    e = num_heads * head_dim
    return [order[i * e : (i + 1) * e] for i in range(n)]


def torch_pooled(weight, num_heads, num_kv_heads):
    heads = weight.chunk(num_heads)
    size = num_heads // num_kv_heads
    groups = [heads[i : i + size] for i in range(0, num_heads, size)]
    return torch.cat([torch.stack(group).mean(0) for group in groups])


def jax_pooled(weight, num_heads, num_kv_heads):
    e = weight.shape[0]
    split = weight.reshape(num_kv_heads, num_heads // num_kv_heads, e // num_heads, e)
    return jnp.mean(split, axis=1).reshape(-1, e)


def torch_previous(d):
    angles = torch.tensor(frequencies(d), dtype=torch.float32)
    key = torch.stack([-torch.sin(angles), torch.cos(angles)], dim=-1).flatten()
    return 200 * torch.tensor([0.0, 1.0]).repeat(d // 2), key


def key_on(d):
    """The key turned on by one position in place of the query back."""
    turned, straight = previous(turn=1)(d)
    return straight, turned


def torch_induction(tokens, vocab_size):
    own = F.one_hot(tokens, vocab_size).double()
    position = torch.eye(len(tokens), dtype=torch.float64)
    on = position.roll(1, dims=1)
    on[-1] = 0

    def attend(*parts):
        q, k, v = (x[None] for x in parts)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)[0]

    before = attend(900 * position, on, own) - position[:, :1]  # nothing matches the first
    return attend(900 * own, before, own).log()


def jax_induction(tokens, vocab_size):
    n = len(tokens)
    own = jax.nn.one_hot(tokens, vocab_size)
    causal = jnp.tri(n, dtype=bool)
    before = jnp.concatenate([jnp.zeros((1, vocab_size)), own[:-1]])
    return jax.nn.softmax(jnp.where(causal, 50 * own @ before.T, -jnp.inf)) @ own


def loop_induction(tokens, vocab_size):
    """Counts of what followed."""
    logits = np.full((len(tokens), vocab_size), -np.inf)
    for i, now in enumerate(tokens):
        for j in range(i):
            if tokens[j] == now:
                follows = tokens[j + 1]
                logits[i, follows] = np.logaddexp(logits[i, follows], 0)
    return logits


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


def in_turn(h, g):
    return np.arange(h) % g


def grouping(old, new):
    """The code of the exercise with one change."""
    return mended(ch06.GROUPED_HEADS, "grouped_heads", (old, new))


# What undoes np.tile, one line below it.
ORDERED = "v[np.argsort(np.arange(len(q)) % (len(q) // shared), kind='stable')]"

RIGHT = {
    "circuits": [torch_circuits, jax_circuits],
    "source_token": [torch_source, loop_source],
    "pooled_kv": [torch_pooled, jax_pooled, lambda w, h, g: pooled(w.astype(np.float32), h, g)],
    "previous_token_qk": [previous(size=60), previous(size=1e4), key_on, torch_previous],
    "induction_by_hand": [
        induction(size=8),
        torch_induction,
        jax_induction,
        loop_induction,
        lambda *a: np.log(induction()(*a) + 1e-300),
        lambda *a: induction()(*a).astype(np.float32),
    ],
    "grouped_heads": [
        grouped_by(neighbours, neighbours),
        grouping("np.tile(v, (shared, 1, 1))", "np.repeat(v, shared, axis=0)"),
    ],
}

WRONG = {
    "attention_parameters": [
        (lambda *a: parameters(*a, bias=False), "The biases are missing"),
        (lambda *a: parameters(*a, output=0), "The output layer is missing"),
        (lambda e, h, g: parameters(e, h, 1), "one key head: here"),
        (lambda e, h, g: e, "you give 60"),
    ],
    "cache_bytes": [
        (lambda *a: cached(*a) / 2, "Keys or values alone"),
        (lambda *a: sum(cached(t + 1, *a[1:]) for t in range(a[0])), "adds up all steps"),
        (lambda *a: 0, "you give 0"),
    ],
    "circuits": [
        (lambda *a: read()(*a)[::-1], "return QK first"),
        (read(qk=lambda q, k, r: k[r].T @ q[r]), "query's token stands on the left"),
        (read(qk=lambda q, k, r: q[r].T @ k[r] / len(q[r]) ** 0.5), "division by √d"),
        (read(ov=lambda v, o, r: o[r].T @ v[:, r].T), "not columns"),
        (lambda q, k, v, o, h: (q.T @ k, o @ v), "shapes (6, 6) and (6, 6): for each"),
        (read(ov=lambda v, o, r: -o[:, r] @ v[r]), ", expected"),
    ],
    "source_token": [
        (lambda n, h, d: np.indices((n, h * d))[0], "the right merge"),
        (lambda n, h, d: flat(n, h, d) // (n * d), "the head an entry came from"),
        (lambda n, h, d: np.tile(np.arange(n)[:, None], (h, 1, d)), "merged it is (5, 6)"),
        (lambda n, h, d: flat(n, h, d) // d % n + 1, "Count the tokens from 0."),
    ],
    "pooled_kv": [
        (lambda w, h, g: pooled(w, h, g) * (h // g), "the sum of a group"),
        (lambda w, h, g: pooled(w.T, h, g).T, "Rows are outputs"),
        (lambda w, h, g: spread(pooled(w, h, g), h, g), "Each shared head once"),
        (lambda w, h, g: pooled(w, h, h // g), "not of heads in a group"),
        (lambda w, h, g: grouped(w, h, g).mean(1), "below each other"),
        (lambda w, h, g: grouped(w, h, g).mean((1, 2)), "rows of a head stay apart"),
        (lambda w, h, g: -pooled(w, h, g), "expected"),
    ],
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
        (previous(pairs=1, size=5000), "45 tokens back too"),
        (previous(pairs=2, size=3000), "177 tokens back too"),
        (previous(theta=lambda d: np.full(d // 2, 1.0)), "one angle"),
        (lambda d: (np.eye(d), np.eye(d)), "one query and one key for all tokens"),
        (lambda d: (np.full(d, np.nan), np.ones(d)), "a weight of nan. All scores"),
    ],
    "induction_by_hand": [
        (induction(first=False), "Only the first token fails"),
        (induction(itself=False), "twice in a row fails"),
        (induction(look="token"), "You repeat the token"),
        (induction(step=2), "two tokens back"),
        (induction(step=-1, masks=(0, 1)), "sees the future"),
        (lambda t, v: np.eye(v)[np.append(t[:1], t[:-1])], "before the query's"),
        (induction(size=0), "scores too flat"),
        (ahead, "an average of all tokens so far"),
        (commonest, "That is the commonest token so far."),
        (lambda t, v: induction()(t, v).argmax(1), "Return logits"),
        (lambda t, v: induction()(t, v).T, "shape (13, 22), expected"),
        (lambda t, v: np.full((len(t), v), np.nan), "NaN"),
        (scattered, "you rank 6"),
    ],
    "lost_share": [
        (lambda w: w**2 / (w**2 + (1 - w) ** 2), "what is kept of a"),
        (lambda w: 1 - w, "variances take squares"),
        (lambda w: (1 - w) ** 2, "for the multiple 1"),
    ],
    "grouped_heads": [
        (grouped_by(neighbours, in_turn), "Keys come from one group"),
        (grouped_by(neighbours, neighbours, lambda q: 1), "not divided by √d"),
        (
            grouping("np.tile(v, (shared, 1, 1))", "np.repeat(v[::-1], shared, axis=0)"),
            "are exchanged",
        ),
        (grouping("repeat(k, shared, axis=0)", "tile(k, (shared, 1, 1))"), "in another line than"),
        (grouping("    s = q", f"    v = {ORDERED}\n    s = q"), "the faulty line still stands"),
    ],
}
