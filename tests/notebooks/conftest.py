"""A two-chapter book with every construct, written afresh for each test that asks for it."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from nbformat import NotebookNode
from sample import FILES, HEADER, ROOT

sys.path.insert(0, str(ROOT / "tools"))

from weave import main, woven

from attnbook_course.weaving.book import read_book


def write_book(folder: Path) -> Path:
    """Write the sample book into a new folder."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


@pytest.fixture
def book_root(tmp_path: Path) -> Path:
    """The folder of the sample book."""
    return write_book(tmp_path / "book")


@pytest.fixture(scope="session")
def executed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample book with its notebooks executed, to be copied, not changed."""
    book = write_book(tmp_path_factory.mktemp("executed") / "book")
    assert main(["-j", "2"], book) == 0
    return book


@pytest.fixture
def executed(executed_once: Path, tmp_path: Path) -> Path:
    """The sample book with its notebooks executed; a copy for each test, as two kernels take seconds."""
    return shutil.copytree(executed_once, tmp_path / "book")


@pytest.fixture
def sample(book_root: Path) -> NotebookNode:
    """The sample book's first chapter, woven."""
    book = read_book(book_root)
    return next(iter(woven(book, book.notebooks()).values()))


@pytest.fixture
def weave_text(book_root: Path) -> Callable[[str], str]:
    """Weave a chapter 1 with this text below its title; its Markdown below the set-up cell."""

    def weave_text(text: str) -> str:
        source = book_root / "chapters/01-sample.md"
        source.write_text(f"{HEADER}# Sample\n\n{text}\n", "utf-8")
        book = read_book(book_root)
        notebook = woven(book, book.notebooks()[:1])[book.notebooks()[0]]
        cells = [cell for cell in notebook.cells[2:] if cell.cell_type == "markdown"]
        return "\n\n".join(cell.source for cell in cells)

    return weave_text
