"""Chapter 10's live figure: every head of a published model on a sentence."""

from typing import Any

from bokeh.events import ButtonClick, MouseLeave, MouseMove
from bokeh.models import (
    Button,
    ColorBar,
    ColumnDataSource,
    CustomJSTickFormatter,
    FixedTicker,
    LinearColorMapper,
    NoOverlap,
    Select,
)
from bokeh.palettes import cividis

from attnbook._validation import numbers
from attnbook.course.figures import COLOURS
from attnbook.course.live import weights
from attnbook.course.live.attention_browser import token_axis
from attnbook.course.live.figure import (
    LiveFigure,
    arranged,
    beside,
    control_style,
    follow_pointer,
    legible,
    plot,
    slider,
    updated_by,
    words,
)

MEASURES = {
    "first": "the first token (a sink)",
    "before": "the token before",
    "followed": "what followed an equal token",
}
PALETTE = cividis(101)


def model_heads(
    stored: str,
    *,
    head: tuple[int, int] = (1, 1),
    whole: bool = False,
    name: str = "live-model-heads",
    description: str | None = None,
) -> LiveFigure:
    """All heads of a model on a sentence: a map of them, and what the chosen one attends to.

    The map's colour is a mean weight over the sentence's tokens: on the first token, on the token
    before, or on what followed an earlier equal token. The first sentence lies in the page; the
    website loads the others with the figure.

    Args:
        stored: the name of stored weights, see attnbook.course.live.weights.store.
        head: layer and head to begin with, both counted from 1.
        whole: whether all sentences lie in the page, as a notebook needs that loads nothing.
        name: of the element in the page; one a page.
        description: what the figure shows, for a screen reader and where no script runs.

    Raises:
        ValueError: a name under which nothing is stored, a head that the model does not have.
    """
    given = weights.load(stored)
    layers, heads = given.sentences[0].shape
    if not isinstance(head, tuple | list) or len(head) != 2:
        raise TypeError(f"head: got {head!r}, expected a pair (layer, head)")
    layer, one = (
        numbers.int_between(1, most, head=value)
        for value, most in zip(head, (layers, heads), strict=True)
    )
    there = len(given.sentences) if whole else 1
    data = ColumnDataSource(
        {
            "tokens": [list(sentence.tokens) for sentence in given.sentences],
            "units": [s.units() if k < there else [] for k, s in enumerate(given.sentences)],
            "height": [_height(len(sentence.tokens)) for sentence in given.sentences],
        },
        name="cases",
    )
    sources = {
        "cells": ColumnDataSource({"x": [], "y": [], "weight": []}, name="cells"),
        "frame": ColumnDataSource({"x": [], "y": [], "width": []}, name="frame"),
        "arcs": ColumnDataSource(
            {k: [] for k in ("start", "middle", "end", "top", "width")}, name="arcs"
        ),
        "dots": ColumnDataSource({"x": [], "size": []}, name="dots"),
        "asked": ColumnDataSource({"x": []}, name="asked"),
        "all": ColumnDataSource({"x": [], "y": [], "weight": []}, name="all"),
        "chosen_head": ColumnDataSource({"x": [layer], "y": [one]}, name="chosen"),
    }
    overview = _overview(sources, layers, heads)
    longest = max(len(token.strip()) for s in given.sentences for token in s.tokens)
    room = {"min_border_left": min(28 + 8 * longest, 120), "min_border_right": 8}
    matrix = _matrix(sources, room)
    above = _arcs(sources, matrix.x_range, room)
    down, across = (token_axis(axis) for axis in (matrix.yaxis[0], matrix.xaxis[0]))
    across.major_label_policy = NoOverlap(min_distance=2)
    down.major_label_policy = NoOverlap(min_distance=-4)

    wide = control_style()
    example = Select(
        title="sentence", name="sentence", value="0", min_width=230,
        options=[(str(k), sentence.title) for k, sentence in enumerate(given.sentences)], **wide,
    )  # fmt: skip
    measure = Select(
        title="colour of a head: its mean weight on", name="measure", value="first", min_width=250,
        options=list(MEASURES.items()), **wide,
    )  # fmt: skip
    deep, aside = (
        slider(title=title, name=title, start=1, end=end, value=value, min_width=150, **wide)
        for title, end, value in (("layer", layers, layer), ("head", heads, one))
    )
    token = slider(
        title="token", name="token", start=1, end=2, value=len(given.sentences[0].tokens),
        format=_token_name(data, example), min_width=150, **wide,
    )  # fmt: skip
    strongest = Button(
        label="the head with the largest mean weight", name="strongest", min_width=250, **wide
    )
    text = words(4, {"render_as_text": True, **wide})  # a token may look like HTML
    notice = words(1, {"render_as_text": True, **wide})
    notice.update(name="notice", visible=False)
    update = updated_by(
        "model_heads.js", (example, measure, deep, aside, token),
        cases=data, layers=layers, heads=heads, stored=stored, instead=_instead(stored),
        matrix=matrix, down=down, across=across, example=example,
        measure=measure, layer=deep, head=aside, token=token,
        words=text, notice=notice, **sources,
    )  # fmt: skip
    strongest.js_on_event(ButtonClick, update)
    for hovered in (above, matrix):
        for event in (MouseMove, MouseLeave):
            hovered.js_on_event(event, update)
    follow_pointer(overview, x=deep, y=aside)
    follow_pointer(above, x=token)
    follow_pointer(matrix, y=token)
    layout = arranged(
        (overview, above, matrix),
        (text, notice, beside(example, measure), beside(deep, aside, token), strongest),
    )
    return LiveFigure(
        name,
        "Every head of a real model",
        layout,
        description or _about(given.model, layers, heads, len(given.sentences)),
        min_height=47 + _height(len(given.sentences[0].tokens)) // 16,
    )


