"""Each chapter links to the slides of its lectures; tools/make_slides.py makes them afterwards."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import yaml
from sphinx.application import Sphinx


def link(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Below a chapter's title, links to its slides."""
    folder, _, name = page.partition("/")
    links = []
    for deck in sorted((Path(app.confdir) / "lectures").glob(f"{name[:2]}[ab]-*.md")):
        about = yaml.safe_load(deck.read_text(encoding="utf-8").split("---\n")[1])
        words = f"{about['number']} {escape(about['title'])}"
        links.append(f'<a href="../lectures/{deck.stem}.html">{words}</a>')
    if folder == "chapters" and links:
        line = f'<p class="slides-of-chapter screen-only">Slides: {" · ".join(links)}</p>'
        context["body"] = context["body"].replace("</h1>", f"</h1>\n{line}", 1)


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.connect("html-page-context", link)
