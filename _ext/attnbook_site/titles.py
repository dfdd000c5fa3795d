"""A word with a hyphen does not break in a title: neither in the page nor in the lists of pages."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

HYPHENATED = re.compile(r"(\w+(?:-\w+)+)")


def keep_whole(title: nodes.Element) -> None:
    """Put each word with a hyphen into a span; its letters stay, for whoever searches them."""
    for text in list(title.findall(nodes.Text)):
        parts = HYPHENATED.split(text.astext())
        if len(parts) > 1:
            spans = [
                nodes.inline("", part, classes=["clings"]) if i % 2 else nodes.Text(part)
                for i, part in enumerate(parts)
                if part
            ]
            text.parent.replace(text, spans)


def change_titles(app: Sphinx, document: nodes.document) -> None:
    """Change a page's titles and its contents, which Sphinx has collected."""
    for title in [*document.findall(nodes.title), app.env.tocs[app.env.docname]]:
        keep_whole(title)


def setup(app: Sphinx) -> None:
    """Connect to Sphinx; its own collectors come at 500."""
    app.connect("doctree-read", change_titles, priority=600)
