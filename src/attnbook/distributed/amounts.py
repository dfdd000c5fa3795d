"""Numbers, or NumPy arrays of numbers, that say how much or how many."""

from typing import Any

import numpy as np


def amounts(*, least: float = 0, whole: bool = False, **argument: Any) -> Any:
    """A number, or an array of NumPy's, none below the least: Python's own, or 64 bits wide."""
    ((name, given),) = argument.items()
    array = np.asarray(given)
    right = array.dtype.kind in ("iu" if whole else "iuf")
    if not right or not np.all(np.isfinite(array) & (array >= least)):
        what = "integers" if whole else "numbers"
        raise ValueError(f"{name}: got {given!r}, expected {what}, {least} or more")
    wide = array.astype(float if array.dtype.kind == "f" else np.int64)
    return wide if wide.ndim else wide.item()


def amounts_above_zero(**argument: Any) -> Any:
    """A number above 0, or a NumPy array of such."""
    ((name, given),) = argument.items()
    array = np.asarray(given)
    if array.dtype.kind not in "iuf" or not np.all(np.isfinite(array) & (array > 0)):
        raise ValueError(f"{name}: got {given!r}, expected numbers above 0")
    return amounts(**argument)


def check_together(**amounts: Any) -> None:
    """Check that numbers and arrays of numbers broadcast against each other."""
    shapes = [np.shape(given) for given in amounts.values()]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        got = ", ".join(map(str, shapes))
        raise ValueError(
            f"{', '.join(amounts)}: got shapes {got}, expected shapes that broadcast"
        ) from None
