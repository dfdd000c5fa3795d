"""The grades as tables: for the lecturer, for Moodle or Canvas, and what a person has to read."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from attnbook_course.checks.grading.grade import Report
from attnbook_course.checks.grading.homework import Homework
from attnbook_course.checks.grading.pipe import printable
from attnbook_course.checks.grading.roster import CANVAS, MOODLE, NOT_UTF8, Person, cells_of

TO_READ = ("student", "exercise", "model answer", "answer", "points", "comment")
NEEDED = ("student", "exercise", "points", "comment")
FORMULA = re.compile(r"\s*[-=+@−＝＋－＠]")  # what a spreadsheet may take for one's beginning
FOR_EXCEL = "utf-8-sig"  # without a mark at the beginning it shows Ã‰mile
Graded = tuple[Person, Report]
Marks = dict[tuple[str, str], tuple[float | None, str]]  # points, comment, by student and label


class BadMarks(ValueError):
    """What is wrong with the table in which a person enters points."""


def beside(table: Path, which: str) -> Path:
    """The file of another table: grades-moodle.csv beside grades.csv."""
    return table.with_name(f"{table.stem}-{which}.csv")


def write_grades(table: Path, homework: Homework, graded: Sequence[Graded]) -> None:
    """Write the table with a row for every student."""
    labels = [task.label for task in homework.tasks]
    head = ["student", *labels, "points", "of", "complete", "notes"]
    _write(table, [head, *(_row(report, labels, homework) for _, report in graded)], FOR_EXCEL)


def write_tables(table: Path, homework: Homework, graded: Sequence[Graded]) -> list[Path]:
    """Write the table that Moodle or Canvas reads, if the roster came from there.

    It has only whose points are all in.
    """
    columns, title = {name for person, _ in graded for name in person.columns}, homework.title
    canvas = [*CANVAS, title], ["Points Possible", "", "", "", "", f"{homework.points:g}"]
    written = []
    for which, own, head in (("moodle", MOODLE, ([*MOODLE, title],)), ("canvas", CANVAS, canvas)):
        if columns & {*own}:
            complete = [(person, report) for person, report in graded if report.complete]
            rows = [[*map(who.column, own), f"{report.total:g}"] for who, report in complete]
            written.append(beside(table, which))
            _write(written[-1], [*head, *rows])
    return written


def _row(report: Report, labels: list[str], homework: Homework) -> list[str]:
    points = [report.results[label].points if report.results else None for label in labels]
    return [
        report.name,
        *("to read" if one is None and report.results else _number(one) for one in points),
        f"{report.total:g}" if report.results else "",
        f"{homework.points:g}",
        "yes" if report.complete else "no",
        report.remarks,
    ]


def _number(points: float | None) -> str:
    return "" if points is None else f"{points:g}"


def write_to_read(path: Path, homework: Homework, graded: Iterable[Graded], marks: Marks) -> int:
    """Write every explanation with the points that a person gave, or with none; how many of them.

    Marks that were entered before, see read_marks, are kept, also of whom nothing is there today.
    """
    found = [
        (report.name, task, report.explanations[task.label], report.results[task.label])
        for _, report in graded
        for task in homework.tasks
        if task.label in report.explanations and task.label in report.results
    ]
    rows = [
        [name, task.label, task.answer, answer, _number(result.points), result.comment]
        for name, task, answer, result in found
    ]
    kept = {
        key: mark for key, mark in marks.items() if key not in {(row[0], row[1]) for row in rows}
    }
    rows += [[*who, "", "", _number(one), comment] for who, (one, comment) in kept.items()]
    if rows:
        _write(path, [list(TO_READ), *rows], FOR_EXCEL)
    return sum(result.points is None for *_, result in found)


def read_marks(path: Path, homework: Homework) -> Marks:
    """The points and comments that a person entered in the table of explanations.

    Raises:
        BadMarks: another encoding, a column that is missing, an exercise that nobody explains, or
            points that are no number, or too many.
    """
    if not path.exists():
        return {}
    try:
        head, *rows = cells_of(path.read_text("utf-8-sig")) or [[]]
    except (UnicodeDecodeError, csv.Error):
        raise BadMarks(f"got {path} in another encoding or form, {NOT_UTF8}") from None
    if missing := [name for name in NEEDED if name not in head]:
        words = f"got a first line {', '.join(head)[:100]!r}, expected {', '.join(TO_READ)}"
        raise BadMarks(f"{path}: no column {', '.join(missing)}: {words}")
    most = {task.label: task.points for task in homework.tasks if task.kind == "explained"}
    found: Marks = {}
    for cells in rows:
        row = dict(zip_longest(head, cells, fillvalue=""))
        student, label, entered, comment = (_plain(row[name].strip()) for name in NEEDED)
        where = f"{path}: {student}, {label}"
        if (entered or comment) and label not in most:
            raise BadMarks(f"{where}: got {label!r}, expected an exercise of {', '.join(most)}")
        if entered or comment:
            points = _points(entered.replace(",", "."), most[label], where) if entered else None
            found[student, label] = points, comment
    return found


def _points(entered: str, most: float, where: str) -> float:
    refused = BadMarks(f"{where}: got {entered!r}, expected points from 0 to {most:g}")
    try:
        points = float(entered)
    except ValueError:
        raise refused from None
    if not 0 <= points <= most:
        raise refused
    return points


def _write(path: Path, rows: Iterable[Sequence[Any]], coding: str = "utf-8") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")  # the old table stays until the new one is whole
    with part.open("w", newline="", encoding=coding, errors="replace") as file:
        csv.writer(file).writerows([_safe(str(cell)) for cell in row] for row in rows)
    part.replace(path)


def _safe(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula, and no terminal for a command."""
    plain = printable(cell)
    return f"'{plain}" if plain.startswith("\t") or FORMULA.match(plain) else plain


def _plain(cell: str) -> str:
    """What a cell was before _safe."""
    return cell[1:] if cell.startswith("'") and _safe(cell[1:]) != cell[1:] else cell
