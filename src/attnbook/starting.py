"""What a layer may be made with: numbers to start from, and sizes."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnbook import arguments


def bandwidth(h: float | Sequence[float]) -> np.ndarray:
    """One bandwidth, or one a coordinate: a NumPy array of shape () or (d,)."""
    return _above_0("bandwidth", h, (0, 1), "a number above 0, or one a coordinate")


def bandwidths(h: Sequence[float] | Sequence[Sequence[float]]) -> np.ndarray:
    """The bandwidths of several heads, of shape (heads,) or (heads, d)."""
    expected = "numbers above 0, one a head, or one a head and coordinate"
    return _above_0("bandwidths", h, (1, 2), expected)


def metric(metric: Sequence[Sequence[float]]) -> np.ndarray:
    """A matrix of shape (r, d)."""
    array = _numbers(metric)
    if array.ndim != 2 or array.size == 0 or not np.all(np.isfinite(array)):
        raise ValueError(f"metric: got {metric!r}, expected a matrix (r, d) of finite numbers")
    return array


def size(**argument: Any) -> int:
    """A width or a number of things, as a Python integer of at least 1."""
    ((name, number),) = argument.items()
    integer = arguments.count(**argument)
    if integer < 1:
        raise ValueError(f"{name}: got {number!r}, expected an integer, 1 or more")
    return integer


def _above_0(name: str, h: Any, axes: tuple[int, int], expected: str) -> np.ndarray:
    array = _numbers(h)
    if array.ndim not in axes or array.size == 0 or not np.all((array > 0) & np.isfinite(array)):
        raise ValueError(f"{name}: got {h!r}, expected {expected}")
    return array


def _numbers(given: Any) -> np.ndarray:
    """Given numbers as a float64 NumPy array; what is none as a NaN."""
    try:
        return np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        return np.asarray(math.nan)
