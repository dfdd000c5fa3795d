"""Every live figure has a still: on paper, and without JavaScript."""

from __future__ import annotations

import re

import numpy as np
import pytest
from PIL import Image
from site_visits import ROOT, SITE, Visit, without_script

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


def test_every_live_figure_has_a_still() -> None:
    assert len(FIGURES) >= 12
    assert {file.stem for file in STILLS.glob("*.webp")} == set(FIGURES)


@without_script
@pytest.mark.parametrize("name", FIGURES)
def test_without_javascript_the_still_stands(open_page: Visit, name: str) -> None:
    page = open_page.go(FIGURES[name])
    host = page.locator(f"#{name}")
    image = host.locator("img")
    image.scroll_into_view_if_needed()
    page.wait_for_load_state("networkidle")
    assert image.is_visible() and host.locator("p").is_visible()
    answers = [a.status for a in open_page.responses if a.url.endswith(f"/{name}.webp")]
    assert answers == [200]
    box, whole = image.bounding_box(), host.bounding_box()
    assert box is not None and whole is not None
    assert box["height"] > 200
    assert whole["height"] < box["height"] + 250  # no room for what cannot be drawn
    assert not host.get_by_role("button").is_visible()


@without_script
def test_the_landing_page_shows_one_still_and_no_cell_to_run(open_page: Visit) -> None:
    host = open_page.go("index.html").locator(".attnbook-live")
    assert host.count() == host.locator("img").count() == host.locator("p").count() == 1
    text = host.inner_text()
    assert "run this cell" not in text, text
    chapter = open_page.go(FIGURES["live-kernel-regression"])
    assert text == chapter.locator(".attnbook-live").inner_text()


@pytest.mark.parametrize("name", FIGURES)
def test_the_still_stands_until_the_figure_does_and_on_paper(open_page: Visit, name: str) -> None:
    """As wide and nearly the same picture; in another font the sentence above it has other lines."""
    page = open_page.go(FIGURES[name])  # never scrolled
    host = page.locator(f"#{name}")
    still = host.locator(".attnbook-still")
    assert still.is_visible()
    printed, width = page.pdf(), f"/Width {pixels(name)}".encode()
    if width not in printed:  # printing has sent for the picture
        page.wait_for_function(f"({LOADED})(document.querySelector('#{name} .attnbook-still img'))")
        printed = page.pdf()
    assert width in printed
    page.emulate_media(media="print")
    whole, box = host.bounding_box(), still.bounding_box()
    assert whole is not None and box is not None
    assert whole["height"] < box["height"] + 100
    assert still.locator("img").is_visible() and still.locator("p").is_visible()
    assert still.locator("img").evaluate(LOADED) == pixels(name)

    page.emulate_media(media="screen")
    host.scroll_into_view_if_needed()
    page.wait_for_selector(f"#{name}[data-ready=true]")
    assert not still.is_visible()
    page.emulate_media(media="print")
    assert not still.is_visible()  # the figure itself prints
    page.emulate_media(media="screen")
    with page.expect_download() as download:
        host.get_by_role("button", name="save as PNG").click()
    with Image.open(download.value.path()) as found, Image.open(STILLS / f"{name}.webp") as stored:
        now = found.resize((stored.width, round(found.height * stored.width / found.width)))
        assert abs(stored.height - now.height) <= 3 * LINE
        height = min(stored.height, now.height)  # from below: the plots
        crops = [i.crop((0, i.height - height, i.width, i.height)) for i in (stored, now)]
        small = [np.asarray(i.convert("RGB").resize(SMALL)).astype(float) for i in crops]
    assert np.abs(small[0] - small[1]).mean() < 4  # of 255
    assert (small[0] < 230).any()  # not blank
