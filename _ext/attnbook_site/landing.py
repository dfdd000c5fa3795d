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


class StartButtons(SphinxDirective):
    """Start reading, and Open in Colab as soon as the book has an address: with its argument."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The two links."""
        builder, chapter = self.env.app.builder, self.arguments[0]
        links = {"Start reading": builder.get_relative_uri(self.env.docname, chapter)}
        if repository := self.config.html_theme_options.get("repository_url", ""):
            place = f"{repository.removeprefix(GITHUB)}/blob/{BRANCH}/{chapter}.ipynb"
            links["Open in Colab"] = f"{COLAB}/{place}"
        buttons = "".join(
            f'<a class="start-button" href="{escape(address)}">{words}</a>'
            for words, address in links.items()
        )
        return [nodes.raw("", f'<p class="start-buttons screen-only">{buttons}</p>', format="html")]


class LiveFigure(SphinxDirective):
    """The live figure of a chapter, on another page too; not on paper, where the chapter has it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The first one among a notebook's outputs, or a complaint that fails the build."""
        notebook = Path(self.env.srcdir) / f"{self.arguments[0]}.ipynb"
        self.env.note_dependency(str(notebook))
        for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
            for output in cell.get("outputs", []):
                text = "".join(output.get("data", {}).get("text/html", ""))
                if 'class="attnbook-live"' in text:
                    html = f'<div class="screen-only">\n{without_still(text)}\n</div>'
                    return [nodes.raw("", html, format="html")]
        raise self.error(f"{notebook.name} has no live figure among its outputs")


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("start-buttons", StartButtons)
    app.add_directive("live-figure", LiveFigure)
