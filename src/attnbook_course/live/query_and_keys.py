"""Chapter 3's live figure: a query to move among the keys, and the values it averages."""

from string import ascii_uppercase
from typing import Any

import numpy as np
from bokeh.models import Arrow, ColumnDataSource, NormalHead, Span

from attnbook._validation import finite
from attnbook_course.figures import COLOURS, GREY
from attnbook_course.live.figure import (
    SQUARE,
    LiveFigure,
    arranged,
    beside,
    control_style,
    follow_pointer,
    handle,
    menu,
    plot,
    power_slider,
    signed_slider,
    updated_by,
    words,
)

SCORES = ["gaussian", "dot", "scaled dot", "cosine"]


def query_and_keys(
    keys: np.ndarray, values: np.ndarray, names: str = ascii_uppercase
) -> LiveFigure:
    """Attention in the plane, out = Σ_j w_j v_j with w = softmax_j(score(q, k_j) / τ).

    The output never leaves the convex hull of the values, which is drawn around them.

    Args:
        keys: of shape (n, 2).
        values: of shape (n, 2).
        names: a letter for each key, and for its value; n or more.

    Raises:
        ValueError: keys and values that are not n points of a plane each, or too few names.
    """
    keys, values = finite(keys=keys), finite(values=values)
    n = len(keys) if keys.ndim else 0
    if n == 0 or keys.shape != (n, 2) or values.shape != (n, 2):
        raise ValueError(f"keys, values: got {keys.shape}, {values.shape}, expected (n, 2) twice")
    if not isinstance(names, str | list | tuple):
        raise TypeError(f"names: got {names!r}, expected letters")
    if len(names) < n:
        raise ValueError(f"names: got {len(names)} letters, expected {n}, one a key")
    letters = list(names[:n])
    key_points, value_points = (
        _points(name, points, letters) for name, points in (("keys", keys), ("values", values))
    )
    query = ColumnDataSource({"x": [0.0], "y": [0.0]}, name="query")
    output = ColumnDataSource({"x": [0.0], "y": [0.0]}, name="output")

    reach = max(float(np.ceil(1.3 * np.max(np.abs(keys)))), 1.0)
    left = _key_plane(key_points, query, reach)
    right = _value_plane(values, value_points, output)
    bars = plot(height=150, x_range=letters, y_range=(0, 1), y_axis_label="weight")
    bars.vbar("name", width=0.6, top="weight", color=COLOURS["weights"], source=key_points)

    wide = control_style()
    score = menu("score", "score", SCORES, **wide)
    temperature = power_slider("temperature τ", "temperature", (-1.3, 1.3), 0, **wide)
    first, second = (
        signed_slider(f"query {axis}", f"query_{axis}", (-reach, reach), start, **wide)
        for axis, start in (("x", round(0.5 * reach, 2)), ("y", round(0.25 * reach, 2)))
    )
    text = words(3, wide)
    controls = {"score": score, "temperature": temperature, "first": first, "second": second}
    sources = {"keys": key_points, "values": value_points, "query": query, "output": output}
    updated_by("query_and_keys.js", controls, words=text, **sources)
    follow_pointer(left, x=first, y=second)
    layout = arranged(
        (beside(left, right), bars), (text, beside(score, temperature), beside(first, second))
    )
    return LiveFigure(
        "live-query-and-keys",
        "A query among keys",
        layout,
        f"A plane with a query and {n} keys, a second one with their values. Choose the score and "
        "the temperature, and move the query: keys and values grow with their weight, which the "
        "bars show, and the output, the weighted average, stays inside the hull of the values.",
        min_height=47,
    )


def convex_hull(points: np.ndarray) -> list[tuple[float, float]]:
    """Corners of the convex hull of (n, 2) points, anticlockwise: Andrew's monotone chain (1979).

    Two different points are needed, or there is no corner.
    """

    def chain(ordered: list[tuple[float, float]]) -> list[tuple[float, float]]:
        corners: list[tuple[float, float]] = []
        for x, y in ordered:
            while len(corners) > 1:
                (x0, y0), (x1, y1) = corners[-2:]
                if (x1 - x0) * (y - y0) > (y1 - y0) * (x - x0):  # a turn to the left
                    break
                corners.pop()
            corners.append((x, y))
        return corners[:-1]

    ordered = sorted({(x, y) for x, y in points.tolist()})
    return chain(ordered) + chain(ordered[::-1])


def _points(name: str, points: np.ndarray, letters: list[str]) -> Any:
    """A source with a row for each point; the script fills in what its weight decides."""
    names = ("weight", "size", "alpha", "offset", "query_x", "query_y")
    filled = {column: np.zeros(len(letters)) for column in names}
    return ColumnDataSource(
        {"x": points[:, 0], "y": points[:, 1], "name": letters, **filled}, name=name
    )


def _key_plane(points: Any, query: Any, reach: float) -> Any:
    """The keys, and the query as an arrow from the origin."""
    plane = _plane("keys and query", (-reach, reach), (-reach, reach))
    for dimension in ("width", "height"):
        plane.add_layout(Span(location=0, dimension=dimension, line_color=GREY, line_alpha=0.4))
    colour = COLOURS["weights"]
    plane.segment("x", "y", "query_x", "query_y", color=colour, alpha="alpha", source=points)
    arrow = Arrow(x_start=0, y_start=0, x_end="x", y_end="y", source=query)
    arrow.update(line_color=colour, line_width=3, level="underlay")  # the letters stay legible
    arrow.end = NormalHead(size=12, fill_color=colour, line_color=colour)
    plane.add_layout(arrow)
    _draw(plane, points)
    handle(plane, query)
    return plane


def _value_plane(values: np.ndarray, points: Any, output: Any) -> Any:
    """The values in their hull, and the output."""
    middle = (values.min(axis=0) + values.max(axis=0)) / 2
    half = max(0.65 * float(np.ptp(values, axis=0).max()), 0.5)
    plane = _plane("values and output", *((m - half, m + half) for m in middle))
    corners = np.reshape(convex_hull(values), (-1, 2))
    look = {"line_color": GREY, "line_width": 1.5, "fill_color": GREY, "fill_alpha": 0.08}
    plane.patch(corners[:, 0], corners[:, 1], **look)
    _draw(plane, points)
    look = {"marker": "diamond", "fill_color": COLOURS["estimate"], "line_color": "white"}
    plane.scatter("x", "y", size=17, source=output, **look)
    return plane


def _plane(title: str, x_range: tuple[float, float], y_range: tuple[float, float]) -> Any:
    """A square plot with room for two beside each other, or for one on a phone."""
    return plot(title=title, x_range=x_range, y_range=y_range, **SQUARE)


def _draw(plane: Any, points: Any) -> None:
    """Dots as large as their weights, each with its letter."""
    plane.scatter("x", "y", size="size", color=COLOURS["data"], alpha="alpha", source=points)
    look = {"color": GREY, "text_font_size": "14px"}
    plane.text("x", "y", text="name", x_offset="offset", y_offset=-4, source=points, **look)
