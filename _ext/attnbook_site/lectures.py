"""Each chapter links to the slides of its lectures; tools/make_slides.py makes them afterwards."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

import yaml
from sphinx.application import Sphinx
from sphinx.config import Config

FRONT_MATTER = re.compile(r"---\n(.*?\n)---\n", re.DOTALL)


def decks(root: Path, chapter: str = "") -> list[tuple[str, dict[str, Any]]]:
    """The decks of a chapter, or all, in their order; each with its front matter."""
    found = []
    for file in sorted((root / "lectures").glob(f"{chapter[:2] or '[0-9][0-9]'}[ab]-*.md")):
        match = FRONT_MATTER.match(file.read_text(encoding="utf-8"))
        if match:
            found.append((file.stem, yaml.safe_load(match[1])))
    return found


def note(app: Sphinx, config: Config) -> None:
    """A deck with another name writes the pages again."""
    named = [(name, about["number"], about["title"]) for name, about in decks(Path(app.confdir))]
    config.attnbook_lectures = repr(named)


def link(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Below a chapter's title, links to its slides."""
    if not page.startswith("chapters/"):
        return
    links = " · ".join(
        f'<a href="../lectures/{name}.html">{about["number"]} {escape(about["title"])}</a>'
        for name, about in decks(Path(app.confdir), page.removeprefix("chapters/"))
    )
    if links:
        line = f'<p class="slides-of-chapter screen-only">Slides: {links}</p>'
        context["body"] = context["body"].replace("</h1>", f"</h1>\n{line}", 1)


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.add_config_value("attnbook_lectures", "", "html")
    app.connect("config-inited", note)
    app.connect("html-page-context", link)
