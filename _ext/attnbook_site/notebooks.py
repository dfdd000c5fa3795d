"""A page shows the outputs of the notebook beside it. To build the site executes nothing.

A page is built again when its notebook, which has the outputs, was executed again. And a label may
move from one page to another: Sphinx forgets what a page said when it comes to reading it again,
which may be after it has read the other one, and it would then complain of two labels.
"""

from __future__ import annotations

from pathlib import Path

from myst_nb.core.read import is_myst_markdown_notebook, read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from attnbook_course.weaving.freshness import is_executed, read_stored
from attnbook_course.weaving.notebook import code_cells, is_setup
from attnbook_course.weaving.stills import without_still

NO_OUTPUTS = "got no stored outputs of the code as it stands; do: make notebooks"
# what tells a cell from the text around it, as in weaving
BLOCKS = MdParserConfig(enable_extensions={"amsmath", "colon_fence", "dollarmath"})
logger = logging.getLogger(__name__)


def read(text: str, path: str) -> NotebookNode:
    """A page as MyST-NB reads it, with its notebook's outputs; a warning where they do not fit."""
    page: NotebookNode = read_myst_markdown_notebook(text, BLOCKS, add_source_map=True, path=path)
    starts = zip(page.metadata["source_map"], page.cells, strict=True)
    cells = [(line, cell) for line, cell in starts if cell.cell_type == "code"]
    stored = read_stored(Path(path).with_suffix(".ipynb"))
    executed = []
    if stored is not None and is_executed(stored):
        executed = [cell for cell in code_cells(stored) if not is_setup(cell)]
    pairs = zip(cells, executed, strict=False)
    fit = [cell.source.strip("\n") == old.source for (_, cell), old in pairs]
    if len(fit) != max(len(cells), len(executed)) or not all(fit):
        first = min([*fit, False].index(False), len(cells) - 1)
        logger.warning(NO_OUTPUTS, location=f"{path}:{cells[first][0] + 1}")
        return page
    for (_, cell), old in zip(cells, executed, strict=True):
        for output in old.outputs:
            if "text/html" in output.get("data", {}):  # the site has pictures of its own
                output.data["text/html"] = without_still(output.data["text/html"])
        cell.outputs, cell.execution_count = old.outputs, old.execution_count
    return page


def name_pages(app: Sphinx, config: Config) -> None:
    """Let MyST-NB read each page that has code through ``read``."""
    for page in sorted(Path(app.srcdir).glob("*/*.md")):
        if is_myst_markdown_notebook(page.read_text("utf-8")):
            config.nb_custom_formats[str(page)] = [f"{__name__}.read", {"path": str(page)}]


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
    """Connect to Sphinx; MyST-NB takes each name of a format (500) for the ending of a source."""
    app.connect("config-inited", name_pages, priority=600)
    app.connect("source-read", note_notebook)
    app.connect("env-before-read-docs", forget_changed)
