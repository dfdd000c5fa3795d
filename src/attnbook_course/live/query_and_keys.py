"""Chapter 3's live figure: a query to move among the keys, and the values it averages."""

from string import ascii_uppercase
from typing import Any

import numpy as np
from bokeh.models import Arrow, ColumnDataSource, NormalHead, Span

from attnbook_course.figures import COLOURS, GREY
from attnbook_course.live import figure

SCORES = ["gaussian", "dot", "scaled dot", "cosine"]


def query_and_keys(keys: np.ndarray, values: np.ndarray) -> figure.LiveFigure:
    """Attention in the plane, out = Σ_j w_j v_j with w = softmax_j(score(q, k_j) / τ).

    The output never leaves the convex hull of the values, which is drawn around them.

    Args:
        keys: of shape (n, 2).
        values: of shape (n, 2).

    Raises:
        ValueError: keys and values that are not n points of a plane each.
    """
    keys, values = figure.plane_points(keys=keys), figure.plane_points(values=values)
    if keys.shape != values.shape:
        raise ValueError(f"keys, values: got {keys.shape}, {values.shape}, expected (n, 2) twice")
    letters = list(ascii_uppercase[: len(keys)])
    key_points, value_points = (
        _points(name, points, letters) for name, points in (("keys", keys), ("values", values))
    )
    query = ColumnDataSource({"x": [0.0], "y": [0.0]}, name="query")
    output = ColumnDataSource({"x": [0.0], "y": [0.0]}, name="output")
    reach = max(float(np.ceil(1.3 * np.max(np.abs(keys)))), 1.0)
    left = _key_plane(key_points, query, reach)
    right = _value_plane(values, value_points, output)
    bars = figure.plot(height=150, x_range=letters, y_range=(0, 1), y_axis_label="weight")
    bars.yaxis.ticker.desired_num_ticks = 3
    bars.vbar("name", width=0.6, top="weight", color=COLOURS["weights"], source=key_points)

    score = figure.menu("score", "score", SCORES)
    temperature = figure.power_slider("temperature τ", "temperature", (-1.3, 1.3), 0)
    first, second = (
        figure.signed_slider(f"query {axis}", f"query_{axis}", (-reach, reach), start)
        for axis, start in (("x", round(0.5 * reach, 2)), ("y", round(0.25 * reach, 2)))
    )
    text = figure.words(3)
    controls = {"score": score, "temperature": temperature, "first": first, "second": second}
    sources = {"keys": key_points, "values": value_points, "query": query, "output": output}
    scripts = "wording.js", "plane_attention.js", "query_and_keys.js"
    figure.updated_by(scripts, controls, words=text, **sources)
    figure.follow_pointer(left, x=first, y=second)
    rows = text, figure.beside(score, temperature), figure.beside(first, second)
    return figure.LiveFigure(
        "live-query-and-keys",
        "A query among keys",
        figure.arranged((figure.beside(left, right), bars), rows),
        f"A plane with a query and {len(keys)} keys, a second one with their values. Choose the "
        "score and the temperature, and move the query: keys and values grow with their weight, "
        "which the bars show, and the output, the weighted average, stays inside the hull of the "
        "values.",
        min_height=47,
    )


def _points(name: str, points: np.ndarray, letters: list[str]) -> Any:
    """A source with a row for each point; the script fills in what its weight decides."""
    names = ("weight", "size", "alpha", "offset", "query_x", "query_y")
    filled = {column: np.zeros(len(letters)) for column in names}
    return ColumnDataSource(
        {"x": points[:, 0], "y": points[:, 1], "name": letters, **filled}, name=name
    )


def _key_plane(points: Any, query: Any, reach: float) -> Any:
    """The keys, and the query as an arrow from the origin."""
    ends = {"x_range": (-reach, reach), "y_range": (-reach, reach)}
    plane = figure.plot(title="keys, and the query as an arrow", **ends, **figure.SQUARE)
    for dimension in ("width", "height"):
        plane.add_layout(Span(location=0, dimension=dimension, line_color=GREY, line_alpha=0.4))
    colour = COLOURS["weights"]
    plane.segment("x", "y", "query_x", "query_y", color=colour, alpha="alpha", source=points)
    arrow = Arrow(x_start=0, y_start=0, x_end="x", y_end="y", source=query)
    arrow.update(line_color=colour, line_width=3, level="underlay")  # the letters stay legible
    arrow.end = NormalHead(size=12, fill_color=colour, line_color=colour)
    plane.add_layout(arrow)
    _draw(plane, points)
    figure.handle(plane, query)
    return plane


def _value_plane(values: np.ndarray, points: Any, output: Any) -> Any:
    """The values in their hull, and the output."""
    middle = (values.min(axis=0) + values.max(axis=0)) / 2
    half = max(0.65 * float(np.ptp(values, axis=0).max()), 0.5)
    x_range, y_range = ((m - half, m + half) for m in middle)
    plane = figure.plot(x_range=x_range, y_range=y_range, **figure.SQUARE)
    corners = np.array(convex_hull(values))
    look = {"line_color": GREY, "line_width": 1.5, "fill_color": GREY, "fill_alpha": 0.08}
    hull = plane.patch(corners[:, 0], corners[:, 1], **look)
    values_drawn = _draw(plane, points)
    look = {"marker": "diamond", "fill_color": COLOURS["estimate"], "line_color": "white"}
    average = plane.scatter("x", "y", size=17, source=output, **look)
    figure.legend(plane, {"values": values_drawn, "hull": hull, "output": average})
    return plane


def convex_hull(points: np.ndarray) -> list[tuple[float, float]]:
    """Corners of the convex hull of (n, 2) points, by Andrew's monotone chain (1979)."""

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


def _draw(plane: Any, points: Any) -> Any:
    """Dots as large as their weights, each with its letter."""
    dots = plane.scatter("x", "y", size="size", color=COLOURS["data"], alpha="alpha", source=points)
    look = {"color": GREY, "text_font_size": "14px"}
    plane.text("x", "y", text="name", x_offset="offset", y_offset=-4, source=points, **look)
    return dots
