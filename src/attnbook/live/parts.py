"""Chapter 12's live figure: a weighted average computed in parts, which combine in any order."""

from typing import Any

import numpy as np
from bokeh.events import Pan, PanStart, Tap
from bokeh.models import ColumnDataSource, CustomJS, Select, Span

from attnbook._validation import numbers
from attnbook.figures import COLOURS, GREY
from attnbook.live.figure import (
    LiveFigure,
    arranged,
    beside,
    control_style,
    plot,
    read_scripts,
    signed_slider,
    slider,
    words,
)

# bfloat16 holds all of these numbers
SCORES = (
    1.5,
    1.0,
    2.75,
    3.5,
    2.5,
    -0.25,
    4.75,
    1.5,
    0.5,
    3.0,
    1.25,
    2.0,
)  # numbers that bfloat16 holds
VALUES = (0.75, 5.75, 2.75, 5.25, 1.75, 3.25, 6.25, 8.0, 4.25, 0.75, 0.5, 3.0)
ORDERS = ["left to right", "tree", "shuffled 1", "shuffled 2", "shuffled 3"]
ARITHMETIC = ["double precision", "bfloat16"]
ROWS = ["average", "total", "top"]  # from below


def parts(
    scores: np.ndarray | None = None,
    values: np.ndarray | None = None,
    *,
    name: str = "live-parts",
) -> LiveFigure:
    """A softmax average in parts, each known by its top, its total and its weighted sum.

    With top = max s, total = Σ exp(s − top) and weighted = Σ exp(s − top) v, two parts combine
    when both are rescaled by exp(top_i − top) to the larger top. The average weighted / total of
    all keys is the same for every cut and order, but for rounding: in bfloat16, which keeps 8 bits
    of a number, each step rounds its result.

    Args:
        scores: a row of 3 to 16 numbers in [−20, 20], one a key; without them, twelve.
        values: a number for each key, in [−20, 20].
        name: of the element in the page; one a page.

    Raises:
        ValueError: too few or too many keys, scores without values, numbers out of range.
    """
    if scores is None and values is None:
        scores, values = np.array(SCORES), np.array(VALUES)
    row, column = _checked(scores, values)
    n = len(row)
    keys = ColumnDataSource(
        {
            "x": np.arange(1, n + 1), "score": row, "value": column,
            "size": np.full(n, 6.0), "name": [str(j + 1) for j in range(n)],
        },
        name="keys",
    )  # fmt: skip
    count = min(4, n)
    after = [n * c // count for c in range(1, count)]
    cuts = ColumnDataSource({"after": after, "x": [c + 0.5 for c in after]}, name="cuts")
    chosen = ColumnDataSource({"x": [1.0], "y": [float(row[0])]}, name="chosen")
    held = ColumnDataSource({"what": [""]}, name="held")
    spans = ColumnDataSource(
        {name: [] for name in ("left", "right", "top", "average", "colour")}, name="spans"
    )
    table = ColumnDataSource({name: [] for name in ("x", "row", "text")}, name="table")
    low, high = min(-4.0, np.floor(row.min())), max(8.0, np.ceil(row.max()))
    above, strip, below = _plots(n, (low, high), column, keys, cuts, chosen, spans, table)
    goal = Span(location=0, dimension="width", line_color=COLOURS["truth"], line_width=2)
    goal.line_dash = "dashed"
    below.add_layout(goal)

    wide = control_style()
    controls = _controls(row, column, after, (low, high), wide)
    text = words(4, wide)
    update = CustomJS(
        args=dict(
            **controls, keys=keys, cuts=cuts, chosen=chosen, held=held, spans=spans, table=table,
            above=above, goal=goal, words=text, orange=COLOURS["weights"],
            blue=COLOURS["estimate"],
        ),
        code=read_scripts("parts.js"),
        name="update",
    )  # fmt: skip
    for control in controls.values():
        control.js_on_change("value", update)
    for event in (Tap, PanStart, Pan):
        above.js_on_event(event, update)
    by_name = controls
    layout = arranged(
        (above, strip, below),
        (text, beside(by_name["order"], by_name["arithmetic"]),
         beside(by_name["count"], by_name["step"]), beside(by_name["cut"], by_name["place"]),
         beside(by_name["key"], by_name["score"], by_name["value"])),
    )  # fmt: skip
    return LiveFigure(
        name,
        "A weighted average in parts",
        layout,
        f"{n} keys on a line with a score and a value each, and cuts between them. Of each part "
        "its largest score, the top, its total of exponentials and its average; step by step the "
        "parts combine, from left to right, as a tree or shuffled, and the last average is the "
        "softmax average of all keys. Move the cuts and the scores, and choose bfloat16, where "
        "each step rounds its result: the text gives the numbers.",
        min_height=62,
    )


def _checked(scores: Any, values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scores and values as arrays: from 3 to 16 of each, within the sliders' reach."""
    if scores is None or values is None:
        given = "scores" if values is None else "values"
        raise ValueError(f"scores, values: got {given} alone, expected both or none")
    row, column = numbers.columns(scores=scores, values=values)
    if not 3 <= len(row) <= 16:
        raise ValueError(f"scores, values: got {len(row)} keys, expected 3 to 16")
    if max(np.abs(row).max(), np.abs(column).max()) > 20:
        raise ValueError("scores, values: got a number out of reach, expected −20 to 20")
    return row, column


def _controls(
    row: np.ndarray,
    column: np.ndarray,
    after: list[int],
    reach: tuple[float, float],
    style: dict[str, Any],
) -> dict[str, Any]:
    """The controls by the names that static/parts.js has for them."""
    n, ends = len(row), (min(0.0, np.floor(column.min())), max(8.0, np.ceil(column.max())))
    numbered = [str(j + 1) for j in range(n)]
    lists = (
        ("order", "combine", ORDERS, ORDERS[0]),
        ("arithmetic", "computed in", ARITHMETIC, ARITHMETIC[0]),
        ("cut", "cut", numbered[: len(after)], "1"),
        ("key", "key", numbered, "1"),
    )
    counts = (
        ("count", "parts", 2, n, len(after) + 1),
        ("step", "steps", 0, len(after), 0),
        ("place", "cut after key", 0, n, after[0]),
    )
    of_key = (("score", *reach, row[0]), ("value", *ends, column[0]))
    return {
        **{
            name: Select(title=title, name=name, options=options, value=value, **style)
            for name, title, options, value in lists
        },
        **{
            name: slider(title=title, name=name, start=start, end=end, value=value, step=1, **style)
            for name, title, start, end, value in counts
        },
        **{
            name: signed_slider(
                title=f"its {name}", name=name, start=float(start), end=float(end),
                value=float(value), **style,
            )
            for name, start, end, value in of_key
        },
    }  # fmt: skip


def _plots(
    n: int,
    reach: tuple[float, float],
    column: np.ndarray,
    keys: Any,
    cuts: Any,
    chosen: Any,
    spans: Any,
    table: Any,
) -> tuple[Any, Any, Any]:
    """Scores with the parts' tops, the parts' numbers, and values with the parts' averages."""
    low, high = reach
    bottom = low - 1.2
    above = plot(
        name="above",
        height=230,
        x_range=(0.3, n + 0.7),
        y_range=(bottom, high + 0.5),
        y_axis_label="score",
    )
    above.vbar("x", width=0.5, top="score", color=GREY, alpha=0.6, source=keys)
    above.add_layout(Span(location=0, dimension="width", line_color=GREY, line_width=1))
    strip = plot(height=86, x_range=above.x_range, y_range=ROWS)
    strip.text(
        "x", "row", text="text", color=GREY, text_font_size="12px", text_align="center",
        text_baseline="middle", source=table,
    )  # fmt: skip
    ends = min(0.0, np.floor(column.min())), max(8.0, np.ceil(column.max()))
    below = plot(
        height=190, x_range=above.x_range, y_range=(ends[0] - 0.5, ends[1] + 0.5),
        x_axis_label="key", y_axis_label="value",
    )  # fmt: skip
    below.scatter("x", "value", size="size", color=GREY, alpha=0.8, source=keys)
    for plane, of in ((above, "top"), (below, "average")):
        plane.segment("left", of, "right", of, line_color="colour", line_width=4, source=spans)
    for plane in (above, strip, below):
        plane.ray(
            "x", bottom if plane is above else ends[0] - 0.5, 0, np.pi / 2,
            line_color=GREY, line_dash="dashed", source=cuts,
        )  # fmt: skip
        plane.xaxis.ticker = list(range(1, n + 1))
    for plane in (above, strip):
        plane.xaxis.visible = False
    above.scatter("x", "score", size=9, color=GREY, source=keys, name="handle")
    above.scatter(
        "x", "y", size=20, fill_color=None, line_color=COLOURS["weights"], line_width=2,
        source=chosen,
    )  # fmt: skip
    above.scatter(
        "x", low - 0.6, size=18, marker="diamond", fill_color=COLOURS["weights"], fill_alpha=0.25,
        line_color=COLOURS["weights"], source=cuts, name="handle",
    )  # fmt: skip
    return above, strip, below
