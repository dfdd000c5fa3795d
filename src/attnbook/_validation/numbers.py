"""Numbers that say how many, how wide or how much: what is let in, as Python's own numbers."""

import math
import operator
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np


def real(number: Any) -> float | None:
    """A real number as Python's own; None for what is none: None, a string, True, an array."""
    if isinstance(number, str | bytes | bool | np.bool_) or np.ndim(number) > 0:
        return None
    try:
        return float(number)
    except (TypeError, ValueError):
        return None


def is_such(number: Any, condition: Callable[[float], bool]) -> bool:
    """Whether it is a real number, of which a condition holds."""
    found = real(number)
    return found is not None and condition(found)


def is_positive(number: Any) -> bool:
    """Whether it is a finite number above 0."""
    return is_such(number, lambda x: 0 < x < math.inf)


def integer(**argument: Any) -> int:
    """A Python integer of either sign."""
    ((name, number),) = argument.items()
    try:
        whole = operator.index(number)
    except TypeError:
        whole = None
    if whole is None or isinstance(number, bool):
        raise ValueError(f"{name}: got {number!r}, expected an integer")
    return whole


def nonnegative_int(*, least: int = 0, **argument: Any) -> int:
    """A number of things, as a Python integer that is not below the least."""
    ((name, number),) = argument.items()
    try:
        whole = operator.index(number)
    except TypeError:
        whole = None
    if whole is None or whole < least or isinstance(number, bool):
        raise ValueError(f"{name}: got {number!r}, expected an integer, {least} or more")
    return whole


def positive_int(**argument: Any) -> int:
    """A width or a number of things, as a Python integer of at least 1."""
    return nonnegative_int(least=1, **argument)


def table(**argument: Any) -> np.ndarray:
    """Numbers in lists, or an array of NumPy's, as NumPy's."""
    ((name, given),) = argument.items()
    try:
        return np.asarray(given)
    except ValueError:
        raise ValueError(
            f"{name}: got rows of different lengths, expected as many in each"
        ) from None


def column(**argument: Any) -> np.ndarray:
    """Finite real numbers, of shape (n,) or (n, 1) with n of 1 or more, as floats of shape (n,)."""
    ((name, _),) = argument.items()
    array = table(**argument)
    if array.ndim not in (1, 2) or array.size != len(array) or array.size == 0:
        raise ValueError(f"{name}: got shape {array.shape}, expected (n,) or (n, 1)")
    return finite(**argument).ravel()


def finite(**argument: Any) -> np.ndarray:
    """Finite real numbers as a NumPy array of floats."""
    ((name, _),) = argument.items()
    array = table(**argument)
    if array.dtype.kind not in "iuf" or not np.all(np.isfinite(array)):
        raise ValueError(f"{name}: got dtype {array.dtype}, expected finite real numbers")
    return array.astype(float)


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


def is_real(number: Any) -> bool:
    """Whether it is a real number, no truth value; NaN and infinity are."""
    return isinstance(number, Real) and not isinstance(number, bool)


def positive(**argument: Any) -> float:
    """A finite number above 0, as Python's own: NumPy's would make float32 wider."""
    ((name, number),) = argument.items()
    if not is_positive(number):
        raise ValueError(f"{name}: got {number!r}, expected a number above 0")
    return float(number)


def nonnegative(**argument: Any) -> float:
    """A finite number of 0 or more."""
    ((name, number),) = argument.items()
    if not is_such(number, lambda x: 0 <= x < math.inf):
        raise ValueError(f"{name}: got {number!r}, expected 0 or more")
    return float(number)


def positive_or_none(**argument: float | None) -> float | None:
    """A finite number above 0, or None for no limit."""
    ((name, number),) = argument.items()
    if number is not None and not is_positive(number):
        raise ValueError(f"{name}: got {number!r}, expected a number above 0, or None")
    return number


def int_between(least: int, most: int, **argument: Any) -> int:
    """A number of things, as a Python integer between two bounds."""
    ((name, number),) = argument.items()
    expected = f"{name}: got {number!r}, expected {least} to {most}"
    try:
        whole = nonnegative_int(least=least, **argument)
    except ValueError:
        raise ValueError(expected) from None
    if whole > most:
        raise ValueError(expected)
    return whole


