"""Chapter 10's live figure: every head of a published model on a sentence."""

from bokeh.events import ButtonClick
from bokeh.models import Button, ColumnDataSource

from attnbook_course.live import weights
from attnbook_course.live.figure import (
    LiveFigure,
    arranged,
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

MEASURES = {
    "first": "the first token (a sink)",
    "before": "the token before",
    "followed": "what followed an equal token",
}


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
        stored: the name of stored weights, see attnbook_course.live.weights.store.
        head: layer and head to begin with, both counted from 1.
        whole: whether all sentences lie in the page, as a notebook needs that loads nothing.
        name: of the element in the page; one a page.
        description: what the figure shows, for a screen reader and where no script runs.

    Raises:
        ValueError: a name under which nothing is stored, a head that the model does not have.
    """
    given = weights.load(stored)
    layers, heads = given.sentences[0].shape
    layer, one = check_head(head, layers, heads)
    there = len(given.sentences) if whole else 1
    data = ColumnDataSource(
        {
            "tokens": [list(sentence.tokens) for sentence in given.sentences],
            "units": [s.units() if k < there else [] for k, s in enumerate(given.sentences)],
            "height": [height_of(len(sentence.tokens)) for sentence in given.sentences],
        },
        name="cases",
    )
    sources = sources_of(layer, one)
    longest = max(len(token.strip()) for s in given.sentences for token in s.tokens)
    plots = plots_of(sources, (layers, heads), longest)
    matrix = plots[2]

    wide = control_style()
    titles = [(str(k), sentence.title) for k, sentence in enumerate(given.sentences)]
    example = menu("sentence", "sentence", titles, min_width=230, **wide)
    title, measures = "colour of a head: its mean weight on", list(MEASURES.items())
    measure = menu(title, "measure", measures, min_width=250, **wide)
    sized = {"min_width": 150, **wide}
    deep = slider("layer", "layer", (1, layers), layer, **sized)
    aside = slider("head", "head", (1, heads), one, **sized)
    named, last = token_name(data, example), len(given.sentences[0].tokens)
    token = slider("token", "token", (1, 2), last, format=named, **sized)
    strongest = Button(
        label="the head with the largest mean weight", name="strongest", min_width=250, **wide
    )
    text = words(4, {"render_as_text": True, **wide})  # a token may look like HTML
    notice = words(1, {"render_as_text": True, **wide})
    notice.update(name="notice", visible=False)
    controls = {"example": example, "measure": measure, "layer": deep, "head": aside}
    controls["token"] = token
    told = {
        "cases": data,
        "layers": layers,
        "heads": heads,
        "stored": stored,
        "instead": f"In Python, live.model_heads('{stored}', whole=True) shows all sentences.",
        "words": text,
        "notice": notice,
    }
    drawn = {"matrix": matrix, "down": matrix.yaxis[0], "across": matrix.xaxis[0], **sources}
    update = updated_by("model_heads.js", controls, **told, **drawn)
    strongest.js_on_event(ButtonClick, update)
    follow(update, plots, (deep, aside, token))
    layout = arranged(
        plots,
        (text, notice, beside(example, measure), beside(deep, aside, token), strongest),
    )
    return LiveFigure(
        name,
        "Every head of a real model",
        layout,
        description or _about(given.model, layers, heads, len(given.sentences)),
        min_height=47 + height_of(len(given.sentences[0].tokens)) // 16,
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
