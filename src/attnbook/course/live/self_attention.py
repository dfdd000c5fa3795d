"""Chapter 5's live figure: self-attention, layer after layer, on points to move."""

from string import ascii_uppercase
from typing import Any

import numpy as np
from bokeh.events import Pan, PanStart, Tap
from bokeh.models import ColumnDataSource, CustomJS, Select

from attnbook._validation import numbers
from attnbook.course.figures import COLOURS, GREY
from attnbook.course.live.figure import (
    LiveFigure,
    arranged,
    beside,
    control_style,
    follow_pointer,
    plot,
    power_slider,
    signed_slider,
    slider,
    updated_by,
    words,
)

LAYERS = 20
NEAREST = """
const { x, y, name } = start.data;
const distance = name.map((_, i) => Math.hypot(x[i] - cb_obj.x, y[i] - cb_obj.y));
point.value = name[distance.indexOf(Math.min(...distance))];
"""


def self_attention_points(points: np.ndarray, names: str = ascii_uppercase) -> LiveFigure:
    """Self-attention in the plane, x_i ← Σ_j w_ij x_j with w_i = softmax_j(score(x_i, x_j)).

    Each point is query, key and value. With the Gaussian score a layer is a step of the blurring
    mean shift (Cheng, 1995); with half a residual it is x_i ← (x_i + Σ_j w_ij x_j) / 2.

    Args:
        points: of shape (n, 2), 2 ≤ n ≤ 12.
        names: a letter for each point, all different; n or more.

    Raises:
        ValueError: points of another shape, too few or too many; letters missing or repeated.
    """
    points = numbers.finite(points=points)
    if points.ndim != 2 or points.shape[1] != 2 or not 2 <= len(points) <= 12:
        raise ValueError(f"points: got {points.shape}, expected (n, 2) with n from 2 to 12")
    if not isinstance(names, str | list | tuple):
        raise TypeError(f"names: got {names!r}, expected letters")
    letters = list(names[: len(points)])
    if len(set(letters)) < len(points):
        raise ValueError(f"names: got {names!r}, expected {len(points)} different letters")

    columns = {"x": points[:, 0], "y": points[:, 1]}
    start = ColumnDataSource({**columns, "name": letters}, name="start")
    paths = ColumnDataSource({"xs": [[]], "ys": [[]]}, name="paths")
    after = ColumnDataSource({"x": [], "y": []}, name="after")
    chosen = ColumnDataSource({"x": [], "y": []}, name="chosen")
    zeros = np.zeros(LAYERS + 1)
    spread = ColumnDataSource({"layer": np.arange(LAYERS + 1), "spread": zeros}, name="spread")
    now = ColumnDataSource({"layer": [0], "spread": [1.0]}, name="now")

    reach = max(float(np.ceil(1.1 * np.max(np.abs(points)))), 1.0)
    plane = _plane(reach, start, paths, after, chosen)
    collapse = plot(
        aspect_ratio=1, min_width=280, max_width=440, x_axis_label="layers",
        y_axis_label="spread / spread of the start",
    )  # fmt: skip
    collapse.y_range.start = 0
    collapse.line("layer", "spread", color=COLOURS["estimate"], line_width=2, source=spread)
    collapse.scatter("layer", "spread", color=COLOURS["estimate"], size=10, source=now)

    wide = control_style()
    score = Select(
        title="score", name="score", options=["gaussian", "scaled dot"], value="gaussian", **wide
    )
    residual = Select(
        title="residual", name="residual", options=["off", "half"], value="off", **wide
    )
    bandwidth = power_slider(
        title="bandwidth h", name="bandwidth", start=-1.3, end=1, value=-0.3, **wide
    )
    temperature = power_slider(
        title="temperature τ", name="temperature", start=-1.3, end=1, value=0, **wide
    )
    layers = slider(title="layers", name="layers", start=0, end=LAYERS, value=1, step=1, **wide)
    point = Select(title="point", name="point", options=letters, value=letters[0], **wide)
    first, second = (
        signed_slider(
            title=f"point {axis}", name=f"point_{axis}", start=-reach, end=reach, value=value,
            **wide,
        )
        for axis, value in zip("xy", points[0].tolist(), strict=True)
    )  # fmt: skip
    text = words(2, wide)
    updated_by(
        "self_attention.js",
        (score, residual, bandwidth, temperature, layers, point, first, second),
        start=start, paths=paths, after=after, chosen=chosen, spread=spread, now=now, score=score,
        residual=residual, bandwidth=bandwidth, temperature=temperature, layers=layers,
        point=point, first=first, second=second, words=text,
    )  # fmt: skip
    choose = CustomJS(args={"start": start, "point": point}, code=NEAREST)
    for event in (Tap, PanStart):
        plane.js_on_event(event, choose)
    follow_pointer(plane, events=(Pan,), x=first, y=second)
    layout = arranged(
        (beside(plane, collapse),),
        (text, beside(score, residual), beside(bandwidth, temperature, layers),
         beside(point, first, second)),
    )  # fmt: skip
    return LiveFigure(
        "live-self-attention",
        "Points that attend to each other",
        layout,
        f"{len(points)} points of a plane, each one query, key and value: a layer moves every "
        "point to a weighted average of all. Choose the score, its bandwidth or temperature, the "
        "residual and the number of layers, and move the points: lines show the points' ways, and "
        "a curve how their spread shrinks from layer to layer.",
        min_height=40,
    )


def _plane(reach: float, start: Any, paths: Any, after: Any, chosen: Any) -> Any:
    """The points before, on their way and after, and a ring around the one to move."""
    plane = plot(
        aspect_ratio=1, min_width=280, max_width=440,
        x_range=(-reach, reach), y_range=(-reach, reach),
    )  # fmt: skip
    plane.multi_line("xs", "ys", color=COLOURS["estimate"], line_width=1, source=paths)
    plane.scatter("x", "y", size=7, color=COLOURS["data"], alpha=0.7, source=start, name="handle")
    plane.scatter(
        "x", "y", size=24, fill_color=None, line_color=COLOURS["weights"], line_width=2,
        source=chosen,
    )  # fmt: skip
    plane.scatter("x", "y", size=8, color=COLOURS["estimate"], source=after)
    plane.text(
        "x", "y", text="name", x_offset=6, y_offset=-5, color=GREY, text_font_size="14px",
        source=start,
    )  # fmt: skip
    return plane
