"""Drawings of the block, its stream upright, and of what is built of it."""

from attnbook.drawings.canvas import Canvas, Drawing

PAINTS = {
    "norm": "line",
    "MLP": "values",
    "attention": "weights",
    "causal\nattention": "weights",
    "cross-\nattention": "weights",
}
ICON = (0.1, 0.5, 0.15, 1, 0.3)


def _box(canvas: Canvas, x: float, bottom: float, w: float, label: str) -> float:
    """A part of a block; a part that attends shows its weights. How high its box is."""
    attends = "attention" in label
    lines = label.count("\n") + 1
    h = 15 + 19 * (lines + attends)
    y, paint = bottom - h / 2, PAINTS[label]
    canvas.box(x, y, w, h, role=paint)
    canvas.text(x, y - 10 * attends, label, "ink" if paint == "line" else paint)
    if attends:
        places = [(x + 17 * (j - 2), bottom - 15) for j in range(5)]
        canvas.dots(places, ICON, radius=7, full=1)
    return h


def _part(canvas: Canvas, x: float, y: float, labels: list[str], side: float, w: float) -> float:
    """Leave the stream at height y, go up through the boxes, add to the stream: at what height."""
    canvas.arrow((x, y), (x + side, y), (x + side, y - 24))
    y -= 24
    for label in labels:
        if label != labels[0]:
            canvas.arrow((x + side, y), (x + side, y - 20))
            y -= 20
        y -= _box(canvas, x + side, y, w, label)
    canvas.arrow((x + side, y), (x + side, y - 24), (x + 13, y - 24))
    canvas.plus(x, y - 24)
    return y - 24


def _stream(canvas: Canvas, x: float, start: float, end: float, *, tip: bool = False) -> None:
    (canvas.arrow if tip else canvas.line)((x, start), (x, end), role="output", width=3)


def block() -> Drawing:
    """The encoder's block: attention and an MLP read the stream and add to it."""
    canvas = Canvas(
        "block",
        452,
        "A stream runs upwards. Attention reads it through a norm and adds to it; then an MLP "
        "reads it through a norm and adds to it.",
    )
    x, y = 70.0, 396.0
    canvas.text(x, 440, "X", "output", bold=True)
    _stream(canvas, x, 424, y)
    for part, about in (("attention", "between\nthe tokens"), ("MLP", "within\neach token")):
        end = _part(canvas, x, y, ["norm", part], 170, 140)
        canvas.text(340, end + (64 if part == "MLP" else 56), about, anchor="start")
        _stream(canvas, x, y, end + 11)
        y = end - 28
        _stream(canvas, x, end - 11, y)
        if part == "attention":
            canvas.text(x - 18, end - 20, "Y", "output", anchor="end", bold=True)
    _stream(canvas, x, y, 34, tip=True)
    canvas.text(x, 16, "Z", "output", bold=True)
    return canvas.drawing()


def pre_and_post_norm() -> Drawing:
    """Pre-norm and post-norm side by side: what reads through a norm, and what is normed."""
    canvas = Canvas(
        "pre_and_post_norm",
        476,
        "Left, pre-norm: each part reads the stream through a norm, and the stream itself is "
        "never normed. Right, post-norm: after each sum the stream itself is normed.",
    )
    for x, name in ((48, "pre-norm"), (288, "post-norm")):
        canvas.text(x + 80, 462, name, bold=True)
        y = 400.0
        _stream(canvas, x, 440, y)
        for part in ("attention", "MLP"):
            before = ["norm"] if name == "pre-norm" else []
            end = _part(canvas, x, y, [*before, part], 116, 118)
            _stream(canvas, x, y, end + 11)
            y = end - 30
            _stream(canvas, x, end - 11, y)
            if not before:
                y -= _box(canvas, x, y, 66, "norm")
                _stream(canvas, x, y, y - 24)
                y -= 24
        _stream(canvas, x, y, 16, tip=True)
    return canvas.drawing()


def decoder_block() -> Drawing:
    """The decoder's block: attention to what is written, to the memory, and an MLP."""
    canvas = Canvas(
        "decoder_block",
        664,
        "A stream runs upwards and passes three parts: causal attention to what is written, "
        "cross-attention to the encoder's memory, and an MLP.",
    )
    x, y = 50.0, 606.0
    canvas.text(x, 648, "X", "output", bold=True)
    _stream(canvas, x, 632, y)
    for part, name in (("causal\nattention", "Y"), ("cross-\nattention", "Z"), ("MLP", "U")):
        end = _part(canvas, x, y, ["norm", part], 150, 140)
        if part.startswith("cross"):
            middle = end + 60
            canvas.box(410, middle, 116, 60, "memory M\nm × e", "keys")
            canvas.arrow((352, middle - 14), (272, middle - 14), role="keys")
            canvas.arrow((352, middle + 14), (272, middle + 14), role="values")
            canvas.text(311, middle - 28, "keys", "keys")
            canvas.text(311, middle + 30, "values", "values")
            canvas.text(200, y - 11, "", "queries")
        _stream(canvas, x, y, end + 11)
        y = end - 28
        _stream(canvas, x, end - 11, y)
        if name != "U":
            canvas.text(x - 16, end - 20, name, "output", anchor="end", bold=True)
    _stream(canvas, x, y, 36, tip=True)
    canvas.text(x, 16, "U", "output", bold=True)
    return canvas.drawing()


def three_transformers(tokens: int = 4) -> Drawing:
    """Three transformers of the same boxes; in each attention, who may attend to whom.

    Args:
        tokens: of each mask.
    """
    canvas = Canvas(
        "three_transformers",
        474,
        "A translator has an encoder, in which all see all, and a decoder with a causal mask and "
        "cross-attention; a reader is an encoder alone, a writer a decoder alone.",
    )
    full = [[1.0] * tokens] * tokens
    causal = [[float(j <= i) for j in range(tokens)] for i in range(tokens)]
    for x, top, bottom, parts in (
        (62, "", "source", [("attention", full), ("MLP", None)]),
        (182, "next token", "target", [("attention", causal), ("cross", full), ("MLP", None)]),
        (304, "label", "all", [("attention", full), ("MLP", None)]),
        (420, "next token", "so far", [("attention", causal), ("MLP", None)]),
    ):
        canvas.text(x, 404, bottom)
        y = 386.0
        for label, mask in parts:
            canvas.arrow((x, y), (x, y - 20), role="output", width=2)
            y -= 20
            height = 84 if mask else 36
            role = "weights" if mask else "values"
            canvas.box(x, y - height / 2, 102, height, role=role)
            canvas.text(x, y - height + 18, label, role)
            if mask:
                canvas.matrix(x, y - 50, mask, "weights", 42 / tokens)
            y -= height
        if top:
            canvas.arrow((x, y), (x, 96 if "next" in top else 96), role="output", width=2)
            canvas.text(x, 80, top, "output", bold=True)
        else:
            canvas.arrow((x, y), (x, y - 24), (122, y - 24), (122, 236), (130, 236), role="keys")
    for x, label in ((122, "translator"), (304, "reader"), (420, "writer")):
        canvas.text(x, 450, label, bold=True, size=18)
    return canvas.drawing()
