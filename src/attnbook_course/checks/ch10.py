"""Checks for chapter 10. Each knows the usual wrong answers by what they give."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from attnbook.attention import softmax
from attnbook_course.checks.call import call, call_pair
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.verdict import Function, Wrong, check, expect, one_number, show


@check
def model_parameters(function: Function) -> str:
    """function(vocab_size, embed_dim, num_layers, num_heads, num_kv_heads, mlp_dim): a number."""
    for v, e, layers, h, g, f in ((97, 60, 4, 6, 3, 47), (131, 56, 5, 8, 4, 101)):
        kv = e // h * g
        attention, mlp, table = 2 * e * (e + kv), 3 * e * f, v * e
        right = table + layers * (attention + mlp + 2 * e) + e
        got = call(function, v, e, layers, h, g, f)
        mistakes = [
            (right + table, "The readout shares the table of tokens: count it once."),
            (right + layers * 2 * e * (e - kv), "Keys and values have fewer heads than queries."),
            (right - layers * e * f, "A gated MLP has three matrices: gate, hidden and output."),
            (right - e, "There is one more norm, behind the last block."),
            (right - layers * e * e, "The attention has a fourth matrix, behind the heads."),
        ]
        expect(got, right, f"for ({v}, {e}, {layers}, {h}, {g}, {f})", mistakes, secret=True)
    return "a table, and in each block four matrices and three, and two norms."


@check
def cache_per_token(function: Function) -> str:
    """function(embed_dim, num_layers, num_heads, num_kv_heads, bytes_per_number): a pair."""
    for e, layers, h, g, b in ((60, 7, 12, 3, 8), (48, 5, 16, 2, 4)):
        d = e // h
        bytes_of, times = 2 * layers * g * d * b, h / g
        first, second = call_pair(function, e, layers, h, g, b)
        where = f"for ({e}, {layers}, {h}, {g}, {b})"
        first, second = (one_number(part, where) for part in (first, second))
        if np.allclose([first, second], [times, bytes_of]):
            raise Wrong(f"{where} the first is the factor:", "return the bytes first.")
        mistakes = [
            (bytes_of * times, "That is with a head each, or with wider ones: here heads share."),
            (bytes_of / 2, "Keys or values alone: a later query needs both."),
            (bytes_of / layers, "Each layer keeps its own keys and values."),
        ]
        expect(first, bytes_of, f"{where}, in the bytes,", mistakes, secret=True)
        mistakes = [(g / h, "Turned over: how many times smaller, a number above 1.")]
        expect(second, times, f"{where}, in the factor,", mistakes, secret=True)
    return "shared heads make the cache smaller, and hardly the model."


@check
def from_four_bits(function: Function) -> str:
    """function(scale, least, packed): numbers (b, 32) of b blocks with 16 bytes each."""
    rng = np.random.default_rng(3)
    for b in (1, 3):
        scale, least = rng.uniform(0.1, 0.5, b), rng.normal(size=b) - 1
        packed = rng.integers(0, 256, (b, 16)).astype(np.uint8)
        low, high = (packed % 16).astype(float), (packed // 16).astype(float)
        q, s, m = np.hstack([low, high]), scale[:, None], least[:, None]
        woven = np.stack([low, high], axis=2).reshape(b, 32)
        got = call(function, scale, least, packed)
        where = f"for {b} block{'s' * (b > 1)}"
        mistakes = [
            (s * woven + m, "The two numbers of a byte are not neighbours: low ones come first."),
            (s * np.hstack([high, low]) + m, "The low four bits come first, then the high ones."),
            (s * q, "The least value is missing."),
            (s * np.hstack([low, 16 * high]) + m, "The high bits stand 4 places up: >> 4."),
        ]
        expect(got, s * q + m, where, mistakes)
    return "five bits for a number that had 32."


@check
def neighbour_pairs(function: Function) -> str:
    """function(weight, num_heads): rows i and i + d/2 of each head to 2i and 2i + 1."""
    rng = np.random.default_rng(4)
    for h, d, e in ((3, 6, 5), (2, 8, 16)):
        weight = rng.normal(size=(h * d, e))
        heads = weight.reshape(h, d, e)
        order, whole = (np.arange(n).reshape(2, -1).T.ravel() for n in (d, h * d))
        got = call(function, weight, h)
        where = f"for {h} heads of width {d}"

        def by(rows: np.ndarray, parts: np.ndarray = heads) -> np.ndarray:
            return parts[:, rows].reshape(-1, parts.shape[2])

        turned = by(order.reshape(-1, 2)[:, ::-1].ravel())
        causes = [
            (weight, "Nothing has changed its place."),
            (by(np.argsort(order)), "That is the way back: neighbours become halves."),
            (weight[whole], "Each head by itself: its pairs are inside its own rows."),
            (turned, "The pair is turned round: row i goes to 2i, row i + d/2 to 2i + 1."),
        ]
        if e == h * d:
            columns = by(order, weight.T.reshape(h, d, e)).T
            causes.append((columns, "Those are columns. Rows are what comes out: reorder rows."))
        expect(got, by(order), where, causes)
    return "the scores stay: a dot product does not mind in which order it adds."


LLAMA_MLP = '''
def llama_mlp(x, norm, gate, hidden, output, eps=1e-5):
    """The stream (n, e) behind RMS norm and gated MLP; weights have shape (out, in)."""
    size = np.sqrt(x.var(axis=1, keepdims=True) + eps)
    z = x / size * norm
    opened = z @ gate.T
    inner = opened / (1 + np.exp(-opened)) * (z @ hidden.T)
    return x + inner @ output.T
'''


@check
def llama_mlp(function: Function) -> str:
    """function(x, norm, gate, hidden, output): LLAMA_MLP, mended so that the norm is RMS norm."""
    fault = "size = np.sqrt(x.var(axis=1, keepdims=True) + eps)"
    return repaired(function, LLAMA_MLP, fault=fault, test=_gated)


def _gated(function: Function) -> str:
    rng = np.random.default_rng(5)
    x, norm = rng.normal(size=(4, 6)) + np.asarray([[0], [1], [2], [-3]]), rng.uniform(0.5, 2, 6)
    x[0] *= 0.003  # where the eps counts
    gate, hidden, output = rng.normal(size=(7, 6)), rng.normal(size=(7, 6)), rng.normal(size=(6, 7))

    def by(size: np.ndarray, start: np.ndarray = x) -> np.ndarray:
        z = start / size * norm
        opened = z @ gate.T
        return x + (opened / (1 + np.exp(-opened)) * (z @ hidden.T)) @ output.T

    square = (x**2).mean(axis=1, keepdims=True)
    variance = x.var(axis=1, keepdims=True)
    root = np.sqrt(square + 1e-5)
    centred = x - x.mean(axis=1, keepdims=True)
    mistakes = [
        (by(np.sqrt(variance + 1e-5)), "The mean is still subtracted: RMS norm does not do that."),
        (by(np.sqrt(variance + 1e-5), centred), "That is layer norm: RMS norm subtracts no mean."),
        (by(np.sqrt(6 * square + 1e-5)), "That is the length: divide by the root of the mean."),
        (by(square + 1e-5), "The root is missing."),
        (by(np.sqrt(square)), "The ε under the root is missing."),
        (by(np.sqrt((x**2).mean() + 1e-5)), "Each token has its own size."),
    ]
    expect(call(function, x, norm, gate, hidden, output), by(root), "for 4 tokens", mistakes)
    return "Where the mean of a token is near 0, the fault hardly shows in what comes out."


FIRST_MERGE = 256  # the token that the merge of rank 0 makes; those below are bytes
Choice = Callable[[list[tuple[int, int]]], tuple[int, int]]


def _merged(
    word: np.ndarray, merges: np.ndarray, choose: Choice = min, most: int = 99
) -> list[int]:
    """The tokens of a word: merge, each time, one of the pairs (rank, place) that can be.

    Args:
        word: bytes (n,).
        merges: pairs of tokens (m, 2); row r is the merge of rank r.
        choose: the next one; by default the lowest rank, and of its copies the left one.
        most: merges at most.
    """
    parts = [int(token) for token in word]
    ranks = {tuple(pair): rank for rank, pair in enumerate(merges.tolist())}
    for _ in range(most):
        found = [(ranks[pair], i) for i, pair in enumerate(pairwise(parts)) if pair in ranks]
        if not found:
            break
        rank, i = choose(found)
        parts[i : i + 2] = [FIRST_MERGE + rank]
    return parts


def _wrongly_merged(word: np.ndarray, merges: np.ndarray) -> Iterator[tuple[list[int], str]]:
    """Wrong answers for this word, each with what leads to it."""
    yield _longest(word, merges), "That is the longest token from the left: merge pairs by rank."
    yield (
        _merged(word, merges, lambda found: min(found, key=lambda one: one[1])),
        "You merge the first pair that can be: the lowest rank in the whole word comes first.",
    )
    yield (
        _merged(word, merges, lambda found: min(found, key=lambda one: (one[0], -one[1]))),
        "Of equal pairs that overlap, the left one is merged.",
    )
    yield _merged(word, merges, most=1), "You merge once: begin again, until no pair can be merged."
    yield _one_each(word, merges), "A pair may be there more than once: merge all its copies."


def _one_each(word: np.ndarray, merges: np.ndarray) -> list[int]:
    """Each merge in turn, at its first place alone."""
    parts = [int(token) for token in word]
    for rank, pair in enumerate(merges.tolist()):
        places = [i for i in range(len(parts)) if parts[i : i + 2] == pair]
        if places:
            parts[places[0] : places[0] + 2] = [FIRST_MERGE + rank]
    return parts


def _longest(word: np.ndarray, merges: np.ndarray) -> list[int]:
    """From the left, each time the longest token that fits."""
    spelt = {token: [token] for token in range(FIRST_MERGE)}
    for rank, (left, right) in enumerate(merges.tolist()):
        spelt[FIRST_MERGE + rank] = spelt[left] + spelt[right]
    rest, parts = [int(token) for token in word], []
    while rest:
        fits = [token for token, letters in spelt.items() if rest[: len(letters)] == letters]
        parts.append(max(fits, key=lambda token: len(spelt[token])))
        rest = rest[len(spelt[parts[-1]]) :]
    return parts


@check
def merged_word(function: Function) -> str:
    """function(word, merges): the tokens of a word (n,) by merges (m, 2), the first ones first."""
    a, b, c, d = (ord(letter) for letter in "abcd")
    abc, cd, dd = (FIRST_MERGE + rank for rank in (2, 3, 4))
    rules = np.asarray([[b, c], [a, b], [a, FIRST_MERGE], [c, d], [d, d], [abc, cd], [dd, a]])
    for word in ("dddabcdd", "ddab", "bcab", "dd", "acbd"):
        letters = np.asarray([ord(letter) for letter in word])
        got, where = call(function, letters, rules), f"for {word!r}"
        right = _merged(letters, rules)
        if got.ndim == 1 and got.size > len(letters):
            few = f"{got.size} tokens for {len(letters)} letters"
            raise Wrong(f"{where} you give {few}:", "a merge makes one token of two.")
        if got.shape == np.shape(right) and np.array_equal(got, right):
            continue
        if got.ndim != 1:
            raise Wrong(f"{where} you give shape {got.shape}, expected one row of tokens.")
        for wrong, cause in _wrongly_merged(letters, rules):
            if got.shape == np.shape(wrong) and np.array_equal(got, wrong):
                raise Wrong(f"{where} you give {_listed(got)}.", cause)
        raise Wrong(f"{where} you give {_listed(got)}, expected {_listed(np.asarray(right))}.")
    return "the order in which the merges were learned is all that a tokenizer knows."


def _listed(tokens: np.ndarray) -> str:
    return f"[{', '.join(show(t) for t in tokens.ravel())}]"


@check
def weight_on_followed(function: Function) -> str:
    """function(weights, tokens): mean weight on what followed earlier copies of the same token."""
    rng = np.random.default_rng(6)
    for name, tokens in (
        ("6 words twice", np.tile(rng.permutation(6), 2)),
        ("16 tokens of 4 kinds", rng.integers(0, 4, 16)),
    ):
        n = len(tokens)
        scores = np.where(np.tri(n, dtype=bool), 3 * rng.normal(size=(n, n)), -np.inf)
        w: Any = softmax(scores)
        same = (tokens[:, None] == tokens) & np.tri(n, k=-1, dtype=bool)
        copies = [np.flatnonzero(row) for row in same]
        queries = [i for i in range(n) if len(copies[i])]
        m = len(queries)
        behind = [w[i, copies[i] + 1] for i in queries]
        parts = np.asarray([each.sum() for each in behind])
        right = float(parts.mean())
        rolled = np.roll(tokens[:, None] == tokens, 1, axis=1) & np.tri(n, dtype=bool)
        got = call(function, w, tokens)
        wrapped = "Nothing stands before the first key: np.roll puts the last token there."
        mistakes = [
            (right * m / n, "Divide by the queries with an earlier copy alone."),
            *((w[rolled].sum() / count, wrapped) for count in (n, m, rolled.any(axis=1).sum())),
            (w[same].sum() / m, "That is the weight on the copy: what followed it?"),
            (np.mean([each[-1] for each in behind]), "Only the latest copy counts: add over all."),
            (np.mean([each.mean() for each in behind]), "Add a query's weights: do not average."),
        ]
        expect(got, right, f"for {name}", mistakes)
    return "above a half it is an induction head by its weights; whether it acts is another test."


@check
def attend_with_sink(function: Function) -> str:
    """function(scores, values, sink): (m, n), (n, d), a number to (m, d)."""
    rng = np.random.default_rng(7)
    scores, values = rng.normal(size=(3, 5)), rng.normal(size=(5, 2)) + 1
    for s, sink, name in (
        (scores, 0.7, "5 keys"),
        (scores, -2.0, "5 keys"),
        (scores + 1000, 1001.0, "large scores"),
        (scores - 1000, -999.0, "small scores"),
    ):
        where = f"for {name} and a sink of {show(sink)}"
        every = np.hstack([s, np.full((3, 1), sink)])
        w: Any = softmax(every)
        plain: Any = softmax(s)
        got = call(function, s, values, sink)
        shifted = np.exp(s - s.max(axis=1, keepdims=True))
        total = shifted.sum(axis=1, keepdims=True)
        zero: Any = softmax(np.hstack([s, np.zeros((3, 1))]))
        if np.any(np.isnan(got)):
            raise Wrong(f"{where} you give NaN:", "subtract the largest score before exp.")
        mistakes = [
            (plain @ values, "The sink takes no weight: that is attention without it."),
            (zero[:, :-1] @ values, "The sink has its own score: that is for a score of 0."),
            (w[:, :-1] @ values + w[:, -1:], "The value of the sink is 0, not 1."),
            (shifted @ values / (total + sink), "The sum gets e^s, not s."),
        ]
        expect(got, w[:, :-1] @ values, where, mistakes)
    return "chapter 1 with one more observation, of value 0: it may say nothing."


@check
def without_head(function: Function) -> str:
    """function(mixed, w_o, head, num_heads): output without a head, by zero and by its mean."""
    rng = np.random.default_rng(8)
    for (b, n, e), h, head in (((4, 3, 6), 3, 1), ((3, 5, 8), 2, 0)):
        d = e // h
        own = slice(head * d, (head + 1) * d)
        mixed, w_o = rng.normal(size=(b, n, e)) + 1, rng.normal(size=(e, e))
        first, second = call_pair(function, mixed, w_o, head, h)
        where = f"for head {head} of {h}"

        x, full = mixed[..., own], mixed @ w_o.T
        zero = _replaced(mixed, own, 0) @ w_o.T
        place = _replaced(mixed, own, x.mean(axis=0)) @ w_o.T
        if first.shape == second.shape == (b, n, e) and np.allclose(first, place):
            raise Wrong(f"{where} the first is by the mean:", "return the one by zero first.")
        strided, behind = slice(head, None, h), np.arange(e) // d != head
        causes = [
            (full * behind, "Take a head out before W_o mixes them: it meets columns, not rows."),
            (_replaced(mixed, strided, 0) @ w_o.T, "The numbers of a head are neighbours."),
        ]
        if head > 0:
            last = slice((head - 1) * d, head * d)
            causes.append((_replaced(mixed, last, 0) @ w_o.T, "Heads are counted from 0."))
        expect(first, zero, f"{where}, by zero,", causes)
        means = [
            (x.mean(axis=(0, 1)), "The mean is over the batch alone: each place has its own."),
            (x.mean(axis=1, keepdims=True), "That is the mean over the tokens of a row."),
        ]
        mistakes = [(_replaced(mixed, own, mean) @ w_o.T, cause) for mean, cause in means]
        expect(second, place, f"{where}, by the mean,", mistakes)
    return "by zero the head falls silent; by its mean it says what it says on every text."


def _replaced(mixed: np.ndarray, part: slice, value: Any) -> np.ndarray:
    changed = mixed.copy()
    changed[..., part] = value
    return changed
