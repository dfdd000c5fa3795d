"""Take a still of each live figure of the built site, for paper and readers without JavaScript.

    python tools/stills.py              of every chapter, into images/stills
    python tools/stills.py 01 07        of these

A still is what the figure's own button saves. Build the site before, and again afterwards.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright
from run_tests import ROOT, chromium

SITE = ROOT / "_build" / "html" / "chapters"
STILLS = ROOT / "images" / "stills"
SIZE = {"width": 1280, "height": 900}


def take(browser: Browser, page: Path) -> list[Path]:
    """Save the stills of one page; the files."""
    seen = browser.new_page(viewport=SIZE, device_scale_factor=2, color_scheme="light")
    seen.goto(page.as_uri())
    files = []
    for figure in seen.locator(".attnbook-live").all():
        figure.scroll_into_view_if_needed()
        with seen.expect_download() as download:
            figure.get_by_role("button", name="save as PNG").click()
        name = Path(download.value.suggested_filename)
        file = STILLS / name.with_suffix(".webp")
        with Image.open(download.value.path()) as image:
            image.convert("RGB").save(file, lossless=True, method=6)
        files.append(file)
    seen.close()
    return files


def main(numbers: Sequence[str]) -> int:
    """The command; returns its exit status."""
    found = chromium()
    if found is None or not SITE.is_dir():
        print("stills need a Chromium, and the site: run make book", file=sys.stderr)
        return 1
    STILLS.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for page in sorted(SITE.glob("*.html")):
            if not numbers or page.name[:2] in numbers:
                for file in take(browser, page):
                    print(f"{file.relative_to(ROOT).as_posix()}: {file.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
