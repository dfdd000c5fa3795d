"""The landing page, the frame that all pages share, the index of terms and the package's pages."""

from __future__ import annotations

import re

import pytest
from firefox import Firefox
from PIL import Image
from playwright.sync_api import Page
from site_visits import ROOT, SITE, Visit, next_frames, pages_of
from test_site_reading import HTML, REPOSITORY

FIRST = "chapters/01-kernel-regression.html"
TERMS = "appendices/terms.html"
PLACE = """(() => { const box = document.querySelector(".bd-article").getBoundingClientRect();
  return [Math.round(box.left), Math.round(box.width)]; })()"""
SHOWN_TERMS = """[...document.querySelectorAll("dl.terms > dt")]
  .filter((one) => one.checkVisibility()).map((one) => one.firstChild.textContent.trim())"""
# buttons above the page that show no word, or one that their name does not have
WORDLESS = """[...document.querySelectorAll(".bd-header-article button")]
  .filter((one) => one.checkVisibility() && !one.closest(".dropdown-menu"))
  .filter((one) => {
    const word = one.querySelector(".button-word"), name = one.getAttribute("aria-label") ?? "";
    return !word || !word.checkVisibility() || parseFloat(getComputedStyle(word).fontSize) < 11
      || !name.toLowerCase().includes(word.textContent.toLowerCase()); })
  .map((one) => one.outerHTML)"""
MINUTES = ".bd-sidebar-primary .page-minutes[data-page='01-kernel-regression']"
SECTIONS = """[...document.querySelectorAll(".bd-article > section > section[id]")]
  .map((one) => one.id).filter((id) => !["exercises", "references"].includes(id))"""
# a busy browser lays a section out late: scroll until the page has noted it
READ_TO_THE_END = """(id) => {
  const noted = Object.values(JSON.parse(localStorage["attnbook-read"])).flatMap((page) => page.sections);
  if (noted.includes(id)) return true;
  document.getElementById(id).scrollIntoView({ block: "end", behavior: "instant" });
  return false;
}"""


def test_the_landing_page_starts_the_book(open_page: Visit) -> None:
    """A button leads to chapter 1, one to Colab as soon as there is an address; a figure runs."""
    page = open_page.go("index.html")
    buttons = page.locator(".start-button")
    wanted = ["Start reading", "Open in Colab"] if REPOSITORY else ["Start reading"]
    assert buttons.all_inner_texts() == wanted
    assert buttons.first.bounding_box()["y"] < 900
    figure = page.locator(".attnbook-live")
    assert figure.count() == 1
    figure.scroll_into_view_if_needed()
    page.wait_for_selector(".attnbook-live[data-ready=true]")
    before = figure.locator("canvas").first.screenshot()
    handle = figure.get_by_role("slider").first
    handle.focus()
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    while figure.locator("canvas").first.screenshot() == before:
        next_frames(page)
    buttons.first.click()
    page.wait_for_url(f"**/{FIRST}")


def test_the_figure_of_the_landing_page_runs_in_firefox(firefox: Firefox, site: str) -> None:
    firefox.resize(390, 800)
    firefox.go(f"{site}/index.html")
    firefox.run("document.querySelector('.attnbook-live').scrollIntoView()")
    firefox.wait("return document.querySelector('.attnbook-live[data-ready=true]') !== null")
    firefox.tap(".start-button")
    firefox.wait(f"return location.pathname.endsWith('{FIRST}')")


def test_a_page_says_its_title_once() -> None:
    """And a link to it brings its title, its sentence and, with an address, the book's picture."""
    book = "From Kernel Regression to the Transformer"
    for path, text in HTML.items():
        (title,) = re.findall(r"<title>(.*?)</title>", text)
        assert title == book if path == "index.html" else title.endswith(f" &#8212; {book}"), path
        assert title.count(book) == 1
        (named,) = re.findall(r'<meta property="og:title" content="(.*?)"', text)
        assert named and (named == book) == (path == "index.html")
        assert ('rel="canonical"' in text) == ('property="og:image"' in text) == bool(REPOSITORY)
    assert len(re.findall("<h1", HTML["index.html"].split("<article")[1])) == 1
    with Image.open(SITE / "_static" / "card.png") as card:
        assert card.size == (1200, 630)
    assert (ROOT / "images" / "card.png").stat().st_size < 100_000


def test_columns_stand_still_from_page_to_page(open_page: Visit) -> None:
    """With a list of sections or without one, and whether the page scrolls or not."""
    for width in (390, 820, 1000, 1200, 1440, 1920):
        open_page.page.set_viewport_size({"width": width, "height": 900})
        places = {}
        for path in (FIRST, "index.html", TERMS, "appendices/references.html", "search.html"):
            places[path] = tuple(open_page.go(path).evaluate(PLACE))
        assert len(set(places.values())) == 1, (width, places)


def test_columns_stand_still_in_firefox(firefox: Firefox, site: str) -> None:
    for width in (390, 1440):
        firefox.resize(width, 900)
        places = set()
        for path in (FIRST, "index.html", "appendices/references.html", "search.html"):
            firefox.go(f"{site}/{path}")
            places.add(tuple(firefox.run(f"return {PLACE}")))
        assert len(places) == 1, (width, places)


