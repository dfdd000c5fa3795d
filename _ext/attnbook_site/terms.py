"""The index of terms: letters before its groups and in a row above, and a place for each term.

For a page whose front matter says ``letters: true``. static/terms.js adds a field that filters.
"""

from __future__ import annotations

from itertools import groupby
from string import ascii_uppercase
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


def initial(item: nodes.Element) -> str:
    """The letter under which an entry stands."""
    return item[0].astext()[0].upper()


def raw(text: str) -> nodes.raw:
    """HTML as it is."""
    return nodes.raw("", text, format="html")


def row(present: set[str]) -> nodes.raw:
    """The alphabet; letters with entries lead to them."""
    letters = (
        f'<a href="#letter-{one.lower()}">{one}</a>' if one in present else f"<span>{one}</span>"
        for one in ascii_uppercase
    )
    return raw(f'<nav class="letters screen-only" aria-label="Letters">{" ".join(letters)}</nav>')


def by_letter(app: Sphinx, tree: nodes.document) -> None:
    """Divide the page's list."""
    if not app.env.metadata.get(app.env.docname, {}).get("letters"):
        return
    (entries,) = tree.findall(nodes.definition_list)
    parts: list[nodes.Node] = []
    terms = [item for item in entries.children if isinstance(item, nodes.definition_list_item)]
    for letter, items in groupby(terms, key=initial):
        part = nodes.definition_list(classes=[*entries["classes"], "terms"])
        for item in items:
            term = next(item.findall(nodes.term))
            term["ids"].append(f"term-{nodes.make_id(term.astext())}")
            part.append(item)
        parts += [raw(f'<p class="letter" id="letter-{letter.lower()}">{letter}</p>'), part]
    entries.parent.replace(entries, [row(set(map(initial, terms))), *parts])


def note_page(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """The page loads the script that filters it."""
    if app.env.metadata.get(page, {}).get("letters"):
        app.add_js_file("terms.js", loading_method="defer", priority=910)


def setup(app: Sphinx) -> None:
    """Connect to the steps of a build."""
    app.connect("doctree-read", by_letter)
    app.connect("html-page-context", note_page)
