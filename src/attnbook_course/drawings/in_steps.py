"""One weighted average in steps: a query, scores, the softmax, weights, and the weighted sum.

The same row of numbers stands in every step. Below each other the steps are one picture; the
website's script shows them one after the other, in the same place, and moves what has the same
``data-part`` from step to step. Slides bring them with clicks. What each chapter's average
consists of is told by ``attnbook_course.drawings.rows_of_chapters``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attnbook._validation import int_between
from attnbook_course.drawings.canvas import Canvas, Drawing, colour, plain
from attnbook_course.drawings.rows import Average, Step
from attnbook_course.drawings.rows_of_chapters import CHAPTERS

LEFT, RIGHT = 44, 436  # middles of the first and the last column
LINE = 26  # the height of a step's words
HEAD = {True: 108, False: 90}  # with keys on a line, and with keys that are names
BAND = {"bars": 82, "dots": 70, "sum": 128, "words": 0}  # the height of one row of numbers
JOIN = 46  # more, where the averages of two parts are joined
RADIUS = 22  # of a dot that is the whole weight


def average_in_steps(chapter: int = 1) -> Drawing:
    """A chapter's weighted average, from the query to the output, one step below the other.

    What is new against the chapter before stands on colour.

    Args:
        chapter: its number; ``course.drawings.rows_of_chapters.CHAPTERS`` has those that can.

    Raises:
        ValueError: a chapter without such a drawing.
    """
    average = CHAPTERS[int_between(1, len(CHAPTERS), chapter=chapter)]()
    head = HEAD[average.places is not None] + 10 * average.in_parts
    heights = [_height(average, step) for step in average.steps]
    canvas = Canvas("average_in_steps", head + sum(heights), described(average))
    canvas.data = {"steps": str(len(heights)), "stage": str(head + max(heights))}
    places = average.places or range(len(average.labels))
    columns = [_along(places, place) for place in places]
    _head(canvas, average, columns)
    top = head
    for number, (step, height) in enumerate(zip(average.steps, heights, strict=True), 1):
        up = f"--up: {head - top}px"
        with canvas.group(data_step=number, data_name=step.name, data_top=top, style=up):
            _titled(canvas, top + 12, step.name, step.about, step.role, new=step.new)
            _step(canvas, average, step, columns, top + LINE)
        top += height
    return canvas.drawing()


def described(average: Average) -> str:
    """The whole drawing in words, for who cannot see it."""
    parts = [
        f"A weighted average in {len(average.steps)} steps. The query is {average.query}; the "
        f"{len(average.labels)} keys are {average.keys}, beginning with {average.labels[0]}."
    ]
    for step in average.steps:
        rows = " and ".join(
            ", ".join(_shown(one, step.decimals) for one in row) for row in step.rows
        )
        said = "; ".join(filter(None, [step.about, rows, *step.outputs]))
        parts.append(f"{step.name.capitalize()}: {said.rstrip('.')}.")
    return plain(" ".join(parts))


def _along(places: Sequence[float], place: float) -> float:
    """Where a number lies on the line of the keys."""
    low, high = min(places), max(places)
    return LEFT + (RIGHT - LEFT) * (place - low) / (high - low)


def _height(average: Average, step: Step) -> int:
    words = len(step.outputs) * 24 + 6 if step.kind == "words" else 0
    join = JOIN if step.kind == "sum" and average.in_parts else 0
    return LINE + BAND[step.kind] * len(step.rows) + words + join


def _titled(
    canvas: Canvas, y: float, name: str, about: str, role: str, *, new: bool = False
) -> None:
    """A line of words: a name, and behind it what it is; on colour if it is new."""
    if new:
        canvas.stripe(6, y, 472, 24)
    canvas.text(14, y, name, role, anchor="start", bold=True)
    canvas.text(474, y, about, "ink", anchor="end", bold=new)


def _head(canvas: Canvas, average: Average, columns: Sequence[float]) -> None:
    """The query and the keys: what stays while the steps change."""
    _titled(canvas, 14, "query", average.query, "queries", new="query" in average.new)
    _titled(canvas, 42, "keys", average.keys, "keys", new="keys" in average.new)
    y = 70
    if average.places is not None and average.at is not None:
        canvas.line((14, y), (466, y))
        for x in columns:
            canvas.dot(x, y, 6, "keys")
        canvas.ring(_along(average.places, average.at), y, 10, "queries", 3)
        y = 92
    for k, (x, label) in enumerate(zip(columns, average.labels, strict=True)):
        canvas.text(x, y, label, "queries" if k == average.own else "keys", bold=k == average.own)
    half = len(columns) // 2
    for part in (columns[:half], columns[half:]) if average.in_parts else ():
        left, right, low = part[0] - 22, part[-1] + 22, y + 16
        canvas.line((left, low - 5), (left, low), (right, low), (right, low - 5))


def _shown(value: float, decimals: int) -> str:
    return "hidden" if math.isnan(value) else f"{value:z.{decimals}f}".replace("-", "−")


def _step(
    canvas: Canvas, average: Average, step: Step, columns: Sequence[float], top: float
) -> None:
    for r, row in enumerate(step.rows):
        y = top + r * BAND[step.kind]
        if step.kind == "sum":
            _sum(canvas, average, step, r, columns, y)
            continue
        shapes = _bars(row) if step.kind == "bars" else _dots(row, step.full)
        for k, (x, value, (middle, w, h)) in enumerate(zip(columns, row, shapes, strict=True)):
            part, bar = f"{r}.{k}", step.kind == "bars"
            _shape(canvas, (x, y + middle, w, h), step.role, value, f"s{part}", bar=bar)
            hidden_later = math.isnan(value) and step is not average.steps[0]
            label = "0" if hidden_later else _shown(value, step.decimals)
            canvas.text(x, y + BAND[step.kind] - 12, label, step.role, part=f"n{part}")
    for k, line in enumerate(step.outputs if step.kind == "words" else ()):
        last, y = k + 1 == len(step.outputs), top + 12 + 24 * k
        canvas.text(474, y, line, "output" if last else "ink", anchor="end", bold=last)


def _shape(
    canvas: Canvas, place: tuple[float, ...], role: str, value: float, part: str, *, bar: bool
) -> None:
    """A bar or a dot, both a rectangle, so that one can become the other; hidden a small ring."""
    x, y, w, h = place
    ring = math.isnan(value) or (value < 0 and not bar)
    paint = colour("line" if math.isnan(value) else role)
    radius = 2.5 if bar and not math.isnan(value) else min(w, h) / 2
    look = {"stroke": paint, "stroke_width": 1.8} if ring else {"fill": paint}
    left, top = x - w / 2, y - h / 2
    canvas.add("rect", x=left, y=top, width=w, height=h, rx=radius, **look, data_part=part)


def _bars(row: Sequence[float]) -> list[tuple[float, float, float]]:
    """Of each number the middle, the width and the height of its bar; bars stand on zero."""
    seen = [one for one in row if not math.isnan(one)]
    high, low = max(0.0, *seen), min(0.0, *seen)
    unit = 52 / (high - low)
    zero = 4 + unit * high
    bars = [(zero - unit * one / 2, 16, max(2, abs(unit * one))) for one in row]
    return [(zero, 9, 9) if math.isnan(one) else bar for one, bar in zip(row, bars, strict=True)]


def _dots(row: Sequence[float], full: float) -> list[tuple[float, float, float]]:
    """Of each weight the middle, and the width and height of its dot, whose area is the weight."""
    shares = [math.sqrt(abs(one) / full) for one in row]
    sizes = [9 if math.isnan(one) else max(3, 2 * RADIUS * one) for one in shares]
    return [(24, size, size) for size in sizes]


def _sum(
    canvas: Canvas, average: Average, step: Step, r: int, columns: Sequence[float], top: float
) -> None:
    """Weights above values, and lines as thick as the weights to the output, or to each part's."""
    row, end, half = step.rows[r], top + 98, len(columns) // 2
    parts = (columns[:half], columns[half:])
    middles = [sum(part) / half for part in parts] if average.in_parts else [240.0]
    for k, (x, value, weight) in enumerate(zip(columns, average.values[r], row, strict=True)):
        if math.isnan(weight):
            _shape(canvas, (x, top + 10, 9, 9), "line", weight, f"s{r}.{k}", bar=False)
            canvas.text(x, top + 34, value, "keys")
            continue
        canvas.text(x, top + 10, _shown(weight, step.decimals), "weights", part=f"n{r}.{k}")
        canvas.text(x, top + 34, f"× {value}" if average.numeric else value, "values")
        thick, middle = 0.8 + 11 * abs(weight), middles[k // half if average.in_parts else 0]
        canvas.line((x, top + 50), (middle, end), role="weights", width=thick, dashed=weight < 0)
    for x in middles:
        canvas.dot(x, end, 11, "output")
    if not average.in_parts:
        canvas.text(240, top + 118, step.outputs[r], "output", bold=True, part=f"o{r}")
        return
    for x, side, words in zip(middles, (1, -1), step.outputs, strict=False):
        canvas.text(x, top + 122, words, "output")
        bent = f"H{240 - 9 * side} Q240,{end:g} 240,{end + 9:g} V{end + 40:g}"
        canvas.path(f"M{x + 16 * side:.1f},{end:g} {bent}", "output")
    tip = f"240,{end + 46:g} 243.3,{end + 38.6:g} 236.7,{end + 38.6:g}"
    canvas.add("polygon", points=tip, fill=colour("output"))
    canvas.text(240, top + 158, step.outputs[-1], "output", bold=True)
