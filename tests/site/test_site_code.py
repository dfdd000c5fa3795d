"""Code on the page: as large as text nearly, whole on a screen, and on a phone it shows that it scrolls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any

import pytest
from playwright.sync_api import Browser
from site_visits import SITE, Visit, visiting

CHAPTERS = sorted(f"chapters/{page.name}" for page in SITE.glob("chapters/[0-9]*.html"))
EACH = [pytest.param(1440, marks=pytest.mark.slow), 1280, 390]  # the second is the narrowest desk
LONGEST, RATIO = 78, 0.85
# of every visible block of code or print: its longest line, its type beside the text's, and what scrolls
BLOCKS = """() => [...document.querySelectorAll(".bd-article pre")].filter((pre) => pre.clientWidth).map((pre) => {
  const box = pre.closest(".cell_output > .output") ?? pre, look = getComputedStyle(box);
  return {
    text: pre.textContent.slice(0, 60),
    longest: Math.max(...pre.textContent.split("\\n").map((line) => line.length)),
    ratio: parseFloat(getComputedStyle(pre).fontSize) / parseFloat(getComputedStyle(document.body).fontSize),
    cut: Math.max(box.scrollWidth - box.clientWidth, pre.scrollWidth - pre.clientWidth) > 1,
    scrolls: ["auto", "scroll"].includes(look.overflowX),
    shade: look.backgroundAttachment.includes("local") && look.backgroundAttachment.includes("scroll"),
    tab: box.tabIndex,
    lines: pre.textContent.trimEnd().split("\\n").length,
    rows: Math.round((pre.clientHeight - parseFloat(getComputedStyle(pre).paddingTop)
      - parseFloat(getComputedStyle(pre).paddingBottom)) / parseFloat(getComputedStyle(pre).lineHeight)),
  };
})"""


Blocks = Callable[[int, str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def blocks(browser: Browser, site: str) -> Iterator[Blocks]:
    """A chapter's blocks in a window of a width; each is looked at once."""

    with ExitStack() as opened:

        @cache
        def seen(width: int) -> Visit:
            size = {"width": width, "height": 900}
            touch = {"has_touch": width < 500, "is_mobile": width < 500}
            return opened.enter_context(visiting(browser, site, viewport=size, **touch))

        @cache
        def blocks(width: int, path: str) -> list[dict[str, Any]]:
            return seen(width).go(path).evaluate(BLOCKS)

        yield blocks


@pytest.mark.parametrize("path", CHAPTERS)
@pytest.mark.parametrize("width", EACH)
def test_code_is_nearly_as_large_as_text(blocks: Blocks, width: int, path: str) -> None:
    assert blocks(width, path)
    assert min(block["ratio"] for block in blocks(width, path)) >= RATIO


@pytest.mark.parametrize("path", CHAPTERS)
@pytest.mark.parametrize("width", EACH[:2])
def test_78_characters_are_not_cut_off(blocks: Blocks, width: int, path: str) -> None:
    short = [block for block in blocks(width, path) if block["longest"] <= LONGEST]
    assert [block["text"] for block in short if block["cut"]] == []


@pytest.mark.parametrize("path", CHAPTERS)
@pytest.mark.parametrize("width", EACH)
def test_what_is_cut_shows_that_it_scrolls(blocks: Blocks, width: int, path: str) -> None:
    """A shade at the side where more is. The keyboard reaches it too, on a phone when it is near."""
    cut = [block for block in blocks(width, path) if block["cut"]]
    assert cut or width != 390
    assert [b["text"] for b in cut if not (b["scrolls"] and b["shade"])] == []
    assert width == 390 or [b["text"] for b in cut if b["tab"] != 0] == []


def test_on_paper_too(open_page: Visit) -> None:
    """As large, and 78 characters in one line, on the 170 mm that A4 has between its margins."""
    open_page.page.set_viewport_size({"width": 643, "height": 900})
    page = open_page.go(CHAPTERS[0])
    page.emulate_media(media="print")
    found = page.evaluate(BLOCKS)
    assert min(block["ratio"] for block in found) >= RATIO
    short = [block for block in found if block["longest"] <= LONGEST]
    assert len(short) > 20
    assert [block["text"] for block in short if block["rows"] > block["lines"]] == []
