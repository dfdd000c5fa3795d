"""Write the lectures' questions and the terms' formulas as cards for Anki, a deck for each chapter.

python tools/make_cards.py            into _build/cards
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

import genanki
from make_plan import writers_of
from markdown_it import MarkdownIt
from slides import ROOT
from slides.build import desk
from slides.cards import Card, cards_of, number_of
from slides.chapter import Chapter
from slides.gift import html_reader
from slides.page import PageWriter

TARGET = ROOT / "_build/cards/attnbook.apkg"
BOOK = "From Kernel Regression to the Transformer"
STYLE = """
.card { max-width: 34em; margin: 0 auto; padding: 0.5em; }
.card { font: 20px/1.5 sans-serif; text-align: left; }
.where { color: #57606a; font-size: 0.8em; }
.nightMode .where { color: #9da7b3; }
.wrong { font-size: 0.9em; }
ol { list-style-type: upper-alpha; }
"""


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


def where_of(card: Card, chapter: Chapter) -> str:
    """The lecture, or the section, a link once the book has an address."""
    number = chapter.page.number
    words = f"Chapter {number}, {escape(card.section)}"
    if card.lecture:
        return f"Lecture {card.lecture}, chapter {number}"
    if not chapter.book.site:
        return words
    address = chapter.book.address(chapter.page.docname, card.anchor)
    return f'<a href="{escape(address)}">{words}</a>'


def note(card: Card, chapter: Chapter, reader: MarkdownIt) -> genanki.Note:
    """A card as Anki keeps it, its formulas for Anki's MathJax."""
    kind = "question" if card.lecture else "formula"
    tags = [kind, f"chapter-{chapter.page.number}"]
    front, back = reader.render(card.front), reader.render(card.back)
    if card.lecture:
        tags.append(f"lecture-{card.lecture}")
        choices = "".join(f"<li>{reader.renderInline(text)}</li>" for text in card.choices)
        wrong = "".join(f"<li>{reader.renderInline(text)}</li>" for text in card.wrong)
        front, back = f"{front}<ol>{choices}</ol>", f'{back}<ul class="wrong">{wrong}</ul>'
    fields = [front, back, where_of(card, chapter)]
    return genanki.Note(KIND, fields, guid=genanki.guid_for(card.name), tags=tags)


def decks_of_cards(root: Path, writers: dict[str, PageWriter]) -> list[genanki.Deck]:
    """A deck for each chapter."""
    reader, decks = html_reader(), []
    for docname, (chapter, cards) in cards_of(root, writers).items():
        name = f"attnbook::{chapter.page.number:02d} {chapter.title}"
        deck = genanki.Deck(number_of(docname), name, BOOK)
        for card in cards:
            deck.add_note(note(card, chapter, reader))
        decks.append(deck)
    return decks


def main() -> int:
    """The command; returns its exit status."""
    try:
        with desk(ROOT) as book:
            decks = decks_of_cards(ROOT, writers_of(book, ROOT))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    genanki.Package(decks).write_to_file(TARGET)
    count = sum(len(deck.notes) for deck in decks)
    print(f"{count} cards in {TARGET.relative_to(ROOT)}: in Anki, File, Import")
    return 0


if __name__ == "__main__":
    sys.exit(main())
