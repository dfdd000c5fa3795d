"""The grades as tables: for the lecturer, for Moodle, for Canvas, and what a person has to read."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from attnbook.checks.grading.grade import Report
from attnbook.checks.grading.homework import Homework
from attnbook.checks.grading.roster import CANVAS, MOODLE, Person

TO_READ = ("student", "exercise", "answer", "points")
Graded = tuple[Person, Report]


class BadMarks(ValueError):
    """What is wrong with the points that a person entered."""


def beside(table: Path, which: str) -> Path:
    """The file of another table: grades-moodle.csv beside grades.csv."""
    return table.with_name(f"{table.stem}-{which}.csv")


def write_tables(table: Path, homework: Homework, graded: Sequence[Graded]) -> list[Path]:
    """Write all tables beside this one; Moodle's and Canvas's have only whose points are all in."""
    labels = [task.label for task in homework.tasks]
    head = ["student", *labels, "points", "of", "complete", "notes"]
    rows = [_row(report, labels, homework) for _, report in graded]
    _write(table, [head, *rows])
    complete = [(person, report) for person, report in graded if report.complete]
    title = homework.title
    moodle = [[*MOODLE, title, f"{title} (feedback)"]]
    moodle += [
        [*(person.column(name) for name in MOODLE), f"{report.total:g}", _in_words(report)]
        for person, report in complete
    ]
    canvas = [[*CANVAS, title], ["Points Possible", "", "", "", "", f"{homework.points:g}"]]
    canvas += [
        [*(person.column(name) for name in CANVAS), f"{report.total:g}"]
        for person, report in complete
    ]
    _write(beside(table, "moodle"), moodle)
    _write(beside(table, "canvas"), canvas)
    return [table, beside(table, "moodle"), beside(table, "canvas")]


def _row(report: Report, labels: list[str], homework: Homework) -> list[str]:
    points = [report.results[label].points if report.results else None for label in labels]
    return [
        report.name,
        *("to read" if one is None and report.results else _number(one) for one in points),
        f"{report.total:g}" if report.results else "",
        f"{homework.points:g}",
        "yes" if report.complete else "no",
        "; ".join(filter(None, [report.problem, *report.notes])),
    ]


def _number(points: float | None) -> str:
    return "" if points is None else f"{points:g}"


def _in_words(report: Report) -> str:
    """Every verdict in one cell, as the feedback of Moodle takes it."""
    lines = [str(result.verdict) for result in report.results.values()]
    return " | ".join(lines) if report.handed_in else report.problem


def write_to_read(path: Path, homework: Homework, graded: Iterable[Graded]) -> int:
    """Write every explanation with the points that a person gave, or with none; how many of them.

    Points that were entered before are kept: see read_marks.
    """
    rows = [
        [report.name, task.label, report.explanations[task.label], _number(points)]
        for _, report in graded
        for task in homework.tasks
        if task.label in report.explanations
        for points in [report.results[task.label].points]
    ]
    if rows:
        _write(path, [list(TO_READ), *rows])
    return sum(not row[-1] for row in rows)


def read_marks(path: Path, homework: Homework) -> dict[tuple[str, str], float]:
    """The points that a person entered in the table of explanations; by student and label.

    Raises:
        BadMarks: points that are no number, or too many.
    """
    if not path.exists():
        return {}
    most = {task.label: task.points for task in homework.tasks if task.kind == "explained"}
    found = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            where = f"{path}: {row.get('student')}, {row.get('exercise')}"
            entered = (row.get("points") or "").strip().replace(",", ".")
            if entered and row.get("exercise") in most:
                found[_plain(row["student"]), row["exercise"]] = _points(
                    entered, most[row["exercise"]], where
                )
    return found


def _points(entered: str, most: float, where: str) -> float:
    try:
        points = float(entered)
    except ValueError:
        points = -1.0
    if not 0 <= points <= most:
        raise BadMarks(f"{where}: got {entered!r}, expected points from 0 to {most:g}")
    return points


def _write(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8", errors="replace") as file:
        csv.writer(file).writerows([_safe(str(cell)) for cell in row] for row in rows)


def _safe(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def _plain(cell: str) -> str:
    """What a cell was before _safe."""
    return cell[1:] if cell.startswith("'") and _safe(cell[1:]) != cell[1:] else cell
