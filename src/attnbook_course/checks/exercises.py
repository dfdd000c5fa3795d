"""The exercises as the chapters' sources have them: text, stub, hint and solution."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from attnbook_course import checks
from attnbook_course.checks.repair import define
from attnbook_course.checks.verdict import Verdict

EXERCISE = re.compile(
    r"````\{exercise\} (?P<title>[^\n]+)\n:label: (?P<label>\S+)\n"
    r"(?::class: (?:build ?)?(?:told-in-(?P<told_in>\S+))?\n)?(?::nonumber:\n)?\n"
    r"\*(?P<level>Build|Warm-up|Core|Stretch), (?P<minutes>\d+) minutes, (?P<kinds>[^.*]+)\.\*"
    r"(?P<text>.*?)````(?P<rest>.*?)(?=````\{exercise\}|^## |\Z)",
    re.DOTALL | re.MULTILINE,
)
STUB = re.compile(r"```\{code-cell\} ipython3\n:tags: \[exercise\]\n\n(.*?)```", re.DOTALL)
HINT = re.compile(r"```\{dropdown\} Hint\n(.*?)```", re.DOTALL)
SOLUTION = re.compile(
    r"````\{solution\} (\S+)\n:class: dropdown\n.*?```python\n(.*?)```\n````", re.DOTALL
)
EXPLANATION = re.compile(r"````\{solution\} (\S+)\n:class: dropdown\n(.*?)````", re.DOTALL)
CELL = re.compile(
    r"^```\{code-cell\} ipython3\n(?:---\n.*?\n---\n|(?::[^\n]*\n)*)(.*?)^```",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Exercise:
    """One exercise; ``number`` is its place among its chapter's, from 1; a build has none, 0."""

    chapter: Path
    number: int
    title: str
    label: str
    level: str  # Warm-up, Core or Stretch, or Build
    minutes: int
    kinds: str  # such as "derivation and code"; "explanation" has a model answer and no check
    told_in: str | None  # the id of the chapter's section that tells what it rests on
    text: str
    stub: str
    hint: str
    solution_of: str
    solution: str

    @property
    def name(self) -> str:
        """Number and title, as the site prints them: "1.2 How many neighbours?"."""
        chapter = int(self.chapter.name[:2])
        if self.is_build:
            return f"Build {chapter} ({self.title})"
        return f"{chapter}.{self.number} {self.title}"

    @property
    def is_build(self) -> bool:
        """Whether it is the chapter's build, whose function later chapters use."""
        return self.level == "Build"

    @property
    def is_checked(self) -> bool:
        """Whether the answer is code, which a check can try."""
        return self.kinds != "explanation"

    @property
    def check_line(self) -> str:
        """The stub's last line, which calls the check."""
        return self.stub.strip().splitlines()[-1]

    @cached_property
    def check(self) -> Any:
        """The check's function, which the stub's last line names."""
        return eval(self.check_line.split("(")[0], {"checks": checks})

    def run(self, code: str) -> Verdict:
        """What the check says to this code, which defines the function asked for."""
        known = names(self.chapter)
        functions = [n.name for n in ast.parse(code).body if isinstance(n, ast.FunctionDef)]
        define(code, functions[-1], known)
        verdict = eval(self.check_line, known)
        assert isinstance(verdict, Verdict)
        return verdict


def names(chapter: Path) -> dict[str, Any]:
    """What a solution may use: NumPy, the checks and what the first cell imports of attnbook."""
    first = CELL.search(chapter.read_text(encoding="utf-8"))
    imports: list[ast.stmt] = [
        node
        for node in ast.parse(first[1] if first else "").body
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "attnbook"
    ]
    found: dict[str, Any] = {"np": np, "checks": checks}
    exec(compile(ast.Module(imports, type_ignores=[]), str(chapter), "exec"), found)
    return found


def exercises(chapter: Path) -> Iterator[Exercise]:
    """The exercises of a chapter, in its order.

    Raises:
        ValueError: an exercise has not exactly one stub, one hint and one solution. One whose
            answer is an explanation has a hint and a solution, and no stub.
    """
    yield from exercises_in(chapter.read_text(encoding="utf-8"), chapter)


def exercises_in(text: str, chapter: Path) -> Iterator[Exercise]:
    """The exercises of a text, which stands in this file; raises as exercises does."""
    number = 0
    for match in EXERCISE.finditer(text):
        parts: dict[str, Any] = match.groupdict()
        is_build = parts["level"] == "Build"
        number += not is_build
        rest = parts.pop("rest")
        explained = parts["kinds"] == "explanation"
        solutions = (EXPLANATION if explained else SOLUTION).findall(rest)
        found = [STUB.findall(rest), HINT.findall(rest), solutions]
        if [len(one) for one in found] != [0 if explained else 1, 1, 1]:
            counts = ", ".join(str(len(one)) for one in found)
            stubs = "no stub" if explained else "one stub"
            raise ValueError(
                f"{chapter.name}, exercise {parts['label']}: expected {stubs}, one hint and one "
                f"solution, found {counts}"
            )
        stub = "" if explained else found[0][0]
        (hint,), ((label, solution),) = found[1:]
        parts["minutes"] = int(parts["minutes"])
        parts |= {"stub": stub, "hint": hint, "solution_of": label, "solution": solution}
        yield Exercise(chapter, 0 if is_build else number, **parts)
