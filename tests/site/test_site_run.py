"""Bars under the cells that run on the page, before Python comes: nothing is fetched unasked."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect
from site_visits import Visit

CHAPTER = "chapters/01-kernel-regression.html"
EXERCISE = "div.cell.tag_exercise"


@pytest.fixture
def chapter(open_page: Visit) -> Page:
    return open_page.go(CHAPTER)


def test_cells_run_or_say_why_not(chapter: Page) -> None:
    runs, lacks = chapter.locator("div.cell.runs"), chapter.locator("div.cell.lacks")
    assert runs.count() > 25 and lacks.count() > 3
    assert chapter.locator("div.cell.runs .run-bar").count() == runs.count()
    for words in lacks.locator(".run-elsewhere").all_text_contents():
        assert re.match("Needs (PyTorch|JAX|another library): ", words)


def test_it_asks_before_it_loads(open_page: Visit) -> None:
    page = open_page.go(CHAPTER)
    cell = page.locator("div.cell.runs:not([class*=tag_])").first
    cell.get_by_role("button", name="Run").click()
    expect(cell.locator(".run-ask p")).to_contain_text("about 10 MB")
    cell.get_by_role("button", name="Run", exact=True).click()
    assert cell.locator(".run-ask").count() == 1
    cell.get_by_role("button", name="Not now").click()
    assert cell.locator(".run-ask").count() == 0 and not open_page.outside
    assert not any("run_worker" in url or "attnbook.zip" in url for url in open_page.requests)


def test_a_site_that_python_does_not_reach_says_so(open_page: Visit) -> None:
    open_page.expected = "pyodide|ERR_"
    page = open_page.go(CHAPTER)
    cell = page.locator("div.cell.runs:not([class*=tag_])").first
    cell.get_by_role("button", name="Run").click()
    cell.get_by_role("button", name="Load and run").click()
    expect(cell.locator(".run-said")).to_contain_text("Python could not be loaded")
    expect(cell.get_by_role("button", name="Run")).to_be_enabled()


def test_a_draft_is_kept_and_reset(chapter: Page) -> None:
    cell = chapter.locator(EXERCISE).first
    cell.get_by_role("button", name="Write an answer").click()
    editor = cell.locator("textarea")
    expect(editor).to_be_focused()
    stub = editor.input_value()
    editor.press("Control+a")
    editor.type("def f(x):\n")
    editor.type("return x")
    assert editor.input_value() == "def f(x):\n    return x"
    chapter.reload()
    editor = chapter.locator(EXERCISE).first.locator("textarea")
    expect(editor).to_have_value("def f(x):\n    return x")
    chapter.locator(EXERCISE).first.get_by_role("button", name="Reset").click()
    assert chapter.locator(EXERCISE).first.locator("textarea").count() == 0
    assert chapter.evaluate("localStorage.getItem('attnbook-drafts')") == "{}"
    chapter.locator(EXERCISE).first.get_by_role("button", name="Write an answer").click()
    expect(chapter.locator(EXERCISE).first.locator("textarea")).to_have_value(stub)


def test_escape_gives_tab_back(chapter: Page) -> None:
    cell = chapter.locator(EXERCISE).first
    cell.get_by_role("button", name="Write an answer").click()
    editor = cell.locator("textarea")
    editor.press("Tab")
    expect(editor).to_be_focused()
    editor.press("Escape")
    editor.press("Tab")
    expect(editor).not_to_be_focused()


def test_drafts_as_a_file(open_page: Visit) -> None:
    page = open_page.go("appendices/exercises.html")
    assert page.locator(".run-button").count() == 0
    kept = json.dumps({"01-kernel-regression": {"37": "def f(): pass"}})
    page.evaluate("kept => localStorage.setItem('attnbook-drafts', kept)", kept)
    page.reload()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save it as a file").click()
    assert "def f(): pass" in download.value.path().read_text(encoding="utf-8")
    page.get_by_role("button", name="Forget it").click()
    assert page.evaluate("localStorage.getItem('attnbook-drafts')") is None
