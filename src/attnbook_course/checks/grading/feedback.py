"""A page for each student: their answers and what the checks say, in HTML without another host."""

from __future__ import annotations

import html
import re
from pathlib import Path

from attnbook_course.checks.grading.grade import Report, Result
from attnbook_course.checks.grading.homework import Homework, Task, counted

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}: {name}</title>
<style>
:root {{ color-scheme: light dark; --line: color-mix(in srgb, currentColor 30%, transparent); }}
body {{ font: 1.0625rem/1.5 serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
  overflow-wrap: anywhere; }}
section {{ display: grid; column-gap: 2rem; border-top: 1px solid var(--line); padding: 1rem 0; }}
h2 {{ font-size: 1.125rem; margin: 0; }}
p {{ margin: 0.5rem 0; }}
pre {{ font-size: 0.875rem; margin: 0; padding: 0.75rem; border: 1px solid var(--line);
  overflow-x: auto; overflow-wrap: normal; }}
pre.explained {{ font: inherit; white-space: pre-wrap; overflow-wrap: anywhere; }}
@media (min-width: 60rem) {{ section {{ grid-template-columns: 24rem minmax(0, 1fr); }} }}
</style>
<main>
<h1>{title}</h1>
<p>{name}</p>
<p><strong>{points}</strong></p>
{rows}
</main>
</html>
"""
ROW = """<section>
<div>
<h2>{number}. {title}</h2>
<p>{points}</p>
<p>{said}</p>{places}
</div>
{answer}
</section>"""
ANSWER = (
    """<pre class="{kind}" tabindex="0" role="region" aria-label="your answer">{answer}</pre>"""
)
NEXT = """<p>What next? Take the exercises without a ✓ one at a time: read what is said of your
answer, look at the exercise in the book, mend your cell and run it again. A cell with
<code>checks.trial</code> does not say whether it is right: compare what it gives with what is said
here. If you think that a check is wrong, show this page to your lecturer.</p>"""


def page(report: Report, homework: Homework) -> str:
    """The page; whatever a student wrote is escaped."""
    total = f"{report.total:g} of {counted(homework.points, 'point')}"
    if report.unread:
        points = sum(task.points for task in homework.tasks if task.label in report.unread)
        answers = f"{counted(len(report.unread), 'answer')} worth {counted(points, 'point')}"
        total += f" so far; your lecturer has still to read {answers}"
    tasks = homework.tasks if report.results else ()
    rows = [_row(number, task, report) for number, task in enumerate(tasks, 1)]
    if any(report.results[task.label].points not in (None, task.points) for task in tasks):
        rows.append(NEXT)
    return PAGE.format(
        title=html.escape(homework.title),
        name=html.escape(report.name),
        points=f"Not graded: {html.escape(report.problem)}." if report.problem else total,
        rows="\n".join(rows),
    )


def _row(number: int, task: Task, report: Report) -> str:
    """One exercise: what is said of it, beside what the student wrote."""
    result, answer = report.results[task.label], report.written.get(task.label, "")
    if task.function and result.verdict.status == "not yet":
        answer = ""  # but the stub
    return ROW.format(
        number=number,
        title=html.escape(task.title),
        points=_points(result, task.points),
        said=html.escape(result.verdict.message),
        places=_places(task),
        answer=answer and ANSWER.format(kind=task.kind, answer=html.escape(answer)),
    )


def _points(result: Result, most: float) -> str:
    """An exercise's points after a sign; ✓ is for all of them alone."""
    if result.points is None:
        return f"… {counted(most, 'point')}, not read yet"
    sign = "…" if result.verdict.status == "not yet" else "✗"
    sign = "✓" if result.points == most else "◐" if result.points else sign
    return f"{sign} {result.points:g} of {counted(most, 'point')}"


def _places(task: Task) -> str:
    """Where the book has the exercise and what it rests on; a key may not say it."""
    places = [(html.escape(words), html.escape(address)) for words, address in task.places]
    found = [f'<a href="{to}">{words}</a>' if to else words for words, to in places]
    return f"\n<p>In the book: {'; '.join(found)}.</p>" if found else ""


def write_page(folder: Path, homework: Homework, report: Report, written: list[Path]) -> None:
    """Write a student's page, whose name cannot leave the folder; add its file to those written."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"[^\w.@ -]", "_", report.name)[:100].strip(". ") or "student"
    path, number = folder / f"{stem}.html", 2
    while str(path).casefold() in {str(one).casefold() for one in written}:
        path, number = folder / f"{stem}-{number}.html", number + 1
    path.write_text(page(report, homework), encoding="utf-8", errors="replace")
    written.append(path)
