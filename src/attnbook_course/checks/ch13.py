"""Checks for chapter 13. Each knows the usual wrong answers by what they give."""

from collections.abc import Callable
from math import ceil, sqrt
from typing import Any

import numpy as np

from attnbook.attention import softmax
from attnbook_course.checks.call import call, call_pair
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.verdict import Function, Wrong, check, expect, shape_of, show


@check
def all_reduce_bytes(function: Function) -> str:
    """function(size, world): bytes that one worker sends in an all-reduce on a ring."""
    for size, w in ((8400, 7), (1200, 3), (1000, 2)):
        right = 2 * size * (w - 1) / w
        where = f"for {size} bytes and {w} workers"
        mistakes = [
            (right / 2, "That is the reduce-scatter alone: the sums must come round too."),
            (w * right, "That is whole arrays, or all workers together: a ring sends pieces."),
            (2 * size, "One piece stays where it is in each half: W − 1 are sent, not W."),
            (2 * size / w, "That is one message in each half: there are W − 1."),
        ]
        expect(call(function, size, w), right, where, mistakes, secret=True)
    return "nearly twice the array, however many take part."


@check
def bubble(function: Function) -> str:
    """function(stages, micro_batches): the share of its time that a stage waits."""
    for p, m in ((4, 10), (7, 3), (3, 20)):
        wait, steps = p - 1, m + p - 1
        got = call(function, p, m)
        mistakes = [
            (wait / m, "That is waiting time by working time: divide by all the time."),
            (wait / (m + p), "One step too many: the first stage begins at once."),
            (p / steps, "The last stage waits for the p − 1 stages before it, not for p."),
            (2 * wait / steps, "The way back has steps of its own: waiting and working double."),
        ]
        expect(got, wait / steps, f"for {p} stages and {m} micro-batches", mistakes, secret=True)
    return "what fills a pipeline is many small batches."


@check
def zero_bytes(function: Function) -> str:
    """function(parameters, world, stage): bytes that a worker holds with ZeRO 0 to 3."""
    for n, w in ((2100, 7), (500, 4)):
        for stage in range(4):

            def held(*cut: int, a: int = 2, b: int = 2, c: int = 12, n: int = n, w: int = w) -> Any:
                """For a + b + c bytes per parameter, of which those numbered are cut in W."""
                return n * sum(s / w if i in cut else s for i, s in enumerate((a, b, c)))

            cut = range(3 - stage, 3)
            right = held(*cut)
            order = "First the optimiser's numbers are cut, then gradients, then weights."
            adam = "Adam keeps three numbers of four bytes: a copy of the weight, and two averages."
            two = "Weights and gradients have two bytes here, not four."
            got = call(function, n, w, stage)
            where = f"for {n} parameters, {w} workers and stage {stage}"
            mistakes = [
                *((held(*range(3 - k, 3)), f"That is stage {k}.") for k in range(4)),
                (held(*range(stage)), order),
                (held(3 - stage), "Stages add: what an earlier stage cuts stays cut."),
                *((held(*cut, c=s), adam) for s in (4, 8)),
                *((held(*cut, a=4, b=4, c=s), two) for s in (8, 12)),
            ]
            expect(got, right, where, mistakes, secret=True)
    return "cut everything, and what a worker holds falls with their number."


@check
def least_block(function: Function) -> str:
    """function(flops, bandwidth, latency, width, itemsize): tokens that hide a message."""
    cases = (2e12, 5e9, 4e-5, 64, 4), (3e14, 4.3e10, 1e-5, 96, 2), (1e12, 7e9, 0.0, 48, 4)
    for f, rate, latency, width, size in cases:

        def root(
            ops: float = 4,
            arrays: float = 2,
            wait: float = latency,
            f: float = f / width,
            rate: float = rate / width / size,
        ) -> float:
            """Where ops · b² · width / flops is wait + arrays · b · width · size / bandwidth."""
            send = arrays / rate
            return (send + sqrt(send**2 + 4 * wait * ops / f)) / (2 * ops / f)

        b = ceil(root())
        per = "Scores and averages each take 2 · block² · width operations."
        where = f"for {f:g} operations and {rate:g} bytes per second, {latency:g} s, a width of "
        got = call(function, f, rate, latency, width, size)
        mistakes = [
            *((ceil(root(ops=ops)), per) for ops in (1, 2, 8)),
            (ceil(root(arrays=1)), "Keys and values both travel."),
            (ceil(root(wait=0)), "A message takes its latency besides."),
            (ceil(root(rate=rate / width)), "The bandwidth counts bytes: where is itemsize?"),
            (root(), "A block has a whole number of tokens: round up."),
        ]
        expect(got, b, f"{where}{width} and {size} bytes", mistakes, secret=True)
    return "operations grow with the square of a block, its message does not."


