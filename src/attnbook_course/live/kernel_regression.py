"""Chapter 1's live figure: a kernel, a bandwidth, and a query to move."""

import numpy as np
from bokeh.models import ColumnDataSource

from attnbook_course.columns import columns
from attnbook_course.figures import COLOURS
from attnbook_course.live import figure

KERNELS = ["gaussian", "boxcar", "triangular", "epanechnikov"]


def kernel_regression(
    x: np.ndarray, y: np.ndarray, truth: tuple[np.ndarray, np.ndarray]
) -> figure.LiveFigure:
    """Nadaraya–Watson with a kernel, a bandwidth and a query to move.

    Args:
        x: the keys, n numbers.
        y: their values.
        truth: the mean curve, a pair of arrays; the estimate is drawn over the same x.
    """
    x, y = columns(x=x, y=y)
    grid, mean = columns(truth_x=truth[0], truth_y=truth[1])
    zeros = np.zeros_like(x)
    data = ColumnDataSource({"x": x, "y": y, "weight": zeros, "size": zeros + 4}, name="data")
    curve = ColumnDataSource({"x": grid, "estimate": np.zeros_like(grid)}, name="curve")
    query = ColumnDataSource({"x": [0.0], "y": [0.0]}, name="query")

    top = figure.plot(height=326, y_axis_label="y")
    drawn = figure.points_and_curves(top, data, "size", (grid, mean), curve)
    figure.handle(top, query)
    look = {"size": 14, "marker": "diamond", "color": COLOURS["weights"]}
    figure.legend(top, {**drawn, "query": top.scatter("x", "y", source=query, **look)})
    bottom = figure.plot(height=120, x_range=top.x_range, x_axis_label="x", y_axis_label="weight")
    bottom.segment("x", 0, "x", "weight", color=COLOURS["weights"], line_width=2, source=data)
    bottom.y_range.start = 0
    bottom.yaxis.ticker.desired_num_ticks = 3

    controls = {
        "kernel": figure.menu("kernel", "kernel", KERNELS),
        "bandwidth": figure.power_slider("bandwidth h", "bandwidth", (-2, 0.7), -0.92),
        "position": figure.signed_slider("query x", "position", (-3.5, 3.5), -0.5),
    }
    sources = {"data": data, "curve": curve, "query": query}
    scripts = "wording.js", "kernel_average.js", "kernel_regression.js"
    figure.updated_by(scripts, controls, words=(text := figure.words(2)), **sources)
    figure.follow_pointer(top, x=controls["position"])
    return figure.LiveFigure(
        "live-kernel-regression",
        "A kernel, a bandwidth and a query",
        figure.arranged((top, bottom), (text, *controls.values())),
        f"{len(x)} points, the true curve and the kernel regression through them. Choose the "
        "kernel and the bandwidth, and move the query: the points grow with their weight at the "
        "query, and the bars below show the weights.",
        min_height=45,
    )
