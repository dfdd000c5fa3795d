"""Put a chapter's notebook together: translated prose, code cells, the set-up cell."""

import hashlib
from collections import Counter
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from pybtex.database import BibliographyData

from weaving.blocks import Block, parse
from weaving.book import Book, Page
from weaving.labels import Table
from weaving.markdown import figure_caption, render
from weaving.roles import RoleResolver

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
SETUP_TAG = "setup"
RAN = "ran"  # of an executed notebook's metadata: when, on what machine, with which libraries
SETUP = """\
# On Colab: install the book's package, keeping every library that is there. Elsewhere: nothing.
import importlib
import os
import subprocess
import sys

if "COLAB_RELEASE_TAG" in os.environ:
    package = "attnbook[notebooks,torch,jax] @ git+{repository}"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, package], check=True)
    importlib.invalidate_caches()
    print("attnbook is installed.")"""
# Not a ModuleNotFoundError: to those Colab adds the advice to install the name from an index.
SETUP_WITHOUT_ADDRESS = """\
# On Colab: say what this copy of the book lacks. Elsewhere: nothing.
import importlib.util
import os

if "COLAB_RELEASE_TAG" in os.environ and importlib.util.find_spec("attnbook") is None:
    raise RuntimeError(
        "This copy of the book has no address to install its package from: in a clone of your own, "
        "type make address REPO=owner/name, push it, and open the chapter from there "
        "(CONTRIBUTING.md, Publish your own copy)."
    )"""


def weave(book: Book, page: Page, table: Table, references: BibliographyData) -> NotebookNode:
    """The chapter's notebook, without outputs."""
    blocks = parse(page.path.read_text("utf-8"), book.file(page))
    resolver = RoleResolver(book, table, references, page)
    _cells(blocks, resolver)  # gathers the keys cited, for the list at the chapter's end
    notebook = new_notebook(cells=_cells(blocks, resolver), metadata=METADATA)
    notebook.nbformat_minor = 5
    return notebook


def _cells(blocks: tuple[Block, ...], resolver: RoleResolver) -> list[NotebookNode]:
    """The cells in the order of the source; the set-up cell comes after the title."""
    book, page = resolver.book, resolver.page
    cells: list[NotebookNode] = []
    waiting: list[Block] = []
    for block in blocks:
        if block.name == "code-cell" or block.kind == "break":
            _flush(cells, waiting, resolver)
            if block.name == "code-cell":
                cells.append(_code_cell(block))
                _add_markdown(cells, figure_caption(block, resolver))
            continue
        waiting.append(block)
        if block.kind == "heading" and block.level == 1:
            _flush(cells, waiting, resolver)
            cells[-1].source += f"\n\n{_origin(book, page)}"
            cells.append(setup_cell(book.repository))
    _flush(cells, waiting, resolver)
    _give_ids(cells)
    return cells


def setup_cell(repository: str) -> NotebookNode:
    """The cell that makes the package importable on Colab, or says why it cannot."""
    source = SETUP.format(repository=repository) if repository else SETUP_WITHOUT_ADDRESS
    return new_code_cell(source, metadata={"tags": [SETUP_TAG]})


def text_of(notebook: NotebookNode) -> str:
    """The notebook as its file holds it."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook, version=nbformat.NO_CONVERT) + "\n"


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The notebook's code cells."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def is_setup(cell: NotebookNode) -> bool:
    """Whether a cell is the one that weaving adds."""
    return SETUP_TAG in cell.metadata.get("tags", [])


def _origin(book: Book, page: Page) -> str:
    """One line that leads from the notebook to its page, or without a site to the landing page."""
    there = page if book.site else book.pages[0]
    return f"*A chapter of [{book.title}]({book.address(there.docname)}).*"


def _flush(cells: list[NotebookNode], waiting: list[Block], resolver: RoleResolver) -> None:
    """Make a Markdown cell of the blocks gathered so far."""
    _add_markdown(cells, render(waiting, resolver))
    waiting.clear()


def _add_markdown(cells: list[NotebookNode], source: str) -> None:
    """Append a Markdown cell unless it is empty."""
    if source:
        cells.append(new_markdown_cell(source))


def _code_cell(block: Block) -> NotebookNode:
    """A code cell with its tags and its alt text."""
    metadata: dict[str, Any] = dict(block.options)
    return new_code_cell(block.text.strip("\n"), metadata=metadata)


def _give_ids(cells: list[NotebookNode]) -> None:
    """Ids that depend on the cells' sources alone, so that an edit changes no other cell."""
    seen: Counter[str] = Counter()
    for cell in cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
        seen[digest] += 1
        cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
