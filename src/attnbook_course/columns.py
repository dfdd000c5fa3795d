"""Columns of numbers: what the figures draw."""

from typing import Any

import numpy as np

from attnbook._validation import finite


def column(**argument: Any) -> np.ndarray:
    """Finite real numbers, of shape (n,) or (n, 1) with n of 1 or more, as floats of shape (n,)."""
    ((name, given),) = argument.items()
    shape = np.shape(given)
    if len(shape) not in (1, 2) or np.size(given) != shape[0] or shape[0] == 0:
        raise ValueError(f"{name}: got shape {shape}, expected (n,) or (n, 1)")
    return finite(**argument).ravel()


def columns(**arguments: Any) -> tuple[np.ndarray, ...]:
    """Columns of one length."""
    found = tuple(column(**{name: given}) for name, given in arguments.items())
    if len({len(array) for array in found}) > 1:
        got = ", ".join(str(len(array)) for array in found)
        raise ValueError(f"{', '.join(arguments)}: got {got} numbers, expected as many in each")
    return found


def pair(**argument: Any) -> tuple[np.ndarray, ...]:
    """A pair (x, y) of columns of one length."""
    ((name, given),) = argument.items()
    if not isinstance(given, list | tuple) or len(given) != 2:
        got = type(given).__name__
        raise ValueError(f"{name}: got a {got}, expected a pair (x, y) of arrays")
    x, y = (column(**{name: array}) for array in given)
    if len(x) != len(y):
        raise ValueError(f"{name}: got {len(x)} x and {len(y)} y, expected as many of both")
    return x, y
