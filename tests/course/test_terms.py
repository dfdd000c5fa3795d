"""The index of terms: in order, complete in its links, and true about where a word is explained."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHAPTERS = {float(f.name[:2]): f.read_text("utf-8") for f in (ROOT / "chapters").glob("[0-9]*.md")}
INTERLUDE, PLACES = ROOT / "chapters" / "just-enough-network.md", {"Asides": 0, "Interlude": 2.5}
if INTERLUDE.is_file():
    CHAPTERS[PLACES["Interlude"]] = INTERLUDE.read_text("utf-8")
CHAPTERS[0] = (ROOT / "appendices" / "asides.md").read_text("utf-8")
ENTRY = re.compile(
    r"^(?P<name>[^\n:#-][^\n]*)\n: .*?\[(?P<chapter>\d+|Asides|Interlude): (?P<section>[^\]]+)\]",
    re.M,
)
CODE = re.compile(r"^```\{code-cell\}.*?^```|^---\n.*?^---\n|`[^`\n]+`", re.S | re.M)
# Words of daily life, or of another meaning, before the chapter that makes a term of them.
# "Loss" and "likelihood" stand in chapter 1 for readers who know them, and nothing rests on them.
DAILY = {
    "decay",
    "loss",
    "likelihood",
    "batch",
    "context",
    "memory",
    "parameter",
    "length scale",
    "language model",
    "temperature",
    "rank",
    "worker",
    "warm-up",
    "dropout",
    "gpt",
    "value",
    "score",
}


@dataclass(frozen=True)
class Term:
    """A line of the index: the words, and the section (of chapter 0, the asides) it sends to."""

    name: str
    chapter: float
    section: str

    @property
    def words(self) -> list[str]:
        """The words that the section must have, without the s of a plural."""
        long = re.split(r"[\s,()–-]+", self.name.lower())
        return [word.rstrip("s") for word in long if len(word) > 2]


def terms() -> list[Term]:
    """All entries, in the order of the page."""
    page = (ROOT / "appendices" / "terms.md").read_text("utf-8")
    return [
        Term(m["name"], float(PLACES.get(m["chapter"], m["chapter"])), m["section"])
        for m in ENTRY.finditer(page)
    ]


TERMS = terms()
each = pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)


def section(term: Term) -> str:
    """The text of the section that the index names, up to the next heading."""
    parts = re.split(r"^(?=##+ )", CHAPTERS[term.chapter], flags=re.M)
    (found,) = (part for part in parts if re.match(rf"##+ {re.escape(term.section)}\n", part))
    return found


def test_the_terms_are_many_and_in_order():
    assert len(TERMS) > 90
    names = [term.name.lower() for term in TERMS]
    assert names == sorted(names)


@each
def test_the_section_has_the_words(term):
    text = section(term).lower()
    assert [word for word in term.words if word not in text] == []


@each
def test_no_earlier_chapter_uses_a_term(term):
    """Unless it says so: a sentence that names the chapter may look ahead."""
    names = [part.strip().lower() for part in re.split(r"[,()]", term.name)]
    names = [name if name.endswith("ss") else name.removesuffix("s") for name in names]
    for number in filter(lambda number: 1 <= number < term.chapter, CHAPTERS):
        for sentence in re.split(r"(?<=[.:?!])\s", CODE.sub("", CHAPTERS[number])):
            ahead = re.search(r"[Cc]hapters? |\{doc\}|\{cite", sentence)
            for name in filter(None, names):
                if re.search(rf"\b{re.escape(name)}s?\b", sentence.lower()) and not ahead:
                    assert name in DAILY, f"chapter {number:g}: {sentence.strip()}"
