"""Chapter 9's live figure: three regressions of points to move, one of them a transformer."""

from typing import Any

import numpy as np
from bokeh.events import ButtonClick, DoubleTap, Pan, PanStart, Tap
from bokeh.models import (
    Button,
    ColumnDataSource,
    CustomJS,
    Legend,
    LegendItem,
    Select,
    Span,
)

from attnbook._validation import numbers
from attnbook.figures import COLOURS, GREY
from attnbook.live import models
from attnbook.live.figure import (
    LiveFigure,
    arranged,
    beside,
    control_style,
    handle,
    plot,
    power_slider,
    signed_slider,
    words,
)

MOST = 32  # context points
GRID = np.linspace(-1, 1, 81)
LINES = {  # name: column, colour, width, dashes
    "Nadaraya–Watson": ("kernel", COLOURS["weights"], 2, "dashed"),
    "Gaussian process": ("posterior", COLOURS["truth"], 1.5, "solid"),
    "transformer": ("transformer", COLOURS["estimate"], 3, "solid"),
}


def in_context_regression(
    x: np.ndarray,
    y: np.ndarray,
    *,
    model: str,
    length_scale: float = 0.3,
    noise: float = 0.2,
    bandwidth: float = 0.1,
    name: str = "live-in-context",
) -> LiveFigure:
    """Nadaraya–Watson, the Gaussian process's posterior mean and a transformer on the same points.

    The website loads the model with the figure. Its tokens are (x, y, 0) for each point in
    order, which reads those up to it, and (x, 0, 1) for a query, which reads all points and itself.

    Args:
        x: the context points to begin with, from 1 to 32 numbers in [−1, 1].
        y: their values.
        model: the name of a stored EncoderOnly(3, 1), see attnbook.live.models.store.
        length_scale: of the Gaussian process.
        noise: standard deviation that the Gaussian process takes the values to have.
        bandwidth: of Nadaraya–Watson to begin with, from 0.01 to 3.
        name: of the element in the page; one a page.

    Raises:
        ValueError: points that are none, too many, or outside [−1, 1]; a length scale or bandwidth
            that cannot be, noise below 0; a name that no model can have.
    """
    x, y = (np.ravel(np.asarray(a, dtype=float)) for a in (x, y))
    _check(x, y, length_scale, noise, bandwidth)
    context = ColumnDataSource({"x": x, "y": y}, name="context")
    chosen = ColumnDataSource({"x": x[:1], "y": y[:1]}, name="chosen")
    held = ColumnDataSource({"what": ["query"]}, name="held")
    nothing = np.full_like(GRID, np.nan)
    curves = {column: nothing for column, *_ in LINES.values()}
    curve = ColumnDataSource({"x": GRID, **curves}, name="curve")
    colours = [colour for _, colour, *_ in LINES.values()]
    at_query = ColumnDataSource({"x": [0.0] * 3, "y": [0.0] * 3, "colour": colours}, name="query")
    reach = max(3.0, float(np.ceil(1.1 * np.max(np.abs(y)))))
    grip = ColumnDataSource({"x": [0.0], "y": [-0.9 * reach]}, name="grip")
    plane, line = _plane(reach, context, chosen, curve, at_query)
    handle(plane, grip)

    wide = control_style()
    query = signed_slider(title="query x", name="position", start=-1, end=1, value=0.25, **wide)
    width = power_slider(
        title="bandwidth h", name="bandwidth", start=-2, end=0.5, value=float(np.log10(bandwidth)),
        **wide,
    )  # fmt: skip
    point = Select(
        title="point", name="point", options=[str(i + 1) for i in range(len(x))], value="1", **wide
    )
    first, second = (
        signed_slider(
            title=f"point {axis}", name=f"point_{axis}", start=-end, end=end,
            value=float(start[0]), **wide,
        )
        for axis, end, start in (("x", 1, x), ("y", reach, y))
    )  # fmt: skip
    add = Button(label="add a point at the query", name="add", min_width=180, **wide)
    remove = Button(label="remove the point", name="remove", min_width=140, **wide)
    load = Button(label=models.load_label(model), name="load", min_width=190, **wide)
    text = words(3, wide)
    notice = words(1, {"render_as_text": True, **wide})
    notice.update(name="notice", visible=False)
    update = CustomJS(
        args=dict(
            context=context, chosen=chosen, held=held, curve=curve, at_query=at_query, grip=grip,
            plane=plane, line=line, query=query, bandwidth=width, point=point, first=first,
            second=second, add=add, remove=remove, load=load, words=text, notice=notice,
            model=model, most=MOST, length_scale=length_scale, noise=noise, instead=_instead(model),
        ),
        code=models.scripts("in_context_regression.js"),
        name="update",
    )  # fmt: skip
    for control in (query, width, point, first, second):
        control.js_on_change("value", update)
    for button in (add, remove, load):
        button.js_on_event(ButtonClick, update)
    for event in (Tap, DoubleTap, PanStart, Pan):
        plane.js_on_event(event, update)
    layout = arranged(
        (plane,),
        (text, notice, beside(query, width), beside(point, first, second),
         beside(add, remove, load)),
    )  # fmt: skip
    return LiveFigure(
        name,
        "Three regressions of the same points",
        layout,
        f"{len(x)} context points, and three curves through them: Nadaraya–Watson with a bandwidth "
        "to choose, the mean of the Gaussian process's posterior, and a transformer that reads the "
        "points. Move, add and remove points, and move the query: the "
        "text gives the three predictions there.",
        min_height=42,
    )


