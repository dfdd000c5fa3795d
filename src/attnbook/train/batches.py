"""What a training loop accepts: batches, learning rates, a loss."""

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj


def check_rates(learning_rate: Any) -> np.ndarray:
    """Learning rates as an array: one, or one per step."""
    rates = np.atleast_1d(np.asarray(learning_rate))
    right = rates.dtype.kind in "iuf" and rates.ndim == 1 and rates.size > 0
    if not right or not np.all((rates >= 0) & np.isfinite(rates)):
        raise ValueError(f"learning_rate: got {learning_rate}, expected numbers, 0 or more")
    return rates.astype(float)


def check_batch(batch: Any) -> None:
    """Check that a batch is a tuple of arrays."""
    if not isinstance(batch, list | tuple) or not all(map(is_array_api_obj, batch)):
        got = type(batch).__name__
        raise TypeError(f"batches: got a batch that is a {got}, expected a tuple of arrays")


def check_all_used(steps: int, rates: np.ndarray, gate: tuple[int, float] | None) -> None:
    """Check that a run of so many steps uses every rate, and judges its gate."""
    if len(rates) > 1 and len(rates) != steps:
        got = f"{len(rates)} numbers, expected one a batch"
        raise ValueError(f"learning_rate: got {got}, of which there are {steps}")
    if gate is not None and gate[0] > steps:
        raise ValueError(f"gate: got {gate[0]} steps, expected at most {steps}, those of the run")


def check_loss(found: Any) -> Any:
    """Check what a loss gave: one floating number."""
    if not is_array_api_obj(found):
        raise TypeError(f"loss: gave a {type(found).__name__}, expected an array of shape ()")
    xp = array_namespace(found)
    if tuple(found.shape) != () or not xp.isdtype(found.dtype, "real floating"):
        got = f"dtype {found.dtype}, shape {tuple(found.shape)}"
        raise ValueError(f"loss: gave {got}, expected a floating number of shape ()")
    return found
