"""Chapter 8's live figure: a language model goes on with the reader's own text."""

from collections.abc import Sequence

from bokeh.events import ButtonClick
from bokeh.models import Button, ColumnDataSource, CustomJS, Div, FixedTicker, TextInput

from attnbook._validation import numbers
from attnbook.course.figures import COLOURS
from attnbook.course.live import models
from attnbook.course.live.figure import (
    LiveFigure,
    arranged,
    beside,
    control_style,
    plot,
    slider,
    words,
)

SHOWN = 8  # of the most probable tokens
PORTION = 60  # tokens that a press of the button writes


def text_writer(
    beginning: str,
    *,
    model: str,
    next_tokens: Sequence[tuple[str, float]] = (),
    temperature: float = 1.0,
    name: str = "live-writer",
) -> LiveFigure:
    """A model writes on: its next token's probabilities as bars, and what it draws as text.

    The page loads the model when the reader asks for it. It keeps keys and values, and where its
    positions end it goes on from the last half of them. At temperature 0 the most probable token
    is taken.

    Args:
        beginning: the text to begin with.
        model: the name of a stored DecoderOnly with its byte pairs, see course.live.models.store.
        next_tokens: the most probable ones after the beginning, at most 8, and their probabilities
            at this temperature: what is shown before the model is there.
        temperature: from 0 to 1.5, in tenths.
        name: of the element in the page; one a page.

    Raises:
        ValueError: no beginning, another temperature, next tokens that are no pairs of a text and
            a probability, or too many, a name that no model can have.
    """
    if not isinstance(beginning, str) or not beginning:
        raise ValueError(f"beginning: got {beginning!r}, expected some text")
    if not numbers.is_such(temperature, lambda t: 0 <= t <= 1.5):
        raise ValueError(f"temperature: got {temperature}, expected a number from 0 to 1.5")
    check_next(next_tokens)
    places, shown = range(1, SHOWN + 1), [token_as_signs(token) for token, _ in next_tokens]
    shares = [float(share) for _, share in next_tokens]
    bars = ColumnDataSource({"y": list(places)[: len(shares)], "share": shares}, name="bars")
    chart = plot(
        height=230, x_range=(0, 1), y_range=(SHOWN + 0.6, 0.4),
        x_axis_label="probability of the next token", min_border_left=110, min_border_right=12,
    )  # fmt: skip
    chart.hbar(y="y", right="share", height=0.7, color=COLOURS["estimate"], source=bars)
    chart.yaxis.ticker = FixedTicker(ticks=list(places))
    chart.yaxis.major_tick_line_color = None
    labels = shown + [""] * (SHOWN - len(shown))
    chart.yaxis.major_label_overrides = dict(zip(places, labels, strict=True))

    wide = control_style()
    begun = TextInput(
        title="how the text begins", name="beginning", value=beginning, min_width=230, **wide
    )
    warmth = slider(
        title="temperature", name="temperature", start=0, end=1.5, step=0.1, format="0.0",
        value=temperature, min_width=150, **wide,
    )  # fmt: skip
    write = Button(label=f"{models.load_label(model)} and write", name="write", **wide)
    one = Button(label="one token", name="one", **wide)
    again = Button(label="begin again", name="again", **wide)
    for button in (write, one, again):
        button.min_width = 150
    written = Div(
        name="written", **wide,
        styles={
            "min-height": "9em", "max-height": "18em", "overflow-y": "auto",
            "white-space": "pre-wrap", "overflow-wrap": "anywhere", "font-family": "monospace",
        },
    )  # fmt: skip
    text = words(2, {"render_as_text": True, **wide})
    if shown:
        text.text = f"The most probable next token is '{shown[0]}' {shares[0]:.2f}."
    notice = words(1, {"render_as_text": True, **wide})
    notice.update(name="notice", visible=False)
    update = CustomJS(
        args=dict(
            bars=bars, labels=chart.yaxis[0], beginning=begun, temperature=warmth, write=write,
            one=one, again=again, written=written, words=text, notice=notice, model=model,
            most=SHOWN, portion=PORTION, instead=_instead(model), figure=name,
        ),
        code=models.scripts("decoder_only.js", "byte_pairs.js", "text_writer.js"),
        name="update",
    )  # fmt: skip
    for control in (begun, warmth):
        control.js_on_change("value", update)
    for button in (write, one, again):
        button.js_on_event(ButtonClick, update)
    layout = arranged(
        (written, chart),
        (text, notice, begun, warmth, beside(write, one, again)),
    )
    return LiveFigure(
        name,
        "A writer at work",
        layout,
        "A language model goes on with a text of yours. It shows the most probable next tokens as "
        "bars and writes what it draws from them. Type how the text begins, choose a temperature, "
        "and let it write one token or many.",
        min_height=47,
    )


def _instead(model: str) -> str:
    """What a reader can do where the model cannot be loaded."""
    return f"In Python, live.models.load('{model}') gives it, and sampling.sample writes."


def check_next(given: Sequence[tuple[str, float]]) -> None:
    """Check the most probable next tokens: texts and their probabilities."""
    if len(given) > SHOWN:
        raise ValueError(f"next_tokens: got {len(given)}, expected at most {SHOWN}")
    for pair in given:
        token, share = pair if isinstance(pair, tuple | list) and len(pair) == 2 else (None, None)
        if not (isinstance(token, str) and numbers.is_such(share, lambda p: 0 <= p <= 1)):
            raise ValueError(f"next_tokens: got {pair!r}, expected a text and a probability")


def token_as_signs(token: str) -> str:
    """A token with its spaces and line ends as signs."""
    return token.replace("\n", "⏎").replace(" ", "␣")
