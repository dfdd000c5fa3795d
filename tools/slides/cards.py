"""Cards to remember a chapter by, as Markdown: its lectures' questions, formulas of terms."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slides.chapter import Chapter
from slides.page import PageWriter, plain
from slides.question import Question

# terms whose formula in the index says more than the term, or something beside it
BESIDE = re.compile(
    "All-reduce|Context|Decoder|Delta rule|Encoder|GELU|Keys|Latency|Linear attention"
    "|Pre-norm, post-norm|ReLU|Ring attention|Zigzag"
)
ENTRY = re.compile(
    r"^(?P<term>\S.*)\n: (?P<meaning>.*?) \[(?P<chapter>\d+): (?P<section>[^]]+)\]"
    r"\(\S+?#(?P<anchor>[\w-]+)\).*?\{eq\}`(?P<label>[\w-]+)`",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Card:
    """A card's two sides; its name makes it the same card in the next edition.

    Where ``choices`` are, they follow the front; ``wrong`` are those that mislead, each with why.
    """

    name: str
    front: str
    back: str
    choices: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    lecture: str = ""
    section: str = ""
    anchor: str = ""


def number_of(name: str) -> int:
    """A number of 32 bits, the first of them 1, for a name: what somebody knows stays."""
    return zlib.crc32(f"attnbook {name}".encode()) | 1 << 31


def of_question(question: Question) -> Card:
    """Answers to choose on the front; on the back the right one, and what misleads to others."""
    (right,) = (choice for choice in question.choices if choice.is_right)
    return Card(
        f"question {question.lecture} {question.title}",
        question.stem,
        f"**{right.text}**\n\n{question.answer}",
        tuple(choice.text for choice in question.choices),
        tuple(f"{c.text}: {c.feedback}" for c in question.choices if not c.is_right),
        lecture=question.lecture,
    )


def of_term(entry: re.Match[str], chapter: Chapter) -> Card:
    """A term and its meaning on the front; its formula on the back."""
    tex, number = chapter.formula(entry["label"])
    return Card(
        f"formula {entry['label']}",
        f"**{entry['term']}**\n\n{entry['meaning']}\n\nWhat is its formula?",
        f"$$\n{tex}\n$$\n\nFormula ({number})",
        section=entry["section"],
        anchor=entry["anchor"],
    )


def formulas_of(chapter: Chapter, terms: str) -> Iterator[re.Match[str]]:
    """The terms of a chapter that a formula of its own says, one term for each formula."""
    seen = set[str]()
    labels = {block.label for block in chapter.blocks if block.kind == "math"}
    for entry in ENTRY.finditer(terms):
        own = int(entry["chapter"]) == chapter.page.number and entry["label"] in labels
        if own and entry["label"] not in seen and not BESIDE.fullmatch(entry["term"]):
            seen.add(entry["label"])
            yield entry


def cards_of(root: Path, writers: dict[str, PageWriter]) -> dict[str, tuple[Chapter, list[Card]]]:
    """Each chapter's cards: its lectures' questions first, then formulas."""
    terms = (root / "appendices/terms.md").read_text("utf-8")
    found: dict[str, tuple[Chapter, list[Card]]] = {}
    for writer in writers.values():
        _, cards = found.setdefault(writer.chapter.page.docname, (writer.chapter, []))
        cards += [of_question(plain(question, writer)) for question in writer.questions]
    for chapter, cards in found.values():
        cards += [of_term(entry, chapter) for entry in formulas_of(chapter, terms)]
    return found
