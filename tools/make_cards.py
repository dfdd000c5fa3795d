"""Write the lectures' questions and the terms' formulas as cards for Anki, a deck for each chapter.

python tools/make_cards.py            into _build/cards
"""

from __future__ import annotations

import itertools
import re
import sqlite3
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import closing
from html import escape
from pathlib import Path

import genanki
from make_plan import writers_of
from make_questions import plain
from markdown_it import MarkdownIt
from release import NotReady, commit_time, write_zip
from slides import ROOT
from slides.build import desk
from slides.chapter import Chapter
from slides.deck import DeckError
from slides.gift import html_reader
from slides.page import PageWriter
from slides.question import Question
from weaving.blocks import MystError

TARGET = ROOT / "_build/cards/attnbook.apkg"
BOOK = "From Kernel Regression to the Transformer"
# terms whose formula in the index says more than the term, or something beside it
BESIDE = frozenset(
    (
        "All-reduce",
        "Context",
        "Decoder",
        "Delta rule",
        "Encoder",
        "GELU",
        "Keys",
        "Latency",
        "Linear attention",
        "Pre-norm, post-norm",
        "ReLU",
        "Ring attention",
        "Zigzag",
    )
)
ENTRY = re.compile(
    r"^(?P<term>\S.*)\n: (?P<meaning>.*?) \[(?P<chapter>\d+): (?P<section>[^]]+)\]"
    r"\(\S+?#(?P<anchor>[\w-]+)\).*?\{eq\}`(?P<label>[\w-]+)`",
    re.MULTILINE,
)
FRAME = re.compile(r"\\begin\{\w+\}|&|\\(?:text)?quad")
STYLE = """
.card { max-width: 34em; margin: 0 auto; padding: 0.5em; }
.card { font: 20px/1.5 sans-serif; text-align: left; }
.where { color: #57606a; font-size: 0.8em; }
.nightMode .where { color: #9da7b3; }
.wrong { font-size: 0.9em; }
ol { list-style-type: upper-alpha; }
"""


def number_of(name: str) -> int:
    """The same each time, so that a newer deck replaces the cards that somebody has."""
    return zlib.crc32(f"attnbook {name}".encode()) | 1 << 31


KIND = genanki.Model(
    number_of("card"),
    "attnbook",
    fields=[{"name": "Front"}, {"name": "Back"}, {"name": "Where"}],
    templates=[
        {
            "name": "Card",
            "qfmt": "{{Front}}",
            "afmt": '{{FrontSide}}<hr id="answer">{{Back}}<p class="where">{{Where}}</p>',
        }
    ],
    css=STYLE,
)


def left_of(tex: str) -> str:
    """What stands before a formula's first sign of equality outside braces; "" without one."""
    depth = 0
    for i, sign in enumerate(tex):
        depth += (sign == "{") - (sign == "}")
        if sign == "=" and depth == 0:
            left = FRAME.sub("", tex[:i]).strip()
            return "" if r"\\" in left else left
    return ""


def where_of(chapter: Chapter, section: str, anchor: str) -> str:
    """The chapter and the section, a link once the book has an address."""
    words = f"Chapter {chapter.page.number}, {escape(section)}"
    if not chapter.book.site:
        return words
    address = chapter.book.address(chapter.page.docname, anchor)
    return f'<a href="{escape(address)}">{words}</a>'


def card(name: str, front: str, back: str, where: str, tags: list[str]) -> genanki.Note:
    """One card; its name is what makes it the same card in the next edition."""
    return genanki.Note(KIND, [front, back, where], guid=genanki.guid_for(name), tags=tags)


