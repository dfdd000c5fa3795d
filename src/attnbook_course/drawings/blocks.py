"""Drawings of the block, its stream upright, and of what is built of it."""

from attnbook_course.drawings.canvas import WIDE, Canvas, Drawing

PAINTS = {
    "norm": "line",
    "MLP": "values",
    "attention": "weights",
    "causal\nattention": "weights",
    "cross-\nattention": "weights",
}
Masks = list[tuple[str, list[list[float]]]]  # of parts that attend
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
    """Three transformers of the same boxes, each part in its stream, each attention with its mask.

    Args:
        tokens: rows and columns of each mask.
    """
    canvas = Canvas(
        "three_transformers",
        644,
        "Four streams run upwards, from an embedding and positions to a norm and a readout; each "
        "part reads its stream through a norm and adds to it. A translator has an encoder, in "
        "which all see all, and a decoder with a causal mask and cross-attention to the encoder's "
        "output; a reader of images is an encoder alone, a writer a decoder alone.",
    )
    full = [[1.0] * tokens] * tokens
    causal = [[float(j <= i) for j in range(tokens)] for i in range(tokens)]
    own, ahead, cross = ("attention", full), ("attention", causal), ("cross-\nattention", full)
    tops = [
        _machine(canvas, *machine)
        for machine in (
            (11, 63, "source", "embedding", [own], ""),
            (228, 176, "target", "embedding", [ahead, cross], "next token"),
            (254, 306, "image", "patches", [own], "label"),
            (372, 424, "text", "embedding", [ahead], "next token"),
        )
    ]
    memory, (beside, height) = tops[0][0], tops[1][1]
    across = (11, memory - 13), (119, memory - 13)
    canvas.arrow((11, memory), *across, (119, height), (beside, height), role="keys", width=2)
    for start, end, label in ((6, 234, "translator"), (249, 362, "reader"), (367, 478, "writer")):
        canvas.bracket(start, end, 590)
        canvas.text((start + end) / 2, 609, label, bold=True, size=18)
    canvas.matrix(10, 628, [[1.0]], "weights", 12)
    canvas.text(28, 634, "may attend; from branch to sum, all repeats N times", anchor="start")
    return canvas.drawing()


def _machine(
    canvas: Canvas, stream: float, x: float, bottom: str, table: str, masks: Masks, top: str
) -> tuple[float, tuple[float, float]]:
    """A column around x: its top, and the outer end of its last attention's box."""
    side = 1 if x > stream else -1
    middle, beside, y = stream + 52 * side, (0.0, 0.0), 556.0
    canvas.text(middle, 572, bottom)
    canvas.box(middle, y - 22, 104, 44, f"{table}\n+ positions", "output")
    y -= 44
    for label, mask in (*masks, ("MLP", None)):
        h = 66 + 17 * label.count("\n") if mask else 28
        start, y = y, y - 10
        center = x + 8 * side
        canvas.arrow((stream, y), (center, y), (center, y - 16))
        canvas.box(center, y - 27, 88, 22, "norm", radius=4)
        y -= 38
        role = "weights" if mask else "values"
        canvas.box(center, y - h / 2, 88, h, role=role)
        canvas.text(center, y - h + 14 + 9 * label.count("\n"), label, role)
        if mask:
            canvas.matrix(center, y - 40, mask, "weights", 34 / len(mask))
            beside = center + 44 * side, y - h / 2
        y -= h
        canvas.arrow((center, y), (center, y - 14), (stream + 11 * side, y - 14))
        canvas.plus(stream, y - 14, r=9)
        _stream(canvas, stream, start, y - 5)
        y -= 23
    _stream(canvas, stream, y, y - 12, tip=True)
    canvas.box(middle, y - 23, 104, 22, "norm", radius=4)
    y -= 34
    if top:
        _stream(canvas, stream, y, y - 14, tip=True)
        canvas.box(middle, y - 27, 104, 26, "readout", "output")
        y -= 40
        canvas.arrow((stream, y), (stream, y - 16), role="output", width=3)
        canvas.text(middle, y - 27, top, "output", bold=True)
    return y, beside
