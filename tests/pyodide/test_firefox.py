"""Firefox runs a cell, answers an exercise and stops a loop, on a site that has Pyodide itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from firefox import Firefox
from site_visits import SITE, served
from test_cells import CHAPTERS, FOLDER, PYODIDE

from attnbook_course.checks.exercises import exercises

CHAPTER = CHAPTERS[0]
PLAIN = "div.cell.runs:not([class*=tag_])"
LOOP = "while True:\n    pass"


@pytest.fixture(scope="module")
def own_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What `make pyodide` and `make book` make: the site, with the interpreter's files on it."""
    folder = tmp_path_factory.mktemp("site")
    for name, linked in (("", SITE), ("_static", SITE / "_static")):
        (folder / name).mkdir(exist_ok=True)
        for path in linked.iterdir():
            if path.name not in ("_static", "run", "pyodide"):
                (folder / name / path.name).symlink_to(path)
    (folder / "_static" / "pyodide").symlink_to(FOLDER)
    run = folder / "_static" / "run"
    run.mkdir()
    for path in (SITE / "_static" / "run").iterdir():
        if path.name != "python.json":
            (run / path.name).symlink_to(path)
    stored = json.loads((SITE / "_static/run/python.json").read_text(encoding="utf-8"))
    assert set(stored) >= set(PYODIDE)
    (run / "python.json").write_text(json.dumps(stored | {"from": ""}), encoding="utf-8")
    with served(folder) as address:
        yield address


def open_bar(firefox: Firefox, cell: str, code: str | None = None) -> None:
    """Show a cell, with other code if there is some."""
    firefox.run(f"""const cell = document.querySelector({json.dumps(cell)});
        for (let one = cell; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
        cell.scrollIntoView({{ block: "center", behavior: "instant" }});""")
    if code is not None:
        firefox.run(f"""const cell = document.querySelector({json.dumps(cell)});
            cell.querySelector("textarea")
              || [...cell.querySelectorAll(".run-bar button")].find(({{ textContent }}) =>
                ["Edit", "Write an answer"].includes(textContent)).click();
            const editor = cell.querySelector("textarea");
            editor.value = {json.dumps(code)};
            editor.dispatchEvent(new Event("input"));""")


def press(firefox: Firefox, cell: str, words: str) -> None:
    """A bar's button, by its words, with the mouse, once it is there."""
    firefox.wait(f"""document.querySelectorAll("[data-press]").forEach((one) => delete one.dataset.press);
        const bar = [...document.querySelectorAll({json.dumps(cell + " button")})];
        const button = bar.find(({{ textContent }}) => textContent === {json.dumps(words)});
        if (button) button.dataset.press = "";
        return button !== undefined;""")
    firefox.click("[data-press]")


def shown(cell: str) -> str:
    """What a cell shows now, as a script's expression."""
    return f'(document.querySelector("{cell} .run-output")?.textContent ?? "")'


def test_cells_exercises_and_stop(firefox, own_site):
    firefox.resize(390, 844)
    firefox.log.clear()
    firefox.go(f"{own_site}/chapters/{CHAPTER.stem}.html")
    first = firefox.run(f"""return [...document.querySelectorAll("{PLAIN}")].find((cell) =>
        cell.querySelector(".output.stream")).className.match(/cell-\\d+/)[0];""")
    cell = f"div.cell.{first}"
    stored = firefox.run(f'return document.querySelector("{cell} .output.stream pre").textContent')
    open_bar(firefox, cell)
    press(firefox, cell, "Run")
    press(firefox, cell, "Load and run")
    firefox.wait(f"return {shown(cell)}.trim() === {json.dumps(stored.strip())}")

    exercise = next(one for one in exercises(CHAPTER) if one.is_checked)
    place = firefox.run(f"""return [...document.querySelectorAll("div.cell.tag_exercise")].find((cell) =>
        cell.querySelector("pre").textContent.includes({json.dumps(exercise.check.__name__)}))
        .className.match(/cell-\\d+/)[0];""")
    asked = f"div.cell.{place}"
    right = f"{exercise.solution}\n\n{exercise.check_line}"
    wrong = re.sub(r"return .*", "return 0 * 7", right)
    for answer, sign in ((wrong, "!"), (right, "")):
        open_bar(firefox, asked, answer)
        press(firefox, asked, "Check")
        text = f"{shown(asked)}.trim()"
        firefox.wait(f"return {text} !== '' && {sign}{text}.startsWith('✓ ')")

    open_bar(firefox, cell, LOOP)
    press(firefox, cell, "Run")
    said = f'document.querySelector("{cell} .run-said").textContent'
    firefox.wait(f'return {said}.startsWith("Running")')
    press(firefox, cell, "Stop")
    firefox.wait(f'return {said}.includes("topped")')
    assert [line for line in firefox.log if line.startswith("error")] == []
