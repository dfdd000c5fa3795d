"""Live figures: Bokeh models whose callbacks are JavaScript, so that no kernel stands behind them.

One definition runs on the website, in Colab and in JupyterLab. The website serves BokehJS itself;
a notebook takes it from Bokeh's own host.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import bokeh
import numpy as np
from bokeh.embed import json_item
from bokeh.events import Pan, Tap
from bokeh.layouts import column
from bokeh.models import (
    ColumnDataSource,
    CustomJS,
    CustomJSTickFormatter,
    Div,
    InlineStyleSheet,
    Select,
    Slider,
)
from bokeh.plotting import figure

from attnbook.figures import COLOURS, GREY


@dataclass(frozen=True)
class LiveFigure:
    """A Bokeh layout that draws itself wherever HTML is shown.

    Args:
        name: of the element in the page; one a page.
        layout: the Bokeh model.
        description: what the figure shows, for a screen reader and where no script runs.
    """

    name: str
    layout: Any
    description: str

    def __repr__(self) -> str:
        return f"Live figure: {self.description}"

    def _repr_html_(self) -> str:
        item = _stable(json_item(self.layout))
        parts = {"NAME": self.name, "DESCRIPTION": self.description, "VERSION": bokeh.__version__}
        page = _read("live.html")
        for placeholder, text in parts.items():
            page = page.replace(f"%{placeholder}%", text)
        return page.replace("%ITEM%", item.replace("</", "<\\/"))


def _stable(item: Any) -> str:
    """The item with its ids counted from 1: the same figure gives the same text."""
    numbers: dict[str, str] = {}
    return re.sub(
        r'"p\d{4,}"',
        lambda found: numbers.setdefault(found[0], f'"{len(numbers) + 1}"'),
        json.dumps(item),
    )


@cache
def _read(name: str) -> str:
    return files("attnbook").joinpath("assets", name).read_text(encoding="utf-8")


def kernel_regression(
    x: np.ndarray, y: np.ndarray, truth: tuple[np.ndarray, np.ndarray]
) -> LiveFigure:
    """Nadaraya–Watson with a kernel, a bandwidth and a query to move.

    Args:
        x: the keys, n numbers.
        y: their values.
        truth: the mean curve, a pair of arrays; the estimate is drawn over the same x.
    """
    x, y, grid, mean = (np.ravel(a).astype(float) for a in (x, y, *truth))
    zeros = np.zeros_like(x)
    data = ColumnDataSource({"x": x, "y": y, "weight": zeros, "size": zeros + 4}, name="data")
    curve = ColumnDataSource({"x": grid, "estimate": np.zeros_like(grid)}, name="curve")
    query = ColumnDataSource({"x": [0.0], "y": [0.0]}, name="query")

    span = {"sizing_mode": "stretch_width", "toolbar_location": None, "tools": ""}
    top = figure(height=300, y_axis_label="y", **span)
    top.scatter("x", "y", size="size", color=COLOURS["data"], alpha=0.7, source=data)
    top.line(grid, mean, color=COLOURS["truth"], line_width=1)
    top.line("x", "estimate", color=COLOURS["estimate"], line_width=3, source=curve)
    top.scatter("x", "y", size=14, marker="diamond", color=COLOURS["weights"], source=query)
    bottom = figure(
        height=120, x_range=top.x_range, x_axis_label="x", y_axis_label="weight", **span
    )
    bottom.segment("x", 0, "x", "weight", color=COLOURS["weights"], line_width=2, source=data)
    bottom.y_range.start = 0
    for plot in (top, bottom):
        _theme(plot)

    themed = InlineStyleSheet(css=":host { color: inherit; } .bk-input { color: #222; }")
    wide = {"sizing_mode": "stretch_width", "stylesheets": [themed]}
    kernel = Select(
        title="kernel", name="kernel", options=["gaussian", "boxcar", "triangular", "epanechnikov"],
        value="gaussian", **wide,
    )  # fmt: skip
    power = CustomJSTickFormatter(code="return Math.pow(10, tick).toPrecision(3)")
    bandwidth = Slider(  # of the logarithm to base 10
        title="bandwidth h", name="bandwidth", start=-2, end=0.7, step=0.01, value=-0.92,
        format=power, **wide,
    )  # fmt: skip
    position = Slider(
        title="query x", name="position", start=-3.5, end=3.5, step=0.01, value=-0.5, **wide
    )
    words = Div(name="words", styles={"min-height": "3em"}, **wide)
    update = CustomJS(
        args={
            "data": data, "curve": curve, "query": query, "kernel": kernel,
            "bandwidth": bandwidth, "position": position, "words": words,
        },
        code=_read("kernel_regression.js"), name="update",
    )  # fmt: skip
    for control in (kernel, bandwidth, position):
        control.js_on_change("value", update)
    move = CustomJS(
        args={"p": position}, code="p.value = Math.max(p.start, Math.min(p.end, cb_obj.x))"
    )
    top.js_on_event(Tap, move)
    top.js_on_event(Pan, move)
    layout = column(kernel, bandwidth, position, words, top, bottom, sizing_mode="stretch_width")
    return LiveFigure(
        "live-kernel-regression",
        layout,
        "150 points, the true curve and the kernel regression through them. Choose the kernel and "
        "the bandwidth, and move the query: the points grow with their weight at the query, and "
        "the bars below show the weights.",
    )


def _theme(plot: Any) -> None:
    """Grey on transparent, as in the still figures."""
    plot.background_fill_color = plot.border_fill_color = None
    plot.outline_line_color = None
    plot.grid.grid_line_color = None
    plot.axis.axis_label_text_color = plot.axis.major_label_text_color = GREY
    plot.axis.axis_line_color = plot.axis.major_tick_line_color = GREY
    plot.axis.minor_tick_line_color = None
    plot.axis.axis_label_text_font_style = "normal"
