"""A page is built again when its notebook, which has the outputs, was executed again."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx


def note_notebook(app: Sphinx, docname: str, source: list[str]) -> None:
    """A notebook beside a page's source is among the files that the page depends on."""
    notebook = Path(app.env.doc2path(docname)).with_suffix(".ipynb")
    if notebook.is_file():
        app.env.note_dependency(str(notebook))


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.connect("source-read", note_notebook)
