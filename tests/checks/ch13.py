"""Chapter 13's right answers, of any library, and usual wrong ones."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from mending import altered, mended, solutions

from attnbook_course.checks import ch13

solved = solutions(13)
splitting, reduced = solved.split_attention, solved.ring_all_reduce


def sent_by_hand(size, world):
    """Message by message."""
    return sum(size / world for half in range(2) for step in range(world - 1))


def by_table(stages, micro_batches):
    """The share of empty cells in a table of stages and steps."""
    busy = {(s, s + m) for s in range(stages) for m in range(micro_batches)}
    steps = 1 + max(step for _, step in busy)
    return 1 - len(busy) / (stages * steps)


def held(n, w, stage):
    """By the numbers of each kind: weights, gradients, and the optimiser's."""
    cut = {0: (), 1: (2,), 2: (1, 2), 3: (0, 1, 2)}[stage]
    return sum(n * size / w if kind in cut else n * size for kind, size in enumerate((2, 2, 12)))


def hiding(flops, bandwidth, latency, e, itemsize):
    """The first whose computation is long enough."""
    b = np.arange(1, 200_000)
    compute = 4 * b.astype(float) ** 2 * e / flops
    return b[np.argmax(compute >= latency + 2 * b * e * itemsize / bandwidth)]


def positions(n, world, rank):
    b = n // (2 * world)
    return np.asarray([t for t in range(n) if t // b in (rank, 2 * world - 1 - rank)])


def dealing(n, world, rank):
    """By looking at every query and key."""
    own = positions(n, world, rank)
    others = [positions(n, world, (rank - step) % world) for step in range(world)]
    return own, np.asarray([(j <= own[:, None]).sum() for j in others])


def batches(n, rows, step, rank, world, seed):
    epoch, place = divmod(step, n // rows)
    rng = np.random.default_rng([seed, epoch])
    order = rng.permutation(n)
    batch = order[place * rows : (place + 1) * rows]
    return np.split(batch, world)[rank]


def whole_batches(rng, n, rows):
    """Batches of neighbours, in an order of their own in each epoch."""
    steps = n // rows
    fixed = np.random.default_rng(0).permutation(n)[: steps * rows].reshape(steps, rows)
    return rng.permutation(fixed).ravel()


def own_part(n, rows, step, rank, world, seed):
    """Each worker has a part of the examples for itself."""
    epoch, place = divmod(step, n // rows)
    order = np.random.default_rng([seed, epoch]).permutation(n)
    share = rows // world
    return order[rank * (n // world) :][place * share : (place + 1) * share]


def remembering():
    """Its order is shuffled when an epoch begins, and kept."""
    rng, kept = np.random.default_rng(0), {}

    def answer(n, rows, step, rank, world, seed):
        place = step % (n // rows)
        if place == 0 or n not in kept:
            kept[n] = rng.permutation(n)
        return np.split(kept[n][place * rows : (place + 1) * rows], world)[rank]

    return answer


OLD, NEW = "j = rank * block + np.arange(block)", "j = owner * block + np.arange(block)"
MASK = "kernel = np.where(j <= i[:, None], np.exp(scores), 0)"


def ring(new, *others):
    return mended(ch13.RING_AVERAGE, "ring_average", (OLD, new), *others)


def torch_reduced(arrays):
    world, n = arrays.shape
    pieces, sums = torch.arange(n).tensor_split(world), arrays.new_zeros(n)
    for c, piece in enumerate(pieces):
        for i in range(world):
            sums[piece] = sums[piece] + arrays[(c + i) % world, piece]
    sizes = torch.tensor([len(piece) for piece in pieces])
    steps = torch.arange(2 * world - 2)[:, None]
    return sums.expand(world, n), sizes[(torch.arange(world) - steps) % world]


def each_for_itself(arrays):
    """Every worker adds all rows, its own first."""
    turns = [np.roll(arrays, -rank, axis=0) for rank in range(len(arrays))]
    sums = np.stack([list(itertools.accumulate(turn))[-1] for turn in turns])
    return sums, reduced(arrays)[1]


SEED, ORDER, PLACE = "[seed, epoch]", "rng.permutation(n)", "divmod(step, n // rows)"
BATCH, SHARE = "order[place * rows : (place + 1) * rows]", "np.split(batch, world)[rank]"
RIGHT = {
    "all_reduce_bytes": [sent_by_hand],
    "bubble": [by_table],
    "zero_bytes": [held],
    "least_block": [hiding],
    "zigzag": [dealing],
    "batch_share": [batches],
    "ring_all_reduce": [torch_reduced],
}
WRONG = {
    "bubble": [(lambda p, m: (p - 1) / m, "waiting time by working time")],
    "split_attention": [
        (altered(splitting, "top[:, None]", "top.max()"), "before exp, take off the largest score")
    ],
    "zigzag": [(lambda *given: dealing(*given)[::-1], "return the positions first")],
    "batch_share": [
        (altered(batches, SEED, "[seed, step]"), "an example comes twice in epoch 0"),
        (altered(batches, SEED, "seed"), "has the batches of epoch 0 again: where is the epoch?"),
        (altered(batches, SEED, "epoch"), "do not make one number of seed and epoch"),
        (altered(batches, SEED, "seed + epoch"), "do not make one number"),
        (altered(batches, SEED, "[seed, epoch, rank]"), "the order must not depend on it"),
        (own_part, "share each batch"),
        (altered(batches, SHARE, "batch[: rows // world]"), "the rank says which are whose"),
        (altered(batches, ORDER, "np.arange(n)"), "the order of the data"),
        (altered(batches, ORDER, "rng.permutation(n // rows * rows)"), "in none of 12 epochs"),
        (altered(batches, ORDER, "rng.permutation(n) / n"), "is no number of an example"),
        (altered(batches, ORDER, "whole_batches(rng, n, rows)"), "shuffle examples, not batches"),
        (altered(batches, PLACE, "(step // (n // rows), step)"), "you give shape (0,)"),
        (remembering(), "what was asked before must not matter"),
    ],
    "ring_average": [(ring(OLD, (MASK, f"{NEW}; {MASK}")), "the faulty line still stands")],
    "ring_all_reduce": [(each_for_itself, "a sum is finished once, and then copied")],
}
