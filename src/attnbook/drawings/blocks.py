"""Drawings of the block, its stream upright, and of what is built of it."""

from attnbook.drawings.canvas import WIDE, Canvas, Drawing

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
    canvas.arrow((x, y), (x + side, y), (x + side, y - 22))
    y -= 22
    for label in labels:
        if label != labels[0]:
            canvas.arrow((x + side, y), (x + side, y - 18))
            y -= 18
        y -= _box(canvas, x + side, y, w, label)
    canvas.arrow((x + side, y), (x + side, y - 22), (x + 13, y - 22))
    canvas.plus(x, y - 22)
    return y - 22


def _stream(canvas: Canvas, x: float, start: float, end: float, *, tip: bool = False) -> None:
    (canvas.arrow if tip else canvas.line)((x, start), (x, end), role="output", width=3)


def block(tokens: int = 6, embed_dim: int = 4) -> Drawing:
    """The encoder's block: attention and an MLP read the stream and add to it.

    Args:
        tokens: n, rows of the stream X.
        embed_dim: e, its width.
    """
    canvas = Canvas(
        "block",
        446,
        "A stream runs upwards. Attention reads it through a norm and adds to it; then an MLP "
        "reads it through a norm and adds to it.",
    )
    x, y, shape = 70.0, 390.0, f"{WIDE}{tokens} × {embed_dim}"
    canvas.text(x, 432, f"X{shape}", "output", bold=True)
    _stream(canvas, x, 414, y)
    for part, about in (("attention", "between\nthe tokens"), ("MLP", "within\neach token")):
        end = _part(canvas, x, y, ["norm", part], 170, 140)
        canvas.text(344, end + (40 if part == "MLP" else 46), about, anchor="start")
        _stream(canvas, x, y, end + 11)
        y = end - 28
        _stream(canvas, x, end - 11, y)
        if part == "attention":
            canvas.text(x - 18, end - 20, "Y", "output", anchor="end", bold=True)
    _stream(canvas, x, y, 36, tip=True)
    canvas.text(x, 18, f"Z{shape}", "output", bold=True)
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


def decoder_block(tokens: int = 6, embed_dim: int = 4, memory_tokens: int = 5) -> Drawing:
    """The decoder's block: attention to what is written, to the memory, and an MLP.

    Args:
        tokens: rows of the stream X.
        embed_dim: e, the width of the stream and of the memory.
        memory_tokens: rows of the memory M.
    """
    canvas = Canvas(
        "decoder_block",
        644,
        "A stream runs upwards and passes three parts: causal attention to what is written, "
        "cross-attention to the encoder's memory, and an MLP.",
    )
    x, y, shape = 52.0, 588.0, f"{WIDE}{tokens} × {embed_dim}"
    canvas.text(x, 630, f"X{shape}", "output", bold=True)
    _stream(canvas, x, 612, y)
    for part, name in (("causal\nattention", "Y"), ("cross-\nattention", "Z"), ("MLP", "U")):
        end = _part(canvas, x, y, ["norm", part], 150, 140)
        if part.startswith("cross"):
            middle = end + 58
            canvas.box(
                414, middle, 116, 64, f"memory\nM{WIDE}{memory_tokens} × {embed_dim}", "keys"
            )
            for aside, role in ((-13, "keys"), (13, "values")):
                canvas.arrow((356, middle + aside), (273, middle + aside), role=role)
                canvas.text(315, middle + 2.1 * aside, role, role)
            canvas.text(x + 78, y - 13, "queries", "queries")
        _stream(canvas, x, y, end + 11)
        y = end - 28
        _stream(canvas, x, end - 11, y)
        if name != "U":
            canvas.text(x - 16, end - 20, name, "output", anchor="end", bold=True)
    _stream(canvas, x, y, 36, tip=True)
    canvas.text(x, 18, f"U{shape}", "output", bold=True)
    return canvas.drawing()


def three_transformers(tokens: int = 4) -> Drawing:
    """Three transformers of the same boxes; in each attention, who may attend to whom.

    Args:
        tokens: rows and columns of each mask.
    """
    canvas = Canvas(
        "three_transformers",
        488,
        "A translator has an encoder, in which all see all, and a decoder with a causal mask and "
        "cross-attention; a reader is an encoder alone, a writer a decoder alone.",
    )
    full = [[1.0] * tokens] * tokens
    causal = [[float(j <= i) for j in range(tokens)] for i in range(tokens)]
    cross = ("cross-\nattention", full)
    for x, bottom, top, masks in (
        (60, "source", "", [("attention", full)]),
        (182, "target", "next token", [("attention", causal), cross]),
        (306, "image", "label", [("attention", full)]),
        (422, "text", "next token", [("attention", causal)]),
    ):
        canvas.text(x, 388, bottom)
        y = 370.0
        for label, mask in (*masks, ("MLP", None)):
            lines = label.count("\n")
            height = 86 + 19 * lines if mask else 36
            role = "weights" if mask else "values"
            canvas.arrow((x, y), (x, y - 22), role="output", width=2)
            y -= 22
            canvas.box(x, y - height / 2, 104, height, role=role)
            canvas.text(x, y - height + 18 + 10 * lines, label, role)
            if mask:
                canvas.matrix(x, y - 52, mask, "weights", 44 / tokens)
            y -= height
        if top:
            canvas.arrow((x, y), (x, y - 30), role="output", width=2)
            canvas.text(x, y - 45, top, "output", bold=True)
        else:
            way = ((x, y), (x, y - 26), (x + 61, y - 26), (x + 61, y + 18), (x + 69, y + 18))
            canvas.arrow(*way, role="keys", width=2)
    for start, end, label in (
        (12, 230, "translator"),
        *((258, 354, "reader"), (374, 470, "writer")),
    ):
        canvas.bracket(start, end, 416)
        canvas.text((start + end) / 2, 438, label, bold=True, size=18)
    canvas.matrix(92, 464, [[1.0]], "weights", 12)
    canvas.text(106, 470, "may attend; all blocks repeat N times", anchor="start")
    return canvas.drawing()
