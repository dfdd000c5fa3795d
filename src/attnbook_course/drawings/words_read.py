"""The book's sentence, and what each of its words reads in heads of a published model."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from attnbook import datasets
from attnbook_course.drawings.canvas import Canvas, Drawing, colour, width_of

UNITS = 255  # of a weight of 1, as they are stored
BEST = (14, 9)  # the head, of 270, in which " his" gives " man" the most weight
HIS = 5
SIZE = 19
SHOWN = 0.05  # from here on a weight has a number


@dataclass(frozen=True)
class Stored:
    """What is stored of the sentence.

    Args:
        model: whose weights they are.
        tokens: of the sentence, blanks included.
        units: of each head, by layer and number from 1: an (n, n) array in 1/255.
        all_heads: how many heads the model has.
        largest: the heads in which " his" gives " man" the largest of its weights.
    """

    model: str
    tokens: tuple[str, ...]
    units: dict[tuple[int, int], np.ndarray]
    all_heads: int
    largest: tuple[tuple[int, int], ...]


@cache
def stored() -> Stored:
    """The sentence with the heads that are kept of it (experiments/sentence.py)."""
    found = datasets.results("sentence")
    n = len(found["tokens"])
    units = {}
    for name, numbers in found["heads"].items():
        table = np.zeros((n, n), dtype=int)
        table[np.tril_indices(n)] = [int(one) for one in numbers.split()]
        layer, head = map(int, name.split("."))
        units[layer, head] = table
    largest = tuple((layer, head) for layer, head in found["largest"])
    return Stored(found["model"], tuple(found["tokens"]), units, found["all_heads"], largest)


def weights_of(layer: int, head: int) -> np.ndarray:
    """The weights of one head, an (n, n) array, queries down.

    Args:
        layer: from 1.
        head: from 1.

    Raises:
        ValueError: a head that is not stored.
    """
    have = stored().units
    if (layer, head) not in have:
        names = ", ".join(f"({one}, {other})" for one, other in have)
        raise ValueError(f"heads: got ({layer}, {head}), expected one of {names}")
    return have[layer, head] / UNITS


def sentence(heads: Sequence[tuple[int, int]] = (BEST,), token: int = HIS) -> Drawing:
    """The sentence, and the weights that one word gives to each, as dots.

    Of one head they stand above the words. Of several, each head has a row of dots, and each word a
    column. On the website each word can be touched: the dots are then those of its own weights.

    Args:
        heads: layer and head, from 1, a row of dots for each.
        token: whose weights are shown, from 0.

    Raises:
        ValueError: a head that is not stored, no head, no such token.
    """
    tables, tokens = [weights_of(*one) for one in heads], stored().tokens
    if not tables:
        raise ValueError("heads: got none, expected one or more")
    if not 0 <= token < len(tokens):
        raise ValueError(f"token: got {token}, expected 0 to {len(tokens) - 1}")
    names = [f"layer {layer}, head {head}" for layer, head in heads]
    about = _about(names, tables, token)
    draw = _one_head if len(tables) == 1 else _several_heads
    canvas, radius = draw(tables, token, names, [f"{layer}.{head}" for layer, head in heads], about)
    kept = [[table[i, : i + 1].tolist() for i in range(len(tokens))] for table in tables]
    units = [[[round(UNITS * w) for w in line] for line in table] for table in kept]
    canvas.data = {
        "words": json.dumps([one.strip() for one in tokens]),
        "units": json.dumps(units, separators=(",", ":")),
        "heads": json.dumps(names),
        "radius": f"{radius:g}",
        "asks": str(token),
    }
    return canvas.drawing()


def _one_head(
    tables: Sequence[np.ndarray], token: int, names: Sequence[str], _: object, about: str
) -> tuple[Canvas, float]:
    """A dot above each word, its number below, and the largest in words; the dot of a weight 1."""
    (table,), tokens = tables, stored().tokens
    row, tall, radius = 44, 94, 21.0
    places, lines = _places(tokens, 8, 30)
    height = 64 + tall * lines
    canvas = Canvas("sentence", height, about)
    canvas.text(8, 14, f"{stored().model}, {names[0]}", anchor="start", bold=True)
    for k, (x, line, width) in enumerate(places):
        top, weight = 30 + tall * line, float(table[token, k])
        with canvas.group(data_token=k):
            _touched(canvas, x, top, width + 10, tall - 4)
            _dot(canvas, x, top + row / 2, weight, radius, 0)
            _word(canvas, x, top + row + 13, token, k, size=SIZE)
            canvas.text(x, top + row + 34, _number(weight) or "\u2007", "weights")
    canvas.text(240, height - 14, said(tokens, table[token], token), "output", part="said")
    return canvas, radius


def _several_heads(
    tables: Sequence[np.ndarray], token: int, names: Sequence[str], short: Sequence[str], about: str
) -> tuple[Canvas, float]:
    """A row of dots for each head, a column for each word; the dot of a weight 1."""
    tokens, first, row, radius = stored().tokens, 92, 22, 10.5
    left, wide = 48, 26.5
    canvas = Canvas("sentence", first + row * len(tables) + 6, about)
    canvas.text(8, 14, f"{stored().model}, {len(names)} heads", anchor="start", bold=True)
    for h, name in enumerate(short):
        y = first + row * (h + 0.5)
        canvas.text(8, y, name, "keys", anchor="start")
        canvas.line((left, y), (left + wide * len(tokens), y), width=0.4)
    for k in range(len(tokens)):
        x = left + wide * (k + 0.5)
        with canvas.group(data_token=k):
            _touched(canvas, x, first - 16, wide - 2, row * len(tables) + 20)
            for h, table in enumerate(tables):
                _dot(canvas, x, first + row * (h + 0.5), float(table[token, k]), radius, h)
            _word(canvas, x - 3, first - 8, token, k, anchor="start", turn=-50)
    return canvas, radius


def _touched(canvas: Canvas, x: float, top: float, width: float, height: float) -> None:
    """Where a word can be touched."""
    look = {"rx": 6, "fill": "none", "pointer_events": "all"}
    canvas.add("rect", x=x - width / 2, y=top, width=width, height=height, **look)


def _dot(canvas: Canvas, x: float, y: float, weight: float, full: float, row: int) -> None:
    canvas.add("circle", cx=x, cy=y, r=_radius(weight, full), data_row=row, fill=colour("weights"))


def _word(canvas: Canvas, x: float, y: float, asks: int, k: int, **how: Any) -> None:
    """A word of the sentence; that which asks has the colour of queries."""
    role = "queries" if k == asks else "ink"
    canvas.text(x, y, stored().tokens[k].strip(), role, bold=k == asks, **how)


def _radius(weight: float, full: float) -> float:
    """Of a dot whose area is the weight; 0 of none."""
    return full * math.sqrt(weight)


def _number(weight: float) -> str:
    return f"{weight:.2f}" if weight >= SHOWN else ""


def _places(
    tokens: Sequence[str], left: float, gap: float
) -> tuple[list[tuple[float, int, float]], int]:
    """Of each token the middle, the line and the width; and how many lines there are."""
    widths = [max(width_of(one.strip(), 1.06 * SIZE), 30) for one in tokens]
    places: list[tuple[float, int, float]] = []
    x, line = left + 6, 0
    for width in widths:
        if x + width > 472:
            x, line = left + 6, line + 1
        places.append((x + width / 2, line, width))
        x += width + gap / 2
    return places, line + 1


def said(tokens: Sequence[str], weights: np.ndarray, token: int) -> str:
    """What a token reads, in words: its three largest weights, if they are worth a number."""
    order = [int(k) for k in np.argsort(-weights[: token + 1], kind="stable")[:3]]
    shown = [f"{tokens[k].strip()} {weights[k]:.2f}" for k in order if weights[k] >= SHOWN]
    return f"“{tokens[token].strip()}” reads {', '.join(shown)}"


def _about(names: Sequence[str], tables: Sequence[np.ndarray], token: int) -> str:
    tokens = stored().tokens
    text = "".join(tokens[1:])
    shares = "; ".join(
        f"{name}: {said(tokens, table[token], token)}"
        for name, table in zip(names, tables, strict=True)
    )
    return f"The sentence “{text}” with a dot on each word, as large as its weight. {shares}."
