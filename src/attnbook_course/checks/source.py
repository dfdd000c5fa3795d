"""What the source of a reader's function says."""

import ast
import inspect
import textwrap

from attnbook_course.checks.remote import Remote
from attnbook_course.checks.verdict import Function

LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS_BY_NAME = {"map", "vectorize", "apply_along_axis", "fromiter"}


def source_of(function: Function) -> str | None:
    """The function's source; None where it cannot be read."""
    try:
        return function.source() if isinstance(function, Remote) else inspect.getsource(function)
    except (OSError, TypeError):
        return None


def has_loop(function: Function) -> bool:
    """Whether its own lines have a loop, a comprehension, or NumPy's loop under another name.

    False where the source cannot be read; a loop in another function is not found.
    """
    try:
        nodes = list(ast.walk(ast.parse(textwrap.dedent(source_of(function) or ""))))
    except SyntaxError:  # a lambda inside a longer line
        return False
    names = {getattr(node, "id", getattr(node, "attr", "")) for node in nodes}
    return any(isinstance(node, LOOPS) for node in nodes) or bool(names & LOOPS_BY_NAME)
