"""The ladder: what each rung asks, what answers, and what has changed against the rung before."""

from dataclasses import dataclass, fields

from attnbook._validation import numbers
from attnbook.drawings.canvas import Canvas, Drawing


@dataclass(frozen=True)
class Rung:
    """What a chapter's weighted average consists of, one entry per slot."""

    name: str
    queries: str
    keys: str
    values: str
    score: str
    hidden: str
    learned: str


SLOTS = tuple(field.name for field in fields(Rung))[1:]
DOT = "q · k / √d"
RUNGS = (
    Rung(
        "kernel regression",
        queries="new inputs",
        keys="known inputs",
        values="known outputs",
        score="−‖q − k‖² / 2h²",
        hidden="nothing",
        learned="nothing",
    ),
    Rung(
        "a learned kernel",
        queries="the known inputs",
        keys="known inputs",
        values="known outputs",
        score="−‖q − k‖² / 2h²",
        hidden="each point from itself",
        learned="h",
    ),
    Rung(
        "queries, keys, values",
        queries="one parameter",
        keys="W_k x_j",
        values="a network of x_j",
        score=DOT,
        hidden="padding",
        learned="all of these",
    ),
    Rung(
        "aligning sequences",
        queries="a decoder's state",
        keys="an encoder's states",
        values="the same states",
        score="a · tanh(W_q q + W_k k)",
        hidden="padding",
        learned="all of these",
    ),
    Rung(
        "self-attention",
        queries="W_q x_i",
        keys="W_k x_j",
        values="W_v x_j",
        score=DOT,
        hidden="what comes later",
        learned="W_q, W_k, W_v",
    ),
    Rung(
        "many heads",
        queries="W_q x_i, one per head",
        keys="W_k x_j, one per head",
        values="W_v x_j, one per head",
        score=DOT,
        hidden="what comes later",
        learned="W_q, W_k, W_v per head, W_o",
    ),
    Rung(
        "the block",
        queries="of the normed stream",
        keys="of the normed stream",
        values="of the normed stream",
        score=DOT,
        hidden="what comes later",
        learned="these, norms and an MLP",
    ),
    Rung(
        "three transformers",
        queries="of the normed stream",
        keys="of the stream or a memory",
        values="of the stream or a memory",
        score=DOT,
        hidden="what comes later, padding",
        learned="blocks in a stack",
    ),
    Rung(
        "in-context regression",
        queries="of x",
        keys="of x",
        values="of y",
        score=DOT,
        hidden="later pairs, other queries",
        learned="all, from many functions",
    ),
)
BELL = (0.06, 0.14, 0.36, 0.75, 1, 0.75, 0.36, 0.14, 0.06)
PATTERNS = (BELL,) * 9


def changed(n: int) -> set[str]:
    """The slots of rung n whose entry is not that of the rung before; none of the first."""
    if n == 1:
        return set()
    before, now = RUNGS[n - 2], RUNGS[n - 1]
    return {slot for slot in SLOTS if getattr(before, slot) != getattr(now, slot)}


def rung(n: int) -> Drawing:
    """Rung n of the ladder, from 1 to 9: its slots, what changed highlighted."""
    if numbers.positive_int(n=n) > len(RUNGS):
        raise ValueError(f"n: got {n}, expected a rung from 1 to {len(RUNGS)}")
    this, new = RUNGS[n - 1], changed(n)
    canvas = Canvas("rung", 280, f"Rung {n} of the ladder, {this.name}.")
    for k in range(9):
        y = 250 - 26 * k
        canvas.line((14, y), (54, y), role="weights" if k + 1 == n else "line", width=3)
    canvas.text(90, 24, f"{n}  {this.name}", anchor="start", bold=True, size=19)
    canvas.dots([(320 + 17 * k, 24) for k in range(9)], PATTERNS[n - 1], "output", radius=7)
    for k, slot in enumerate(SLOTS):
        y = 70 + 36 * k
        role = "weights" if slot in new else "ink"
        canvas.text(90, y, slot, anchor="start")
        canvas.text(180, y, getattr(this, slot), role, anchor="start", bold=slot in new)
    return canvas.drawing()


def ladder() -> Drawing:
    """All nine rungs, the first at the foot."""
    canvas = Canvas("ladder", 520, "The ladder from kernel regression to the transformer.")
    for k, this in enumerate(RUNGS):
        y = 480 - 54 * k
        canvas.dots([(20 + 17 * j, y) for j in range(9)], PATTERNS[k], "output", radius=7)
        canvas.text(190, y, f"{k + 1}  {this.name}", anchor="start", bold=True)
    return canvas.drawing()