def _plane(reach: float, context: Any, chosen: Any, curve: Any, at_query: Any) -> tuple[Any, Any]:
    """The points, the three curves, the query's line and what the curves say there."""
    plane = plot(
        height=360, x_axis_label="x", y_axis_label="y",
        x_range=(-1.04, 1.04), y_range=(-reach, reach),
    )  # fmt: skip
    line = Span(location=0, dimension="height", line_color=COLOURS["weights"], line_width=1.5)
    plane.add_layout(line)
    drawn = {
        label: plane.line(
            "x", column, color=colour, line_width=width, line_dash=dashes, source=curve
        )
        for label, (column, colour, width, dashes) in reversed(LINES.items())
    }
    plane.scatter("x", "y", size=8, color=COLOURS["data"], alpha=0.8, source=context, name="handle")
    plane.scatter(
        "x", "y", size=24, fill_color=None, line_color=COLOURS["weights"], line_width=2,
        source=chosen,
    )  # fmt: skip
    plane.scatter(
        "x", "y", size=14, marker="diamond", color="colour", line_color="white", source=at_query
    )
    items = [LegendItem(label=label, renderers=[drawn[label]]) for label in LINES]
    legend = Legend(
        items=items, orientation="horizontal", ncols=2, background_fill_color=None,
        border_line_color=None, label_text_color=GREY, label_text_font_size="13px", spacing=6,
        margin=0, padding=4, glyph_width=16, label_standoff=3,
    )  # fmt: skip
    plane.add_layout(legend, "above")
    return plane, line


def _check(
    x: np.ndarray, y: np.ndarray, length_scale: float, noise: float, bandwidth: float
) -> None:
    if len(x) != len(y) or not 1 <= len(x) <= MOST:
        raise ValueError(f"x, y: got {len(x)}, {len(y)} numbers, expected 1 to {MOST}, as many y")
    if not (np.all(np.abs(x) <= 1) and np.all(np.isfinite(y))):
        raise ValueError("x, y: got a point elsewhere, expected x from −1 to 1 and a finite y")
    if not numbers.real_or_nan(length_scale) > 0:
        raise ValueError(f"length_scale: got {length_scale}, expected a number above 0")
    if not numbers.real_or_nan(noise) >= 0:
        raise ValueError(f"noise: got {noise}, expected 0 or more")
    if not 0.01 <= numbers.real_or_nan(bandwidth) <= 3:
        raise ValueError(f"bandwidth: got {bandwidth}, expected 0.01 to 3")


def _instead(model: str) -> str:
    """What a reader can do where the model cannot be loaded."""
    return f"In Python, live.models.load('{model}') gives it, to call with tokens and a mask."
