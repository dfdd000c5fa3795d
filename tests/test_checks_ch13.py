"""Chapter 13's checks accept right answers of any library and name each usual wrong one."""

from __future__ import annotations

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from mending import mended

from attnbook import torch as layers
from attnbook.course.checks import ch13
from attnbook.course.checks.repair import define
from attnbook.distributed import traffic
from attnbook.exact import online_softmax


def softmax(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sent_by_hand(size, world):
    """What a worker sends, message by message."""
    return sum(size / world for half in range(2) for step in range(world - 1))


def by_all_reduce(size, world):
    """The same, by the exercise that makes one."""
    return reduced(np.zeros((world, int(size))))[1].sum(axis=0).mean()


def all_reduces(form):
    return lambda size, world: form(sent_by_hand(size, world), size, world)


def by_table(stages, micro_batches):
    """The share of empty cells in a table of stages and steps."""
    busy = {(s, s + m) for s in range(stages) for m in range(micro_batches)}
    steps = 1 + max(step for _, step in busy)
    return 1 - len(busy) / (stages * steps)


def bubbling(form):
    return lambda p, m: form(p, m, m + p - 1)


def held(cuts=((), (2,), (1, 2), (0, 1, 2)), sizes=(2, 2, 12), form=lambda x, n, w: x):
    """The right bytes, and their neighbours, by counting the numbers of each kind."""

    def answer(n, w, stage):
        kinds = [n * s / w if k in cuts[stage] else n * s for k, s in enumerate(sizes)]
        return form(sum(kinds), n, w)

    return answer


def hiding(ops=4, arrays=2, waits=1, size=lambda s: s, form=lambda b, root: b, width=lambda e: e):
    """The right block, and its neighbours: the first whose computation is long enough."""

    def answer(flops, bandwidth, latency, e, itemsize):
        b = np.arange(1, 200_000)
        compute = ops * b.astype(float) ** 2 * e / flops
        send = waits * latency + arrays * b * width(e) * size(itemsize) / bandwidth
        first = int(np.argmax(compute >= send))
        return form(b[first], lambda: b[first] - 0.4)

    return answer


def by_traffic(flops, bandwidth, latency, width, itemsize):
    link = traffic.Link(latency, bandwidth)
    return math.ceil(traffic.least_block(flops, link, itemsize=itemsize, width=width))


def splitting(average=None, numbers=None, top=None, scale=None):
    """The right pair, and its neighbours."""

    def answer(q, keys, values):
        s = [q @ k.T / (scale or np.sqrt)(q.shape[1]) for k in keys]
        tops = [part.max(axis=1) for part in s]
        to = top or (lambda tops, r: np.max(tops, axis=0))
        kernels = [np.exp(part - to(tops, r)[..., None]) for r, part in enumerate(s)]
        totals = [kernel.sum(axis=1)[:, None] for kernel in kernels]
        sums = [kernel @ v for kernel, v in zip(kernels, values, strict=True)]
        first = (average or (lambda sums, totals, tops: sum(sums) / sum(totals)))(
            sums, totals, tops
        )
        m, p = first.shape[-2:]
        return first, (numbers or (lambda m, p, w, n, d: m * (p + 2)))(m, p, *keys.shape)

    return answer


def counting(numbers):
    return splitting(numbers=numbers)


def averages(sums, totals, tops):
    return [one / total for one, total in zip(sums, totals, strict=True)]


def by_streams(q, keys, values):
    """The right pair: parts of chapter 12, combined."""
    parts = [
        online_softmax.partial(q @ k.T / np.sqrt(q.shape[1]), v)
        for k, v in zip(keys, values, strict=True)
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = online_softmax.combine(whole, part)
    return online_softmax.finish(whole)[0], len(q) * (values.shape[2] + 2)


def torch_split(q, keys, values):
    k, v = keys.flatten(0, 1), values.flatten(0, 1)
    average = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    return average, torch.tensor(average.numel() + 2 * len(q))


def jax_split(q, keys, values):
    k, v = jnp.concatenate(list(keys)), jnp.concatenate(list(values))
    return jax.nn.softmax(q @ k.T / q.shape[1] ** 0.5) @ v, len(q) * (v.shape[1] + 2)


def dealing(positions=None, pairs=None):
    """The right pair, and its neighbours, by looking at every query and key."""

    def of(n, w, r):
        b = n // (2 * w)
        return [t for t in range(n) if t // b in (r, 2 * w - 1 - r)]

    def answer(n, w, rank):
        own = np.asarray(of(n, w, rank))
        steps = [(np.asarray(of(n, w, (rank - t) % w)) <= own[:, None]).sum() for t in range(w)]
        b = n // (2 * w)
        first = positions(own, n, w, rank, b) if positions else own
        return first, pairs(np.asarray(steps), b, w, rank) if pairs else np.asarray(steps)

    return answer


def pieces_of(*which):
    return dealing(
        lambda own, n, w, r, b: np.concatenate([i(r, w) * b + np.arange(b) for i in which])
    )


def dealt(pairs):
    return dealing(pairs=pairs)


def in_a_row(steps, b, w, rank):
    """The pairs where each worker has a row of neighbours."""
    i = np.arange(2 * b)
    own = rank * 2 * b + i[:, None]
    return [((rank - t) % w * 2 * b + i <= own).sum() for t in range(w)]


def batches(
    seeds=lambda seed, epoch, step, rank: [seed, epoch],
    where=lambda n, rows, step: divmod(step, n // rows),
    order=lambda rng, n, rows: rng.permutation(n),
    take=lambda order, place, rows: order[place * rows : (place + 1) * rows],
    share=lambda batch, rank, world: np.split(batch, world)[rank],
):
    """The right examples, and their neighbours."""

    def answer(n, rows, step, rank, world, seed):
        epoch, place = where(n, rows, step)
        rng = np.random.default_rng(seeds(seed, epoch, step, rank))
        return share(take(order(rng, n, rows), place, rows), rank, world)

    return answer


def seeded(*names):
    """By a generator that these of seed, epoch, step and rank start."""
    given = ("seed", "epoch", "step", "rank")
    return batches(seeds=lambda *values: [values[given.index(name)] for name in names])


def filled_up(order, place, rows):
    """The last batch of an epoch begins the same order again."""
    return np.take(order, np.arange(place * rows, (place + 1) * rows), mode="wrap")


def whole_batches(rng, n, rows):
    """Batches of neighbours, in an order of their own in each epoch."""
    steps = n // rows
    fixed = np.random.default_rng(0).permutation(n)[: steps * rows].reshape(steps, rows)
    return rng.permutation(fixed).ravel()


def stream(n, rows, step, rank, world, seed):
    """One order after another without a gap, so that a batch may have examples of two."""
    turns = [np.random.default_rng([seed, e]).permutation(n) for e in range(step * rows // n + 2)]
    batch = np.concatenate(turns)[step * rows : (step + 1) * rows]
    return np.split(batch, world)[rank]


def own_part(n, rows, step, rank, world, seed):
    """Each worker has a part of the examples for itself."""
    epoch, place = divmod(step, n // rows)
    order = np.random.default_rng([seed, epoch]).permutation(n)
    share = rows // world
    return order[rank * (n // world) :][place * share : (place + 1) * share]


def remembering():
    """Answers whose order is shuffled when an epoch begins, and kept."""
    rng, kept = np.random.default_rng(0), {}

    def answer(n, rows, step, rank, world, seed):
        place = step % (n // rows)
        if place == 0 or n not in kept:
            kept[n] = rng.permutation(n)
        return np.split(kept[n][place * rows : (place + 1) * rows], world)[rank]

    return answer


def shuffled_again(n, rows, step, rank, world, seed):
    """By one generator that shuffles a list once for each epoch, from the first on."""
    rng, order = np.random.default_rng(seed), np.arange(n)
    epoch, place = divmod(step, n // rows)
    for _ in range(epoch + 1):
        rng.shuffle(order)
    return order[place * rows : (place + 1) * rows][rank::world]


def torch_batches(n, rows, step, rank, world, seed):
    epoch, place = divmod(step, n // rows)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(1_000_003 * seed + epoch))
    return order[place * rows : (place + 1) * rows].chunk(world)[rank]


def jax_batches(n, rows, step, rank, world, seed):
    epoch, place = divmod(step, n // rows)
    order = jax.random.permutation(jax.random.fold_in(jax.random.key(seed), epoch), n)
    return order[place * rows :][:rows].reshape(world, -1)[rank]


OLD = "j = rank * block + np.arange(block)"
MASK = "kernel = np.where(j <= i[:, None], np.exp(scores), 0)"


def ring(new, *others):
    return mended(ch13.RING_AVERAGE, "ring_average", (OLD, new), *others)


def other_line(old, new):
    return mended(ch13.RING_AVERAGE, "ring_average", (old, new))


def reduced(
    arrays,
    cut=np.array_split,
    way=1,
    half=None,
    last=None,
    adds=lambda step, world: step < world - 1,
):
    """The right pair, and its neighbours, with messages that are all sent before any arrives."""
    world, n = arrays.shape
    held, pieces, sent = np.array(arrays), cut(np.arange(n), world), []
    for step in range(last(world) if last else 2 * world - 2):
        chosen = [pieces[(rank - way * step) % world] for rank in range(world)]
        letters = [held[rank, piece].copy() for rank, piece in enumerate(chosen)]
        for rank, letter in enumerate(letters):
            there, piece = (rank + way) % world, chosen[rank]
            held[there, piece] = letter + (held[there, piece] if adds(step, world) else 0)
        sent.append([len(piece) for piece in chosen])
    return held, np.asarray(sent)


def reducing(sums=lambda held, arrays: held, sent=lambda sent, n: sent, **how):
    def answer(arrays):
        held, counts = reduced(arrays, **how)
        return sums(held, arrays), sent(
            reduced(arrays)[1] if "last" in how else counts, arrays.shape[1]
        )

    return answer


def each_for_itself(held, arrays):
    """Every worker adds all rows, its own first."""
    turns = [np.roll(arrays, -rank, axis=0) for rank in range(len(arrays))]
    return np.stack([list(itertools.accumulate(turn))[-1] for turn in turns])


def ceil_split(places, world):
    size = -(-len(places) // world)
    return [places[i * size : (i + 1) * size] for i in range(world)]


def torch_reduced(arrays):
    world, n = arrays.shape
    pieces, sums = torch.arange(n).tensor_split(world), arrays.new_zeros(n)
    for c, piece in enumerate(pieces):
        for i in range(world):
            sums[piece] = sums[piece] + arrays[(c + i) % world, piece]
    sizes = torch.tensor([len(piece) for piece in pieces])
    steps = torch.arange(2 * world - 2)[:, None]
    return sums.expand(world, n), sizes[(torch.arange(world) - steps) % world]


A, P, Z, H = ch13.all_reduce_bytes, ch13.bubble, ch13.zero_bytes, ch13.least_block
S, G, B, R, M = (
    ch13.split_attention, ch13.zigzag, ch13.batch_share, ch13.ring_all_reduce, ch13.ring_average,
)  # fmt: skip
WRONG = [
    (A, all_reduces(lambda x, size, w: x / 2), "the reduce-scatter alone"),
    (A, all_reduces(lambda x, size, w: 2 * size * (w - 1)), "or all workers together"),
    (A, all_reduces(lambda x, size, w: size * (w - 1)), "the whole array to every other worker"),
    (A, all_reduces(lambda x, size, w: 2 * size), "W − 1 are sent, not W"),
    (A, all_reduces(lambda x, size, w: size), "in each W − 1 pieces of W are sent"),
    (A, all_reduces(lambda x, size, w: 2 * (w - 1)), "how many bytes has each?"),
    (A, all_reduces(lambda x, size, w: 2 * size / w), "one message in each half"),
    (A, all_reduces(lambda x, size, w: x / w), "is done twice"),
    (A, all_reduces(lambda x, size, w: 2 * x), "sent and received together"),
    (A, all_reduces(lambda x, size, w: 2 * size * np.log2(w)), "In a tree"),
    (A, all_reduces(lambda x, size, w: 8 * x), "Those are bits"),
    (A, all_reduces(lambda x, size, w: 2 * (w - 1) / w), "multiply by the size"),
    (A, all_reduces(lambda x, size, w: size * w), "of size / world, W − 1 of them in each half"),
    (A, all_reduces(lambda x, size, w: 2 * size * w), "two whole arrays for each worker"),
    (A, all_reduces(lambda x, size, w: size / w), "That is one piece"),
    (A, all_reduces(lambda x, size, w: 2 * size * (w - 2) / w), "W − 1 steps in each half"),
    (A, all_reduces(lambda x, size, w: size * (2 * w - 1) / w), "so there are 2 (W − 1)"),
    (A, all_reduces(lambda x, size, w: 2 * size * (w + 1) / w), "not W + 1"),
    (A, lambda size, w: np.full(w, sent_by_hand(size, w)), "you give shape (7,), expected one number"),
    (P, bubbling(lambda p, m, all_: (p - 1) / m), "waiting time by working time"),
    (P, bubbling(lambda p, m, all_: (p - 1) / (m + p)), "One step too many"),
    (P, bubbling(lambda p, m, all_: p / (m + p)), "for the p − 1 stages before it"),
    (P, bubbling(lambda p, m, all_: p / all_), "for the p − 1 stages before it"),
    (P, bubbling(lambda p, m, all_: m / all_), "that a stage works"),
    (P, bubbling(lambda p, m, all_: 1 - 1 / p), "one micro-batch, passed on"),
    (P, bubbling(lambda p, m, all_: (m - 1) / all_), "are exchanged"),
    (P, bubbling(lambda p, m, all_: 2 * (p - 1) / all_), "has steps of its own"),
    (P, bubbling(lambda p, m, all_: (p - 1) / (2 * m + p - 1)), "There is waiting on the way back"),
    (P, bubbling(lambda p, m, all_: 2 * (p - 1) / (m + 2 * p - 2)), "There is work on the way back"),
    (P, bubbling(lambda p, m, all_: p * (p - 1) / all_), "the sum over all stages"),
    (P, bubbling(lambda p, m, all_: p - 1), "which share of all steps"),
    (P, bubbling(lambda p, m, all_: all_), "Those are all steps"),
    (Z, held(cuts=((), (0,), (0, 1), (0, 1, 2))), "First the optimiser's numbers are cut"),
    (Z, held(cuts=((), (1,), (1, 2), (0, 1, 2))), "First the optimiser's numbers are cut"),
    (Z, held(cuts=((), (2,), (1,), (0,))), "Stages add"),
    (Z, held(cuts=((2,), (1, 2), (0, 1, 2), (0, 1, 2))), "That is stage 1."),
    (Z, held(cuts=((), (), (2,), (1, 2))), "That is stage 0."),
    (Z, held(sizes=(2, 2, 8)), "Adam keeps three numbers"),
    (Z, held(sizes=(2, 2, 4)), "Adam keeps three numbers"),
    (Z, held(sizes=(4, 4, 8)), "have two bytes here, not four"),
    (Z, held(sizes=(4, 4, 12)), "have two bytes here, not four"),
    (Z, held(sizes=(2, 0, 12)), "are both kept"),
    (Z, held(sizes=(0, 2, 12)), "are both kept"),
    (Z, held(sizes=(1, 1, 3)), "Those are numbers"),
    (Z, held(form=lambda x, n, w: x * w), "all workers together"),
    (Z, held(form=lambda x, n, w: x / n), "per parameter"),
    (Z, held(form=lambda x, n, w: 8 * x), "Those are bits"),
    (Z, lambda n, w, stage: [2 * n, 2 * n, 12 * n], "you give shape (3,), expected one number"),
    (H, hiding(ops=2), "each take 2 · block² · width"),
    (H, hiding(ops=1), "each take 2 · block² · width"),
    (H, hiding(ops=8), "each take 2 · block² · width"),
    (H, hiding(arrays=1), "Keys and values both travel."),
    (H, hiding(arrays=3), "Queries and outputs stay"),
    (H, hiding(arrays=4), "Queries and outputs stay"),
    (H, hiding(waits=0), "A message takes its latency"),
    (H, hiding(waits=2), "one latency"),
    (H, hiding(size=lambda s: 1), "where is itemsize?"),
    (H, hiding(size=lambda s: 8 * s), "in bytes, not in bits"),
    (H, lambda f, r, t, e, s: hiding()(f, r, t, 1, s), "both have the width"),
    (H, hiding(form=lambda b, root: b - 1), "comes too late: round up"),
    (H, lambda f, r, t, e, s: (2 * e * s / r + np.sqrt((2 * e * s / r) ** 2 + 16 * e * t / f)) * f / 8 / e, "a whole number of tokens"),
    (H, hiding(form=lambda b, root: b + 1), "one token more"),
    (S, splitting(lambda *a: sum(averages(*a)) / len(a[0])), "count alike: each counts by its total"),
    (S, splitting(lambda *a: sum(averages(*a))), "You add averages"),
    (S, splitting(top=lambda tops, r: tops[r]), "relative to its own largest score"),
    (S, splitting(scale=lambda d: 1), "The scores are divided by √d"),
    (S, splitting(scale=lambda d: d), "√d divides twice"),
    (S, splitting(lambda sums, totals, tops: sum(sums)), "That is the weighted sum"),
    (S, splitting(lambda *a: averages(*a)[0]), "one worker's keys alone"),
    (S, splitting(lambda *a: np.stack(averages(*a))), "an average per worker"),
    (S, splitting(top=lambda tops, r: 0 * tops[0]), "before exp, take off the largest score"),
    (S, splitting(top=lambda tops, r: np.max(tops) + 0 * tops[0]), "before exp, take off the largest score"),
    (S, splitting(top=lambda tops, r: tops[0]), "before exp, take off the largest score"),
    (S, lambda q, k, v: (np.tile(v.reshape(-1, v.shape[2]).mean(0), (len(q), 1)), 0), "All keys count alike."),
    (S, lambda *a: splitting()(*a)[::-1], "return the averages first"),
    (S, lambda *a: (splitting()(*a)[0].T, 24), "Is it transposed?"),
    (S, counting(lambda m, p, w, n, d: m * (p + 1)), "One is missing per query"),
    (S, counting(lambda m, p, w, n, d: m * p), "Largest scores and totals travel too"),
    (S, counting(lambda m, p, w, n, d: m * p + 2), "Each query has its own largest score and its own total"),
    (S, counting(lambda m, p, w, n, d: m * (p + 1) + 1), "Each query has its own largest score and its own total"),
    (S, counting(lambda m, p, w, n, d: p + 2), "That is one query: there are m"),
    (S, counting(lambda m, p, w, n, d: w * m * (p + 2)), "all workers together"),
    (S, counting(lambda m, p, w, n, d: 2 * (w - 1) * m * (p + 2) / w), "travels in a ring"),
    (S, counting(lambda m, p, w, n, d: n * (d + p)), "Keys and values stay"),
    (S, counting(lambda m, p, w, n, d: m * n), "Scores stay"),
    (S, counting(lambda m, p, w, n, d: 8 * m * (p + 2)), "Those are bytes"),
    (G, dealing(lambda own, n, w, r, b: np.arange(2 * b) + 2 * b * r), "an early and a late piece"),
    (G, dealing(lambda own, n, w, r, b: np.arange(r, n, w)), "deals tokens out one by one"),
    (G, pieces_of(lambda r, w: r, lambda r, w: r + w), "later workers have more"),
    (G, pieces_of(lambda r, w: 2 * w - 1 - r, lambda r, w: r), "The earlier piece comes first"),
    (G, dealing(lambda own, n, w, r, b: np.concatenate([own[:b], own[b:][::-1]])), "the tokens keep their order"),
    (G, pieces_of(lambda r, w: w - 1 - r, lambda r, w: w + r), "numbered the other way round"),
    (G, dealing(lambda own, *a: own + 1), "counted from 0."),
    (G, dealing(lambda own, n, w, r, b: [r, 2 * w - 1 - r]), "name the positions of all"),
    (G, lambda *a: dealing()(*a)[::-1], "return the positions first"),
    (G, dealt(lambda x, b, w, r: np.full(w, 4 * b * b)), "Half of these pairs are hidden"),
    (G, dealt(lambda x, b, w, r: np.full(w, 2 * b * b)), "and those before it in its own piece"),
    (G, dealt(lambda x, b, w, r: x - 2 * b * (np.arange(w) == 0)), "A token sees itself."),
    (G, dealt(lambda x, b, w, r: x - b * b * (np.arange(w) == 0)), "the late piece sees all of the early"),
    (G, dealt(lambda x, b, w, r: x + (b * b - b) * (np.arange(w) == 0)), "are hidden in part"),
    (G, dealt(lambda x, b, w, r: b * b + b * (np.arange(w) == 0)), "Of four pairs of pieces"),
    (G, dealt(lambda x, b, w, r: np.full(w, 2 * b * b + b)), "Only in step 0"),
    (G, dealt(in_a_row), "That is for a row of neighbours"),
    (G, dealt(lambda x, b, w, r: 2 + 1 * (np.arange(w) == 0)), "count pairs of a query and a key"),
    (G, dealt(lambda x, b, w, r: np.full(w, 2)), "count pairs of a query and a key"),
    (G, dealt(lambda x, *a: np.cumsum(x)), "all steps so far"),
    (G, dealt(lambda x, *a: x.sum()), "one number per step"),
    (B, seeded("seed", "step"), "an example comes twice in epoch 0"),
    (B, batches(lambda *given: given[0]), "repeats the order of epoch 0: where is the epoch?"),
    (B, seeded("epoch"), "where is the seed?"),
    (B, batches(lambda seed, epoch, *_: seed + epoch), "do not make one number"),
    (B, batches(lambda seed, epoch, *_: seed * (epoch + 1)), "do not make one number"),
    (B, seeded("seed", "epoch", "rank"), "the order must not depend on the rank"),
    (B, own_part, "share each batch"),
    (B, batches(share=lambda batch, rank, world: batch[: len(batch) // world]), "all have the same examples"),
    (B, batches(share=lambda batch, *_: batch), "take this one's share"),
    (B, batches(share=lambda batch, rank, world: np.split(batch, world)), "the shares of all workers"),
    (B, batches(take=lambda order, *_: order), "take the batch of this step"),
    (B, batches(order=lambda rng, n, rows: np.arange(n)), "the order of the data"),
    (B, batches(order=lambda rng, n, rows: rng.integers(n, size=n)), "comes twice in one batch"),
    (B, batches(order=lambda rng, n, rows: 1 + rng.permutation(n)), "count them from 0."),
    (B, batches(order=lambda rng, n, rows: rng.permutation(n // rows * rows)), "comes in none of 12 epochs"),
    (B, batches(order=lambda rng, n, rows: rng.permutation(n) / n), "is no number of an example"),
    (B, batches(order=whole_batches), "shuffle examples, not batches"),
    (B, batches(where=lambda n, rows, step: divmod(step, -(-n // rows))), "What is left over makes no batch"),
    (B, batches(where=lambda n, rows, step: (step // (n // rows), step)), "which place has this one in its epoch?"),
    (B, batches(order=lambda rng, n, rows: np.full(n, np.nan)), "is no number of an example"),
    (B, batches(where=lambda n, rows, step: divmod(step, -(-n // rows)), take=filled_up), "though not in epoch 0"),
    (B, batches(lambda seed, *_: seed, where=lambda n, rows, step: (0, step), take=filled_up), "goes on in the order of epoch 0"),
    (B, stream, "though not in epoch 0"),
    (B, remembering(), "what was asked before must not matter"),
    (M, ring("j = step * block + np.arange(block)"), "The step is no position"),
    (M, ring("j = np.arange(block)"), "as if it were the first"),
    (M, ring("j = (rank + step) % world * block + np.arange(block)"), "the other way round"),
    (M, ring("j = owner + np.arange(block)"), "as many tokens as this"),
    (M, ring("j = owner * block"), "has a position of its own"),
    (M, ring("j = (rank - step) * block + np.arange(block)"), "comes the last"),
    (M, ring("j = 0 * np.arange(block)"), "Nothing is masked."),
    (M, ring("j = owner * block + np.arange(block) + 1"), "a token sees itself at least"),
    (M, ring("j = owner * block + np.arange(block)", ("owner = (rank - step) % world", "owner = rank")), "Every worker sees its own block alone."),
    (M, other_line("np.exp(scores), 0)", "np.exp(2 * scores), 0)"), "in another line than you changed"),
    (M, other_line(MASK, "j = owner * block + np.arange(block); " + MASK), "the faulty line still stands"),
    (R, reducing(lambda held, arrays: held / len(arrays)), "That is the mean"),
    (R, reducing(lambda held, arrays: arrays), "Nothing has been added"),
    (R, reducing(last=lambda world: world - 1), "The second half is missing"),
    (R, reducing(last=lambda world: 2 * world - 3), "The last step is missing"),
    (R, reducing(last=lambda world: world - 2), "W − 1 steps in each half"),
    (R, reducing(adds=lambda step, world: True), "takes the place of what is there"),
    (R, reducing(lambda held, arrays: np.tile(arrays.sum(0), (len(arrays), 1))), "Piece c begins with worker c"),
    (R, reducing(each_for_itself), "a sum is finished once, and then copied"),
    (R, reducing(lambda held, arrays: held[0]), "what does each of the 4 workers end with?"),
    (R, lambda arrays: reduced(arrays)[::-1], "return the sums first"),
    (R, reducing(way=-1), "That goes round the other way"),
    (R, reducing(cut=ceil_split), "as np.array_split cuts them"),
    (R, reducing(sent=lambda sent, n: 0 * sent + n), "Those are whole rows"),
    (R, reducing(sent=lambda sent, n: 0 * sent + n / sent.shape[1]), "as np.array_split cuts them"),
    (R, reducing(sent=lambda sent, n: 8 * sent), "Those are bytes"),
    (R, reducing(sent=lambda sent, n: np.roll(sent, 1, axis=1)), "what each worker receives"),
    (R, reducing(sent=lambda sent, n: np.cumsum(sent, axis=0)), "all steps so far"),
    (R, reducing(sent=lambda sent, n: sent[: len(sent) // 2]), "you give 3 steps, expected 6"),
    (R, reducing(sent=lambda sent, n: sent.sum(axis=0)), "one per step and worker"),
    (R, reducing(sent=lambda sent, n: sent.T), "Is it transposed?"),
]  # fmt: skip
RIGHT = [
    (A, sent_by_hand),
    (A, by_all_reduce),
    (A, traffic.all_reduce),
    (P, by_table),
    (P, traffic.pipeline_bubble),
    (Z, held()),
    (Z, traffic.zero),
    (H, hiding()),
    (H, by_traffic),
    (S, splitting()),
    (S, by_streams),
    (S, torch_split),
    (S, jax_split),
    (G, dealing()),
    (B, batches()),
    (B, batches(share=lambda batch, rank, world: batch[rank::world])),
    (B, batches(take=lambda order, place, rows: np.sort(order[place * rows :][:rows]))),
    (B, batches(take=lambda order, place, rows: order[place :: len(order) // rows][:rows])),
    (B, shuffled_again),
    (B, torch_batches),
    (B, jax_batches),
    (M, ring("j = owner * block + np.arange(block)")),
    (M, ring("j = np.arange(owner * block, (owner + 1) * block)")),
    (R, reduced),
    (R, torch_reduced),
]


@pytest.mark.parametrize(("check", "right"), RIGHT)
def test_right_answers_pass(check, right):
    verdict = check(right)
    assert verdict.status == "right", verdict


@pytest.mark.parametrize("check", [A, P, Z, H, S, G, B, M, R])
def test_not_written_yet_is_a_friendly_line(check):
    def stub(*arguments):
        raise NotImplementedError

    broken = define(ch13.RING_AVERAGE, "ring_average", {"np": np})
    assert check(broken if check is M else stub).status == "not yet"


def test_the_broken_ring_is_right_for_one_worker_and_for_equal_values():
    broken = define(ch13.RING_AVERAGE, "ring_average", {"np": np})
    right = ring("j = owner * block + np.arange(block)")
    q, k, v = np.random.default_rng(0).normal(size=(3, 4, 6, 2))
    np.testing.assert_allclose(broken(q[:1], k[:1], v[:1]), right(q[:1], k[:1], v[:1]))
    np.testing.assert_allclose(broken(q, k, np.ones_like(v)), 1)
    assert abs(broken(q, k, v) - right(q, k, v)).max() > 0.1
    later = v.copy()
    later[3] += 1  # what comes last must not move what comes first
    assert abs(broken(q, k, later) - broken(q, k, v))[0].max() > 0.01
    np.testing.assert_array_equal(right(q, k, later)[0], right(q, k, v)[0])
    seen = np.zeros((24, 24), dtype=bool)  # what moves where a value moves
    for j in range(24):
        moved = v.copy()
        moved.reshape(24, 2)[j] += 1
        seen[:, j] = abs(broken(q, k, moved) - broken(q, k, v)).max(axis=2).ravel() > 1e-9
    place = np.arange(24) % 6
    np.testing.assert_array_equal(seen, place <= place[:, None])
    assert np.flatnonzero(np.diagonal(seen, 1)).tolist() == [5, 11, 17]  # see their own targets


def test_micro_batches_that_keep_a_stage_busy():
    for stages, enough in ((4, 27), (64, 567)):
        assert by_table(stages, enough) <= 0.1 + 1e-12 < by_table(stages, enough - 1)


PARAMETERS = 6_456_747_008  # of the chapter's large model


def test_which_stage_fits_on_which_device():
    with torch.device("meta"):
        large = layers.DecoderOnly(
            1024, 1024, embed_dim=4096, num_heads=32, mlp_dim=4 * 4096, num_layers=32
        )
    assert sum(p.numel() for p in large.parameters()) == PARAMETERS
    sizes = [held()(PARAMETERS, 8, stage) / 1e9 for stage in range(4)]
    assert [round(size) for size in sizes] == [103, 36, 24, 13]
    for device, left, stage in ((80, 53, 1), (40, 27, 2), (24, 16, 3)):
        assert round(device * 2 / 3) == left
        assert sizes[stage] < device * 2 / 3 < sizes[stage - 1]
    assert round(2 * PARAMETERS / 1e9) == 13 and round(held()(PARAMETERS, 64, 2) / 1e9) == 14
    assert round(4 * PARAMETERS / 1e9) == 26


FLOPS, INSIDE, NETWORK = 989e12, traffic.Link(1e-5, 450e9), traffic.Link(1e-5, 50e9)


def test_the_least_blocks_of_the_solution():
    for link, width, block in ((INSIDE, 4096, 2445), (NETWORK, 4096, 19811), (INSIDE, 128, 5630)):
        assert by_traffic(FLOPS, link.bandwidth, link.latency, width, 2) == block
    assert [by_traffic(FLOPS, rate, 0, 4096, 2) for rate in (450e9, 50e9)] == [2198, 19780]
    assert (2445 - 2198, 19811 - 19780) == (247, 31)
    assert (
        by_traffic(0.6 * FLOPS, 50e9, 1e-5, 4096, 2)
        < 19811
        < by_traffic(FLOPS, 40e9, 1e-5, 4096, 2)
    )
    assert round(64 * 19811 / 1e6, 1) == 1.3
    masked = by_traffic(2 * FLOPS, 50e9, 1e-5, 4096, 2)  # half of the operations
    assert 64 * masked / 1e6 == pytest.approx(2.5, abs=0.05)


def step_of(batch, world):
    """Seconds of computing and of sending in a step of copies on the network."""
    sent = traffic.all_reduce(2 * PARAMETERS, world)
    compute = 6 * PARAMETERS * batch / world / FLOPS
    return compute, traffic.seconds(2 * (world - 1), sent, NETWORK)


def test_seconds_of_a_step_on_320_processors_and_on_1024():
    times = [f(step_of(2**22, world)) for world in (320, 1024) for f in (max, sum)]
    assert [round(time, 2) for time in times] == [0.52, 1.03, 0.54, 0.70]
    assert [round(time, 2) for time in step_of(2**22, 1024)] == [0.16, 0.54]
    for batch, corner in ((2**20, 79), (2**22, 316)):
        compute, send = step_of(batch, corner)
        assert compute / send == pytest.approx(1, abs=0.02)
        assert round(batch / corner, -3) == 13_000


def test_a_ring_of_neighbours_takes_nearly_twice_as_long_as_the_zigzag():
    world, b = 8, 50
    n, slowest, even = 2 * world * b, 0, 0
    for t in range(world):
        slowest += max(in_a_row(None, b, world, rank)[t] for rank in range(world))
        even += max(dealing()(n, world, rank)[1][t] for rank in range(world))
    assert slowest == (4 * world - 2) * b**2 + b
    assert even == 2 * b**2 * world + b == n * (n + 1) // 2 // world
    assert slowest / even == pytest.approx(2 - 1 / world, abs=0.01)


def test_copies_have_the_same_bits_only_if_a_sum_is_finished_once():
    for world, n, differ in ((8, 20_000, 0.57), (256, 1024, 0.82)):
        arrays = np.random.default_rng(0).normal(size=(world, n)).astype(np.float32)
        exact = arrays.sum(axis=0, dtype=np.float64)
        copied, own = reduced(arrays)[0], each_for_itself(None, arrays)
        pairs = arrays
        while len(pairs) > 1:
            pairs = pairs[::2] + pairs[1::2]
        assert copied.dtype == own.dtype == np.float32
        assert (copied == copied[0]).all()
        assert np.mean(own[0] != own[1]) == pytest.approx(differ, abs=0.04)
        error = [np.sqrt(np.mean((x - exact) ** 2)) for x in (copied[0], own[0], pairs[0])]
        assert error[0] == pytest.approx(error[1], rel=0.1)
        assert error[2] < (0.95 if world == 8 else 0.4) * error[0]


def test_seed_plus_epoch_shares_epochs_between_runs():
    mixed = batches(lambda seed, epoch, *_: seed + epoch)
    for place in range(3):
        first, second = (mixed(38, 12, 3 * e + place, 0, 1, seed) for e, seed in ((1, 2), (0, 3)))
        np.testing.assert_array_equal(first, second)


def test_another_number_of_workers_ends_the_epoch_without_a_repetition():
    solved, seen = batches(), []
    for step, world in ((6, 4), (7, 2), (8, 3)):  # epoch 2, restarted twice
        seen += [i for rank in range(world) for i in solved(38, 12, step, rank, world, 5)]
    assert len(seen) == len(set(seen)) == 36
