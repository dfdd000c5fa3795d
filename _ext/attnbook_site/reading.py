"""What a page is about, in a sentence: for search engines, and for its neighbours' links to it.

The sentence is the ``description`` of the page's front matter.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder


def describe(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Give the templates the description of the page, of the one before and of the next."""
    about = {name: data.get("description", "") for name, data in app.env.metadata.items()}
    context["description"] = about.get(page, "")
    assert isinstance(app.builder, StandaloneHTMLBuilder)  # no other has templates of pages
    neighbours = app.builder.relations.get(page, [None, None, None])
    for key, neighbour in zip(("prev", "next"), neighbours[1:], strict=True):
        if context.get(key) and neighbour:
            context[key] = {**context[key], "description": about.get(neighbour, "")}


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.connect("html-page-context", describe)
