"""A page for each student: what every check says, in plain HTML without another host."""

from __future__ import annotations

import html
import re
from pathlib import Path

from attnbook_course.checks.grading.grade import Report
from attnbook_course.checks.grading.homework import Homework

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}: {name}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 1.0625rem/1.5 serif; max-width: 42rem; margin: 2rem auto; overflow-wrap: anywhere; }}
</style>
<main>
<h1>{title}</h1>
<p>{name}</p>
<p><strong>{points}</strong></p>
<ol>
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
    rows = []
    for task in homework.tasks if report.results else ():
        result, of = report.results[task.label], f"{task.points:g} points"
        points = f"{of}, to be read" if result.points is None else f"{result.points:g} of {of}"
        said = html.escape(str(result.verdict))
        rows.append(ROW.format(title=html.escape(task.title), points=points, said=said))
    unread = sum(result.points is None for result in report.results.values())
    total = f"{report.total:g} of {homework.points:g} points"
    later = f" so far; {unread} more to be read by your lecturer" if unread else ""
    return PAGE.format(
        title=html.escape(homework.title),
        name=html.escape(report.name),
        points=f"Not graded: {html.escape(report.problem)}." if report.problem else total + later,
        rows="\n".join(rows),
    )


def write_page(folder: Path, homework: Homework, report: Report, written: list[Path]) -> None:
    """Write a student's page, whose name cannot leave the folder; add its file to those written."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"[^\w.@ -]", "_", report.name)[:100].strip(". ") or "student"
    path, number = folder / f"{stem}.html", 2
    while str(path).casefold() in {str(one).casefold() for one in written}:
        path, number = folder / f"{stem}-{number}.html", number + 1
    path.write_text(page(report, homework), encoding="utf-8", errors="replace")
    written.append(path)
