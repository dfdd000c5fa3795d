"""Chapter 10's live laboratory: a published model reads the reader's own text."""

from collections.abc import Sequence
from typing import Any

from bokeh.events import ButtonClick
from bokeh.models import Button, ColumnDataSource, TextAreaInput

from attnbook_course.figures import COLOURS
from attnbook_course.live import weights
from attnbook_course.live.figure import (
    LiveFigure,
    arranged,
    bar_chart,
    beside,
    control_style,
    menu,
    slider,
    updated_by,
    words,
)
from attnbook_course.live.head_plots import (
    check_head,
    follow,
    height_of,
    plots_of,
    sources_of,
    token_name,
)
from attnbook_course.live.model_heads import MEASURES
from attnbook_course.live.text_writer import SHOWN, check_next, token_as_signs

# of the published file, which the website may have
BYTES = {"smollm2": 98_362_432}
SHA256 = {"smollm2": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"}
KINDS = {  # of distance between a query and a key, and what the figure calls them
    "place": "places",
    "digits": "digits",
    "embedding": "embeddings",
    "before": "what stood before",
}
LONGEST = 10  # characters that a token's label has room for


def ask_model(
    stored: str,
    *,
    head: tuple[int, int] = (1, 1),
    next_tokens: Sequence[tuple[str, float]] = (),
    name: str = "live-ask-model",
) -> LiveFigure:
    """A model reads a text of the reader's: what comes next, with all heads and without some.

    The page loads the published file when the reader asks for it, from the site itself
    (`make model`), and checks its hash; a worker computes. Until then the first of the stored
    sentences stands there. A head that is cut adds nothing to the stream. Each can be cut in turn:
    the map then shows the distance of total variation between the next token's probabilities with
    and without it. Of the chosen head the figure says what its weights go with: the share of their
    variance, adjusted for the number of groups, between pairs of query and key at the same
    distance in place, between digits, in embedding (eight groups of equal size), or by whether the
    token before the key equals the query. The first key is left out of it, and each query's other
    weights are divided by their mean.

    Args:
        stored: the model and its stored weights, "smollm2".
        head: layer and head to begin with, both counted from 1.
        next_tokens: the most probable ones after the first stored sentence, at most 8, and their
            probabilities.
        name: of the element in the page; one a page.

    Raises:
        ValueError: another model, a head that it does not have, next tokens that are no pairs of a
            text and a probability, or too many.
    """
    if stored not in BYTES:
        raise ValueError(f"stored: got {stored!r}, expected one of {', '.join(BYTES)}")
    given = weights.load(stored)
    sentence = given.sentences[0]
    layers, heads = sentence.shape
    layer, one = check_head(head, layers, heads)
    check_next(next_tokens)
    n = len(sentence.tokens)
    data = ColumnDataSource(
        {"tokens": [list(sentence.tokens)], "units": [sentence.units()], "height": [height_of(n)]},
        name="cases",
    )
    sources = sources_of(layer, one)
    plots = plots_of(sources, (layers, heads), LONGEST)
    matrix = plots[2]
    bars, chart = _next_tokens(next_tokens)
    kinds, shares = _kinds()

    wide = control_style()
    own = TextAreaInput(
        title="your text", name="own", value="".join(sentence.tokens[1:]), rows=3, **wide
    )
    measures = [(key, f"its weight on {what}") for key, what in MEASURES.items()]
    measures += [("cut", "what changes without it")]
    measure = menu("colour of a head", "measure", measures, min_width=250, **wide)
    sized = {"min_width": 150, **wide}
    deep = slider("layer", "layer", (1, layers), layer, **sized)
    aside = slider("head", "head", (1, heads), one, **sized)
    token = slider("token", "token", (1, 2), n, format=token_name(data), **sized)
    widths = {
        "ask": 250,
        "cut this head": 150,
        "put all back": 130,
        "turn": 180,
        "strongest head": 150,
    }
    ask, cut, whole, scan, strongest = buttons = [
        Button(label=label, name=label.split(" ")[0], min_width=width, **wide)
        for label, width in widths.items()
    ]
    plain = {"render_as_text": True, **wide}  # a token may look like HTML
    said, why, text, notice = words(3, plain), words(2, plain), words(4, plain), words(1, plain)
    said.update(name="said", text=_said(next_tokens))
    why.update(name="why")
    notice.update(name="notice", visible=False)
    controls = {"own": own, "measure": measure, "layer": deep, "head": aside, "token": token}
    pressed = {"ask": ask, "cut": cut, "whole": whole, "scan": scan}
    spoken = {"words": text, "notice": notice, "said": said, "why": why}
    drawn = {
        "matrix": matrix,
        "down": matrix.yaxis[0],
        "across": matrix.xaxis[0],
        **sources,
        "bars": bars,
        "labels": chart.yaxis[0],
        "kinds": kinds,
        "cases": data,
    }
    told = {
        "layers": layers,
        "heads": heads,
        "stored": stored,
        "instead": f"In Python, pretrained.fetch('{stored}') and pretrained.from_gguf give it.",
        "most": SHOWN,
        "figure": name,
        "sha256": SHA256[stored],
        "bytes": BYTES[stored],
    }
    scripts, told["example"] = ("ask_model.js", "model_heads.js"), None
    update = updated_by(scripts, controls, **pressed, **spoken, **drawn, **told)
    for button in buttons:
        button.js_on_event(ButtonClick, update)
    follow(update, plots, (deep, aside, token))
    rows = beside(deep, aside, token), beside(measure), beside(scan, strongest)
    layout = arranged(
        (own, beside(ask, cut, whole), chart, *plots, shares), (notice, said, text, why, *rows)
    )
    return LiveFigure(
        name,
        "Ask the real model",
        layout,
        f"{given.model} reads a text of yours. The figure shows the probable next tokens, with "
        f"all of its {layers * heads} heads and without those that you cut, a map of the heads, "
        "and of one head its weights and how much of their variance each kind of distance "
        "explains.",
        min_height=80 + height_of(n) // 16,
    )


def _next_tokens(given: Sequence[tuple[str, float]]) -> tuple[Any, Any]:
    """Probabilities of the next token as bars, two for each: with all heads, and without some."""
    bars = ColumnDataSource(
        {
            "y": list(range(1, len(given) + 1)),
            "whole": [float(share) for _, share in given],
            "cut": [float("nan")] * len(given),
        },
        name="bars",
    )
    tokens = [token_as_signs(token) for token, _ in given] + [""] * (SHOWN - len(given))
    chart = bar_chart(tokens, "probability (thin: with heads cut)", height=250, room=110)
    chart.hbar("y", right="whole", height=0.7, color=COLOURS["estimate"], source=bars)
    chart.hbar("y", right="cut", height=0.25, color=COLOURS["weights"], source=bars)
    return bars, chart


def _kinds() -> tuple[Any, Any]:
    """What the chosen head's weights go with: a bar for each kind of distance."""
    places = list(range(1, len(KINDS) + 1))
    kinds = ColumnDataSource(
        {"y": places, "kind": [*KINDS], "name": [*KINDS.values()], "share": [0.0] * len(KINDS)},
        name="kinds",
    )
    chart = bar_chart([*KINDS.values()], "share of the variance predicted", height=150, room=140)
    chart.hbar("y", right="share", height=0.6, color=COLOURS["weights"], source=kinds)
    return kinds, chart


def _said(given: Sequence[tuple[str, float]]) -> str:
    told = [f"'{token_as_signs(token)}' {share:.2f}" for token, share in given[:2]]
    return f"The most probable next token is {', then '.join(told)}." if told else ""
