"""Functions whose text is run elsewhere."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from attnbook._validation import check_function


def source_of(function: Callable[..., Any]) -> str:
    """The text of a function that stands alone: made with def, without the names of another."""
    check_function("def worker(rank, world): ...", function=function)
    if not inspect.isfunction(function):
        raise TypeError(f"function: got {function!r}, expected one made with def")
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise TypeError(
            f"function: got {function.__name__}, whose source is in no file or cell, expected one "
            "that is"
        ) from None
    if not _is_definition(source):
        raise TypeError(f"function: got {function.__name__}, expected one made with def")
    if function.__code__.co_freevars:
        outer = ", ".join(function.__code__.co_freevars)
        raise TypeError(
            f"function: got {function.__name__}, which uses {outer} of the function around it, "
            "expected one that gets what it uses as arguments: workers see its own text alone"
        )
    return source


def _is_definition(source: str) -> bool:
    try:
        return isinstance(ast.parse(source).body[0], ast.FunctionDef)
    except SyntaxError:
        return False
