"""Chapter 10's right answers, of any library, and usual wrong ones."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch
from mending import altered, mended, solutions

from attnbook_course.checks import ch10

solved = solutions(10)
size, cache, bits = solved.model_parameters, solved.cache_per_token, solved.from_four_bits
neighbours, merging = solved.neighbour_pairs, solved.merged_word
taken_out = solved.without_head


def torch_bits(scale, least, packed):
    return scale[:, None] * torch.cat([packed & 15, packed >> 4], dim=1) + least[:, None]


def jax_bits(scale, least, packed):
    q = jnp.hstack([packed & 15, packed >> 4]).astype(scale.dtype)
    return scale[:, None] * q + least[:, None]


FAULT = "np.sqrt(x.var(axis=1, keepdims=True) + eps)"
SIZE = "np.sqrt((x**2).mean(axis=1, keepdims=True) + eps)"
BY_SIZE = "z = x / size"


def mlp(new, *others):
    return mended(ch10.LLAMA_MLP, "llama_mlp", (FAULT, new), *others)


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
    spelt: dict[int, tuple[int, ...]] = {token: (token,) for token in range(256)}
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


def torch_taken_out(mixed, w_o, head, h):
    kept = torch.arange(mixed.shape[-1]) // (mixed.shape[-1] // h) != head
    mean = torch.where(kept, mixed, mixed.mean(dim=0))
    return (mixed * kept) @ w_o.T, mean @ w_o.T


ROWS = "reshape(rows, e)"
RIGHTMOST = "lambda one: (one[0], -one[1])"
CENTRED = "z = (x - x.mean(axis=1, keepdims=True)) / size"
RIGHT = {
    "from_four_bits": [torch_bits, jax_bits],
    "llama_mlp": [mlp(SIZE), mlp("np.sqrt(np.mean(np.square(x), axis=-1)[:, None] + eps)")],
    "merged_word": [row_by_row],
    "weight_on_followed": [followed, torch_followed],
    "attend_with_sink": [with_sink, torch_sink],
    "without_head": [torch_taken_out],
}
WRONG = {
    "model_parameters": [
        (
            altered(size, "vocab_size * embed_dim", "2 * vocab_size * embed_dim"),
            "shares the table of tokens: count it once",
        ),
        (altered(size, "+ kv_width", "+ embed_dim"), "fewer heads than queries"),
        (
            altered(size, "3 * embed_dim", "2 * embed_dim"),
            "three matrices: gate, hidden and output",
        ),
    ],
    "cache_per_token": [
        (altered(cache, "2 * num_layers", "num_layers"), "a later query needs both"),
        (altered(cache, " * bytes_per_number", ""), "not bytes"),
        (altered(cache, "num_heads / num_kv_heads", "num_kv_heads / num_heads"), "Turned over"),
        (lambda *given: cache(*given)[::-1], "return the bytes first"),
    ],
    "from_four_bits": [
        (altered(bits, "& 15, packed >> 4", ">> 4, packed & 15"), "low four bits come first"),
        (altered(bits, "packed >> 4", "packed"), "still hold the low four"),
        (altered(bits, " + least[:, None]", ""), "The least value is missing"),
        (altered(bits, ", packed >> 4", ""), "each byte holds two numbers"),
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
        (altered(merging, "min(known)", "min(known, key=lambda one: one[1])"), "the first pair"),
        (
            altered(merging, "min(known)", f"max(known, key={RIGHTMOST})"),
            "The highest rank comes first",
        ),
        (altered(merging, "min(known)", f"min(known, key={RIGHTMOST})"), "the left one is merged"),
        (altered(merging, "256 + ", ""), "makes the token 256 + r"),
        (altered(merging, "256 + ", "257 + "), "Ranks count from 0"),
        (altered(merging, "not known", "not known or len(tokens) < len(word)"), "You merge once"),
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
        (altered(taken_out, "others) @ w_o.T", "others) @ w_o"), "multiply by its transpose"),
        (altered(taken_out, "// (e // num_heads)", "% num_heads"), "are neighbours"),
        (altered(taken_out, "axis=0", "axis=1, keepdims=True"), "the tokens of a row"),
        (lambda *given: taken_out(*given)[::-1], "return the one by zero first"),
    ],
}
