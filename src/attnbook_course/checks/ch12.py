"""Checks for chapter 12. Each knows the usual wrong answers by what they give."""

from collections.abc import Callable
from functools import partial
from math import isqrt
from typing import Any

import numpy as np

from attnbook.attention import softmax
from attnbook_course.checks.call import call, call_pair, call_with_memory_limit
from attnbook_course.checks.repair import repaired
from attnbook_course.checks.split_sums import average_by_parts, wrongly_split
from attnbook_course.checks.verdict import Function, Wrong, check, expect, one_number


def _log_sum_exp(scores: np.ndarray) -> np.ndarray:
    answer: np.ndarray = np.logaddexp.reduce(scores, axis=-1)
    return answer


def _average_first(first: np.ndarray, second: np.ndarray, where: str) -> None:
    """Wrong where the pair is turned round, or has a part that is no number."""
    if first.ndim == 1 and second.ndim == 2:
        raise Wrong(f"{where} the log-sum-exp comes first:", "return the average first.")
    for part in (first, second):
        if np.any(np.isnan(part) | np.isposinf(part)):
            raise Wrong(
                f"{where} you give NaN or ∞:", "only differences of log-sum-exps go into exp."
            )


@check
def merged_averages(function: Function) -> str:
    """function(first, first_lse, second, second_lse): a pair; averages (m, p), logs (m,)."""
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 4, 3)) + 2
    for shift, name in (
        (0.0, "two parts"),
        (1000.0, "large scores"),
        (-1000.0, "small scores"),
        (-np.inf, "an empty second part"),
    ):
        where = f"for {name}"
        p, q = np.asarray([0.5, -1.0, 2.0, -0.3]), np.asarray([1.0, 0.7, -1.5, 0.4]) + shift
        p = p if np.isneginf(shift) else p + shift
        first, second = call_pair(function, a, p, b, q)
        _average_first(first, second, where)
        lse, logs = np.logaddexp(p, q), (p[:, None], q[:, None])
        share = np.exp(q - lse)[:, None]
        by_logs = (logs[0] * a + logs[1] * b) / (logs[0] + logs[1])
        mistakes = [
            ((a + b) / 2, "Both count alike: each counts by what its exponentials sum to."),
            (by_logs, "A log-sum-exp is a logarithm: the shares go by its exponential."),
        ]
        expect(first, a + share * (b - a), f"{where}, in the average,", mistakes)
        mistakes = [
            (p + q, "Totals add, their logarithms do not."),
            (lse - np.maximum(p, q), "You took the larger one off before exp: add it again."),
        ]
        expect(second, lse, f"{where}, in the log-sum-exp,", mistakes)
    return "what a part needs to keep is one average and one number."


