"""The book's sentence, and what each of its words reads in heads of a published model."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from attnbook import datasets
from attnbook.drawings.canvas import Canvas, Drawing, width_of

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
    """The sentence with the heads that are kept of it (benchmarks/sentence.py)."""
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
    """The sentence, and above each word the weights that one word gives it, as dots.

    On the website each word can be touched: the dots are then those of its own weights.

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
    one = len(tables) == 1
    names = [f"layer {layer}, head {head}" for layer, head in heads]
    row, radius, left = (44, 21, 8) if one else (18, 8.5, 58)
    places, lines = _places(tokens, left, 30 if one else 26)
    tall = row * len(tables) + (50 if one else 36)
    height = 30 + tall * lines + 34 * one
    canvas = Canvas("sentence", height, _about(names, tables, token))
    kept = [[table[i, : i + 1].tolist() for i in range(len(tokens))] for table in tables]
    units = [[[round(UNITS * w) for w in line] for line in table] for table in kept]
    canvas.data = {
        "words": json.dumps([one.strip() for one in tokens]),
        "units": json.dumps(units, separators=(",", ":")),
        "heads": json.dumps(names),
        "radius": f"{radius:g}",
        "asks": str(token),
    }
    title = f"{stored().model}, {names[0]}" if one else f"{stored().model}, {len(names)} heads"
    canvas.text(8, 14, title, anchor="start", bold=True)
    for k, (x, line, width) in enumerate(places):
        top = 30 + tall * line
        ends = top + row * len(tables)
        with canvas.group(data_token=k):
            canvas.add(
                "rect", x=x - width / 2 - 5, y=top, width=width + 10, height=tall - 4, rx=6,
                fill="none", pointer_events="all",
            )  # fmt: skip
            for h, table in enumerate(tables):
                weight = float(table[token, k])
                r = _radius(weight, radius)
                canvas.add("circle", cx=x, cy=top + row * (h + 0.5), r=r, data_row=h,
                           fill="var(--drawing-weights, #d55e00)")  # fmt: skip
            role = "queries" if k == token else "ink"
            canvas.text(x, ends + 13, tokens[k].strip(), role, size=SIZE, bold=k == token)
            if one:
                share = float(tables[0][token, k])
                canvas.text(x, ends + 34, _number(share) or "\u2007", "weights")
    if not one:
        for line in range(lines):
            for h, (layer, head) in enumerate(heads):
                canvas.text(8, 30 + tall * line + row * (h + 0.5), f"{layer}.{head}", "keys",
                            anchor="start")  # fmt: skip
    else:
        canvas.text(240, height - 14, said(tokens, tables[0][token], token), "output",
                    part="said")  # fmt: skip
    return canvas.drawing()


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
