"""Numbers that say how many, how wide or how much: what is let in, as Python's own numbers."""

import operator
from typing import Any


def count(*, least: int = 0, **argument: Any) -> int:
    """A number of things, as a Python integer that is not below the least."""
    ((name, number),) = argument.items()
    try:
        integer = operator.index(number)
    except TypeError:
        integer = least - 1
    if integer < least:
        raise ValueError(f"{name}: got {number!r}, expected an integer, {least} or more")
    return integer


def size(**argument: Any) -> int:
    """A width or a number of things, as a Python integer of at least 1."""
    return count(least=1, **argument)


def limit(**argument: float | None) -> float | None:
    """A number above 0, or None for no limit."""
    ((name, number),) = argument.items()
    if number is not None and not number > 0:
        raise ValueError(f"{name}: got {number!r}, expected a number above 0, or None")
    return number


def pairs(**argument: Any) -> int:
    """A width of pairs, as an even Python integer of at least 2."""
    ((name, number),) = argument.items()
    if number == 0 or size(**argument) % 2:
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
    if name not in names:
        expected = " or ".join([", ".join(map(repr, names[:-1])), repr(names[-1])])
        raise ValueError(f"{argument_name}: got {name!r}, expected {expected}")
    return name


def share(**argument: float) -> float:
    """A share of at least 0 and below 1."""
    ((name, number),) = argument.items()
    if not 0 <= number < 1:
        raise ValueError(f"{name}: got {number!r}, expected a share from 0 to below 1")
    return float(number)
