"""Chapter 10's checks accept right answers of any library and name each usual wrong one."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from mending import mended

from attnbook.attention import positions
from attnbook.course.checks import byte_merges, ch10
from attnbook.course.checks.repair import define


def size(v, e, layers, h, g, f, *, kv=lambda e, h, g: e // h * g, **counts):
    """The right number, and its neighbours, by how often each part counts."""
    n = {"table": 1, "square": 2, "kv": 2, "mlp": 3, "norms": 2, "last": 1, "bias": 0} | counts
    k = kv(e, h, g)
    block = n["square"] * e * e + n["kv"] * e * k + n["mlp"] * e * f + n["norms"] * e
    biases = n["bias"] * (2 * e + 2 * k + 2 * f + e)
    return n["table"] * v * e + layers * (block + biases) + n["last"] * e


def sized(**options):
    return lambda *sizes: size(*sizes, **options)


def cache(e, layers, h, g, b):
    return 2 * layers * g * (e // h) * b, h / g


def cached(first=lambda x, *a: x, second=lambda x, *a: x):
    """The right pair, and its neighbours."""
    return lambda *a: (first(cache(*a)[0], *a), second(cache(*a)[1], *a))


def bits(parts=lambda low, high: np.hstack([low, high]), form=lambda s, q, m: s * q + m):
    """The right answer, and its neighbours, by how q is put together and used."""

    def answer(scale, least, packed):
        low, high = np.asarray(packed % 16, float), np.asarray(packed // 16, float)
        return form(scale[:, None], parts(low, high), least[:, None])

    return answer


def woven(low, high):
    return np.stack([low, high], axis=2).reshape(len(low), -1)


def torch_bits(scale, least, packed):
    return scale[:, None] * torch.cat([packed & 15, packed >> 4], dim=1) + least[:, None]


def jax_bits(scale, least, packed):
    q = jnp.hstack([packed & 15, packed >> 4]).astype(scale.dtype)
    return scale[:, None] * q + least[:, None]


def neighbours(weight, num_heads):
    rows, e = weight.shape
    return weight.reshape(num_heads, 2, -1, e).swapaxes(1, 2).reshape(rows, e)


def halves(weight, num_heads):
    rows, e = weight.shape
    return weight.reshape(num_heads, -1, 2, e).swapaxes(1, 2).reshape(rows, e)


def exchanged(weight, num_heads):
    parts = weight.reshape(num_heads, 2, -1, weight.shape[1])
    return parts[:, ::-1].reshape(weight.shape)


def turned_round(weight, num_heads):
    return neighbours(exchanged(weight, num_heads), num_heads)


def heads_mixed(weight, num_heads):
    return weight.reshape(num_heads, -1, weight.shape[1]).swapaxes(0, 1).reshape(weight.shape)


def in_columns(weight, num_heads):
    """Right but for a square weight, whose columns are taken for its rows."""
    square = weight.shape[0] == weight.shape[1]
    return neighbours(weight.T, num_heads).T if square else neighbours(weight, num_heads)


def loop_rows(weight, num_heads):
    new, d = weight.copy(), len(weight) // num_heads
    for head in range(0, len(weight), d):
        for i in range(d // 2):
            new[head + 2 * i] = weight[head + i]
            new[head + 2 * i + 1] = weight[head + i + d // 2]
    return new


def merging(**options):
    return lambda word, merges: byte_merges.merged(word, merges, **options)


def by(key):
    return lambda found: min(found, key=key)


def one_pass(word, merges):
    """The right answer another way: each row in turn, at all its places."""
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
        token = max(
            (t for t in spelt if rest[: len(spelt[t])] == spelt[t]), key=lambda t: len(spelt[t])
        )
        tokens.append(token)
        rest = rest[len(spelt[token]) :]
    return tokens  # fmt: skip


def followed(step=1, pick=lambda copies: copies, mean=np.mean, read=lambda w, i, j: w[i, j].sum()):
    """The right answer, and its neighbours, as a loop."""

    def answer(weights, tokens):
        parts = []
        for i in range(len(tokens)):
            copies = np.flatnonzero(tokens[:i] == tokens[i])
            if len(copies):
                keys = pick(copies) + step
                parts.append(read(weights, i, keys[keys <= i]))
        return mean(np.asarray(parts))

    return answer


def torch_followed(weights, tokens):
    copies = torch.tril(tokens[:, None] == tokens, diagonal=-1)
    after = torch.roll(copies, 1, dims=1)
    return (weights * after).sum(dim=1)[copies.any(dim=1)].mean()


def rolled(weights, tokens):
    after = np.roll(tokens[:, None] == tokens, 1, axis=1) & np.tri(len(tokens), dtype=bool)
    return (weights * after).sum(axis=1)[after.any(axis=1)].mean()


def upcoming(weights, tokens):
    parts = [
        weights[i, : i + 1][tokens[: i + 1] == tokens[i + 1]].sum() for i in range(len(tokens) - 1)
    ]
    queries = sum(token in tokens[:i] for i, token in enumerate(tokens))
    return np.sum(parts) / queries  # fmt: skip


def sink_by(score=lambda s: s, value=0.0):
    """The right answer, and its neighbours, as attention with a key more."""

    def answer(scores, values, sink):
        s = np.hstack([scores, np.full((len(scores), 1), score(sink))])
        w = np.exp(s - s.max(axis=1, keepdims=True))
        more = np.broadcast_to(value(values) if callable(value) else value, (1, values.shape[1]))
        return w / w.sum(axis=1, keepdims=True) @ np.vstack([values, more])

    return answer


def plain(scores, values):
    return sink_by(lambda s: -np.inf)(scores, values, 0.0)


def factor(form, turn=lambda out, f: f * out):
    """Attention without a sink, changed by a form of e^s and the sums of e^{s_j}."""
    return lambda scores, values, sink: turn(
        plain(scores, values), form(sink, np.exp(scores).sum(axis=1, keepdims=True))
    )


def right_factor(sink, sums):
    return 1 / (1 + np.exp(sink) / sums)


def half_shifted(scores, values, sink):
    kernel = np.exp(scores - scores.max(axis=1, keepdims=True))
    return kernel @ values / (kernel.sum(axis=1, keepdims=True) + np.exp(sink))


def added(scores, values, sink):
    kernel = np.exp(scores - scores.max(axis=1, keepdims=True))
    return kernel @ values / (kernel.sum(axis=1, keepdims=True) + sink)


def torch_sink(scores, values, sink):
    every = torch.cat([scores, torch.full((len(scores), 1), sink, dtype=scores.dtype)], dim=1)
    return torch.softmax(every, dim=1)[:, :-1] @ values


def cut(mixed, head, h, value):
    kept = np.arange(mixed.shape[-1]) // (mixed.shape[-1] // h) != head
    return np.where(kept, mixed, value)


def own(mixed, head, h):
    d = mixed.shape[-1] // h
    return mixed[..., head * d : (head + 1) * d]


def tiled(h, value):
    """A head's numbers at the place of each head, so that the right part may be taken."""
    return np.concatenate([value] * h, axis=-1)


