"""Measure how high each section of the built site is on a phone, which the next build writes down.

    python tools/section_heights.py

On a narrow window a section is laid out when the reader comes near (content.css). Until then it
counts as high as it was here, in Chromium: so the scroll bar tells the truth, and nothing jumps.
The heights are stored, so that building the site needs no browser; a section without one is laid
out with the page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from browser import chromium, opened
from check_environment import ROOT
from playwright.sync_api import Page

SITE = ROOT / "_build" / "html"
STORED = ROOT / "_ext" / "attnbook_site" / "heights.json"
WIDTHS = (390, 540)  # of windows up to 480 and up to 600 pixels
AS_LAID_OUT = """.bd-article > section > section {
  content-visibility: visible !important; contain: layout style; }"""
HEIGHTS = """() => Object.fromEntries([...document.querySelectorAll(
  ".bd-article > section > section[id]")].map((e) => [e.id, e.offsetHeight]))"""


def heights(page: Page, file: Path) -> dict[str, list[int]]:
    """For each section of a page its height in each window."""
    page.goto(file.as_uri())
    page.add_style_tag(content=AS_LAID_OUT)
    page.evaluate("document.fonts.ready")
    found: dict[str, list[int]] = {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 844})
        for section, height in page.evaluate(HEIGHTS).items():
            found.setdefault(section, []).append(height)
    return found


def main() -> int:
    """The command; returns its exit status."""
    pages = [p for p in sorted(SITE.rglob("*.html")) if "_static" not in p.parts]
    if not pages:
        print("There is no built book yet. Do: make book", file=sys.stderr)
        return 1
    if not (program := chromium()):
        print("No Chromium or Chrome is here to measure sections.", file=sys.stderr)
        return 1
    found = {}
    with opened(program) as browser:
        page = browser.new_page(color_scheme="light")
        for file in pages:
            if measured := heights(page, file):
                found[file.relative_to(SITE).with_suffix("").as_posix()] = measured
    STORED.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n", "utf-8", newline="\n")
    print(f"{sum(map(len, found.values()))} sections of {len(found)} pages measured: make book")
    return 0


if __name__ == "__main__":
    sys.exit(main())
