"""Chapter 5's live figure: self-attention, layer after layer, on points to move."""

from string import ascii_uppercase
from typing import Any

import numpy as np
from bokeh.events import Pan, PanStart, Tap
from bokeh.models import ColumnDataSource, CustomJS

from attnbook._validation import finite
from attnbook_course.figures import COLOURS, GREY
from attnbook_course.live.figure import (
    SQUARE,
    LiveFigure,
    arranged,
    beside,
    control_style,
    follow_pointer,
    framed,
    menu,
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
    points = finite(points=points)
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
    labels = {"x_axis_label": "layers", "y_axis_label": "spread / spread of the start"}
    collapse = plot(**SQUARE, **labels)
    collapse.y_range.start = 0
    collapse.line("layer", "spread", color=COLOURS["estimate"], line_width=2, source=spread)
    collapse.scatter("layer", "spread", color=COLOURS["estimate"], size=10, source=now)

    wide = control_style()
    score = menu("score", "score", ["gaussian", "scaled dot"], **wide)
    residual = menu("residual", "residual", ["off", "half"], **wide)
    bandwidth = power_slider("bandwidth h", "bandwidth", (-1.3, 1), -0.3, **wide)
    temperature = power_slider("temperature τ", "temperature", (-1.3, 1), 0, **wide)
    layers = slider("layers", "layers", (0, LAYERS), 1, step=1, **wide)
    point = menu("point", "point", letters, **wide)
    first, second = (
        signed_slider(f"point {axis}", f"point_{axis}", (-reach, reach), value, **wide)
        for axis, value in zip("xy", points[0].tolist(), strict=True)
    )
    text = words(2, wide)
    widths = {"bandwidth": bandwidth, "temperature": temperature}
    place = {"point": point, "first": first, "second": second}
    controls = {"score": score, "residual": residual, **widths, "layers": layers, **place}
    sources = {
        "start": start,
        "paths": paths,
        "after": after,
        "chosen": chosen,
        "spread": spread,
        "now": now,
    }
    updated_by("self_attention.js", controls, words=text, **sources)
    choose = CustomJS(args={"start": start, "point": point}, code=NEAREST)
    for event in (Tap, PanStart):
        plane.js_on_event(event, choose)
    follow_pointer(plane, events=(Pan,), x=first, y=second)
    rows = (score, residual), (bandwidth, temperature, layers), (point, first, second)
    layout = arranged((beside(plane, collapse),), (text, *(beside(*row) for row in rows)))
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
    plane = plot(**SQUARE, x_range=(-reach, reach), y_range=(-reach, reach))
    plane.multi_line("xs", "ys", color=COLOURS["estimate"], line_width=1, source=paths)
    plane.scatter("x", "y", size=7, color=COLOURS["data"], alpha=0.7, source=start, name="handle")
    plane.scatter("x", "y", size=24, source=chosen, **framed())
    plane.scatter("x", "y", size=8, color=COLOURS["estimate"], source=after)
    look = {"color": GREY, "text_font_size": "14px"}
    plane.text("x", "y", text="name", x_offset=6, y_offset=-5, source=start, **look)
    return plane
