"""Chapter 10's right answers, of any library, and usual wrong ones."""

from __future__ import annotations

import numpy as np
import torch
from mending import altered, mended, solutions

from attnbook_course.checks import ch10

solved = solutions(10)
size, cache, bits = solved.model_parameters, solved.cache_per_token, solved.from_four_bits
neighbours, merging = solved.neighbour_pairs, solved.merged_word
taken_out = solved.without_head


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


def with_sink(scores, values, sink):
    s = np.hstack([scores, np.full((len(scores), 1), sink)])
    w = np.exp(s - s.max(axis=1, keepdims=True))
    w = w / w.sum(axis=1, keepdims=True)
    return w[:, :-1] @ values


def torch_taken_out(mixed, w_o, head, h):
    kept = torch.arange(mixed.shape[-1]) // (mixed.shape[-1] // h) != head
    mean = torch.where(kept, mixed, mixed.mean(dim=0))
    return (mixed * kept) @ w_o.T, mean @ w_o.T


RIGHTMOST = "lambda one: (one[0], -one[1])"
RIGHT = {"merged_word": [row_by_row], "without_head": [torch_taken_out]}
WRONG = {
    "cache_per_token": [(lambda *given: cache(*given)[::-1], "return the bytes first")],
    "neighbour_pairs": [(lambda weight, num_heads: weight, "Nothing has changed its place")],
    "llama_mlp": [
        (mlp(FAULT, (BY_SIZE, f"z = x / {SIZE}")), "still stands: you make good elsewhere")
    ],
    "merged_word": [
        (altered(merging, "min(known)", "min(known, key=lambda one: one[1])"), "the first pair"),
        (altered(merging, "min(known)", f"min(known, key={RIGHTMOST})"), "the left one is merged"),
        (altered(merging, "not known", "not known or len(tokens) < len(word)"), "You merge once"),
        (one_copy, "merge all its copies"),
        (longest, "the longest token from the left"),
        (lambda *given: [7, *merging(*given)], "expected [260, 100, 258, 260]"),
        (lambda *given: [merging(*given)], "expected one row of tokens"),
        (lambda word, merges: np.zeros(300_000), "300000 tokens for 8 letters"),
    ],
    "attend_with_sink": [
        (altered(with_sink, "s - s.max(axis=1, keepdims=True)", "s"), "score before exp")
    ],
    "without_head": [(lambda *given: taken_out(*given)[::-1], "return the one by zero first")],
}
