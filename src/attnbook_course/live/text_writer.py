"""Chapter 8's live figure: a language model goes on with the reader's own text."""

from collections.abc import Sequence
from typing import Any

from bokeh.models import ColumnDataSource, Div, InlineStyleSheet, TextInput

from attnbook_course.figures import COLOURS
from attnbook_course.live import figure, models

NAME = "live-writer"
SHOWN = 8  # of the most probable tokens
PORTION = 60  # tokens that a press of the button writes
WRITTEN = {
    "height": "min(13.5em, 30vh)",  # on a slide it leaves room for the bars
    "overflow-y": "auto",
    "white-space": "pre-wrap",
    "overflow-wrap": "anywhere",
    "font-family": "monospace",
}
# no `accept`: phones then offer no file whose ending they do not know
OWN = """<label>Open a model of your own <input type="file"></label>
<div>A file that examples/writer.py or your mine.py has saved. It stays on this device: nothing is
uploaded. Reloading the page brings the book's model back.</div>"""
LOOK = """
label { display: flex; flex-wrap: wrap; align-items: center; gap: 0 10px; margin-bottom: 4px; }
input { min-height: 44px; max-width: 100%; box-sizing: border-box; font: inherit; color: inherit; }
::file-selector-button {
  min-height: 44px; padding: 0 12px; font: inherit; color: inherit; cursor: pointer;
  background: transparent; border: 1px solid #8a939e; border-radius: 4px;
}
::file-selector-button:hover { background: #8a939e40; border-color: currentColor; }
"""


def text_writer(
    beginning: str, *, model: str, next_tokens: Sequence[tuple[str, float]]
) -> figure.LiveFigure:
    """A model writes on: its next token's probabilities as bars, and what it draws as text.

    The page loads the model when the reader asks for it. It keeps keys and values, and where its
    positions end it goes on from the last half of them. At temperature 0 the most probable token
    is taken. The reader can open a model of their own, as models.save or examples/writer.py writes
    it: the page checks the file and sends it nowhere.

    Args:
        beginning: the text to begin with.
        model: the name of a stored DecoderOnly with its byte pairs, see course.live.models.store.
        next_tokens: the most probable ones after the beginning, at most 8, and their probabilities:
            what is shown before the model is there.
    """
    bars, chart = _chart(next_tokens)
    sized = {"min_width": 150}
    controls = {
        "beginning": TextInput(
            title="how the text begins", name="beginning", value=beginning, min_width=230
        ),
        "temperature": figure.slider(
            "temperature", "temperature", (0, 1.5), 1, step=0.1, format="0.0", **sized
        ),
        "top_p": figure.slider("top-p", "top_p", (0.1, 1), 1, step=0.05, format="0.00", **sized),
    }
    labels = {"write": f"{models.load_label(model)} and write", "one": "one token"}
    pressed = figure.buttons({**labels, "again": "begin again"}, 150)
    written = Div(name="written", styles=WRITTEN)
    own = Div(name="own", text=OWN, stylesheets=[InlineStyleSheet(css=LOOK)])
    text, notice = figure.words(2), figure.words(1, "notice", visible=False)
    (first, share), *_ = next_tokens
    text.text = f"The most probable next token is '{token_as_signs(first)}' {share:.2f}."
    figure.updated_by(
        (
            "wording.js",
            "float16.js",
            "stored_model.js",
            "decoder.js",
            "byte_pairs.js",
            "own_model.js",
            "text_writer.js",
        ),
        controls,
        pressed,
        bars=bars,
        labels=chart.yaxis[0],
        written=written,
        own=own,
        words=text,
        notice=notice,
        instead=f"In Python, live.models.load('{model}') gives it, and sampling.sample writes.",
        model=model,
        most=SHOWN,
        portion=PORTION,
        figure=NAME,
    )
    begun, warmth, nucleus = controls.values()
    sliders, row = figure.beside(warmth, nucleus), figure.beside(*pressed.values())
    rows = text, notice, begun, sliders, row, own
    return figure.LiveFigure(
        NAME,
        "A writer at work",
        figure.arranged((written, chart), rows),
        "A language model goes on with a text of yours. It shows the most probable next tokens as "
        "bars and writes what it draws from them. Type how the text begins, choose a temperature "
        "and a top-p, and let it write one token or many.",
        min_height=52,
    )


def _chart(next_tokens: Sequence[tuple[str, float]]) -> tuple[Any, Any]:
    """Bars of the most probable tokens, and their plot."""
    shown = [token_as_signs(token) for token, _ in next_tokens]
    chart = figure.bar_chart(
        shown + [""] * (SHOWN - len(shown)),
        "probability of the next token",
        height=230,
        room=110,
    )
    shares = [float(share) for _, share in next_tokens]
    places = list(range(1, len(shares) + 1))
    bars = ColumnDataSource({"y": places, "share": shares}, name="bars")
    chart.hbar(y="y", right="share", height=0.7, color=COLOURS["estimate"], source=bars)
    return bars, chart


def token_as_signs(token: str) -> str:
    """A token with its spaces and line ends as signs."""
    return token.replace("\n", "⏎").replace(" ", "␣")