@check
def split_attention(function: Function) -> str:
    """function(q, keys, values): averages (m, p), and the numbers for two all-reduces."""
    rng = np.random.default_rng(5)
    for w, m, n, d, p, far in ((3, 4, 5, 6, 2, 0), (4, 5, 7, 3, 3, 1500), (3, 4, 5, 6, 2, -2000)):
        q, keys, values = (rng.normal(size=size) for size in ((m, d), (w, n, d), (w, n, p)))
        q[:, 0] = far if far < 0 else np.linspace(-far, far, m)
        keys[..., 0] = np.arange(w)[::-1, None] if far < 0 else 1.0
        where = f"for {w} workers" + (" and large scores" if far > 0 else "")
        where += " of which some have very low scores" if far < 0 else ""
        first, second = call_pair(function, q, keys, values)
        if not np.all(np.isfinite(first)):
            cause = "before exp, take off the largest score of all workers, a number per query"
            raise Wrong(f"{where} you give NaN or ∞:", f"{cause}, and divide at the end.")
        s = q @ keys.swapaxes(1, 2) / np.sqrt(d)
        every, flat = np.concatenate(list(s), axis=1), values.reshape(w * n, p)
        own = s.max(axis=2, keepdims=True)
        total, weighted = np.exp(s - own).sum(axis=2)[..., None], np.exp(s - own) @ values
        parts = weighted / total
        rescale = "Each sum is relative to its own largest score: bring all to the same one first."
        right, tolerance = softmax(every) @ flat, 2e-3 if far > 0 else 1e-5
        mistakes = [
            (parts.mean(axis=0), "The workers' averages count alike: each counts by its total."),
            (weighted.sum(axis=0) / total.sum(axis=0), rescale),
        ]
        expect(first, right, f"{where}, in the average,", mistakes, tolerance=tolerance)
        right = m * (p + 2)
        mistakes = [(m * (p + 1), "One is missing per query: both largest score and total travel.")]
        expect(second, right, f"{where}, in the numbers,", mistakes, secret=True)
    return "what travels does not grow with the number of keys."


@check
def zigzag(function: Function) -> str:
    """function(n, world, rank): its tokens' positions (n/world,), and pairs per step (world,)."""
    for n, w, rank in ((40, 4, 1), (40, 4, 3), (42, 3, 0), (24, 2, 1)):
        b, m = n // (2 * w), n // w
        piece = np.arange(n).reshape(2 * w, b)
        here, there = piece[rank], piece[2 * w - 1 - rank]
        where = f"for {n} tokens and worker {rank} of {w}"
        first, second = call_pair(function, n, w, rank)
        if first.shape == (w,) and second.shape == (m,):
            raise Wrong(f"{where} the pairs come first:", "return the positions first.")
        mistakes = [
            (np.arange(m) + m * rank, "That is a row of neighbours: an early and a late piece."),
            (np.arange(rank, n, w), "That deals tokens out one by one: take two pieces."),
        ]
        expect(first, np.concatenate([here, there]), f"{where}, in the positions,", mistakes)
        right, own = np.full(w, 2.0 * b * b), np.eye(w)[0]
        mistakes = [
            (2 * right, "Half of these pairs are hidden."),
            (right, "In step 0 a token sees itself and those before it in its own piece."),
        ]
        expect(second, right + b * own, f"{where}, in the pairs,", mistakes, secret=True)
    return "in every step all workers have the same to do, so none waits."


def _numbers_of(got: np.ndarray, n: int, share: int, where: str) -> np.ndarray:
    """The answer as integers; Wrong unless they name so many of n examples."""
    if got.shape != (share,):
        raise Wrong(f"{where} you give {shape_of(got)}, expected ({share},).")
    for odd in got[~((got >= 0) & (got < n) & (got == np.round(got)))]:
        raise Wrong(f"{where} {show(odd)} is no number of an example from 0 to {n - 1}.")
    return got.astype(int)


