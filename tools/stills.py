"""Take a still of each live figure of the built site, for paper and readers without JavaScript.

    python tools/stills.py              of every chapter, into images/stills
    python tools/stills.py 01 07        of these
    python tools/stills.py card         the picture that a link to the book shows, images/card.png

A still is what the figure's own button saves, for a reader who wants less motion. Build the site
before, and again afterwards.
"""

import base64
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from browser import chromium, opened
from check_environment import ROOT
from PIL import Image
from playwright.sync_api import Browser, Locator, ViewportSize

SITE = ROOT / "_build" / "html" / "chapters"
STILLS = ROOT / "images" / "stills"
SIZE: ViewportSize = {"width": 1280, "height": 900}
# of a figure that shows little when it is new, the button that is pressed, and how often
PRESSED = {"live-regressor-training": ("100 steps", 20)}
FONT = "source-serif-4-latin-wght-normal.woff2"
CARD = ROOT / "images" / "card.png"
CARD_SIZE: ViewportSize = {"width": 1200, "height": 630}
CARD_PAGE = """<!doctype html><style>
  @font-face {{ font-family: Text; src: url("{font}"); font-weight: 200 900; }}
  body {{ margin: 0; height: 630px; background: #fdfcf9; color: #23272e; font-family: Text; }}
  main {{ padding: 90px 100px; }}
  svg {{ width: 760px; fill: #8a939e; margin-bottom: 50px; }}
  .query {{ fill: #a8430f; }}
  h1 {{ font-size: 84px; font-weight: 600; line-height: 1.1; margin: 0 0 30px; }}
  p {{ font-size: 40px; margin: 0; color: #5b626c; }}
</style><main>{mark}<h1>From Kernel Regression<br>to the Transformer</h1>
<p>One weighted average at a time, in PyTorch and JAX</p></main>"""


def press(figure: Locator) -> None:
    """Bring a figure to the state that its still shows."""
    label, times = PRESSED.get(figure.get_attribute("id") or "", ("", 0))
    for _ in range(times):
        figure.get_by_role("button", name=label).click()


def take(browser: Browser, page: Path) -> list[Path]:
    """Save the stills of one page; the files."""
    seen = browser.new_page(
        viewport=SIZE, device_scale_factor=2, color_scheme="light", reduced_motion="reduce"
    )
    seen.goto(page.as_uri())
    files = []
    for figure in seen.locator(".attnbook-live").all():
        figure.scroll_into_view_if_needed()
        press(figure)
        with seen.expect_download() as download:
            figure.get_by_role("button", name="save as PNG").click()
        name = Path(download.value.suggested_filename)
        file = STILLS / name.with_suffix(".webp")
        with Image.open(download.value.path()) as image:
            image.convert("RGB").save(file, lossless=True, method=6)
        files.append(file)
    seen.close()
    return files


def card(browser: Browser) -> None:
    """Draw the picture of the book: its mark and its title."""
    title = ROOT / "_ext" / "attnbook_site" / "templates" / "book-title.html"
    (mark,) = re.findall(r"<svg.*?</svg>", title.read_text("utf-8"), re.DOTALL)
    font = base64.b64encode((SITE.parent / "_static" / "fonts" / FONT).read_bytes()).decode()
    page = browser.new_page(viewport=CARD_SIZE)
    page.set_content(CARD_PAGE.format(font=f"data:font/woff2;base64,{font}", mark=mark))
    page.evaluate("document.fonts.ready")
    page.screenshot(path=CARD)
    page.close()


def main(numbers: Sequence[str]) -> int:
    """The command; returns its exit status."""
    found = chromium()
    if found is None or not SITE.is_dir():
        print("stills need a Chromium, and the site: run make book", file=sys.stderr)
        return 1
    STILLS.mkdir(parents=True, exist_ok=True)
    with opened(found) as browser:
        if "card" in numbers:
            card(browser)
        for page in sorted(SITE.glob("*.html")):
            if not numbers or page.name[:2] in numbers:
                for file in take(browser, page):
                    print(f"{file.relative_to(ROOT).as_posix()}: {file.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
