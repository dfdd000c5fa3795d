"""A page for each student: what every check says, in plain HTML without another host."""

from __future__ import annotations

import html
import re
from pathlib import Path

from attnbook_course.checks.grading.grade import Report, Result
from attnbook_course.checks.grading.homework import Homework, Task

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}: {name}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 1.0625rem/1.5 serif; max-width: 42rem; margin: 2rem auto; padding: 0 1rem;
  overflow-wrap: anywhere; }}
li {{ margin: 1rem 0; }}
</style>
<main>
<h1>{title}</h1>
<p>{name}</p>
<p><strong>{total:g} of {most:g} points</strong>{unread}</p>
{problem}<ol>
{rows}
</ol>
<p>Each line is what the exercise's check said of your function. ✓ is right, ✗ is wrong (perhaps
with points for a part), and … is not written or not read yet.</p>
</main>
</html>
"""
ROW = "<li><strong>{title}</strong>, {points}<br>{said}</li>"


def page(report: Report, homework: Homework) -> str:
    """The page; whatever a student wrote is escaped."""
    rows = [
        _row(task, report.results[task.label])
        for task in homework.tasks
        if task.label in report.results
    ]
    unread = sum(result.points is None for result in report.results.values())
    later = f" so far; {unread} more to be read by your lecturer" if unread else ""
    problem = html.escape(report.problem)
    return PAGE.format(
        title=html.escape(homework.title),
        name=html.escape(report.name),
        total=report.total,
        most=homework.points,
        unread=later,
        problem=f"<p>Not graded: {problem}.</p>\n" if problem else "",
        rows="\n".join(rows),
    )


def _row(task: Task, result: Result) -> str:
    of = f"{task.points:g} points"
    return ROW.format(
        title=html.escape(task.title),
        points=f"{of}, to be read" if result.points is None else f"{result.points:g} of {of}",
        said=html.escape(str(result.verdict)),
    )


def write_page(folder: Path, homework: Homework, report: Report, written: list[Path]) -> None:
    """Write a student's page, whose name cannot leave the folder; add its file to those written."""
    folder.mkdir(parents=True, exist_ok=True)
    path = _free(folder, report.name, written)
    path.write_text(page(report, homework), encoding="utf-8", errors="replace")
    written.append(path)


def _free(folder: Path, name: str, taken: list[Path]) -> Path:
    """A file of this name, or nearly so: no folder, no hidden file, none twice."""
    stem = re.sub(r"[^\w.@ -]", "_", name)[:100].strip(". ") or "student"
    path, number = folder / f"{stem}.html", 2
    while str(path).casefold() in {str(one).casefold() for one in taken}:
        path, number = folder / f"{stem}-{number}.html", number + 1
    return path
