"""Chapter 5's live figure: self-attention, layer after layer, on points to move."""

from string import ascii_uppercase
from typing import Any

import numpy as np
from bokeh.events import Pan, PanStart, Tap
from bokeh.models import ColumnDataSource, CustomJS

from attnbook_course.figures import COLOURS, GREY
from attnbook_course.live import figure

LAYERS = 20
NEAREST = """
const { x, y, name } = start.data;
const distance = name.map((_, i) => Math.hypot(x[i] - cb_obj.x, y[i] - cb_obj.y));
point.value = name[distance.indexOf(Math.min(...distance))];
"""


def self_attention_points(points: np.ndarray) -> figure.LiveFigure:
    """Self-attention in the plane, x_i ← Σ_j w_ij x_j with w_i = softmax_j(score(x_i, x_j)).

    Each point is query, key and value. With the Gaussian score a layer is a step of the blurring
    mean shift (Cheng, 1995); with half a residual it is x_i ← (x_i + Σ_j w_ij x_j) / 2.

    Args:
        points: of shape (n, 2).

    Raises:
        ValueError: points of another shape.
    """
    points = figure.plane_points(points=points)
    letters = list(ascii_uppercase[: len(points)])
    start = ColumnDataSource({"x": points[:, 0], "y": points[:, 1], "name": letters}, name="start")
    layer = np.arange(LAYERS + 1)
    sources = {
        "start": start,
        "spread": ColumnDataSource({"layer": layer, "spread": 0.0 * layer}, name="spread"),
        **figure.empty(
            {
                "paths": ("xs", "ys"),
                "after": ("x", "y"),
                "chosen": ("x", "y"),
                "now": ("layer", "spread"),
            }
        ),
    }
    reach = max(float(np.ceil(1.1 * np.max(np.abs(points)))), 1.0)
    plane = _plane(reach, sources)
    labels = {"x_axis_label": "layers", "y_axis_label": "spread / spread of the start"}
    collapse = figure.plot(**figure.SQUARE, **labels)
    collapse.y_range.start = 0
    colour = COLOURS["estimate"]
    collapse.line("layer", "spread", color=colour, line_width=2, source=sources["spread"])
    collapse.scatter("layer", "spread", color=colour, size=10, source=sources["now"])

    controls = {
        "score": figure.menu("score", "score", ["gaussian", "scaled dot"]),
        "residual": figure.menu("residual", "residual", ["off", "half"]),
        "bandwidth": figure.power_slider("bandwidth h", "bandwidth", (-1.3, 1), -0.3),
        "temperature": figure.power_slider("temperature τ", "temperature", (-1.3, 1), 0),
        "layers": figure.slider("layers", "layers", (0, LAYERS), 1),
        "point": figure.menu("point", "point", letters),
    }
    for name, axis, value in zip(("first", "second"), "xy", points[0], strict=True):
        ends = (-reach, reach)
        controls[name] = figure.signed_slider(f"point {axis}", f"point_{axis}", ends, float(value))
    scripts = "wording.js", "plane_attention.js", "self_attention.js"
    figure.updated_by(scripts, controls, words=(text := figure.words(2)), **sources)
    choose = CustomJS(args={"start": start, "point": controls["point"]}, code=NEAREST)
    for event in (Tap, PanStart):
        plane.js_on_event(event, choose)
    figure.follow_pointer(plane, events=(Pan,), x=controls["first"], y=controls["second"])
    score, residual, *widths_and_layers, point, first, second = controls.values()
    rows = (score, residual), widths_and_layers, (point, first, second)
    return figure.LiveFigure(
        "live-self-attention",
        "Points that attend to each other",
        figure.arranged(
            (figure.beside(plane, collapse),), (text, *(figure.beside(*row) for row in rows))
        ),
        f"{len(points)} points of a plane, each one query, key and value: a layer moves every "
        "point to a weighted average of all. Choose the score, its bandwidth or temperature, the "
        "residual and the number of layers, and move the points: lines show the points' ways, and "
        "a curve how their spread shrinks from layer to layer.",
        min_height=40,
    )


def _plane(reach: float, sources: dict[str, Any]) -> Any:
    """The points before, on their way and after, and a ring around the one to move."""
    plane = figure.plot(**figure.SQUARE, x_range=(-reach, reach), y_range=(-reach, reach))
    start, colour = sources["start"], COLOURS["estimate"]
    ways = plane.multi_line("xs", "ys", color=colour, line_width=1, source=sources["paths"])
    look = {"size": 7, "color": COLOURS["data"], "alpha": 0.7, "name": "handle"}
    before = plane.scatter("x", "y", source=start, **look)
    plane.scatter("x", "y", size=24, source=sources["chosen"], **figure.framed())
    after = plane.scatter("x", "y", size=8, color=colour, source=sources["after"])
    figure.legend(plane, {"start": before, "way": ways, "after the layers": after})
    look = {"color": GREY, "text_font_size": "14px"}
    plane.text("x", "y", text="name", x_offset=6, y_offset=-5, source=start, **look)
    return plane
