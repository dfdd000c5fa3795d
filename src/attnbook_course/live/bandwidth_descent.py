"""Chapter 2's live figure of training: gradient descent on the bandwidth, step by step."""

from typing import Any

import numpy as np
from bokeh.events import ButtonClick
from bokeh.models import Button, ColumnDataSource, PrintfTickFormatter

from attnbook_course.columns import columns, pair
from attnbook_course.figures import COLOURS
from attnbook_course.live.figure import (
    LiveFigure,
    arranged,
    beside,
    control_style,
    empty,
    plot,
    power_slider,
    powers,
    updated_by,
    words,
)

STARTS = (0.001, 500.0)  # ends of the sliders
RATES = (0.1, 10.0)
AXIS = (7e-4, 700.0)  # of bandwidths in the plot of the error
LONGEST = 200  # steps of one run
PORTION = 20  # steps at once, for readers who want less motion
NAME = "live-bandwidth-descent"


def bandwidth_descent(
    x: np.ndarray,
    y: np.ndarray,
    truth: tuple[np.ndarray, np.ndarray],
    *,
    start: float = 1.0,
    learning_rate: float = 1.0,
) -> LiveFigure:
    """Gradient descent, θ ← θ − η dL/dθ, on the leave-one-out error L at the bandwidth h = exp(θ).

    With the weights w_ij of the others in the prediction f̂_i of point i, L = mean (y_i − f̂_i)² and
    dL/dθ = mean −2 (y_i − f̂_i) Σ_j w_ij (y_j − f̂_i) (x_i − x_j)² / h². The kernel is the Gaussian.

    Args:
        x: the keys, three numbers or more.
        y: their values.
        truth: the mean curve, a pair of arrays; the estimate is drawn over the same x.
        start: the bandwidth to begin with, from 0.001 to 500.
        learning_rate: η to begin with, from 0.1 to 10.

    Raises:
        ValueError: fewer than three points, x and y of different lengths; a start or a learning
            rate that its slider does not have.
    """
    (x, y), (grid, mean) = columns(x=x, y=y), pair(truth=truth)
    if len(x) < 3:
        raise ValueError(f"x, y: got {len(x)} points, expected 3 or more")
    wide = control_style()
    low, high, value = powers(*STARTS, start=start)
    begin = power_slider("start bandwidth h", "start", (low, high), value, **wide)
    low, high, value = powers(*RATES, learning_rate=learning_rate)
    rate = power_slider("learning rate η", "rate", (low, high), value, **wide)
    buttons = {
        name: Button(label=label, name=name, min_width=95, **wide)
        for name, label in (("one", "one step"), ("run", "run"), ("again", "begin again"))
    }
    curve = ColumnDataSource({"x": grid, "estimate": np.zeros_like(grid)}, name="curve")
    sources = {
        "data": ColumnDataSource({"x": x, "y": y}, name="data"),
        "curve": curve,
        **_sources(),
    }
    left = plot(height=250, min_width=300, x_axis_label="x", y_axis_label="y")
    left.scatter(x, y, size=4, color=COLOURS["data"], alpha=0.7)
    left.line(grid, mean, color=COLOURS["truth"], line_width=1)
    left.line("x", "estimate", color=COLOURS["estimate"], line_width=3, source=curve)
    right, text = _landscape(sources), words(4, wide)
    told = {"right": right, "words": text, "longest": LONGEST, "portion": PORTION, "figure": NAME}
    scripts = "gaussian_average.js", "button_label.js", "bandwidth_descent.js"
    update = updated_by(scripts, {"start": begin, "rate": rate}, **buttons, **sources, **told)
    for button in buttons.values():
        button.js_on_event(ButtonClick, update)
    controls = text, beside(begin, rate), beside(*buttons.values())
    return LiveFigure(
        NAME,
        "Train it while you watch",
        arranged((beside(left, right),), controls),
        f"{len(x)} points, the true curve and the kernel regression through them, beside its "
        "leave-one-out error at every bandwidth. A ball stands on the curve of the error, with its "
        "slope as a short line, and gradient descent moves it. Choose the bandwidth to start from "
        "and the learning rate, and take one step, or many: the text gives the bandwidth, the "
        "error and the slope.",
        min_height=36,
    )


def _sources() -> dict[str, Any]:
    """What the plot of the error shows; the script fills it in."""
    shown = {
        "trail": ("theta", "h", "error", "slope"),
        "ball": ("h", "error"),
        "tangent": ("h", "error"),
        "turn": ("count",),  # of what the reader has done; it ends the run of before
    }
    h = np.geomspace(*AXIS, 121)
    return {"valley": ColumnDataSource({"h": h, "error": 0 * h}, name="valley"), **empty(shown)}


def _landscape(sources: dict[str, Any]) -> Any:
    """The error against the bandwidth, and on it the ball, its slope and the steps so far."""
    labels = {"x_axis_label": "bandwidth h", "y_axis_label": "leave-one-out error"}
    axes = {"x_axis_type": "log", "x_range": AXIS, "y_axis_type": "log", "y_range": (0.1, 1)}
    right = plot(height=250, min_width=300, **axes, **labels)
    right.yaxis.ticker = [m * 10.0**e for e in range(-6, 7) for m in (1, 2, 5)]
    right.axis.formatter = PrintfTickFormatter(format="%g")
    right.line("h", "error", color=COLOURS["data"], line_width=2, source=sources["valley"])
    right.line("h", "error", color=COLOURS["weights"], line_alpha=0.6, source=sources["trail"])
    right.scatter("h", "error", size=6, color=COLOURS["weights"], source=sources["trail"])
    right.line("h", "error", color=COLOURS["estimate"], line_width=3, source=sources["tangent"])
    right.scatter(
        "h", "error", size=15, color=COLOURS["weights"], line_color="white", source=sources["ball"]
    )
    return right