@pytest.mark.parametrize("width", [390, 820, 1440])
def test_icons_have_words(open_page: Visit, width: int) -> None:
    """Each button above a page shows one, its name has it, and all fit beside each other."""
    open_page.page.set_viewport_size({"width": width, "height": 900})
    page = open_page.go(FIRST)
    assert page.evaluate(WORDLESS) == []
    boxes = [one.bounding_box() for one in page.locator(".bd-header-article .button-word").all()]
    rows = {round(box["y"]) for box in boxes if box}
    assert len(rows) == 1 and max(box["x"] + box["width"] for box in boxes if box) <= width


@pytest.fixture
def terms(open_page: Visit) -> Page:
    return open_page.go(TERMS)


def test_the_terms_have_letters_and_places(terms: Page) -> None:
    """Each letter leads to its terms, and each term has an address."""
    names = terms.evaluate(SHOWN_TERMS)
    assert len(names) > 90
    letters = terms.locator(".letters a").all_inner_texts()
    assert letters == sorted({name[0].upper() for name in names})
    assert terms.locator(".letters > *").count() == 26
    terms.locator(".letters a", has_text="R").click()
    assert terms.url.endswith("#letter-r")
    top = terms.locator("#letter-r").bounding_box()["y"]
    assert 0 <= top < 120
    assert terms.locator("#term-softmax").count() == 1


def test_the_terms_can_be_filtered(terms: Page) -> None:
    """By a part of the word or of its meaning; what has no term left goes with it."""
    field = terms.get_by_role("searchbox", name="Show the terms with")
    every = len(terms.evaluate(SHOWN_TERMS))
    field.fill("Softm")
    shown = terms.evaluate(SHOWN_TERMS)
    assert "Softmax" in shown and 0 < len(shown) < 20
    assert terms.locator(".terms-filter [role=status]").inner_text() == f"{len(shown)} of {every}"
    assert terms.locator(".letter:visible").count() == len({name[0] for name in shown})
    field.fill("zzz")
    assert terms.evaluate(SHOWN_TERMS) == [] and terms.locator(".letter:visible").count() == 0
    field.fill("")
    assert len(terms.evaluate(SHOWN_TERMS)) == every


def test_the_terms_can_be_filtered_in_firefox(firefox: Firefox, site: str) -> None:
    firefox.resize(390, 800)
    firefox.go(f"{site}/{TERMS}")
    firefox.tap(".terms-filter input")
    firefox.type("rotary")
    firefox.wait(f"const shown = {SHOWN_TERMS}; return shown.length > 0 && shown.length < 10")


def test_the_package_has_several_pages_with_defaults_to_read() -> None:
    """No page has everything; a default is written as in the source, not as an address."""
    pages = [path for path in pages_of(SITE) if path.startswith("appendices/api")]
    assert len(pages) >= 5
    whole = sum(len(HTML[path]) for path in pages)
    assert max(len(HTML[path]) for path in pages) < 0.6 * whole
    odd = re.compile(r"(&lt;|<)(function|class|object)\b|0x[0-9a-f]{6}")
    assert [path for path in pages if odd.search(HTML[path])] == []
    functions = re.sub(r"<[^>]+>", "", HTML["appendices/api-functions.html"])
    assert "kernel=kernels.gaussian" in functions and "score=scores.scaled_dot" in functions


def test_minutes_left_and_a_tick(open_page: Visit) -> None:
    """The list of pages says how long a chapter takes, then how much is left, then that it is read."""
    page = open_page.go(FIRST)
    text = (ROOT / "chapters" / "01-kernel-regression.md").read_text(encoding="utf-8")
    (whole,) = map(int, re.findall(r"\*\*It takes\*\* about (\d+) minutes", text))
    place = page.locator(MINUTES)
    assert place.inner_text() == f"{whole} min"
    chapters = list((ROOT / "chapters").glob("[0-9]*.md"))
    assert page.locator(".bd-sidebar-primary .page-minutes").count() == len(chapters)
    page.locator(".bd-article > section > section").nth(2).evaluate(
        "one => one.scrollIntoView({ block: 'end', behavior: 'instant' })"
    )
    page.wait_for_function(f"document.querySelector(\"{MINUTES}\").textContent.endsWith('left')")
    left = int(re.match(r"\d+", place.inner_text())[0])
    assert 0 < left < whole
    page.reload()
    assert place.inner_text() == f"{left} min left"
    for section in page.evaluate(SECTIONS):
        page.wait_for_function(READ_TO_THE_END, arg=section, polling=100)
    page.wait_for_function(f'document.querySelector("{MINUTES}").textContent === "✓"')
    assert place.get_attribute("aria-label") == "read"
    open_page.go("index.html")
    assert place.inner_text() == "✓"
    assert page.locator(".page-minutes.is-read").count() == 1 and page.context.cookies() == []


def test_minutes_left_in_firefox(firefox: Firefox, site: str) -> None:
    firefox.resize(1440, 900)
    firefox.go(f"{site}/search.html")
    firefox.run("localStorage.removeItem('attnbook-read')")
    firefox.go(f"{site}/{FIRST}")
    firefox.run("""document.querySelectorAll(".bd-article > section > section")[1]
      .scrollIntoView({ block: "end", behavior: "instant" });""")
    firefox.wait(f'return document.querySelector("{MINUTES}").textContent.endsWith("left")')
    firefox.run("localStorage.removeItem('attnbook-read')")
