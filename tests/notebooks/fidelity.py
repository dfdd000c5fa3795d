"""How much of a chapter reaches its notebook, with jupytext as the referee."""

import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
from markdown_it import MarkdownIt
from nbformat import NotebookNode

# What plain Markdown would show as it stands: roles, directives, targets, comments, breaks.
RAW = re.compile(
    r"\{[\w:+-]+\}`|^[ >]*:{3,}|^[ >]*`{3,}\{|^[ >]*\([\w-]+\)=\s*$|^%|^\+\+\+|\$\$ *\([\w-]+\)",
    re.MULTILINE,
)
FENCE = re.compile(r"^[ >]*(`{3,})(?!\{)[^\n]*\n.*?^[ >]*\1`*\s*$", re.DOTALL | re.MULTILINE)
CODE_SPAN = re.compile(r"(?<![}`])(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
DIRECTIVE_ALT = re.compile(r"^[ >]*:alt: *(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Score:
    """Raw tokens left, and what is lacking; a perfect notebook has all empty."""

    raw_tokens: list[str]
    missing_tags: list[str]
    missing_alts: list[str]
    changed_cells: list[str]
    headings: list[tuple[int, str]]  # what the notebook has
    source_headings: list[tuple[int, str]]


def score(chapter: Path, notebook: NotebookNode) -> Score:
    """Compare a woven notebook with its source, as jupytext reads it."""
    source = jupytext.read(chapter)
    expected = [cell for cell in source.cells if cell.cell_type == "code"]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    woven = [cell for cell in code if "setup" not in cell.metadata.get("tags", [])]
    prose = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    original = "\n\n".join(cell.source for cell in source.cells if cell.cell_type == "markdown")
    wanted_alts = DIRECTIVE_ALT.findall(original)
    return Score(
        raw_tokens=RAW.findall(without_code(prose)),
        missing_tags=_lacking(_tags(expected), _tags(woven)),
        missing_alts=_lacking(_alts(expected), _alts(woven))
        + [alt for alt in wanted_alts if f"![{alt}](" not in prose],
        changed_cells=_lacking([c.source for c in expected], [c.source for c in woven]),
        headings=headings(notebook),
        source_headings=headings(source),
    )


def headings(notebook: NotebookNode) -> list[tuple[int, str]]:
    """Level and first word of each heading."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            tokens = MarkdownIt("commonmark").parse(cell.source)
            for token, inline in itertools.pairwise(tokens):
                if token.type == "heading_open":
                    found.append((int(token.tag[1:]), inline.content.split()[0]))
    return found


def without_code(text: str) -> str:
    """The text without ordinary code fences and code spans."""
    return CODE_SPAN.sub("", FENCE.sub("", text))


def _tags(cells: list[NotebookNode]) -> list[Any]:
    return [cell.metadata.get("tags", []) for cell in cells]


def _alts(cells: list[NotebookNode]) -> list[Any]:
    return [cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "") for cell in cells]


def _lacking(expected: list[Any], found: list[Any]) -> list[str]:
    """What is not in its place, one line each."""
    if len(expected) != len(found):
        return [f"expected {len(expected)} code cells, found {len(found)}"]
    return [f"{a!r} became {b!r}" for a, b in zip(expected, found, strict=True) if a != b]
