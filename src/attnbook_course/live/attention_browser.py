"""Live figure of chapters 4, 6 and 8: the attention matrices of a trained model, row by row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, FixedTicker, NoOverlap

from attnbook_course.figures import COLOURS
from attnbook_course.live import figure


@dataclass(frozen=True)
class Attention:
    """The weights with which every query of one example attends to every key.

    Args:
        title: what the example is called.
        rows: a token for each of m queries.
        columns: a token for each of n keys; a token may come more than once.
        weights: an array of shape (m, n) for each head, by the head's name; each row sums to 1,
            or to 0 where a query may attend to nothing.

    Raises:
        ValueError: weights that are none or do not fit the tokens.
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    weights: Mapping[str, Any]

    def __post_init__(self) -> None:
        expected = (len(self.rows), len(self.columns))
        for head, given in self.weights.items():
            array = np.asarray(given, dtype=float)
            if array.shape != expected:
                raise ValueError(
                    f"weights: got {array.shape} for head {head}, expected {expected}, rows by "
                    "columns"
                )
            sums = array.sum(axis=1)
            one_or_none = np.isclose(sums, 1, atol=1e-2) | (sums == 0)  # half precision, no key
            if not (np.all(array >= 0) and np.all(one_or_none)):
                raise ValueError(
                    f"weights: got rows of head {head} that are no weights, expected numbers from "
                    "0 to 1 that sum to 1"
                )

    def percent(self) -> list[np.ndarray]:
        """The weights of each head in whole per cent, row after row: a byte each in the page."""
        return [
            np.rint(100 * np.asarray(w, dtype=float)).astype(np.uint8).ravel()
            for w in self.weights.values()
        ]


def attention_browser(
    cases: Sequence[Attention], *, name: str, units: tuple[str, str]
) -> figure.LiveFigure:
    """Attention matrices to leaf through: queries down, keys across, and one row as bars.

    Args:
        cases: the examples, one or more, all with the same heads.
        name: of the element in the page; one a page.
        units: what a row and a column are called, for example letter and word.

    Raises:
        ValueError: cases whose heads differ.
    """
    heads = list(cases[0].weights)
    for case in cases:
        if list(case.weights) != heads:
            raise ValueError(f"cases: got heads {list(case.weights)}, expected {heads} as in first")
    query, key = units
    data = ColumnDataSource(
        {
            "rows": [figure.visible(case.rows) for case in cases],
            "columns": [figure.visible(case.columns) for case in cases],
            "percent": [case.percent() for case in cases],
            "height": [_height(len(case.rows)) for case in cases],
        },
        name="cases",
    )
    cells = ColumnDataSource({"x": [], "y": [], "weight": []}, name="cells")
    frame = ColumnDataSource({"x": [0.0], "y": [0.0], "width": [0.0]}, name="frame")
    bars = ColumnDataSource({"x": [], "weight": []}, name="bars")

    # the same room on the left, so that a bar stands above its column; one axis between them
    longest = max(len(token) for case in cases for token in case.rows)
    room = {"min_border_left": min(44 + 8 * longest, 120), "min_border_right": 8}
    matrix = _matrix(cells, frame, (key, query), room)
    above = figure.plot(
        frame_height=100, x_range=matrix.x_range, y_range=(0, 1), y_axis_label="weight", **room
    )
    above.xaxis.visible = False
    above.yaxis.ticker = FixedTicker(ticks=[0, 0.5, 1])
    above.vbar("x", width=0.7, top="weight", color=COLOURS["weights"], source=bars)
    down, across = (figure.token_axis(axis) for axis in (matrix.yaxis[0], matrix.xaxis[0]))
    across.major_label_policy = NoOverlap(min_distance=2)  # many columns on a phone
    down.major_label_policy = NoOverlap(min_distance=-4)  # rows that are lower than a line

    titles = [(str(i), case.title) for i, case in enumerate(cases)]
    numbered = [(str(i), one) for i, one in enumerate(heads)]
    controls = {
        "example": figure.menu("example", "example", titles, visible=len(cases) > 1, min_width=160),
        "head": figure.menu("head", "head", numbered, visible=len(heads) > 1, min_width=140),
        "row": figure.slider(f"{query}, counted from the top", "row", (1, 2), 1, min_width=230),
    }
    drawn = {"matrix": matrix, "down": down, "across": across, "query": query}
    sources = {"cases": data, "cells": cells, "frame": frame, "bars": bars}
    scripts = "wording.js", "attention_browser.js"
    figure.updated_by(scripts, controls, words=(text := figure.words(2)), **sources, **drawn)
    figure.follow_pointer(matrix, y=controls["row"])
    several = len(cases) > 1
    return figure.LiveFigure(
        name,
        "Attention, row by row",
        figure.arranged((above, matrix), (text, figure.beside(*controls.values()))),
        "The attention weights of a trained model on "
        f"{f'{len(cases)} examples' if several else 'one example'}: a {query} a row, a {key} a "
        f"column. Choose {'an example and ' if several else ''}a row: the bars and the text give "
        "its weights.",
        min_height=27 + _height(len(cases[0].rows)) // 16,
    )


def _height(rows: int) -> int:
    """Of a matrix, in pixels: at least the 11 that a small label takes, for each row."""
    return rows * min(24, max(11, 440 // rows))


def _matrix(cells: Any, frame: Any, labels: tuple[str, str], room: dict[str, int]) -> Any:
    """The heat map, its first row on top, with a frame around the chosen row."""
    ends = {"x_range": (0.5, 1.5), "y_range": (1.5, 0.5), "x_axis_location": "above"}
    titles = {"x_axis_label": labels[0], "y_axis_label": labels[1]}
    matrix = figure.plot(frame_height=200, **ends, **titles, **room)
    colours = figure.squares(matrix, cells, "weight")
    matrix.rect("x", "y", width="width", height=1, source=frame, **figure.framed())
    figure.colour_bar(matrix, colours, "weight", ticker=FixedTicker(ticks=[0, 0.5, 1]))
    return matrix
