"""A page in another language says so: below its title stands locales/LANGUAGE/notice.md."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx


def add_notice(app: Sphinx, tree: nodes.document) -> None:
    """On pages that have a catalogue."""
    language, page = app.config.language, app.env.docname
    folder = Path(app.srcdir) / "locales" / language
    title = next(iter(tree.findall(nodes.title)), None)
    if language == "en" or title is None:
        return
    if (folder / "LC_MESSAGES" / f"{page}.po").is_file():
        text = (folder / "notice.md").read_text("utf-8").strip()
        notice = nodes.note("", nodes.paragraph("", text), classes=["translated"])
        title.parent.insert(title.parent.index(title) + 1, notice)


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.connect("doctree-read", add_notice)
