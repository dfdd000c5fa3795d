"""Handouts of the lectures as PDFs, from the built site's slides.

python tools/handouts.py              every lecture, into _build/handouts
python tools/handouts.py 01a 04b      these

Two for each lecture, two slides on a page: the student's has lines to write on and no answers, the
lecturer's has answers and notes. Chromium prints them with tags, so that they can be read aloud.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from browser import chromium, opened
from check_environment import ROOT
from playwright.sync_api import Browser
from print_book import commit_day, set_dates

SLIDES = ROOT / "_build" / "html" / "lectures"
HANDOUTS = ROOT / "_build" / "handouts"
KINDS = {"student": "read", "lecturer": "read=notes"}
EVERYTHING = """async () => {
  for (const image of document.images) image.loading = "eager";
  await Promise.all([...document.images].map((image) => image.decode()));
  await document.fonts.ready;
}"""


def print_handout(browser: Browser, deck: Path, kind: str, pdf: Path) -> None:
    """One handout of a deck."""
    page = browser.new_page(color_scheme="light")
    page.goto(f"{deck.as_uri()}?{KINDS[kind]}&theme=light")
    page.evaluate(EVERYTHING)
    pdf.parent.mkdir(parents=True, exist_ok=True)
    page.pdf(path=pdf, prefer_css_page_size=True, print_background=True, tagged=True, outline=True)
    page.close()
    set_dates(pdf, commit_day(ROOT))


def main(chosen: Sequence[str]) -> int:
    """The command; returns its exit status."""
    decks = sorted(SLIDES.glob("[0-9]*.html"))
    unknown = [name for name in chosen if not any(d.name.startswith(name) for d in decks)]
    if not decks or unknown:
        have = f"there are {', '.join(d.name[:3] for d in decks)}" if decks else "run make book"
        print(f"No slides {', '.join(unknown) or f'in {SLIDES}'}: {have}", file=sys.stderr)
        return 1
    program = chromium()
    if program is None:
        print("Handouts need a Chromium: apt-get install chromium", file=sys.stderr)
        return 1
    with opened(program) as browser:
        for deck in decks:
            if not chosen or deck.name.startswith(tuple(chosen)):
                for kind in KINDS:
                    print_handout(browser, deck, kind, HANDOUTS / f"{deck.stem}-{kind}.pdf")
                print(f"{deck.stem}: handouts for students and for the lecturer", flush=True)
    print(f"The handouts are in {HANDOUTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