def taken_out(zero=None, mean=None):
    """The right pair, and its neighbours: (mixed, w_o, head, h) to each of the two."""

    def answer(mixed, w_o, head, h):
        silent = (zero or (lambda x, w, i, h: cut(x, i, h, 0) @ w.T))(mixed, w_o, head, h)
        average = mean or by_mean(lambda x: x.mean(axis=0, keepdims=True))
        return silent, average(mixed, w_o, head, h)

    return answer


def by_mean(value):
    def answer(mixed, w_o, head, h):
        x = own(mixed, head, h)
        return cut(mixed, head, h, tiled(h, value(x) + 0 * x)) @ w_o.T

    return answer


def torch_taken_out(mixed, w_o, head, h):
    kept = torch.arange(mixed.shape[-1]) // (mixed.shape[-1] // h) != head
    mean = torch.where(kept, mixed, mixed.mean(dim=0))
    return (mixed * kept) @ w_o.T, mean @ w_o.T


def behind(mixed, w_o, head, h):
    return cut(mixed @ w_o.T, head, h, 0)


P, C, B, N = ch10.model_parameters, ch10.cache_per_token, ch10.from_four_bits, ch10.neighbour_pairs
M, F, S, H = (
    ch10.merged_word,
    ch10.weight_on_followed,
    ch10.attend_with_sink,
    ch10.without_head,
)
L = ch10.llama_mlp
SIZE = "np.sqrt(x.var(axis=1, keepdims=True) + eps)"
SQUARE = "np.sqrt((x**2).mean(axis=1, keepdims=True) + eps)"


