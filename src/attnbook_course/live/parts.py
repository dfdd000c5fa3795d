"""Chapter 12's live figure: a weighted average computed in parts, which combine in any order."""

from typing import Any, NamedTuple

import numpy as np
from bokeh.events import Pan, PanStart, Tap
from bokeh.models import ColumnDataSource, Span

from attnbook_course.columns import columns
from attnbook_course.figures import COLOURS, GREY
from attnbook_course.live.figure import (
    CENTRED,
    LiveFigure,
    arranged,
    beside,
    control_style,
    framed,
    menu,
    plot,
    signed_slider,
    slider,
    updated_by,
    words,
)

# bfloat16 holds all of these numbers, so that it is the arithmetic alone that rounds
SCORES = (1.5, 1.0, 2.75, 3.5, 2.5, -0.25, 4.75, 1.5, 0.5, 3.0, 1.25, 2.0)
VALUES = (0.75, 5.75, 2.75, 5.25, 1.75, 3.25, 6.25, 8.0, 4.25, 0.75, 0.5, 3.0)
PARTS = 4  # to begin with
ORDERS = ["left to right", "tree", "shuffled 1", "shuffled 2", "shuffled 3"]
ARITHMETIC = ["double precision", "bfloat16"]
ROWS = ["average", "total", "top"]  # from below


class Row(NamedTuple):
    """Scores and values of the keys, and the ends of the axes that hold them."""

    scores: np.ndarray
    values: np.ndarray
    score_ends: tuple[float, float]
    value_ends: tuple[float, float]


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
        scores: a row of 3 to 16 numbers in [−20, 20], one per key; without them, twelve.
        values: a number for each key, in [−20, 20].
        name: of the element in the page; one a page.

    Raises:
        ValueError: too few or too many keys, scores without values, numbers out of range.
    """
    row = _row(scores, values)
    n = len(row.scores)
    count = min(PARTS, n)
    after = [n * c // count for c in range(1, count)]
    sources = _sources(row, after)
    above, strip, below = _score_plot(row, sources), _strip(row, sources), _value_plot(row, sources)
    strip.x_range = below.x_range = above.x_range
    goal = Span(dimension="width", line_color=COLOURS["truth"], line_width=2, line_dash="dashed")
    below.add_layout(goal)

    wide = control_style()
    controls = _controls(row, after, wide)
    text = words(4, wide)
    drawn = {"above": above, "goal": goal, "words": text}
    colours = {"orange": COLOURS["weights"], "blue": COLOURS["estimate"]}
    update = updated_by(("shuffled.js", "parts.js"), controls, **sources, **drawn, **colours)
    for event in (Tap, PanStart, Pan):
        above.js_on_event(event, update)
    rows = ("order", "arithmetic"), ("count", "step"), ("cut", "place"), ("key", "score", "value")
    layout = arranged(
        (above, strip, below),
        (text, *(beside(*(controls[one] for one in line), each="50%") for line in rows)),
    )
    return LiveFigure(
        name,
        "A weighted average in parts",
        layout,
        f"{n} keys on a line with a score and a value each, and cuts between them. Of each part "
        "its largest score, the top, its total of exponentials and its average; step by step the "
        "parts combine, from left to right, as a tree or shuffled, and the last average is the "
        "softmax average of all keys. Move the cuts and the scores, and choose bfloat16, where "
        "each step rounds its result: the text gives the numbers.",
        min_height=56,
    )


def _row(scores: Any, values: Any) -> Row:
    """From 3 to 16 keys within the sliders' reach; those above where there are none."""
    if scores is None and values is None:
        scores, values = np.array(SCORES), np.array(VALUES)
    if scores is None or values is None:
        given = "scores" if values is None else "values"
        raise ValueError(f"scores, values: got {given} alone, expected both or none")
    scores, values = columns(scores=scores, values=values)
    if not 3 <= len(scores) <= 16:
        raise ValueError(f"scores, values: got {len(scores)} keys, expected 3 to 16")
    if max(np.abs(scores).max(), np.abs(values).max()) > 20:
        raise ValueError("scores, values: got a number out of reach, expected −20 to 20")

    def ends(low: float, array: np.ndarray) -> tuple[float, float]:
        lowest, highest = float(np.floor(array.min())), float(np.ceil(array.max()))
        return min(low, lowest), max(8.0, highest)

    return Row(scores, values, ends(-4.0, scores), ends(0.0, values))


