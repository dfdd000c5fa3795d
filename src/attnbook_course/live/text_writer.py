"""Chapter 8's live figure: a language model goes on with the reader's own text."""

from collections.abc import Sequence

from bokeh.events import ButtonClick
from bokeh.models import (
    Button,
    ColumnDataSource,
    Div,
    InlineStyleSheet,
    TextInput,
)

from attnbook._validation import is_such
from attnbook_course.figures import COLOURS
from attnbook_course.live import models
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

SHOWN = 8  # of the most probable tokens
ASKED = ".asked { outline: 2px solid currentColor; outline-offset: -1px; }"  # the reading token
PORTION = 60  # tokens that a press of the button writes


def text_writer(
    beginning: str,
    *,
    model: str,
    next_tokens: Sequence[tuple[str, float]] = (),
    temperature: float = 1.0,
    top_p: float = 1.0,
    name: str = "live-writer",
) -> LiveFigure:
    """A model writes on: its next token's probabilities as bars, and what it draws as text.

    The page loads the model when the reader asks for it. It keeps keys and values, and where its
    positions end it goes on from the last half of them. At temperature 0 the most probable token
    is taken. The text's colours are the attention weights of one token, the last or one before it:
    the mean of all heads, or a head's.

    Args:
        beginning: the text to begin with.
        model: the name of a stored DecoderOnly with its byte pairs, see course.live.models.store.
        next_tokens: the most probable ones after the beginning, at most 8, and their probabilities
            at this temperature and top_p: what is shown before the model is there.
        temperature: from 0 to 1.5, in tenths.
        top_p: from 0.1 to 1, in twentieths: only the fewest most probable tokens that together
            reach this share are drawn, see attnbook.generate.sampling.
        name: of the element in the page; one a page.

    Raises:
        ValueError: no beginning, another temperature or top_p, next tokens that are no pairs of a
            text and a probability, or too many, a name that no model can have.
    """
    if not isinstance(beginning, str) or not beginning:
        raise ValueError(f"beginning: got {beginning!r}, expected some text")
    if not is_such(temperature, lambda t: 0 <= t <= 1.5):
        raise ValueError(f"temperature: got {temperature}, expected a number from 0 to 1.5")
    if not is_such(top_p, lambda p: 0.1 <= p <= 1):
        raise ValueError(f"top_p: got {top_p}, expected a number from 0.1 to 1")
    check_next(next_tokens)
    shown = [token_as_signs(token) for token, _ in next_tokens]
    shares = [float(share) for _, share in next_tokens]
    places = list(range(1, len(shares) + 1))
    bars = ColumnDataSource({"y": places, "share": shares}, name="bars")
    outlines = ColumnDataSource({"y": [], "share": []}, name="outlines")  # of tokens cut off
    labels = shown + [""] * (SHOWN - len(shown))
    chart = bar_chart(labels, "probability of the next token", height=230, room=110)
    chart.hbar(y="y", right="share", height=0.7, color=COLOURS["estimate"], source=bars)
    look = {"fill_color": None, "line_color": COLOURS["estimate"], "line_dash": "dashed"}
    chart.hbar(y="y", right="share", height=0.7, line_alpha=0.6, source=outlines, **look)

    wide = control_style()
    begun = TextInput(
        title="how the text begins", name="beginning", value=beginning, min_width=230, **wide
    )
    sized, asleep = {"min_width": 150, **wide}, {"min_width": 150, "disabled": True, **wide}
    options = {"step": 0.1, "format": "0.0", **sized}
    warmth = slider("temperature", "temperature", (0, 1.5), temperature, **options)
    options = {"step": 0.05, "format": "0.00", **sized}
    nucleus = slider("top-p", "top_p", (0.1, 1), top_p, **options)
    means = [("mean", "mean of all heads")]
    head = menu("colours: weights of the", "head", means, **asleep)
    reader = slider("tokens before the last", "reader", (0, 40), 0, step=1, **asleep)
    write = Button(label=f"{models.load_label(model)} and write", name="write", **wide)
    one = Button(label="one token", name="one", **wide)
    again = Button(label="begin again", name="again", **wide)
    for button in (write, one, again):
        button.min_width = 150
    written = Div(name="written", **wide)
    written.stylesheets = [*wide["stylesheets"], InlineStyleSheet(css=ASKED)]
    written.styles = {
        "height": "13.5em",
        "overflow-y": "auto",
        "white-space": "pre-wrap",
        "overflow-wrap": "anywhere",
        "font-family": "monospace",
    }
    reading = words(2, {"render_as_text": True, **wide})
    reading.name = "reading"
    text = words(2, {"render_as_text": True, **wide})
    if shown:
        text.text = f"The most probable next token is '{shown[0]}' {shares[0]:.2f}."
    notice = words(1, {"render_as_text": True, **wide})
    notice.update(name="notice", visible=False)
    controls = {
        "beginning": begun,
        "temperature": warmth,
        "top_p": nucleus,
        "head": head,
        "reader": reader,
    }
    drawn = {"bars": bars, "outlines": outlines, "labels": chart.yaxis[0], "written": written}
    instead = f"In Python, live.models.load('{model}') gives it, and sampling.sample writes."
    spoken = {"reading": reading, "words": text, "notice": notice, "instead": instead}
    told = {"model": model, "most": SHOWN, "portion": PORTION, "figure": name}
    pressed = {"write": write, "one": one, "again": again}
    scripts = (*models.SCRIPTS, "decoder_only.js", "byte_pairs.js", "text_writer.js")
    update = updated_by(scripts, controls, **pressed, **drawn, **spoken, **told)
    for button in (write, one, again):
        button.js_on_event(ButtonClick, update)
    sliders = beside(warmth, nucleus), beside(head, reader)
    layout = arranged(
        (written, reading, chart), (text, notice, begun, *sliders, beside(write, one, again))
    )
    return LiveFigure(
        name,
        "A writer at work",
        layout,
        "A language model goes on with a text of yours. It shows the most probable next tokens as "
        "bars and writes what it draws from them. Type how the text begins, choose a temperature "
        "and a top-p, and let it write one token or many. The colours of the text, and a sentence "
        "below it, give the attention weights of its last token or of one before, as the mean of "
        "all heads or for the head that you choose.",
        min_height=54,
    )


def check_next(given: Sequence[tuple[str, float]]) -> None:
    """Check the most probable next tokens: texts and their probabilities."""
    if len(given) > SHOWN:
        raise ValueError(f"next_tokens: got {len(given)}, expected at most {SHOWN}")
    for pair in given:
        token, share = pair if isinstance(pair, tuple | list) and len(pair) == 2 else (None, None)
        if not (isinstance(token, str) and is_such(share, lambda p: 0 <= p <= 1)):
            raise ValueError(f"next_tokens: got {pair!r}, expected a text and a probability")


def token_as_signs(token: str) -> str:
    """A token with its spaces and line ends as signs."""
    return token.replace("\n", "⏎").replace(" ", "␣")
