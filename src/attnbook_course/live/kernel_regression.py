"""Chapter 1's live figure: a kernel, a bandwidth, and a query to move."""

import numpy as np
from bokeh.models import ColumnDataSource

from attnbook_course.columns import columns, pair
from attnbook_course.figures import COLOURS
from attnbook_course.live.figure import (
    LiveFigure,
    arranged,
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


def kernel_regression(
    x: np.ndarray, y: np.ndarray, truth: tuple[np.ndarray, np.ndarray]
) -> LiveFigure:
    """Nadaraya–Watson with a kernel, a bandwidth and a query to move.

    Args:
        x: the keys, n numbers.
        y: their values.
        truth: the mean curve, a pair of arrays; the estimate is drawn over the same x.
    """
    (x, y), (grid, mean) = columns(x=x, y=y), pair(truth=truth)
    zeros = np.zeros_like(x)
    data = ColumnDataSource({"x": x, "y": y, "weight": zeros, "size": zeros + 4}, name="data")
    curve = ColumnDataSource({"x": grid, "estimate": np.zeros_like(grid)}, name="curve")
    query = ColumnDataSource({"x": [0.0], "y": [0.0]}, name="query")

    top = plot(height=300, y_axis_label="y")
    top.scatter("x", "y", size="size", color=COLOURS["data"], alpha=0.7, source=data)
    top.line(grid, mean, color=COLOURS["truth"], line_width=1)
    top.line("x", "estimate", color=COLOURS["estimate"], line_width=3, source=curve)
    handle(top, query)
    top.scatter("x", "y", size=14, marker="diamond", color=COLOURS["weights"], source=query)
    bottom = plot(height=120, x_range=top.x_range, x_axis_label="x", y_axis_label="weight")
    bottom.segment("x", 0, "x", "weight", color=COLOURS["weights"], line_width=2, source=data)
    bottom.y_range.start = 0
    bottom.yaxis.ticker.desired_num_ticks = 3

    wide = control_style()
    kernels = ["gaussian", "boxcar", "triangular", "epanechnikov"]
    kernel = menu("kernel", "kernel", kernels, **wide)
    bandwidth = power_slider("bandwidth h", "bandwidth", (-2, 0.7), -0.92, **wide)
    position = signed_slider("query x", "position", (-3.5, 3.5), -0.5, **wide)
    text = words(2, wide)
    controls = {"kernel": kernel, "bandwidth": bandwidth, "position": position}
    sources = {"data": data, "curve": curve, "query": query}
    updated_by("kernel_regression.js", controls, words=text, **sources)
    follow_pointer(top, x=position)
    layout = arranged((top, bottom), (text, kernel, bandwidth, position))
    return LiveFigure(
        "live-kernel-regression",
        "A kernel, a bandwidth and a query",
        layout,
        "150 points, the true curve and the kernel regression through them. Choose the kernel and "
        "the bandwidth, and move the query: the points grow with their weight at the query, and "
        "the bars below show the weights.",
        min_height=43,
    )
