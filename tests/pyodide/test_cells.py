"""Cells in Chromium under Pyodide: what they print is what is stored; answers to exercises are heard.

Pyodide's files come from a folder, in place of its address, which the tests cannot reach.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "_ext"))

from attnbook_site.runnable import PYODIDE, cells_of, is_alive  # noqa: E402
from site_visits import Visit, visit  # noqa: E402

from attnbook_course.checks.exercises import exercises  # noqa: E402
from attnbook_course.mine import tail  # noqa: E402

FOLDER = ROOT / "_build" / "pyodide-tests"
KINDS = {"js": "text/javascript", "wasm": "application/wasm", "zip": "application/zip"}
CHAPTERS = sorted((ROOT / "chapters").glob("[0-9]*.md"))
BOOKS = re.compile(
    r"\A\w+: the book's\.\nBuild your own in chapter \d\.\n"
)  # mine.use, in an answer
PAGES = [*CHAPTERS, ROOT / "chapters" / "just-enough-network.md"]  # which has no exercises
PATIENCE = 300_000
# What a page leaves out, or says elsewhere: an exercise without an answer, the machine of a measurement.
UNSHOWN = re.compile(r"^… .*|^\d{4}-\d\d-\d\d [^\n]*; Python [^\n]*\n?", re.DOTALL)
MINUS = re.compile(r"-(?=0\.0+\b)")  # of a number that rounds to zero: it is the processor's
WORKER = """name => {
  const worker = new Worker("../_static/run_worker.js", { name });
  window.ask = (message) => new Promise((answer) => {
    worker.onmessage = ({ data }) => { if (data.kind !== "status") answer(data); };
    worker.postMessage(message);
  });
}"""
STORED = """cell => [...cell.querySelectorAll(
  ".cell_output .output:is(.stream, .text_plain) pre")].map((pre) => pre.textContent).join("")"""


@pytest.fixture
def opened(browser: Any, site: str) -> Iterator[Visit]:
    """A phone whose requests to Pyodide's address the folder answers."""
    assert FOLDER.is_dir(), "Pyodide is missing: run make test STAGES=pyodide"

    def answer(route: Any) -> None:
        name = route.request.url.rsplit("/", 1)[1]
        route.fulfill(
            body=(FOLDER / name).read_bytes(),
            content_type=KINDS.get(name.rsplit(".", 1)[1], "application/octet-stream"),
            headers={"access-control-allow-origin": "*"},
        )

    context = browser.new_context(viewport={"width": 390, "height": 844})
    context.route(f"{PYODIDE['from']}**", answer)
    yield visit(context, site)
    context.close()


def asker(opened: Visit, chapter: Path) -> Callable[[int, str], list[dict[str, str]]]:
    """What sends some code in a cell's place to the interpreter."""
    page = opened.go(f"chapters/{chapter.stem}.html")
    page.set_default_timeout(PATIENCE)
    page.evaluate(WORKER, chapter.stem)

    def ask(place: int, code: str) -> list[dict[str, str]]:
        found = page.evaluate("message => ask(message)", {"place": place, "code": code})
        assert found["kind"] == "shown", found["words"]
        return found["shown"]

    return ask


@pytest.mark.parametrize("chapter", PAGES, ids=lambda path: path.stem)
def test_cells_print_what_is_stored_and_exercises_hear_their_answers(
    opened: Visit, chapter: Path
) -> None:
    """The chapter's solution is right; the same with a wrong word in it is not."""
    ask, cells, tried, right = asker(opened, chapter), cells_of(chapter), 0, 0
    wrong: list[tuple[int, object]] = []
    for place, cell in enumerate(cells):
        if place == 0 or cell.lacks or is_alive(cell.code):
            continue
        shown = ask(place, cell.code)
        printed = "".join(one["content"] for one in shown if one["kind"] == "text").strip()
        errors = [one["content"] for one in shown if one["kind"] == "error"]
        stored = opened.page.locator(f"div.cell.cell-{place}").evaluate(STORED).strip()
        if errors and not all("NotImplementedError" in error for error in errors):
            wrong.append((place, errors))
        elif (
            not errors
            and "perf_counter(" not in cell.code  # what is timed differs from run to run
            and MINUS.sub(" ", UNSHOWN.sub("", printed)) != MINUS.sub(" ", stored)
        ):
            wrong.append((place, (printed, stored)))
        tried += 1
    assert not wrong
    for exercise in exercises(chapter):
        stub = exercise.stub.strip() if exercise.is_checked else ""
        place = next((i for i, cell in enumerate(cells) if cell.code.strip() == stub), 0)
        if not place or cells[place].lacks:
            continue
        answer = f"{exercise.solution}\n\n{exercise.check_line}"
        said = "".join(one["content"] for one in ask(place, answer))
        if "No module named" in said or "No cell above" in said:
            continue  # the answer takes PyTorch or JAX
        assert BOOKS.sub("", said).startswith("✓ "), (exercise.name, said)
        changed = re.sub(r"return .*", "return 0 * 7", answer)
        said = "".join(one["content"] for one in ask(place, changed))
        assert not BOOKS.sub("", said).startswith("✓ "), exercise.name
        right += 1
    assert tried >= 5 and (right >= 3 or chapter not in CHAPTERS)