def _sources(row: Row, after: list[int]) -> dict[str, Any]:
    """What the plots show; the script fills in the parts."""
    n = len(row.scores)
    key = {"x": np.arange(1, n + 1), "score": row.scores, "value": row.values}
    shown: dict[str, dict[str, Any]] = {
        "keys": {**key, "size": np.full(n, 6.0)},
        "cuts": {"after": after, "x": [c + 0.5 for c in after]},
        "lines": {"x": [], "alpha": []},
        "chosen": {"x": [1.0], "y": row.scores[:1]},
        "held": {"what": [""]},
        "spans": {column: [] for column in ("left", "right", "top", "average", "colour")},
        "table": {column: [] for column in ("x", "row", "text")},
    }
    return {name: ColumnDataSource(data, name=name) for name, data in shown.items()}


def _controls(row: Row, after: list[int], style: dict[str, Any]) -> dict[str, Any]:
    """The controls by the names that static/parts.js has for them."""
    n = len(row.scores)
    numbered = [str(j + 1) for j in range(n)]
    menus = (
        ("order", "combine", ORDERS),
        ("arithmetic", "computed in", ARITHMETIC),
        ("cut", "cut", numbered[: len(after)]),
        ("key", "key", numbered),
    )
    whole = (
        ("count", "parts", (2, n), len(after) + 1),
        ("step", "steps", (0, len(after)), 0),
        ("place", "cut after key", (0, n), after[0]),
    )
    of_key = ("score", row.score_ends, row.scores[0]), ("value", row.value_ends, row.values[0])
    controls: dict[str, Any] = {}
    for name, title, choices in menus:
        controls[name] = menu(title, name, choices, **style)
    for name, title, ends, value in whole:
        controls[name] = slider(title, name, ends, value, step=1, **style)
    for name, reach, number in of_key:
        controls[name] = signed_slider(f"its {name}", name, reach, float(number), **style)
    return controls


def _score_plot(row: Row, sources: dict[str, Any]) -> Any:
    """The scores as bars, the top of each part above them, and the cuts' handles below."""
    low, high = row.score_ends
    ends = {"x_range": (0.3, len(row.scores) + 0.7), "y_range": (low - 1.2, high + 0.5)}
    above = plot(name="above", height=230, y_axis_label="score", **ends)
    keys, cuts = sources["keys"], sources["cuts"]
    above.vbar("x", width=0.5, top="score", color=GREY, alpha=0.6, source=keys)
    above.add_layout(Span(location=0, dimension="width", line_color=GREY, line_width=1))
    _draw_parts(above, "top", low - 1.2, sources)
    above.scatter("x", "score", size=9, color=GREY, source=keys, name="handle")
    above.scatter("x", "y", size=20, source=sources["chosen"], **framed())
    look = {"fill_color": COLOURS["weights"], "line_color": COLOURS["weights"], "name": "handle"}
    above.scatter("x", low - 0.6, size=18, marker="diamond", fill_alpha=0.25, source=cuts, **look)
    above.xaxis.visible = False
    return above


def _strip(row: Row, sources: dict[str, Any]) -> Any:
    """The three numbers of each part, between its cuts."""
    strip = plot(height=86, x_range=(0.3, len(row.scores) + 0.7), y_range=ROWS)
    _draw_parts(strip, "", 0, sources)
    strip.text("x", "row", text="text", color=GREY, source=sources["table"], **CENTRED)
    strip.xaxis.visible = False
    return strip


def _value_plot(row: Row, sources: dict[str, Any]) -> Any:
    """The values as dots that grow with their weight in their part, and the parts' averages."""
    low, high = row.value_ends
    ends = {"x_range": (0.3, len(row.scores) + 0.7), "y_range": (low - 0.5, high + 0.5)}
    below = plot(height=190, x_axis_label="key", y_axis_label="value", **ends)
    below.scatter("x", "value", size="size", color=GREY, alpha=0.8, source=sources["keys"])
    _draw_parts(below, "average", low - 0.5, sources)
    below.xaxis.ticker = list(range(1, len(row.scores) + 1))
    return below


def _draw_parts(plane: Any, number: str, bottom: float, sources: dict[str, Any]) -> None:
    """The cuts from the bottom up, and one of the parts' numbers as a line over its keys."""
    dashed = {"line_color": GREY, "line_alpha": "alpha", "line_dash": "dashed"}
    plane.ray("x", bottom, 0, np.pi / 2, source=sources["lines"], **dashed)
    if number:
        look = {"line_color": "colour", "line_width": 4}
        plane.segment("left", number, "right", number, source=sources["spans"], **look)
