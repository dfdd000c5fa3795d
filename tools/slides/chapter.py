"""What a deck may show of its chapter: cells with their stored outputs, figures, formulas."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from attnbook_course.checks.exercises import exercises
from attnbook_course.figures import COLOURS
from attnbook_course.weaving.blocks import Block, parse, walk
from attnbook_course.weaving.book import Book, Page
from attnbook_course.weaving.labels import Table


@dataclass(frozen=True)
class Cell:
    """A code cell of the notebook, and what it put out when it was executed last."""

    source: str
    printed: str  # by print, then the last line's value
    svg: str
    html: str
    figure: str  # its label
    alt: str

    @cached_property
    def without_asserts(self) -> list[str | None]:
        """Its lines; None where an assert stands."""
        lines: list[str | None] = list(self.source.split("\n"))
        for node in ast.walk(ast.parse(self.source)):
            if isinstance(node, ast.Assert):
                assert node.end_lineno is not None
                lines[node.lineno - 1 : node.end_lineno] = [None] * (
                    node.end_lineno - node.lineno + 1
                )
        return lines


@dataclass(frozen=True)
class Chapter:
    """One chapter, with its notebook. What it has not is a LookupError that says so."""

    book: Book
    table: Table
    page: Page

    @cached_property
    def cells(self) -> list[Cell]:
        """The code cells in order."""
        notebook = json.loads(self.page.path.with_suffix(".ipynb").read_text("utf-8"))
        return [_cell(cell) for cell in notebook["cells"] if cell["cell_type"] == "code"]

    @cached_property
    def blocks(self) -> list[Block]:
        """All blocks of the source."""
        text = self.page.path.read_text("utf-8")
        return list(walk(parse(text, self.book.file(self.page))))

    @cached_property
    def title(self) -> str:
        """The chapter's heading."""
        return next(b.text for b in self.blocks if b.kind == "heading")

    @cached_property
    def sections(self) -> set[str]:
        """All headings below the chapter's own."""
        return {b.text for b in self.blocks if b.kind == "heading"} - {self.title}

    def cell(self, start: str) -> tuple[Cell, int]:
        """The one code cell with a line that begins so, and the line's place in it, from 0."""
        found = [
            (cell, place)
            for cell in self.cells
            for place, line in enumerate(cell.source.split("\n"))
            if line.strip().startswith(start)
        ]
        if not start or len(found) != 1:
            have = f"{len(found)} lines" if found else "no line"
            raise LookupError(f"{have} of code in {self.page.docname} begin {start!r}; one must")
        return found[0]

    def figure(self, name: str) -> Cell:
        """The cell that draws the figure of this label."""
        return self._one([c for c in self.cells if c.figure == name and c.svg], "figure", name)

    def live(self, name: str) -> Cell:
        """The cell of a live figure."""
        place = f'id="{name}" class="attnbook-live"'
        return self._one([c for c in self.cells if place in c.html], "live figure", name)

    def formula(self, label: str) -> tuple[str, str]:
        """A labelled formula and its number."""
        blocks = [b for b in self.blocks if b.kind == "math" and b.label == label]
        block = self._one(blocks, "formula", label)
        return block.text, self.table.numbers[self.page.docname, block.line]

    def solution(self, label: str) -> str:
        """The code of an exercise's solution."""
        known = {one.label: one for one in exercises(self.page.path)}
        if label not in known or not known[label].is_checked:
            have = ", ".join(one.label for one in known.values() if one.is_checked)
            raise LookupError(f"{self.page.docname} has no solution in code {label!r}; of {have}")
        return known[label].solution

    def printed(self, pattern: str) -> str:
        """What the pattern's group finds in all that the chapter printed: one text and no other.

        With "the beginning of a line of code :: pattern" it looks at what that cell printed only.
        """
        start, _, pattern = pattern.rpartition(" :: ")
        cells = [self.cell(start)[0]] if start else self.cells
        try:
            expression = re.compile(pattern, re.MULTILINE)
        except re.error as error:
            raise LookupError(f"{pattern!r} is no regular expression: {error}") from error
        if expression.groups != 1:
            raise LookupError(f"{pattern!r} has {expression.groups} groups; expected one")
        found = {m[1] for cell in cells for m in expression.finditer(cell.printed)}
        if len(found) != 1:
            have = ", ".join(sorted(found)) or "nothing"
            raise LookupError(f"{self.page.docname} prints {have} for {pattern!r}; expected one")
        return found.pop()

    def _one(self, found: list[Any], kind: str, name: str) -> Any:
        if not found:
            raise LookupError(f"{self.page.docname} has no {kind} {name!r}")
        return found[0]


def _cell(cell: dict[str, Any]) -> Cell:
    outputs = cell.get("outputs", [])

    def of(mime: str, *, alone: bool = False) -> str:
        data = [output.get("data", {}) for output in outputs]
        return "".join("".join(d[mime]) for d in data if mime in d and not (alone and len(d) > 1))

    options = cell["metadata"].get("mystnb") or {}
    streams = ["".join(o["text"]) for o in outputs if o.get("name") == "stdout"]
    return Cell(
        source="".join(cell["source"]),
        printed="".join(streams) + of("text/plain", alone=True),
        svg=of("image/svg+xml"),
        html=of("text/html"),
        figure=(options.get("figure") or {}).get("name", ""),
        alt=(options.get("image") or {}).get("alt", ""),
    )


def without(svg: str, role: str) -> str:
    """A figure without the curves of a role of the book's plots."""
    if role not in COLOURS:
        raise LookupError(f"without: got {role!r}, expected one of {', '.join(COLOURS)}")
    curve = rf'<path [^>]*style="fill: none; stroke: {COLOURS[role]};[^>]*/>'
    found, count = re.subn(curve, "", svg)
    if not count:
        raise LookupError(f"without: no curve of the figure is of the role {role!r}")
    return found


def part_of(svg: str, view: str) -> str:
    """A figure cut to x, y, width and height in its own units."""
    if not re.fullmatch(r"\d+ \d+ [1-9]\d* [1-9]\d*", view):
        raise LookupError(f"view: got {view!r}, expected x y width height, such as 0 20 300 200")
    _, _, width, height = view.split()
    head = re.search(r"<svg\b[^>]*>", svg)
    assert head is not None
    bare = re.sub(r'\s(?:width|height|viewBox)="[^"]*"', "", head[0])
    size = f' viewBox="{view}" width="{width}pt" height="{height}pt">'
    return svg[: head.start()] + bare[:-1] + size + svg[head.end() :]
