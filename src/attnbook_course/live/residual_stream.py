"""Chapter 7's live figure: the residual stream, and what every step adds to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.models import (
    ColumnDataSource,
    CustomJSTickFormatter,
    LinearColorMapper,
    NoOverlap,
    Span,
)
from bokeh.palettes import cividis

from attnbook_course.figures import COLOURS, GREY
from attnbook_course.live.attention_browser import token_axis, visible
from attnbook_course.live.figure import (
    LiveFigure,
    all_of,
    arranged,
    beside,
    colour_bar,
    control_style,
    follow_pointer,
    framed,
    menu,
    plot,
    slider,
    squares,
    updated_by,
    words,
)

DRAWN = 64  # coordinates of a token at most: one bar each, one byte in the page
LARGEST = np.iinfo(np.int8).max
BARS = {"before": COLOURS["data"], "change": COLOURS["weights"], "after": COLOURS["estimate"]}


@dataclass(frozen=True)
class Stream:
    """The residual stream of one example, recorded after every step.

    A step's change is the difference of two records: with pre-norm what the part adds, with
    post-norm what part and norm change together.

    Args:
        title: what the example is called.
        tokens: n of them; a token may come more than once.
        labels: of the first record, such as embedding, and of each step, such as attention 1.
        states: of shape (steps + 1, n, e), one record for each label.
        readout: for each record and token the pair (most probable next token, its probability),
            if the stream were read out there (the logit lens, nostalgebraist 2020).

    Raises:
        ValueError: no token; states that are not finite or do not fit tokens and labels; a readout
            that does not fit them, or with a probability outside [0, 1].
    """

    title: str
    tokens: Sequence[str]
    labels: Sequence[str]
    states: Any
    readout: Sequence[Sequence[tuple[str, float]]] | None = None

    def __post_init__(self) -> None:
        records, n = len(self.labels), len(self.tokens)
        if n == 0:
            raise ValueError("tokens: got none, expected one or more")
        if records < 2:
            raise ValueError(f"labels: got {records}, expected two or more, a record and a step")
        shape, expected = np.shape(self.states), (records, n)
        if len(shape) != 3 or shape[:2] != expected or shape[2] == 0:
            raise ValueError(
                f"states: got shape {shape}, expected ({records}, {n}, e), labels by tokens by "
                "the width e"
            )
        if not np.all(np.isfinite(np.asarray(self.states, dtype=float))):
            raise ValueError("states: got nan or inf, expected finite numbers")
        if self.readout is None:
            return
        counts = [len(record) for record in self.readout]
        if counts != [n] * records:
            raise ValueError(
                f"readout: got {len(counts)} records of {sorted(set(counts))} pairs, expected "
                f"{records} of {n}, one for each label and token"
            )
        for record in self.readout:
            for token, probability in record:
                if not 0 <= probability <= 1:
                    raise ValueError(
                        f"readout: got {probability} for {token!r}, expected a probability from "
                        "0 to 1"
                    )

    def columns(self) -> dict[str, Any]:
        """What the page gets: lengths and cosines in float32, coordinates in each token's unit.

        A bar is 40 pixels at most, so that 127 units are finer than the screen.
        """
        states = np.asarray(self.states, dtype=float)
        before = np.concatenate([np.zeros_like(states[:1]), states[:-1]])
        change = states - before
        lengths = [np.linalg.norm(vectors, axis=-1) for vectors in (change, states, before)]
        product = lengths[0] * lengths[2]
        cosine = np.full(product.shape, np.nan)  # of a vector 0 there is none
        np.divide(np.sum(before * change, axis=-1), product, out=cosine, where=product > 0)
        drawn = states[..., :DRAWN]
        unit = np.max(np.abs(drawn), axis=(0, 2)) / LARGEST
        unit[unit == 0] = 1
        readout = [pair for record in self.readout or [] for pair in record]
        return {
            "tokens": visible(self.tokens),
            "labels": list(self.labels),
            "width": states.shape[2],
            "drawn": drawn.shape[2],
            "unit": unit.astype(np.float32),
            "coordinates": np.rint(drawn / unit[:, None]).astype(np.int8).ravel(),
            "change": lengths[0].astype(np.float32).ravel(),
            "stream": lengths[1].astype(np.float32).ravel(),
            "cosine": cosine.astype(np.float32).ravel(),
            "said": visible([token for token, _ in readout]),
            "probability": np.array([p for _, p in readout], dtype=np.float32),
            "height": len(self.labels) * 20,
        }


def residual_stream(
    cases: Sequence[Stream], *, name: str, description: str | None = None
) -> LiveFigure:
    """The residual stream through the steps of a model: x before, what a step adds, x after.

    The first 64 coordinates of a token are drawn; lengths and cosines are of all.

    Args:
        cases: the examples; pre-norm and post-norm may be two of them.
        name: of the element in the page; one a page.
        description: what the figure shows, for a screen reader and where no script runs.

    Raises:
        ValueError: no case.
    """
    if not cases:
        raise ValueError("cases: got none, expected one or more")
    all_of(Stream, cases=cases)
    columns = [case.columns() for case in cases]
    data = ColumnDataSource(
        {key: [one[key] for one in columns] for key in columns[0]}, name="cases"
    )
    cells = ColumnDataSource({"x": [], "y": [], "length": []}, name="cells")
    frame = ColumnDataSource({"x": [1], "y": [1]}, name="frame")
    bars = ColumnDataSource({"x": [], **{part: [] for part in BARS}}, name="bars")

    lengths, scale = _lengths(cells, frame)
    lengths.frame_height = columns[0]["height"]
    down, across = (token_axis(axis) for axis in (lengths.yaxis[0], lengths.xaxis[0]))
    across.major_label_policy = NoOverlap(min_distance=2)
    panels = _panels(bars)

    wide = control_style()
    titles = [(str(i), case.title) for i, case in enumerate(cases)]
    example = menu("example", "example", titles, visible=len(cases) > 1, min_width=230, **wide)
    colours = [("change", "length of the change"), ("stream", "length of the stream")]
    colour = menu("colour", "colour", colours, min_width=200, **wide)
    named = _named("cases.data.tokens[chosen][tick - 1]", data, example)
    token = slider("token", "token", (1, 2), 1, format=named, **wide)
    named = _named("cases.data.labels[chosen][tick]", data, example)
    step = slider("step", "step", (0, 1), 1, format=named, **wide)
    text = words(4, {"render_as_text": True, **wide})  # a token may look like HTML
    controls = {"example": example, "colour": colour, "token": token, "step": step}
    sources = {"cases": data, "cells": cells, "frame": frame, "bars": bars}
    drawn = {
        "lengths": lengths,
        "scale": scale,
        "down": down,
        "across": across,
        "panels": panels,
        "coordinate": panels[-1].xaxis[0],
        "words": text,
    }
    updated_by("residual_stream.js", controls, **sources, **drawn)
    follow_pointer(lengths, x=token, y=step)
    layout = arranged((lengths, *panels), (text, beside(example, colour), beside(token, step)))
    return LiveFigure(
        name,
        "The residual stream",
        layout,
        description or _about(len(cases)),
        min_height=49 + columns[0]["height"] // 16,
    )


def _about(cases: int) -> str:
    several = cases > 1
    return (
        f"The residual stream of a model on {f'{cases} examples' if several else 'one example'}: "
        "a token a column, a step of the model a row, and the length of what the step adds as "
        f"colour. Choose {'an example, ' if several else ''}a token and a step: bars show the "
        "token's stream before the step, the change and the stream after it, and the text gives "
        "their lengths."
    )


def _named(name: str, cases: Any, example: Any) -> Any:
    """A slider's value as the name that the example has for it."""
    code = f"const chosen = Number(example.value); return {name} ?? String(tick)"
    return CustomJSTickFormatter(args={"cases": cases, "example": example}, code=code)


