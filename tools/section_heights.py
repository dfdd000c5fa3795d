"""Write into each built page how high its sections are, so that a phone can wait with them.

    python tools/section_heights.py [site]

On a narrow window a section is laid out when the reader comes near (content.css). Until then it
counts as high as it was here, in Chromium: so the scroll bar tells the truth, and nothing jumps. A
page that has its heights already was not written anew, and is left alone. Without a Chromium no
page gets any, and a phone lays out whole pages.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from run_tests import ROOT, chromium

SITE = ROOT / "_build" / "html"
WIDTHS = {"--narrow": 390, "--wide": 540}  # of windows up to 480 and up to 600 pixels
AS_LAID_OUT = """.bd-article > section > section {
  content-visibility: visible !important; contain: layout style; }"""
HEIGHTS = """() => Object.fromEntries([...document.querySelectorAll(
  ".bd-article > section > section[id]")].map((e) => [e.id, e.offsetHeight]))"""


def heights(page: Page, file: Path) -> dict[str, dict[str, int]]:
    """For each section of a page its height in each window."""
    page.goto(file.as_uri())
    page.add_style_tag(content=AS_LAID_OUT)
    page.evaluate("document.fonts.ready")
    found: dict[str, dict[str, int]] = {}
    for name, width in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": 844})
        for section, height in page.evaluate(HEIGHTS).items():
            found.setdefault(section, {})[name] = height
    return found


def with_heights(text: str, found: dict[str, dict[str, int]]) -> str:
    """The page with its sections' heights."""
    for section, sides in found.items():
        style = "; ".join(f"{name}: {height}px" for name, height in sides.items())
        opening = re.compile(rf'<section(?=[^>]* id="{re.escape(section)}")(?![^>]* style=)')
        text = opening.sub(f'<section style="{style}"', text, count=1)
    return text


def main(site: Path = SITE) -> int:
    """The command; returns its exit status."""
    pages = [p for p in sorted(site.rglob("*.html")) if "_static" not in p.parts]
    new = [p for p in pages if f'<section style="{next(iter(WIDTHS))}' not in p.read_text("utf-8")]
    if not (program := chromium()):
        print("No Chromium or Chrome is here to measure sections: phones lay out whole pages.")
        return 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(color_scheme="light")
        for file in new:
            text = file.read_text("utf-8")
            file.write_text(with_heights(text, heights(page, file)), "utf-8", newline="\n")
        browser.close()
    print(f"sections measured: {len(new)} of {len(pages)} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
