"""Where a reader is: the scroll bar tells the truth at once, and Back and a reload return there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from attnbook_site.heights import STORED, with_heights
from firefox import Firefox
from playwright.sync_api import Browser, Page
from site_visits import RESTS, SITE, WIDTHS, pages_of, rests, visiting

CHAPTERS = [path for path in pages_of(SITE) if path.startswith("chapters/")]
FIRST = "chapters/01-kernel-regression.html"
SECTION = "the-bandwidth-how-far-to-look"  # nothing above it was laid out when a reload comes to it
HEIGHT = "document.documentElement.scrollHeight"
ALL_LAID_OUT = """
  document.head.append(Object.assign(document.createElement("style"), {
    textContent: ".bd-article section { content-visibility: visible !important; }" }));
  document.documentElement.offsetHeight;"""
OFF = """[...document.querySelectorAll(".bd-article > section > section")].map((one) => {
    const guess = parseFloat(getComputedStyle(one).containIntrinsicHeight.replace("auto ", ""));
    return [one.id, guess, one.offsetHeight];
  }).filter(([, guess, real]) => !(Math.abs(guess - real) <= real / 4 + 20))"""
TOP = f"document.getElementById('{SECTION}')?.getBoundingClientRect().top"
GO = f"""document.getElementById("{SECTION}").scrollIntoView({{ behavior: "instant" }});
  scrollBy({{ top: 300, behavior: "instant" }});"""


@pytest.fixture(scope="module")
def phone(browser: Browser, site: str) -> Iterator[Page]:
    """One small window for all tests here."""
    with visiting(browser, site, viewport=WIDTHS["phone"], is_mobile=True) as seen:
        yield seen.page


@pytest.mark.parametrize(
    "width", [390, *(pytest.param(width, marks=pytest.mark.slow) for width in (320, 560))]
)
@pytest.mark.parametrize("path", CHAPTERS)
def test_a_page_is_as_high_at_once_as_it_turns_out(
    phone: Page, site: str, path: str, width: int
) -> None:
    """Within a quarter as a whole, and each section of it, though most are not laid out yet."""
    phone.set_viewport_size({"width": width, "height": 844})
    phone.goto(f"{site}/{path}")
    at_load = phone.evaluate(HEIGHT)
    skipped = phone.evaluate(
        """[...document.querySelectorAll(".bd-article > section > section")]
        .filter((one) => getComputedStyle(one).contentVisibility === "auto").length"""
    )
    assert skipped > 5
    phone.evaluate(ALL_LAID_OUT)
    assert 0.75 <= at_load / phone.evaluate(HEIGHT) <= 1.25
    if width == 390:
        assert phone.evaluate(OFF) == []


def test_a_page_is_as_high_at_once_in_firefox(firefox: Firefox, site: str) -> None:
    """Which sets type of its own, in a window of which nobody measured anything."""
    firefox.resize(412, 800)
    for path in CHAPTERS[:4]:
        firefox.go(f"{site}/{path}")
        at_load = firefox.run(f"return {HEIGHT}")
        real = firefox.run(f"{ALL_LAID_OUT} return {HEIGHT}")
        assert 0.75 <= at_load / real <= 1.25, path


def settle(page: Page, top: float = 100, within: float = 100) -> None:
    """The section comes to where it is expected, and stays there."""
    page.wait_for_load_state("load")
    page.wait_for_function(f"Math.abs({TOP} - {top}) <= {within}")
    assert abs(rests(page, TOP) - top) <= within


def test_back_and_reload_return_to_the_section(phone: Page, site: str) -> None:
    """On a phone, to the line."""
    phone.set_viewport_size({"width": 390, "height": 844})
    phone.goto(f"{site}/{FIRST}")
    phone.evaluate("document.fonts.ready")
    phone.evaluate(GO)
    before = rests(phone, TOP)
    assert -400 < before < -200
    phone.reload()
    settle(phone, before, 30)
    phone.evaluate("document.querySelector('.prev-next-area a.right-next').click()")
    phone.wait_for_url("**/02-*.html")
    phone.go_back()
    phone.wait_for_url(f"**/{FIRST}")
    settle(phone, before, 30)
    phone.mouse.wheel(0, 500)  # and the reader may go on
    settle(phone, before - 500, 30)


def test_a_link_to_a_section_is_not_taken_for_a_return(phone: Page, site: str) -> None:
    """A second visit begins where its address says."""
    phone.goto(f"{site}/index.html")
    phone.goto(f"{site}/{FIRST}#{SECTION}")
    settle(phone)


@pytest.mark.parametrize("width", [390, 1280])
def test_back_and_reload_return_to_the_section_in_firefox(
    firefox: Firefox, site: str, width: int
) -> None:
    firefox.resize(width, 800)
    firefox.go(f"{site}/{FIRST}")
    firefox.run("await document.fonts.ready;")
    firefox.run(GO)
    before = firefox.run(f"return await ({RESTS % TOP})()")
    near = f"Math.abs({TOP} - {before}) <= 30"
    firefox.reload()
    firefox.wait(f"return {near}")
    firefox.go(firefox.run("return document.querySelector('.prev-next-area a.right-next').href"))
    firefox.run("history.back()")
    firefox.wait(f"return location.pathname.endsWith('{FIRST}') && {near}")
    firefox.run(f"return await ({RESTS % TOP})()")
    assert firefox.run(f"return {near}")


def test_heights_are_written_once() -> None:
    """Into the section that has the name, and no other."""
    page = '<section id="a"><section class="x" id="b"></section><section id="bc"></section>'
    found = {"b": [10, 8]}
    written = with_heights(page, found)
    assert '<section style="--narrow: 10px; --wide: 8px" class="x" id="b">' in written
    assert written.count("style=") == 1 and with_heights(written, found) == written


def test_each_section_of_each_chapter_was_measured() -> None:
    """What is stored stands in the page; the first test finds a section that has no height."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    for path in CHAPTERS:
        text = (SITE / path).read_text(encoding="utf-8")
        found = re.findall(
            r'<section style="--narrow: \d+px; --wide: \d+px"[^>]* id="([^"]+)"', text
        )
        assert sorted(found) == sorted(stored[path.removesuffix(".html")]), path
