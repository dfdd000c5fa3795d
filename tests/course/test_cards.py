"""The cards for Anki: read back from the file, each with its answer, the same every time."""

from __future__ import annotations

import json
import re
import sqlite3
import zipfile
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import genanki
import pytest
from make_cards import decks_of_cards
from slides import ROOT
from slides.gift import html_reader
from slides.page import PageWriter


@dataclass(frozen=True)
class Card:
    """What Anki shows."""

    deck: str
    name: str
    front: str
    back: str
    where: str
    tags: frozenset[str]


def read(file: Path, folder: Path) -> list[Card]:
    """The cards of a file, by Anki's tables."""
    with zipfile.ZipFile(file) as archive:
        assert set(archive.namelist()) == {"collection.anki2", "media"}
        archive.extractall(folder)
    with closing(sqlite3.connect(folder / "collection.anki2")) as table:
        (decks,) = table.execute("select decks from col").fetchone()
        names = {int(number): deck["name"] for number, deck in json.loads(decks).items()}
        rows = table.execute(
            "select did, guid, flds, tags from cards join notes on cards.nid = notes.id"
        ).fetchall()
    return [
        Card(names[deck], guid, *fields.split("\x1f"), frozenset(tags.split()))
        for deck, guid, fields, tags in rows
    ]


@pytest.fixture(scope="module")
def decks(writers: dict[str, PageWriter]) -> list[genanki.Deck]:
    return decks_of_cards(ROOT, writers)


@pytest.fixture(scope="module")
def cards(decks: list[genanki.Deck], tmp_path_factory: pytest.TempPathFactory) -> list[Card]:
    folder = tmp_path_factory.mktemp("cards")
    genanki.Package(decks).write_to_file(folder / "attnbook.apkg")
    return read(folder / "attnbook.apkg", folder)


def test_each_chapter_has_a_deck_that_is_soon_learned(cards, decks):
    sizes = Counter(card.deck for card in cards)
    assert [deck.name for deck in decks] == sorted(sizes) and len(sizes) == 13
    assert all(6 <= size <= 15 for size in sizes.values())
    assert len({card.name for card in cards}) == len(cards)


def test_each_question_is_there_with_its_answer_and_what_misleads(cards, writers):
    """In no other words than the slide's."""
    reader = html_reader()
    asked = [card for card in cards if "question" in card.tags]
    questions = [(w, question) for w in writers.values() for question in w.questions]
    assert len(asked) == len(questions)
    for found, (writer, question) in zip(asked, questions, strict=True):
        assert {f"lecture-{question.lecture}", f"chapter-{writer.chapter.page.number}"} < found.tags
        for choice in question.choices:
            assert f"<li>{reader.renderInline(choice.text)}</li>" in found.front
            if choice.is_right:
                assert f"<strong>{reader.renderInline(choice.text)}</strong>" in found.back
            else:
                assert reader.renderInline(choice.feedback) in found.back
                assert f"<strong>{reader.renderInline(choice.text)}</strong>" not in found.back


def test_a_term_is_answered_by_its_formula(cards, writers):
    reader = html_reader()
    known = {
        (f"chapter-{w.chapter.page.number}", reader.render(f"$$\n{block.text}\n$$").strip())
        for w in writers.values()
        for block in w.chapter.blocks
        if block.kind == "math"
    }
    formulas = [card for card in cards if "formula" in card.tags]
    assert len(formulas) > 30
    for found in formulas:
        (tag,) = found.tags - {"formula"}
        whole, _, number = found.back.partition("<p>Formula")
        assert (tag, whole.strip()) in known
        assert number.startswith(f" ({tag.partition('-')[2]}.")
        assert found.where.startswith(f"Chapter {tag.partition('-')[2]}, ")
        assert whole.strip() not in found.front


def test_no_card_shows_a_mark_of_markdown_or_of_the_slides_colours(cards):
    for found in cards:
        for side in (found.front, found.back, found.where):
            assert not re.search(r"\\[QKV]\{", side), side
            words = re.sub(r"\\\(.*?\\\)|\\\[.*?\\\]|<code>.*?</code>", "", side, flags=re.DOTALL)
            assert not re.search(r"\$|\*\*|```|\{\w+\}`|\]\(", words), words
