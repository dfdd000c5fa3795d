"""What a homework's notebook brings with it: set-up, sections to read again, and figures."""

from __future__ import annotations

import base64
import functools
import json
import re
import zlib
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_output

from attnbook_course.checks.exercises import Exercise
from attnbook_course.weaving.book import Book
from attnbook_course.weaving.labels import Label, Table
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
SHOWN = """\
#@title {text}
import base64, zlib
from IPython.display import SVG, display

display(SVG(zlib.decompress(base64.b85decode("{packed}")).decode()))"""
REFERENCE = re.compile(r"\{(?:numref|eq|ref)\}`(?:[^`<]*<)?([\w-]+)>?`")


class Elsewhere(RoleResolver):
    """In a homework a place of its own chapter is another page's, too."""

    def _point(self, label: Label, text: str) -> str:
        return f"[{text}]({self.book.address(label.docname, label.anchor)})"


def set_up(book: Book) -> NotebookNode:
    """The cell that installs the package where it is missing, or says whom to ask."""
    cell = setup_cell(book) if book.repository else new_code_cell(NOT_HERE)
    cell.id = "set-up"
    return cell


def sections(book: Book, table: Table, exercise: Exercise) -> list[str]:
    """The sections in which stands what the exercise refers to; links where there is a site."""
    found: dict[str, str] = {}
    source = exercise.chapter.read_text("utf-8")
    for name in REFERENCE.findall(f"{exercise.text} {exercise.hint}"):
        label = table.labels[name]
        before, defined, _ = source.partition(_definition(label.kind, name))
        titles = re.findall(r"^## (.+)$", before, re.MULTILINE)
        if defined and titles and titles[-1] != "Exercises":
            found.setdefault(titles[-1], book.address(label.docname, label.anchor))
    return [f"[{one}]({at})" if book.site else one for one, at in found.items()]


def figures(table: Table, exercise: Exercise) -> list[NotebookNode]:
    """Cells with the chapter's figures of which the exercise's text speaks."""
    names = dict.fromkeys(re.findall(r"\{numref\}`(fig-[\w-]+)`", exercise.text))
    stored = _pictures(exercise.chapter.with_suffix(".ipynb"))
    return [_figure(table, exercise, name, stored[name]) for name in names if name in stored]


@functools.cache
def _pictures(woven: Path) -> dict[str, str]:
    """The figures that a chapter's notebook stores, by label."""
    found = {}
    for cell in json.loads(woven.read_text("utf-8"))["cells"]:
        name = cell["metadata"].get("mystnb", {}).get("figure", {}).get("name")
        for output in cell.get("outputs", []):
            if name and (picture := output.get("data", {}).get("image/svg+xml")):
                found[name] = "".join(picture)
    return found


def _figure(table: Table, exercise: Exercise, name: str, picture: str) -> NotebookNode:
    """A cell that shows a figure and holds it, so that the notebook is all that is needed."""
    text = table.labels[name].text
    packed = base64.b85encode(zlib.compress(picture.encode(), 9)).decode()
    output = new_output("display_data", data={"image/svg+xml": picture})
    return new_code_cell(
        SHOWN.format(text=text, packed=packed),
        id=f"{exercise.label}-{name}",
        outputs=[output],
        metadata={"jupyter": {"source_hidden": True}, "cellView": "form"},
    )


def _definition(kind: str, name: str) -> str:
    """How a chapter's source begins what has this label."""
    return {
        "equation": f":label: {name}\n",
        "figure": f"name: {name}\n",
        "section": f"({name})=\n",
    }.get(kind, f":label: {name}\n")
