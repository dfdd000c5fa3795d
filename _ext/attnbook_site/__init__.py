"""The book's Sphinx extension: formulas at build time, stored outputs, no outside requests.

- ``project``: the repository's address and the version, read from pyproject.toml.
- ``maths``: every formula is typeset by KaTeX while the site is built.
- ``folded``: a folded cell says what it holds.
- ``tabs``: neighbouring cells tagged ``torch`` and ``jax`` become tabs.
- ``exercises``: each exercise as one card, the overview of all, and the reader's progress.
- ``runnable``: cells that run in the reader's browser, and what is sent there.
- ``notebooks``: a page shows the outputs of its notebook, and nothing is executed.
- ``landing``: the landing page's buttons and its live figure.
- ``doors``: pages of one idea and one figure each, and a list of them.
- ``lectures``: links to a chapter's slides.
- ``road``: what is deeper folds, and pages say how long the road through them takes.
- ``footer``: what a page's code ran on, and what was measured on.
- ``drawings``: the book's drawings stand in the page as text, in the theme's colours.
- ``live``: live figures come after the page; a picture of each, for paper and without JavaScript.
- ``images``: an image says its size before it comes, and opens whole.
- ``listings``: a long line of code goes on below its beginning on a phone.
- ``search``: what the search finds, and by which words.
- ``found``: what search engines and the previews of links are told of a page.
- ``plain``: the chapters as plain Markdown, and llms.txt, which lists them for assistants.
- ``citations``: author and year in round brackets.
- ``assets``: fonts, styles, Bokeh and trained models go into the site.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sphinx.application import Sphinx

PARTS = (
    "project",
    "maths",
    "folded",
    "tabs",
    "exercises",
    "runnable",
    "notebooks",
    "landing",
    "doors",
    "lectures",
    "road",
    "footer",
    "drawings",
    "live",
    "images",
    "listings",
    "search",
    "found",
    "plain",
    "citations",
    "assets",
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the parts to Sphinx."""
    for part in PARTS:
        import_module(f"{__name__}.{part}").setup(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
