"""Exercises in which broken code is mended: did the answers change, and in the right line?"""

from __future__ import annotations

import ast
import linecache
import textwrap
from collections import Counter
from collections.abc import Callable
from typing import Any

from attnbook_course.checks.source import source_of
from attnbook_course.checks.verdict import Function, NotYet, Wrong


def define(code: str, name: str, known: dict[str, Any] | None = None) -> Function:
    """The function of this name from the code that defines it, which keeps its source."""
    filename = f"<{name} {abs(hash(code))}>"
    linecache.cache[filename] = (len(code), None, code.splitlines(keepends=True), filename)
    names = {} if known is None else known
    exec(compile(code, filename, "exec"), names)
    function: Function = names[name]
    return function


def repaired(
    function: Function, broken: str, *, fault: str, test: Callable[[Function], str]
) -> str:
    """The test's praise if the function is right and its faulty line was mended.

    Args:
        function: the reader's.
        broken: the code of the exercise's stub, without the line that calls the check.
        fault: its faulty line, without the indentation.
        test: gives praise for right answers, raises Wrong for wrong ones.

    Raises:
        NotYet: the code is as it was.
        Wrong: the answers are wrong, or right although the faulty line still stands.
    """
    before, after = _lines(broken), _lines_of(function)
    (faulty,) = _lines(fault)
    if faulty not in before:
        raise ValueError(f"fault: got {fault!r}, expected a line of {sorted(before)}")
    if after == before:
        raise NotYet("nothing has changed yet. Find the faulty line, mend it and run the cell.")
    stands = after is not None and after[faulty] >= before[faulty]
    try:
        praise = test(function)
    except Wrong as wrong:
        if after is None:
            raise
        if stands:
            raise wrong.after("the fault is in another line than you changed.") from None
        raise wrong.after("that is the faulty line, but it is not right yet.") from None
    if stands:
        cured = "the answers are right, but the faulty line still stands"
        raise Wrong(
            f"{cured}:", "you make good elsewhere what it does wrong. Mend the line itself."
        )
    others = before - after - Counter([faulty]) if after is not None else Counter()
    also = f" (You also changed “{next(iter(others))}”, which was right.)" if others else ""
    return f"you found the line. {_begun(praise)}{also}"


def _begun(text: object) -> str:
    """A text as the beginning of a sentence."""
    words = str(text)
    return words[:1].upper() + words[1:]


def _lines(code: str) -> Counter[str]:
    """The lines of the code, without comments, docstrings and layout."""
    tree = ast.parse(textwrap.dedent(code))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return Counter(line.strip() for line in ast.unparse(tree).splitlines() if line.strip())


def _lines_of(function: Function) -> Counter[str] | None:
    """Those of a function; None where its source cannot be read."""
    source = source_of(function)
    try:
        return None if source is None else _lines(source)
    except SyntaxError:
        return None
