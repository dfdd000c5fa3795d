"""Chapter 10's live laboratory: a published model reads the reader's own text."""

from collections.abc import Sequence
from typing import Any

from bokeh.models import (
    ColumnDataSource,
    CustomJSTickFormatter,
    FixedTicker,
    NoOverlap,
    TextAreaInput,
)

from attnbook_course.figures import COLOURS
from attnbook_course.live import figure, weights
from attnbook_course.live.text_writer import SHOWN, token_as_signs

NAME = "live-ask-model"
# of the published file, which the website may have
BYTES = {"smollm2": 98_362_432}
SHA256 = {"smollm2": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"}
MEASURES = [
    ("first", "its weight on the first token (a sink)"),
    ("before", "its weight on the token before"),
    ("followed", "its weight on what followed an equal token"),
    ("cut", "what changes without it"),
]
ROOM = {"min_border_left": 72, "min_border_right": 8, "min_width": 300}  # two beside each other
TOKEN = """const text = cases.data.tokens[0][tick - 1] ?? "";
return text.includes("\\n") ? "\u23ce" : text.trim() || "\u2423";"""


def ask_model(
    stored: str, *, head: tuple[int, int], token: str, next_tokens: Sequence[tuple[str, float]]
) -> figure.LiveFigure:
    """A model reads a text of the reader's: what comes next, with all heads and without some.

    The page loads the published file when the reader asks for it, from the site itself
    (`make model`), and checks its hash; a worker computes. Until then the first of the stored
    sentences stands there; where there is no file, a line on top says so, and what asks the model
    is not there. A head that is cut adds nothing to the stream. Each can be cut in turn:
    the map then shows the distance of total variation between the next token's probabilities with
    and without it.

    Args:
        stored: the model and its stored weights, "smollm2".
        head: layer and head to begin with, both counted from 1.
        token: the one to begin with, as the first stored sentence has it.
        next_tokens: the most probable ones after the first stored sentence, at most 8, and their
            probabilities.
    """
    given = weights.load(stored)
    sentence = given.sentences[0]
    layers, heads = sentence.shape
    layer, one = head
    n, asking = len(sentence.tokens), list(sentence.tokens).index(token) + 1
    height = n * min(20, max(13, 320 // n))
    cases = {"tokens": [list(sentence.tokens)], "units": [sentence.units()], "height": [height]}
    data = ColumnDataSource(cases, name="cases")
    sources = _sources(layer, one)
    overview, matrix = _plots(sources, layers, heads)
    bars, chart = _next_tokens(next_tokens)

    sized = {"min_width": 150}
    named = CustomJSTickFormatter(args={"cases": data}, code=TOKEN)
    controls = {
        "own": TextAreaInput(
            title="your text", name="own", value="".join(sentence.tokens[1:]), rows=2
        ),
        "measure": figure.menu("colour of a head", "measure", MEASURES, min_width=250),
        "layer": figure.slider("layer", "layer", (1, layers), layer, **sized),
        "head": figure.slider("head", "head", (1, heads), one, **sized),
        "token": figure.slider("token", "token", (1, n), asking, format=named, **sized),
    }
    labels = {"ask": "load and ask", "cut": "cut this head", "whole": "put all back"}
    pressed = figure.buttons({**labels, "scan": "cut each head in turn"}, 150)
    said, text = figure.words(2, "said", text=_said(next_tokens)), figure.words(3)
    notice = figure.words(1, "notice", visible=False)
    figure.updated_by(
        ("wording.js", "ask_model.js", "heads_of_model.js"),
        controls,
        pressed,
        **sources,
        cases=data,
        matrix=matrix,
        down=matrix.yaxis[0],
        across=matrix.xaxis[0],
        bars=bars,
        labels=chart.yaxis[0],
        words=text,
        notice=notice,
        said=said,
        layers=layers,
        heads=heads,
        stored=stored,
        instead=f"In Python, pretrained.fetch('{stored}') and pretrained.from_gguf give it.",
        across_bars=chart.xaxis[0],
        most=SHOWN,
        figure=NAME,
        sha256=SHA256[stored],
        bytes=BYTES[stored],
    )
    own, measure, deep, aside, token = controls.values()
    figure.follow_pointer(overview, x=deep, y=aside)
    figure.follow_pointer(matrix, y=token)
    ask, cut, whole, scan = pressed.values()
    asked = own, figure.beside(ask, cut, whole), notice, said
    shown = figure.beside(chart, matrix), figure.beside(deep, aside, token, each="30%")
    return figure.LiveFigure(
        NAME,
        "Ask the real model",
        figure.arranged((*asked, *shown), (text, overview, figure.beside(measure, scan))),
        f"{given.model} reads a text of yours. The figure shows the probable next tokens, with "
        f"all of its {layers * heads} heads and without those that you cut, a map of the heads, "
        "and the weights of one.",
        min_height=54 + height // 16,
    )


def _sources(layer: int, head: int) -> dict[str, Any]:
    """What the plots draw: the map and its frame, a matrix and a row of it."""
    of_heads = {
        "cells": ("x", "y", "weight"),
        "frame": ("x", "y", "width"),
        "all": ("x", "y", "weight"),
    }
    chosen = ColumnDataSource({"x": [layer], "y": [head]}, name="chosen")
    return {**figure.empty(of_heads), "chosen_head": chosen}


def _plots(sources: dict[str, Any], layers: int, heads: int) -> tuple[Any, Any]:
    """A map with a cell for each head, and the matrix of the chosen one."""
    matrix = figure.plot(
        frame_height=300, x_range=(0.5, 1.5), y_range=(1.5, 0.5), x_axis_location="above", **ROOM
    )
    colours = figure.squares(matrix, sources["cells"], "weight")
    matrix.rect("x", "y", width="width", height=1, source=sources["frame"], **figure.framed())
    figure.colour_bar(matrix, colours, "weight", ticker=FixedTicker(ticks=[0, 0.5, 1]))
    figure.token_axis(matrix.xaxis[0]).major_label_policy = NoOverlap(min_distance=-3)
    figure.token_axis(matrix.yaxis[0]).major_label_policy = NoOverlap(min_distance=-4)

    ends = {"x_range": (0.5, layers + 0.5), "y_range": (heads + 0.5, 0.5)}
    labels = {"x_axis_label": "layer", "y_axis_label": "head", "x_axis_location": "above"}
    room = {"min_border_left": 46, "min_border_right": 8, "frame_align": False}
    overview = figure.plot(frame_height=18 * heads, **ends, **labels, **room)
    figure.squares(overview, sources["all"], "weight")
    overview.rect("x", "y", width=1, height=1, source=sources["chosen_head"], **figure.framed(3))
    overview.xaxis.ticker = FixedTicker(ticks=[1, *range(5, layers + 1, 5)])
    overview.yaxis.ticker = FixedTicker(ticks=list(range(1, heads + 1, 2)))
    return overview, matrix


def _next_tokens(given: Sequence[tuple[str, float]]) -> tuple[Any, Any]:
    """Probabilities of the next token as bars, two for each: with all heads, and without some."""
    places = list(range(1, len(given) + 1))
    shares = {"whole": [float(share) for _, share in given], "cut": [float("nan")] * len(given)}
    bars = ColumnDataSource({"y": places, **shares}, name="bars")
    tokens = [token_as_signs(token) for token, _ in given] + [""] * (SHOWN - len(given))
    chart = figure.bar_chart(tokens, "probability of the next token", height=330, room=72)
    chart.min_width = 240
    chart.hbar("y", right="whole", height=0.7, color=COLOURS["estimate"], source=bars)
    chart.hbar("y", right="cut", height=0.25, color=COLOURS["weights"], source=bars)
    return bars, chart


def _said(given: Sequence[tuple[str, float]]) -> str:
    told = [f"'{token_as_signs(token)}' {share:.2f}" for token, share in given[:2]]
    return f"The most probable next token is {', then '.join(told)}."
