"""What a second build keeps of the first one, and what it reads again.

A page is built again when its notebook, which has the outputs, was executed again. And a label may
move from one page to another: Sphinx forgets what a page said when it comes to reading it again,
which may be after it has read the other one, and it would then complain of two labels.
"""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def note_notebook(app: Sphinx, docname: str, source: list[str]) -> None:
    """A notebook beside a page's source is among the files that the page depends on."""
    notebook = Path(app.env.doc2path(docname)).with_suffix(".ipynb")
    if notebook.is_file():
        app.env.note_dependency(str(notebook))


def forget_changed(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Forget what all changed pages said before the first of them is read."""
    for docname in docnames:
        app.emit("env-purge-doc", env, docname)
        env.clear_doc(docname)


def setup(app: Sphinx) -> None:
    """Connect to Sphinx."""
    app.connect("source-read", note_notebook)
    app.connect("env-before-read-docs", forget_changed)
