"""A homework as the grader needs it: homework.json, and the held-out checks beside it."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from attnbook_course import checks

Kind = Literal["published", "held out", "explained"]
Check = Any  # a function of a function, which gives a Verdict
HELD_OUT = "held_out"  # the folder beside homework.json


def counted(number: float, thing: str) -> str:
    """A number of things: "1 point", "2.5 points"."""
    return f"{number:g} {thing}{'s' * (number != 1)}"


class BadHomework(ValueError):
    """What is wrong with a homework's file: where, what came and what was expected."""


@dataclass(frozen=True)
class Task:
    """One exercise of a homework."""

    label: str
    title: str
    points: float
    kind: Kind
    function: str  # that the student writes; empty where the answer is an explanation
    check: str  # "ch01.epanechnikov"; of a held-out exercise the chapter, "ch01"
    answer: str = ""  # the model answer, for whoever reads an explanation
    places: tuple[tuple[str, str], ...] = ()  # in the book: words, and an address if there is one


@dataclass(frozen=True)
class Homework:
    """One homework of one class.

    Attributes:
        name: such as "hw1"; a student's notebook carries it.
        title: as students read it.
        seed: the class's, from which held-out exercises draw their numbers.
        seconds: for one answer or cell of a student's notebook.
        minutes: for the whole notebook.
        completion: whether an explanation of some sentences has its points unread.
        tasks: the exercises, in order.
        folder: where homework.json lies.
        questions: their fingerprint, which a student's notebook carries too; empty in old files.
    """

    name: str
    title: str
    seed: int
    seconds: float
    minutes: float
    completion: bool
    tasks: tuple[Task, ...]
    folder: Path
    questions: str = ""

    @property
    def points(self) -> float:
        """The most that can be had."""
        return sum(task.points for task in self.tasks)

    @cached_property
    def checks(self) -> dict[str, Check]:
        """The check of every task that has one."""
        chapters = sorted({task.check for task in self.tasks if task.kind == "held out"})
        held_out = {chapter: self._held_out(chapter) for chapter in chapters}
        found: dict[str, Check] = {}
        for task in self.tasks:
            if task.kind == "published":
                found[task.label] = _published(task)
            elif task.kind == "held out":
                if task.label not in held_out[task.check]:
                    known = ", ".join(sorted(held_out[task.check]))
                    where = f"{HELD_OUT}/{task.check}.py"
                    raise BadHomework(f"{where}: no check of {task.label}; it has {known}")
                found[task.label] = held_out[task.check][task.label]
        return found

    def _held_out(self, chapter: str) -> dict[str, Check]:
        path = self.folder / HELD_OUT / f"{chapter}.py"
        module: Any = held_out_module(path)
        found: dict[str, Check] = module.checks(self.seed)
        return found


def held_out_module(path: Path) -> Any:
    """The module with a chapter's held-out checks, such as homework/held_out/ch01.py."""
    if not path.is_file():
        raise BadHomework(f"{path}: expected the held-out checks there; make the homework anew")
    spec = importlib.util.spec_from_file_location(f"held_out_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _published(task: Task) -> Check:
    chapter, _, name = task.check.partition(".")
    check = getattr(getattr(checks, chapter, None), name, None)
    if not callable(check):
        raise BadHomework(f"{task.label}: attnbook_course.checks has no check {task.check!r}")
    return check


def read_homework(path: Path) -> Homework:
    """The homework of a file, its checks tried for existence.

    Raises:
        BadHomework: the file is none, or a check is missing.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        tasks = tuple(Task(**one) for one in found.pop("exercises"))
        homework = Homework(tasks=tasks, folder=path.parent, **found)
    except FileNotFoundError:
        words = "there is no such file. 'make homework SEED=…' writes it for the lecturer"
        raise BadHomework(f"{path}: {words}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        words = f"expected a homework.json as 'make homework' writes it; {error!r}"
        raise BadHomework(f"{path}: {words}") from None
    homework.checks  # noqa: B018
    return homework
