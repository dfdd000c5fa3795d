"""Chapter 11's live figure: what each point counts in a prediction, negative weights and all."""

from typing import Any

import numpy as np
from bokeh.models import (
    CheckboxGroup,
    ColumnDataSource,
    CustomJS,
    CustomJSTickFormatter,
    Div,
    InlineStyleSheet,
    Span,
)

from attnbook import datasets
from attnbook_course.figures import COLOURS, GREY
from attnbook_course.live.figure import (
    LiveFigure,
    arranged,
    beside,
    control_style,
    handle,
    menu,
    plot,
    read_scripts,
    signed_slider,
    slider,
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

MOST = 16  # points
GRID = np.linspace(-1, 1, 81)
ORDERS = ["as given", "reversed", "shuffled 1", "shuffled 2", "shuffled 3"]
WRAPPED = """
.bk-input-group { display: flex; flex-wrap: wrap; gap: 0 14px; line-height: 26px; }
.bk-input-group > label { margin: 0; }
"""
LINES = {  # name: column, colour, width, dashes
    "sum": ("sum", COLOURS["other"], 2.0, "dotted"),
    "delta": ("delta", COLOURS["estimate"], 2.0, "solid"),
    "passes": ("passes", COLOURS["estimate"], 2.0, "dashed"),
    "Nadaraya–Watson": ("kernel", COLOURS["weights"], 2.0, "dashed"),
    "posterior": ("posterior", COLOURS["truth"], 2.0, "solid"),
}


def estimators(
    x: np.ndarray | None = None,
    y: np.ndarray | None = None,
    *,
    length_scale: float = 0.3,
    noise: float = 0.2,
    bandwidth: float = 0.1,
    name: str = "live-estimators",
) -> LiveFigure:
    """Predictions Σ_j w_j y_j with the weights of five estimators, drawn as bars of either sign.

    Four of them predict k(q, ·) M y: the sum has M = I, the delta rule (I + β tril(K, −1))⁻¹ β, the
    posterior mean (K + σ²I)⁻¹, and passes of Gauss–Seidel lie between the two. The fifth is
    Nadaraya–Watson. The order of arrival decides the delta rule and the first passes alone.

    Args:
        x: the points to begin with in their order of arrival, from 1 to 16 numbers in [−1, 1];
            without them, ten of a smooth function.
        y: their values.
        length_scale: of the Gaussian kernel k.
        noise: standard deviation σ that the posterior takes the values to have.
        bandwidth: of Nadaraya–Watson, from 0.01 to 3.
        name: of the element in the page; one a page.

    Raises:
        ValueError: points that are none, too many, or outside [−1, 1]; x without y; a length scale
            or bandwidth that cannot be, noise below 0.
    """
    if x is None and y is None:
        drawn = datasets.smooth_functions(1, 10, seed=14)
        x, y = drawn.x[0].round(2), drawn.y[0].round(2)
    if x is None or y is None:
        given = "x" if y is None else "y"
        raise ValueError(f"x, y: got {given} alone, expected both or none")
    x, y = check_points(x, y, MOST)
    check_kernel(length_scale, noise, bandwidth)
    sources = point_sources(x, y)
    curves = {column: np.full_like(GRID, np.nan) for column, *_ in LINES.values()}
    curve = ColumnDataSource({"x": GRID, **curves}, name="curve")
    empty: dict[str, list[Any]] = {"x": [], "y": [], "colour": []}
    at_query = ColumnDataSource(empty, name="query")
    bars = ColumnDataSource({"x": x, "weight": 0 * x, "colour": [GREY] * len(x)}, name="bars")
    arrived = ColumnDataSource({"x": x, "y": y, "name": [""] * len(x)}, name="arrived")
    reach = max(3.0, float(np.ceil(1.1 * np.max(np.abs(y)))))
    grip = ColumnDataSource({"x": [0.0], "y": [-0.9 * reach]}, name="grip")
    plane, line, drawn_lines = point_plane(
        LINES, reach, curve, at_query, sources, ncols=3, height=330
    )
    handle(plane, grip)
    look = {"color": GREY, "text_font_size": "12px"}
    plane.text("x", "y", text="name", x_offset=7, y_offset=-4, source=arrived, **look)
    below, mark = _weight_plot(plane, bars)

    wide = control_style()
    moved = point_controls(x, y, reach, wide)
    shown = menu("weights of", "shown", list(LINES), value="delta", **wide)
    order = menu("order of arrival", "order", ORDERS, **wide)
    others = CheckboxGroup(name="others", labels=list(LINES), active=[0, 1, 3, 4], **wide)
    others.update(inline=True, stylesheets=[*wide["stylesheets"], InlineStyleSheet(css=WRAPPED)])
    drawn_too = Div(text="curves beside it", margin=(0, 5, 0, 5), **wide)
    beta = signed_slider("delta's β", "beta", (0.05, 1.5), 1, **wide)
    doubled = CustomJSTickFormatter(code="return Math.pow(2, tick).toFixed(0)")
    count = slider("passes", "passes", (0, 6), 2, step=1, format=doubled, **wide)
    text = words(3, wide)
    plots = {
        "curve": curve,
        "at_query": at_query,
        "bars": bars,
        "arrived": arrived,
        "grip": grip,
        "plane": plane,
        "below": below,
        "line": line,
        "mark": mark,
        "words": text,
        "lines": [drawn_lines[label] for label in LINES],
    }
    columns, colours = ([line[k] for line in LINES.values()] for k in (0, 1))
    told: dict[str, Any] = {
        "columns": columns,
        "colours": colours,
        "up": COLOURS["weights"],
        "down": COLOURS["other"],
        "most": MOST,
        "length_scale": length_scale,
        "noise": noise,
        "bandwidth": bandwidth,
    }
    chosen = {"shown": shown, "order": order, "others": others, "beta": beta, "doublings": count}
    args = {**sources, **moved._asdict(), **plots, **told, **chosen}
    scripts = read_scripts("points.js", "shuffled.js", "estimators.js")
    update = CustomJS(args=args, code=scripts, name="update")
    controls = moved.query, *moved[1:4], shown, order, beta, count
    follow_reader(update, plane, controls, (moved.add, moved.remove))
    others.js_on_change("active", update)
    moved.point.min_width = 80
    sliders = beside(moved.query, beta, count, each="50%"), beside(*moved[1:4], each="30%")
    menus = beside(shown, order), drawn_too, others
    layout = arranged((plane, below), (text, *menus, *sliders, beside(moved.add, moved.remove)))
    return LiveFigure(
        name,
        "What each value counts",
        layout,
        f"{len(x)} points on a line, numbered in their order of arrival, and the predictions of "
        "the sum, the delta rule, passes of it, Nadaraya–Watson and the posterior mean. Below "
        "them, bars with the weight of each point in one prediction at the query; negative weights "
        "go down. Move the points and the query, and choose the order of arrival, the delta "
        "rule's β and the number of passes: the text gives the prediction and the sum of the "
        "weights.",
        min_height=56,
    )


def _weight_plot(plane: Any, bars: Any) -> tuple[Any, Any]:
    """The weights as bars from the axis up or down, and the query's line again."""
    labels = {"x_axis_label": "x", "y_axis_label": "weight"}
    below = plot(height=170, x_range=plane.x_range, y_range=(-0.4, 1), **labels)
    below.add_layout(Span(location=0, dimension="width", line_color=GREY, line_width=1))
    mark = Span(location=0, dimension="height", line_color=COLOURS["weights"], line_width=1.5)
    below.add_layout(mark)
    below.vbar("x", width=0.035, top="weight", color="colour", alpha=0.85, source=bars)
    below.yaxis.ticker.desired_num_ticks = 4
    below.name = "below"
    return below, mark
