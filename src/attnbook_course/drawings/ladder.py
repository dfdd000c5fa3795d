"""The ladder: what each rung asks, what answers, and what has changed against the rung before."""

from dataclasses import dataclass, field, fields
from math import isnan, nan

from attnbook._validation import positive_int
from attnbook_course.drawings.canvas import WIDE, Canvas, Drawing


@dataclass(frozen=True)
class Rung:
    """What a chapter's weighted average consists of, one entry per slot.

    Args:
        name: of the rung.
        about: the rung in half a line.
        icon: its weights as rows of dots; what is hidden counts below 0, nan is a gap.
    """

    name: str
    about: str
    icon: tuple[tuple[float, ...], ...] = field(repr=False)
    queries: str
    keys: str
    values: str
    score: str
    hidden: str
    learned: str


SLOTS = tuple(field.name for field in fields(Rung))[3:]
DOT = "q · k / √d"
BELL = (0.06, 0.14, 0.36, 0.75, 1, 0.75, 0.36, 0.14, 0.06)
STEP = 50  # from rung to rung of the ladder
IN_CONTEXT = 9  # the rung from which one head leads back to the first
ROW = (0.3, 0.15, 0.9, 0.1, 0.5, -1, -1, -1, -1)
RUNGS = (
    Rung(
        "kernel regression",
        about="weights fall with distance",
        icon=(BELL,),
        queries="new inputs",
        keys="known inputs",
        values="known outputs",
        score="−‖q − k‖² / 2h²",
        hidden="nothing",
        learned="nothing",
    ),
    Rung(
        "a learned kernel",
        about="the data choose the bandwidth",
        icon=((0.02, 0.08, 0.32, 0.8, -1, 0.8, 0.32, 0.08, 0.02),),
        queries="known inputs",
        keys="known inputs",
        values="known outputs",
        score="−‖q − k‖² / 2h²",
        hidden="each point from itself",
        learned="h",
    ),
    Rung(
        "queries, keys, values",
        about="a learned score, not a distance",
        icon=((0.05, 0.2, 0.9, 0.1, 0.45, 0.05, -1, -1, -1),),
        queries="one parameter",
        keys="W_k x_j",
        values="a network of x_j",
        score=DOT,
        hidden="padding",
        learned="all of these",
    ),
    Rung(
        "aligning sequences",
        about="a decoder's state asks the source",
        icon=((0.03, 0.05, 0.12, 1, 0.5, 0.05, 0.03, -1, -1),),
        queries="a decoder's state",
        keys="an encoder's states",
        values="the same states",
        score="a · tanh(W_q q + W_k k)",
        hidden="padding",
        learned="all of these",
    ),
    Rung(
        "self-attention",
        about="every token asks every token",
        icon=(ROW,),
        queries="W_q x_i",
        keys="W_k x_j",
        values="W_v x_j",
        score=DOT,
        hidden="nothing, or the future",
        learned="W_q, W_k, W_v",
    ),
    Rung(
        "many heads",
        about="several averages side by side",
        icon=(ROW, (0.05, 0.05, 0.1, 0.05, 0.9, -1, -1, -1, -1)),
        queries="W_q x_i, one per head",
        keys="W_k x_j, one per head",
        values="W_v x_j, one per head",
        score=DOT,
        hidden="nothing, or the future",
        learned="W_q, W_k, W_v per head, W_o",
    ),
    Rung(
        "the block",
        about="averages with a network between",
        icon=(ROW, (0.05, 0.05, 0.1, 0.05, 0.9, -1, -1, -1, -1)),
        queries="of the normed stream",
        keys="of the normed stream",
        values="of the normed stream",
        score=DOT,
        hidden="nothing, or the future",
        learned="also norms and an MLP",
    ),
    Rung(
        "three transformers",
        about="stacks read, write and classify",
        icon=(
            ROW,
            (0.05, 0.05, 0.1, 0.05, 0.9, -1, -1, -1, -1),
            (0.1, 0.7, 0.2, 0.5, 0.3, -1, -1, -1, -1),
        ),
        queries="of the normed stream",
        keys="of the stream or a memory",
        values="of the stream or a memory",
        score=DOT,
        hidden="the future, or padding",
        learned="a stack of blocks",
    ),
    Rung(
        "in-context regression",
        about="one head, set by hand, is rung 1",
        icon=(BELL,),
        queries="of x",
        keys="of x",
        values="of y",
        score=DOT,
        hidden="later pairs, other queries",
        learned="all, from many functions",
    ),
    Rung(
        "a real model",
        about="trained by others, on text",
        icon=(
            (0.9, 0.08, 0.1, 0.3, 0.2, -1, -1, -1, -1),
            (0.15, 0.05, 0.1, 0.05, 0.9, -1, -1, -1, -1),
            (0.9, 0.2, 0.05, 0.15, 0.1, -1, -1, -1, -1),
        ),
        queries="of the normed stream, turned",
        keys="turned too, one per 3 heads",
        values="not turned, one per 3 heads",
        score=DOT,
        hidden="the future",
        learned="all, by others, from text",
    ),
    Rung(
        "without the softmax",
        about="the weights are k(q, ·) M",
        icon=((0.1, 0.14, 0.25, 0.5, 0.9, -1, -1, -1, -1),),
        queries="features of the stream",
        keys="features of the stream",
        values="of the normed stream",
        score="φ(q) · φ(k)",
        hidden="the future",
        learned="all, also decay and step",
    ),
    Rung(
        "exact and fast",
        about="an average of averages",
        icon=(
            (0.2, 0.5, 0.1, 0.9, 0.3, 0.6, 0.05, 0.3, 0.15),
            (nan, 0.45, nan, nan, 1, nan, nan, 0.28, nan),
        ),
        queries="one, for all parts",
        keys="parts of the sequence",
        values="the parts' averages",
        score="top + log total, of a part",
        hidden="tiles that are empty",
        learned="nothing",
    ),
    Rung(
        "many devices",
        about="the parts are on other machines",
        icon=(
            (0.2, 0.5, 0.1, nan, nan, nan, nan, nan, nan),
            (nan, nan, nan, 0.9, 0.3, 0.6, nan, nan, nan),
            (nan, nan, nan, nan, nan, nan, 0.05, 0.3, 0.15),
        ),
        queries="stay on their device",
        keys="travel round the ring",
        values="travel with the keys",
        score=DOT,
        hidden="blocks of the future",
        learned="nothing",
    ),
)


