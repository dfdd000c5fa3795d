"""Grade a class: a folder of notebooks in, tables and a page of feedback for each student out.

python -m attnbook_course.checks grade SUBMISSIONS --set homework.json
    [--roster FILE] [--csv grades.csv] [--feedback DIR] [--jobs N] [--sandbox bwrap|none]

In SUBMISSIONS lies a notebook for each student, or a folder with one in it, as Moodle and Canvas
hand them out. The roster has a name a line, or is a table that Moodle or Canvas exported.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from attnbook_course.checks.grading.feedback import write_page
from attnbook_course.checks.grading.grade import Report, Result, graded
from attnbook_course.checks.grading.homework import BadHomework, Homework, counted, read_homework
from attnbook_course.checks.grading.notebook import Unreadable, chosen, read_notebook
from attnbook_course.checks.grading.pipe import in_one_line
from attnbook_course.checks.grading.roster import BadRoster, Person, handed_in, matched, read_roster
from attnbook_course.checks.grading.sandbox import Kind, NoSandbox, probed, shown
from attnbook_course.checks.grading.tables import (
    BadMarks,
    Graded,
    Marks,
    beside,
    read_marks,
    write_grades,
    write_tables,
    write_to_read,
)
from attnbook_course.checks.verdict import Verdict, describe_error

Handed = list[tuple[Person, list[Path] | None]]
ANOTHER_KEY = (
    "no notebook asks the questions of this key, which would mark right answers wrong. Nothing was "
    "graded. The notebooks were made with another SEED or HELD_OUT, are of another set, or older "
    "than its last change. Do: name the key that was made with them (HOMEWORK, or --set), or make "
    "it again: make homework SEED=… REPLACE=1"
)


def main(arguments: Sequence[str]) -> int:
    """The command; 2 if nothing can be graded."""
    options = _parser().parse_args(arguments)
    try:
        kind = probed(options.sandbox)
        homework = read_homework(options.set)
        if kind == "bwrap":
            _refuse_what_is_shown(options.set, options.submissions)
        if not options.submissions.is_dir():
            raise BadRoster(f"{options.submissions}: expected a folder with the notebooks")
        people = read_roster(options.roster) if options.roster else []
        marks = read_marks(beside(options.csv, "to-read"), homework) if options.csv else {}
        given, strangers = matched(handed_in(options.submissions), people)
        _refuse_another_key(options.set, homework, given)
    except (NoSandbox, BadHomework, BadRoster, BadMarks) as problem:
        _say(str(problem))
        return 2
    began = time.monotonic()
    class_: list[Graded] = []
    pages: list[Path] = []
    with warnings.catch_warnings(), ThreadPoolExecutor(options.jobs) as pool:
        warnings.simplefilter("ignore")  # a wrong answer may divide by zero
        jobs = [pool.submit(_tried, who, paths, homework, kind) for who, paths in given]
        for (person, _), job in zip(given, jobs, strict=True):
            report = job.result()
            _enter(report, marks)
            class_.append((person, report))
            _say(_line(report, homework))
            if options.csv:  # after each student, so that no end of the command loses the others
                write_grades(options.csv, homework, class_)
            if options.feedback and report.handed_in:
                write_page(options.feedback, homework, report, pages)
    _say(f"{counted(len(class_), 'student')} in {time.monotonic() - began:.0f} s, sandbox: {kind}")
    if people and strangers:
        _say(f"not in the roster, or there more than once: {', '.join(strangers)}")
    if options.csv:
        _write(options.csv, homework, class_, marks)
    if options.feedback:
        _say(f"written: {counted(len(pages), 'page')} in {options.feedback}")
    return 0


def _tried(person: Person, paths: list[Path] | None, homework: Homework, kind: Kind) -> Report:
    """The report on one student; whatever goes wrong here stops nobody else's."""
    try:
        return graded(person.name, paths, homework, kind)
    except Exception as error:
        words = f"the grader itself stopped: {in_one_line(describe_error(error))}"
        return Report(person.name, problem=f"{words}; your lecturer grades you again")


def _say(line: str) -> None:
    """Print a line, also where the terminal knows few characters."""
    coding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(line.encode(coding, "replace").decode(coding), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m attnbook_course.checks grade",
        description="Grade a class: a folder of notebooks in, tables and pages of feedback out.",
    )
    parser.add_argument("submissions", type=Path, help="the folder with the notebooks")
    parser.add_argument("--set", type=Path, required=True, help="the lecturer's homework.json")
    parser.add_argument("--roster", type=Path, help="names, or a table from Moodle or Canvas")
    parser.add_argument("--csv", type=Path, help="the table; others lie beside it")
    parser.add_argument("--feedback", type=Path, help="a folder for a page for each student")
    parser.add_argument("--jobs", type=int, default=2, help="students at a time")
    parser.add_argument("--sandbox", choices=["bwrap", "none"], default="bwrap")
    return parser


def _refuse_what_is_shown(*paths: Path) -> None:
    """No student may see the held-out checks, nor what others wrote."""
    for path in paths:
        if shown(path):
            words = "the sandbox shows this folder to the students' code"
            raise BadHomework(f"{path}: {words}. Do: keep it outside of Python's own folders")


def _refuse_another_key(path: Path, homework: Homework, given: Handed) -> None:
    """Where no notebook asks what the key judges, the key is the wrong one."""
    asked = set()
    for _, paths in given:
        with suppress(Unreadable):
            asked.add(read_notebook(chosen(paths or [], homework.name)).questions)
    if homework.questions and asked and asked.isdisjoint({"", homework.questions}):
        raise BadHomework(f"{path}: {ANOTHER_KEY}")


def _enter(report: Report, marks: Marks) -> None:
    """Put in the points and the words that a person gave for explanations."""
    for label in report.explanations:
        if (report.name, label) in marks:
            points, comment = marks[report.name, label]
            said = f"writes: {comment}" if comment else "has read this answer."
            verdict = Verdict("right" if points else "wrong", f"Your lecturer {said}")
            later = replace(report.results[label], comment=comment)  # has no points yet
            report.results[label] = later if points is None else Result(verdict, points, comment)


def _line(report: Report, homework: Homework) -> str:
    """One student in the terminal."""
    total = f"{report.total:g} of {homework.points:g}" if report.results else "not graded"
    remarks = in_one_line(report.remarks)
    return f"{in_one_line(report.name, 40):40} {total:>12} {report.seconds:6.1f} s  {remarks}"


def _write(table: Path, homework: Homework, class_: list[Graded], marks: Marks) -> None:
    files = [table, *write_tables(table, homework, class_)]
    _say(f"written: {', '.join(str(file) for file in files)}")
    to_read = beside(table, "to-read")
    if unread := write_to_read(to_read, homework, class_, marks):
        read = counted(unread, "explanation")
        _say(f"{read} to read: enter the points in {to_read}, and grade again")
    if missing := sum(not report.complete for _, report in class_):
        students = counted(missing, "student")
        _say(f"without points to import yet: {students}; 'notes' in {table} say why")
