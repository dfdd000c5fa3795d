"""Functions whose text is run elsewhere."""

import inspect
import textwrap
from collections.abc import Callable
from typing import Any


def source_of(function: Callable[..., Any]) -> str:
    """The text of a function that stands alone: made with def, without the names of another.

    Raises:
        TypeError: what is no such function, or one whose text is in no file or cell.
    """
    if not inspect.isfunction(function) or function.__name__ == "<lambda>":
        raise TypeError(f"function: got {function!r}, expected one made with def")
    if outer := ", ".join(function.__code__.co_freevars):
        raise TypeError(
            f"function: got {function.__name__}, which uses {outer} of the function around it, "
            "expected one that gets what it uses as arguments: workers see its own text alone"
        )
    try:
        return textwrap.dedent(inspect.getsource(function))
    except OSError:
        got = f"function: got {function.__name__}, whose source is in no file or cell"
        raise TypeError(f"{got}, expected one that is") from None
