"""Every exercise of every chapter: its stub, its hint, its solution, and what its check says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from attnbook_course import checks
from attnbook_course.checks.exercises import exercises

REPOSITORY = Path(__file__).parents[2]

CHAPTERS = sorted((REPOSITORY / "chapters").glob("[0-9]*.md"))
EVERY = [exercise for chapter in CHAPTERS for exercise in exercises(chapter)]
EXERCISES = [exercise for exercise in EVERY if exercise.is_checked]
each = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.label)
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)


def head(code: str) -> tuple[str, str, str]:
    """Name, arguments and docstring of the function that the code defines."""
    function = next(node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef))
    return function.name, ast.unparse(function.args), ast.get_docstring(function) or ""


@each_chapter
def test_a_chapter_has_five_or_more_of_three_kinds(chapter):
    own = [e for e in EVERY if e.chapter == chapter]
    number = len(re.findall(r"^````\{exercise\}", chapter.read_text(encoding="utf-8"), re.M))
    assert number == len(own) >= 5
    minutes = [e.minutes for e in own]
    assert min(minutes) <= 5 < 60 <= max(minutes)
    for kind in ("derivation", "code", "experiment"):
        assert any(kind in e.kinds for e in own), kind


@each
def test_stub_is_not_yet(exercise):
    verdict = exercise.run(exercise.stub.replace(exercise.check_line, ""))
    assert verdict.status == "not yet"
    words = "nothing has changed yet" if "debugging" in exercise.kinds else "not written yet"
    assert repr(verdict).startswith(f"… {exercise.check.__name__}: {words}")


@each
def test_it_names_the_section_that_tells_what_it_rests_on(exercise):
    assert exercise.told_in  # that there is this section the site's build sees


@each
def test_solution_passes(exercise):
    verdict = exercise.run(exercise.solution)
    assert verdict.status == "right", verdict


@each
def test_stub_and_solution_differ_only_where_the_reader_writes(exercise):
    assert exercise.solution_of == exercise.label
    assert head(exercise.stub) == head(exercise.solution)
    assert head(exercise.stub)[2]
    if "debugging" in exercise.kinds:  # the code runs, and one line of it is wrong
        code = exercise.stub.replace(exercise.check_line, "")
        wrong, right = (ast.unparse(ast.parse(c)).splitlines() for c in (code, exercise.solution))
        assert len(wrong) == len(right)
        assert sum(a != b for a, b in zip(wrong, right, strict=True)) == 1
    else:
        assert "    raise NotImplementedError\n" in exercise.stub
    assert f"({head(exercise.stub)[0]})" in exercise.check_line


@each_chapter
def test_every_check_belongs_to_an_exercise_of_its_chapter(chapter):
    name = f"ch{chapter.name[:2]}"
    public = {
        check for check in vars(getattr(checks, name)).values() if hasattr(check, "__wrapped__")
    }
    assert {e.check for e in EXERCISES if e.chapter == chapter} == public


def test_an_exercise_without_a_hint_is_refused(tmp_path):
    chapter = tmp_path / "01-a.md"
    text = CHAPTERS[0].read_text(encoding="utf-8").replace("```{dropdown} Hint", "```{note}", 1)
    chapter.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"build-1: .* one hint .*, found 1, 0, 1"):
        list(exercises(chapter))