def even(**argument: Any) -> int:
    """A width that two halves share: an even integer of at least 2."""
    ((name, number),) = argument.items()
    if positive_int(**argument) % 2:
        raise ValueError(f"{name}: got {number}, expected an even number, half for each direction")
    return int(number)


def even_width(**argument: Any) -> int:
    """A width of pairs, as an even Python integer of at least 2."""
    ((name, number),) = argument.items()
    if (is_real(number) and number == 0) or positive_int(**argument) % 2:
        raise ValueError(f"{name}: got a width of {number}, expected an even one, 2 or more")
    return int(number)


def divided(width: int, **argument: Any) -> int:
    """The width of one of so many parts of a width."""
    ((name, number),) = argument.items()
    if width % positive_int(**argument):
        raise ValueError(f"{name}: got {number}, expected a divisor of {width}, the width")
    return width // int(number)


def amounts(*, least: float = 0, whole: bool = False, **argument: Any) -> Any:
    """A number, or an array of NumPy's, none below the least: Python's own, or 64 bits wide."""
    ((name, given),) = argument.items()
    if not _are_amounts(given, least, whole):
        what = "integers" if whole else "numbers"
        raise ValueError(f"{name}: got {given!r}, expected {what}, {least} or more")
    array = np.asarray(given)
    wide = array.astype(float if array.dtype.kind == "f" else np.int64)
    return wide if wide.ndim else wide.item()


def _are_amounts(given: Any, least: float, whole: bool = False) -> bool:
    """Whether it is a finite number or a NumPy array of such, none below the least."""
    if not is_real(given) and not isinstance(given, np.ndarray):
        return False
    array = np.asarray(given)
    if array.dtype.kind not in ("iu" if whole else "iuf"):
        return False
    return bool(np.all(np.isfinite(array) & (array >= least)))


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


def amounts_above_zero(**argument: Any) -> Any:
    """A number above 0, or a NumPy array of such."""
    ((name, given),) = argument.items()
    if not _are_amounts(given, 0) or np.any(np.asarray(given) == 0):
        raise ValueError(f"{name}: got {given!r}, expected numbers above 0")
    return amounts(**argument)


def probability(**argument: float) -> float:
    """A share of at least 0 and below 1."""
    ((name, number),) = argument.items()
    if not is_such(number, lambda x: 0 <= x < 1):
        raise ValueError(f"{name}: got {number!r}, expected a share from 0 to below 1")
    return float(number)


def fraction(**argument: Any) -> float:
    """A share of which neither it nor the rest is nothing."""
    ((name, number),) = argument.items()
    found = real(number)
    if found is None or not 0 < found < 1:
        raise ValueError(f"{name}: got {number!r}, expected a share above 0 and below 1")
    return found


def bandwidth(h: Any) -> np.ndarray:
    """One bandwidth, or one per coordinate: a NumPy array of shape () or (d,)."""
    return _all_positive("bandwidth", h, (0, 1), "a number above 0, or one per coordinate")


def bandwidths(h: Any) -> np.ndarray:
    """The bandwidths of several heads, of shape (heads,) or (heads, d)."""
    expected = "numbers above 0, one per head, or one per head and coordinate"
    return _all_positive("bandwidths", h, (1, 2), expected)


def _all_positive(name: str, h: Any, axes: tuple[int, int], expected: str) -> np.ndarray:
    array = float_array(h)
    if array is None or array.ndim not in axes or array.size == 0 or not np.all(_positive(array)):
        raise ValueError(f"{name}: got {h!r}, expected {expected}")
    return array


def _positive(array: np.ndarray) -> np.ndarray:
    return (array > 0) & np.isfinite(array)


def metric(matrix: Any) -> np.ndarray:
    """A matrix of shape (r, d)."""
    array = float_array(matrix)
    if array is None or array.ndim != 2 or array.size == 0 or not np.all(np.isfinite(array)):
        raise ValueError(f"metric: got {matrix!r}, expected a matrix (r, d) of finite numbers")
    return array


def float_array(given: Any) -> np.ndarray | None:
    """Given numbers as a float64 NumPy array; None for what is none."""
    try:
        array = np.asarray(given)
    except (TypeError, ValueError):
        return None
    return array.astype(float) if array.dtype.kind in "iuf" else None
