"""The book's sentence, and what each of its words reads in heads of a published model."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from attnbook import datasets
from attnbook_course.drawings.canvas import Canvas, Drawing, colour

UNITS = 255  # of a weight of 1, as they are stored
BEST = (14, 9)  # the head, of 270, in which " his" gives " man" the most weight
HIS = 5
SIZE = 19
SHOWN = 0.05  # from here on a weight has a number


@cache
def stored() -> tuple[str, list[str], dict[tuple[int, int], np.ndarray]]:
    """The model, the sentence's tokens, and of some heads an (n, n) array in 1/255.

    A head is known by its layer and its number, both from 1 (experiments/sentence.py).
    """
    found = datasets.results("sentence")
    tokens = [one.strip() for one in found["tokens"]]
    units = {}
    for name, entries in found["heads"].items():
        table = np.zeros((len(tokens), len(tokens)), dtype=int)
        table[np.tril_indices(len(tokens))] = [int(one) for one in entries.split()]
        layer, head = map(int, name.split("."))
        units[layer, head] = table
    return found["model"], tokens, units


def weights_of(layer: int, head: int) -> np.ndarray:
    """The weights of one head, an (n, n) array, queries down.

    Args:
        layer: from 1.
        head: from 1.

    Raises:
        ValueError: a head that is not stored.
    """
    units = stored()[2]
    if (layer, head) not in units:
        names = ", ".join(f"({one}, {other})" for one, other in units)
        raise ValueError(f"heads: got ({layer}, {head}), expected one of {names}")
    return units[layer, head] / UNITS


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
    tables, tokens = [weights_of(*one) for one in heads], stored()[1]
    if not tables:
        raise ValueError("heads: got none, expected one or more")
    if token not in range(len(tokens)):
        raise ValueError(f"token: got {token!r}, expected 0 to {len(tokens) - 1}")
    names = [f"layer {layer}, head {head}" for layer, head in heads]
    about = _about(names, tables, token)
    if len(tables) == 1:
        canvas, radius = _one_head(tables[0], token, names[0], about)
    else:
        short = [f"{layer}.{head}" for layer, head in heads]
        canvas, radius = _several_heads(tables, token, short, about)
    units = [[[round(UNITS * w) for w in row[: i + 1]] for i, row in enumerate(t)] for t in tables]
    canvas.data = {
        "words": json.dumps(tokens),
        "units": json.dumps(units, separators=(",", ":")),
        "heads": json.dumps(names),
        "radius": f"{radius:g}",
        "asks": str(token),
    }
    return canvas.drawing()


def _one_head(table: np.ndarray, token: int, name: str, about: str) -> tuple[Canvas, float]:
    """A dot above each word, its number below, and the largest in words; the dot of a weight 1."""
    model, tokens, _ = stored()
    tall, radius, places = 94, 21.0, _places(tokens)
    height = 64 + tall * (places[-1][1] + 1)
    canvas = Canvas("sentence", height, about)
    canvas.text(8, 14, f"{model}, {name}", anchor="start", bold=True)
    for k, (x, line, width) in enumerate(places):
        top, weight = 30 + tall * line, float(table[token, k])
        with canvas.group(data_token=k):
            _touched(canvas, x, top, width + 10, tall - 4)
            _dot(canvas, x, top + 22, weight, radius, 0)
            _word(canvas, x, top + 57, token, k, size=SIZE)
            number = f"{weight:.2f}" if weight >= SHOWN else "\u2007"
            canvas.text(x, top + 78, number, "weights")
    canvas.text(240, height - 14, said(tokens, table[token], token), "output", part="said")
    return canvas, radius


def _several_heads(
    tables: Sequence[np.ndarray], token: int, names: Sequence[str], about: str
) -> tuple[Canvas, float]:
    """A row of dots for each head, a column for each word; the dot of a weight 1."""
    model, tokens, _ = stored()
    first, row, radius, left, wide = 92, 22, 10.5, 48, 26.5
    canvas = Canvas("sentence", first + row * len(tables) + 6, about)
    canvas.text(8, 14, f"{model}, {len(names)} heads", anchor="start", bold=True)
    for h, name in enumerate(names):
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
    """A dot whose area is the weight."""
    radius = full * math.sqrt(weight)
    canvas.add("circle", cx=x, cy=y, r=radius, data_row=row, fill=colour("weights"))


def _word(canvas: Canvas, x: float, y: float, asks: int, k: int, **how: Any) -> None:
    """A word of the sentence; that which asks has the colour of queries."""
    role = "queries" if k == asks else "ink"
    canvas.text(x, y, stored()[1][k], role, bold=k == asks, **how)


def _places(tokens: Sequence[str]) -> list[tuple[float, int, float]]:
    """Of each token the middle, the line and about the width."""
    places: list[tuple[float, int, float]] = []
    x, line = 14.0, 0
    for token in tokens:
        narrow = sum(letter in "iljtfrI" for letter in token)
        width = max(1.06 * SIZE * (0.57 * len(token) - 0.25 * narrow), 30)
        if x + width > 472:
            x, line = 14.0, line + 1
        places.append((x + width / 2, line, width))
        x += width + 15
    return places


def said(tokens: Sequence[str], weights: np.ndarray, token: int) -> str:
    """What a token reads, in words: its three largest weights, if they are worth a number."""
    order = [int(k) for k in np.argsort(-weights[: token + 1], kind="stable")[:3]]
    shown = [f"{tokens[k]} {weights[k]:.2f}" for k in order if weights[k] >= SHOWN]
    return f"“{tokens[token]}” reads {', '.join(shown)}"


def _about(names: Sequence[str], tables: Sequence[np.ndarray], token: int) -> str:
    tokens = datasets.results("sentence")["tokens"]
    shares = "; ".join(
        f"{name}: {said(stored()[1], table[token], token)}"
        for name, table in zip(names, tables, strict=True)
    )
    text = "".join(tokens[1:])
    return f"The sentence “{text}” with a dot on each word, as large as its weight. {shares}."
