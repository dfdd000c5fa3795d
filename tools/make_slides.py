"""Make the decks of lectures/*.md, in the built site.

python tools/make_slides.py              every deck, into _build/html/lectures
python tools/make_slides.py 01a 04b      these

A deck refers to its chapter and copies nothing from it: cells, what they printed, formulas and
figures are those of the committed notebook. What the chapter does not have is an error with the
deck's file and line.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from slides import ROOT
from slides.build import make
from slides.deck import DeckError

SITE = ROOT / "_build" / "html"


def main(chosen: Sequence[str]) -> int:
    """The command; returns its exit status."""
    if not (SITE / "_static" / "stills").is_dir():
        print(
            "The slides stand in the built site, and there is none: run make book", file=sys.stderr
        )
        return 1
    try:
        problems = make(ROOT, SITE, chosen)
    except DeckError as error:
        problems = [str(error)]
    for problem in problems:
        print(problem, file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
