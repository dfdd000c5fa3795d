"""Grade a class: a folder of notebooks in, tables and a page of feedback for each student out.

python -m attnbook.checks grade SUBMISSIONS --set homework.json [--roster FILE] [--csv grades.csv]
    [--feedback DIR] [--jobs N] [--sandbox auto|bwrap|none]

In SUBMISSIONS lies a notebook for each student, or a folder with one in it, as Moodle and Canvas
hand them out. The roster has a name a line, or is a table that Moodle or Canvas exported.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attnbook.checks.grading.feedback import write_feedback
from attnbook.checks.grading.grade import Report, Result, graded
from attnbook.checks.grading.homework import BadHomework, Homework, read_homework
from attnbook.checks.grading.roster import BadRoster, handed_in, matched, read_roster
from attnbook.checks.grading.sandbox import NoSandbox, probed, shown
from attnbook.checks.grading.tables import (
    BadMarks,
    Graded,
    beside,
    read_marks,
    write_tables,
    write_to_read,
)
from attnbook.checks.verdict import Verdict

MARKS = {"right": "✓", "wrong": "✗", "not yet": "…"}


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
    except (NoSandbox, BadHomework, BadRoster, BadMarks) as problem:
        print(problem)
        return 2
    given, strangers = matched(handed_in(options.submissions), people)
    began = time.monotonic()
    with warnings.catch_warnings(), ThreadPoolExecutor(options.jobs) as pool:
        warnings.simplefilter("ignore")  # a wrong answer may divide by zero
        jobs = [pool.submit(graded, who.name, paths, homework, kind) for who, paths in given]
        class_: list[Graded] = []
        for (person, _), job in zip(given, jobs, strict=True):
            report = job.result()
            _enter(report, marks)
            class_.append((person, report))
            print(_line(report, homework), flush=True)
    print(f"{len(class_)} students in {time.monotonic() - began:.0f} s, sandbox: {kind}")
    if people and strangers:
        print(f"not in the roster, or there more than once: {', '.join(strangers)}")
    _write(options, homework, class_)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m attnbook.checks grade",
        description="Grade a class: a folder of notebooks in, tables and pages of feedback out.",
    )
    parser.add_argument("submissions", type=Path, help="the folder with the notebooks")
    parser.add_argument("--set", type=Path, required=True, help="the lecturer's homework.json")
    parser.add_argument("--roster", type=Path, help="names, or a table from Moodle or Canvas")
    parser.add_argument("--csv", type=Path, help="the table; Moodle's and Canvas's lie beside it")
    parser.add_argument("--feedback", type=Path, help="a folder for a page for each student")
    parser.add_argument("--jobs", type=int, default=2, help="students at a time")
    parser.add_argument("--sandbox", choices=["auto", "bwrap", "none"], default="auto")
    return parser


def _refuse_what_is_shown(*paths: Path) -> None:
    """No student may see the held-out checks, nor what others wrote."""
    for path in paths:
        if shown(path):
            words = "the sandbox shows this folder to the students' code"
            raise BadHomework(f"{path}: {words}. Do: keep it outside of Python's own folders")


def _enter(report: Report, marks: dict[tuple[str, str], float]) -> None:
    """Put in the points that a person gave for explanations."""
    for label in report.explanations:
        if (report.name, label) in marks:
            points = marks[report.name, label]
            verdict = Verdict("right" if points else "wrong", "your lecturer has read this answer.")
            report.results[label] = Result(verdict, points)


def _line(report: Report, homework: Homework) -> str:
    """One student in the terminal."""
    signs = [
        MARKS[report.results[t.label].verdict.status] for t in homework.tasks if report.results
    ]
    total = f"{report.total:g} of {homework.points:g}" if report.results else "not graded"
    notes = "; ".join(filter(None, [report.problem, *report.notes]))
    return f"{report.name[:40]:40} {''.join(signs):12} {total:>12} {report.seconds:6.1f} s  {notes}"


def _write(options: argparse.Namespace, homework: Homework, class_: list[Graded]) -> None:
    if options.csv:
        files = write_tables(options.csv, homework, class_)
        print(f"written: {', '.join(str(file) for file in files)}")
        to_read = beside(options.csv, "to-read")
        if unread := write_to_read(to_read, homework, class_):
            print(f"{unread} explanations to read: enter their points in {to_read}, grade again")
        if missing := sum(not report.complete for _, report in class_):
            print(f"{missing} students are not in Moodle's and Canvas's files: see 'notes'")
    if options.feedback:
        pages = write_feedback(options.feedback, homework, (report for _, report in class_))
        print(f"written: {len(pages)} pages in {options.feedback}")
