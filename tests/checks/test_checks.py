"""Right answers are right, and each usual mistake hears its own cause.

checks/chNN.py holds answers to a chapter's exercises by the name of the check: in RIGHT one of
another form than the chapter's own solution, in WRONG some with a part of what each must hear. What
a check itself holds as data, the causes that it gives to `expect`, stands here no second time: each
of these wrong values is tried as an answer, as the check has it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from comparisons import causes_without_an_answer

from attnbook_course.checks import CHAPTERS, ch01
from attnbook_course.checks.exercises import exercises
from attnbook_course.checks.repair import define

ANSWERS = {
    file.stem: import_module(f"checks.{file.stem}")
    for file in sorted(Path(__file__).parent.glob("ch[0-9][0-9].py"))
}
EXERCISES = {
    (chapter, exercise.check.__name__): exercise
    for chapter in ANSWERS
    for path in (Path(__file__).parents[2] / "chapters").glob(f"{chapter[2:]}-*.md")
    for exercise in exercises(path)
    if exercise.is_checked
}


def of_each(answers):
    """The chapter, the name and the number of each answer in RIGHT, or in WRONG."""
    return pytest.mark.parametrize(
        ("chapter", "name", "number"),
        [
            pytest.param(chapter, name, number, id=f"{chapter}.{name}-{number}")
            for chapter, written in ANSWERS.items()
            for name, own in getattr(written, answers).items()
            for number in range(len(own))
        ],
    )


def test_each_chapter_with_checks_has_answers():
    assert list(ANSWERS) == CHAPTERS


@pytest.mark.parametrize("chapter", ANSWERS)
def test_answers_are_for_checks_that_there_are(chapter):
    names = {name for own, name in EXERCISES if own == chapter}
    assert {*ANSWERS[chapter].RIGHT, *ANSWERS[chapter].WRONG} <= names


@of_each("RIGHT")
def test_a_right_answer_of_another_form(chapter, name, number):
    found = EXERCISES[chapter, name].check(ANSWERS[chapter].RIGHT[name][number])
    assert found.status == "right", found


@of_each("WRONG")
def test_a_wrong_answer_hears_its_own_cause(chapter, name, number):
    answer, cause = ANSWERS[chapter].WRONG[name][number]
    found = EXERCISES[chapter, name].check(answer)
    assert found.status == "wrong"
    assert cause in found.message and found.message.endswith(found.cause)


@pytest.mark.parametrize(("chapter", "name"), EXERCISES, ids=lambda part: part)
def test_each_cause_is_named_for_its_own_wrong_value(chapter, name, monkeypatch):
    exercise = EXERCISES[chapter, name]

    def tried():
        exercise.run(exercise.solution)
        for answer, _ in ANSWERS[chapter].WRONG.get(name, []):
            exercise.check(answer)

    assert causes_without_an_answer(monkeypatch, exercise.check, tried) == []


@pytest.mark.parametrize(("has", "prints"), [({"__file__": "mine.py"}, 1), ({}, 0)])
def test_a_script_prints_its_verdict_and_a_notebook_shows_it(monkeypatch, capsys, has, prints):
    main = ModuleType("__main__")
    vars(main).update(has)
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(sys, "argv", ["mine.py"])  # a worker of the tests has -c
    own = define("def half_distance(h):\n    return h", "half_distance", vars(main))
    verdict = ch01.half_distance(own)
    assert capsys.readouterr().out == f"{verdict}\n" * prints