def _check_epochs(epochs: list[np.ndarray], n: int, where: str) -> None:
    """Wrong unless each epoch, (steps, rows), visits other examples in each step, newly ordered."""
    for number, epoch in enumerate(epochs):
        if len(set(epoch.ravel())) < epoch.size:
            cause = "shuffle once per epoch, and take its steps one after another."
            raise Wrong(f"{where} an example comes twice in epoch {number}:", cause)
    first = epochs[0].ravel().tolist()
    if first == sorted(first):
        raise Wrong(f"{where} epoch 0 has the order of the data:", "shuffle them.")
    if {frozenset(b) for b in epochs[0]} == {frozenset(b) for b in epochs[1]}:
        cause = "where is the epoch? And shuffle examples, not batches."
        raise Wrong(f"{where} epoch 1 has the batches of epoch 0 again:", cause)
    never = sorted(set(range(n)) - {int(i) for epoch in epochs for i in epoch.ravel()})
    if never:
        cause = "order all examples, and let chance say which are left over."
        raise Wrong(f"{where} example {never[0]} comes in none of {len(epochs)} epochs:", cause)


def _check_shares(whole: np.ndarray, parts: list[np.ndarray], where: str) -> None:
    """Wrong unless the workers' shares together are the batch that one worker sees."""
    if sorted(np.concatenate(parts)) == sorted(whole):
        return
    if len(set(np.concatenate(parts))) < len(whole):
        cause = "the rank says which are whose, and the order must not depend on it."
        raise Wrong(f"{where} two have the same example:", cause)
    cause = "order the examples as if there were one worker, then share each batch."
    raise Wrong(f"{where} the batch is not that of one worker:", cause)


