"""Cards on the page: asked one at a time, back after growing gaps, kept in the browser alone."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from site_visits import ROOT, Visit, without_script

PAGE = "appendices/cards.html"
NOON = datetime(2027, 3, 5, 12)
GAPS = [1, 3, 8, 21, 55, 55]  # days, as the page says
NAMES = re.findall(r"^:name: (card-\d+)$", (ROOT / "appendices/cards.md").read_text("utf-8"), re.M)


@pytest.fixture
def cards(open_page: Visit) -> Page:
    open_page.page.clock.set_fixed_time(NOON)
    return open_page.go(PAGE)


def later(page: Page, days: int) -> None:
    page.clock.set_fixed_time(NOON + timedelta(days=days))
    page.reload()


def said(page: Page) -> Locator:
    """What is due."""
    return page.locator(".card-desk [role=status]")


def answer(page: Page, words: str) -> str:
    """Answer the card on the stage; its name."""
    card = page.locator(".card-stage .card-to-remember")
    name = card.get_attribute("id")
    assert name and not card.locator("details").get_attribute("open")
    expect(page.locator(".card-to-remember:visible")).to_have_count(1)
    page.get_by_role("button", name="Show the answer").click()
    page.get_by_role("button", name=words).click()
    return name


def kept(page: Page) -> dict[str, Any]:
    found = page.evaluate("localStorage.getItem('attnbook-cards')")
    return dict(json.loads(found)["cards"]) if found else {}


def only(page: Page, *chapters: int) -> None:
    page.locator(".card-desk summary").click()
    for box in page.locator(".card-desk input").all():
        box.set_checked(box.get_attribute("data-chapter") in {f"cards-{n}" for n in chapters})


def test_a_round_asks_ten_new_cards_and_those_not_known_again(cards: Page) -> None:
    expect(said(cards)).to_have_text("0 cards are due, 10 are new.")
    cards.get_by_role("button", name="Ask me 10 cards").click()
    first = answer(cards, "Not yet")
    rest = [answer(cards, "I knew it") for _ in range(9)]
    assert [first, *rest] == NAMES[:10]
    expect(cards.locator(".card-place")).to_contain_text("1 card left")
    assert answer(cards, "I knew it") == first
    expect(cards.locator(".card-stage")).to_be_hidden()
    assert set(kept(cards)) == set(NAMES[:10])
    order = cards.locator(".card-to-remember").evaluate_all("cards => cards.map(c => c.id)")
    assert order == NAMES, "a card did not go back to its place"
    later(cards, 1)
    expect(said(cards)).to_have_text("10 cards are due, 10 are new.")


def test_a_card_that_is_known_waits_longer_each_time_and_else_begins_again(cards: Page) -> None:
    only(cards, 1)
    day = 0
    for gap in GAPS:
        cards.get_by_role("button", name="Ask me").click()
        name = answer(cards, "I knew it")
        assert name == NAMES[0]
        if cards.locator(".card-stage").is_visible():  # the first round has more cards
            cards.get_by_role("button", name="Stop").click()
        cards.evaluate(  # the others of the chapter wait for longer than the test
            """([names, own]) => { const state = JSON.parse(localStorage['attnbook-cards']);
            for (const name of names) if (name !== own) state.cards[name] = [5, 1e6];
            localStorage['attnbook-cards'] = JSON.stringify(state); }""",
            [NAMES, name],
        )
        later(cards, day + gap - 1)
        left = "1 day" if gap > 0 else ""
        expect(said(cards)).to_have_text(f"Nothing is due today. The next comes back in {left}.")
        day += gap
        later(cards, day)
        expect(said(cards)).to_have_text("1 card is due, 0 are new.")
    cards.get_by_role("button", name="Ask me 1 card").click()
    answer(cards, "Not yet")
    cards.get_by_role("button", name="Stop").click()
    expect(said(cards)).to_have_text("1 card is due, 0 are new.")
    assert kept(cards)[NAMES[0]][0] == 0


def test_only_the_chapters_that_are_chosen_are_asked(cards: Page) -> None:
    only(cards, 13)
    cards.get_by_role("button", name="Ask me").click()
    expect(cards.locator(".card-place")).to_contain_text("13. ")
    expect(cards.locator(".card-place")).to_be_in_viewport()
    cards.reload()
    assert cards.locator(".card-desk input:checked").count() == 1
    cards.get_by_role("button", name="Ask me").click()
    cards.evaluate("location.hash = '#cards-2'")
    expect(cards.locator("#cards-2 h2, #cards-2")).not_to_have_count(0)
    expect(cards.locator(".card-stage")).to_be_hidden()
    expect(cards.get_by_role("heading", name="2. Learning the kernel")).to_be_in_viewport()


NONSENSE = [
    "{",
    "null",
    "[]",
    '"x"',
    '{"cards": 3}',
    '{"cards": null, "without": []}',
    '{"cards": {"card-3731471143": 3, "x": [1]}, "without": []}',
]


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_what_cannot_be_read_is_as_nothing(cards: Page, nonsense: str) -> None:
    cards.evaluate("text => localStorage.setItem('attnbook-cards', text)", nonsense)
    cards.reload()
    expect(said(cards)).to_have_text("0 cards are due, 10 are new.")


def test_what_is_known_can_be_forgotten(cards: Page) -> None:
    cards.get_by_role("button", name="Ask me").click()
    answer(cards, "I knew it")
    cards.get_by_role("button", name="Stop").click()
    assert len(kept(cards)) == 1
    cards.locator(".card-desk summary").click()
    cards.get_by_role("button", name="Forget what I know").click()
    assert kept(cards) == {}
    expect(said(cards)).to_have_text("0 cards are due, 10 are new.")


def test_by_keys_the_focus_goes_where_the_next_press_belongs(cards: Page) -> None:
    cards.get_by_role("button", name="Ask me").press("Enter")
    expect(cards.get_by_role("button", name="Show the answer")).to_be_focused()
    cards.keyboard.press("Enter")
    expect(cards.get_by_role("button", name="I knew it")).to_be_focused()
    cards.keyboard.press("Tab")
    cards.keyboard.press("Enter")
    expect(cards.get_by_role("button", name="Show the answer")).to_be_focused()
    cards.get_by_role("button", name="Stop").press("Enter")
    expect(cards.get_by_role("button", name="Ask me")).to_be_focused()


@without_script
def test_the_page_reads_without_a_script_and_each_chapter_leads_to_its_cards(
    open_page: Visit,
) -> None:
    found = open_page.go(PAGE).locator(".card-to-remember")
    assert found.count() == len(NAMES) > 100
    assert found.locator("details").count() == len(NAMES)
    for file in sorted((ROOT / "chapters").glob("*.md")):
        chapter = open_page.go(f"chapters/{file.stem}.html")
        links = chapter.locator("#summary a[href*='appendices/cards.html']")
        assert links.get_attribute("href") == f"../{PAGE}#cards-{int(file.stem[:2])}"
