"""Chapter 7's live figure: the residual stream, and what every step adds to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, CustomJSTickFormatter, NoOverlap, Span

from attnbook_course.figures import COLOURS, GREY
from attnbook_course.live import figure

DRAWN = 64  # coordinates of a token at most: one bar each, one byte in the page
LARGEST = np.iinfo(np.int8).max
BARS = {"before": COLOURS["data"], "change": COLOURS["weights"], "after": COLOURS["estimate"]}


@dataclass(frozen=True)
class Stream:
    """The residual stream of one example, recorded after every step.

    A step's change is the difference of two records: with pre-norm what the part adds.

    Args:
        tokens: n of them; a token may come more than once.
        labels: of the first record, such as embedding, and of each step, such as attention 1.
        states: of shape (steps + 1, n, e), one record for each label.
        readout: for each record and token the pair (most probable next token, its probability),
            if the stream were read out there (the logit lens, nostalgebraist 2020).

    Raises:
        ValueError: states or a readout that do not fit tokens and labels.
    """

    tokens: Sequence[str]
    labels: Sequence[str]
    states: Any
    readout: Sequence[Sequence[tuple[str, float]]]

    def __post_init__(self) -> None:
        records, n, shape = len(self.labels), len(self.tokens), np.shape(self.states)
        if len(shape) != 3 or shape[:2] != (records, n):
            raise ValueError(
                f"states: got shape {shape}, expected ({records}, {n}, e), labels by tokens by "
                "the width e"
            )
        counts = [len(record) for record in self.readout]
        if counts != [n] * records:
            raise ValueError(
                f"readout: got {len(counts)} records of {sorted(set(counts))} pairs, expected "
                f"{records} of {n}, one for each label and token"
            )

    def sent(self) -> dict[str, Any]:
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
        readout = [pair for record in self.readout for pair in record]
        return {
            "tokens": figure.visible(self.tokens),
            "labels": list(self.labels),
            "width": states.shape[2],
            "drawn": drawn.shape[2],
            "unit": unit.astype(np.float32),
            "coordinates": np.rint(drawn / unit[:, None]).astype(np.int8).ravel(),
            "change": lengths[0].astype(np.float32).ravel(),
            "stream": lengths[1].astype(np.float32).ravel(),
            "cosine": cosine.astype(np.float32).ravel(),
            "said": figure.visible([token for token, _ in readout]),
            "probability": np.array([p for _, p in readout], dtype=np.float32),
        }


def residual_stream(stream: Stream) -> figure.LiveFigure:
    """The residual stream through the steps of a model: x before, what a step adds, x after.

    The first 64 coordinates of a token are drawn; lengths and cosines are of all.

    Args:
        stream: the example.
    """
    data = ColumnDataSource({key: [part] for key, part in stream.sent().items()}, name="stream")
    sources = figure.empty(
        {"cells": ("x", "y", "length"), "frame": ("x", "y"), "bars": ("x", *BARS)}
    )
    height, last, n = 20 * len(stream.labels), len(stream.labels) - 1, len(stream.tokens)
    lengths = figure.plot(
        frame_height=height,
        x_axis_label="token",
        min_border_right=8,
        x_range=(0.5, n + 0.5),
        y_range=(last + 0.5, -0.5),
        x_axis_location="above",
    )
    scale = figure.colour_bar(
        lengths, figure.squares(lengths, sources["cells"], "length"), "length"
    )
    lengths.rect("x", "y", width=1, height=1, source=sources["frame"], **figure.framed(3))
    for axis, names, first in ((lengths.xaxis[0], stream.tokens, 1), (lengths.yaxis[0], None, 0)):
        labels = figure.visible(stream.labels if names is None else names)
        figure.token_axis(axis).ticker.ticks = list(range(first, first + len(labels)))
        axis.major_label_overrides = dict(enumerate(labels, first))
    lengths.xaxis[0].major_label_policy = NoOverlap(min_distance=2)
    lengths.yaxis[0].major_label_policy = NoOverlap(min_distance=-4)
    if any(len(token) > 2 for token in stream.tokens):
        lengths.xaxis[0].major_label_orientation = "vertical"
    panels = _panels(sources["bars"])

    colours = [("change", "length of the change"), ("stream", "length of the stream")]
    controls = {
        "colour": figure.menu("colour", "colour", colours, min_width=200),
        "token": figure.slider(
            "token", "token", (1, n), 1, format=_named("tokens[0][tick - 1]", data)
        ),
        "step": figure.slider("step", "step", (0, last), 1, format=_named("labels[0][tick]", data)),
    }
    drawn = {"scale": scale, "panels": panels, "coordinate": panels[-1].xaxis[0]}
    scripts = "wording.js", "residual_stream.js"
    figure.updated_by(
        scripts, controls, stream=data, words=(text := figure.words(4)), **sources, **drawn
    )
    figure.follow_pointer(lengths, x=controls["token"], y=controls["step"])
    colour, token, step = controls.values()
    return figure.LiveFigure(
        "live-stream",
        "The residual stream",
        figure.arranged((lengths, *panels), (text, colour, figure.beside(token, step))),
        "The residual stream of a model on one example: a token a column, a step of the model a "
        "row, and the length of what the step adds as colour. Choose a token and a step: bars show "
        "the token's stream before the step, the change and the stream after it, and the text "
        "gives their lengths.",
        min_height=49 + height // 16,
    )


def _named(name: str, data: Any) -> Any:
    """A slider's value as the name that the example has for it."""
    code = f"return stream.data.{name} ?? String(tick)"
    return CustomJSTickFormatter(args={"stream": data}, code=code)


def _panels(bars: Any) -> list[Any]:
    """The chosen token's coordinates before, in and after the step, on one scale."""
    panels: list[Any] = []
    for part, colour in BARS.items():
        shared = {a: getattr(panels[0], a) for a in ("x_range", "y_range")} if panels else {}
        ranges = shared or {"x_range": (0.5, 1.5), "y_range": (-1, 1)}
        panel = figure.plot(
            frame_height=80, title=part, min_border_left=48, min_border_right=8, **ranges
        )
        panel.yaxis.ticker.desired_num_ticks = 3
        panel.add_layout(Span(location=0, dimension="width", line_color=GREY, line_alpha=0.4))
        panel.vbar("x", width=0.7, top=part, color=colour, source=bars)
        panel.xaxis.visible = part == "after"
        panels.append(panel)
    return panels
