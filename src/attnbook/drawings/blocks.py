"""Drawings of the block, its stream upright, and of what is built of it."""

from itertools import pairwise

from attnbook.drawings.canvas import Canvas, Drawing

ATTENTION, MLP, CROSS = ("attention", "weights"), ("MLP", "values"), ("cross-attention", "weights")
NORM = ("norm", "line")


def _part(
    canvas: Canvas, x: float, y: float, boxes: list[tuple[str, str]], side: float, w: float
) -> float:
    """Leave the stream at height y, pass the boxes upwards, add to the stream; where."""
    end = y - 52 * len(boxes) - 26
    canvas.arrow((x, y), (x + side, y), (x + side, y - 20))
    for k, (label, role) in enumerate(boxes):
        canvas.box(x + side, y - 38 - 52 * k, w, 34, label, role)
        if k:
            canvas.arrow((x + side, y - 3 - 52 * k), (x + side, y - 20 - 52 * k))
    top = y - 38 - 52 * (len(boxes) - 1) - 17
    canvas.arrow((x + side, top), (x + side, end), (x + 13, end))
    canvas.plus(x, end)
    return end


def _stream(canvas: Canvas, x: float, *ends: float) -> None:
    for start, end in pairwise(ends):
        canvas.line((x, start), (x, end), width=3)


def block() -> Drawing:
    """The encoder's block: attention and an MLP read the stream and add to it."""
    canvas = Canvas("block", 410, "A stream runs upwards; attention and an MLP add to it.")
    x = 130
    first = _part(canvas, x, 350, [NORM, ATTENTION], 170, 130)
    second = _part(canvas, x, first - 30, [NORM, MLP], 170, 130)
    _stream(canvas, x, 384, first + 11)
    _stream(canvas, x, first - 11, second + 11)
    canvas.arrow((x, second - 11), (x, 24), width=3)
    canvas.text(x, 398, "X", bold=True)
    canvas.text(x, 12, "Z", bold=True)
    return canvas.drawing()


def pre_and_post_norm() -> Drawing:
    """Pre-norm and post-norm side by side."""
    canvas = Canvas("pre_and_post_norm", 470, "Left pre-norm, right post-norm.")
    for x, name in ((60, "pre-norm"), (300, "post-norm")):
        canvas.text(x + 60, 456, name, bold=True)
        y = 400.0
        for part in (ATTENTION, MLP):
            if name == "pre-norm":
                end = _part(canvas, x, y, [NORM, part], 105, 110)
                _stream(canvas, x, y + 26, end + 11)
                y = end - 30
            else:
                end = _part(canvas, x, y, [part], 105, 110)
                _stream(canvas, x, y + 26, end + 11)
                canvas.box(x, end - 40, 70, 34, *NORM)
                _stream(canvas, x, end - 11, end - 23)
                y = end - 84
        canvas.arrow((x, y + 30), (x, 20), width=3)
    return canvas.drawing()


def decoder_block() -> Drawing:
    """The decoder's block: attention to what is written, to the memory, and an MLP."""
    canvas = Canvas("decoder_block", 580, "A decoder's block with its memory.")
    x, y = 70.0, 520.0
    for part in (("attention", "weights"), CROSS, MLP):
        end = _part(canvas, x, y, [NORM, part], 160, 150)
        _stream(canvas, x, y + 26, end + 11)
        if part is CROSS:
            canvas.box(410, y - 90, 110, 50, "memory M", "keys")
            canvas.arrow((355, y - 90), (306, y - 90), role="keys")
        y = end - 30
    canvas.arrow((x, y + 30), (x, 20), width=3)
    canvas.text(x, 560, "X", bold=True)
    return canvas.drawing()


def three_transformers(tokens: int = 4) -> Drawing:
    """Three transformers of the same boxes, each with its masks."""
    canvas = Canvas("three_transformers", 400, "Encoder only, decoder only, both.")
    causal = [[float(j <= i) for j in range(tokens)] for i in range(tokens)]
    full = [[1.0] * tokens] * tokens
    for x, name, mask in ((60, "encoder", full), (180, "decoder", causal)):
        canvas.text(x, 384, f"{name} only", bold=True)
        canvas.box(x, 200, 104, 34, *ATTENTION)
        canvas.box(x, 150, 104, 34, *MLP)
        canvas.matrix(x - 28, 290, mask, "weights", 14)
    canvas.text(360, 384, "encoder and decoder", bold=True)
    for x, mask in ((300, full), (420, causal)):
        canvas.box(x, 200, 104, 34, *ATTENTION)
        canvas.box(x, 100, 104, 34, *MLP)
        canvas.matrix(x - 28, 290, mask, "weights", 14)
    canvas.box(420, 150, 104, 34, "cross", "weights")
    return canvas.drawing()
