"""Drawings that move: by buttons and keys, by words, and what is left without a script."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attnbook_site.drawings import inline
from playwright.sync_api import Browser, Page, expect
from site_visits import ROOT, new_page

from attnbook_course import drawings
from attnbook_course.drawings.words_read import weights_of

STATIC = ROOT / "_ext" / "attnbook_site" / "static"
HEADS = [(12, 2), (17, 1), (14, 9)]
SHOWN = """() => [...document.querySelectorAll("[data-step]")]
  .filter((one) => getComputedStyle(one).visibility === "visible").map((one) => one.dataset.step)"""
SHARES = """() => [...document.querySelectorAll("circle[data-row]")].map((one) =>
  (one.getAttribute("r") / one.closest("svg").dataset.radius) ** 2)"""


def shown(page: Page, drawing: drawings.Drawing, *, script: bool = True) -> None:
    """Put a drawing on a page with the site's style and script."""
    style = (STATIC / "content.css").read_text(encoding="utf-8")
    code = (STATIC / "moving.js").read_text(encoding="utf-8") if script else ""
    body = f"<style>{style}</style>{inline(drawing.svg, 'Told.')}<script>{code}</script>"
    page.set_content(f"<!doctype html><html><body>{body}</body></html>")


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page on which what moves is at once where it goes."""
    page = new_page(browser, reduced_motion="reduce", viewport={"width": 390, "height": 900})
    yield page
    page.close()


def test_buttons_and_keys_go_through_the_steps(page: Page) -> None:
    shown(page, drawings.average_in_steps(2))
    numbers = page.locator("[data-part]").all_text_contents()
    back, forth = (page.get_by_role("button", name=name) for name in ("Back", "Next"))
    said = page.locator("[aria-live]")
    expect(said).to_have_text("Step 1 of 4: scores")
    expect(back).to_have_attribute("aria-disabled", "true")
    for number, name in enumerate(("exponentials", "weights", "weighted sum"), 2):
        forth.click()
        expect(said).to_have_text(f"Step {number} of 4: {name}")
        assert page.evaluate(SHOWN) == [str(number)]
    back.click()
    expect(said).to_have_text("Step 3 of 4: weights")
    page.locator(".moving-stage").focus()
    for key, number in {"ArrowRight": 4, "ArrowLeft": 3, "Home": 1, "End": 4}.items():
        page.keyboard.press(key)
        expect(said).to_contain_text(f"Step {number} of 4")
    assert page.locator("[data-part]").all_text_contents() == numbers


def test_without_a_script_and_on_paper_all_steps_are_there(page: Page) -> None:
    for script in (False, True):
        shown(page, drawings.average_in_steps(1), script=script)
        page.emulate_media(media="print" if script else "screen")
        assert page.evaluate(SHOWN) == ["1", "2", "3", "4"]
        assert not page.locator(".moving-controls").is_visible()


@pytest.mark.parametrize("heads", [[(14, 9)], HEADS])
def test_a_word_that_is_touched_shows_its_weights(page: Page, heads: list[tuple[int, int]]) -> None:
    """Under the mouse, after a click and by keys; dots are the heads' weights."""
    shown(page, drawings.sentence(heads))
    words, said = page.get_by_role("button"), page.locator(".moving-said")

    def read(token: int, within: float = 1e-6) -> None:
        expect(words.nth(token)).to_have_attribute("aria-pressed", "true")
        expected = [weights_of(*head)[token, j] for j in range(16) for head in heads]
        assert page.evaluate(SHARES) == pytest.approx(expected, abs=within)

    read(5, within=0.02)  # as it is drawn, to a tenth of a unit
    words.nth(13).locator("rect").hover()
    read(13)
    expect(said).to_contain_text("“went” reads sun 1.00")
    words.nth(4).locator("rect").click()
    read(4)
    page.keyboard.press("End")
    read(15)
    assert page.locator("[tabindex='0']").count() == 1  # one stop for the tab key
