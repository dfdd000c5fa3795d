"""A homework's notebook: what it begins with, its cells, and how its texts refer to the book."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils.nodes import make_id
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from attnbook_course.checks.exercises import CELL, Exercise
from attnbook_course.checks.grading.homework import BadHomework, counted
from attnbook_course.checks.grading.notebook import PLACEHOLDER
from attnbook_course.weaving.blocks import parse
from attnbook_course.weaving.book import Book, read_book
from attnbook_course.weaving.citations import read_references
from attnbook_course.weaving.labels import Label, build_table
from attnbook_course.weaving.markdown import render
from attnbook_course.weaving.notebook import METADATA, setup_cell
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


@dataclass(frozen=True)
class Part:
    """An exercise of a homework, with its points."""

    exercise: Exercise
    points: float
    held_out: str  # the chapter whose held-out checks judge it, "ch01"; or empty
    note: str  # the text of its solution, for the lecturer

    @property
    def function(self) -> str:
        """The name of the function asked for; empty where the answer is an explanation."""
        found = re.findall(r"^def (\w+)", self.exercise.stub, re.MULTILINE)
        return found[-1] if found else ""

    @property
    def kind(self) -> str:
        """As homework.json says it."""
        if not self.exercise.is_checked:
            return "explained"
        return "held out" if self.held_out else "published"


class Writer:
    """Writes the notebooks of a repository's homework."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.book: Book = read_book(root)
        self.table = build_table(self.book)
        self.references = read_references(self.book.references)

    def chapter(self, number: str) -> Path:
        """The source of a chapter, from a number such as "01"."""
        found = sorted((self.root / "chapters").glob(f"{number}-*.md"))
        if len(found) != 1:
            raise BadHomework(f"chapters: got {number!r}, expected two digits, as in 01")
        return found[0]

    def named(self, number: str) -> str:
        """A chapter as text, which links to it where there is a site."""
        docname = self.book.page(self.chapter(number)).docname
        words = f"chapter {int(number)}, *{self.table.documents[docname].text}*"
        return f"[{words}]({self.book.address(docname)})" if self.book.site else words

    def places(self, part: Part) -> list[tuple[str, str]]:
        """Where the book has an exercise, and what it rests on: words, and an address or none.

        Raises:
            BadHomework: it names a section that its chapter has not.
        """
        page, exercise = self.book.page(part.exercise.chapter), part.exercise
        blocks = parse(page.path.read_text("utf-8"), self.book.file(page), strict=page.is_notebook)
        titles = {make_id(block.text): block.text for block in blocks if block.kind == "heading"}
        told, chapter, found = exercise.told_in, f"chapter {int(page.path.name[:2])}", []
        if told and told not in titles:
            raise BadHomework(f"{exercise.label}: told-in-{told}: {chapter} has no such section")
        if not part.held_out:
            label = self.table.labels[exercise.label]
            found.append((f"{label.text}, with a solution", label.anchor))
        if told:
            found.append((f"{chapter}, section “{titles[told]}”", told))
        site = self.book.site
        return [
            (words, self.book.address(page.docname, anchor) if site else "")
            for words, anchor in found or [(chapter, "")]
        ]

    def prose(self, part: Part, text: str) -> str:
        """A text of an exercise as plain Markdown, with links to the site where there is one."""
        page = self.book.page(part.exercise.chapter)
        resolver = Elsewhere(self.book, self.table, self.references, page)
        plain = render(parse(text, part.exercise.label, 1), resolver)
        if not self.book.site:  # then a link would lead to a file that students do not have
            plain = re.sub(r"(?<!!)\[([^\[\]]+)\]\((?![a-z]+:)[^)\s]*\)", r"\1", plain)
        return plain

    def notebook(
        self, name: str, plan: dict[str, Any], parts: Sequence[Part], asked: str, *, key: bool
    ) -> NotebookNode:
        """The students' notebook, or with the key the lecturer's; asked is its fingerprint."""
        head = HEAD.format(
            title=plan["title"],
            count=len(parts),
            points=sum(part.points for part in parts),
            seconds=plan["seconds"],
            chapters=" and ".join(map(self.named, plan["chapters"])),
        )
        cells = [new_markdown_cell(head, id="head"), set_up(self.book)]
        cells.append(new_code_cell(self.imports(parts), id="imports"))
        for number, part in enumerate(parts, 1):
            cells += self.cells(number, part, key=key)
        own = {"attnbook": {"homework": name, "questions": asked}}
        notebook = new_notebook(cells=cells, metadata=METADATA | own)
        notebook.nbformat_minor = 5
        return notebook

    def cells(self, number: int, part: Part, *, key: bool) -> list[NotebookNode]:
        """An exercise's cells: its text, its hint, and the place of the answer."""
        exercise, label = part.exercise, part.exercise.label
        kinds = f"{exercise.level}, {exercise.minutes} minutes, {exercise.kinds}"
        text = self.prose(part, exercise.text.strip())
        hint = self.prose(part, exercise.hint.strip())
        folded = f"<details><summary>Hint</summary>\n\n{hint}\n\n</details>"
        head = f"## {number}. {exercise.title} ({counted(part.points, 'point')})"
        question = f"{head}\n\n*{kinds}.* {text}\n\n{folded}"
        cells = [new_markdown_cell(question, id=f"{label}-text")]
        own: dict[str, Any] = {"exercise": label}
        if part.kind == "explained":
            answer = self.prose(part, part.note.strip()) if key else PLACEHOLDER
            own["part"] = "explanation"
            name = f"{label}-explanation"
            return [*cells, new_markdown_cell(answer, id=name, metadata={"attnbook": own})]
        code = exercise.solution.strip() if key else stub_of(exercise)
        code = f"{code}\n\n{exercise.check_line}"
        cells.append(new_code_cell(code, id=label, metadata={"attnbook": own}))
        if key:
            why = self.prose(part, re.sub(r"```python\n.*?```", "", part.note, flags=re.DOTALL))
            cells += [new_markdown_cell(why, id=f"{label}-why")] if why.strip() else []
        return cells

    def imports(self, parts: Sequence[Part]) -> str:
        """NumPy, the checks, and what the chapters' first cells import of the package."""
        lines = ["import math", "", "import numpy as np", "from attnbook_course import checks"]
        for chapter in sorted({part.exercise.chapter for part in parts}):
            first = CELL.search(chapter.read_text("utf-8"))
            for node in ast.parse(first[1] if first else "").body:
                if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("attnbook."):
                    lines.append(ast.unparse(node))
        return "\n".join(lines)


def stub_of(exercise: Exercise) -> str:
    """The stub without its last line, which calls the check."""
    return exercise.stub.strip().removesuffix(exercise.check_line).rstrip()
