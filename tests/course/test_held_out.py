"""Every held-out exercise, in several classes: its stub, its solution, and the causes it names."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from comparisons import causes_without_an_answer
from make_homework import Maker

from attnbook_course.checks.exercises import names
from attnbook_course.checks.grading.homework import held_out_module
from attnbook_course.checks.repair import define

ROOT = Path(__file__).resolve().parents[2]

CHAPTERS = [path.stem[2:] for path in sorted((ROOT / "homework" / "held_out").glob("ch*.py"))]
SEEDS = (1, 2, 3, 2027)
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS)
each_class = pytest.mark.parametrize("seed", SEEDS)


MAKER = Maker(ROOT, 0)


@functools.cache
def exercises(chapter, seed):
    MAKER.seed = seed
    return [exercise for exercise, _ in MAKER.held_out(chapter)]


@functools.cache
def module(chapter):
    return held_out_module(ROOT / "homework" / "held_out" / f"ch{chapter}.py")


def function(exercise, code):
    head = next(line for line in exercise.stub.splitlines() if line.startswith("def "))
    return define(code, head.split("(")[0][4:], names(exercise.chapter))


@each_chapter
@each_class
def test_the_solution_is_right_and_the_stub_is_not_yet(chapter, seed):
    checks = module(chapter).checks(seed)
    assert set(checks) == {exercise.label for exercise in exercises(chapter, seed)}
    for exercise in exercises(chapter, seed):
        assert exercise.solution_of == exercise.label
        verdict = checks[exercise.label](function(exercise, exercise.solution))
        assert verdict.status == "right", verdict
        stub = exercise.stub.replace(exercise.check_line, "")
        assert checks[exercise.label](function(exercise, stub)).status == "not yet"


@each_chapter
def test_each_cause_is_named_for_its_own_wrong_value_in_some_class(chapter, monkeypatch):
    def tried():
        for seed in SEEDS:
            for exercise in exercises(chapter, seed):
                check = module(chapter).checks(seed)[exercise.label]
                check(function(exercise, exercise.solution))

    (check, *_) = module(chapter).checks(1).values()
    assert causes_without_an_answer(monkeypatch, check, tried) == []


def test_a_wrong_constant_has_points_for_the_shape():
    power = module("01").numbers(1)["p"]
    verdict = module("01").checks(1)["ho-power-kernel"](
        lambda u: 2.7 * np.maximum(0, 1 - u**2) ** power
    )
    assert (verdict.status, verdict.earned) == ("wrong", 0.5)
    assert verdict.message.endswith("The shape is right, but not the constant.")


@each_chapter
def test_a_trial_runs_with_the_stub_and_says_nothing_of_the_answer(chapter):
    for exercise in exercises(chapter, 1):
        known = names(exercise.chapter)
        exec(exercise.solution, known)
        verdict = eval(exercise.check_line, known)
        assert verdict.status == "not yet"
        assert "Your lecturer's check says whether that is right." in verdict.message
        exec(exercise.stub.replace(exercise.check_line, ""), known)
        assert "not written yet" in eval(exercise.check_line, known).message


@each_chapter
def test_classes_have_numbers_of_their_own(chapter):
    found = {str(module(chapter).numbers(seed)) for seed in range(40)}
    assert len(found) > 10
    assert module(chapter).numbers(1) != module(chapter).numbers(2)
    assert module(chapter).numbers(1) == module(chapter).numbers(1)


def test_who_is_right_until_an_exponential_overflows_has_a_part():
    c, k = (module("12").numbers(1)[name] for name in "ck")

    def overflowing(x, p, y, q):
        u, v = np.exp(p), np.exp(q - c)
        return (u * x + v * k * y) / (u + v)

    verdict = module("12").checks(1)["ho-older-part"](overflowing)
    assert (verdict.status, verdict.earned) == ("wrong", 0.6)
    assert "only differences go into exp" in verdict.message