def _about(model: str, layers: int, heads: int, sentences: int) -> str:
    several = f"one of {sentences} sentences" if sentences > 1 else "a sentence"
    return (
        f"The attention weights of {model} on {several}: a map of its {layers * heads} heads, "
        f"{layers} layers across and {heads} heads down, coloured by the mean weight on the first "
        "token, on the token before, or on what followed an earlier equal token; and the weights "
        "of one head, with arcs from a token to those it attends to. Choose a sentence, a head "
        "and a token: the text gives the weights."
    )


def _instead(stored: str) -> str:
    """What a reader can do where the other sentences cannot be loaded."""
    return f"In Python, live.model_heads('{stored}', whole=True) shows all sentences."


def _token_name(cases: Any, example: Any) -> Any:
    """The token slider's value as the token's text."""
    code = (
        'const text = cases.data.tokens[Number(example.value)][tick - 1] ?? "";\n'
        'return text.includes("\\n") ? "\u23ce" : text.trim() || "\u2423";'
    )
    return CustomJSTickFormatter(args={"cases": cases, "example": example}, code=code)


def _height(rows: int) -> int:
    """Of a matrix, in pixels."""
    return rows * min(24, max(13, 380 // rows))


def _colour() -> LinearColorMapper:
    return LinearColorMapper(palette=PALETTE, low=0, high=1)


def _overview(sources: dict[str, Any], layers: int, heads: int) -> Any:
    """A cell for each head, and a frame around the chosen one."""
    overview = plot(
        frame_height=18 * heads, x_range=(0.5, layers + 0.5), y_range=(heads + 0.5, 0.5),
        x_axis_label="layer", y_axis_label="head", x_axis_location="above",
        min_border_left=46, min_border_right=8, frame_align=False,
    )  # fmt: skip
    overview.rect(
        "x", "y", width=1, height=1, source=sources["all"],
        color={"field": "weight", "transform": _colour()},
    )  # fmt: skip
    overview.rect(
        "x", "y", width=1, height=1, fill_color=None, line_color=COLOURS["weights"], line_width=3,
        source=sources["chosen_head"],
    )  # fmt: skip
    overview.xaxis.ticker = FixedTicker(ticks=[1, *range(5, layers + 1, 5)])
    overview.yaxis.ticker = FixedTicker(ticks=list(range(1, heads + 1, 2)))
    return overview


def _arcs(sources: dict[str, Any], x_range: Any, room: dict[str, int]) -> Any:
    """What the chosen token attends to: an arc and a dot for each weight."""
    above = plot(frame_height=90, x_range=x_range, y_range=(-0.2, 1), **room)
    above.axis.visible = False
    above.quadratic(
        x0="start", y0=0, x1="end", y1=0, cx="middle", cy="top", line_width="width",
        line_color=COLOURS["weights"], line_alpha=0.6, source=sources["arcs"],
    )  # fmt: skip
    above.scatter("x", 0, size="size", color=COLOURS["weights"], source=sources["dots"])
    above.scatter(
        "x", 0, size=14, marker="diamond", color=COLOURS["other"], line_color="white",
        source=sources["asked"],
    )  # fmt: skip
    return above


def _matrix(sources: dict[str, Any], room: dict[str, int]) -> Any:
    """The chosen head's weights, queries down, with a frame around the chosen token's row."""
    matrix = plot(
        frame_height=300, x_range=(0.5, 1.5), y_range=(1.5, 0.5), x_axis_location="above", **room
    )
    matrix.rect(
        "x", "y", width=1, height=1, source=sources["cells"],
        color={"field": "weight", "transform": _colour()},
    )  # fmt: skip
    matrix.rect(
        "x", "y", width="width", height=1, fill_color=None, line_color=COLOURS["weights"],
        line_width=2, source=sources["frame"],
    )  # fmt: skip
    scale = ColorBar(
        color_mapper=_colour(), title="weight", ticker=FixedTicker(ticks=[0, 0.5, 1]), height=8,
        background_fill_color=None, **legible(),
    )  # fmt: skip
    matrix.add_layout(scale, "below")
    return matrix
