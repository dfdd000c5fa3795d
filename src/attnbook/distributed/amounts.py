"""Numbers, or NumPy arrays of numbers, that say how much or how many."""

from typing import Any

import numpy as np


def amounts(*, least: float = 0, whole: bool = False, **given: Any) -> list[Any]:
    """Numbers or NumPy arrays, none below the least: Python's own, or 64 bits wide."""
    found = []
    for name, number in given.items():
        array = np.asarray(number)
        right = array.dtype.kind in ("iu" if whole else "iuf")
        if not right or not np.all(np.isfinite(array) & (array >= least)):
            what = "integers" if whole else "numbers"
            raise ValueError(f"{name}: got {number!r}, expected {what}, {least} or more")
        wide = array.astype(float if array.dtype.kind == "f" else np.int64)
        found.append(wide if wide.ndim else wide.item())
    return found


def counts(**given: Any) -> list[Any]:
    """Integers of 1 or more."""
    return amounts(least=1, whole=True, **given)
