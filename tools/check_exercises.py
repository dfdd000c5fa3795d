"""Try every exercise of the book, and print what its check says.

python tools/check_exercises.py              all chapters
python tools/check_exercises.py ch01 ch07    these

Each stub must be "not yet", each solution right, and each written wrong answer, which
tests/checks/chNN.py holds, must hear its own cause.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from attnbook_course.checks.exercises import Exercise, exercises
from attnbook_course.checks.verdict import Verdict

REPOSITORY = Path(__file__).resolve().parents[1]
Wrong = tuple[Callable[..., Any], str]  # an answer, and a part of the message


def wrong_answers(chapter: str) -> dict[str, list[Wrong]]:
    """The written wrong answers of a chapter such as "ch07", by the name of the check."""
    tests = str(REPOSITORY / "tests")
    if tests not in sys.path:
        sys.path.insert(0, tests)
    written: dict[str, list[Wrong]] = import_module(f"checks.{chapter}").WRONG
    return written


def misheard(check: Callable[..., Verdict], wrong: list[Wrong]) -> list[str]:
    """What is said to those wrong answers that do not hear their own cause."""
    missed = []
    for answer, cause in wrong:
        verdict = check(answer)
        if verdict.status != "wrong" or cause not in verdict.message:
            missed.append(f"a wrong answer should hear “{cause}”, and hears: {verdict}")
    return missed


def row(exercise: Exercise, wrong: list[Wrong]) -> tuple[str, list[str]]:
    """An exercise's line of the table, and what is not as it should be."""
    title = f"{exercise.name:52} {exercise.level:8} {exercise.minutes:3} min"
    if not exercise.is_checked:
        return f"{title}  an explanation, with a model answer", []
    stub = exercise.run(exercise.stub.replace(exercise.check_line, ""))
    solution = exercise.run(exercise.solution)
    missed = misheard(exercise.check, wrong)
    problems = list(missed)
    if stub.status != "not yet":
        problems.append(f"the stub should be “not yet”, and hears: {stub}")
    if solution.status != "right":
        problems.append(f"the solution should be right, and hears: {solution}")
    named = f"{len(wrong) - len(missed)} of {len(wrong)}"
    return f"{title}  {stub.status:8} {solution.status:8} {named:>8}", problems


def main(chosen: list[str]) -> int:
    """Print the table; 1 if anything is not as it should be, 2 for a chapter that is not there."""
    files = {f"ch{f.name[:2]}": f for f in sorted((REPOSITORY / "chapters").glob("[0-9]*.md"))}
    if unknown := set(chosen) - set(files):
        print(f"no such chapter: {', '.join(sorted(unknown))}; there are {', '.join(files)}")
        return 2
    print(f"{'exercise':52} {'level':8} {'time':>7}  {'stub':8} {'solution':8} wrong answers named")
    problems, tried, planted = [], 0, 0
    for chapter in chosen or files:
        wrong = wrong_answers(chapter)
        for exercise in exercises(files[chapter]):
            own = wrong[exercise.check.__name__] if exercise.is_checked else []
            line, found = row(exercise, own)
            print(line, flush=True)
            problems += [f"{exercise.name}: {problem}" for problem in found]
            tried, planted = tried + 1, planted + len(own)
    print(f"{tried} exercises, {planted} wrong answers; not as it should be: {len(problems)}")
    for problem in problems:
        print(f"  {problem}")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
