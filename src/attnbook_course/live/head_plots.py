"""The heads of a model, as its live figures draw them: a map of all, and one head's weights."""

from typing import Any

from bokeh.events import MouseLeave, MouseMove
from bokeh.models import (
    ColumnDataSource,
    CustomJSTickFormatter,
    FixedTicker,
    LinearColorMapper,
    NoOverlap,
)
from bokeh.palettes import cividis

from attnbook._validation import int_between
from attnbook_course.figures import COLOURS
from attnbook_course.live.attention_browser import token_axis
from attnbook_course.live.figure import colour_bar, follow_pointer, framed, plot, squares

PALETTE = cividis(101)


def sources_of(layer: int, head: int) -> dict[str, Any]:
    """What the plots draw: the map and its frame, a matrix and a row of it, arcs and dots."""
    return {
        "cells": ColumnDataSource({"x": [], "y": [], "weight": []}, name="cells"),
        "frame": ColumnDataSource({"x": [], "y": [], "width": []}, name="frame"),
        "arcs": ColumnDataSource(
            {k: [] for k in ("start", "middle", "end", "top", "width")}, name="arcs"
        ),
        "dots": ColumnDataSource({"x": [], "size": []}, name="dots"),
        "asked": ColumnDataSource({"x": []}, name="asked"),
        "all": ColumnDataSource({"x": [], "y": [], "weight": []}, name="all"),
        "chosen_head": ColumnDataSource({"x": [layer], "y": [head]}, name="chosen"),
    }


def check_head(head: tuple[int, int], layers: int, heads: int) -> tuple[int, int]:
    """A layer and a head, both counted from 1."""
    if not isinstance(head, tuple | list) or len(head) != 2:
        raise TypeError(f"head: got {head!r}, expected a pair (layer, head)")
    layer, one = (
        int_between(1, most, head=value) for value, most in zip(head, (layers, heads), strict=True)
    )
    return layer, one


def plots_of(sources: dict[str, Any], shape: tuple[int, int], longest: int) -> tuple[Any, Any, Any]:
    """The map of (layers, heads), and of one head the arcs and the matrix, with room for tokens."""
    room = {"min_border_left": min(28 + 8 * longest, 120), "min_border_right": 8}
    matrix = _matrix(sources, room)
    above = _arcs(sources, matrix.x_range, room)
    down, across = (token_axis(axis) for axis in (matrix.yaxis[0], matrix.xaxis[0]))
    across.major_label_policy = NoOverlap(min_distance=2)
    down.major_label_policy = NoOverlap(min_distance=-4)
    return _overview(sources, *shape), above, matrix


def follow(update: Any, plots: tuple[Any, Any, Any], sliders: tuple[Any, Any, Any]) -> None:
    """A pointer chooses a head on the map, and a token on arcs and matrix."""
    (overview, above, matrix), (layer, head, token) = plots, sliders
    for hovered in (above, matrix):
        for event in (MouseMove, MouseLeave):
            hovered.js_on_event(event, update)
    follow_pointer(overview, x=layer, y=head)
    follow_pointer(above, x=token)
    follow_pointer(matrix, y=token)


def token_name(cases: Any, example: Any = None) -> Any:
    """The token slider's value as the token's text, of the sentence that a select has chosen."""
    code = (
        'const text = cases.data.tokens[Number(example?.value ?? 0)][tick - 1] ?? "";\n'
        'return text.includes("\\n") ? "\u23ce" : text.trim() || "\u2423";'
    )
    return CustomJSTickFormatter(args={"cases": cases, "example": example}, code=code)


def height_of(rows: int) -> int:
    """Of a matrix, in pixels."""
    return rows * min(24, max(13, 380 // rows))


def _colour() -> LinearColorMapper:
    return LinearColorMapper(palette=PALETTE, low=0, high=1)


def _overview(sources: dict[str, Any], layers: int, heads: int) -> Any:
    """A cell for each head, and a frame around the chosen one."""
    ends = {"x_range": (0.5, layers + 0.5), "y_range": (heads + 0.5, 0.5)}
    labels = {"x_axis_label": "layer", "y_axis_label": "head", "x_axis_location": "above"}
    room = {"min_border_left": 46, "min_border_right": 8, "frame_align": False}
    overview = plot(frame_height=18 * heads, **ends, **labels, **room)
    squares(overview, sources["all"], "weight", _colour())
    overview.rect("x", "y", width=1, height=1, source=sources["chosen_head"], **framed(3))
    overview.xaxis.ticker = FixedTicker(ticks=[1, *range(5, layers + 1, 5)])
    overview.yaxis.ticker = FixedTicker(ticks=list(range(1, heads + 1, 2)))
    return overview


def _arcs(sources: dict[str, Any], x_range: Any, room: dict[str, int]) -> Any:
    """What the chosen token attends to: an arc and a dot for each weight."""
    above = plot(frame_height=90, x_range=x_range, y_range=(-0.2, 1), **room)
    above.axis.visible = False
    ends = {"x0": "start", "y0": 0, "x1": "end", "y1": 0, "cx": "middle", "cy": "top"}
    look = {"line_width": "width", "line_color": COLOURS["weights"], "line_alpha": 0.6}
    above.quadratic(source=sources["arcs"], **ends, **look)
    above.scatter("x", 0, size="size", color=COLOURS["weights"], source=sources["dots"])
    look = {"marker": "diamond", "color": COLOURS["other"], "line_color": "white"}
    above.scatter("x", 0, size=14, source=sources["asked"], **look)
    return above


def _matrix(sources: dict[str, Any], room: dict[str, int]) -> Any:
    """The chosen head's weights, queries down, with a frame around the chosen token's row."""
    matrix = plot(
        frame_height=300, x_range=(0.5, 1.5), y_range=(1.5, 0.5), x_axis_location="above", **room
    )
    squares(matrix, sources["cells"], "weight", _colour())
    matrix.rect("x", "y", width="width", height=1, source=sources["frame"], **framed())
    colour_bar(matrix, _colour(), "weight", ticker=FixedTicker(ticks=[0, 0.5, 1]))
    return matrix