def mlp(new, *others):
    return mended(ch10.LLAMA_MLP, "llama_mlp", (SIZE, new), *others)


WRONG = [
    (P, sized(table=2), "shares the table of tokens: count it once"),
    (P, sized(table=0), "The table of tokens is missing"),
    (P, sized(kv=lambda e, h, g: e), "fewer heads than queries"),
    (P, sized(kv=lambda e, h, g: e * g), "A head is embed_dim / num_heads wide"),
    (P, sized(kv=lambda e, h, g: e // g), "as wide as a query head"),
    (P, sized(mlp=2), "three matrices: gate, hidden and output"),
    (P, sized(last=0), "behind the last block"),
    (P, sized(norms=0, last=0), "a weight each, of embed_dim numbers"),
    (P, sized(norms=1), "one before each of its two parts"),
    (P, sized(norms=4, last=2), "a weight and no bias"),
    (P, sized(square=1), "a fourth matrix"),
    (P, sized(bias=1), "Nothing here has a bias"),
    (P, lambda v, e, n, *a: size(v, e, 1, *a), "for a single block"),
    (P, lambda v, e, n, *a: n * size(v, e, 1, *a) - (n - 1) * e, "The table is there once"),
    (P, sized(kv=lambda e, h, g: e // h), "for one shared head"),
    (P, sized(mlp=0), "expected a larger number"),
    (C, lambda *a: cache(*a)[::-1], "return the bytes first"),
    (C, cached(lambda x, e, n, h, g, b: x * h / g), "here heads share"),
    (C, cached(lambda x, *a: x / 2), "a later query needs both"),
    (C, cached(lambda x, *a: x * 1.5), "not needed again"),
    (C, cached(lambda x, *a: x / a[-1]), "not bytes"),
    (C, cached(lambda x, *a: x * 8), "bits, not bytes"),
    (C, cached(lambda x, e, n, *a: x / n), "Each layer keeps its own"),
    (C, cached(lambda x, e, n, h, g, b: x / g), "There are num_kv_heads heads"),
    (C, cached(lambda x, e, n, h, g, b: x * h), "A head is embed_dim / num_heads wide."),
    (C, cached(lambda x, e, n, h, g, b: x * h / e), "A key has embed_dim / num_heads numbers"),
    (C, cached(second=lambda x, *a: 1 / x), "Turned over"),
    (C, cached(second=lambda x, e, n, h, g, b: h - g), "not how many fewer"),
    (C, cached(second=lambda x, e, n, h, g, b: g), "how many query heads share one"),
    (C, cached(second=lambda x, e, n, h, g, b: h), "for one shared head"),
    (C, cached(second=lambda x, *a: x * cache(*a)[0]), "divide by yours"),
    (C, cached(second=lambda x, *a: 2 * x), "twice in both caches"),
    (C, cached(second=lambda x, *a: 1 - 1 / x), "the share saved"),
    (B, bits(woven), "are not neighbours"),
    (B, bits(lambda low, high: np.hstack([high, low])), "low four bits come first, then"),
    (B, bits(lambda low, high: woven(low, high)[:, ::-1]), "the low four bits of all bytes"),
    (B, bits(form=lambda s, q, m: s * (q - 8)), "the format Q4_0"),
    (B, bits(form=lambda s, q, m: s * (q - 8) + m), "Nothing is subtracted from q"),
    (B, bits(form=lambda s, q, m: s * q), "The least value is missing"),
    (B, bits(form=lambda s, q, m: s * q - m), "it has its own sign"),
    (B, bits(form=lambda s, q, m: s * (q + m)), "added after the scale"),
    (B, bits(lambda low, high: np.hstack([low, 16 * high])), "stand 4 places up"),
    (B, bits(lambda low, high: np.hstack([low, 16 * high + low])), "still hold the low four"),
    (B, bits(lambda low, high: np.hstack([16 * high + low, high])), "still hold the high bits"),
    (B, bits(form=lambda s, q, m: q / s + m), "The scale multiplies"),
    (B, bits(form=lambda s, q, m: s * q / 15 + m), "divided by 15"),
    (B, bits(form=lambda s, q, m: q + 0 * s), "scale and least value are missing"),
    (B, bits(lambda low, high: low), "each byte holds two numbers"),
    (B, lambda *a: bits()(*a).ravel(), "a row of 32"),
    (N, lambda weight, h: weight, "Nothing has changed its place"),
    (N, halves, "the way back"),
    (N, lambda weight, h: neighbours(weight, 1), "inside its own rows"),
    (N, lambda weight, h: halves(weight, 1), "Each head by itself, and halves become"),
    (N, turned_round, "turned round: row i"),
    (N, exchanged, "The halves are exchanged"),
    (N, heads_mixed, "Heads stay where they are"),
    (N, in_columns, "Those are columns"),
    (N, lambda weight, h: weight.reshape(h, -1, weight.shape[1]), "below each other"),
    (L, mlp("np.sqrt(x.var(axis=1, keepdims=True)) + 1"), ", expected"),
    (L, mlp("np.sqrt((x**2).sum(axis=1, keepdims=True) + eps)"), "That is the length"),
    (L, mlp("(x**2).mean(axis=1, keepdims=True) + eps"), "The root is missing"),
    (L, mlp("np.sqrt((x**2).mean(axis=1, keepdims=True))"), "The ε under the root is missing"),
    (L, mlp("np.sqrt((x**2).mean(axis=1, keepdims=True)) + eps"), "stands under the root"),
    (L, mlp("np.abs(x).mean(axis=1, keepdims=True)"), "not mean absolute values"),
    (L, mlp("np.sqrt((x**2).mean() + eps)"), "Each token has its own size"),
    (L, mlp("np.sqrt(((x - x.mean(axis=1, keepdims=True)) ** 2).mean(axis=1, keepdims=True) + eps)"),
     "The mean is still subtracted"),
    (L, mlp(SIZE, ("z = x / size", "z = (x - x.mean(axis=1, keepdims=True)) / size")),
     "in another line than you changed. For 4 tokens, in entry [0, 0], counted from 0, you give 1.468. That is layer norm"),
    (L, mlp(SQUARE, ("z = x / size", "z = (x - x.mean(axis=1, keepdims=True)) / size")),
     "The mean is subtracted from x"),
    (L, mlp(SIZE, ("z = x / size * norm", "z = x / np.sqrt((x**2).mean(axis=1, keepdims=True) + eps) * norm")),
     "still stands: you make good elsewhere"),
    (L, mlp(SQUARE, ("z @ gate.T", "z @ hidden.T"), ("(z @ hidden.T)", "(z @ gate.T)")),
     "Gate and hidden are exchanged"),
    (M, merging(choose=by(lambda one: one[1])), "the first pair that can be"),
    (M, merging(choose=by(lambda one: (-one[0], one[1]))), "The highest rank comes first"),
    (M, merging(choose=by(lambda one: (one[0], -one[1]))), "the left one is merged"),
    (M, merging(first=0), "makes the token 256 + r"),
    (M, merging(first=257), "Ranks count from 0"),
    (M, longest, "the longest token from the left"),
    (M, lambda word, merges: word, "Nothing is merged"),
    (M, lambda word, merges: np.zeros(300_000), "300000 tokens for 8 letters"),
    (M, lambda word, merges: word[:, None], "expected one row of tokens"),
    (M, merging(most=1), "You merge once"),
    (M, one_copy, "merge all its copies"),
    (M, lambda *a: one_pass(*a)[:-1], "The last token of the word is lost"),
    (M, lambda *a: one_pass(*a)[::-1], "The order is turned round"),
    (M, lambda *a: [7, *one_pass(*a)], "expected [260, 100, 258, 260]"),
    (M, lambda *a: [one_pass(*a)], "expected one row of tokens"),
    (F, lambda w, t: followed(mean=np.sum)(w, t) / len(t), "queries with an earlier copy alone"),
    (F, followed(mean=np.sum), "That is the sum"),
    (F, followed(step=0), "what followed it?"),
    (F, lambda w, t: followed(step=0, mean=np.sum)(w, t) / len(t), "the mean is over all tokens"),
    (F, followed(step=2), "what followed directly"),
    (F, followed(step=-1), "That stands before the copy"),
    (F, followed(pick=lambda copies: copies[-1:]), "Only the latest copy counts"),
    (F, followed(pick=lambda copies: copies[:1]), "Only the first copy counts"),
    (F, followed(read=lambda w, i, j: w[i, j].mean()), "without a division by the copies"),
    (F, followed(read=lambda w, i, j: w[j, i].sum()), "Rows are queries"),
    (F, rolled, "Nothing stands before the first key"),
    (F, upcoming, "the token that comes next"),
    (F, followed(mean=lambda parts: np.mean(parts > 0.5)), "a share of queries"),
    (F, followed(mean=np.max), "the largest: take the mean"),
    (F, followed(mean=lambda parts: parts), "return their mean, one number"),
    (S, lambda s, v, sink: plain(s, v), "attention without it"),
    (S, sink_by(lambda s: 0.0), "for a score of 0"),
    (S, sink_by(value=1.0), "is 0, not 1"),
    (S, sink_by(value=lambda v: v.mean(axis=0)), "The value of the sink is 0."),
    (S, factor(lambda sink, sums: 1 / (1 + np.exp(sink))), "The factor depends on the scores"),
    (S, half_shifted, "Subtract the largest score from s too"),
    (S, added, "The sum gets e^s, not s"),
    (S, factor(lambda sink, sums: 1 / (1 + sink / sums)), "stands in the exponent too"),
    (S, factor(lambda sink, sums: 1 / (1 + np.exp(-sink) / sums)), "a higher score takes more"),
    (S, factor(lambda sink, sums: 1 / right_factor(sink, sums)), "turned over"),
    (S, factor(lambda sink, sums: 1 - right_factor(sink, sums)), "the share of the sink"),
    (S, factor(lambda sink, sums: right_factor(sink, sums) ** 2), "The factor is there twice"),
    (S, factor(right_factor, lambda out, f: out - (1 - f)), "nothing is subtracted"),
    (S, factor(right_factor), "subtract the largest score before exp"),
    (S, lambda s, v, sink: s, "those are weights"),
    (H, lambda *a: taken_out()(*a)[::-1], "return the one by zero first"),
    (H, taken_out(zero=lambda x, w, i, h: x @ w.T), "Nothing is taken out"),
    (H, taken_out(zero=lambda x, w, i, h: cut(x, i, h, 0) @ w.T * h / (h - 1)), "no scaling"),
    (H, taken_out(zero=lambda x, w, i, h: (x - cut(x, i, h, 0)) @ w.T), "what the head adds"),
    (H, taken_out(zero=behind), "W_o mixes the heads"),
    (H, taken_out(zero=lambda x, w, i, h: cut(x, i, h, 0) @ w), "multiply by its transpose"),
    (H, taken_out(zero=lambda x, w, i, h: x * (np.arange(x.shape[-1]) % h != i) @ w.T), "are neighbours"),
    (H, taken_out(zero=lambda x, w, i, h: cut(x, i - 1, h, 0) @ w.T), "counted from 0."),
    (H, lambda *a: (taken_out()(*a)[0],) * 2, "by zero again"),
    (H, taken_out(mean=by_mean(lambda x: x.mean(axis=(0, 1)))), "over the batch alone"),
    (H, taken_out(mean=by_mean(lambda x: x.mean(axis=1, keepdims=True))), "the tokens of a row"),
    (H, taken_out(mean=by_mean(lambda x: x.mean(axis=2, keepdims=True))), "the head's numbers"),
    (H, taken_out(mean=by_mean(lambda x: x.mean())), "That is one number"),
    (H, taken_out(mean=by_mean(lambda x: x - x.mean(axis=0))), "put in, not taken off"),
    (H, taken_out(mean=by_mean(lambda x: x.sum(axis=0))), "the sum over the batch"),
    (H, taken_out(mean=by_mean(lambda x: np.median(x, axis=0))), "the median"),
    (H, taken_out(mean=lambda x, w, i, h: 0 * x + x.mean(axis=0) @ w.T), "the others stay"),
]  # fmt: skip
RIGHT = [
    (P, size),
    (C, cache),
    (B, bits()),
    (B, torch_bits),
    (B, jax_bits),
    (N, neighbours),
    (N, loop_rows),
    (L, mlp(SQUARE)),
    (L, mlp("np.sqrt(np.mean(np.square(x), axis=-1)[:, None] + eps)")),
    (M, merging()),
    (M, one_pass),
    (F, followed()),
    (F, torch_followed),
    (S, sink_by()),
    (S, torch_sink),
    (S, lambda s, v, sink: torch_sink(*map(torch.from_numpy, (s, v)), sink).numpy()),
    (H, taken_out()),
    (H, torch_taken_out),
]


@pytest.mark.parametrize(("check", "right"), RIGHT)
def test_right_answers_pass(check, right):
    verdict = check(right)
    assert verdict.status == "right", verdict


@pytest.mark.parametrize("check", [P, C, B, N, L, M, F, S, H])
def test_not_written_yet_is_a_friendly_line(check):
    def stub(*arguments):
        raise NotImplementedError

    verdict = check(define(ch10.LLAMA_MLP, "llama_mlp", {"np": np}) if check is L else stub)
    assert verdict.status == "not yet"


def test_the_sizes_of_smollm2():
    assert size(49_152, 576, 30, 9, 3, 1536) == 134_515_008
    assert cache(576, 30, 9, 3, 4) == (46_080, 3)
    assert 2134 * 46_080 < 98_362_432 < 2135 * 46_080


def test_numbers_of_four_bits_are_half_a_step_from_those_kept():
    numbers = np.random.default_rng(0).normal(size=(50, 32))
    least = numbers.min(axis=1)
    scale = (numbers.max(axis=1) - least) / 15
    q = np.round((numbers - least[:, None]) / scale[:, None]).astype(int)
    kept = bits()(scale, least, q[:, :16] + 16 * q[:, 16:])
    off = np.abs(kept - numbers) / scale[:, None]
    assert 0.45 < off.max() <= 0.5 + 1e-9


def turned_apart(x):
    """Rotary positions of rows (n, d) that pair x[i] with x[i + d/2]."""
    first, second = np.split(x, 2, axis=1)
    angles = np.arange(len(x))[:, None] * positions.BASE ** (
        -np.arange(0, x.shape[1], 2) / x.shape[1]
    )
    cos, sin = np.cos(angles), np.sin(angles)
    return np.hstack([first * cos - second * sin, first * sin + second * cos])  # fmt: skip


def test_after_the_move_scores_are_those_of_the_other_layout():
    rng, places = np.random.default_rng(0), np.arange(5)
    x, w_q, w_k = rng.normal(size=(5, 7)), *rng.normal(size=(2, 8, 7))
    expected = turned_apart(x @ w_q.T) @ turned_apart(x @ w_k.T).T
    q, k = (positions.rotary(x @ neighbours(w, 1).T, places) for w in (w_q, w_k))
    np.testing.assert_allclose(q @ k.T, expected)
    q, k = (positions.rotary(x @ w.T, places) for w in (w_q, w_k))
    assert np.isclose((q @ k.T)[0, 0], expected[0, 0])  # a single token does not show it
    assert not np.isclose((q @ k.T)[1, 0], expected[1, 0])


def test_an_even_head_on_forty_tokens_shown_twice():
    tokens = np.tile(np.arange(40), 2)
    weights = np.tri(80) / np.arange(1, 81)[:, None]
    assert abs(followed()(weights, tokens) - 0.017) < 5e-4


def test_a_sink_is_shrinkage_towards_zero():
    rng = np.random.default_rng(0)
    scores, values = rng.normal(size=(1, 6)), rng.normal(size=(6, 1))
    kernel, penalty = np.exp(scores[0]), np.exp(0.4)
    got = sink_by()(scores, values, 0.4)[0, 0]

    def loss(c):
        return kernel @ (values[:, 0] - c) ** 2 + penalty * c**2

    assert loss(got) < min(loss(got - 1e-4), loss(got + 1e-4))
    far = sink_by()(scores - 50, values, 0.4)
    assert abs(far[0, 0]) < 1e-12
    np.testing.assert_allclose(plain(scores - 50, values), plain(scores, values))


def test_the_mean_of_a_batch_of_one_takes_nothing_out():
    mixed, w_o = np.random.default_rng(0).normal(size=(2, 6, 6))
    mixed = mixed[None]
    np.testing.assert_allclose(taken_out()(mixed, w_o, 1, 3)[1], mixed @ w_o.T)
