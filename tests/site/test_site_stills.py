"""Every live figure has a still: on paper, and without JavaScript."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser
from site_visits import ROOT, SITE, Visit, visit

STILLS = ROOT / "images" / "stills"
FIGURES = {
    found: page.relative_to(SITE).as_posix()
    for page in sorted(SITE.glob("chapters/*.html"))
    for found in re.findall(r'<div id="([\w-]+)" class="attnbook-live"', page.read_text("utf-8"))
}
LOADED = "(image) => image.complete && image.naturalWidth"
SMALL = (24, 24)
LINE = 44  # pixels of a still for a line of its sentence
pytestmark = pytest.mark.slow


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


def test_the_landing_page_shows_one_still_and_no_cell_to_run(plain: Visit) -> None:
    host = plain.go("index.html").locator(".attnbook-live")
    assert host.count() == host.locator("img").count() == host.locator("p").count() == 1
    text = host.inner_text()
    assert "run this cell" not in text, text
    assert (
        text == plain.go(FIGURES["live-kernel-regression"]).locator(".attnbook-live").inner_text()
    )


@dataclass
class Seen:
    """What one visit to a figure found: of its still before it is drawn and after, and on paper."""

    still_first: bool
    printed: bytes
    on_paper: dict[str, bool]
    loaded: int
    heights: tuple[float, float]  # of the figure's place and of the still
    still_when_drawn: bool
    still_when_drawn_on_paper: bool
    picture: Image.Image


@pytest.fixture(scope="module")
def seen(browser: Browser, site: str) -> Callable[[str], Seen]:
    """A live figure's page by its name; each is opened once."""

    @cache
    def seen(name: str) -> Seen:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = visit(context, site).go(FIGURES[name])  # never scrolled
        host = page.locator(f"#{name}")
        still = host.locator(".attnbook-still")
        still_first = still.is_visible()
        printed = page.pdf()
        if f"/Width {pixels(name)}".encode() not in printed:  # printing has sent for the picture
            page.wait_for_function(
                f"({LOADED})(document.querySelector('#{name} .attnbook-still img'))"
            )
            printed = page.pdf()
        page.emulate_media(media="print")
        whole, box = host.bounding_box(), still.bounding_box()
        assert whole is not None and box is not None
        paper = {
            "on_paper": {part: still.locator(part).is_visible() for part in ("img", "p")},
            "loaded": still.locator("img").evaluate(LOADED),
            "heights": (whole["height"], box["height"]),
        }
        page.emulate_media(media="screen")
        host.scroll_into_view_if_needed()
        page.wait_for_selector(f"#{name}[data-ready=true]")
        still_when_drawn = still.is_visible()
        page.emulate_media(media="print")
        still_when_drawn_on_paper = still.is_visible()
        page.emulate_media(media="screen")
        with page.expect_download() as download:
            host.get_by_role("button", name="save as PNG").click()
        picture = Image.open(download.value.path())
        picture.load()
        context.close()
        return Seen(
            still_first,
            printed,
            **paper,
            still_when_drawn=still_when_drawn,
            still_when_drawn_on_paper=still_when_drawn_on_paper,
            picture=picture,
        )

    return seen


@pytest.mark.parametrize("name", FIGURES)
def test_on_paper_the_still_stands(seen: Callable[[str], Seen], name: str) -> None:
    found = seen(name)
    assert found.still_first
    assert f"/Width {pixels(name)}".encode() in found.printed
    assert found.on_paper == {"img": True, "p": True}
    assert found.loaded == pixels(name)
    whole, still = found.heights
    assert whole < still + 100


@pytest.mark.parametrize("name", FIGURES)
def test_the_still_is_the_figure(seen: Callable[[str], Seen], name: str) -> None:
    """As wide and nearly the same picture; in another font the sentence above it has other lines."""
    found = seen(name)
    assert not found.still_when_drawn
    assert not found.still_when_drawn_on_paper  # the figure itself prints
    with Image.open(STILLS / f"{name}.webp") as still:
        now = found.picture.resize((still.width, round(found.picture.height * still.width / found.picture.width)))  # fmt: skip
        assert abs(still.height - now.height) <= 3 * LINE
        height = min(still.height, now.height)  # from below: the plots
        crops = [i.crop((0, i.height - height, i.width, i.height)) for i in (still, now)]
        small = [np.asarray(i.convert("RGB").resize(SMALL)).astype(float) for i in crops]
    assert np.abs(small[0] - small[1]).mean() < 4  # of 255
    assert (small[0] < 230).any()  # not blank
