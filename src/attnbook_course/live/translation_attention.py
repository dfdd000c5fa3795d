"""Chapter 8's live figure: a trained transformer translates the reader's own numbers."""

from collections.abc import Sequence

from bokeh.events import ButtonClick
from bokeh.models import Button, CustomJS, NumericInput

from attnbook.datasets import END, START
from attnbook_course.live import models
from attnbook_course.live.attention_browser import Attention, attention_browser
from attnbook_course.live.figure import LiveFigure, beside, control_style, words

ROOM = 8  # for the number, the button and the text, in rem


def translation_attention(
    cases: Sequence[Attention],
    *,
    name: str,
    model: str,
    source_vocabulary: Sequence[str],
    target_vocabulary: Sequence[str],
    description: str | None = None,
) -> LiveFigure:
    """Weights of a translator's last layer: stored examples first, then any number of the reader's.

    The page loads the model when the reader asks for a number, runs it with greedy decoding, and
    says with what probability the model writes its answer.

    Args:
        cases: stored examples, a letter a row, a word a column, with the heads of the last layer.
        name: of the element in the page; one a page.
        model: the name of a stored Transformer, see attnbook_course.live.models.store.
        source_vocabulary: the English word of every token number.
        target_vocabulary: the character of every token number.
        description: what the figure shows, for a screen reader and where no script runs.

    Raises:
        ValueError: no case, cases whose heads differ, a name that no model can have.
    """
    about = description or (
        "The attention weights with which a transformer translates a number, a letter a row, a "
        "word a column, for each head of its last layer. Choose an example, or type a number and "
        "the page loads the model: the matrix, the bars and the text give the weights."
    )
    browser = attention_browser(cases, name=name, description=about, units=("letter", "word"))
    data, example = (browser.layout.select_one({"name": n}) for n in ("cases", "example"))
    wide = control_style()
    title = "number from 0 to 999,999"
    number = NumericInput(title=title, name="number", mode="int", value=759_002, **wide)
    label = f"{models.load_label(model)} and translate"
    button = Button(label=label, name="load", align="end", min_width=250, **wide)
    number.min_width = 150
    said = words(3, {"render_as_text": True, **wide})
    said.update(name="said", text="Type a number: the page loads the model and translates it.")
    said.styles = {**said.styles, "overflow-wrap": "anywhere"}
    shown = {"cases": data, "example": example, "number": number, "button": button, "said": said}
    instead = f"In Python, live.models.load('{model}') gives it, and decoding.greedy translates."
    told = {"model": model, "start": START, "end": END, "instead": instead}
    told["source_vocabulary"] = list(source_vocabulary)
    told["target_vocabulary"] = list(target_vocabulary)
    scripts = models.scripts("number_words.js", "translation_attention.js")
    translate = CustomJS(args={**shown, **told}, code=scripts)
    number.js_on_change("value", translate)
    button.js_on_event(ButtonClick, translate)
    controls = browser.layout.children[1]
    controls.children = [beside(number, button), said, *controls.children]
    return LiveFigure(
        name, "A translator and what it reads", browser.layout, about, browser.min_height + ROOM
    )
