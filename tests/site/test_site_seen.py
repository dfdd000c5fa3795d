"""What a reader sees: on every page, from phone to screen, in the light and in the dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cut import CUT, OPEN, TOO_WIDE
from playwright.sync_api import Browser, Page
from site_visits import Visit, faded, next_frames, unfold, visiting
from test_site_pages import PAGES, in_time

SEEN = Path(__file__).with_name("seen.js").read_text(encoding="utf-8").partition("\n")[2]
SIZES = {390: 844, 768: 1024, 960: 768, 1440: 900}  # from 960 on the pages stand at the left
# How far below the title's top the first sentence of a text begins: what is in a box or a fold is none.
FIRST_WORDS = """() => {
  const title = document.querySelector(".bd-article h1"), top = title.getBoundingClientRect().top;
  const boxes = ".admonition, details, figure, .slides-of-chapter, .road-time, table, .sidebar, [class*=cell]";
  const first = [...document.querySelectorAll(".bd-article p")]
    .find((one) => one.checkVisibility() && !one.closest(boxes) && one.textContent.trim().length > 40);
  return first ? Math.round(first.getBoundingClientRect().top - top) : 0;
}"""
# The contents mark a section that is in the window, after the end, the top and a jump to the middle.
MARKED = """async () => {
  const frames = () => new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 250));
  const links = [...document.querySelectorAll("nav.page-toc a[href^='#']")].filter((one) => one.hash.length > 1 && one.checkVisibility());
  if (links.length < 3) return [];
  const places = links.map((one) => document.getElementById(decodeURIComponent(one.hash.slice(1))));
  const jumps = { end: () => document.documentElement.scrollHeight, top: () => 0,
    middle: () => scrollY + places[places.length >> 1].getBoundingClientRect().top - 80 };
  const wrong = [];
  for (const [name, place] of Object.entries(jumps)) {
    scrollTo({ top: place(), behavior: "instant" });
    await frames();
    const at = links.findLastIndex((one) => one.classList.contains("active") || one.getAttribute("aria-current"));
    if (at < 0) continue; // above the first section none is read
    const start = places[at].getBoundingClientRect().top, end = places[at + 1]?.getBoundingClientRect().top ?? Infinity;
    const last = scrollY + innerHeight > document.documentElement.scrollHeight - 2;
    if (end < 0 || start > (last ? innerHeight : 0.6 * innerHeight)) wrong.push(`${name}: ${links[at].textContent.trim()}`);
  }
  scrollTo({ top: 0, behavior: "instant" });
  return wrong;
}"""


@pytest.fixture(scope="module")
def visit(browser: Browser, site: str) -> Iterator[Visit]:
    """One window for all pages."""
    with visiting(browser, site, reduced_motion="reduce") as seen:
        yield seen


def resize(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": SIZES[width]})
    next_frames(page)


def faults(page: Page, width: int) -> list[tuple[str, str]]:
    """What is wrong at a width, each as its kind and what is seen."""
    resize(page, width)
    found = [("cut", line) for line in page.evaluate(CUT)]
    found += [(kind, words) for kind, words in page.evaluate(SEEN)]
    if (beyond := page.evaluate(TOO_WIDE)) > 0:
        found.append(("wide", f"{beyond} pixels wider than the window"))
    return found


def far(page: Page, width: int) -> list[tuple[str, str]]:
    """The first sentence, where it stands more than a screen below the title."""
    resize(page, width)
    distance = page.evaluate(FIRST_WORDS)
    return [("far", f"{distance} pixels")] if distance > SIZES[width] else []


@pytest.mark.parametrize("path", [in_time(path) for path in PAGES])
def test_what_a_reader_sees(visit: Visit, path: str) -> None:
    """What is deeper is open, then every fold; colours in both themes."""
    page = visit.page
    page.emulate_media(color_scheme="light")
    resize(page, 1440)
    visit.go(path)
    page.evaluate("document.fonts.ready")
    unfold(page)
    for figure in page.locator(".attnbook-live").all():
        figure.scroll_into_view_if_needed()
        page.wait_for_function("(one) => one.dataset.ready", arg=figure.element_handle())
    found = {"marks": [("lost", one) for one in page.evaluate(MARKED)]}
    if path.startswith("chapters/"):
        found |= {f"opening, {width}": far(page, width) for width in (1440, 390)}
    page.evaluate(OPEN)
    found |= {f"light, {width}": faults(page, width) for width in SIZES}
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    faded(page)
    for width in (1440, 390):
        resize(page, width)
        found[f"dark, {width}"] = [(k, w) for k, w in page.evaluate(SEEN) if k != "small"]
    assert {where: sorted(set(lines)) for where, lines in found.items() if lines} == {}
