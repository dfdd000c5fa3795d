"""Chapter 9's live figure of training: one layer of attention learns to regress, step by step."""

from typing import Any

import numpy as np
from bokeh.events import ButtonClick
from bokeh.models import Button, ColumnDataSource, PrintfTickFormatter, Span

from attnbook._validation import int_between
from attnbook_course.figures import COLOURS
from attnbook_course.live.figure import (
    LEGEND,
    LiveFigure,
    arranged,
    beside,
    between,
    control_style,
    empty,
    legend,
    plot,
    power_slider,
    powers,
    slider,
    updated_by,
    words,
)

SCRIPTS = (
    "gaussian_process.js",
    "attention_regressor.js",
    "regression_rivals.js",
    "button_label.js",
    "regressor_training.js",
)
RATES = (0.001, 3.0)  # ends of the sliders
SEEDS, PAIRS = 99, 32
STEPS = 2000  # of a training, as in attention_regressor.js
PORTION = 100  # steps at once, for readers who want less motion
JUDGED, JUDGED_SEED = 400, 1_000_000  # functions that no training sees
NAME = "live-regressor-training"
LINES = {  # name: column, colour, width, dashes
    "the layer": ("layer", COLOURS["estimate"], 3, "solid"),
    "kernel regression": ("kernel", COLOURS["weights"], 2, "dashed"),
    "ridge": ("ridge", COLOURS["other"], 1.5, "dotdash"),
    "posterior mean": ("posterior", COLOURS["truth"], 1.5, "solid"),
}


def regressor_training(
    *,
    length_scale: float = 0.3,
    noise: float = 0.2,
    pairs: int = PAIRS,
    learning_rate: float = 0.1,
    seed: int = 0,
) -> LiveFigure:
    """One head, torch.MultiHeadAttention(4, 1), is trained in the page on random functions.

    Its queries and keys are (1, x, x², 0), its values (0, 0, 0, y), and its fourth output ŷ is the
    answer. The loss is the mean of (ŷ_n − y_{n+1})² over 32 new functions a step and n = 1 to the
    number of pairs, where ŷ_n reads the first n; 2000 steps of Adam follow train.training's
    warm_cosine. Beside it stand Nadaraya–Watson with the best bandwidth, ridge regression on
    (1, x, x²) with the best penalty, and the posterior mean. With φ(x) = (1, x, x²) the head's
    score is φ(x)ᵀ A φ(x'), and its bandwidth is read off A: 1/h² = A_11 and −1/(2h²) = A_02.

    Args:
        length_scale: of the functions, from 0.05 to 2.
        noise: standard deviation that is added to their values, from 0 to 1; theirs is 1.
        pairs: in a prompt to begin with, from 2 to 32.
        learning_rate: the largest, to begin with, from 0.001 to 3.
        seed: of the first parameters and the functions to begin with, from 0 to 99.

    Raises:
        ValueError: a number out of its range; pairs or a seed that are no integer.
    """
    between(0.05, 2, length_scale=length_scale)
    between(0, 1, noise=noise)
    low, high, start = powers(*RATES, learning_rate=learning_rate)
    wide = control_style()
    style = {"min_width": 150, **wide}
    first, count = int_between(0, SEEDS, seed=seed), int_between(2, PAIRS, pairs=pairs)
    controls = {
        "seed": slider("seed", "seed", (0, SEEDS), first, step=1, **style),
        "rate": power_slider("learning rate", "rate", (low, high), start, **style),
        "pairs": slider("pairs", "pairs", (2, PAIRS), count, step=1, **style),
    }
    buttons = {
        name: Button(label=label, name=name, min_width=95, **wide)
        for name, label in (("run", "start"), ("one", "one step"), ("again", "reset"))
    }
    sources = _sources()
    above = _functions(sources)
    below, error_lines = _errors(sources)
    right, best_h = _bandwidths(sources, length_scale)
    text = words(4, wide)
    told: dict[str, Any] = {
        "length_scale": length_scale,
        "noise": noise,
        "figure": NAME,
        "judged": JUDGED,
        "judged_seed": JUDGED_SEED,
        "portion": PORTION,
    }
    drawn = {"below": below, "best_h": best_h, "words": text, **error_lines}
    update = updated_by(SCRIPTS, controls, **buttons, **sources, **told, **drawn)
    for button in buttons.values():
        button.js_on_event(ButtonClick, update)
    layout = arranged(
        (above, beside(below, right)),
        (beside(*buttons.values()), text, beside(*controls.values())),
    )
    return LiveFigure(
        NAME,
        "One layer learns while you watch",
        layout,
        f"A function with up to {PAIRS} noisy points, and four answers: one layer of attention, "
        "which learns, kernel regression with the best bandwidth, ridge regression and the "
        "posterior mean. Below, the layer's error at every step beside the other three errors, and "
        "the bandwidth that is read off its weights. Start and stop the training; choose its seed, "
        "the learning rate and the number of pairs: the text gives the numbers.",
        min_height=46,
    )


