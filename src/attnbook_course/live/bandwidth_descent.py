"""Chapter 2's live figure of training: gradient descent on the bandwidth, step by step."""

from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, PrintfTickFormatter

from attnbook_course.columns import columns
from attnbook_course.figures import COLOURS
from attnbook_course.live import figure

AXIS = (7e-4, 700.0)  # of bandwidths in the plot of the error
LONGEST = 200  # steps of one run
PORTION = 20  # steps at once, for readers who want less motion
NAME = "live-bandwidth-descent"


def bandwidth_descent(
    x: np.ndarray, y: np.ndarray, truth: tuple[np.ndarray, np.ndarray]
) -> figure.LiveFigure:
    """Gradient descent, θ ← θ − η dL/dθ, on the leave-one-out error L at the bandwidth h = exp(θ).

    With the weights w_ij of the others in the prediction f̂_i of point i, L = mean (y_i − f̂_i)² and
    dL/dθ = mean −2 (y_i − f̂_i) Σ_j w_ij (y_j − f̂_i) (x_i − x_j)² / h². The kernel is the Gaussian.

    Args:
        x: the keys, three numbers or more.
        y: their values.
        truth: the mean curve, a pair of arrays; the estimate is drawn over the same x.
    """
    x, y = columns(x=x, y=y)
    grid, mean = columns(truth_x=truth[0], truth_y=truth[1])
    controls = {
        "start": figure.power_slider("start bandwidth h", "start", (-3, 2.7), 0),
        "rate": figure.power_slider("learning rate η", "rate", (-1, 1), 0),
    }
    pressed = figure.buttons({"one": "one step", "run": "run", "again": "begin again"}, 95)
    curve = ColumnDataSource({"x": grid, "estimate": np.zeros_like(grid)}, name="curve")
    sources = {
        "data": ColumnDataSource({"x": x, "y": y}, name="data"),
        "curve": curve,
        **_sources(),
    }
    left = figure.plot(height=276, min_width=300, x_axis_label="x", y_axis_label="y")
    figure.legend(left, figure.points_and_curves(left, sources["data"], 4, (grid, mean), curve))
    right, text = _landscape(sources), figure.words(4)
    told = {"right": right, "words": text, "longest": LONGEST, "portion": PORTION, "figure": NAME}
    scripts = "wording.js", "kernel_average.js", "running.js", "bandwidth_descent.js"
    figure.updated_by(scripts, controls, pressed, **sources, **told)
    rows = text, figure.beside(*controls.values()), figure.beside(*pressed.values())
    return figure.LiveFigure(
        NAME,
        "Train it while you watch",
        figure.arranged((figure.beside(left, right),), rows),
        f"{len(x)} points, the true curve and the kernel regression through them, beside its "
        "leave-one-out error at every bandwidth. A ball stands on the curve of the error, with its "
        "slope as a short line, and gradient descent moves it. Choose the bandwidth to start from "
        "and the learning rate, and take one step, or many: the text gives the bandwidth, the "
        "error and the slope.",
        min_height=38,
    )


def _sources() -> dict[str, Any]:
    """What the plot of the error shows; the script fills it in."""
    of_step = {
        "trail": ("theta", "h", "error", "slope"),
        "ball": ("h", "error"),
        "tangent": ("h", "error"),
    }
    h = np.geomspace(*AXIS, 121)
    return {
        "valley": ColumnDataSource({"h": h, "error": 0 * h}, name="valley"),
        **figure.empty(of_step),
    }


def _landscape(sources: dict[str, Any]) -> Any:
    """The error against the bandwidth, and on it the ball, its slope and the steps so far."""
    labels = {"x_axis_label": "bandwidth h", "y_axis_label": "leave-one-out error"}
    axes = {"x_axis_type": "log", "x_range": AXIS, "y_axis_type": "log", "y_range": (0.1, 1)}
    right = figure.plot(height=276, min_width=300, **axes, **labels)
    right.yaxis.ticker = [m * 10.0**e for e in range(-6, 7) for m in (1, 2, 5)]
    right.axis.formatter = PrintfTickFormatter(format="%g")
    look = {"color": COLOURS["data"], "line_width": 2}
    valley = right.line("h", "error", source=sources["valley"], **look)
    right.line("h", "error", color=COLOURS["weights"], line_alpha=0.6, source=sources["trail"])
    steps = right.scatter("h", "error", size=6, color=COLOURS["weights"], source=sources["trail"])
    look = {"color": COLOURS["estimate"], "line_width": 3}
    slope = right.line("h", "error", source=sources["tangent"], **look)
    ball = {"size": 15, "color": COLOURS["weights"], "line_color": "white"}
    right.scatter("h", "error", source=sources["ball"], **ball)
    figure.legend(right, {"error": valley, "slope": slope, "steps": steps})
    return right
