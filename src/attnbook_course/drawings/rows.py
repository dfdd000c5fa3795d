"""What a drawing in steps describes: a weighted average, and the forms of its row of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attnbook.attention import scores, softmax

Array = Any  # NumPy's; what the package's functions give names no library
POINTS_TO = (1, 2, 0, 4, 5, 3)  # of six names in two circles, as chapter 2 has eight of them


@dataclass(frozen=True)
class Step:
    """One form of the row of numbers.

    Args:
        name: of what the numbers are.
        about: how they come about, or what is new.
        kind: bars from zero, dots by area, the sum, or words alone.
        rows: a number for each key, nan where a key is hidden; a row for each head.
        role: the colour.
        decimals: of the numbers.
        outputs: of the sum, one for each row or group; or the words.
        new: whether the chapter before had something else.
        full: the weight of the largest dot.
    """

    name: str
    about: str
    kind: str
    rows: tuple[tuple[float, ...], ...] = ()
    role: str = "weights"
    decimals: int = 2
    outputs: tuple[str, ...] = ()
    new: bool = False
    full: float = 1


@dataclass(frozen=True)
class Average:
    """A weighted average: what asks, what is asked, and the steps to the answer.

    Args:
        query: what asks.
        keys: what is asked.
        labels: a name for each key.
        values: what each key gives, as words, a row for each head.
        steps: the forms of the row of numbers.
        places: where the keys lie on a line; None where they lie on none.
        at: where the query lies.
        own: the key that asks itself.
        new: "query" or "keys", if it is not as in the chapter before.
        numeric: whether values are numbers.
        in_parts: whether the first half of the keys is summed up apart from the second.
    """

    query: str
    keys: str
    labels: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    steps: tuple[Step, ...]
    places: tuple[float, ...] | None = None
    at: float | None = None
    own: int | None = None
    new: frozenset[str] = frozenset()
    numeric: bool = True
    in_parts: bool = False


def row_of(array: Array) -> tuple[float, ...]:
    """The numbers of an array, one after the other."""
    return tuple(float(one) for one in np.asarray(array).ravel())


def mixture(weights: Sequence[float], names: Sequence[str]) -> str:
    """An average of vectors in words: the two largest shares."""
    order = sorted(range(len(names)), key=lambda k: -np.nan_to_num(weights[k]))
    shown = [f"{weights[k]:.2f} {names[k]}" for k in order[:2]]
    return " + ".join((*shown, "…"))


def softmax_steps(
    table: Array,
    outputs: Sequence[str],
    about: str,
    *,
    of: str,
    new: Sequence[str] = (),
    mask: Array | None = None,
    weights_are: str = "",
    exponentials: bool = True,
) -> tuple[Step, ...]:
    """Scores, their exponentials, the weights and the sum, for the scores of each row.

    Args:
        table: scores, a row for each head; rounded to what is shown, so that a reader who
            checks the numbers finds them.
        outputs: of each row.
        about: how a score is computed.
        of: what is averaged.
        new: the names of steps that are new.
        mask: True where a key takes part.
        weights_are: more about the weights.
        exponentials: whether the softmax is shown in two steps.
    """
    table = np.round(table, Step.decimals)
    seen = np.ones(table.shape, bool) if mask is None else np.broadcast_to(mask, table.shape)
    hidden = np.where(seen, table, np.nan)
    powers = np.where(seen, np.exp(table), np.nan)
    weights: Any = softmax(table, None if mask is None else seen)
    shares = np.where(seen, weights, np.nan)
    sums = np.nansum(powers, axis=-1)
    totals = " and ".join(f"{one:.{2 if one < 1 else 1 if one < 100 else 0}f}" for one in sums)
    whole = max(0.6, float(np.nanmax(shares)))
    largest = np.nanmax(powers)
    decimals = 0 if largest >= 100 else 1 if largest >= 10 else 2 if largest >= 1 else 3
    bars, raised, dots = (tuple(map(row_of, one)) for one in (hidden, powers, shares))
    above, divided = "e^{score}, above zero", weights_are or f"each divided by the sum, {totals}"
    steps = [
        Step("scores", about, "bars", bars, "ink"),
        Step("exponentials", above, "bars", raised, decimals=decimals),
        Step("weights", divided, "dots", dots, full=whole),
        Step("weighted sum", f"of {of}", "sum", dots, outputs=tuple(outputs)),
    ]
    kept = [step for step in steps if exponentials or step.name != "exponentials"]
    return tuple(replace(step, new=step.name in new) for step in kept)


def two_matrices() -> tuple[Array, Array]:
    """Queries and keys of six names, learned so that each finds the one that it points to (6, 3).

    Gradient descent on the cross-entropy of the weights, from small random numbers.
    """
    q, k = np.random.default_rng(0).normal(size=(2, len(POINTS_TO), 3)) / 2
    wanted = np.eye(len(POINTS_TO))[list(POINTS_TO)]
    others = ~np.eye(len(POINTS_TO), dtype=bool)
    for _ in range(40):
        slope = softmax(scores.scaled_dot(q, k), others) - wanted
        q, k = q - slope @ k / math.sqrt(12), k - slope.T @ q / math.sqrt(12)
    return q, k
