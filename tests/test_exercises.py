"""Every exercise of every chapter: a stub that says "not yet", and a solution that passes its check."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from attnbook import checks

ALL = sorted((Path(__file__).parents[1] / "chapters").glob("[0-9]*.md"))
CHAPTERS = [path for path in ALL if "\n## Exercises\n" in path.read_text(encoding="utf-8")]
SECTION = re.compile(r"````\{exercise\} (?P<title>[^\n]+)\n:label: (?P<label>\S+)\n(?P<rest>.*?)(?=````\{exercise\}|^## )", re.S | re.M)  # fmt: skip
STUB = re.compile(r"```\{code-cell\} ipython3\n:tags: \[exercise\]\n\n(.*?)```", re.S)
SOLUTION = re.compile(r"````\{solution\} (\S+)\n:class: dropdown\n(.*?)\n````", re.S)
PYTHON = re.compile(r"```python\n(.*?)```", re.S)
CELL = re.compile(r"^```\{code-cell\} ipython3\n(?:---\n.*?\n---\n|(?::.*\n)*)(.*?)^```", re.S | re.M)  # fmt: skip


@dataclass(frozen=True)
class Exercise:
    chapter: Path
    label: str
    text: str
    stub: str
    hint: bool
    solution_of: str
    solution: str


def exercises() -> list[Exercise]:
    found = []
    for chapter in CHAPTERS:
        for match in SECTION.finditer(chapter.read_text(encoding="utf-8")):
            rest = match["rest"]
            (stub,), ((label, solution),) = STUB.findall(rest), SOLUTION.findall(rest)
            (code,) = PYTHON.findall(solution)
            hint = "```{dropdown} Hint" in rest
            text = rest.split("````")[0]
            found.append(Exercise(chapter, match["label"], text, stub, hint, label, code))
    return found


EXERCISES = exercises()
each = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.label)


def module(chapter: Path) -> str:
    """The name of the chapter's checks: ch01 for 01-kernel-regression.md."""
    return "ch" + chapter.name[:2]


@cache
def names(chapter: Path) -> dict[str, object]:
    """What a solution may use: NumPy, the checks and what the first cell imports of attnbook."""
    first = CELL.search(chapter.read_text(encoding="utf-8"))
    imports = [
        node
        for node in ast.parse(first[1] if first else "").body
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "attnbook"
    ]
    found: dict[str, object] = {"np": np, "checks": checks}
    exec(compile(ast.Module(imports, type_ignores=[]), str(chapter), "exec"), found)
    return found


def run(exercise: Exercise, code: str) -> checks.Verdict:
    known = dict(names(exercise.chapter))
    exec(code, known)
    return eval(check_line(exercise), known)


def check_line(exercise: Exercise) -> str:
    return exercise.stub.strip().splitlines()[-1]


def head(code: str) -> tuple[str, str, str]:
    """Name, arguments and docstring of the function that the code defines."""
    function = next(node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef))
    return function.name, ast.unparse(function.args), ast.get_docstring(function) or ""


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_has_five_of_three_kinds(chapter):
    text = chapter.read_text(encoding="utf-8")
    number = len(re.findall(r"^````\{exercise\}", text, re.M))
    assert number == len(SECTION.findall(text)) >= 5
    minutes = [
        int(m) for m in re.findall(r"^\*(?:Warm-up|Core|Stretch), (\d+) minutes", text, re.M)
    ]
    assert len(minutes) == number
    assert min(minutes) <= 5 < 60 <= max(minutes)
    for kind in ("derivation", "code", "experiment"):
        assert re.search(rf"^\*(Warm-up|Core|Stretch), \d+ minutes, [^*]*{kind}", text, re.M), kind


@each
def test_stub_is_not_yet(exercise):
    code = exercise.stub.replace(check_line(exercise), "")
    verdict = run(exercise, code)
    assert isinstance(verdict, checks.Verdict)
    assert verdict.status == "not yet"


@each
def test_solution_passes(exercise):
    verdict = run(exercise, exercise.solution)
    assert verdict.status == "right", verdict


@each
def test_stub_and_solution_differ_only_where_the_reader_writes(exercise):
    assert exercise.solution_of == exercise.label
    assert head(exercise.stub) == head(exercise.solution)
    assert head(exercise.stub)[2]
    assert "    raise NotImplementedError\n" in exercise.stub
    assert f"({head(exercise.stub)[0]})" in check_line(exercise)


@each
def test_there_is_a_hint(exercise):
    assert exercise.hint


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_every_check_belongs_to_an_exercise_of_its_chapter(chapter):
    known = vars(getattr(checks, module(chapter)))
    public = {(module(chapter), name) for name, f in known.items() if hasattr(f, "__wrapped__")}
    stubs = " ".join(e.stub for e in EXERCISES if e.chapter == chapter)
    assert set(re.findall(r"checks\.(\w+)\.(\w+)", stubs)) == public
