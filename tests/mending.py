"""Code changed as a reader may change it: the broken code of an exercise, or a right answer."""

import inspect

import numpy as np

from attnbook.course.checks.repair import define
from attnbook.course.checks.verdict import Function


def mended(broken: str, name: str, *changes: tuple[str, str]) -> Function:
    """The function of this name, each of the texts replaced where it stands, once, in the code."""
    return _changed(broken, name, {"np": np}, *changes)


def altered(answer: Function, old: str, new: str) -> Function:
    """The function with one text replaced where it stands, once, in its source."""
    return _changed(inspect.getsource(answer), answer.__name__, {**answer.__globals__}, (old, new))


def _changed(code: str, name: str, known: dict, *changes: tuple[str, str]) -> Function:
    for old, new in changes:
        assert code.count(old) == 1, old
        code = code.replace(old, new)
    return define(code, name, known)
