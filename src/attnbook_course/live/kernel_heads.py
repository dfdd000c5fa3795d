"""Chapter 2's live figure: several kernel regressions added up, each with its own bandwidth."""

import numpy as np
from bokeh.events import ButtonClick
from bokeh.models import Button, ColumnDataSource

from attnbook_course.columns import columns, pair
from attnbook_course.figures import COLOURS
from attnbook_course.live.figure import (
    LiveFigure,
    arranged,
    beside,
    control_style,
    menu,
    plot,
    power_slider,
    signed_slider,
    updated_by,
    words,
)

HEADS = {  # number: log10 of the bandwidth and coefficient to begin with, colour, dashes
    "1": (-0.92, 1.0, COLOURS["weights"], "dashed"),
    "2": (2.0, 0.0, COLOURS["other"], "dotdash"),
    "3": (-0.4, 0.0, "#a98600", "dotted"),  # Okabe and Ito's yellow, dark enough for a thin line
}


def kernel_heads(x: np.ndarray, y: np.ndarray, truth: tuple[np.ndarray, np.ndarray]) -> LiveFigure:
    """Multi-head kernel regression, f̂ = Σ_r a_r f̂_r: up to three Gaussian Nadaraya–Watson heads.

    A button sets the a_r to the least-squares solution on the heads' leave-one-out predictions.

    Args:
        x: the keys, n numbers.
        y: their values.
        truth: the mean curve, a pair of arrays; the estimates are drawn over the same x.
    """
    (x, y), (grid, mean) = columns(x=x, y=y), pair(truth=truth)
    zeros = np.zeros_like(grid)
    data = ColumnDataSource({"x": x, "y": y}, name="data")
    curve = ColumnDataSource(
        {"x": grid, "estimate": zeros, **{f"head{h}": zeros for h in HEADS}}, name="curve"
    )
    colours = [colour for _, _, colour, _ in HEADS.values()]
    ends = ColumnDataSource(
        {"x": [grid[-1]] * 3, "y": [mean[-1]] * 3, "head": list(HEADS), "colour": colours}
    )

    top = plot(height=340, x_axis_label="x", y_axis_label="y")
    top.y_range.only_visible = True  # a head that is not in use takes no room
    top.scatter("x", "y", size=4, color=COLOURS["data"], alpha=0.7, source=data)
    top.line(grid, mean, color=COLOURS["truth"], line_width=1)
    top.line("x", "estimate", color=COLOURS["estimate"], line_width=3, source=curve)
    lines = [
        top.line("x", f"head{h}", color=colour, line_width=1.5, line_dash=dashes, source=curve)
        for h, (_, _, colour, dashes) in HEADS.items()
    ]
    look = {"text_font_size": "14px", "text_baseline": "middle", "x_offset": 4}
    top.text("x", "y", text="head", color="colour", source=ends, **look)

    wide = control_style()
    heads = menu("heads", "heads", list(HEADS), value="2", **wide)
    best = Button(label="best combination", name="best", align="end", **wide)
    bandwidths, combination = [], []
    for h, (log_h, a, colour, _) in HEADS.items():
        style = {"bar_color": colour, **wide}
        title = f"head {h}, bandwidth h"
        bandwidths.append(power_slider(title, f"bandwidth{h}", (-1.7, 2), log_h, **style))
        title = f"head {h}, coefficient a"
        combination.append(signed_slider(title, f"weight{h}", (-2, 2), a, **style))
    text = words(3, wide)
    controls = {"heads": heads, "bandwidths": bandwidths, "combination": combination}
    drawn = {"data": data, "curve": curve, "ends": ends, "lines": lines, "words": text}
    update = updated_by(("gaussian_average.js", "kernel_heads.js"), controls, **drawn)
    best.js_on_event(ButtonClick, update)
    pairs = [beside(*pair) for pair in zip(bandwidths, combination, strict=True)]
    layout = arranged((top,), (text, beside(heads, best), *pairs))
    return LiveFigure(
        "live-kernel-heads",
        "Several kernels at once",
        layout,
        f"{len(x)} points, the true curve and a weighted sum of up to three kernel regressions, "
        "each drawn as a dashed line. Choose the number of heads, bandwidth and coefficient of "
        "each, or take the best coefficients: the text gives the error of the sum, with each "
        "point left out and on the points themselves.",
        min_height=39,
    )
