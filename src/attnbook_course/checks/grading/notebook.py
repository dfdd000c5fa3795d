"""A student's notebook as the grader reads it: its cells, and which exercise they answer."""

from __future__ import annotations

import json
import re
import stat
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from attnbook_course.checks.grading.pipe import in_one_line

MOST_BYTES = 30 << 20
PLACEHOLDER = "*Write your explanation here.*"
DEFINED = re.compile(r"^[ \t]*(?:async )?def (\w+)", re.MULTILINE)
QUESTION = re.compile(r"## \d+\. (?P<title>.+) \([\d.]+ points?\)\s*$", re.MULTILINE)


class Unreadable(Exception):
    """A file that is not graded; its text says why, to the student."""


@dataclass(frozen=True)
class Cell:
    """A cell, and what it answers: the exercise that is written in it, or else the question above.

    Some programs drop what is written in a cell, and none drops the question.
    """

    text: str
    is_code: bool
    exercise: str  # a label
    question: str  # an exercise's title

    @cached_property
    def functions(self) -> list[str]:
        """The names of those that it defines, also if it is text or no valid Python."""
        return DEFINED.findall(self.text)


@dataclass(frozen=True)
class Notebook:
    """Its cells in order, without the questions."""

    name: str = ""  # of the homework that it answers; empty if it does not say
    cells: list[Cell] = field(default_factory=list)
    questions: str = ""  # their fingerprint; empty if it has none

    @property
    def code(self) -> list[Cell]:
        """The cells that run."""
        return [cell for cell in self.cells if cell.is_code]

    def answers(self, label: str, title: str) -> list[Cell]:
        """The cells that answer this exercise."""
        return [
            cell
            for cell in self.cells
            if cell.exercise == label or (not cell.exercise and cell.question == title)
        ]


def read_notebook(path: Path) -> Notebook:
    """The notebook of a file.

    Raises:
        Unreadable: a link, too large, or no notebook.
    """
    name = in_one_line(path.name)
    try:
        state = path.lstat()
        if not stat.S_ISREG(state.st_mode):
            raise Unreadable(f"{name} is a link or no plain file: hand in the notebook itself")
        if state.st_size > MOST_BYTES:
            size = f"{state.st_size / 1e6:.0f} MB, more than {MOST_BYTES / 1e6:.0f}"
            raise Unreadable(f"{name} has {size}: clear its outputs and hand it in again")
        found = json.loads(path.read_text(encoding="utf-8-sig"))
        return _notebook(found)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        words = f"is not a notebook as Jupyter saves it ({type(error).__name__})"
        raise Unreadable(f"{name} {words}: open it, save it and hand it in again") from None
    except OSError as error:
        raise Unreadable(f"{name} cannot be read: {error.strerror}") from None


def _notebook(found: dict[str, Any]) -> Notebook:
    name, questions = (_own(found).get(key, "") for key in ("homework", "questions"))
    cells: list[Cell] = []
    question = ""
    for cell in found["cells"]:
        text = cell["source"]
        text = text if isinstance(text, str) else "".join(text)
        is_code = cell["cell_type"] == "code"
        if not is_code and (head := QUESTION.match(text)):
            question, text = head["title"], text.rpartition("</details>")[2]  # the hint's end
            if not text.strip():
                continue  # nothing is written into the question itself
        exercise = str(_own(cell).get("exercise") or "")
        cells.append(Cell(text, is_code, exercise, question))
    name = in_one_line(name, 40) if isinstance(name, str) else ""
    return Notebook(name, cells, str(questions))


def _own(part: dict[str, Any]) -> dict[str, Any]:
    """What the making of the homework wrote into a cell's or the notebook's metadata."""
    own = part.get("metadata", {}).get("attnbook", {})
    return own if isinstance(own, dict) else {}


def chosen(paths: list[Path], homework: str) -> Path:
    """The one notebook of several that a student handed in.

    Raises:
        Unreadable: none or more than one answers this homework.
    """
    if len(paths) == 1:
        return paths[0]
    if not paths:
        raise Unreadable("there is no notebook (a file that ends in .ipynb)")
    own = [path for path in paths if _answers(path, homework)]
    if len(own) == 1:
        return own[0]
    names = in_one_line(", ".join(path.name for path in own or paths))
    raise Unreadable(f"there are several notebooks ({names}): hand in the one that counts")


def _answers(path: Path, homework: str) -> bool:
    try:
        return read_notebook(path).name == homework
    except Unreadable:
        return False
