"""What stands beside the chapters: the exercises' progress, what comes next, what code ran on."""

from __future__ import annotations

import html
import json
import re
from datetime import date

import pytest
import yaml
from playwright.sync_api import Page
from site_visits import ROOT, SITE, Visit, pages_of

from attnbook_course.checks.exercises import exercises

OVERVIEW = "appendices/exercises.html"
SOURCES = sorted((ROOT / "chapters").glob("[0-9]*.md"))
EXERCISES = [exercise for source in SOURCES for exercise in exercises(source)]


def page_of(exercise: object) -> str:
    return f"chapters/{exercise.chapter.stem}.html#{exercise.label}"


def text_of(path: str) -> str:
    """A page's HTML, with blanks for runs of white space and its entities resolved."""
    return html.unescape(re.sub(r"\s+", " ", (SITE / path).read_text(encoding="utf-8")))


def boxes(page: Page) -> dict[str, bool]:
    """Every box of a page by its exercise: whether it is ticked."""
    found = page.locator("[data-exercise]")
    pairs = found.evaluate_all("all => all.map(box => [box.dataset.exercise, box.checked])")
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def test_the_overview_lists_every_exercise_with_level_time_and_link() -> None:
    """As the chapters have them, numbers included."""
    text = re.sub(r"<[^>]+>", "", text_of(OVERVIEW))
    for exercise in EXERCISES:
        line = f"{exercise.name} · {exercise.level}, {exercise.minutes} minutes, {exercise.kinds}"
        assert line in text, line
        assert f'href="../{page_of(exercise)}"' in text_of(OVERVIEW)
        number = exercise.name.split()[0]
        assert f"Exercise {number}" in text_of(page_of(exercise).split("#")[0])


def test_what_is_ticked_at_an_exercise_is_ticked_in_the_overview(open_page: Visit) -> None:
    """And stays after a reload, until it is unticked there; nothing is sent anywhere."""
    first, second = EXERCISES[0], EXERCISES[1]
    page = open_page.go(page_of(first))
    assert boxes(page) == {e.label: False for e in EXERCISES if e.chapter == first.chapter}
    page.locator(f"[data-exercise={first.label}]").check()
    page = open_page.go(OVERVIEW)
    assert boxes(page) == {e.label: e is first for e in EXERCISES}
    counts = page.locator(".exercise-count").all_inner_texts()
    assert counts[0] == "1 of 10 done" and set(counts[1:]) == {"0 of 10 done"}
    assert len(counts) == len(SOURCES)
    page.get_by_role("checkbox", name=f"{second.name} is done").focus()
    page.keyboard.press("Space")
    page.locator(f"[data-exercise={first.label}]").uncheck()
    page.reload()
    assert boxes(page) == {e.label: e is second for e in EXERCISES}
    stored = page.evaluate("localStorage.getItem('attnbook-done')")
    assert json.loads(stored) == [second.label]
    assert page.context.cookies() == []


def test_a_spoiled_store_does_not_break_the_page(open_page: Visit) -> None:
    """Whatever stands there, the page opens with nothing ticked."""
    page = open_page.go(OVERVIEW)
    page.evaluate("localStorage.setItem('attnbook-done', '{')")
    page.reload()
    assert not any(boxes(page).values())


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_chapter_says_how_long_its_exercises_take(source) -> None:
    minutes = sum(exercise.minutes for exercise in exercises(source))
    sentence = f"Ten exercises, {minutes} minutes together."
    assert sentence in source.read_text(encoding="utf-8")


def test_every_page_is_described_and_says_what_comes() -> None:
    """The sentence of the front matter: for search engines, and at the links from its neighbours."""
    pages = [path for path in pages_of(SITE) if path not in ("search.html", "genindex.html")]
    about = {}
    for path in pages:
        source = (ROOT / path).with_suffix(".md").read_text(encoding="utf-8")
        about[path] = yaml.safe_load(source.split("---\n")[1])["description"]
        assert f'<meta name="description" content="{about[path]}" />' in text_of(path), path
    second = text_of("chapters/02-learning-the-kernel.html")
    shown = re.findall(r'<p class="prev-next-about">([^<]*)</p>', second)
    stems = "01-kernel-regression", "03-queries-keys-values"
    assert shown == [about[f"chapters/{stem}.html"] for stem in stems]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_the_footer_says_what_the_code_ran_on(source) -> None:
    """The day and the machine that the notebook keeps from its execution."""
    notebook = json.loads(source.with_suffix(".ipynb").read_text(encoding="utf-8"))
    ran = notebook["metadata"]["ran"]
    day = date.fromisoformat(ran["date"])
    expected = f"The code of this page ran on {day.day} {day:%B %Y}, on {ran['machine']}."
    assert expected in text_of(f"chapters/{source.stem}.html")
    assert "PyTorch" in ran["machine"] and "Python" in ran["machine"]


def test_pages_without_code_claim_no_machine() -> None:
    """Notation was not executed; the ladder was, on a day and a machine."""
    assert "The code of this page" not in text_of("appendices/notation.html")
    assert re.search(
        r"The code of this page ran on \d+ \w+ \d{4}, on ", text_of("appendices/ladder.html")
    )
