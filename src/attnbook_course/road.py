"""The road: what one reads through, and beside it what is deeper, as the chapters' sources have it.

A section whose heading begins with "Deeper: " is off the road, with all that is in it. So are
folded cells and boxes, and the exercises and references at a chapter's end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from attnbook_course.weaving.blocks import Block, parse
from attnbook_course.weaving.labels import cell_figure

ROAD = (
    "01-kernel-regression",
    "02-learning-the-kernel",
    "just-enough-network",
    "03-queries-keys-values",
    "04-aligning-sequences",
    "05-self-attention",
    "06-multi-head-attention",
    "07-transformer-block",
    "08-three-transformers",
    "09-in-context-regression",
)
# The pages that have been written to be read so; tests/course/test_road.py reads these.
TOLD = frozenset(ROAD)
DEEPER, BUILD = "Deeper: ", "Build it"
BESIDE = ("Exercises", "References")  # sections that are neither on the road nor deeper
FOLDED = {"hide-cell", "hide-input", "exercise"}  # tags of cells whose code one need not read
WORDS, LINES = 150, 6  # that one reads in a minute
ROLE = re.compile(r"\{[\w:+-]+\}`(?:([^`<]*?)\s*<[^`>]*>|([^`]*))`")
LINK = re.compile(r"\[([^\[\]]*)\]\([^)\s]*\)")
SENTENCE = re.compile(r"(?<=[.?!])(?:[*”)]*)\s+(?=[*“(\[`$]*[A-Z0-9])")


@dataclass(frozen=True)
class Piece:
    """A heading, paragraph, caption, row of a table, formula or cell, in the order of the page."""

    kind: str  # heading, prose, caption, row, formula, code; folded for a cell's hidden code
    place: str  # road, build, deeper or beside
    line: int
    text: str
    tags: frozenset[str] = frozenset()

    def sentences(self) -> Iterator[str]:
        """Its sentences, as they are written."""
        yield from SENTENCE.split(" ".join(self.text.split()))


@dataclass(frozen=True)
class Minutes:
    """How long a page takes."""

    road: int
    build: int
    deeper: int


def readable(text: str) -> str:
    """A text with the words of its roles and links alone."""
    return LINK.sub(r"\1", ROLE.sub(lambda found: found[1] or found[2], text))


def pieces(page: Path) -> Iterator[Piece]:
    """What a page consists of."""
    open_headings: list[Block] = []
    for block in parse(page.read_text(encoding="utf-8"), page.name):
        if block.kind == "heading":
            open_headings = [one for one in open_headings if one.level < block.level] + [block]
        yield from _pieces(block, _place([one.text for one in open_headings]))


def _place(headings: Sequence[str]) -> str:
    if any(heading.startswith(DEEPER) for heading in headings):
        return "deeper"
    if any(heading in BESIDE for heading in headings):
        return "beside"
    return "build" if any(heading.startswith(BUILD) for heading in headings) else "road"


def _pieces(block: Block, place: str) -> Iterator[Piece]:
    if block.kind == "prose":
        is_row = block.source.lstrip().startswith("|")
        text = block.source if is_row else block.text
        yield Piece("row" if is_row else "prose", place, block.line, text)
    elif block.kind in ("heading", "math"):
        kind = "formula" if block.kind == "math" else "heading"
        yield Piece(kind, place, block.line, block.text)
    elif block.name == "code-cell":
        tags = frozenset(block.options.get("tags", []))
        yield Piece("folded" if tags & FOLDED else "code", place, block.line, block.text, tags)
        if "hide-cell" not in tags and (caption := cell_figure(block).get("caption")):
            yield Piece("caption", place, block.line, caption)


def words(parts: Sequence[Piece]) -> int:
    """How many words one reads of these."""
    read = [one for one in parts if one.kind in ("heading", "prose", "caption", "row")]
    return sum(len(re.findall(r"\$[^$]+\$|\w[^\s|]*", readable(one.text))) for one in read)


def lines(parts: Sequence[Piece]) -> int:
    """How many lines of code; of two libraries the longer one's."""
    found = {"": 0, "torch": 0, "jax": 0}
    for one in parts:
        if one.kind == "code":
            library = next((name for name in ("torch", "jax") if name in one.tags), "")
            found[library] += sum(bool(line.strip()) for line in one.text.splitlines())
    return found[""] + max(found["torch"], found["jax"])


def minutes(page: Path) -> Minutes:
    """How long the road through a page takes, what is deeper there, and what one builds.

    What is built takes the minutes that stand in its section, as in "*Core, 40 minutes, code.*"
    """
    own: dict[str, list[Piece]] = {"road": [], "build": [], "deeper": [], "beside": []}
    for one in pieces(page):
        own[one.place].append(one)
    section = page.read_text(encoding="utf-8").partition(f"\n## {BUILD}")[2].partition("\n## ")[0]
    stated = re.findall(r"^\*\w+, (\d+) minutes", section, re.MULTILINE)
    road, deeper = (
        round(words(own[place]) / WORDS + lines(own[place]) / LINES) for place in ("road", "deeper")
    )
    return Minutes(max(road, 1), sum(map(int, stated)), deeper)
