"""The page of cards to remember: static/cards.js asks those that are due, one at a time.

The page's front matter says ``cards: true``. Each chapter's summary ends in a link to its own.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx


def link(app: Sphinx, tree: nodes.document) -> None:
    """Below a chapter's summary, a link to its cards."""
    page = app.env.docname
    if not page.startswith("chapters/"):
        return
    target = f"cards-{int(page.removeprefix('chapters/')[:2])}"
    where = {"refdomain": "std", "reftype": "ref", "reftarget": target, "refdoc": page}
    words = nodes.inline("", "its cards")
    reference = addnodes.pending_xref("", words, refexplicit=True, **where)
    line = nodes.paragraph(
        "", "", nodes.Text("To remember this chapter: "), reference, nodes.Text(".")
    )
    for section in tree.findall(nodes.section):
        if "summary" in section["ids"]:
            section.append(line)


def note_page(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """The page of cards loads its script."""
    if app.env.metadata.get(page, {}).get("cards"):
        app.add_js_file("cards.js", loading_method="defer", priority=910)


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.connect("doctree-read", link)
    app.connect("html-page-context", note_page)
