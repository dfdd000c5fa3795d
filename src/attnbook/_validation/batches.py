"""What a training loop accepts: batches, learning rates, a gate."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from attnbook._validation.numbers import float_array, is_such, positive_int


def check_rates(learning_rate: Any) -> np.ndarray:
    """Learning rates as an array: one, or one per step."""
    given = float_array(learning_rate)
    rates = np.empty(0) if given is None else np.atleast_1d(given)
    if rates.ndim != 1 or rates.size == 0 or not np.all((rates >= 0) & np.isfinite(rates)):
        raise ValueError(f"learning_rate: got {learning_rate}, expected numbers, 0 or more")
    return rates


def check_gate(gate: Any) -> None:
    """Check a pair of a number of steps and a loss, or None."""
    if gate is None:
        return
    expected = "expected a number of steps, 1 or more, and a loss"
    try:
        steps, least = gate
        positive_int(gate=steps)
    except (TypeError, ValueError):
        raise ValueError(f"gate: got {gate!r}, {expected}") from None
    if not is_such(least, math.isfinite):
        raise ValueError(f"gate: got {gate!r}, {expected}")


def check_run(batches: Any, name: Any) -> None:
    """Check that there is something to iterate over, and a name for it."""
    if not isinstance(name, str):
        raise TypeError(f"name: got {name!r}, expected a string")
    if not isinstance(batches, Iterable):
        raise TypeError(f"batches: got {batches!r}, expected tuples of arrays")


def check_batch(batch: Any) -> None:
    """Check that a batch is a tuple of arrays."""
    if not isinstance(batch, list | tuple) or not all(map(is_array_api_obj, batch)):
        inside = (
            ", ".join(type(a).__name__ for a in batch) if isinstance(batch, list | tuple) else ""
        )
        got = f"{type(batch).__name__} of {inside}" if inside else type(batch).__name__
        raise TypeError(f"batches: got a batch that is a {got}, expected a tuple of arrays")


def check_all_used(steps: int, rates: np.ndarray, gate: tuple[int, float] | None) -> None:
    """Check that a run of so many steps uses every rate, and judges its gate."""
    if len(rates) > 1 and len(rates) != steps:
        got = f"{len(rates)} numbers, expected one a batch"
        raise ValueError(f"learning_rate: got {got}, of which there are {steps}")
    if gate is not None and gate[0] > steps:
        raise ValueError(f"gate: got {gate[0]} steps, expected at most {steps}, those of the run")