def _sources() -> dict[str, Any]:
    """What the plots show; the script fills it in."""
    grid = np.linspace(-1, 1, 101)
    curve = {column: np.full_like(grid, np.nan) for column, *_ in LINES.values()}
    columns = {"points": ("x", "y", "size"), "trail": ("step", "error", "product", "square")}
    return {"curve": ColumnDataSource({"x": grid, **curve}, name="curve"), **empty(columns)}


def _functions(sources: dict[str, Any]) -> Any:
    """The points, as large as their weights for the query at 0, and the four answers."""
    above = plot(
        height=260, x_range=(-1.04, 1.04), y_range=(-3, 3), x_axis_label="x", y_axis_label="y"
    )
    above.add_layout(
        Span(location=0, dimension="height", line_color=COLOURS["weights"], line_alpha=0.5)
    )
    above.scatter("x", "y", size="size", color=COLOURS["data"], alpha=0.7, source=sources["points"])
    drawn = {
        label: above.line(
            "x", column, color=colour, line_width=width, line_dash=dashes, source=sources["curve"]
        )
        for label, (column, colour, width, dashes) in reversed(LINES.items())
    }
    legend(above, {label: drawn[label] for label in LINES}, ncols=2, glyph_width=22)
    return above


def _errors(sources: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The layer's error against the step, and the others' as lines by their names in the script."""
    ends = {"x_range": (0, STEPS), "y_axis_type": "log", "y_range": (0.1, 1.5)}
    below = plot(height=210, min_width=300, x_axis_label="step", y_axis_label="error", **ends)
    below.yaxis.ticker = [0.02, 0.05, 0.1, 0.2, 0.5, 1]
    below.yaxis.formatter = PrintfTickFormatter(format="%g")
    spans = {
        f"{column}_error": Span(
            location=1, dimension="width", line_color=colour, line_width=width, line_dash=dashes
        )
        for column, colour, width, dashes in list(LINES.values())[1:]
    }
    for span in spans.values():
        below.add_layout(span)
    below.line("step", "error", color=COLOURS["estimate"], line_width=3, source=sources["trail"])
    return below, spans


def _bandwidths(sources: dict[str, Any], length_scale: float) -> tuple[Any, Any]:
    """The two bandwidths in the head's weights against the step, and the best one as a line."""
    ends = {"x_range": (0, STEPS), "y_range": (length_scale / 10, 10 * length_scale)}
    labels = {"y_axis_type": "log", "x_axis_label": "step", "y_axis_label": "bandwidth h"}
    right = plot(height=210, min_width=300, **ends, **labels)
    right.yaxis.ticker = [m * 10.0**e for e in range(-3, 2) for m in (1, 2, 5)]
    right.yaxis.formatter = PrintfTickFormatter(format="%g")
    best = Span(location=length_scale, dimension="width", line_dash="dashed")
    best.update(line_color=COLOURS["weights"], line_width=2)
    right.add_layout(best)
    for label, column, width, alpha in (("x x′", "product", 6, 0.5), ("x′²", "square", 2, 1)):
        look = {"color": COLOURS["estimate"], "line_width": width, "line_alpha": alpha}
        right.line("step", column, source=sources["trail"], legend_label=f"from {label}", **look)
    right.legend.update(padding=2, spacing=0, margin=4, glyph_width=22, **LEGEND)
    return right, best