@check
def batch_share(function: Function) -> str:
    """function(n, rows, step, rank, world, seed): numbers (rows/world,) of a worker's examples."""
    for n, rows in ((38, 12), (30, 6)):
        steps, case = n // rows, f"for {n} examples and {rows} rows"

        def drawn(
            step: int, seed: int = 7, rank: int = 0, world: int = 1, n: int = n, rows: int = rows
        ) -> np.ndarray:
            got = call(function, n, rows, step, rank, world, seed)
            where = f"for {n} examples and {rows} rows, in step {step}, for worker {rank} of "
            return _numbers_of(got, n, rows // world, f"{where}{world},")

        def epoch(number: int, seed: int = 7, steps: int = steps) -> np.ndarray:
            return np.stack([drawn(steps * number + place, seed) for place in range(steps)])

        late = drawn(steps + 1)
        drawn(3 * steps)
        if not np.array_equal(drawn(steps + 1), late):
            cause = "what was asked before must not matter."
            raise Wrong(f"{case}, asked twice for step {steps + 1} you give two batches:", cause)
        _check_epochs([epoch(number) for number in range(12)], n, f"{case},")
        for world in (2, 3):
            for step in (0, steps + 1):
                parts = [drawn(step, 7, rank, world) for rank in range(world)]
                _check_shares(drawn(step), parts, f"{case}, in step {step} with {world} workers,")
        orders = {(s, e): epoch(e, s).tobytes() for s in range(1, 5) for e in range(4)}
        if len(set(orders.values())) < len(orders):
            cause = "do not make one number of seed and epoch."
            raise Wrong(f"{case}, two of four seeds share an epoch:", cause)
    return "whoever comes back knows what this epoch has not seen yet."


Place = Callable[[int, int, int, int], Any]


def _key_places(rank: int, step: int, world: int, block: int) -> Any:
    """Positions in the text of the keys that worker `rank` holds in this step."""
    return (rank - step) % world * block + np.arange(block)


def _ring_average(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray, place: Place = _key_places
) -> np.ndarray:
    """Causal averages (W, b, p) of blocks that travel, masked by these positions of the keys."""
    world, block, width = queries.shape
    total = np.zeros((world, block, 1))
    weighted = np.zeros((world, block, values.shape[2]))
    for step in range(world):
        for rank in range(world):
            owner, i = (rank - step) % world, rank * block + np.arange(block)
            scores = queries[rank] @ keys[owner].T / np.sqrt(width)
            kernel = np.where(place(rank, step, world, block) <= i[:, None], np.exp(scores), 0)
            total[rank] += kernel.sum(axis=1, keepdims=True)
            weighted[rank] += kernel @ values[owner]
    return weighted / total


MISPLACED: tuple[tuple[Place, str], ...] = (
    (lambda r, s, w, b: s * b + np.arange(b), "The step is no position: whose block has arrived?"),
    (lambda r, s, w, b: np.arange(b), "Now every block is masked as if it were the first."),
    (lambda r, s, w, b: (r + s) % w * b + np.arange(b), "Blocks travel the other way round."),
    (lambda r, s, w, b: np.full(b, -1), "Nothing is masked."),
    (lambda r, s, w, b: r * b + np.arange(b), "The keys still have the queries' positions."),
)


def _ring_all_reduce(
    arrays: np.ndarray, back: bool = False, steps: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """What each of W workers ends with (W, n), and how many numbers it sends (2(W − 1), W).

    Args:
        arrays: of shape (W, n), a row per worker.
        back: send to the worker before, not to the next.
        steps: how many are made; all by default.
    """
    world, n = arrays.shape
    pieces = np.array_split(np.arange(n), world)
    held, sent = arrays.copy(), np.zeros((2 * (world - 1), world))
    way = -1 if back else 1
    for step in range(len(sent) if steps is None else steps):
        for rank in range(world):  # no worker sends the piece that it receives in this step
            piece, there = pieces[(rank - way * step) % world], (rank + way) % world
            before = held[there, piece] if step < world - 1 else 0
            held[there, piece] = before + held[rank, piece]
            sent[step, rank] = len(piece)
    return held, sent


RING_AVERAGE = '''
def ring_average(queries, keys, values):
    """Causal averages (W, b, p); worker r begins with block r of all three, (b, d) or (b, p)."""
    world, block, width = queries.shape
    total = np.zeros((world, block, 1))
    weighted = np.zeros((world, block, values.shape[2]))
    for step in range(world):
        for rank in range(world):
            owner = (rank - step) % world
            i = rank * block + np.arange(block)
            j = rank * block + np.arange(block)
            scores = queries[rank] @ keys[owner].T / np.sqrt(width)
            kernel = np.where(j <= i[:, None], np.exp(scores), 0)
            total[rank] += kernel.sum(axis=1, keepdims=True)
            weighted[rank] += kernel @ values[owner]
    return weighted / total
'''


@check
def ring_average(function: Function) -> str:
    """function(queries, keys, values): RING_AVERAGE, mended so that keys have their positions."""
    fault = "j = rank * block + np.arange(block)"
    return repaired(function, RING_AVERAGE, fault=fault, test=_in_order)


def _in_order(function: Function) -> str:
    rng = np.random.default_rng(8)
    for w, b in ((4, 3), (3, 5)):
        q, k, v = (rng.normal(size=(w, b, width)) for width in (4, 4, 2))
        where = f"for {w} workers with {b} tokens each"
        got = call(function, q, k, v)
        causes = [(_ring_average(q, k, v, place), why) for place, why in MISPLACED]
        alone = [_ring_average(q[r, None], k[r, None], v[r, None])[0] for r in range(w)]
        causes.append((np.stack(alone), "Every worker sees its own block alone."))
        expect(got, _ring_average(q, k, v), where, causes)
    return "One worker would never have found it: there both positions are the same."


@check
def ring_all_reduce(function: Function) -> str:
    """function(arrays): what each worker ends with (W, n), and how many numbers it sends when."""
    rng = np.random.default_rng(9)
    large = np.asarray([2.0**60, -(2.0**60), 1, 1, 1])
    for arrays, name in (
        (rng.normal(size=(4, 10)) + 1, "4 workers with 10 numbers each"),
        (rng.normal(size=(3, 6)) + 1, "3 workers with 6 numbers each"),
        (np.stack([rng.permutation(large) for _ in range(13)], axis=1), "some very large numbers"),
    ):
        w, n = arrays.shape
        where = f"for {name}"
        first, second = call_pair(function, arrays)
        right, sent = _ring_all_reduce(arrays)
        sums = np.tile(arrays.sum(axis=0), (w, 1))
        if first.shape == right.shape and np.allclose(first, sums) and np.ptp(first, axis=0).any():
            cause = "a sum is finished once, and then copied."
            raise Wrong(f"{where} the workers end with different last digits:", cause)
        back = _ring_all_reduce(arrays, back=True)
        even = "Pieces are as np.array_split cuts them: of nearly equal lengths, the longer first."
        long = -(-n // w)
        order = "Piece c begins with worker c, and c + 1 adds its own to it, and so on round."
        mistakes = [
            (sums / w, "That is the mean: give the sums."),
            (_ring_all_reduce(arrays, steps=w - 1)[0], "Each has one finished piece: gather all."),
            *((wrong, order) for wrong in (sums, back[0])),
        ]
        expect(first, right, f"{where}, in the sums,", mistakes)
        mistakes = [
            (np.full(sent.shape, n), "Those are whole rows: one piece travels in each step."),
            (np.full(sent.shape, n // w), even),
            (np.full(sent.shape, long), even),
        ]
        expect(second, sent, f"{where}, in the numbers sent,", mistakes)
    return "two times W − 1 short messages, and all workers have the same bits."
