"""Points on a line to move, add and take away: the controls and the plot that figures share."""

from typing import Any, NamedTuple

import numpy as np
from bokeh.events import ButtonClick, DoubleTap, Pan, PanStart, Tap
from bokeh.models import Button, ColumnDataSource, Span

from attnbook._validation import is_such
from attnbook_course.figures import COLOURS
from attnbook_course.live.figure import framed, legend, menu, plot, signed_slider


class PointControls(NamedTuple):
    """What a reader moves a point with, by the names that static/points.js has for them."""

    query: Any
    point: Any
    first: Any
    second: Any
    add: Any
    remove: Any


def point_controls(x: np.ndarray, y: np.ndarray, reach: float, style: dict[str, Any]) -> Any:
    """The query, the point that is chosen with its place, and the buttons.

    Args:
        x: the points to begin with, in [−1, 1].
        y: their values.
        reach: the largest value that a slider gives.
        style: options of every control.
    """
    names = [str(i + 1) for i in range(len(x))]
    first, second = (
        signed_slider(f"point {axis}", f"point_{axis}", (-end, end), float(start[0]), **style)
        for axis, end, start in (("x", 1, x), ("y", reach, y))
    )
    return PointControls(
        query=signed_slider("query x", "position", (-1, 1), 0.25, **style),
        point=menu("point", "point", names, **style),
        first=first,
        second=second,
        add=Button(label="add a point at the query", name="add", min_width=180, **style),
        remove=Button(label="remove the point", name="remove", min_width=140, **style),
    )


def check_points(x: Any, y: Any, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The points as arrays: from 1 to the given number of them, x in [−1, 1], a finite y each."""
    x, y = (np.ravel(np.asarray(a, dtype=float)) for a in (x, y))
    if len(x) != len(y) or not 1 <= len(x) <= most:
        raise ValueError(f"x, y: got {len(x)}, {len(y)} numbers, expected 1 to {most}, as many y")
    if not (np.all(np.abs(x) <= 1) and np.all(np.isfinite(y))):
        raise ValueError("x, y: got a point elsewhere, expected x from −1 to 1 and a finite y")
    return x, y


def check_kernel(length_scale: Any, noise: Any, bandwidth: Any) -> None:
    """The numbers of a Gaussian process, and of the Nadaraya–Watson estimator beside it."""
    if not is_such(length_scale, lambda x: x > 0):
        raise ValueError(f"length_scale: got {length_scale}, expected a number above 0")
    if not is_such(noise, lambda x: x >= 0):
        raise ValueError(f"noise: got {noise}, expected 0 or more")
    if not is_such(bandwidth, lambda x: 0.01 <= x <= 3):
        raise ValueError(f"bandwidth: got {bandwidth}, expected 0.01 to 3")


def point_sources(x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """The sources of static/points.js: the points, the chosen one, and what a pointer holds."""
    return {
        "context": ColumnDataSource({"x": x, "y": y}, name="context"),
        "chosen": ColumnDataSource({"x": x[:1], "y": y[:1]}, name="chosen"),
        "held": ColumnDataSource({"what": ["query"]}, name="held"),
    }


def point_plane(
    lines: dict[str, tuple[str, str, float, str]],
    reach: float,
    curve: Any,
    at_query: Any,
    sources: dict[str, Any],
    ncols: int = 2,
    **options: Any,
) -> tuple[Any, Any, dict[str, Any]]:
    """The points, their curves with a legend, the query's line and what the curves say there.

    Args:
        lines: of each name its column, colour, width and dashes; the first is drawn on top.
        reach: of the values.
        curve: the source of the curves.
        at_query: a source with x, y and colour.
        sources: those of the points.
        ncols: columns of the legend.
        options: of the plot.

    Returns:
        The plot, the line and the curves by their names.
    """
    plane = plot(y_axis_label="y", x_range=(-1.04, 1.04), y_range=(-reach, reach), **options)
    line = Span(location=0, dimension="height", line_color=COLOURS["weights"], line_width=1.5)
    plane.add_layout(line)
    drawn = {
        label: plane.line(
            "x", column, color=colour, line_width=width, line_dash=dashes, source=curve
        )
        for label, (column, colour, width, dashes) in reversed(lines.items())
    }
    context, chosen = sources["context"], sources["chosen"]
    dots = {"size": 8, "color": COLOURS["data"], "alpha": 0.8, "name": "handle"}
    plane.scatter("x", "y", source=context, **dots)
    plane.scatter("x", "y", size=24, source=chosen, **framed())
    plane.scatter(
        "x", "y", size=14, marker="diamond", color="colour", line_color="white", source=at_query
    )
    legend(plane, {label: drawn[label] for label in lines}, ncols=ncols, glyph_width=16)
    return plane, line, drawn


def follow_reader(update: Any, plane: Any, controls: Any, buttons: Any) -> None:
    """Run the script when a control changes, a button is pressed, or a pointer is in the plane."""
    for control in controls:
        control.js_on_change("value", update)
    for button in buttons:
        button.js_on_event(ButtonClick, update)
    for event in (Tap, DoubleTap, PanStart, Pan):
        plane.js_on_event(event, update)
