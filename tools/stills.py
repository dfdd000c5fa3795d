"""Take a still of each live figure of the built site, for paper and readers without JavaScript.

    python tools/stills.py              of every chapter, into images/stills
    python tools/stills.py 01 07        of these

A still is what the figure's own button saves, for a reader who wants less motion. Build the site
before, and again afterwards.
"""

import sys
from pathlib import Path

from browser import UNFOLD, chromium, opened
from check_environment import ROOT
from PIL import Image
from playwright.sync_api import Browser, ViewportSize

SITE = ROOT / "_build" / "html" / "chapters"
STILLS = ROOT / "images" / "stills"
SIZE: ViewportSize = {"width": 1280, "height": 900}


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


if __name__ == "__main__":
    found, numbers = chromium(), sys.argv[1:]
    if found is None or not SITE.is_dir():
        sys.exit("stills need a Chromium, and the site: run make book")
    STILLS.mkdir(parents=True, exist_ok=True)
    with opened(found) as browser:
        for page in sorted(SITE.glob("*.html")):
            if not numbers or page.name[:2] in numbers:
                take(browser, page)
