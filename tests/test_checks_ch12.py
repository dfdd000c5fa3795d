"""Chapter 12's checks accept right answers of any library and name each usual wrong one."""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from mending import mended

from attnbook import nadaraya_watson
from attnbook.course.checks import ch12
from attnbook.course.checks.repair import define
from attnbook.course.checks.split_sums import average_by_parts, exact, to_bits, to_places
from attnbook.exact import flash, online_softmax, paged_cache


def softmax(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def logs(p, q):
    return np.logaddexp(p, q)


def share(p, q):
    """Of the second of two parts."""
    return np.exp(q - np.logaddexp(p, q))[:, None]


def merging(
    average=lambda a, p, b, q: a + share(p, q) * (b - a), lse=lambda a, p, b, q: logs(p, q)
):
    """The right pair, and its neighbours."""
    return lambda *parts: (average(*parts), lse(*parts))


def by_shares(w):
    """An average with these shares of the two parts."""
    return merging(lambda a, p, b, q: (1 - w(p, q)) * a + w(p, q) * b)


def overflowing(a, p, b, q):
    e, f = np.exp(p)[:, None], np.exp(q)[:, None]
    return (e * a + f * b) / (e + f), np.log(e + f)[:, 0]


def torch_merging(a, p, b, q):
    lse = torch.logaddexp(p, q)
    return torch.exp(p - lse)[:, None] * a + torch.exp(q - lse)[:, None] * b, lse


def jax_merging(a, p, b, q):
    lse = jnp.logaddexp(p, q)
    return a + jnp.exp(q - lse)[:, None] * (b - a), lse


def by_streams(a, p, b, q):
    """The right pair: parts whose top is their log-sum-exp, and whose total is 1."""
    both = online_softmax.combine(
        *(
            online_softmax.Partial(lse, np.ones_like(lse), average)
            for average, lse in ((a, p), (b, q))
        )
    )
    return online_softmax.finish(both)


def visits(count=None, seen=lambda i, j, w: (j <= i) & (i - j < w), form=lambda v, t: v):
    """The right number, and its neighbours, by looking at every pair."""

    def answer(n, b, w):
        i, j = np.arange(n)[:, None], np.arange(n)
        tiles = seen(i, j, w).reshape(n // b, b, n // b, b).swapaxes(1, 2).reshape(-1, b * b)
        return form((count or (lambda tiles: tiles.any(axis=1)))(tiles).sum(), n // b)

    return answer


def reaching(reach):
    return lambda n, b, w: sum(min(r, reach(b, w)) + 1 for r in range(n // b))


def by_kinds(n, b, w):
    return (flash.block_kinds(lambda i, j: (j <= i) & (i - j < w), n, n, b) > 0).sum()


OLD, NEW = "weighted = weighted + kernel @ v", "weighted = shrink * weighted + kernel @ v"


def running(new, *others):
    return mended(ch12.RUNNING_AVERAGE, "running_average", (OLD, new), *others)


def taking(average=None, lse=None):
    """The right pair without a part, and its neighbours."""

    def answer(whole, total, part, p):
        w = np.exp(p - total)[:, None]
        first = (average or (lambda a, b, w, *logs: (a - w * b) / (1 - w)))(
            whole, part, w, total, p
        )
        return first, (lse or (lambda w, total, p: total + np.log1p(-w[:, 0])))(w, total, p)

    return answer


def torch_taking(whole, total, part, p):
    left = -torch.expm1(p - total)
    return whole + (whole - part) * ((1 - left) / left)[:, None], total + torch.log(left)


def overflowing_rest(whole, total, part, p):
    e, f = np.exp(total), np.exp(p)
    return (e[:, None] * whole - f[:, None] * part) / (e - f)[:, None], np.log(e - f)


def writing(copy=True, contents=True, shared=None, free=min, place=lambda at, size: at % size):
    """The right answer, and its neighbours: what a writer does with a page table."""

    def answer(pages, tables, lengths, sequence, key):
        pages, tables, size = pages.copy(), tables.copy(), pages.shape[1]
        slot, own = lengths[sequence] // size, place(lengths[sequence], size)
        empty = free(page for page in range(len(pages)) if page not in tables)
        old = tables[sequence, slot]
        if lengths[sequence] % size == 0:
            tables[sequence, slot] = empty
        elif (shared or (lambda tables, page: (tables == page).sum() > 1))(tables, old) and copy:
            if contents:
                pages[empty] = pages[old]
            tables[sequence, slot] = empty
        pages[tables[sequence, slot], own] = key
        return pages, tables

    return answer


def changing(change, where=lambda tables, lengths, i, size: True):
    """The right answer, with another change of the table where a condition holds."""

    def answer(pages, tables, lengths, sequence, key):
        if not where(tables, lengths, sequence, pages.shape[1]):
            return writing()(pages, tables, lengths, sequence, key)
        free = [page for page in range(len(pages)) if page not in tables]
        tables, slot = tables.copy(), lengths[sequence] // pages.shape[1]
        change(tables, sequence, slot, free)
        return pages, tables

    return answer


def is_shared(tables, lengths, i, size):
    return lengths[i] % size and (tables == tables[i, lengths[i] // size]).sum() > 1


def is_full(tables, lengths, i, size):
    return lengths[i] % size == 0


def put(slot, page=0):
    def change(tables, i, own, free):
        tables[i, own + slot] = free[page]

    return change


def both_moved(tables, i, slot, free):
    tables[tables == tables[i, slot]] = free[0]


def other_moved(tables, i, slot, free):
    tables[0, slot] = free[0]


def all_copied(tables, i, slot, free):
    tables[i, : slot + 1] = free[: slot + 1]


def full_left(tables, i, slot, free):
    """Leaves the table of a full last page as it is."""


def written_into_all(pages, tables, lengths, sequence, key):
    pages, tables = writing()(pages, tables, lengths, sequence, key)
    pages[2] += 1
    return pages, tables


def by_pool(keys, tables, lengths, sequence, key):
    """The right answer, by a Pool and a Sequence that writes."""
    pool = paged_cache.Pool(len(keys), keys.shape[1], keys.shape[2], 1)
    pool.keys, pool.readers = (
        keys.copy(),
        [int((tables == page).sum()) for page in range(len(keys))],
    )
    pool.unused = [page for page in reversed(range(len(keys))) if not pool.readers[page]]
    writer = paged_cache.Sequence(pool)
    writer.table = [int(page) for page in tables[sequence] if page >= 0]
    writer.length = int(lengths[sequence])
    writer.write(key, np.zeros(1))
    tables = tables.copy()
    tables[sequence, : len(writer.table)] = writer.table
    return pool.keys, tables


def torch_writing(pages, tables, lengths, sequence, key):
    size = pages.shape[1]
    slot, place = int(lengths[sequence]) // size, int(lengths[sequence]) % size
    pages, tables, old = pages.clone(), tables.clone(), int(tables[sequence, slot])
    if place == 0 or (tables == old).sum() > 1:
        new = min(set(range(len(pages))) - set(tables.ravel().tolist()))
        pages[new] = pages[old]
        tables[sequence, slot] = new
    pages[tables[sequence, slot], place] = key
    return pages, tables


def block(d, memory, rows=4, square=1):
    """The largest block, by trying them all."""
    b = 0
    while rows * d * (b + 1) + square * (b + 1) ** 2 <= memory:
        b += 1
    return b


def traffic(first=None, second=None):
    """The right pair, and its neighbours, by the numbers that a loop over blocks moves."""

    def answer(n, d, memory):
        b = min(block(d, memory), n)
        moved = 0
        for row in range(0, n, b):
            moved += 2 * d * (min(row + b, n) - row)  # queries in, outputs out
            moved += sum(2 * d * (min(c + b, n) - c) for c in range(0, n, b))
        bytes_of = 4 * moved
        return (
            first(n, d, memory, b) if first else b,
            second(n, d, b, bytes_of) if second else bytes_of,
        )

    return answer


def moving(second):
    return traffic(second=second)


def weights_of(q, k, lse, scale=True):
    return np.exp(q @ k.T / (np.sqrt(q.shape[1]) if scale else 1) - lse[:, None])


def back(values=None, scores=None, keys=None):
    """The right pair of gradients, and its neighbours."""

    def answer(g, h, q, k, v, output, lse):
        w, more = weights_of(q, k, lse), h[:, None]
        row = (g * output).sum(axis=1, keepdims=True)
        ds = (scores or (lambda w, gv, row, h: w * (gv - row + h)))(w, g @ v.T, row, more)
        dk = (keys or (lambda ds, q: ds.T @ q / np.sqrt(q.shape[1])))(ds, q)
        given = {"q": q, "k": k, "lse": lse, "o": output, "ds": ds, "h": more}
        return dk, (values or (lambda w, g, **_: w.T @ g))(w, g, **given)

    return answer


def of_block(q, k):
    return softmax(q @ k.T / np.sqrt(q.shape[1]))


def in_block(w, gv, row, h):
    return w * (gv - (w * gv).sum(axis=1, keepdims=True) + h)


def h_unscaled(g, h, q, k, v, output, lse):
    without, values = back()(g, 0 * h, q, k, v, output, lse)
    return without + (weights_of(q, k, lse) * h[:, None]).T @ q, values


def of_own_weights(g, h, q, k, v, output, lse):
    w = of_block(q, k)
    ds = w * (g @ v.T - (g * output).sum(axis=1, keepdims=True) + h[:, None])
    return ds.T @ q / np.sqrt(q.shape[1]), weights_of(q, k, lse).T @ g


def torch_back(g, h, q, k, v, output, lse):
    """The right pair, by automatic differentiation of both outputs."""
    k, v = k.clone().requires_grad_(), v.clone().requires_grad_()
    w = torch.exp(q @ k.T / q.shape[1] ** 0.5 - lse[:, None])
    rest = output - (w @ v).detach()  # what the other keys bring, with what they weigh
    total = w.sum(dim=1) + 1 - w.sum(dim=1).detach()
    (((w @ v + rest) / total[:, None] * g).sum() + torch.log(total) @ h).backward()
    return k.grad, v.grad


def by_flash(g, h, q, k, v, output, lse):
    """The right pair, by flash.backward, with a value's entry more for the log-sum-exp."""
    wide = (np.hstack([a, np.full((len(a), 1), more)]) for a, more in ((v, 0.0), (output, 1.0)))
    v, output = wide
    gradients = flash.backward(np.hstack([g, -h[:, None]]), q, k, v, output, lse)
    return gradients[1], gradients[2][:, :-1]


def widths(form=None, reduce=lambda g, rows: g @ rows, size=256):
    """The right gradient, and its neighbours, a block of keys at a time."""

    def answer(g, x, z, v, output, lse, h):
        rows = np.zeros(len(x))
        for i in range(0, len(z), size):
            square = (x[:, None] - z[i : i + size]) ** 2
            w = np.exp(-square / (2 * h * h) - lse[:, None])
            off = v[i : i + size] - output[:, None]
            each = (form or (lambda w, off, square, *more: w * off * square))(
                w, off, square, output, lse
            )
            rows += each.sum(axis=1)
        return reduce(g, rows) / h**3

    return answer


def scaled(by):
    return lambda *a: widths()(*a) * by(a[-1], len(a[1]))


def torch_width(g, x, z, v, output, lse, h):
    """The right gradient, by automatic differentiation."""
    h, total = torch.tensor(h, dtype=x.dtype, requires_grad=True), 0.0
    for rows, of_rows in zip(x.split(100), g.split(100), strict=True):
        w = torch.softmax(-((rows[:, None] - z) ** 2) / (2 * h**2), dim=1)
        (gradient,) = torch.autograd.grad(of_rows @ (w @ v), h)
        total = total + gradient
    return total


def split(part=None, step=None, more=0, back=False):
    """The right average by parts, and its neighbours."""

    def answer(scores, values, size, tree, bits):
        if back:
            scores, values = scores[::-1], values[::-1]
        return average_by_parts(scores, values, size, tree, bits + more, part, step)

    return answer


def alone_is_lost(scores, values, size, tree, bits):
    """In a tree, pairs alone go up."""
    parts = -(-len(scores) // size)
    while tree and parts & (parts - 1):  # no power of 2
        parts &= parts - 1
    return average_by_parts(scores[: parts * size], values[: parts * size], size, tree, bits)


def in_half(scores, values, size, tree, bits):
    """The right average, by online_softmax.combine; a list for the tree."""

    def kept(part):
        fractions = [np.frexp(x) for x in part[1:]]
        return online_softmax.Partial(
            part.top, *(np.ldexp(np.round(f * 2**bits) / 2**bits, p) for f, p in fractions)
        )

    def combined(parts):
        if len(parts) == 1:
            return parts[0]
        half = 1 if not tree else 2 ** int(np.ceil(np.log2(len(parts)) - 1))
        left, right = (parts[:half], parts[half:]) if tree else (parts[:-1], parts[-1:])
        return kept(online_softmax.combine(combined(left), combined(right)))

    cuts = range(0, len(scores), size)
    parts = [
        kept(online_softmax.partial(scores[None, i : i + size], values[i : i + size])) for i in cuts
    ]
    return online_softmax.finish(combined(parts))[0][0]


def jax_split(scores, values, size, tree, bits):
    answer = split()(*(np.asarray(a, dtype=float) for a in (scores, values)), size, tree, bits)
    return jnp.asarray(answer) + 0 * jnp.exp(scores[0])


M, V, R, W = ch12.merged_averages, ch12.blocks_visited, ch12.running_average, ch12.without_part
P, L, B = ch12.page_written, ch12.least_traffic, ch12.block_gradients
H, S = ch12.bandwidth_gradient, ch12.split_average

WRONG = [
    (M, by_shares(lambda p, q: 0.5), "Both count alike"),
    (M, by_shares(lambda p, q: share(q, p)), "The shares are exchanged"),
    (M, by_shares(lambda p, q: (q / (p + q))[:, None]), "the shares go by its exponential"),
    (M, merging(lambda a, p, b, q: np.exp(p)[:, None] * a + np.exp(q)[:, None] * b), "the weighted sum: divide"),
    (M, merging(lambda a, p, b, q: a + b), "The shares must sum to 1."),
    (M, merging(lambda a, p, b, q: a + np.exp(q - p)[:, None] * b), "must sum to 1: divide by both"),
    (M, merging(lambda a, p, b, q: a), "The second part is missing"),
    (M, merging(lambda a, p, b, q: b), "The first part is missing"),
    (M, merging(lse=lambda a, p, b, q: p + q), "Totals add, their logarithms do not"),
    (M, merging(lse=lambda a, p, b, q: np.maximum(p, q)), "the larger of the two"),
    (M, merging(lse=lambda a, p, b, q: np.log((np.exp(p) + np.exp(q)) / 2)), "the logarithm of the mean"),
    (M, merging(lse=lambda a, p, b, q: np.exp(p) + np.exp(q)), "That is the total: take"),
    (M, merging(lse=lambda a, p, b, q: np.log1p(np.exp(-np.abs(p - q)))), "add it again"),
    (M, merging(lse=lambda a, p, b, q: np.logaddexp2(p, q)), "the natural ones"),
    (M, lambda *a: merging()(*a)[::-1], "return the average first"),
    (M, overflowing, "for large scores you give NaN or ∞"),
    (V, visits(lambda tiles: tiles.all(axis=1) | True), "Those are all blocks"),
    (V, visits(seen=lambda i, j, w: j <= i), "That is the causal mask alone"),
    (V, reaching(lambda b, w: (w - 1) // b), "sees furthest back"),
    (V, reaching(lambda b, w: w // b), "begins inside a block"),
    (V, reaching(lambda b, w: -(-w // b)), "it sees window − 1 keys before it"),
    (V, reaching(lambda b, w: w), "is counted in keys, the row in blocks"),
    (V, reaching(lambda b, w: w // b + 1), "one block too many per row"),
    (V, lambda n, b, w: n // b * (1 + -(-(w - 1) // b)), "The first rows have fewer"),
    (V, visits(seen=lambda i, j, w: abs(i - j) < w), "Keys behind the query are hidden"),
    (V, visits(form=lambda v, t: v - t), "The blocks on the diagonal are visited"),
    (V, visits(form=lambda v, t: v / t**2), "That is a share"),
    (V, visits(lambda tiles: tiles), "Those are pairs of a query and a key"),
    (V, lambda n, b, w: visits(lambda tiles: tiles)(n, b, w) / b**2, "and counts whole"),
    (V, visits(lambda tiles: tiles.all(axis=1)), "Those are the blocks seen whole"),
    (V, lambda n, b, w: 7, "expected a larger number"),
    (R, running("weighted = weighted + shrink * (kernel @ v)"), "You shrink the new keys: shrink"),
    (R, running("weighted = shrink * (weighted + kernel @ v)"), "You shrink the new keys as well"),
    (R, running("weighted = (weighted / shrink if shrink else 0) + kernel @ v"), "Turned over: a higher top"),
    (R, running("weighted = shrink**2 * weighted + kernel @ v"), "is shrunk twice"),
    (R, running("weighted = weighted + kernel @ v + 0", ("shrink * total", "total")), "Now neither sum is rescaled"),
    (R, running(OLD, ("shrink * total", "total")), "Now neither sum is rescaled"),
    (R, running("weighted = weighted + kernel @ v * 1"), "belongs to the old top: rescale it too"),
    (R, running("weighted = len(kernel) * weighted + v.sum(axis=0)", ("kernel.sum()", "len(kernel)"), ("shrink * total", "total")), ", expected"),
    (R, lambda scores, values: values.mean(axis=0), "All keys count alike"),
    (R, running(OLD, ("np.exp(top - highest)\n", "np.exp(top - highest)\n        weighted *= shrink\n")), "you make good elsewhere"),
    (W, taking(lambda a, b, w, *logs: a - b), "take that much of it off"),
    (W, taking(lambda a, b, w, *logs: a - w * b), "must be divided by its own share"),
    (W, taking(lambda a, b, w, *logs: (a - w * b) / w), "not by that of the part"),
    (W, taking(lambda a, b, w, *logs: (a - (1 - w) * b) / w), "of part and rest are exchanged"),
    (W, taking(lambda a, b, w, t, p: by_streams(a, t, b, p)[0]), "puts the part in a second time"),
    (W, taking(lambda a, b, w, t, p: (t[:, None] * a - p[:, None] * b) / (t - p)[:, None]), "go by their exponentials"),
    (W, taking(lambda a, b, w, *logs: a), "Nothing is taken out"),
    (W, taking(lambda a, b, w, *logs: b), "what was to be taken out"),
    (W, taking(lse=lambda w, t, p: t - p), "Totals are subtracted"),
    (W, taking(lse=lambda w, t, p: logs(t, p)), "puts the part in a second time"),
    (W, taking(lse=lambda w, t, p: t), "Nothing is taken out"),
    (W, taking(lse=lambda w, t, p: np.log1p(-w[:, 0])), "the logarithm of the share: add"),
    (W, taking(lse=lambda w, t, p: np.exp(t) - np.exp(p)), "That is the total: take"),
    (W, taking(lse=lambda w, t, p: 1 - w[:, 0]), "the share of the rest: it is to be"),
    (W, lambda *a: taking()(*a)[::-1], "return the average first"),
    (W, overflowing_rest, "for large scores you give NaN or ∞"),
    (P, writing(copy=False), "Another sequence reads that page too"),
    (P, writing(contents=False), "lacks what the old one held"),
    (P, writing(shared=lambda tables, page: True), "No other sequence has that page"),
    (P, writing(free=max), "the lowest page that no table names"),
    (P, writing(place=lambda at, size: (at - 1) % size), "one place too early"),
    (P, writing(place=lambda at, size: -1), "The key is not in its place"),
    (P, changing(both_moved, is_shared), "change the writer's table alone"),
    (P, changing(other_moved, is_shared), "change the writer's table alone"),
    (P, changing(put(1), is_shared), "takes the old one's place in the table"),
    (P, changing(all_copied, is_shared), "they stay shared"),
    (P, changing(put(-1), is_full), "leave it, and take a new one"),
    (P, changing(full_left, is_full), "The last page is full: take a new one"),
    (P, written_into_all, "Another sequence reads something else now"),
    (P, lambda *a: writing()(*a)[::-1], "return the pages first"),
    (P, lambda *a: (writing()(*a)[0][..., :1], writing()(*a)[1]), "you give pages of shape (9, 3, 1)"),
    (L, traffic(lambda n, d, m, b: block(d, m)), "There are only n rows"),
    (L, traffic(lambda n, d, m, b: m // (4 * d)), "need their place too"),
    (L, traffic(lambda n, d, m, b: block(d, m, rows=3)), "four times block · d numbers"),
    (L, traffic(lambda n, d, m, b: int(m**0.5)), "room for the scores alone"),
    (L, traffic(lambda n, d, m, b: block(d, m // 4)), "in numbers, not in bytes"),
    (L, traffic(lambda n, d, m, b: block(d, m, square=2)), "one square, not two"),
    (L, traffic(lambda n, d, m, b: (4 * d * d + m) ** 0.5 - 2 * d), "a whole number of rows"),
    (L, traffic(lambda n, d, m, b: b + 1), "That does not fit: round down"),
    (L, traffic(lambda n, d, m, b: n), "all rows at once"),
    (L, moving(lambda n, d, b, x: x / 4), "a number has four bytes"),
    (L, moving(lambda n, d, b, x: 16 * n * d), "again for each block of queries"),
    (L, moving(lambda n, d, b, x: 8 * n * d * (1 + n / b)), "round n/block up"),
    (L, moving(lambda n, d, b, x: 4 * (2 * n * d * (1 + n // b))), "One pass is missing: round n/block up"),
    (L, moving(lambda n, d, b, x: x - 4 * n * d), "one in, the other out"),
    (L, moving(lambda n, d, b, x: 2 * (x - 8 * n * d)), "stays until it is done"),
    (L, moving(lambda n, d, b, x: 8 * n * d + 12 * n * d * -(-n // b)), "the loop with keys outside"),
    (L, moving(lambda n, d, b, x: (x + 8 * n * d) / 2), "that is one of them"),
    (L, moving(lambda n, d, b, x: 16 * n * d + 16 * n * n), "never leave the fast memory"),
    (L, lambda *a: traffic()(*a)[::-1], "return the block first"),
    (B, back(lambda w, g, q, k, **_: of_block(q, k).T @ g), "divide by the sum over all keys"),
    (B, back(lambda w, g, q, k, lse, **_: weights_of(q, k, lse, False).T @ g), "The scores are divided by √d."),
    (B, back(lambda w, g, q, k, lse, **_: weights_of(q, k, 0 * lse).T @ g), "the log-sum-exp makes them weights"),
    (B, back(lambda w, g, q, k, lse, **_: (weights_of(q, k, 0 * lse) / lse[:, None]).T @ g), "whose logarithm you have"),
    (B, back(lambda w, g, q, k, lse, **_: weights_of(q, k, -lse).T @ g), "The sign of the log-sum-exp"),
    (B, back(lambda w, g, ds, **_: ds.T @ g), "the gradient of the scores: take the weights"),
    (B, back(lambda w, g, o, **_: w.T @ o), "averages of outputs"),
    (B, back(lambda w, g, **_: w.T @ np.ones_like(g)), "in the values, in entry [0, 0], counted from 0, you give 0.6541. Where is g?"),
    (B, lambda *a: back()(*a)[::-1], "return the gradient of the keys first"),
    (B, back(scores=lambda w, gv, row, h: w * (gv + h)), "other weights: subtract g · output"),
    (B, back(scores=lambda w, gv, row, h: w * (gv + row + h)), "The sign: g · output"),
    (B, back(scores=lambda w, gv, row, h: w * (gv - row)), "Where is h? The log-sum-exp"),
    (B, back(scores=lambda w, gv, row, h: w * (gv - row - h)), "The sign of h"),
    (B, back(scores=lambda w, gv, row, h: w * (gv - row + h.mean())), "Each row has its own h"),
    (B, back(scores=lambda w, gv, row, h: w * (gv - row) + h), "by the weight: w times h"),
    (B, back(lambda w, g, h, **_: w.T @ (g + h)), "Values do not enter the log-sum-exp"),
    (B, back(scores=in_block), "That row sum knows one block"),
    (B, back(keys=lambda ds, q: ds.T @ q), "and so is the gradient"),
    (B, back(keys=lambda ds, q: ds.T @ q / q.shape[1]), "once is enough"),
    (B, back(scores=lambda w, gv, row, h: gv - row + h), "missing before the bracket"),
    (B, back(scores=lambda w, gv, row, h: w * (1 - w) * gv + w * h), "other weights than its own too"),
    (B, back(keys=lambda ds, q: 0 * q), "that is for the queries"),
    (B, h_unscaled, "h passes through the scores too: divide by √d."),
    (B, of_own_weights, "sum to 1 in the block: divide by all keys"),
    (B, lambda *a: (-back()(*a)[0], back()(*a)[1]), "The sign is turned"),
    (H, scaled(lambda h, m: -1), "a wider kernel moves the scores up"),
    (H, widths(lambda w, off, square, o, lse: w * (off + o[:, None]) * square), "subtract the output from the value"),
    (H, scaled(lambda h, m: h), "its derivative has h³"),
    (H, scaled(lambda h, m: 0.5), "takes the ½"),
    (H, scaled(lambda h, m: 1 / (2 * h)), "with respect to h²"),
    (H, scaled(lambda h, m: 1 / m), "a gradient is the sum"),
    (H, widths(reduce=lambda g, rows: rows.sum()), "Each output counts by its g"),
    (H, widths(reduce=lambda g, rows: g * rows), "one bandwidth has one gradient"),
    (H, widths(lambda w, off, square, *_: off * square), "The weights are missing."),
    (H, widths(lambda w, off, square, o, lse: w * np.exp(lse)[:, None] * off * square), "Those are kernel values"),
    (H, widths(lambda w, off, square, *_: w * square), "Where are the values?"),
    (H, lambda g, x, z, v, o, lse, h: g @ (np.exp(-(x[:, None] - z) ** 2 / h**2 - lse[:, None]) * (v - o[:, None]) * (x[:, None] - z) ** 2).sum(1) * 2 / h**3, "The ½ of the score is missing"),
    (H, widths(size=10**6), "does it build an array of all pairs?"),
    (S, lambda s, v, size, tree, bits: average_by_parts(s, v, size, True, bits), "That is a tree: tree is False"),
    (S, lambda s, v, size, tree, bits: average_by_parts(s, v, size, False, bits), "That is a chain: tree is True"),
    (S, split(exact, exact), "Nothing is rounded"),
    (S, split(to_bits(top=True), to_bits(top=True)), "The largest score is kept as it is"),
    (S, split(part=exact), "Round each part too"),
    (S, split(step=exact), "Round what comes of each combination"),
    (S, split(to_bits(total=False), to_bits(total=False)), "The total is kept to as many bits"),
    (S, split(to_bits(np.floor), to_bits(np.floor)), "Round to the nearest"),
    (S, split(to_places, to_places), "from the first one that is not 0"),
    (S, lambda s, v, size, tree, bits: average_by_parts(s, v, len(s) // size, tree, bits), "not how many parts there are"),
    (S, lambda s, v, size, tree, bits: average_by_parts(s, v, 1, tree, bits), "A part has size keys, not one"),
    (S, lambda s, v, size, tree, bits: average_by_parts(s[: len(s) // size * size], v[: len(s) // size * size], size, tree, bits), "The last part is shorter"),
    (S, alone_is_lost, "A part without a partner goes up unchanged"),
    (S, split(more=1), "one bit more"),
    (S, split(more=-1), "one bit less"),
    (S, split(back=True), "The chain begins with the first part"),
]  # fmt: skip
RIGHT = [
    (M, merging()),
    (M, torch_merging),
    (M, jax_merging),
    (M, by_streams),
    (V, visits()),
    (V, reaching(lambda b, w: -(-(w - 1) // b))),
    (V, by_kinds),
    (R, running(NEW)),
    (R, running("weighted = weighted * shrink + v.T @ kernel")),
    (W, taking()),
    (W, torch_taking),
    (P, writing()),
    (P, torch_writing),
    (P, by_pool),
    (L, traffic()),
    (B, back()),
    (B, torch_back),
    (B, by_flash),
    (H, widths()),
    (H, torch_width),
    (S, split()),
    (S, in_half),
    (S, jax_split),
]


@pytest.mark.parametrize(("check", "right"), RIGHT)
def test_right_answers_pass(check, right):
    verdict = check(right)
    assert verdict.status == "right", verdict


@pytest.mark.parametrize("check", [M, V, R, W, P, L, B, H, S])
def test_not_written_yet_is_a_friendly_line(check):
    def stub(*arguments):
        raise NotImplementedError

    broken = define(ch12.RUNNING_AVERAGE, "running_average", {"np": np})
    assert check(broken if check is R else stub).status == "not yet"


def test_the_broken_average_is_right_where_the_largest_score_comes_first():
    rng = np.random.default_rng(0)
    broken = define(ch12.RUNNING_AVERAGE, "running_average", {"np": np})
    scores, values = np.sort(rng.normal(size=11))[::-1], rng.normal(size=(11, 2))
    np.testing.assert_allclose(broken(scores, values), softmax(scores) @ values)
    assert abs(broken(scores[::-1], values) - softmax(scores[::-1]) @ values).max() > 0.05


def test_shares_of_blocks_at_1024_tokens():
    assert reaching(lambda b, w: -(-(w - 1) // b))(1024, 64, 1024) == 136
    assert reaching(lambda b, w: -(-(w - 1) // b))(1024, 64, 128) == 45
    assert visits(seen=lambda i, j, w: (j <= i) & (i // 256 == j // 256))(1024, 64, 0) == 40


@pytest.mark.parametrize(
    ("memory", "width", "megabytes"), [(58_368, 145, 62.9), (14_592, 48, 182.5)]
)
def test_traffic_of_a_memory_of_228_kib_and_of_a_quarter(memory, width, megabytes):
    b, moved = traffic()(4096, 64, memory)
    assert b == width
    assert round(moved / 1e6, 1) == megabytes


def test_a_part_leaves_as_many_digits_as_its_share_does():
    rng = np.random.default_rng(0)
    for zeros in (3, 6, 9):
        rest, part = rng.normal(size=(2, 200, 1))
        r = rng.normal(size=200)
        p = r + zeros * np.log(10)
        whole = by_streams(rest, r, part, p)
        off = np.median(abs(taking()(*whole, part, p)[0] - rest))
        assert 10 ** (zeros - 18) < off < 10 ** (zeros - 15)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("height", "least", "most"), [(0, 0, 1e-12), (20, 1e-10, 1e-5), (40, np.nan, np.nan)]
)
def test_a_window_that_removes_keys_remembers_a_large_score(height, least, most):
    rng = np.random.default_rng(0)
    scores, values = rng.normal(size=(2, 600, 1))
    scores[100] += height
    state = values[:1], scores[0]
    for i in range(1, 600):
        state = merging()(*state, values[i : i + 1], scores[i])
        if i >= 64:
            state = taking()(*state, values[i - 64 : i - 63], scores[i - 64])
    off = abs(state[0] - softmax(scores[-64:, 0]) @ values[-64:]).item()
    assert np.isnan(off) if np.isnan(least) else least <= off < most


def test_the_bandwidth_s_gradient_is_that_of_the_estimator():
    rng = np.random.default_rng(0)
    x, z, v, g = (rng.normal(size=n) for n in (6, 9, 9, 6))
    by = partial(nadaraya_watson, x[:, None], z[:, None], v[:, None])
    square = (x[:, None] - z) ** 2 / (2 * 0.6**2)
    lse = np.logaddexp.reduce(-square, axis=1)
    got = widths()(g, x, z, v, by(bandwidth=0.6)[:, 0], lse, 0.6)
    slope = g @ (by(bandwidth=0.6 + 1e-5) - by(bandwidth=0.6 - 1e-5))[:, 0] / 2e-5
    np.testing.assert_allclose(got, slope, rtol=1e-6)


def test_a_chain_stops_and_a_tree_goes_on():
    rng = np.random.default_rng(0)
    n = 1024
    scores, values = rng.normal(size=n), rng.normal(size=(n, 1)) + np.linspace(0, 2, n)[:, None]
    right = softmax(scores) @ values
    chain, tree = (abs(split()(scores, values, 1, on, 8) - right)[0] for on in (False, True))
    assert tree < 0.02 < 0.1 < chain
    assert split()(np.zeros(400), np.ones((400, 1)), 1, False, 8) == 1  # both sums stop, at 256
