"""Numbers that say how many, how wide or how much: what is let in, as Python's own numbers."""

import math
import operator
from numbers import Real
from typing import Any

import numpy as np


def real(number: Any) -> float:
    """A real number as Python's own; NaN for what is none: None, a string, True, an array."""
    if isinstance(number, str | bytes | bool | np.bool_) or np.ndim(number) > 0:
        return math.nan
    try:
        return float(number)
    except (TypeError, ValueError):
        return math.nan


def flag(**argument: Any) -> bool:
    """True or False, and nothing that merely counts as one of them."""
    ((_, value),) = argument.items()
    flags(**argument)
    return bool(value)


def flags(**arguments: Any) -> None:
    """Check that each is True or False."""
    for name, value in arguments.items():
        if value is not True and value is not False and not isinstance(value, np.bool_):
            got = f"a {type(value).__name__}" if np.ndim(value) else repr(value)
            raise ValueError(f"{name}: got {got}, expected True or False")


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


def count(*, least: int = 0, **argument: Any) -> int:
    """A number of things, as a Python integer that is not below the least."""
    ((name, number),) = argument.items()
    try:
        integer = operator.index(number)
    except TypeError:
        integer = least - 1
    if integer < least or isinstance(number, bool):
        raise ValueError(f"{name}: got {number!r}, expected an integer, {least} or more")
    return integer


def size(**argument: Any) -> int:
    """A width or a number of things, as a Python integer of at least 1."""
    return count(least=1, **argument)


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


def above_0(**argument: Any) -> float:
    """A finite number above 0, as Python's own: NumPy's would widen float32."""
    ((name, number),) = argument.items()
    if not 0 < real(number) < math.inf:
        raise ValueError(f"{name}: got {number!r}, expected a number above 0")
    return float(number)


def from_0(**argument: Any) -> float:
    """A finite number of 0 or more."""
    ((name, number),) = argument.items()
    if not 0 <= real(number) < math.inf:
        raise ValueError(f"{name}: got {number!r}, expected 0 or more")
    return float(number)


def limit(**argument: float | None) -> float | None:
    """A finite number above 0, or None for no limit."""
    ((name, number),) = argument.items()
    if number is not None and not 0 < real(number) < math.inf:
        raise ValueError(f"{name}: got {number!r}, expected a number above 0, or None")
    return number


def within(least: int, most: int, **argument: Any) -> int:
    """A number of things, as a Python integer between two bounds."""
    ((name, number),) = argument.items()
    try:
        whole = count(least=least, **argument)
    except ValueError:
        whole = most + 1
    if whole > most:
        raise ValueError(f"{name}: got {number!r}, expected {least} to {most}")
    return whole


def pairs(**argument: Any) -> int:
    """A width of pairs, as an even Python integer of at least 2."""
    ((name, number),) = argument.items()
    if (is_real(number) and number == 0) or size(**argument) % 2:
        raise ValueError(f"{name}: got a width of {number}, expected an even one, 2 or more")
    return int(number)


def halves(**argument: Any) -> int:
    """A width that two halves share: an even integer of at least 2."""
    ((name, number),) = argument.items()
    if size(**argument) % 2:
        raise ValueError(f"{name}: got {number}, expected an even number, half for each direction")
    return int(number)


def parts(width: int, **argument: Any) -> int:
    """The width of one of so many parts of a width."""
    ((name, number),) = argument.items()
    if width % size(**argument):
        raise ValueError(f"{name}: got {number}, expected a divisor of {width}, the width")
    return width // int(number)


def choice(names: tuple[str, ...], **argument: str) -> str:
    """One of some names."""
    ((argument_name, name),) = argument.items()
    if not isinstance(name, str) or name not in names:
        expected = " or ".join([", ".join(map(repr, names[:-1])), repr(names[-1])])
        raise ValueError(f"{argument_name}: got {name!r}, expected {expected}")
    return name


def share(**argument: float) -> float:
    """A share of at least 0 and below 1."""
    ((name, number),) = argument.items()
    if not 0 <= real(number) < 1:
        raise ValueError(f"{name}: got {number!r}, expected a share from 0 to below 1")
    return float(number)


def part(**argument: Any) -> float:
    """A share of which neither it nor the rest is nothing."""
    ((name, number),) = argument.items()
    if not 0 < real(number) < 1:
        raise ValueError(f"{name}: got {number!r}, expected a share above 0 and below 1")
    return real(number)