def changed(n: int) -> set[str]:
    """The slots of rung n whose entry is not that of the rung before; none of the first."""
    if n == 1:
        return set()
    before, now = RUNGS[n - 2], RUNGS[n - 1]
    return {slot for slot in SLOTS if getattr(before, slot) != getattr(now, slot)}


def rung(n: int) -> Drawing:
    """Rung n of the ladder, from 1: its slots, and which of them changed.

    Args:
        n: of the chapter.

    Raises:
        ValueError: a number that is no rung.
    """
    if positive_int(n=n) > len(RUNGS):
        raise ValueError(f"n: got {n}, expected a rung from 1 to {len(RUNGS)}")
    this, new = RUNGS[n - 1], changed(n)
    entries = "; ".join(f"{slot}: {getattr(this, slot)}" for slot in SLOTS)
    canvas = Canvas("rung", 284, f"Rung {n}, {this.name}. {entries}.")
    for x in (12, 52):
        canvas.line((x, 14), (x, 270), role="line", width=2)
    step = min(28, 224 / (len(RUNGS) - 1))
    for k in range(len(RUNGS)):
        here, y = k + 1 == n, 254 - step * k
        canvas.line(
            (12, y),
            (52, y),
            role="weights" if here else "line",
            width=6 if here else 2,
        )
    canvas.text(84, 26, f"{n}{WIDE}{this.name}", anchor="start", bold=True, size=18)
    _icon(canvas, 352, 26, this)
    for k, slot in enumerate(SLOTS):
        y, entry = 80 + 36 * k, getattr(this, slot)
        if slot in new:
            canvas.box(325, y, 298, 30, role="weights", fill=0.13, radius=4, edge=0)
            canvas.line((176, y - 13), (176, y + 13), role="weights", width=4)
        canvas.text(84, y, slot, "keys", anchor="start")
        canvas.text(
            188,
            y,
            entry,
            "ink" if slot in new or n == 1 else "keys",
            anchor="start",
            bold=slot in new,
        )
    return canvas.drawing()


def _icon(canvas: Canvas, x: float, y: float, this: Rung) -> None:
    """A rung's rows of dots, their middle at height y."""
    for row, weights in enumerate(this.icon):
        height = y + 12 * (row - (len(this.icon) - 1) / 2)
        drawn = [(j, w) for j, w in enumerate(weights) if not isnan(w)]
        places = [(x + 14.5 * j, height) for j, _ in drawn]
        canvas.dots(
            places, [w for _, w in drawn], radius=6.8 if len(this.icon) == 1 else 5.5, full=1
        )


def ladder() -> Drawing:
    """All rungs above the plain mean, and the way back from rung 9 to the first."""
    names = "; ".join(f"{k}, {this.name}" for k, this in enumerate(RUNGS, 1))
    height = 77 + STEP * len(RUNGS)
    canvas = Canvas("ladder", height, f"The rungs of the ladder, from the lowest: {names}.")
    mean = Rung("the mean", "every value counts the same", ((0.6,) * 9,), *[""] * len(SLOTS))
    for k, this in enumerate((mean, *RUNGS)):
        y = height - 38 - STEP * k
        _icon(canvas, 12, y, this)
        if k < len(RUNGS):
            canvas.arrow((70, y - 17), (70, y - 29), width=1.2)
        name = f"{k}{WIDE}{this.name}" if k else this.name
        canvas.text(156, y - 10, name, "output" if k else "ink", anchor="start", bold=True, size=18)
        canvas.text(156, y + 12, this.about, "keys", anchor="start")
    back = [height - 38 - STEP * k for k in (IN_CONTEXT, 1)]
    canvas.arrow((432, back[0]), (420, back[1] - 8), role="weights", width=2, bow=24, dashed=True)
    return canvas.drawing()
