"""A student's notebook as the grader reads it: its code cells and its explanations."""

from __future__ import annotations

import json
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnbook_course.checks.grading.pipe import in_one_line, printable

MOST_BYTES = 30 << 20
MOST_WRITTEN = 20_000  # characters of an explanation: a cell of a table holds 32,767
PLACEHOLDER = "*Write your explanation here.*"


class Unreadable(Exception):
    """A file that is not graded; its text says why, to the student."""


@dataclass(frozen=True)
class Notebook:
    """Its code cells in order; its other cells by what they answer."""

    name: str = ""  # of the homework that it answers; empty if it does not say
    cells: list[str] = field(default_factory=list)
    explanations: dict[str, str] = field(default_factory=dict)  # by label; "" if not written
    questions: str = ""  # their fingerprint; empty if it has none

    def defining(self, function: str) -> list[int]:
        """The places of the cells that define this function."""
        own = re.compile(rf"^\s*(?:async\s+)?def\s+{re.escape(function)}\b", re.MULTILINE)
        return [place for place, cell in enumerate(self.cells) if own.search(cell)]


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
    cells = found["cells"]
    name, questions = (_own(found).get(key, "") for key in ("homework", "questions"))
    code: list[str] = []
    answers: dict[str, str] = {}
    for cell in cells:
        text = cell["source"]
        text = text if isinstance(text, str) else "".join(text)
        own = _own(cell)
        if cell["cell_type"] == "code":
            code.append(text)
        elif own.get("part") == "explanation" or str(cell.get("id", "")).endswith("-explanation"):
            label = str(own.get("exercise") or cell["id"].removesuffix("-explanation"))
            written = printable(text.replace(PLACEHOLDER, "")).strip()
            answers[label] = f"{answers.get(label, '')}\n\n{written}".strip()[:MOST_WRITTEN]
    name = in_one_line(name, 40) if isinstance(name, str) else ""
    return Notebook(name, code, answers, str(questions))


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
