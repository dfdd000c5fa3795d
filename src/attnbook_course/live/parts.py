"""Chapter 12's live figure: a weighted average computed in parts, which combine in any order."""

from typing import Any

import numpy as np
from bokeh.events import Pan, PanStart, Tap
from bokeh.models import ColumnDataSource, Span

from attnbook_course.figures import COLOURS, GREY
from attnbook_course.live import figure

# bfloat16 holds all of these numbers, so that it is the arithmetic alone that rounds
SCORES = (1.5, 1.0, 2.75, 3.5, 2.5, -0.25, 4.75, 1.5, 0.5, 3.0, 1.25, 2.0)
VALUES = (0.75, 5.75, 2.75, 5.25, 1.75, 3.25, 6.25, 8.0, 4.25, 0.75, 0.5, 3.0)
AFTER = (3, 6, 9)  # keys stand before the cuts, to begin with
KEYS, ENDS = len(SCORES), (0.3, len(SCORES) + 0.7)
LOW, HIGH = -4.0, 8.0  # of a score; a value is at least 0
ORDERS = ["left to right", "tree", "shuffled 1", "shuffled 2", "shuffled 3"]
ARITHMETIC = ["double precision", "bfloat16"]
ROWS = ["average", "total", "top"]  # from below


def parts() -> figure.LiveFigure:
    """A softmax average in parts, each known by its top, its total and its weighted sum.

    With top = max s, total = Σ exp(s − top) and weighted = Σ exp(s − top) v, two parts combine
    when both are rescaled by exp(top_i − top) to the larger top. The average weighted / total of
    all keys is the same for every cut and order, but for rounding: in bfloat16, which keeps 8 bits
    of a number, each step rounds its result.
    """
    sources = _sources()
    above, strip, (below, averages) = _score_plot(sources), _strip(sources), _value_plot(sources)
    strip.x_range = below.x_range = above.x_range
    look = {"line_color": COLOURS["truth"], "line_width": 2, "line_dash": "dashed"}
    goal = Span(dimension="width", **look)
    below.add_layout(goal)
    named = {"average of a part": averages, "of all keys": below.line([np.nan], [np.nan], **look)}
    figure.legend(below, named, glyph_width=22)

    controls, text = _controls(), figure.words(4)
    drawn = {"above": above, "goal": goal, "words": text}
    colours: dict[str, Any] = {"orange": COLOURS["weights"], "blue": COLOURS["estimate"]}
    scripts = "wording.js", "softmax_parts.js", "parts.js"
    update = figure.updated_by(scripts, controls, **sources, **drawn, **colours)
    for event in (Tap, PanStart, Pan):
        above.js_on_event(event, update)
    rows = ("order", "arithmetic"), ("count", "step"), ("cut", "place")
    layout = figure.arranged(
        (above, strip, below),
        (text, *(figure.beside(*(controls[one] for one in line), each="50%") for line in rows)),
    )
    return figure.LiveFigure(
        "live-parts",
        "A weighted average in parts",
        layout,
        f"{KEYS} keys on a line with a score and a value each, and cuts between them. Of each part "
        "its largest score, the top, its total of exponentials and its average; step by step the "
        "parts combine, from left to right, as a tree or shuffled, and the last average is the "
        "softmax average of all keys. Move the cuts, and choose bfloat16, where "
        "each step rounds its result: the text gives the numbers.",
        min_height=58,
    )


def _sources() -> dict[str, Any]:
    """What the plots show; the script fills in the parts."""
    x = np.arange(1, KEYS + 1)
    keys = {"x": x, "score": SCORES, "value": VALUES, "size": np.full(KEYS, 6.0)}
    cuts = {"after": AFTER, "x": [c + 0.5 for c in AFTER]}
    of_parts = {
        "lines": ("x", "alpha"),
        "spans": ("left", "right", "top", "average", "colour"),
        "table": ("x", "row", "text"),
    }
    return {
        "keys": ColumnDataSource(keys, name="keys"),
        "cuts": ColumnDataSource(cuts, name="cuts"),
        "held": ColumnDataSource({"what": [""]}, name="held"),
        **figure.empty(of_parts),
    }


def _controls() -> dict[str, Any]:
    """The controls by the names that static/parts.js has for them."""
    return {
        "order": figure.menu("combine", "order", ORDERS),
        "arithmetic": figure.menu("computed in", "arithmetic", ARITHMETIC),
        "count": figure.slider("parts", "count", (2, KEYS), len(AFTER) + 1),
        "step": figure.slider("steps", "step", (0, len(AFTER)), 0),
        "cut": figure.menu("cut", "cut", ["1", "2", "3"]),
        "place": figure.slider("cut after key", "place", (0, KEYS), AFTER[0]),
    }


def _score_plot(sources: dict[str, Any]) -> Any:
    """The scores as bars, the top of each part above them, and the cuts' handles below."""
    ends = {"x_range": ENDS, "y_range": (LOW - 1.2, HIGH + 0.5)}
    above = figure.plot(name="above", height=230, y_axis_label="score, top", **ends)
    keys, cuts = sources["keys"], sources["cuts"]
    above.vbar("x", width=0.5, top="score", color=GREY, alpha=0.6, source=keys)
    above.add_layout(Span(location=0, dimension="width", line_color=GREY, line_width=1))
    _draw_parts(above, "top", LOW - 1.2, sources)
    look = {"fill_color": COLOURS["weights"], "line_color": COLOURS["weights"], "name": "handle"}
    above.scatter("x", LOW - 0.6, size=18, marker="diamond", fill_alpha=0.25, source=cuts, **look)
    above.xaxis.visible = False
    return above


def _strip(sources: dict[str, Any]) -> Any:
    """The three numbers of each part, between its cuts."""
    strip = figure.plot(height=86, x_range=ENDS, y_range=ROWS)
    _draw_parts(strip, "", 0, sources)
    strip.text("x", "row", text="text", color=GREY, source=sources["table"], **figure.CENTRED)
    strip.xaxis.visible = False
    return strip


def _value_plot(sources: dict[str, Any]) -> tuple[Any, Any]:
    """The values as dots that grow with their weight in their part, and the parts' averages."""
    ends = {"x_range": ENDS, "y_range": (-0.5, HIGH + 0.5)}
    below = figure.plot(height=216, x_axis_label="key", y_axis_label="value", **ends)
    below.scatter("x", "value", size="size", color=GREY, alpha=0.8, source=sources["keys"])
    averages = _draw_parts(below, "average", -0.5, sources)
    below.xaxis.ticker = list(range(1, KEYS + 1))
    return below, averages


def _draw_parts(plane: Any, number: str, bottom: float, sources: dict[str, Any]) -> Any:
    """The cuts from the bottom up, and one of the parts' numbers as a line over its keys."""
    dashed = {"line_color": GREY, "line_alpha": "alpha", "line_dash": "dashed"}
    plane.ray("x", bottom, 0, np.pi / 2, source=sources["lines"], **dashed)
    if not number:
        return None
    look = {"line_color": "colour", "line_width": 4}
    return plane.segment("left", number, "right", number, source=sources["spans"], **look)
