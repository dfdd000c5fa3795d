"""What a homework's notebook begins with, and how its texts refer to the book."""

from __future__ import annotations

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from attnbook_course.weaving.book import Book
from attnbook_course.weaving.labels import Label
from attnbook_course.weaving.notebook import setup_cell
from attnbook_course.weaving.roles import RoleResolver

HEAD = """\
# {title}

{count} exercises, {points:g} points. Numbered figures and formulas are those of {chapters}.

- Write each answer in the cell below its question, and run the cell. A check says at once whether \
it is right, or what is probably wrong. Where the cell says `checks.trial`, only your lecturer's \
check knows the answer.
- Answers are judged by what your functions give, in a fresh Python that runs your cells from the \
top. Before you hand in, restart the kernel and run all cells.
- Imports and functions of your own are welcome, in any cell. Keep the names of the functions \
asked for. One answer may take {seconds} seconds.
- Save the notebook, and hand in this one file."""
NOT_HERE = """\
# Where the book's package is installed, as on your course's hub, this cell does nothing.
import importlib.util

if importlib.util.find_spec("attnbook") is None:
    raise RuntimeError(
        "This notebook needs the package attnbook, which is not installed here. Ask your lecturer "
        "where to open the notebook."
    )"""


class Elsewhere(RoleResolver):
    """In a homework a place of its own chapter is another page's, too."""

    def _point(self, label: Label, text: str) -> str:
        return f"[{text}]({self.book.address(label.docname, label.anchor)})"


def set_up(book: Book) -> NotebookNode:
    """The cell that installs the package where it is missing, or says whom to ask."""
    cell = setup_cell(book) if book.repository else new_code_cell(NOT_HERE)
    cell.id = "set-up"
    return cell
