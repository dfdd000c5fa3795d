"""The book's Sphinx extension: formulas at build time, back-end tabs, no outside requests.

Parts, one module each:

- ``maths``: every formula is typeset by KaTeX while the site is built.
- ``tabs``: neighbouring cells tagged ``torch`` and ``jax`` become one block with two tabs.
- ``citations``: author and year in round brackets.
- ``exercises``: the overview of all exercises, and the reader's progress.
- ``runnable``: cells that run in the reader's browser, and what is sent there.
- ``reading``: what a page is about, for search engines and for the links to the next page.
- ``folded``: a folded cell says what it holds.
- ``heights``: how high each section is on a phone, before it is laid out.
- ``landing``: the landing page's buttons and its live figure.
- ``sidebar``: minutes in the list of pages.
- ``terms``: letters in the index of terms.
- ``search``: an index of sections, with formulas that can be read.
- ``footer``: what a page's code ran on.
- ``assets``: fonts, styles, Bokeh and trained models go into the site; what no page uses goes out.
- ``lectures``: links to a chapter's slides.
- ``drawings``: the book's drawings stand in the page as text, in the theme's colours.
- ``live``: live figures come after the page; a picture of each, for paper and without JavaScript.
- ``first_load``: one style sheet, scripts that nobody waits for, images that keep their place.
- ``notebooks``: a page shows the outputs of its notebook, and nothing is executed.
- ``project``: the repository's address and the version, read from pyproject.toml.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

from . import (
    assets,
    citations,
    drawings,
    exercises,
    folded,
    footer,
    heights,
    landing,
    lectures,
    live,
    maths,
    notebooks,
    project,
    reading,
    runnable,
    search,
    sidebar,
    tabs,
    terms,
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the parts to Sphinx."""
    parts = (
        project,
        maths,
        citations,
        folded,
        heights,
        tabs,
        exercises,
        runnable,
        notebooks,
        reading,
        landing,
        lectures,
        terms,
        sidebar,
        search,
        footer,
        drawings,
        live,
        assets,
    )
    for part in parts:
        part.setup(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
