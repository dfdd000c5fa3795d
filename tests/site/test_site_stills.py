"""Every live figure has a still: on paper, and without JavaScript."""

from __future__ import annotations

import re

import numpy as np
import pytest
from PIL import Image
from site_visits import ROOT, SITE, Visit, unfold, without_script

STILLS = ROOT / "images" / "stills"
FIGURES = {
    found: page.relative_to(SITE).as_posix()
    for page in sorted(SITE.glob("chapters/*.html"))
    for found in re.findall(r'<div id="([\w-]+)" class="attnbook-live"', page.read_text("utf-8"))
}
pytestmark = pytest.mark.slow


def test_every_live_figure_has_a_still_and_no_other_is_kept() -> None:
    assert len(FIGURES) >= 11
    assert {file.stem for file in STILLS.glob("*.webp")} == set(FIGURES)


@without_script
@pytest.mark.parametrize("name", FIGURES)
def test_without_javascript_the_still_stands(open_page: Visit, name: str) -> None:
    host = open_page.go(FIGURES[name]).locator(f"#{name}")
    unfold(open_page.page)
    assert host.locator("img").is_visible() and host.locator("p").is_visible()
    assert not host.get_by_role("button").is_visible()


@pytest.mark.parametrize("name", FIGURES)
def test_the_still_stands_until_the_figure_does_and_shows_the_same(
    open_page: Visit, name: str
) -> None:
    """Nearly the same picture; in another font the sentence above it has other lines."""
    page = open_page.go(FIGURES[name])  # never scrolled
    host = page.locator(f"#{name}")
    still = host.locator(".attnbook-still")
    unfold(page)
    assert still.is_visible()
    host.scroll_into_view_if_needed()
    page.wait_for_selector(f"#{name}[data-ready=true]")
    assert not still.is_visible()
    with page.expect_download() as download:
        host.get_by_role("button", name="save as PNG").click()
    with Image.open(download.value.path()) as found, Image.open(STILLS / f"{name}.webp") as stored:
        now = found.resize((stored.width, round(found.height * stored.width / found.width)))
        height = min(stored.height, now.height)  # from below: the plots
        crops = [i.crop((0, i.height - height, i.width, i.height)) for i in (stored, now)]
        old, new = (np.asarray(i.convert("RGB").resize((24, 24))).astype(float) for i in crops)
    assert np.abs(old - new).mean() < 4  # of 255
    assert (old < 230).any()  # not blank