def _lengths(cells: Any, frame: Any) -> tuple[Any, Any]:
    """The heat map, its first step on top, with a frame around the chosen cell, and its scale."""
    ends = {"x_range": (0.5, 1.5), "y_range": (1.5, -0.5), "x_axis_location": "above"}
    lengths = plot(frame_height=200, x_axis_label="token", min_border_right=8, **ends)
    mapper = LinearColorMapper(palette=cividis(101), low=0, high=1)
    squares(lengths, cells, "length", mapper)
    lengths.rect("x", "y", width=1, height=1, source=frame, **framed(3))
    scale = colour_bar(lengths, mapper, "length")
    return lengths, scale


def _panels(bars: Any) -> list[Any]:
    """The chosen token's coordinates before, in and after the step, on one scale."""
    panels: list[Any] = []
    for part, colour in BARS.items():
        shared = {a: getattr(panels[0], a) for a in ("x_range", "y_range")} if panels else {}
        ranges = shared or {"x_range": (0.5, 1.5), "y_range": (-1, 1)}
        panel = plot(frame_height=80, title=part, min_border_left=48, min_border_right=8, **ranges)
        panel.yaxis.ticker.desired_num_ticks = 3
        panel.add_layout(Span(location=0, dimension="width", line_color=GREY, line_alpha=0.4))
        panel.vbar("x", width=0.7, top=part, color=colour, source=bars)
        panel.xaxis.visible = part == "after"
        panels.append(panel)
    return panels
