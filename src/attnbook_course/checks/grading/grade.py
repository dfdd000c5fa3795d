"""What one student's notebook is worth, exercise by exercise."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path

from attnbook_course.checks.grading.homework import Homework, Task
from attnbook_course.checks.grading.notebook import Notebook, Unreadable, chosen, read_notebook
from attnbook_course.checks.grading.sandbox import Kind
from attnbook_course.checks.grading.student import Asked, Gone, NotStarted, Student, TooLong
from attnbook_course.checks.verdict import Verdict

NOTHING_WRITTEN = "nothing is written below the question."
TO_READ = "your lecturer reads this answer; its points are not in yet."
OTHER_QUESTIONS = (
    "this notebook asks other questions than your class's {}: hand in your answers in the notebook "
    "that your class was given; if this is the one, tell your lecturer"
)
MADE_OTHERWISE = (
    "made with another SEED or HELD_OUT, or before the set changed: grade it with the key that was "
    "made with it"
)
NOT_KNOWN = (
    "notebook or key has no fingerprint of the questions: if held-out answers are wrong, look "
    "whether both have the same numbers"
)
FEW_WORDS = 20  # fewer are no explanation that has its points unread
STEP = 0.5  # partial points are whole multiples of it


@dataclass(frozen=True)
class Result:
    """What an exercise's check says, and its points; None where a person has to say."""

    verdict: Verdict
    points: float | None
    comment: str = ""  # a person's


@dataclass
class Report:
    """Everything that is known of one student's homework.

    Attributes:
        name: the student's, as the roster or the file has it.
        results: by label; empty where there is nothing to grade.
        problem: why nothing could be graded, in words for the student.
        handed_in: whether there was anything at all.
        notes: for the lecturer.
        explanations: by label, as the student wrote them.
        timeouts: how often an answer or a cell did not end in time.
        seconds: that the grading took.
    """

    name: str
    results: dict[str, Result] = field(default_factory=dict)
    problem: str = ""
    handed_in: bool = True
    notes: list[str] = field(default_factory=list)
    explanations: dict[str, str] = field(default_factory=dict)
    timeouts: int = 0
    seconds: float = 0.0

    @property
    def total(self) -> float:
        """The points that are certain."""
        return sum(result.points or 0 for result in self.results.values())

    @property
    def complete(self) -> bool:
        """Whether there is a total, and nobody has to read anything before it can be entered."""
        unread = any(result.points is None for result in self.results.values())
        return not unread and not self.problem


def graded(name: str, paths: list[Path] | None, homework: Homework, kind: Kind) -> Report:
    """The report on what a student handed in; None for nothing."""
    report, began = Report(name), time.monotonic()
    if paths is None:
        report.handed_in, report.problem = False, "nothing was handed in"
        return report
    try:
        path = chosen(paths, homework.name)
        notebook = read_notebook(path)
    except Unreadable as problem:
        report.problem = str(problem)
        return report
    if notebook.name not in ("", homework.name):
        report.notes.append(f"the notebook is of {notebook.name}")
    if notebook.questions != homework.questions:
        if notebook.questions and homework.questions:
            report.problem = OTHER_QUESTIONS.format(homework.name)
            report.notes.append(MADE_OTHERWISE)
            return report
        report.notes.append(NOT_KNOWN)
    limits = {"seconds": homework.seconds, "in_all": 60 * homework.minutes}
    with Student(notebook.cells, kind, **limits) as student:
        try:
            _grade(report, notebook, homework, student)
        except NotStarted as problem:  # never a zero for what is nobody's fault
            report.results = {}
            report.problem = f"{problem}; your lecturer grades you again"
        report.timeouts = student.timeouts
    if report.timeouts:
        report.notes.append(f"time-outs: {report.timeouts}")
    report.seconds = time.monotonic() - began
    return report


def _grade(report: Report, notebook: Notebook, homework: Homework, student: Student) -> None:
    for task in homework.tasks:
        if task.kind == "explained":
            report.results[task.label] = _read(task, notebook, homework, report)
        else:
            report.results[task.label] = _asked(task, notebook, homework, student)


def _asked(task: Task, notebook: Notebook, homework: Homework, student: Student) -> Result:
    """What the check outside says to the function inside."""
    own = task.function
    try:
        verdict: Verdict = homework.checks[task.label](Asked(student, own))
    except TooLong:
        words = "no answer in time. Does a loop not end?"
        if time.monotonic() > student.until:
            words = f"the notebook as a whole takes longer than {homework.minutes:g} minutes."
        verdict = Verdict("wrong", f"{own}: {words}")
    except Gone as end:
        words = str(end) or "its process ended"
        verdict = Verdict("wrong", f"{own}: {words}, in the function or before it.")
    if verdict.status != "right" and "there is no function" in verdict.message:
        problems = [student.problems.get(place, "") for place in notebook.defining(own)]
        stopped = next((problem for problem in reversed(problems) if problem), "")
        if stopped:
            does = stopped if stopped.startswith(("does not", "ends ")) else f"stops: {stopped}"
            verdict = Verdict("wrong", f"{own}: its cell {does}")
    if verdict.status == "not yet":  # what to do next comes too late
        verdict = Verdict("not yet", f"{verdict.message.partition('. ')[0].rstrip('.')}.")
    return Result(verdict, _points(task, verdict))


def _points(task: Task, verdict: Verdict) -> float:
    """All for a right answer; for a wrong one what a held-out check says of it, rounded down."""
    if verdict.status == "right":
        return task.points
    earned = verdict.earned if task.kind == "held out" and verdict.status == "wrong" else 0
    return STEP * math.floor(task.points * earned / STEP + 1e-9)


def _read(task: Task, notebook: Notebook, homework: Homework, report: Report) -> Result:
    """An explanation: a person reads it, unless its points are for some sentences of any kind."""
    found = notebook.explanations.get(task.label)
    if found:
        report.explanations[task.label] = found
        if homework.completion and len(found.split()) >= FEW_WORDS:
            return Result(Verdict("right", "you wrote an explanation."), task.points)
    elif found == "":
        return Result(Verdict("not yet", NOTHING_WRITTEN), 0)
    else:
        report.explanations[task.label] = ""
        report.notes.append(f"{task.label}: its cell is gone; look for the answer elsewhere")
    return Result(Verdict("not yet", TO_READ), None)
