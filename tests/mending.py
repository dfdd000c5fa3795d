"""Code changed as a reader may change it: the broken code of an exercise, or a right answer."""

import ast
import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from attnbook_course.checks.exercises import exercises, names
from attnbook_course.checks.repair import define
from attnbook_course.checks.verdict import Function

CHAPTERS = Path(__file__).resolve().parents[1] / "chapters"


def mended(broken: str, name: str, *changes: tuple[str, str]) -> Function:
    """The function of this name, each of the texts replaced where it stands, once, in the code."""
    return _changed(broken, name, {"np": np}, *changes)


def altered(answer: Function, *texts: str) -> Function:
    """The function with texts replaced, old, new, old, new, each where it stands, once."""
    changes = zip(texts[::2], texts[1::2], strict=True)
    return _changed(inspect.getsource(answer), answer.__name__, {**answer.__globals__}, *changes)


def _changed(code: str, name: str, known: dict[str, Any], *changes: tuple[str, str]) -> Function:
    for old, new in changes:
        assert code.count(old) == 1, old
        code = code.replace(old, new)
    return define(code, name, known)


def solutions(chapter: int) -> SimpleNamespace:
    """A chapter's own solutions, by the names of their functions."""
    (path,) = CHAPTERS.glob(f"{chapter:02}-*.md")
    solved = SimpleNamespace()
    for code in (exercise.solution for exercise in exercises(path) if exercise.is_checked):
        *_, name = (node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef))
        setattr(solved, name, define(code, name, names(path)))
    return solved


def softmax(s: Any, mask: np.ndarray | bool = True, axis: Any = -1) -> np.ndarray:
    s = np.where(mask, s, -np.inf)
    e = np.exp(s - s.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)
