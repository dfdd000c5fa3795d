"""Chapter 9's live figure: three regressions of points to move, one of them a transformer."""

import numpy as np
from bokeh.models import Button, ColumnDataSource, CustomJS

from attnbook_course.figures import COLOURS
from attnbook_course.live import models
from attnbook_course.live.figure import (
    LiveFigure,
    arranged,
    beside,
    control_style,
    handle,
    power_slider,
    words,
)
from attnbook_course.live.points import (
    check_kernel,
    check_points,
    follow_reader,
    point_controls,
    point_plane,
    point_sources,
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
        model: the name of a stored EncoderOnly(3, 1), see attnbook_course.live.models.store.
        length_scale: of the Gaussian process.
        noise: standard deviation that the Gaussian process takes the values to have.
        bandwidth: of Nadaraya–Watson to begin with, from 0.01 to 3.
        name: of the element in the page; one a page.

    Raises:
        ValueError: points that are none, too many, or outside [−1, 1]; a length scale or bandwidth
            that cannot be, noise below 0; a name that no model can have.
    """
    x, y = check_points(x, y, MOST)
    check_kernel(length_scale, noise, bandwidth)
    sources = point_sources(x, y)
    nothing = np.full_like(GRID, np.nan)
    curves = {column: nothing for column, *_ in LINES.values()}
    curve = ColumnDataSource({"x": GRID, **curves}, name="curve")
    colours = [colour for _, colour, *_ in LINES.values()]
    at_query = ColumnDataSource({"x": [0.0] * 3, "y": [0.0] * 3, "colour": colours}, name="query")
    reach = max(3.0, float(np.ceil(1.1 * np.max(np.abs(y)))))
    grip = ColumnDataSource({"x": [0.0], "y": [-0.9 * reach]}, name="grip")
    plane, line, _ = point_plane(
        LINES, reach, curve, at_query, sources, height=360, x_axis_label="x"
    )
    handle(plane, grip)

    wide = control_style()
    moved = point_controls(x, y, reach, wide)
    log_h = float(np.log10(bandwidth))
    width = power_slider("bandwidth h", "bandwidth", (-2, 0.5), log_h, **wide)
    load = Button(label=models.load_label(model), name="load", min_width=190, **wide)
    text = words(3, wide)
    notice = words(1, {"render_as_text": True, **wide})
    notice.update(name="notice", visible=False)
    shown = {
        **sources,
        "curve": curve,
        "at_query": at_query,
        "grip": grip,
        "plane": plane,
        "line": line,
        "words": text,
        "notice": notice,
        "load": load,
    }
    told = {
        "most": MOST,
        "length_scale": length_scale,
        "noise": noise,
        "bandwidth": width,
        "model": model,
        "instead": f"In Python, live.models.load('{model}') gives it, to call with tokens and a "
        "mask.",
    }
    scripts = models.scripts("points.js", "gaussian_process.js", "in_context_regression.js")
    args = {**moved._asdict(), **shown, **told}
    update = CustomJS(args=args, code=scripts, name="update")
    buttons = moved.add, moved.remove, load
    follow_reader(update, plane, (moved.query, width, *moved[1:4]), buttons)
    layout = arranged(
        (plane,),
        (text, notice, beside(moved.query, width), beside(*moved[1:4]), beside(*buttons)),
    )
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