@check
def blocks_visited(function: Function) -> str:
    """function(n, block, window): how many blocks a causal window visits; block divides n."""
    for n, b, w in ((200, 4, 8), (96, 8, 20), (96, 8, 17), (60, 5, 60), (96, 8, 1)):
        rows, t = np.arange(n // b), n // b

        def visited(reach: int, rows: np.ndarray = rows) -> int:
            """How many blocks, if a row visits so many before its diagonal one."""
            return int(np.minimum(rows, reach).sum() + len(rows))

        right = visited(-(-(w - 1) // b))
        got = call(function, n, b, w)
        mistakes = [
            (t * t, "Those are all blocks: most of them are hidden."),
            (t * (t + 1) // 2, "That is the causal mask alone: the window hides more."),
            (visited(w // b), "A window that begins inside a block visits that block."),
            (visited((w - 1) // b), "The first query of a row of blocks sees furthest back."),
            (visited(-(-w // b)), "The query is in its window: it sees window − 1 keys before it."),
        ]
        expect(got, right, f"for n = {n}, blocks of {b} and a window of {w}", mistakes, secret=True)
    return "what is hidden costs nothing, except along the edges."


RUNNING_AVERAGE = '''
def running_average(scores, values, block=4):
    """Average (p,) of values (n, p) by scores (n,), a block of keys at a time."""
    top, total, weighted = -np.inf, 0.0, np.zeros(values.shape[1])
    for start in range(0, len(scores), block):
        s, v = scores[start : start + block], values[start : start + block]
        highest = max(top, s.max())
        kernel, shrink = np.exp(s - highest), np.exp(top - highest)
        total = shrink * total + kernel.sum()
        weighted = weighted + kernel @ v
        top = highest
    return weighted / total
'''


@check
def running_average(function: Function) -> str:
    """function(scores, values): RUNNING_AVERAGE, mended so that it rescales what it has."""
    fault = "weighted = weighted + kernel @ v"
    return repaired(function, RUNNING_AVERAGE, fault=fault, test=_rescaled)


def _rescaled(function: Function) -> str:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(11, 2)) + 1
    for s, where in (
        (np.sort(rng.normal(size=11)) * 2, "for scores that rise"),
        (rng.normal(size=11) * 2, "for 11 keys"),
        (np.arange(11) * 40.0 + 600, "for scores up to 1000"),
    ):
        by = partial(_averaged, s, values)
        causes = [
            (by(of_sum=_one), "The sum so far belongs to the old top: rescale it too."),
            (by(lambda f: 1 / f if f else 0.0), "Turned over: a higher top makes it smaller."),
            (by(of_sum=_one, of_total=_one), "Now neither sum is rescaled."),
            (values.mean(axis=0), "All keys count alike."),
        ]
        expect(call(function, s, values), softmax(s[None])[0] @ values, where, causes)
    return "A test whose largest score comes first would never have found it."


Factor = Callable[[float], float]


def _one(factor: float) -> float:
    return 1.0


def _same(factor: float) -> float:
    return factor


def _averaged(
    s: np.ndarray, values: np.ndarray, of_sum: Factor = _same, of_total: Factor = _same
) -> np.ndarray:
    """RUNNING_AVERAGE, with these forms of its factor where it rescales, or does not."""
    top, total, weighted = -np.inf, 0.0, np.zeros(values.shape[1])
    for i in range(0, len(s), 4):
        highest = max(top, s[i : i + 4].max())
        kernel, factor = np.exp(s[i : i + 4] - highest), np.exp(top - highest)
        total = of_total(factor) * total + kernel.sum()
        weighted = of_sum(factor) * weighted + kernel @ values[i : i + 4]
        top = highest
    return weighted / total


@check
def without_part(function: Function) -> str:
    """function(whole, whole_lse, part, part_lse): what merging with the part gave whole; a pair."""
    rng = np.random.default_rng(4)
    rest, part = rng.normal(size=(2, 4, 3)) + 2
    for shift, where in ((0.0, "for 4 queries"), (1000.0, "for large scores")):
        r, p = np.asarray([0.5, -1.0, 0.2, -0.3]) + shift, np.asarray([1.0, 0.7, -1.5, 0.4]) + shift
        total = np.logaddexp(r, p)
        w = np.exp(p - total)[:, None]
        whole = w * part + (1 - w) * rest
        first, second = call_pair(function, whole, total, part, p)
        _average_first(first, second, where)
        mistakes = [
            (whole - part, "The part has a share of the whole: take that much of it off."),
            (whole - w * part, "What is left must be divided by its own share, 1 − w."),
        ]
        expect(first, rest, f"{where}, in the average,", mistakes)
        mistakes = [
            (total - p, "Totals are subtracted, their logarithms are not."),
            (r - total, "That is the logarithm of the share: add the whole's log-sum-exp."),
        ]
        expect(second, r, f"{where}, in the log-sum-exp,", mistakes)
    return "exact on paper; in numbers as good as the share that is left."


@check
def page_written(function: Function) -> str:
    """function(pages, tables, lengths, sequence, key): pages and tables after one more key."""
    rng = np.random.default_rng(5)
    shared, parted = [[5, 2, -1], [5, 2, -1], [7, 1, -1]], [[5, 2, -1], [5, 0, -1], [7, 1, -1]]
    for rows, lengths, who, name in (
        (shared, [5, 5, 4], 2, "a page of its own"),
        (shared, [5, 5, 4], 1, "a page that two sequences share"),
        (shared, [6, 6, 4], 0, "a last page that is full"),
        (parted, [5, 5, 4], 0, "a page that is no longer shared"),
    ):
        pages, key = rng.normal(size=(9, 3, 2)), rng.normal(size=2)
        tables, where, place = np.asarray(rows), f"for {name}", lengths[who]
        slot, free = place // 3, sorted(set(range(9)) - set(np.ravel(rows)))
        new, is_full, is_shared = free[0], place % 3 == 0, name.endswith("share")
        right = _table(tables, who, {slot: new} if is_full or is_shared else {})
        got, table = call_pair(function, pages, tables, np.asarray(lengths), who, key)
        kept = "The last page is full: take a new one."
        moved = np.where(tables == tables[who, slot], new, tables)
        causes = [(tables, kept if is_full else "Another sequence reads that page too: copy it.")]
        if is_shared:
            own = "The other sequence keeps the old page: change the writer's table alone."
            causes.append((moved, own))
        later = [_table(right, who, {slot: page}) for page in free[1:] if is_full or is_shared]
        causes += [(other, "Take the lowest page that no table names.") for other in later]
        expect(table, right, f"{where}, in the tables,", causes)
        if got.shape != pages.shape:
            raise Wrong(f"{where} you give pages of shape {got.shape}, expected {pages.shape}.")
        for one, length in enumerate(lengths):
            before = pages[tables[one]].reshape(9, 2)[:length]
            seen = got[right[one]].reshape(9, 2)
            if one != who:
                changed = [(seen[:length], "Another sequence reads something else now.")]
                expect(seen[:length], before, f"{where}, in what sequence {one} reads,", changed)
                continue
            garbage = np.vstack([pages[right[one]].reshape(9, 2)[:place], key])
            whole = np.vstack([before, key])
            mistakes = [(garbage, "The new page lacks what the old one held: copy it first.")]
            expect(seen[: place + 1], whole, f"{where}, for the writer,", mistakes)
    return "a fork costs one page at most, and that only when somebody writes."


def _table(tables: np.ndarray, sequence: int, changes: dict[int, int]) -> np.ndarray:
    """The tables, with these entries of one sequence changed."""
    changed = tables.copy()
    for slot, page in changes.items():
        changed[sequence, slot] = page
    return changed


@check
def least_traffic(function: Function) -> str:
    """function(n, d, memory): the largest block, and the bytes that travel with it."""
    for n, d, m in ((1010, 8, 800), (300, 16, 5000), (50, 16, 10**6)):
        where = f"for n = {n}, d = {d} and a memory of {m} numbers"

        def block(rows: int, m: int = m, d: int = d) -> int:
            """The largest b with rows · d · b + b² of at most m."""
            return (isqrt((rows * d) ** 2 + 4 * m) - rows * d) // 2

        b = min(block(4), n)
        first, second = (one_number(part, where) for part in call_pair(function, n, d, m))
        t, once = -(-n // b), 8 * n * d
        right = once * (1 + t)
        if np.allclose([first, second], [right, b]):
            raise Wrong(f"{where} the bytes come first:", "return the block first.")
        mistakes: list[tuple[float, str]] = [
            (block(4), "There are only n rows: the block is n at most."),
            (m // (4 * d), "The scores of a block need their place too: block · block numbers."),
            (block(3), "Queries, keys, values and outputs: four times block · d numbers."),
        ]
        expect(first, b, f"{where}, in the block,", mistakes, secret=True)
        mistakes = [
            (2 * once, "Keys and values travel again for each block of queries."),
            (once * (1 + n / b), "The last block of queries reads all keys too: round n/block up."),
        ]
        expect(second, right, f"{where}, in the bytes,", mistakes, secret=True)
    return "the largest block that fits moves the fewest bytes."


@check
def block_gradients(function: Function) -> str:
    """function(g, h, q, k, v, output, lse): gradients (b, d), (b, p) of a block."""
    rng = np.random.default_rng(6)
    for m, b, d, p in ((7, 3, 4, 2), (5, 4, 3, 3)):
        q, keys, values = (rng.normal(size=size) for size in ((m, d), (9, d), (9, p)))
        g, h, inside = rng.normal(size=(m, p)), rng.normal(size=m), slice(2, 2 + b)
        k, v, scale = keys[inside], values[inside], d**-0.5
        every = q @ keys.T * scale
        lse = _log_sum_exp(every)
        output = softmax(every) @ values
        s, shift = every[:, inside], lse[:, None]
        w, own, more = np.exp(s - shift), softmax(s), h[:, None]
        row, gv = (g * output).sum(axis=1, keepdims=True), g @ v.T
        bracket = gv - row + more

        def keys_by(w: Any, of_scores: np.ndarray, q: np.ndarray = q, c: float = scale) -> Any:
            return (w * of_scores).T @ q * c

        first, second = call_pair(function, g, h, q, k, v, output, lse)
        where = f"for {m} queries and a block of {b} keys"
        right = keys_by(w, bracket)
        if d != p and first.shape == (b, p) and second.shape == (b, d):
            raise Wrong(f"{where} the values come first:", "return the gradient of the keys first.")
        mistakes = [
            (own.T @ g, "Those weights sum to 1 in the block: divide by the sum over all keys.")
        ]
        expect(second, w.T @ g, f"{where}, in the values,", mistakes)
        mistakes = [
            (keys_by(w, gv - row), "Where is h? The log-sum-exp depends on the keys too."),
            (keys_by(w, gv + more), "A score lowers the other weights: subtract g · output."),
            (keys_by(w, bracket, c=1.0), "The scores are divided by √d, and so is the gradient."),
        ]
        expect(first, right, f"{where}, in the keys,", mistakes)
    return "one number a row, and the weights are there again."


@check
def bandwidth_gradient(function: Function) -> str:
    """function(g, queries, keys, values, output, lse, bandwidth): a number, in blocks."""
    rng = np.random.default_rng(7)
    for m, n, h in ((6, 5, 0.6), (7, 9, 1.7), (1200, 1250, 0.8)):
        x, z, v, g = (rng.normal(size=size) for size in (m, n, n, m))
        square = (x[:, None] - z) ** 2
        s = -square / (2 * h * h)
        lse = _log_sum_exp(s)
        w = np.exp(s - lse[:, None])
        output = w @ v
        moved = w * (v - output[:, None])  # the output by each score
        right = g @ (moved * square).sum(axis=1) / h**3
        ask = call if m < 100 else call_with_memory_limit
        got = ask(function, g, x, z, v, output, lse, h)
        without = g @ (w * square) @ v / h**3
        kernel = g @ (np.exp(s) * (v - output[:, None]) * square).sum(axis=1) / h**3
        mistakes = [
            (without, "A weight depends on all scores: subtract the output from the value."),
            (right * h, "A score has h² below: its derivative has h³."),
            (right / 2, "The score is −½ (x − x')²/h²: the 2 of the power takes the ½."),
            ((moved * square).sum() / h**3, "Each output counts by its g."),
            (kernel, "Those are kernel values: the log-sum-exp makes them weights."),
        ]
        expect(got, right, f"for {m} queries, {n} keys and h = {h}", mistakes)
    return "one number a row, a block at a time, and a kernel learns its width."


@check
def split_average(function: Function) -> str:
    """function(scores, values, size, tree, bits): the average (p,), by parts kept to some bits."""
    rng = np.random.default_rng(8)
    for n, size, bits in ((48, 4, 7), (37, 3, 6), (40, 1, 8)):
        for tree in (False, True):
            s, v = rng.normal(size=n) * 1.5, rng.normal(size=(n, 8)) + np.linspace(1, 3, n)[:, None]
            got = call(function, s, v, size, tree, bits)
            where = f"for {n} keys, {'a tree' if tree else 'a chain'} and {bits} bits"
            right = average_by_parts(s, v, size, tree, bits)
            expect(got, right, where, wrongly_split(s, v, size, tree, bits))
    return "a tree has few steps, and each adds numbers of one size."
