"""Parts of the landing page: ``{start-buttons}``, and ``{live-figure}`` with a chapter's name.

The figure is the one that the chapter's executed notebook has stored: nothing runs for it here.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from attnbook_course.weaving.stills import without_still

from .project import BRANCH, GITHUB

COLAB = "https://colab.research.google.com/github"


def button(address: str, words: str, kind: str) -> str:
    """A link that looks like a button."""
    return f'<a class="start-button {kind}" href="{escape(address)}">{words}</a>'


class StartButtons(SphinxDirective):
    """Start reading, and Open in Colab as soon as the book has an address: with its argument."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The two links."""
        builder, chapter = self.env.app.builder, self.arguments[0]
        reading = builder.get_relative_uri(self.env.docname, chapter)
        links = [button(reading, "Start reading", "first")]
        repository = self.config.html_theme_options.get("repository_url", "")
        if repository:
            both = repository.removeprefix(GITHUB)
            notebook = f"{COLAB}/{both}/blob/{BRANCH}/{chapter}.ipynb"
            links.append(button(notebook, "Open in Colab", "second"))
        text = f'<p class="start-buttons screen-only">{"".join(links)}</p>'
        return [nodes.raw("", text, format="html")]


def live_figure(notebook: Path) -> str:
    """The first live figure among a notebook's outputs, as on its own page; empty without one."""
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            text = "".join(output.get("data", {}).get("text/html", ""))
            if 'class="attnbook-live"' in text:
                return without_still(text)
    return ""


class LiveFigure(SphinxDirective):
    """The live figure of a chapter, on another page too; not on paper, where the chapter has it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The figure, or a complaint that fails the build."""
        notebook = Path(self.env.srcdir) / f"{self.arguments[0]}.ipynb"
        self.env.note_dependency(str(notebook))
        text = live_figure(notebook)
        if not text:
            raise self.error(f"{notebook.name} has no live figure among its outputs")
        return [nodes.raw("", f'<div class="screen-only">\n{text}\n</div>', format="html")]


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("start-buttons", StartButtons)
    app.add_directive("live-figure", LiveFigure)
