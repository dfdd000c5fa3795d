"""Every live figure has a still: on paper, and without JavaScript."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page
from site_visits import ROOT, SITE, Visit, visit

STILLS = ROOT / "images" / "stills"
FIGURES = {
    found: page.relative_to(SITE).as_posix()
    for page in sorted(SITE.glob("chapters/*.html"))
    for found in re.findall(r'<div id="([\w-]+)" class="attnbook-live"', page.read_text("utf-8"))
}
LOADED = "(image) => image.complete && image.naturalWidth"
SMALL = (24, 24)


def pixels(name: str) -> int:
    """Width of a still's file."""
    with Image.open(STILLS / f"{name}.webp") as image:
        return image.width


@pytest.fixture
def plain(browser: Browser, site: str) -> Iterator[Visit]:
    """A visit without JavaScript."""
    context = browser.new_context(java_script_enabled=False)
    yield visit(context, site)
    context.close()


def test_every_chapter_has_a_live_figure() -> None:
    chapters = list(SITE.glob("chapters/[0-9]*.html"))
    assert len(chapters) >= 9 and set(FIGURES.values()) == {f"chapters/{c.name}" for c in chapters}
    assert {file.stem for file in STILLS.glob("*.webp")} == set(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_without_javascript_the_still_stands(plain: Visit, name: str) -> None:
    page = plain.go(FIGURES[name])
    host = page.locator(f"#{name}")
    image = host.locator("img")
    image.scroll_into_view_if_needed()
    page.wait_for_load_state("networkidle")
    assert image.is_visible() and host.locator("p").is_visible()
    answers = [a.status for a in plain.responses if a.url.endswith(f"/{name}.webp")]
    assert answers == [200]
    box, whole = image.bounding_box(), host.bounding_box()
    assert box is not None and whole is not None
    assert box["height"] > 200
    assert whole["height"] < box["height"] + 250  # no room for what cannot be drawn
    assert not host.get_by_role("button").is_visible()
    assert plain.complaints == []


@pytest.mark.parametrize("name", FIGURES)
def test_on_paper_the_still_stands(open_page: Visit, name: str) -> None:
    page = open_page.go(FIGURES[name])  # never scrolled
    still = page.locator(f"#{name} .attnbook-still")
    assert not still.is_visible()
    printed = page.pdf()
    assert f"/Width {pixels(name)}".encode() in printed
    page.emulate_media(media="print")
    assert still.locator("img").is_visible() and still.locator("p").is_visible()
    assert still.locator("img").evaluate(LOADED) == pixels(name)
    whole, box = page.locator(f"#{name}").bounding_box(), still.bounding_box()
    assert whole is not None and box is not None and whole["height"] < box["height"] + 100


def drawn(page: Page, name: str) -> None:
    page.locator(f"#{name}").scroll_into_view_if_needed()
    page.wait_for_selector(f"#{name}[data-ready=true]")


@pytest.mark.parametrize("name", FIGURES)
def test_the_still_is_the_figure(open_page: Visit, name: str) -> None:
    """Of the same shape and nearly the same picture; another machine's fonts differ a little."""
    page = open_page.go(FIGURES[name])
    drawn(page, name)
    assert not page.locator(f"#{name} .attnbook-still").is_visible()
    page.emulate_media(media="print")
    assert not page.locator(f"#{name} .attnbook-still").is_visible()  # the figure itself prints
    page.emulate_media(media="screen")
    with page.expect_download() as download:
        page.locator(f"#{name}").get_by_role("button", name="save as PNG").click()
    with Image.open(STILLS / f"{name}.webp") as still, Image.open(download.value.path()) as now:
        shapes = [image.height / image.width for image in (still, now)]
        small = [np.asarray(i.convert("RGB").resize(SMALL)).astype(float) for i in (still, now)]
    assert shapes[0] == pytest.approx(shapes[1], rel=0.05)
    assert np.abs(small[0] - small[1]).mean() < 4  # of 255
    assert (small[0] < 230).any()  # not blank
