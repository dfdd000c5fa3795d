"""Code on the page: as large as text nearly, whole on a screen, and on a phone it shows that it scrolls."""

from __future__ import annotations

from collections.abc import Iterator

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


@pytest.fixture(scope="module", params=EACH)
def window(
    browser: Browser, site: str, request: pytest.FixtureRequest
) -> Iterator[tuple[int, Visit]]:
    """A width, and a window that has it, under a finger where it is small."""
    width = request.param
    size, small = {"width": width, "height": 900}, width < 500
    with visiting(browser, site, viewport=size, has_touch=small, is_mobile=small) as seen:
        yield width, seen


@pytest.mark.parametrize("path", CHAPTERS)
def test_code_is_large_and_whole_or_shows_that_it_scrolls(
    window: tuple[int, Visit], path: str
) -> None:
    """Nearly as large as text; on a desk 78 characters are not cut off.

    What is cut has a shade at the side where more is. The keyboard reaches it too, on a phone when
    it is near.
    """
    width, seen = window
    blocks = seen.go(path).evaluate(BLOCKS)
    assert blocks and min(block["ratio"] for block in blocks) >= RATIO
    cut = [block for block in blocks if block["cut"]]
    assert [b["text"] for b in cut if not (b["scrolls"] and b["shade"])] == []
    if width == 390:
        assert cut
    else:
        assert [b["text"] for b in cut if b["longest"] <= LONGEST or b["tab"] != 0] == []


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
