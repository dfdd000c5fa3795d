"""Chapter 6's checks accept right answers of any library and name each usual wrong one."""

from __future__ import annotations

import numpy as np
import pytest
from mending import mended

from attnbook import attend
from attnbook.attention.heads import merge_heads, split_heads
from attnbook.attention.positions import rotary
from attnbook.course.checks import ch06


def softmax(s, mask=True):
    s = np.where(mask, s, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def parameters(e, h, g, *, bias=True, query=1, output=1, key=1, value=1):
    kv = g * (e // h)
    return (e + bias) * (e * (query + output) + kv * (key + value))


def cached(t, layers, g, d, b):
    return 2 * t * layers * g * d * b


def sliced(e, h):
    return [slice(i * (e // h), (i + 1) * (e // h)) for i in range(h)]


def read(cut=sliced, qk=None, ov=None):
    """The right answer, and its neighbours, by what is done with the rows of a head."""
    qk = qk or (lambda q, k, r: q[r].T @ k[r])
    ov = ov or (lambda v, o, r: o[:, r] @ v[r])

    def answer(w_q, w_k, w_v, w_o, h):
        parts = cut(len(w_q), h)
        return (
            np.stack([qk(w_q, w_k, r) for r in parts]),
            np.stack([ov(w_v, w_o, r) for r in parts]),
        )

    return answer


def every_third(e, h):
    return [slice(i, None, h) for i in range(h)]


def all_rows(e, h):
    return [slice(None)] * h


def flat(n, h, d):
    return np.arange(n * h * d).reshape(n, h * d)


def column(n, h, d):
    return np.indices((n, h * d))[1]


def token(n, h, d):
    return flat(n, h, d) // d % n


def grouped(weight, h, g):
    return weight.reshape(g, h // g, -1, weight.shape[1])


def pooled(weight, h, g):
    return grouped(weight, h, g).mean(1).reshape(-1, weight.shape[1])


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


def halves(d):
    """Pairs i and i + d/2, as some libraries have them."""
    angle = frequencies(d)
    ones = np.ones(d // 2)
    return 100 * np.hstack([np.cos(angle), -np.sin(angle)]), np.hstack([ones, 0 * ones])


def induction(size=50.0, step=1, masks=(1, 1), look="before", copy="token", first=True, self=True):
    """The right answer, and its neighbours: what is matched, copied and masked."""

    def answer(tokens, vocab):
        n = len(tokens)
        own, position = np.eye(vocab)[tokens], np.eye(n)
        causal = np.tri(n, dtype=bool)
        masked = [causal if m else np.ones((n, n), bool) for m in masks]
        before = softmax(size * np.eye(n, k=-step), masked[0]) @ own
        places = {"token": own, "before": before}
        scores = size * own @ places[look].T - size * first * position[0]
        others = ~np.eye(n, dtype=bool) | (np.arange(n) == 0)
        return softmax(scores, masked[1] & (self | others)) @ places[copy]

    return answer


def two_tokens(tokens, vocab):
    """The query's own token and the one before it, both compared."""
    n = len(tokens)
    own, mask = np.eye(vocab)[tokens], np.tri(n, dtype=bool)
    one, two = (softmax(50 * np.eye(n, k=-k), mask) @ own for k in (1, 2))
    late = 100.0 * (np.arange(n) < 2)
    return softmax(50 * (own @ one.T + one @ two.T) - late, mask) @ own


def ahead(size=50.0):
    """The first attention asks for the next token, which its mask hides."""

    def answer(tokens, vocab):
        own, causal = np.eye(vocab)[tokens], np.tri(len(tokens), dtype=bool)
        marks = softmax(size * np.eye(len(tokens), k=1), causal) @ own
        return softmax(size * own @ marks.T, causal) @ own

    return answer


def commonest(tokens, vocab):
    own = np.eye(vocab)[tokens]
    return np.eye(vocab)[own.cumsum(axis=0).argmax(axis=1)]


def shut_diagonal(tokens, vocab):
    """A query may not look at itself; the first one has nothing to look at and looks anyway."""
    return induction(self=False)(tokens, vocab)


def not_finite(tokens, vocab):
    return np.full((len(tokens), vocab), np.nan)


def scattered(tokens, vocab):
    return np.random.default_rng(0).normal(size=(len(tokens), vocab))


P, B, C, S = ch06.attention_parameters, ch06.cache_bytes, ch06.circuits, ch06.source_token
G, T, N = ch06.pooled_kv, ch06.previous_token_qk, ch06.induction_by_hand
WRONG = [
    (P, lambda e, h, g: 4 * e * (e + 1), "has no effect"),
    (P, lambda *a: parameters(*a, bias=False), "The biases are missing"),
    (P, lambda e, h, g: parameters(e, h, g) - e, "The output layer has a bias"),
    (P, lambda e, h, g: parameters(e, h, g, bias=False) + e, "value layers have biases too"),
    (P, lambda e, h, g: parameters(e, h, g, bias=False) + 4 * e, "for each output of its layer"),
    (P, lambda *a: parameters(*a, output=0), "The output layer is missing"),
    (P, lambda *a: parameters(*a, value=0), "you count one"),
    (P, lambda e, h, g: parameters(e, h, g, value=h // g), "the same number of heads"),
    (P, lambda e, h, g: parameters(e, h, 1), "one key head: here"),
    (P, lambda e, h, g: 2 * (e + 1) * (e + e // g), "as wide as a query head"),
    (P, lambda e, h, g: h * parameters(e, h, g), "do not multiply"),
    (P, lambda e, h, g: 2 * (e + 1) * (e + g * e), "and not e"),
    (P, lambda e, h, g: 2 * e * (e + 1) + 2 * (g * e // h) * (g * e // h + 1), "reads all e"),
    (P, lambda e, h, g: e, "you give 60"),
    (B, lambda *a: cached(*a) / 2, "Keys or values alone"),
    (B, lambda *a: cached(*a) * 3 // 2, "A query is used"),
    (B, lambda *a: cached(*a) / a[4], "numbers, not bytes"),
    (B, lambda *a: cached(*a) * 8, "bits"),
    (B, lambda *a: cached(*a) / a[1], "Each layer"),
    (B, lambda *a: cached(*a) / a[2], "Each key head"),
    (B, lambda *a: cached(*a) * a[0], "not with their square"),
    (B, lambda *a: sum(cached(t + 1, *a[1:]) for t in range(a[0])), "adds up all steps"),
    (B, lambda *a: cached(a[0] - 1, *a[1:]), "newest token"),
    (B, lambda *a: 0, "you give 0"),
    (C, lambda *a: read()(*a)[::-1], "return QK first"),
    (C, read(qk=lambda q, k, r: k[r].T @ q[r]), "query's token stands on the left"),
    (C, read(qk=lambda q, k, r: q[r].T @ k[r] / len(q[r]) ** 0.5), "division by √d"),
    (C, read(qk=lambda q, k, r: q[:, r] @ k[:, r].T), "not columns"),
    (C, read(cut=every_third), "next to each other"),
    (C, read(cut=all_rows), "the rows of all heads"),
    (C, read(ov=lambda v, o, r: (o[:, r] @ v[r]).T), "acts on a column"),
    (C, read(ov=lambda v, o, r: o[r].T @ v[r]), "columns of W_o, not rows"),
    (C, read(ov=lambda v, o, r: o[r].T @ v[:, r].T), "not columns"),
    (C, read(ov=lambda v, o, r: o[:, r] @ v[:, r].T), "not columns"),
    (C, lambda q, k, v, o, h: (q.T @ k, o @ v), "shapes (6, 6) and (6, 6): for each"),
    (C, read(qk=lambda q, k, r: q[r] @ k[r].T), "shapes (2, 3, 3) and (2, 6, 6): for each"),
    (C, read(ov=lambda v, o, r: -o[:, r] @ v[r]), ", expected"),
    (C, lambda *a: read()(*a)[0][:1], "two arrays"),
    (S, lambda n, h, d: np.indices((n, h * d))[0], "the right merge"),
    (S, lambda n, h, d: flat(n, h, d) // (n * d), "the head an entry came from"),
    (S, lambda n, h, d: column(n, h, d) % d + np.zeros((n, 1)), "the place in a head"),
    (S, lambda n, h, d: flat(n, h, d) // n % d, "head_dim numbers in a row: divide"),
    (S, lambda n, h, d: flat(n, h, d) // d, "through all heads"),
    (S, lambda n, h, d: flat(n, h, d) % n, "head_dim numbers in a row"),
    (S, lambda n, h, d: (np.arange(n)[:, None] + column(n, h, d) // d) % n, "num_heads vectors"),
    (S, lambda n, h, d: token(n, h, d) + 1, "Count the tokens from 0"),
    (S, lambda n, h, d: np.tile(np.arange(n)[:, None], (h, 1, d)), "merged it is (5, 6)"),
    (S, lambda n, h, d: token(n, h, d).T, "give shape (6, 5), expected (5, 6)"),
    (S, lambda n, h, d: 0 * flat(n, h, d), "in entry [0, 2], counted from 0, you give 0, expected 1"),
    (G, lambda w, h, g: w.reshape(h // g, g, h and len(w) // h, -1).mean(0).reshape(-1, len(w)),
     "every num_kv_heads-th"),
    (G, lambda w, h, g: pooled(w, h, g) * (h // g), "the sum of a group"),
    (G, lambda w, h, g: grouped(w, h, g)[:, 0].reshape(-1, len(w)), "the first head"),
    (G, lambda w, h, g: w.reshape(len(w) * g // h, h // g, -1).mean(1), "rows of one head"),
    (G, lambda w, h, g: pooled(w.T, h, g).T, "Rows are outputs"),
    (G, lambda w, h, g: grouped(w, h, g).mean(1).repeat(h // g, 0).reshape(w.shape),
     "Each shared head once"),
    (G, lambda w, h, g: pooled(w, h, h // g), "not of heads in a group"),
    (G, lambda w, h, g: grouped(w, h, g).mean(1), "below each other"),
    (G, lambda w, h, g: grouped(w, h, g).mean((1, 2)), "rows of a head stay apart"),
    (G, lambda w, h, g: -pooled(w, h, g), "expected"),
    (T, previous(turn=0), "Without a turn"),
    (T, previous(turn=1), "at the token after"),
    (T, previous(turn=-2), "at position i − 2"),
    (T, previous(turn=3), "at position i + 3"),
    (T, previous(size=10), "all scores larger"),
    (T, previous(size=1), "all scores larger"),
    (T, previous(turn=-0.5), "It gives itself the same score, at any size: turn by one position"),
    (T, previous(turn=-1.5, size=1e4), "It gives the token 2 back the same score, at any size"),
    (T, previous(turn=-0.4), "the columns 2i and 2i + 1"),
    (T, previous(size=0), "weight of 0.005. All scores"),
    (T, previous(pairs=1, size=5000), "45 tokens back too"),
    (T, previous(pairs=2, size=3000), "177 tokens back too"),
    (T, previous(theta=lambda d: np.full(d // 2, 1.0)), "one angle"),
    (T, previous(turn=1, theta=lambda d: np.full(d // 2, 1.0)), "one angle"),
    (T, lambda d: previous()(d)[::-1], "at the token after"),
    (T, halves, "the columns 2i and 2i + 1"),
    (T, lambda d: (np.eye(d), np.eye(d)), "one query and one key for all tokens"),
    (T, lambda d: (np.full(d, np.nan), np.ones(d)), "a weight of nan. All scores"),
    (T, lambda d: np.ones(d), "two arrays"),
    (N, induction(first=False), "Only the first token fails"),
    (N, shut_diagonal, "twice in a row fails"),
    (N, induction(look="token"), "You repeat the token"),
    (N, induction(copy="before"), "You repeat the token"),
    (N, induction(step=2), "two tokens back"),
    (N, induction(step=-1, masks=(0, 1)), "sees the future"),
    (N, induction(masks=(1, 0)), "sees the future"),
    (N, induction(masks=(0, 0)), "sees the future"),
    (N, lambda t, v: np.eye(v)[np.append(t[1:], 0)], "sees the future"),
    (N, lambda t, v: np.eye(v)[np.append(t[:1], t[:-1])], "before the query's"),
    (N, induction(size=0), "scores too flat"),
    (N, induction(size=0.5), "scores too flat"),
    (N, induction(size=1), "scores too flat"),
    (N, ahead(), "an average of all tokens so far"),
    (N, ahead(size=200), "an average of all tokens so far"),
    (N, commonest, "That is the commonest token so far."),
    (N, lambda t, v: induction()(t, v).argmax(1), "Return logits"),
    (N, lambda t, v: induction()(t, v).T, "shape (13, 22), expected"),
    (N, not_finite, "NaN"),
    (N, scattered, "you rank 6"),
]  # fmt: skip


def heads_of(q, k, v, o, h, f=lambda q, k, r: q[r].T @ k[r], g=lambda v, o, r: o[:, r] @ v[r]):
    parts = sliced(len(q), h)
    return [f(q, k, r) for r in parts], [g(v, o, r) for r in parts]


def counted(tokens, vocab, of=lambda tokens, j: j + 1, later=False):
    """How often each token followed this one before."""
    logits = np.zeros((len(tokens), vocab))
    for i in range(len(tokens)):
        for j in range(len(tokens) - 1 if later else i):
            if tokens[j] == tokens[i] and of(tokens, j) >= 0:
                logits[i, tokens[of(tokens, j)]] += 1
    return logits


def turned(d, by, size=100):
    return size * rotary(np.ones((1, d)), np.array([by]))[0]


WRONG += [
    (ch06.cache_bytes, lambda t, layers, g, d, b: 2 * t * layers * g * d * b * 2, "Two for keys and values once: they are there twice already"),
    (ch06.cache_bytes, lambda t, layers, g, d, b: 2 * layers * g * d * b, "That is for one token: all are kept"),
    (ch06.cache_bytes, lambda t, layers, g, d, b: 2 * t * layers * g * b, "A key has head_dim numbers"),
    (ch06.cache_bytes, lambda t, layers, g, d, b: 2 * (t + 1) * layers * g * d * b, "One token too many: the newest is included"),
    (ch06.circuits, lambda *a: heads_of(*a, g=lambda v, o, r: v[r].T @ o[r]), "Values come first: W_o acts on W_v x"),
    (ch06.circuits, lambda *a: heads_of(*a, g=lambda v, o, r: o @ v), "These are all heads together: each has its part"),
    (ch06.circuits, lambda *a: heads_of(*a, f=lambda q, k, r: q[r].T @ k[r] / len(q) ** 0.5), "There is no √e in it: the scores divide by √d later"),
    (ch06.circuits, lambda *a: heads_of(*a, f=lambda q, k, r: q[r].T @ k[r] * len(q[r]) ** 0.5), "There is no √d in it: the scores divide by it later"),
    (ch06.circuits, lambda *a: heads_of(*a, f=lambda q, k, r: q[r].T @ q[r]), "Keys have their own weight, W_k"),
    (ch06.source_token, lambda n, h, d: np.arange(n * h * d).reshape(n, h * d), "That numbers the entries: whose are they?"),
    (ch06.source_token, lambda n, h, d: (np.arange(n * h * d) // d % h).reshape(n, h * d), "After n vectors a new head begins, not after num_heads"),
    (ch06.source_token, lambda n, h, d: (np.arange(n * h * d) / d % n).reshape(n, h * d), "A token is a whole number: // and not /"),
    (ch06.pooled_kv, lambda w, h, g: grouped(w, h, g).max(1).reshape(-1, w.shape[1]), "That is the largest: take the mean"),
    (ch06.pooled_kv, lambda w, h, g: np.median(grouped(w, h, g), 1).reshape(-1, w.shape[1]), "That is the median: take the mean"),
    (ch06.pooled_kv, lambda w, h, g: grouped(w, h, g).mean(1).transpose(1, 0, 2).reshape(-1, w.shape[1]), "The means are right, in another order: head by head, each"),
    (ch06.pooled_kv, lambda w, h, g: grouped(w, h, g)[:, -1].reshape(-1, w.shape[1]), "That is the last head of each group alone"),
    (ch06.pooled_kv, lambda w, h, g: grouped(w, h, g).sum(1).reshape(-1, w.shape[1]) / g, "Divide by the heads of a group, not by the groups"),
    (ch06.pooled_kv, lambda w, h, g: grouped(w, h, g).sum(1).reshape(-1, w.shape[1]) / h, "Divide by the heads of a group, not by all"),
    (ch06.pooled_kv, lambda w, h, g: (grouped(w, h, g) ** 2).mean(1).reshape(-1, w.shape[1]) ** 0.5, "A plain mean, without squares"),
]  # fmt: skip


def torch_circuits(w_q, w_k, w_v, w_o, num_heads):
    import torch

    q, k, v = (w.unflatten(0, (num_heads, -1)) for w in (w_q, w_k, w_v))
    o = w_o.unflatten(1, (num_heads, -1))
    return torch.einsum("hda,hdb->hab", q, k), torch.einsum("ahd,hdb->hab", o, v)


def jax_circuits(w_q, w_k, w_v, w_o, num_heads):
    import jax.numpy as jnp

    q, k, v = (jnp.stack(jnp.split(w, num_heads)) for w in (w_q, w_k, w_v))
    o = jnp.stack(jnp.split(w_o, num_heads, axis=1))
    return q.mT @ k, o @ v


def torch_source(n, num_heads, head_dim):
    import torch

    x = torch.arange(n)[None, :, None].expand(num_heads, n, head_dim)
    return x.reshape(n, num_heads * head_dim)


def loop_source(n, num_heads, head_dim):
    order = [t for _ in range(num_heads) for t in range(n) for _ in range(head_dim)]
    e = num_heads * head_dim
    return [order[i * e : (i + 1) * e] for i in range(n)]


def torch_pooled(weight, num_heads, num_kv_heads):
    import torch

    heads = weight.chunk(num_heads)
    size = num_heads // num_kv_heads
    groups = [heads[i : i + size] for i in range(0, num_heads, size)]
    return torch.cat([torch.stack(group).mean(0) for group in groups])


def jax_pooled(weight, num_heads, num_kv_heads):
    import jax.numpy as jnp

    e = weight.shape[0]
    split = weight.reshape(num_kv_heads, num_heads // num_kv_heads, e // num_heads, e)
    return jnp.mean(split, axis=1).reshape(-1, e)


def torch_previous(d):
    import torch

    angles = torch.tensor(frequencies(d), dtype=torch.float32)
    key = torch.stack([-torch.sin(angles), torch.cos(angles)], dim=-1).flatten()
    return 200 * torch.tensor([0.0, 1.0]).repeat(d // 2), key


def key_on(d):
    """The key turned on by one position in place of the query back."""
    turned, straight = previous(turn=1)(d)
    return straight, turned


def torch_induction(tokens, vocab_size):
    import torch
    from torch.nn.functional import one_hot, scaled_dot_product_attention

    n = len(tokens)
    own = one_hot(tokens, vocab_size).double()
    position = torch.eye(n, dtype=torch.float64)
    on = position.roll(1, dims=1)
    on[-1] = 0
    before = scaled_dot_product_attention(
        *(x[None] for x in (900 * position, on, own)), is_causal=True
    )[0]
    before = before - position[:, :1]  # nothing matches the first
    return scaled_dot_product_attention(
        *(x[None] for x in (900 * own, before, own)), is_causal=True
    )[0].log()


def jax_induction(tokens, vocab_size):
    import jax
    import jax.numpy as jnp

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


RIGHT = [
    (P, parameters),
    (P, lambda e, h, g: sum(a * b + b for a, b in [(e, e)] * 2 + [(e, g * e // h)] * 2)),
    (B, cached),
    (B, lambda *a: float(np.prod(a)) * 2),
    (C, read()),
    (C, torch_circuits),
    (C, jax_circuits),
    (S, token),
    (S, torch_source),
    (S, loop_source),
    (G, pooled),
    (G, torch_pooled),
    (G, jax_pooled),
    (G, lambda w, h, g: pooled(w.astype(np.float32), h, g)),
    (T, previous()),
    (T, previous(size=60)),
    (T, previous(size=1e4)),
    (T, key_on),
    (T, torch_previous),
    (N, induction()),
    (N, induction(size=8)),
    (N, torch_induction),
    (N, jax_induction),
    (N, loop_induction),
    (N, lambda *a: np.log(induction()(*a) + 1e-300)),
    (N, lambda *a: induction()(*a).astype(np.float32)),
]


M, K = ch06.lost_share, ch06.grouped_heads


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


def the_first(h, g):
    return np.zeros(h, dtype=int)


WRONG += [
    (M, lambda w: w**2 / (w**2 + (1 - w) ** 2), "what is kept of a"),
    (M, lambda w: 1 - w, "variances take squares"),
    (M, lambda w: (1 - w) ** 2, "for the multiple 1"),
    (M, lambda w: 2 * (1 - w) ** 2, "takes z as it is for a"),
    (M, lambda w: w**2 + (1 - w) ** 2, "the variance of the mixture, not"),
    (M, lambda w: w / (w**2 + (1 - w) ** 2), "the best multiple: what does it leave"),
    (M, lambda w: (1 - w) / (w**2 + (1 - w) ** 2), "Square 1 − w"),
    (M, lambda w: (1 - w) / np.sqrt(w**2 + (1 - w) ** 2), "a standard deviation"),
    (M, lambda w: 0.5, "the mean over a and b"),
    (K, grouped_by(neighbours, in_turn), "Keys come from one group"),
    (K, grouped_by(in_turn, neighbours), "Values come from one group"),
    (K, grouped_by(in_turn, in_turn), "Heads take turns"),
    (K, grouped_by(neighbours, the_first), "the first group's values"),
    (K, grouped_by(the_first, the_first), "All heads share the first group"),
    (K, grouped_by(neighbours, lambda h, g: neighbours(h, g)[::-1]), "are exchanged"),
    (K, grouped_by(neighbours, neighbours, lambda q: 1), "not divided by √d"),
    (K, grouped_by(neighbours, neighbours, lambda q: np.sqrt(q.shape[2] * len(q))), "of one head"),
]  # fmt: skip
RIGHT += [
    (M, lambda w: (1 - w) ** 2 / (w**2 + (1 - w) ** 2)),
    (M, lambda w: 1 / (1 + (w / (1 - w)) ** 2)),
    (K, grouped_by(neighbours, neighbours)),
    (
        K,
        mended(
            ch06.GROUPED_HEADS,
            "grouped_heads",
            ("np.tile(v, (shared, 1, 1))", "np.repeat(v, shared, axis=0)"),
        ),
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "heard"),
    [
        ("np.tile(v, (shared", "np.tile(v[::-1], (shared", "faulty line, but it is not right yet. For"),
        ("np.repeat(k, shared, axis=0)", "np.tile(k, (shared, 1, 1))", "in another line than you"),
        ("    s = q", "    v = v[np.argsort(np.arange(len(q)) % (len(q) // shared), kind='stable')]\n    s = q", "the faulty line still stands"),
    ],
)  # fmt: skip
def test_the_wrong_group_is_to_be_mended_where_it_is(old, new, heard):
    verdict = K(mended(ch06.GROUPED_HEADS, "grouped_heads", (old, new)))
    assert verdict.status == "wrong"
    assert heard in verdict.message


@pytest.mark.parametrize(("check", "answer"), RIGHT)
def test_right_answers_in_three_libraries(check, answer):
    verdict = check(answer)
    assert verdict.status == "right", verdict


@pytest.mark.parametrize("check", [P, B, C, S, G, T, N, M, K])
def test_not_written_yet_is_a_friendly_line(check):
    def stub(*arguments):
        raise NotImplementedError

    verdict = check(stub)
    assert verdict.status == "not yet"
    assert repr(verdict).startswith(f"… {check.__name__}: not written yet")


def test_the_numbers_of_the_cache_exercise():
    for heads, gigabytes in ((64, 10.7), (8, 1.3)):
        assert round(cached(4096, 80, heads, 128, 2) / 1e9, 1) == gigabytes


def test_one_or_two_tokens_on_sequences_that_repeat():
    rng = np.random.default_rng(0)
    right = []
    for _ in range(200):
        tokens = np.tile(rng.integers(0, 16, 32), 2)
        i = np.arange(32, 63)
        answers = [rule(tokens, 16)[i].argmax(1) for rule in (induction(), two_tokens)]
        right.append([np.mean(answer == tokens[i + 1]) for answer in answers])
    assert np.allclose(np.mean(right, axis=0), [0.34, 0.89], atol=0.02)


def test_a_previous_token_head_may_start_anywhere():
    query, key = previous()(32)
    for start in (0, 1000):
        turn = np.exp(1j * (start + np.arange(200))[:, None] * frequencies(32))
        q, k = ((x[::2] + 1j * x[1::2]) * turn for x in (query, key))
        w = softmax((q @ k.conj().T).real / 32**0.5, np.tri(200, dtype=bool))
        assert np.diag(w, -1).min() > 0.999


def test_the_two_matrices_of_a_head_give_what_attention_gives():
    rng = np.random.default_rng(3)
    x, (w_q, w_k, w_v, w_o) = rng.normal(size=(7, 6)), rng.normal(size=(4, 6, 6))
    q, k, v = (split_heads(x @ w.T, 2) for w in (w_q, w_k, w_v))
    expected = merge_heads(attend(q, k, v)) @ w_o.T
    qk, ov = read()(w_q, w_k, w_v, w_o, 2)
    w = softmax(x @ qk @ x.T / 3**0.5)  # (heads, 7, 7)
    np.testing.assert_allclose((w @ x @ ov.mT).sum(0), expected, rtol=1e-12)


def test_the_check_turns_pairs_as_the_package_does():
    query, key = (x[None].repeat(7, 0) for x in previous()(32))
    p = np.arange(7.0)
    w = softmax(rotary(query, p) @ rotary(key, p).T / 32**0.5, np.tri(7, dtype=bool))
    assert np.diag(w, -1).min() > 0.999
