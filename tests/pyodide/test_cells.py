"""Every cell that the pages run, in Chromium under Pyodide: what it prints is what is stored.

Pyodide's files come from a folder, in place of its address, which the tests cannot reach.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "_ext"))

from attnbook_site.runnable import PYODIDE, cells_of, is_alive  # noqa: E402
from site_visits import visit  # noqa: E402

from attnbook_course.checks.exercises import exercises  # noqa: E402

FOLDER = ROOT / "_build" / "pyodide-tests"
KINDS = {"js": "text/javascript", "wasm": "application/wasm", "zip": "application/zip"}
CHAPTERS = sorted((ROOT / "chapters").glob("[0-9]*.md"))
WORKER = """name => {
  const worker = new Worker("../_static/run_worker.js", { name });
  window.ask = (message) => new Promise((answer) => {
    worker.onmessage = ({ data }) => { if (data.kind !== "status") answer(data); };
    worker.postMessage(message);
  });
}"""
STORED = """cell => [...cell.querySelectorAll(
  ".cell_output .output:is(.stream, .text_plain) pre")].map((pre) => pre.textContent).join("")"""

each = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
Ask = Callable[[int, str], list[dict[str, str]]]


def with_python(context: Any) -> Any:
    """A context whose requests to Pyodide's address the folder answers."""
    assert FOLDER.is_dir(), "Pyodide is missing: run make test STAGES=pyodide"

    def answer(route: Any) -> None:
        name = route.request.url.rsplit("/", 1)[1]
        route.fulfill(
            body=(FOLDER / name).read_bytes(),
            content_type=KINDS.get(name.rsplit(".", 1)[1], "application/octet-stream"),
            headers={"access-control-allow-origin": "*"},
        )

    context.route(f"{PYODIDE['from']}**", answer)
    return context


@pytest.fixture
def page(browser: Any, site: str) -> Iterator[Any]:
    context = with_python(browser.new_context(viewport={"width": 390, "height": 844}))
    opened = visit(context, site)
    yield opened
    context.close()


def asker(page: Any, chapter: Path) -> Ask:
    seen = page.go(f"chapters/{chapter.stem}.html")
    seen.set_default_timeout(300_000)
    seen.evaluate(WORKER, chapter.stem)

    def ask(place: int, code: str) -> list[dict[str, str]]:
        found = seen.evaluate("message => ask(message)", {"place": place, "code": code})
        assert found["kind"] == "shown", found["words"]
        return found["shown"]

    return ask


@each
def test_cells_print_what_is_stored(page, chapter):
    ask, tried = asker(page, chapter), 0
    for place, cell in enumerate(cells_of(chapter)):
        if place == 0 or cell.lacks or is_alive(cell.code):
            continue
        shown = ask(place, cell.code)
        printed = "".join(one["content"] for one in shown if one["kind"] == "text").strip()
        errors = [one["content"] for one in shown if one["kind"] == "error"]
        assert all("NotImplementedError" in error for error in errors), (place, errors)
        stored = page.page.locator(f"div.cell.cell-{place}").evaluate(STORED).strip()
        assert printed == stored or errors, place
        tried += 1
    assert tried >= 5


@each
def test_exercises_hear_their_answers(page, chapter):
    """The chapter's solution is right; the stub with a wrong word in it is not."""
    ask, cells, right = asker(page, chapter), cells_of(chapter), 0
    for exercise in exercises(chapter):
        if not exercise.is_checked:
            continue
        stub = exercise.stub.strip()
        place = next(i for i, cell in enumerate(cells) if cell.code.strip() == stub)
        if cells[place].lacks:
            continue
        answer = f"{exercise.solution}\n\n{exercise.check_line}"
        said = "".join(one["content"] for one in ask(place, answer))
        if "No module named" in said or "No cell above" in said:
            continue  # the answer takes PyTorch or JAX
        assert said.startswith("✓ "), (exercise.name, said)
        name = exercise.check.__name__
        wrong = re.sub(r"return .*", "return 0 * 7", answer)
        assert not "".join(one["content"] for one in ask(place, wrong)).startswith("✓ "), name
        right += 1
    print(chapter.stem, right, "exercises")
    assert right >= 3