def of_question(question: Question, chapter: Chapter, reader: MarkdownIt) -> genanki.Note:
    """Answers to choose on the front; on the back the right one, and what misleads to others."""
    choices = "".join(f"<li>{reader.renderInline(c.text)}</li>" for c in question.choices)
    (right,) = (c for c in question.choices if c.is_right)
    wrong = "".join(
        f"<li>{reader.renderInline(c.text)}: {reader.renderInline(c.feedback)}</li>"
        for c in question.choices
        if not c.is_right
    )
    return card(
        f"question {question.lecture} {question.title}",
        f"{reader.render(question.stem)}<ol>{choices}</ol>",
        f"<p><b>{reader.renderInline(right.text)}</b></p>{reader.render(question.answer)}"
        f'<ul class="wrong">{wrong}</ul>',
        f"Lecture {question.lecture}, chapter {chapter.page.number}",
        ["question", f"chapter-{chapter.page.number}", f"lecture-{question.lecture}"],
    )


def of_term(entry: re.Match[str], chapter: Chapter, reader: MarkdownIt) -> genanki.Note:
    """A term and its meaning on the front, with the left side of its formula; then the whole."""
    tex, number = chapter.formula(entry["label"])
    left = left_of(tex)
    asked = f"$$\n{left} = \\ ?\n$$" if left else "What is its formula?"
    return card(
        f"formula {entry['label']}",
        reader.render(f"**{entry['term']}**\n\n{entry['meaning']}\n\n{asked}"),
        reader.render(f"$$\n{tex}\n$$\n\nFormula ({number})"),
        where_of(chapter, entry["section"], entry["anchor"]),
        ["formula", f"chapter-{chapter.page.number}"],
    )


def formulas_of(chapter: Chapter, terms: str) -> Iterator[re.Match[str]]:
    """The terms of a chapter that a formula of its own says, one term for each formula."""
    seen = set[str]()
    labels = {block.label for block in chapter.blocks if block.kind == "math"}
    for entry in ENTRY.finditer(terms):
        own = int(entry["chapter"]) == chapter.page.number and entry["label"] in labels
        if own and entry["label"] not in seen and entry["term"] not in BESIDE:
            seen.add(entry["label"])
            yield entry


def decks_of_cards(root: Path, writers: dict[str, PageWriter]) -> list[genanki.Deck]:
    """A deck for each chapter: its lectures' questions first, then formulas."""
    reader = html_reader()
    terms = (root / "appendices/terms.md").read_text("utf-8")
    chapters = {writer.chapter.page.docname: writer.chapter for writer in writers.values()}
    decks = []
    for docname, chapter in chapters.items():
        name = f"attnbook::{chapter.page.number:02d} {chapter.title}"
        deck = genanki.Deck(number_of(docname), name, BOOK)
        of_chapter = [w for w in writers.values() if w.chapter.page.docname == docname]
        notes = [
            of_question(plain(question, writer), chapter, reader)
            for writer in of_chapter
            for question in writer.questions
        ]
        notes += [of_term(entry, chapter, reader) for entry in formulas_of(chapter, terms)]
        for note in notes:
            deck.add_note(note)
        decks.append(deck)
    return decks


def write(decks: list[genanki.Deck], target: Path, seconds: int) -> None:
    """Anki's file of a time: what is newer replaces what is older, and a commit has its bytes."""
    with tempfile.TemporaryDirectory() as folder:
        collection, media = Path(folder, "collection.anki2"), Path(folder, "media")
        with closing(sqlite3.connect(collection)) as table, table:
            package = genanki.Package(decks)
            package.write_to_db(table.cursor(), seconds, itertools.count(1000 * seconds))
        media.write_text("{}", encoding="utf-8")
        write_zip(target, [(path.name, path) for path in (collection, media)], seconds)


def main() -> int:
    """The command; returns its exit status."""
    try:
        with desk(ROOT) as book:
            decks = decks_of_cards(ROOT, writers_of(book, ROOT))
        seconds = commit_time(ROOT)
    except (DeckError, MystError, NotReady, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    write(decks, TARGET, seconds)
    count = sum(len(deck.notes) for deck in decks)
    print(f"{count} cards in {TARGET.relative_to(ROOT)}: in Anki, File, Import")
    return 0


if __name__ == "__main__":
    sys.exit(main())
