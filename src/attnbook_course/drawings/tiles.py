"""Drawings of the exact average in pieces: parts that combine, tiles of a table, pages."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from attnbook._validation import int_between, positive_int
from attnbook.exact import flash, online_softmax
from attnbook_course.drawings.canvas import Canvas, Drawing

SCORES = ((1.2, 2.0, 0.4, 1.6), (3.0, 0.7, 2.4))
VALUES = ((1.0, 3.0, 2.0, 4.0), (5.0, 2.0, 6.0))
Allowed = Callable[[np.ndarray, np.ndarray], np.ndarray]


def parts(
    scores: Sequence[Sequence[float]] = SCORES, values: Sequence[Sequence[float]] = VALUES
) -> Drawing:
    """Two groups of keys, each summed up on its own, and how the two become one.

    Args:
        scores: of one query with the keys of both groups, two to four each.
        values: what is averaged, as many.

    Raises:
        ValueError: other numbers of groups or keys.
    """
    sizes = [len(group) for group in scores]
    if len(sizes) != 2 or not all(2 <= n <= 4 for n in sizes):
        raise ValueError(f"scores: got groups of {sizes}, expected two groups of two to four")
    if [len(group) for group in values] != sizes:
        raise ValueError(f"values: got groups of {[len(g) for g in values]}, expected {sizes}")
    canvas = Canvas(
        "parts",
        556,
        "Two groups of keys. Each has its top score, the total of its exponentials and a weighted "
        "average. Both are rescaled to the higher top, and added up to one part: the average of "
        "all keys.",
    )
    found = [
        online_softmax.partial(np.array([of]), np.array(y)[:, None])
        for of, y in zip(scores, values, strict=True)
    ]
    both = online_softmax.combine(*found)
    finish: Callable[[Any], Any] = online_softmax.finish
    top, every = float(both.top[0]), sum(sizes)
    for y, label, role in (
        *((56, "scores", "ink"), (98, "weights", "weights"), (142, "values", "values")),
        *((204, "top", "ink"), (234, "total", "weights"), (264, "average", "output")),
        *((400, "weights", "weights"), (444, "top", "ink"), (474, "total", "weights")),
        (516, "average", "output"),
    ):
        canvas.text(4, y, label, role, anchor="start", bold=True)
    places = [100 + 364 * (j + (0.25 if j < sizes[0] else 0.75)) / every for j in range(every)]
    groups = (places[: sizes[0]], places[sizes[0] :])
    for name, here, group, of, part in zip("AB", groups, scores, values, found, strict=True):
        t = float(part.top[0])
        shares = np.exp(np.array(group) - t).tolist()
        middle, wide = (here[0] + here[-1]) / 2, here[-1] - here[0] + 44
        canvas.box(middle, 98, wide, 130, fill=0.05)
        canvas.text(middle, 16, f"part {name}", bold=True)
        for x, score, share, value in zip(here, group, shares, of, strict=True):
            canvas.text(x, 56, f"{score:.1f}")
            canvas.dots([(x, 98)], [share], radius=15, full=1)
            canvas.text(x, 142, f"{value:.0f}", "values")
        canvas.arrow((middle, 165), (middle, 182))
        canvas.box(middle, 234, 132, 98, role="output", fill=0.06)
        canvas.text(middle, 204, f"{t:.1f}")
        canvas.text(middle, 234, f"{part.total[0]:.2f}", "weights")
        canvas.text(middle, 264, f"{finish(part)[0].item():.2f}", "output")
        scale = math.exp(t - top)
        canvas.arrow((middle, 286), (middle, 348), role="weights", width=1 + 5 * scale)
        factor = f"× e^{{{t:.1f} − {top:.1f}}} = {scale:.2f}"
        canvas.text(middle - 16, 314, factor, "weights", anchor="end")
    middle = (places[0] + places[-1]) / 2
    canvas.box(middle, 446, places[-1] - places[0] + 44, 182, role="output", fill=0.06)
    canvas.text(middle, 368, "one part", bold=True)
    joint = np.exp(np.array([s for group in scores for s in group]) - top).tolist()
    canvas.dots([(x, 400) for x in places], joint, radius=15, full=1)
    canvas.text(middle, 444, f"{top:.1f}")
    canvas.text(middle, 474, f"{both.total[0]:.2f}", "weights")
    canvas.text(middle, 516, f"{finish(both)[0].item():.2f}", "output", bold=True, size=18)
    return canvas.drawing()


def flash_blocks(
    queries: int = 256, keys: int = 320, block: int = 64, head_dim: int = 32, row: int = 2
) -> Drawing:
    """The table of scores in tiles: one row of tiles is walked, with a running part beside it.

    Args:
        queries: m, of which the table has as many rows.
        keys: n, its columns.
        block: queries or keys of a tile.
        head_dim: d, of a query, a key and a value.
        row: the row of tiles that is walked, counted from 1.

    Raises:
        ValueError: tiles that do not cover the table, more than five, or no such row.
    """
    c = positive_int(block=block)
    d = positive_int(head_dim=head_dim)
    shape = []
    for name, size in (("queries", queries), ("keys", keys)):
        count, rest = divmod(size, c)
        if rest or not 2 <= count <= 5:
            raise ValueError(f"{name}: got {size}, expected two to five blocks of {c}")
        shape.append(count)
    down, across = shape
    i = int_between(1, shape[0], row=row) - 1
    now, wide, tall, left, top = across // 2, 48.0, 56.0, 62.0, 110.0
    canvas = Canvas(
        "flash_blocks",
        top + down * tall + 98,
        f"The table of {queries} × {keys} scores in tiles of {c} × {c}. One row of tiles is "
        "walked from left to right. A tile of keys and values is loaded, its weights join a "
        "running part, and the tile is forgotten.",
    )
    canvas.text(left + across * wide / 2, 12, f"{c} × {d} each")
    for j in range(across):
        loaded, x = j == now, left + (j + 0.5) * wide
        for y, name, role in ((40.0, "V", "values"), (78.0, "K", "keys")):
            canvas.box(x, y, 42, 32, f"{name}_{j + 1}", role, fill=0.4 if loaded else 0.06)
    for k in range(down):
        y = top + (k + 0.5) * tall
        canvas.box(30, y, 46, 32, f"Q_{k + 1}", "queries", fill=0.4 if k == i else 0.06)
        for j in range(across):
            shade = 0.18 if k == i and j < now else 0
            x = left + (j + 0.5) * wide
            canvas.box(x, y, wide - 4, tall - 4, fill=shade, radius=2, dashed=True, edge=1)
        if k != i:
            made = k < i
            canvas.box(400, y, 46, 28, f"O_{k + 1}", "output", fill=0.4 * made, dashed=not made)
    x, y = left + (now + 0.5) * wide, top + (i + 0.5) * tall
    canvas.arrow((x, 95), (x, y - tall / 2 - 2), role="keys", width=2.5)
    canvas.arrow((x + wide / 2 + 2, y), (322, y), role="weights", width=2.5)
    _tile(canvas, x, y, wide, tall)
    canvas.box(400, y, 152, 70, role="output", fill=0.06)
    for k, (label, role) in enumerate(
        ((f"top {c}", "ink"), (f"total {c}", "weights"), (f"weighted {c} × {d}", "output"))
    ):
        canvas.text(400, y + 21 * (k - 1), label, role)
    low = top + down * tall
    canvas.text(8, low + 24, f"in fast memory: one tile {c} × {c}", "weights", anchor="start")
    canvas.text(8, low + 50, f"kept: one part of {c} queries", "output", anchor="start")
    canvas.text(8, low + 76, f"never stored: {queries} × {keys}", anchor="start", bold=True)
    return canvas.drawing()


def _tile(canvas: Canvas, x: float, y: float, wide: float, tall: float) -> None:
    """The tile that is computed: its weights as dots."""
    canvas.box(x, y, wide - 2, tall - 2, role="weights", fill=0.15, radius=2, edge=2.5)
    weights = np.random.default_rng(2).uniform(0.05, 1, 9)
    places = [(x + 14 * (k % 3 - 1), y + 16 * (k // 3 - 1)) for k in range(9)]
    canvas.dots(places, weights.tolist(), radius=7, full=1)


def masks(window: int, ends: Sequence[int]) -> dict[str, Allowed]:
    """Three masks: of the past, of the near past, of the past in the same document.

    Args:
        window: how many tokens a query sees in the second, itself included.
        ends: where the documents of the third end.

    Returns:
        Whether query i may look at key j, functions of arrays, by name.
    """

    def document(place: np.ndarray) -> np.ndarray:
        return np.searchsorted(ends, place, side="right")

    return {
        "causal": lambda i, j: j <= i,
        "window": lambda i, j: (j <= i) & (i - j < window),
        "documents": lambda i, j: (j <= i) & (document(i) == document(j)),
    }


def block_masks(
    tokens: int = 24, block: int = 4, *, window: int = 10, ends: Sequence[int] = (6, 16, 24)
) -> Drawing:
    """Three masks in tiles: what is empty is skipped, what is full needs no mask.

    Args:
        tokens: n, a multiple of the block, at most 32.
        block: c, queries or keys of a tile.
        window: how many tokens a query sees in the second mask.
        ends: where the documents of the third end; the last is n.

    Raises:
        ValueError: tiles or documents that do not cover the tokens.
    """
    n, c = int_between(1, 32, tokens=tokens), positive_int(block=block)
    if n % c:
        raise ValueError(f"block: got {c}, expected a divisor of {n} tokens")
    if ends[-1] != n or list(ends) != sorted(set(ends)):
        raise ValueError(f"ends: got {list(ends)}, expected rising ends, the last {n}")
    side = 138.0
    cell = side / n
    canvas = Canvas(
        "block_masks",
        320,
        "Three masks cut into tiles: causal, a window, documents. Tiles in which no pair may meet "
        "are empty and skipped, full ones need no mask, partial ones need it.",
    )
    for left, (name, allowed) in zip((10, 171, 332), masks(window, ends).items(), strict=True):
        pairs = allowed(np.arange(n)[:, None], np.arange(n))
        kinds = flash.block_kinds(allowed, n, n, c)
        canvas.text(left + side / 2, 14, name, bold=True)
        for (a, b), kind in np.ndenumerate(kinds):
            x, y = left + b * c * cell, 32 + a * c * cell
            shown = pairs[a * c : (a + 1) * c, b * c : (b + 1) * c]
            _mask_tile(canvas, (x, y), int(kind), shown, cell)
        canvas.box(left + side / 2, 32 + side / 2, side, side, fill=0, radius=0)
        for kind, word in ((2, "full"), (1, "partial"), (0, "empty")):
            y = 198 + 32 * (2 - kind)
            corner = np.tri(c, dtype=bool) if kind == 1 else np.full((c, c), kind == 2)
            _mask_tile(canvas, (left + 6, y - 10), kind, corner, 20 / c)
            canvas.text(left + 36, y, f"{(kinds == kind).sum()} {word}", anchor="start")
    canvas.text(240, 302, "keys across, queries down", "keys")
    return canvas.drawing()


def _mask_tile(
    canvas: Canvas, corner: tuple[float, float], kind: int, allowed: np.ndarray, cell: float
) -> None:
    """One tile: full is filled, partial shows its pairs within a frame, empty is a thin frame."""
    (x, y), wide = corner, cell * len(allowed)
    full = kind == 2
    middle = (x + wide / 2, y + wide / 2)
    if kind == 1:
        for i, row in enumerate(allowed):
            (seen,) = np.nonzero(row)
            if len(seen):
                wide_row = cell * (seen[-1] - seen[0] + 1)
                at = x + cell * seen[0] + wide_row / 2, y + cell * (i + 0.5)
                canvas.box(*at, wide_row, cell, role="weights", fill=0.5, radius=0, edge=0)
    role = "weights" if kind else "line"
    canvas.box(
        *middle, wide, wide, role=role, fill=0.85 * full, radius=0, edge=1.2 if kind else 0.4
    )


def page_table(tokens: int = 10, page_size: int = 4, pages: int = 7) -> Drawing:
    """Two sequences' tables of pages: a fork shares all pages but the one that both write.

    Args:
        tokens: how many both have in common; each then has one more of its own.
        page_size: tokens of a page.
        pages: of the pool, at most 7.

    Raises:
        ValueError: more pages than the pool has, or than fit.
    """
    size = int_between(2, 5, page_size=page_size)
    total = int_between(2, 7, pages=pages)
    common = positive_int(tokens=tokens)
    shared, need = common // size, common // size + 1
    if need + 1 > total or need > 4:
        raise ValueError(
            f"tokens: got {common}, expected at most {size * min(total - 1, 4) - 1} in "
            f"{total} pages of {size}"
        )
    order = [k for k in (4, 1, 5, 2, 0, 3, 6) if k < total]
    tables = {"A": order[:need], "B": [*order[:shared], order[need]]}
    canvas = Canvas(
        "page_table",
        98 + 56 * total,
        f"A pool of {total} pages of {size} tokens. Two sequences have {common} tokens in common; "
        f"their tables point to the same {shared} pages, and to one page of their own.",
    )
    canvas.text(240, 14, f"pool of {total} pages", bold=True)
    users = {k: [name for name, table in tables.items() if k in table] for k in range(total)}
    for k in range(total):
        _page(canvas, 62 + 56 * k, k, users[k], _written(tables, k, common, size), size)
    for name, x, side in (("A", 44, 1), ("B", 436, -1)):
        role = "queries" if name == "A" else "output"
        canvas.text(x, 114, name if name == "A" else "B, a fork", role, bold=True)
        for row, k in enumerate(tables[name]):
            y = 150 + 46 * row
            canvas.box(x, y, 50, 34, str(k + 1), role, bold=True)
            end = (240 - side * 92, 62 + 56 * k)
            canvas.arrow((x + side * 27, y), end, role=role, width=2)
    used = sum(bool(names) for names in users.values())
    apart = sum(len(table) for table in tables.values())
    canvas.text(
        240, 62 + 56 * total - 6, f"{used} pages in use, {apart} without sharing", bold=True
    )
    return canvas.drawing()


def _written(tables: Mapping[str, Sequence[int]], k: int, common: int, size: int) -> list[str]:
    """What page k holds: numbers of tokens, the last of each sequence with its name."""
    for name, table in tables.items():
        if k in table:
            first = 1 + size * table.index(k)
            held = [str(t) for t in range(first, min(first + size, common + 1))]
            return held if len(held) == size else [*held, f"{common + 1}{name}"]
    return []


def _page(
    canvas: Canvas, y: float, k: int, users: Sequence[str], held: Sequence[str], size: int
) -> None:
    """A page: its number, a slot for each token; a free one has a dashed frame."""
    canvas.box(240, y, 176, 44, role="keys", fill=0.12 * len(users), dashed=not users)
    canvas.text(166, y, str(k + 1), "keys", bold=True)
    wide = 144 / size
    for j in range(size):
        word = held[j] if j < len(held) else ""
        own = word.endswith(("A", "B"))
        role = ("queries" if word.endswith("A") else "output") if own else "keys"
        at = 180 + wide * (j + 0.5)
        canvas.box(at, y, wide - 4, 32, word, role, fill=0.2 if word else 0, radius=3, edge=1)
