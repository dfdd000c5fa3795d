"""A drawing of published models: the book's boxes, each with its own options."""

from collections.abc import Sequence
from dataclasses import dataclass

from attnbook_course.drawings.canvas import Canvas, Drawing

Lines = Sequence[tuple[str, bool]]  # labels below each other, and which of them tell a difference


@dataclass(frozen=True)
class Published:
    """A published model by the options of the book's blocks; the defaults are DecoderOnly's own.

    Args:
        name: of the model.
        num_layers: how many blocks it has.
        num_heads: of each block.
        num_kv_heads: of keys and values, where there are fewer of them.
        norm: where the norms stand, "pre" or "post".
        activation: of the MLP; "swiglu" has a gate.
        bias: whether projections, MLP and norms have biases.
        rms_norm: whether the norms divide by the root mean square and subtract nothing.
        rotary_base: θ of rotary positions; without it the embedding adds a table of positions.
        tied: whether the readout's matrix is the embedding's.
        causal: whether a token attends to none after it; such a model writes.
        embedding_norm: whether there is a norm before the first block.
    """

    name: str
    num_layers: int
    num_heads: int
    num_kv_heads: int | None = None
    norm: str = "pre"
    activation: str = "gelu"
    bias: bool = True
    rms_norm: bool = False
    rotary_base: float | None = None
    tied: bool = False
    causal: bool = True
    embedding_norm: bool = False


GPT2 = Published("GPT-2", 12, 12, activation="gelu_tanh", tied=True)
SMOLLM2 = Published(
    "SmolLM2", 30, 9, 3, activation="swiglu", bias=False, rms_norm=True, rotary_base=1e5, tied=True
)
BERT = Published("BERT", 12, 12, norm="post", causal=False, embedding_norm=True)
MLPS = {
    "gelu": ("MLP", "GELU"),
    "gelu_tanh": ("MLP", "GELU (tanh)"),
    "swiglu": ("gated MLP", "SwiGLU"),
    "relu": ("MLP", "ReLU"),
}


def published_blocks(models: Sequence[Published] = (GPT2, SMOLLM2, BERT)) -> Drawing:
    """Three models side by side, of the same boxes; what is not DecoderOnly's default is marked.

    Args:
        models: three of them.

    Raises:
        ValueError: another number of models.
    """
    if len(models) != 3:
        raise ValueError(f"models: got {len(models)}, expected three")
    names = ", ".join(model.name for model in models)
    canvas = Canvas(
        "published_blocks",
        796,
        f"The same boxes three times, with the options of {names}. What differs from the defaults "
        "of the book's writer is marked.",
    )
    for k, model in enumerate(models):
        _column(canvas, 160 * k + 86, model)
    canvas.box(28, 776, 20, 20, role="weights", fill=0.13, radius=3)
    canvas.text(48, 776, "not the default of DecoderOnly", "weights", anchor="start", bold=True)
    return canvas.drawing()


def _column(canvas: Canvas, x: float, model: Published) -> None:
    """One model around x, from its name at the bottom up to what it gives."""
    norm = [("RMS norm" if model.rms_norm else "layer norm", model.rms_norm)]
    places = ("no table", True) if model.rotary_base else ("+ places", False)
    biases = "biases" if model.bias else "no biases"
    canvas.text(x, 696, model.name, bold=True, size=18)
    canvas.text(x, 720, f"{model.num_layers} blocks")
    canvas.text(x, 742, biases, "ink" if model.bias else "weights", bold=not model.bias)
    y = _stacked(canvas, x, 678, [("embedding", False), places])
    if model.embedding_norm:
        y = _stacked(canvas, x, _up(canvas, x, y, y - 16), [(norm[0][0], True)])
    y = foot = _up(canvas, x, y, 556)
    mlp = [(label, model.activation != "gelu") for label in MLPS[model.activation]]
    for part, least in ((_attention(model), 112), (mlp, 0)):
        y = _sublayer(canvas, x, y, norm, part, least, model.norm == "post")
    canvas.box(x - 5, (foot + y) / 2, 152, foot - y, dashed=True, fill=0, radius=10)
    if model.norm == "pre":
        y = _stacked(canvas, x, _up(canvas, x, y, y - 20), norm)
    if model.causal:
        tied = [("tied", True)] if model.tied else []
        y = _stacked(canvas, x, _up(canvas, x, y, y - 18), [("readout", False), *tied])
    canvas.arrow((x, y), (x, 30), role="output", width=2)
    canvas.text(x, 14, "next token" if model.causal else "hidden states", "output", bold=True)


def _attention(model: Published) -> Lines:
    """What an attention box says."""
    kind = [("causal", False), ("attention", False)]
    shared = model.num_kv_heads is not None and model.num_kv_heads != model.num_heads
    return [
        *(kind if model.causal else [("attention", False), ("to all tokens", True)]),
        (f"{model.num_heads} heads", False),
        *([(f"{model.num_kv_heads} of k and v", True)] if shared else []),
        *([("rotary q, k", True)] if model.rotary_base else []),
    ]


def _sublayer(
    canvas: Canvas, x: float, y: float, norm: Lines, part: Lines, least: float, post: bool
) -> float:
    """The stream goes by on the left; a part reads it and adds to it: at what height it ends."""
    foot = y
    for lines in (part,) if post else (norm, part):
        y = _stacked(canvas, x, _up(canvas, x, y, y - 14), lines, least if lines is part else 0)
    y = _up(canvas, x, y, y - 13) - 11
    canvas.plus(x, y)
    way = ((x, foot - 7), (x - 69, foot - 7), (x - 69, y), (x - 13, y))
    canvas.arrow(*way, role="output", width=2)
    if post:
        y = _stacked(canvas, x, _up(canvas, x, y - 11, y - 25), [(norm[0][0], True)]) + 11
    return _up(canvas, x, y - 11, y - 21)


def _up(canvas: Canvas, x: float, start: float, end: float) -> float:
    """The stream, or a part's way: upwards from one height to another."""
    canvas.line((x, start), (x, end), role="output", width=2)
    return end


def _stacked(canvas: Canvas, x: float, foot: float, lines: Lines, least: float = 0) -> float:
    """A box of lines on a foot, marked if one tells a difference: the height of its top."""
    h = max(least, 12 + 20 * len(lines))
    differs = any(told for _, told in lines)
    canvas.box(x, foot - h / 2, 124, h, role="weights" if differs else "line", fill=0.13)
    for k, (label, told) in enumerate(lines):
        y = foot - h / 2 + 20 * (k - (len(lines) - 1) / 2)
        canvas.text(x, y, label, "weights" if told else "ink", bold=told)
    return foot - h