def test_a_reader_runs_a_cell_answers_an_exercise_and_stops_a_loop(opened: Visit) -> None:
    """With the page's own buttons; a wrong answer hears more at each press, a right one is ticked."""
    exercise = next(one for one in exercises(CHAPTERS[0]) if one.label == "ex-parabola")
    page = opened.go(f"chapters/{CHAPTERS[0].stem}.html")
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    cell = page.locator("div.cell.runs:not([class*=tag_]):has(.output.stream)").first
    stored = cell.locator(".output.stream pre").first.inner_text()
    cell.get_by_role("button", name="Run").click()
    cell.get_by_role("button", name="Load and run").click()
    expect(cell.locator(".run-output")).to_contain_text(stored.strip())
    asked = page.locator("div.cell.tag_exercise", has_text=exercise.check.__name__).first
    asked.get_by_role("button", name="Write an answer").click()
    answer, known = f"{exercise.solution}\n\n{exercise.check_line}", ("u**2", "np.abs(u)")
    card, said = asked.locator(".."), asked.locator(".run-output")
    asked.locator("textarea").fill(answer.replace(*known))
    asked.get_by_role("button", name="Check").click()
    expect(said).to_contain_text("expected")
    told, link = ["u is not squared", exercise.hint.strip()[:20], "Read “"], said.locator("a")
    for i, name in enumerate(("What could it be?", "A hint", "Where it is explained")):
        assert not any(words in said.inner_text() for words in told[i:])
        asked.get_by_role("button", name=name).press("Enter")
        expect(said).to_contain_text(told[i])
    assert page.locator(link.get_attribute("href")).count() == 1
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    asked.get_by_role("button", name="Copy for my assistant").click()
    copied = asked.get_by_role("textbox", name="The text for an assistant").input_value()
    for words in (answer.replace(*known), *told, "$1 - u^2$", "Do not solve it"):
        assert words in copied
    assert not card.locator("details.solution").evaluate("one => one.open")
    asked.get_by_role("button", name="The solution").click()
    assert card.locator("details.solution").evaluate("one => one.open")
    asked.locator("textarea").first.fill(answer)
    asked.get_by_role("button", name="Check").click()
    expect(said).to_contain_text("✓ ")
    assert asked.locator(".run-next").count() == 0
    assert page.locator(f"[data-exercise={exercise.label}]").is_checked()
    cell.get_by_role("button", name="Edit").click()
    cell.locator("textarea").fill("while True:\n    pass")
    cell.get_by_role("button", name="Run").click()
    expect(cell.locator(".run-said")).to_contain_text("Running")
    cell.get_by_role("button", name="Stop").click()
    expect(cell.locator(".run-said")).to_contain_text("Stopped")
    page.reload()
    assert exercise.check_line in asked.locator("textarea").input_value()
    assert not opened.complaints


BUILT = """
def squares(queries, keys):
    return ((queries[:, None] - keys) ** 2).sum(-1)

def nadaraya_watson(queries, keys, values, bandwidth):
    d = squares(queries, keys)
    k = np.exp((d.min(1, keepdims=True) - d) / (2 * bandwidth**2))
    return k / k.sum(1, keepdims=True) @ values

"""


def test_a_build_is_saved_to_a_file_read_from_it_and_used_in_another_chapter(
    opened: Visit, tmp_path: Path
) -> None:
    """As by a reader who changes the browser: what is kept there is lost, and the file has it."""
    page = opened.go(f"chapters/{CHAPTERS[0].stem}.html")
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    build = page.locator(".exercise-card:has(> .build) div.cell")
    build.get_by_role("button", name="Download").click()
    expect(build.locator(".files-said")).to_contain_text("Nothing is built yet")
    build.get_by_role("button", name="Write an answer").click()
    build.locator("textarea").fill(BUILT)  # without the line of its check
    build.get_by_role("button", name="Check").click()
    build.get_by_role("button", name="Load and run").click()
    expect(build.locator(".run-output")).to_contain_text("Kept in mine.py.")
    build.locator("textarea").fill(BUILT.replace("nadaraya_watson(", "my_own("))
    build.get_by_role("button", name="Check").click()
    expect(build.locator(".run-output")).to_contain_text("your cell has my_own: is it that?")
    with page.expect_download() as saved:
        build.get_by_role("button", name="Download").click()
    saved.value.save_as(tmp_path / "mine.py")
    assert (tmp_path / "mine.py").read_text("utf-8").endswith(tail())
    page.evaluate(
        "localStorage.removeItem('attnbook-drafts'); localStorage.removeItem('attnbook-mine')"
    )
    page.reload()
    expect(build.locator("textarea")).to_have_count(0)
    (tmp_path / "other.py").write_text("def another(x):\n    return x\n", "utf-8")
    build.locator("input[type=file]").set_input_files(tmp_path / "other.py")
    expect(build.locator(".files-said")).to_contain_text("other.py has no function of a build")
    build.locator("input[type=file]").set_input_files(tmp_path / "mine.py")
    expect(build.locator(".files-said")).to_contain_text("Taken from mine.py: 1 draft and mine.py.")
    assert "def squares(queries, keys)" in build.locator("textarea").input_value()
    page.reload()
    assert "def squares(queries, keys)" in build.locator("textarea").input_value()
    opened.go(f"chapters/{CHAPTERS[2].stem}.html")
    cell = page.locator("div.cell.runs:not([class*=tag_])").first
    cell.get_by_role("button", name="Edit").click()
    code = "from attnbook_course import mine\nown = mine.use('nadaraya_watson')\n"
    cell.locator("textarea").fill(f"{code}own(np.eye(2), np.eye(2), np.eye(2), 1e-3)")
    cell.get_by_role("button", name="Run").click()
    expect(cell.locator(".run-output")).to_contain_text("nadaraya_watson: yours, from mine.py.")
    expect(cell.locator(".run-output")).to_contain_text("[1., 0.]")
    assert not opened.complaints
