"""Chapter 10's right answers, of any library, and usual wrong ones."""

from __future__ import annotations

from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import torch
from mending import altered, mended

from attnbook.course.checks import ch10


def size(v, e, layers, h, g, f):
    block = 2 * e * e + 2 * e * (e // h * g) + 3 * e * f + 2 * e
    return v * e + layers * block + e


def cache(e, layers, h, g, b):
    return 2 * layers * g * (e // h) * b, h / g


def bits(scale, least, packed):
    q = np.hstack([packed % 16, packed // 16])
    return scale[:, None] * q + least[:, None]


def torch_bits(scale, least, packed):
    return scale[:, None] * torch.cat([packed & 15, packed >> 4], dim=1) + least[:, None]


def jax_bits(scale, least, packed):
    q = jnp.hstack([packed & 15, packed >> 4]).astype(scale.dtype)
    return scale[:, None] * q + least[:, None]


def neighbours(weight, num_heads):
    rows, e = weight.shape
    return weight.reshape(num_heads, 2, -1, e).swapaxes(1, 2).reshape(rows, e)


FAULT = "np.sqrt(x.var(axis=1, keepdims=True) + eps)"
SIZE = "np.sqrt((x**2).mean(axis=1, keepdims=True) + eps)"
BY_SIZE = "z = x / size"


def mlp(new, *others):
    return mended(ch10.LLAMA_MLP, "llama_mlp", (FAULT, new), *others)


def merging(word, merges):
    parts = [int(token) for token in word]
    ranks = {tuple(pair): rank for rank, pair in enumerate(merges.tolist())}
    for _ in range(len(word)):
        found = [(ranks[pair], i) for i, pair in enumerate(pairwise(parts)) if pair in ranks]
        if found:
            rank, i = min(found)
            parts[i : i + 2] = [256 + rank]
    return parts


def row_by_row(word, merges):
    """Each row in turn, at all its places."""
    tokens = [int(token) for token in word]
    for row, (left, right) in enumerate(merges):
        new, i = [], 0
        while i < len(tokens):
            both = tokens[i : i + 2] == [left, right]
            new.append(256 + row if both else tokens[i])
            i += 1 + both
        tokens = new
    return tokens


def one_copy(word, merges):
    tokens = [int(token) for token in word]
    for row, pair in enumerate(merges.tolist()):
        for i in range(len(tokens) - 1):
            if tokens[i : i + 2] == pair:
                tokens[i : i + 2] = [256 + row]
                break
    return tokens


def longest(word, merges):
    spelt = {token: (token,) for token in range(256)}
    for row, (left, right) in enumerate(merges.tolist()):
        spelt[256 + row] = spelt[left] + spelt[right]
    rest, tokens = tuple(int(token) for token in word), []
    while rest:
        fits = [token for token in spelt if rest[: len(spelt[token])] == spelt[token]]
        tokens.append(max(fits, key=lambda token: len(spelt[token])))
        rest = rest[len(spelt[tokens[-1]]) :]
    return tokens


def followed(weights, tokens):
    parts = []
    for i in range(len(tokens)):
        copies = np.flatnonzero(tokens[:i] == tokens[i])
        if len(copies):
            parts.append(weights[i, copies + 1].sum())
    return np.mean(parts)


def torch_followed(weights, tokens):
    copies = torch.tril(tokens[:, None] == tokens, diagonal=-1)
    after = torch.roll(copies, 1, dims=1)
    return (weights * after).sum(dim=1)[copies.any(dim=1)].mean()


def rolled(weights, tokens):
    after = np.roll(tokens[:, None] == tokens, 1, axis=1) & np.tri(len(tokens), dtype=bool)
    return (weights * after).sum(axis=1)[after.any(axis=1)].mean()


def with_sink(scores, values, sink):
    s = np.hstack([scores, np.full((len(scores), 1), sink)])
    w = np.exp(s - s.max(axis=1, keepdims=True))
    w = w / w.sum(axis=1, keepdims=True)
    return w[:, :-1] @ values


def half_shifted(scores, values, sink):
    kernel = np.exp(scores - scores.max(axis=1, keepdims=True))
    return kernel @ values / (kernel.sum(axis=1, keepdims=True) + np.exp(sink))


def torch_sink(scores, values, sink):
    every = torch.cat([scores, torch.full((len(scores), 1), sink, dtype=scores.dtype)], dim=1)
    return torch.softmax(every, dim=1)[:, :-1] @ values


def taken_out(mixed, w_o, head, h):
    d = mixed.shape[-1] // h
    own = slice(head * d, (head + 1) * d)
    zero, mean = mixed.copy(), mixed.copy()
    zero[..., own] = 0
    mean[..., own] = mixed[..., own].mean(axis=0)
    return zero @ w_o.T, mean @ w_o.T


def torch_taken_out(mixed, w_o, head, h):
    kept = torch.arange(mixed.shape[-1]) // (mixed.shape[-1] // h) != head
    mean = torch.where(kept, mixed, mixed.mean(dim=0))
    return (mixed * kept) @ w_o.T, mean @ w_o.T


ROWS = "reshape(rows, e)"
RIGHTMOST = "lambda one: (one[0], -one[1])"
CENTRED = "z = (x - x.mean(axis=1, keepdims=True)) / size"
RIGHT = {
    "model_parameters": [size],
    "cache_per_token": [cache],
    "from_four_bits": [bits, torch_bits, jax_bits],
    "neighbour_pairs": [neighbours],
    "llama_mlp": [mlp(SIZE), mlp("np.sqrt(np.mean(np.square(x), axis=-1)[:, None] + eps)")],
    "merged_word": [merging, row_by_row],
    "weight_on_followed": [followed, torch_followed],
    "attend_with_sink": [with_sink, torch_sink],
    "without_head": [taken_out, torch_taken_out],
}
WRONG = {
    "model_parameters": [
        (altered(size, "v * e +", "2 * v * e +"), "shares the table of tokens: count it once"),
        (altered(size, "(e // h * g)", "e"), "fewer heads than queries"),
        (altered(size, "3 * e * f", "2 * e * f"), "three matrices: gate, hidden and output"),
    ],
    "cache_per_token": [
        (altered(cache, "2 * layers", "layers"), "a later query needs both"),
        (altered(cache, " * b", ""), "not bytes"),
        (altered(cache, "h / g", "g / h"), "Turned over"),
        (lambda *given: cache(*given)[::-1], "return the bytes first"),
    ],
    "from_four_bits": [
        (altered(bits, "% 16, packed // 16", "// 16, packed % 16"), "low four bits come first"),
        (altered(bits, "packed // 16", "packed"), "still hold the low four"),
        (altered(bits, " + least[:, None]", ""), "The least value is missing"),
        (altered(bits, ", packed // 16", ""), "each byte holds two numbers"),
        (lambda *given: bits(*given).ravel(), "a row of 32"),
    ],
    "neighbour_pairs": [
        (lambda weight, num_heads: weight, "Nothing has changed its place"),
        (altered(neighbours, "2, -1", "-1, 2"), "the way back"),
        (altered(neighbours, "(num_heads, 2", "(1, 2"), "inside its own rows"),
        (altered(neighbours, ROWS, "reshape(num_heads, -1, e)"), "below each other"),
    ],
    "llama_mlp": [
        (mlp("np.sqrt((x**2).sum(axis=1, keepdims=True) + eps)"), "That is the length"),
        (mlp("np.sqrt((x**2).mean() + eps)"), "Each token has its own size"),
        (mlp(FAULT, (BY_SIZE, CENTRED)), "in another line than you changed. For 4 tokens"),
        (mlp(FAULT, (BY_SIZE, f"z = x / {SIZE}")), "still stands: you make good elsewhere"),
    ],
    "merged_word": [
        (altered(merging, "min(found)", "min(found, key=lambda one: one[1])"), "the first pair"),
        (
            altered(merging, "min(found)", f"max(found, key={RIGHTMOST})"),
            "The highest rank comes first",
        ),
        (altered(merging, "min(found)", f"min(found, key={RIGHTMOST})"), "the left one is merged"),
        (altered(merging, "256 + ", ""), "makes the token 256 + r"),
        (altered(merging, "256 + ", "257 + "), "Ranks count from 0"),
        (altered(merging, "range(len(word))", "range(1)"), "You merge once"),
        (one_copy, "merge all its copies"),
        (longest, "the longest token from the left"),
        (lambda word, merges: word, "Nothing is merged"),
        (lambda *given: merging(*given)[:-1], "The last token of the word is lost"),
        (lambda *given: merging(*given)[::-1], "The order is turned round"),
        (lambda *given: [7, *merging(*given)], "expected [260, 100, 258, 260]"),
        (lambda *given: [merging(*given)], "expected one row of tokens"),
        (lambda word, merges: np.zeros(300_000), "300000 tokens for 8 letters"),
    ],
    "weight_on_followed": [
        (altered(followed, "copies + 1", "copies"), "what followed it?"),
        (altered(followed, "copies + 1", "copies[-1:] + 1"), "Only the latest copy counts"),
        (rolled, "Nothing stands before the first key"),
        (altered(followed, "np.mean(parts)", "parts"), "return their mean, one number"),
    ],
    "attend_with_sink": [
        (altered(with_sink, "1), sink)", "1), -np.inf)"), "attention without it"),
        (altered(with_sink, "1), sink)", "1), 0.0)"), "for a score of 0"),
        (half_shifted, "Subtract the largest score from s too"),
        (altered(with_sink, "s - s.max(axis=1, keepdims=True)", "s"), "score before exp"),
        (altered(with_sink, " @ values", ""), "those are weights"),
    ],
    "without_head": [
        (altered(taken_out, "zero @ w_o.T", "zero @ w_o"), "multiply by its transpose"),
        (altered(taken_out, "head * d, (head + 1) * d", "head, None, h"), "are neighbours"),
        (altered(taken_out, "axis=0", "axis=1, keepdims=True"), "the tokens of a row"),
        (lambda *given: taken_out(*given)[::-1], "return the one by zero first"),
    ],
}
