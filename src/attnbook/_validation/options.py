"""What says how: flags, names of a choice, functions."""

import os
from pathlib import Path
from typing import Any

import numpy as np


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


def one_of(names: tuple[str, ...], **argument: str) -> str:
    """One of some names."""
    ((argument_name, name),) = argument.items()
    if not isinstance(name, str) or name not in names:
        expected = " or ".join([", ".join(map(repr, names[:-1])), repr(names[-1])])
        raise ValueError(f"{argument_name}: got {name!r}, expected {expected}")
    return name


def check_function(example: str, **argument: Any) -> None:
    """Refuse what cannot be called, and name a function that can."""
    for name, value in argument.items():
        if not callable(value):
            raise ValueError(f"{name}: got {value!r}, expected a function such as {example}")


def path(**argument: Any) -> Path:
    """The path of a file or a folder, given as a string or a path."""
    ((name, given),) = argument.items()
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"{name}: got a {type(given).__name__}, expected a path")
    return Path(given)
