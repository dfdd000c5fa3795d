"""A rung of the ladder: what asks, what answers, and what has changed against the rung before."""

import tomllib
from dataclasses import dataclass, field, fields
from math import isnan
from pathlib import Path

from attnbook_course.drawings.canvas import WIDE, Canvas, Drawing


@dataclass(frozen=True)
class Rung:
    """What a chapter's weighted average consists of, one entry per slot.

    Args:
        name: of the rung.
        icon: its weights as rows of dots; what is hidden counts below 0, nan is a gap.
    """

    name: str
    icon: list[list[float]] = field(repr=False)
    queries: str
    keys: str
    values: str
    score: str
    hidden: str
    learned: str


SLOTS = tuple(field.name for field in fields(Rung))[2:]
FILE = Path(__file__).with_name("ladder.toml")
RUNGS = [Rung(**entry) for entry in tomllib.loads(FILE.read_text(encoding="utf-8"))["rung"]]


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
    if n not in range(1, len(RUNGS) + 1):
        raise ValueError(f"n: got {n!r}, expected a rung from 1 to {len(RUNGS)}")
    this, new = RUNGS[n - 1], changed(n)
    entries = "; ".join(f"{slot}: {getattr(this, slot)}" for slot in SLOTS)
    canvas = Canvas("rung", 284, f"Rung {n}, {this.name}. {entries}.")
    for x in (12, 52):
        canvas.line((x, 14), (x, 270), width=2)
    step = 224 / (len(RUNGS) - 1)
    for k in range(len(RUNGS)):
        y, role, width = 254 - step * k, "line", 2
        if k + 1 == n:
            role, width = "weights", 6
        canvas.line((12, y), (52, y), role=role, width=width)
    canvas.text(84, 26, f"{n}{WIDE}{this.name}", anchor="start", bold=True, size=18)
    for row, weights in enumerate(this.icon):
        y = 26 + 12 * (row - (len(this.icon) - 1) / 2)
        seen = {352 + 14.5 * j: weight for j, weight in enumerate(weights) if not isnan(weight)}
        radius = 6.8 if len(this.icon) == 1 else 5.5
        canvas.dots([(x, y) for x in seen], [*seen.values()], radius=radius)
    for k, slot in enumerate(SLOTS):
        y, entry, is_new = 80 + 36 * k, getattr(this, slot), slot in new
        if is_new:
            canvas.stripe(176, y, 298, 30)
        canvas.text(84, y, slot, "keys", anchor="start")
        role = "ink" if is_new or n == 1 else "keys"
        canvas.text(188, y, entry, role, anchor="start", bold=is_new)
    return canvas.drawing()
