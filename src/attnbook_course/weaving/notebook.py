"""Put a chapter's notebook together: translated prose, code cells, the set-up cell."""

import copy
import hashlib
from collections import Counter
from typing import Any

import nbformat
from docutils.nodes import make_id
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from pybtex.database import BibliographyData

from attnbook_course.road import DEEPER
from attnbook_course.weaving.blocks import Block, parse
from attnbook_course.weaving.book import Book, Page
from attnbook_course.weaving.labels import Table
from attnbook_course.weaving.markdown import figure_caption, render
from attnbook_course.weaving.roles import RoleResolver

METADATA: dict[str, Any] = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
SETUP_TAG = "setup"
RAN = "ran"  # of an executed notebook's metadata: when, on what machine, with which libraries
SETUP = """\
# @title Set-up: installs the book's package where it is missing, as on Colab; elsewhere nothing
import importlib.util
import os
import site
import subprocess
import sys
from pathlib import Path

if importlib.util.find_spec("attnbook") is None:
    # a copy of the whole book: around the notebook, beside it, or in a Drive that Colab shows
    here, notebook = Path.cwd(), Path(os.environ.get("JPY_SESSION_NAME", "")).resolve()
    around = [*notebook.parents, here, *here.parents, *here.glob("*")]
    around += here.glob("drive/MyDrive/*")
    books = [book for book in around if os.path.isdir(book / "src/attnbook")]
    place = books[0].as_uri() if books else "{place}"
{check}    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run([*pip, f"attnbook[notebooks,torch,jax] @ {{place}}"])
    if done.returncode:
        raise RuntimeError(
            "pip could not install the book's package; it says why above. Without a network it "
            "cannot: Kaggle has a switch for the internet under Settings."
        )
    if site.ENABLE_USER_SITE:
        site.addsitedir(site.getusersitepackages())  # where pip puts it on a shared machine
    importlib.invalidate_caches()
    print("attnbook is installed.")"""
# Not a ModuleNotFoundError: to those Colab adds the advice to install the name from an index.
NO_ADDRESS = """\
    if not place:
        raise RuntimeError(
            "This notebook needs the book's package, attnbook, and knows no address to install it "
            "from. To read on, open the chapter from a copy of the book that has an address (ask "
            "whoever gave you this file), or get the whole book and type make lab in its folder. "
            "If you publish this copy, write its address into pyproject.toml (MAINTAINING.md, "
            "Publish your own copy)."
        )
"""
ON_GPU = "torch_device()"  # in the code of a chapter that trains
HIDDEN = {"hide-cell", "hide-input"}  # tags: the site folds these cells
# JupyterLab shows such a cell's first line; Colab a link "Show code", and a first line with @title
FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form"}
COLLAPSED = "jp-MarkdownHeadingCollapsed"  # JupyterLab's, of a cell that begins with a heading
BACKENDS = {"torch": "PyTorch", "jax": "JAX"}  # tags: the site makes tabs of these cells
GPU = {"accelerator": "GPU", "colab": {"gpuType": "T4"}}  # Colab then offers a machine with one


def weave(book: Book, page: Page, table: Table, references: BibliographyData) -> NotebookNode:
    """The chapter's notebook, without outputs."""
    blocks = parse(page.path.read_text("utf-8"), book.file(page))
    resolver = RoleResolver(book, table, references, page)
    _cells(blocks, resolver)  # gathers the keys cited, for the list at the chapter's end
    cells = _cells(blocks, resolver)
    trains = any(cell.cell_type == "code" and ON_GPU in cell.source for cell in cells)
    metadata = copy.deepcopy(METADATA | (GPU if trains else {}))
    if deeper := [cell.id for cell in cells if COLLAPSED in cell.metadata]:
        metadata.setdefault("colab", {})["collapsed_sections"] = deeper  # Colab's way
    notebook = new_notebook(cells=cells, metadata=metadata)
    notebook.nbformat_minor = 5
    return notebook


def _cells(blocks: tuple[Block, ...], resolver: RoleResolver) -> list[NotebookNode]:
    """The cells in the order of the source; the set-up cell comes after the title."""
    book, page = resolver.book, resolver.page
    cells: list[NotebookNode] = []
    waiting: list[Block] = []
    named = set[str]()

    def flush() -> None:
        """Make a Markdown cell of the blocks gathered so far; a label in front names it."""
        _add_markdown(cells, render(waiting, resolver))
        if waiting and waiting[0].kind == "target":
            cells[-1].id = make_id(waiting[0].text)
            named.add(cells[-1].id)
        waiting.clear()

    folds = False
    for block in blocks:
        is_deeper = block.kind == "heading" and block.text.startswith(DEEPER)
        folds = folds or is_deeper
        begins = block.kind == "target" or (folds and block.kind == "heading")
        if begins and not (waiting and waiting[-1].kind == "target"):
            flush()  # links lead to a cell; what folds is one, and so is what comes after it
        if block.name == "code-cell":
            flush()
            _add_markdown(cells, _label(block, cells))
            cells.append(_code_cell(block))
            _add_markdown(cells, figure_caption(block, resolver))
        elif block.kind == "break":
            flush()
        else:
            waiting.append(block)
        if is_deeper:
            flush()
            cells[-1].metadata[COLLAPSED] = True
        if block.kind == "heading" and block.level == 1:
            flush()
            cells[-1].source += f"\n\n{_origin(book, page)}"
            cells.append(setup_cell(book))
    flush()
    _give_ids(cells, named)
    return cells


def setup_cell(book: Book) -> NotebookNode:
    """The cell that makes the package importable where it is missing, or says why it cannot."""
    place = f"git+{book.repository}{book.tag and '@' + book.tag}" if book.repository else ""
    source = SETUP.format(place=place, check="" if place else NO_ADDRESS)
    return new_code_cell(source, metadata={"tags": [SETUP_TAG], **FOLDED})


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
    """One line that leads from the notebook to its page, without a site to the repository."""
    there = book.address(page.docname) if book.site else book.repository
    return f"*A chapter of [{book.title}]({there}).*" if there else f"*A chapter of {book.title}.*"


def _add_markdown(cells: list[NotebookNode], source: str) -> None:
    """Append a Markdown cell unless it is empty."""
    if source:
        cells.append(new_markdown_cell(source))


def _label(block: Block, before: list[NotebookNode]) -> str:
    """The back end of a cell that the site shows in a tab; empty where the cell above has it."""
    tags = block.options.get("tags", [])
    above = before[-1].metadata.get("tags", []) if before else []
    return "".join(
        f"**{name}**" for tag, name in BACKENDS.items() if tag in tags and tag not in above
    )


def _code_cell(block: Block) -> NotebookNode:
    """A code cell with its tags and its alt text, folded where the site folds it."""
    metadata: dict[str, Any] = dict(block.options)
    if HIDDEN & {*metadata.get("tags", [])}:
        metadata |= FOLDED
    return new_code_cell(block.text.strip("\n"), metadata=metadata)


def _give_ids(cells: list[NotebookNode], named: set[str]) -> None:
    """Ids that depend on the cells' sources alone, so that an edit changes no other cell.

    Those in ``named`` stay.
    """
    seen: Counter[str] = Counter()
    for cell in cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
        seen[digest] += 1
        if cell.id not in named:
            cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
        if COLLAPSED in cell.metadata:
            cell.metadata["id"] = cell.id  # by which Colab knows a cell
