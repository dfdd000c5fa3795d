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
            (right + table + v, "The readout shares the table of tokens, and it has no bias."),
            (right - table, "The table of tokens is missing."),
            (right + layers * 2 * e * (e - kv), "Keys and values have fewer heads than queries."),
            (right + layers * 2 * e * (e * g - kv), "A head is embed_dim / num_heads wide."),
            (right + layers * 2 * e * (e // g - kv), "A key head is as wide as a query head."),
            (right - layers * 2 * e * (kv - e // h), "That is for one shared head of keys."),
            (right - layers * e * f, "A gated MLP has three matrices: gate, hidden and output."),
            (right - e, "There is one more norm, behind the last block."),
            (right - layers * 2 * e - e, "The norms have a weight each, of embed_dim numbers."),
            (right - layers * 2 * e, "Each block has two norms."),
            (right - layers * e, "Each block has two norms: one before each of its two parts."),
            (right + (2 * layers + 1) * e, "RMS norm has a weight and no bias."),
            (right - layers * e * e, "The attention has a fourth matrix, behind the heads."),
            (right - layers * e * kv, "Keys and values have a matrix each."),
            (right + layers * (2 * e + 2 * kv + 2 * f + e), "Nothing here has a bias."),
            (right + layers * (2 * e + 2 * kv), "Nothing here has a bias."),
            (right + v, "Nothing here has a bias."),
            (table + attention + mlp + 3 * e, "That is for a single block."),
            (layers * (table + attention + mlp + 2 * e) + e, "The table is there once."),
            (right + layers * (h - 1) * attention, "The heads share the width among them."),
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
            raise Wrong(f"{where} the first is the factor: return the bytes first.")
        mistakes = [
            (bytes_of * times, "That is with a head each, or with wider ones: here heads share."),
            (bytes_of / 2, "Keys or values alone: a later query needs both."),
            (bytes_of * 1.5, "The query of a token is not needed again."),
            (bytes_of / b, "These are numbers, not bytes."),
            (bytes_of * 8, "These are bits, not bytes."),
            (bytes_of / layers, "Each layer keeps its own keys and values."),
            (bytes_of / g, "There are num_kv_heads heads of keys."),
            (bytes_of * h, "A head is embed_dim / num_heads wide."),
            (bytes_of / d, "A key has embed_dim / num_heads numbers."),
        ]
        expect(first, bytes_of, f"{where}, in the bytes,", mistakes, secret=True)
        mistakes = [
            (g / h, "Turned over: how many times smaller, a number above 1."),
            (h - g, "Divide: how many times, not how many fewer."),
            (g, "That is the number of heads of keys: how many query heads share one?"),
            (h, "That is for one shared head: here there are more."),
            (bytes_of * times, "Those are the bytes with a head each: divide by yours."),
            (2 * times, "Keys and values are there twice in both caches."),
            (1 - g / h, "That is the share saved."),
        ]
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
        if got.shape == (b, 16):
            raise Wrong(f"{where} you give shape ({b}, 16): each byte holds two numbers.")
        if got.shape == (b * 32,):
            raise Wrong(f"{where} you give shape ({b * 32},): give each block a row of 32.")
        mistakes = [
            (s * woven + m, "The two numbers of a byte are not neighbours: low ones come first."),
            (s * np.hstack([high, low]) + m, "The low four bits come first, then the high ones."),
            (s * woven[:, ::-1] + m, "The order: the low four bits of all bytes, then the high."),
            (s * (q - 8), "That is the format Q4_0: here the least value is given, not −8."),
            (s * (q - 8) + m, "Nothing is subtracted from q: the least value is given."),
            (s * q, "The least value is missing."),
            (s * q - m, "The least value is added: it has its own sign."),
            (s * (q + m), "The least value is added after the scale."),
            (s * np.hstack([low, 16 * high]) + m, "The high bits stand 4 places up: >> 4."),
            (s * np.hstack([low, packed]) + m, "The high numbers still hold the low four bits."),
            (s * np.hstack([packed, high]) + m, "The low numbers still hold the high bits: & 15."),
            (q / s + m, "The scale multiplies."),
            (s * q / 15 + m, "The scale is that of a step: nothing is divided by 15."),
            (q + 0 * s, "Those are the q: scale and least value are missing."),
        ]
        expect(got, s * q + m, where, mistakes)
    return "five bits for a number that had 32."


@check
def neighbour_pairs(function: Function) -> str:
    """function(weight, num_heads): rows i and i + d/2 of each head to 2i and 2i + 1."""
    rng = np.random.default_rng(4)
    for h, d, e in ((3, 6, 5), (2, 8, 16)):
        weight = rng.normal(size=(h * d, e))
        heads, half = weight.reshape(h, d, e), d // 2
        order, whole = (np.arange(n).reshape(2, -1).T.ravel() for n in (d, h * d))
        got = call(function, weight, h)
        where = f"for {h} heads of width {d}"
        if got.shape in ((h, d, e), (h, half, 2, e), (h, 2, half, e)):
            raise Wrong(f"{where} you give shape {got.shape}: put the heads below each other.")

        def by(rows: np.ndarray, parts: np.ndarray = heads) -> np.ndarray:
            return parts[:, rows].reshape(-1, parts.shape[2])

        turned = by(order.reshape(-1, 2)[:, ::-1].ravel())
        causes = [
            (weight, "Nothing has changed its place."),
            (by(np.argsort(order)), "That is the way back: neighbours become halves."),
            (weight[whole], "Each head by itself: its pairs are inside its own rows."),
            (weight[np.argsort(whole)], "Each head by itself, and halves become neighbours."),
            (turned, "The pair is turned round: row i goes to 2i, row i + d/2 to 2i + 1."),
            (by(np.roll(np.arange(d), half)), "The halves are exchanged: weave them."),
            (heads.transpose(1, 0, 2).reshape(h * d, e), "Heads stay where they are."),
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

    def by(size: np.ndarray, start: np.ndarray = x, swapped: bool = False) -> np.ndarray:
        z = start / size * norm
        a, b = (z @ hidden.T, z @ gate.T) if swapped else (z @ gate.T, z @ hidden.T)
        return x + (a / (1 + np.exp(-a)) * b) @ output.T

    square = (x**2).mean(axis=1, keepdims=True)
    variance = x.var(axis=1, keepdims=True)
    root = np.sqrt(square + 1e-5)
    centred = x - x.mean(axis=1, keepdims=True)
    mistakes = [
        (by(np.sqrt(variance + 1e-5)), "The mean is still subtracted: RMS norm does not do that."),
        (by(np.sqrt(variance + 1e-5), centred), "That is layer norm: RMS norm subtracts no mean."),
        (by(root, centred), "The mean is subtracted from x: RMS norm subtracts none."),
        (by(np.sqrt(6 * square + 1e-5)), "That is the length: divide by the root of the mean."),
        (by(square + 1e-5), "The root is missing."),
        (by(np.sqrt(square)), "The ε under the root is missing."),
        (by(np.sqrt(square) + 1e-5), "The ε stands under the root."),
        (by(np.abs(x).mean(axis=1, keepdims=True)), "Mean squares, not mean absolute values."),
        (by(np.sqrt((x**2).mean() + 1e-5)), "Each token has its own size."),
        (by(root, swapped=True), "Gate and hidden are exchanged: the activation is on the gate."),
    ]
    expect(call(function, x, norm, gate, hidden, output), by(root), "for 4 tokens", mistakes)
    return "Where the mean of a token is near 0, the fault hardly shows in what comes out."


FIRST_MERGE = 256  # the token that the merge of rank 0 makes; those below are bytes
Choice = Callable[[list[tuple[int, int]]], tuple[int, int]]


def _merged(
    word: np.ndarray,
    merges: np.ndarray,
    choose: Choice = min,
    first: int = FIRST_MERGE,
    most: int = 99,
) -> list[int]:
    """The tokens of a word: merge, each time, one of the pairs (rank, place) that can be.

    Args:
        word: bytes (n,).
        merges: pairs of tokens (m, 2); row r is the merge of rank r.
        choose: the next one; by default the lowest rank, and of its copies the left one.
        first: the token that rank 0 makes.
        most: merges at most.
    """
    parts = [int(token) for token in word]
    ranks = {tuple(pair): rank for rank, pair in enumerate(merges.tolist())}
    for _ in range(most):
        found = [(ranks[pair], i) for i, pair in enumerate(pairwise(parts)) if pair in ranks]
        if not found:
            break
        rank, i = choose(found)
        parts[i : i + 2] = [first + rank]
    return parts


def _wrongly_merged(word: np.ndarray, merges: np.ndarray) -> Iterator[tuple[list[int], str]]:
    """Wrong answers for this word, each with what leads to it."""
    yield _longest(word, merges), "That is the longest token from the left: merge pairs by rank."
    yield (
        _merged(word, merges, lambda found: min(found, key=lambda one: one[1])),
        "You merge the first pair that can be: the lowest rank in the whole word comes first.",
    )
    yield (
        _merged(word, merges, lambda found: max(found, key=lambda one: (one[0], -one[1]))),
        "The highest rank comes first: it should be the lowest.",
    )
    yield (
        _merged(word, merges, lambda found: min(found, key=lambda one: (one[0], -one[1]))),
        "Of equal pairs that overlap, the left one is merged.",
    )
    yield _merged(word, merges, first=0), "The merge of rank r makes the token 256 + r."
    yield _merged(word, merges, first=FIRST_MERGE + 1), "Ranks count from 0."
    yield [int(token) for token in word], "Nothing is merged."
    yield _merged(word, merges, most=1), "You merge once: begin again, until no pair can be merged."
    yield _one_each(word, merges), "A pair may be there more than once: merge all its copies."
    yield _merged(word, merges)[:-1], "The last token of the word is lost."
    yield _merged(word, merges)[::-1], "The order is turned round."


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
            raise Wrong(f"{where} you give {few}: a merge makes one token of two.")
        if got.shape == np.shape(right) and np.array_equal(got, right):
            continue
        if got.ndim != 1:
            raise Wrong(f"{where} you give shape {got.shape}, expected one row of tokens.")
        for wrong, cause in _wrongly_merged(letters, rules):
            if got.shape == np.shape(wrong) and np.array_equal(got, wrong):
                raise Wrong(f"{where} you give {_listed(got)}. {cause}")
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
        after = np.roll(same, 1, axis=1)
        m = len(queries)
        behind = [w[i, copies[i] + 1] for i in queries]
        parts = np.asarray([each.sum() for each in behind])
        right = float(parts.mean())
        twice = np.where(np.roll(after, 1, axis=1) & np.tri(n, dtype=bool), w, 0).sum()
        rolled = np.roll(tokens[:, None] == tokens, 1, axis=1) & np.tri(n, dtype=bool)
        upcoming = (np.append(tokens, -1)[1:, None] == tokens) & np.tri(n, dtype=bool)
        got = call(function, w, tokens)
        if got.shape in ((n,), (m,)):
            raise Wrong(f"for {name} you give shape {got.shape}: return their mean, one number.")
        wrapped = "Nothing stands before the first key: np.roll puts the last token there."
        before = np.where(np.roll(same, -1, axis=1), w, 0).sum()
        mistakes = [
            (right * m / n, "Divide by the queries with an earlier copy alone."),
            *((w[rolled].sum() / count, wrapped) for count in (n, m, rolled.any(axis=1).sum())),
            (parts.sum(), "That is the sum: divide by the number of queries."),
            (w[same].sum() / m, "That is the weight on the copy: what followed it?"),
            (w[same].sum() / n, "That is the weight on the copy, and the mean is over all tokens."),
            (twice / m, "That is one place too far: what followed directly?"),
            (before / m, "That stands before the copy: take the weight on what followed it."),
            (np.mean([each[-1] for each in behind]), "Only the latest copy counts: add over all."),
            (np.mean([each[0] for each in behind]), "Only the first copy counts: add over all."),
            (w[after].mean(), "Each query counts once: add its weights, then take the mean."),
            (np.mean([each.mean() for each in behind]), "Add a query's weights: do not average."),
            (np.where(after, w.T, 0).sum() / m, "Rows are queries, columns are keys."),
            (w[upcoming].sum() / m, "Those are keys of the next token: where did this one stand?"),
            (w[upcoming].sum() / n, "Those are keys of the next token: where did this one stand?"),
            (np.mean(parts > 0.5), "That is a share of queries: the mean weight is asked for."),
            (parts.max(), "That is the largest: take the mean."),
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
        kept = w[:, :-1].sum(axis=1, keepdims=True)
        with np.errstate(all="ignore"):
            got = call(function, s, values, sink)
            shifted = np.exp(s - s.max(axis=1, keepdims=True))
            total = shifted.sum(axis=1, keepdims=True)
            zero: Any = softmax(np.hstack([s, np.zeros((3, 1))]))
            alone, sums = 1 / (1 + np.exp(sink)), np.exp(s).sum(axis=1, keepdims=True)
            unshifted = shifted / (total + np.exp(sink)) @ values
            no_exp = plain @ values / (1 + sink / sums)
            negative = plain @ values / (1 + np.exp(-sink) / sums)
            raised = plain @ values * (1 + np.exp(sink) / sums)
        if got.shape == (3, 5):
            raise Wrong(f"{where} you give shape (3, 5): those are weights, average the values.")
        if np.any(np.isnan(got)):
            raise Wrong(f"{where} you give NaN: subtract the largest score before exp.")
        mistakes = [
            (plain @ values, "The sink takes no weight: that is attention without it."),
            (zero[:, :-1] @ values, "The sink has its own score: that is for a score of 0."),
            (w[:, :-1] @ values + w[:, -1:], "The value of the sink is 0, not 1."),
            (w @ np.vstack([values, values.mean(axis=0)]), "The value of the sink is 0."),
            (w @ np.vstack([values, values[:1]]), "The value of the sink is 0."),
            (w @ np.vstack([values[:1], values]), "The sink is one key more."),
            (plain @ values * alone, "The factor depends on the scores too."),
            (unshifted, "Subtract the largest score from s too."),
            (shifted @ values / (total + sink), "The sum gets e^s, not s."),
            (no_exp, "The sink's score stands in the exponent too."),
            (negative, "The sign of s: a higher score takes more."),
            (raised, "The factor is turned over: a sink makes the output smaller."),
            ((1 - kept) * (plain @ values), "That is the share of the sink."),
            (kept**2 * (plain @ values), "The factor is there twice: the weights have it already."),
            (plain @ values - (1 - kept), "The value of the sink is 0: nothing is subtracted."),
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
            raise Wrong(f"{where} the first is by the mean: return the one by zero first.")
        strided, behind = slice(head, None, h), np.arange(e) // d != head
        causes = [
            (full, "Nothing is taken out."),
            (zero * h / (h - 1), "The other heads are left as they are: no scaling."),
            (full - zero, "That is what the head adds: the rest is asked for."),
            (full * behind, "Take a head out before W_o mixes them: it meets columns, not rows."),
            (_replaced(mixed, own, 0) @ w_o, "W_o is (out, in): multiply by its transpose."),
            (_replaced(mixed, strided, 0) @ w_o.T, "The numbers of a head are neighbours."),
        ]
        if head > 0:
            last = slice((head - 1) * d, head * d)
            causes.append((_replaced(mixed, last, 0) @ w_o.T, "Heads are counted from 0."))
        expect(first, zero, f"{where}, by zero,", causes)
        means = [
            (x.mean(axis=(0, 1)), "The mean is over the batch alone: each place has its own."),
            (x.mean(axis=1, keepdims=True), "That is the mean over the tokens of a row."),
            (x.mean(axis=2, keepdims=True), "That is the mean over the head's numbers."),
            (x.mean(), "That is one number: each entry of the head has its own mean."),
            (mixed.reshape(b, n, h, d).mean(axis=2), "That is the mean over the heads."),
            (x - x.mean(axis=0), "The mean is put in, not taken off."),
            (x.sum(axis=0), "That is the sum over the batch."),
            (np.median(x, axis=0), "That is the median."),
        ]
        mistakes = [
            (zero, "That is by zero again: put the head's mean in its place."),
            (place - zero, "That is what the mean adds: the other heads are missing."),
            (mixed.mean(axis=0) @ w_o.T + 0 * full, "Only this head is replaced: the others stay."),
            (full, "Nothing is taken out."),
            *((_replaced(mixed, own, mean) @ w_o.T, cause) for mean, cause in means),
        ]
        expect(second, place, f"{where}, by the mean,", mistakes)
    return "by zero the head falls silent; by its mean it says what it says on every text."


def _replaced(mixed: np.ndarray, part: slice, value: Any) -> np.ndarray:
    changed = mixed.copy()
    changed[..., part] = value
    return changed
