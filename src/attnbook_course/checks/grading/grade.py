"""What one student's notebook is worth, exercise by exercise."""

from __future__ import annotations

import difflib
import math
import time
from dataclasses import dataclass, field
from pathlib import Path

from attnbook_course.browser import OTHER_NAME
from attnbook_course.checks.grading.homework import Homework, Task
from attnbook_course.checks.grading.notebook import (
    PLACEHOLDER,
    Cell,
    Notebook,
    Unreadable,
    chosen,
    read_notebook,
)
from attnbook_course.checks.grading.pipe import printable
from attnbook_course.checks.grading.sandbox import Kind
from attnbook_course.checks.grading.student import (
    MISSING,
    Asked,
    Gone,
    NotStarted,
    Student,
    TooLong,
)
from attnbook_course.checks.verdict import Verdict

NOTHING_WRITTEN = "Nothing is written below the question."
GONE = "The cell of this answer is gone; your lecturer looks for it, and gives its points."
TO_READ = "Your lecturer reads this answer; its points are not in yet."
OTHER_QUESTIONS = (
    "this notebook asks other questions than your class's {}: hand in your answers in the notebook "
    "that your class was given; if this is the one, tell your lecturer"
)
MADE_OTHERWISE = (
    "made with another SEED or HELD_OUT, or before the set changed: grade it with the key that was "
    "made with it"
)
NOT_KNOWN = (
    "the {} has no fingerprint of the questions: if held-out answers are wrong, look whether the "
    "notebook's questions have the same numbers as the key's"
)
NOTHING_OF_IT = (
    "nothing in the notebook answers an exercise of {}: hand in the notebook that your class was "
    "given"
)
IS_TEXT = "its cell is text (Markdown), so it did not run. Make it a code cell"
MOST_WRITTEN = 20_000  # characters of an answer: a cell of a table holds 32,767
MOST_NAMES = 1000  # of functions: who writes more keeps the grader busy
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
        notes: for the lecturer; see also remarks.
        written: each answer by its label, as the student wrote it.
        explanations: those that a person reads.
        seconds: that the grading took.
    """

    name: str
    results: dict[str, Result] = field(default_factory=dict)
    problem: str = ""
    handed_in: bool = True
    notes: list[str] = field(default_factory=list)
    written: dict[str, str] = field(default_factory=dict)
    explanations: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def total(self) -> float:
        """The points that are certain."""
        return sum(result.points or 0 for result in self.results.values())

    @property
    def unread(self) -> list[str]:
        """The labels of the answers that a person has to read."""
        return [label for label, result in self.results.items() if result.points is None]

    @property
    def complete(self) -> bool:
        """Whether there is a total, and nobody has to read anything before it can be entered."""
        return not self.unread and not self.problem

    @property
    def remarks(self) -> str:
        """Everything that the lecturer should know, and why there is no total yet."""
        later = [f"to be read: {', '.join(self.unread)}"] if self.unread else []
        return "; ".join(filter(None, [self.problem, *self.notes, *later]))


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
        if not notebook.questions and not _answers_some(notebook, homework):
            report.problem = NOTHING_OF_IT.format(homework.name)
            return report
        report.notes.append(NOT_KNOWN.format("key" if notebook.questions else "notebook"))
    limits = {"seconds": homework.seconds, "in_all": 60 * homework.minutes}
    with Student([cell.text for cell in notebook.code], kind, **limits) as student:
        try:
            _grade(report, notebook, homework, student)
        except NotStarted as problem:  # never a zero for what is nobody's fault
            report.results = {}
            report.problem = f"{problem}; your lecturer grades you again"
    if student.timeouts:
        report.notes.append(f"time-outs: {student.timeouts}")
    report.seconds = time.monotonic() - began
    return report


def _answers_some(notebook: Notebook, homework: Homework) -> bool:
    """Whether it has a cell, or a function, of any of the exercises."""
    names = {name for cell in notebook.cells for name in cell.functions}
    tasks = homework.tasks
    return any(one.function in names or notebook.answers(one.label, one.title) for one in tasks)


def _grade(report: Report, notebook: Notebook, homework: Homework, student: Student) -> None:
    asked = {task.function for task in homework.tasks}
    for task in homework.tasks:
        name, cells = _found(task, notebook, asked)
        texts = (cell.text.replace(PLACEHOLDER, "").strip() for cell in cells)
        report.written[task.label] = printable("\n\n".join(filter(None, texts)))[:MOST_WRITTEN]
        if task.kind == "explained":
            result = _read(task, homework, report, gone=not cells)
        else:
            verdict = _asked(task, homework, student)
            if verdict.status == "wrong" and MISSING in verdict.message:
                verdict = _missing(task, notebook, student, report, name)
            result = Result(verdict, _points(task, verdict))
        report.results[task.label] = result


def _found(task: Task, notebook: Notebook, asked: set[str]) -> tuple[str, list[Cell]]:
    """The cells of an answer, and the name, perhaps misspelt, of the function in them."""
    own, below = task.function, notebook.answers(task.label, task.title)
    if not own:
        return "", below
    others = asked - {own}
    there, anywhere = (
        [name for cell in cells for name in cell.functions if name not in others]
        for cells in (below, notebook.cells)
    )
    name, *_ = difflib.get_close_matches(own, anywhere[:MOST_NAMES], 1) or there[-1:] or [""]
    return name, [
        cell
        for cell in notebook.cells
        if name in cell.functions or (cell.is_code and cell in below)
    ]


def _asked(task: Task, homework: Homework, student: Student) -> Verdict:
    """What the check outside says to the function inside."""
    own = task.function
    try:
        verdict: Verdict = homework.checks[task.label](Asked(student, own))
    except TooLong:
        words = "no answer in time. Does a loop not end?"
        if time.monotonic() > student.until:
            words = f"the notebook as a whole takes longer than {homework.minutes:g} minutes."
        return Verdict("wrong", f"{own}: {words}")
    except Gone as end:
        words = str(end) or "its process ended"
        return Verdict("wrong", f"{own}: {words}, in the function or before it.")
    if verdict.status == "not yet":  # what to do next comes too late
        return Verdict("not yet", f"{verdict.message.partition('. ')[0].rstrip('.')}.")
    return verdict


def _missing(
    task: Task, notebook: Notebook, student: Student, report: Report, name: str
) -> Verdict:
    """Why there is no function of the name asked for, which the lecturer hears, too."""
    own = task.function
    cells = [(at, cell) for at, cell in enumerate(notebook.code) if own in cell.functions]
    if problem := next(filter(None, (student.problems.get(at) for at, _ in reversed(cells))), ""):
        does = problem if problem.startswith(("does not", "ends ")) else f"stops: {problem}"
        return Verdict("wrong", f"{own}: its cell {does}")
    words = f"{MISSING} {own} in the notebook"
    if name == own and not cells:
        words = IS_TEXT
    elif name not in ("", own):
        words = OTHER_NAME.format(own, "notebook", name[:100])
    report.notes.append(f"{task.label}: {words.partition('. ')[0].partition(': ')[0]}")
    return Verdict("wrong", f"{own}: {words}.")


def _points(task: Task, verdict: Verdict) -> float:
    """All for a right answer; for a wrong one what a held-out check says of it, rounded down."""
    if verdict.status == "right":
        return task.points
    earned = verdict.earned if task.kind == "held out" and verdict.status == "wrong" else 0
    return STEP * math.floor(task.points * earned / STEP + 1e-9)


def _read(task: Task, homework: Homework, report: Report, *, gone: bool) -> Result:
    """An explanation: a person reads it, unless its points are for some sentences of any kind."""
    found = report.written[task.label]
    if not found and not gone:
        return Result(Verdict("not yet", NOTHING_WRITTEN), 0)
    report.explanations[task.label] = found
    if gone:
        report.notes.append(f"{task.label}: its cell is gone; look for the answer elsewhere")
        return Result(Verdict("not yet", GONE), None)
    if homework.completion and len(found.split()) >= FEW_WORDS:
        return Result(Verdict("right", "You wrote an explanation."), task.points)
    return Result(Verdict("not yet", TO_READ), None)
