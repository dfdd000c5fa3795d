"""Take a still of each live figure of the built site, for paper and readers without JavaScript.

    python tools/stills.py              of every chapter, into images/stills
    python tools/stills.py 01 07        of these
    python tools/stills.py doors        the doors' cards, which go with links to them

A still is what the figure's own button saves, for a reader who wants less motion. Build the site
before, and again afterwards.
"""

import io
import sys
from pathlib import Path

from browser import UNFOLD, chromium, opened
from check_environment import ROOT
from PIL import Image
from playwright.sync_api import Browser, ViewportSize

SITE = ROOT / "_build" / "html" / "chapters"
STILLS, CARDS_FOLDER = ROOT / "images" / "stills", ROOT / "images" / "doors"
SIZE: ViewportSize = {"width": 1280, "height": 900}
CARD: ViewportSize = {"width": 600, "height": 315}
CARDS = """
main { display: grid; grid: auto 1fr / 13rem 1fr; max-width: none; height: 315px; padding: 1.2rem; }
main > *, #controls, #said, #task { display: none; }
.where, h1, figure { display: block !important; }
.where { font-size: 0.8rem; } .where a { color: inherit; text-decoration: none; }
h1 { align-self: center; font-size: 1.8rem; grid-column: 1; }
figure { grid-area: 1 / 2 / 3 / 3; align-self: center; }
"""


def take(browser: Browser, page: Path) -> None:
    """Save the stills of one page."""
    seen = browser.new_page(
        viewport=SIZE, device_scale_factor=2, color_scheme="light", reduced_motion="reduce"
    )
    seen.goto(page.as_uri())
    seen.evaluate(UNFOLD)
    for figure in seen.locator(".attnbook-live").all():
        figure.scroll_into_view_if_needed()
        with seen.expect_download() as download:
            figure.get_by_role("button", name="save as PNG").click()
        file = STILLS / Path(download.value.suggested_filename).with_suffix(".webp")
        with Image.open(download.value.path()) as image:
            image.convert("RGB").save(file, lossless=True, method=6)
        print(f"{file.relative_to(ROOT).as_posix()}: {file.stat().st_size:,} bytes")
    seen.close()


def take_cards(browser: Browser) -> None:
    """Draw each door's title and figure as a card of 1200 to 630 pixels."""
    for page in sorted((SITE.parent / "doors").glob("*.html")):
        if page.stem.endswith("-figure"):
            continue
        seen = browser.new_page(viewport=CARD, device_scale_factor=2, color_scheme="light")
        seen.goto(page.as_uri())
        seen.add_style_tag(content=CARDS)
        file = CARDS_FOLDER / f"{page.stem}.png"
        with Image.open(io.BytesIO(seen.screenshot())) as image:
            image.quantize(64).save(file, optimize=True)
        print(f"{file.relative_to(ROOT).as_posix()}: {file.stat().st_size:,} bytes")
        seen.close()


if __name__ == "__main__":
    found, numbers = chromium(), sys.argv[1:]
    if found is None or not SITE.is_dir():
        sys.exit("stills need a Chromium, and the site: run make book")
    STILLS.mkdir(parents=True, exist_ok=True)
    CARDS_FOLDER.mkdir(parents=True, exist_ok=True)
    with opened(found) as browser:
        if not numbers or "doors" in numbers:
            take_cards(browser)
        for page in sorted(SITE.glob("*.html")):
            if not numbers or page.name[:2] in numbers:
                take(browser, page)
