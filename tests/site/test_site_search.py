"""The search: hits lead to their section, formulas are read once, and one wrong letter still finds."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from attnbook_site.search import unpacked
from firefox import Firefox
from playwright.sync_api import Page
from site_visits import SITE, Visit
from test_site_reading import HTML

LINKS = "[...document.querySelectorAll('#search-results > li > a')].map((one) => one.getAttribute('href'))"
BANDWIDTH = "./chapters/01-kernel-regression.html#the-bandwidth-how-far-to-look"
INDEX = SITE / "_static" / "search-index.js"


def ask(seen: Visit, question: str) -> Page:
    """The page of results."""
    page = seen.go(f"search.html?q={quote(question)}")
    page.wait_for_function("document.getElementById('search-said').textContent !== ''")
    return page


@pytest.mark.parametrize(
    "question", ["bandwidth", "bandwith", "bandwidht", "bandwidths", "bamdwidth", "Bandwiddth"]
)
def test_a_word_is_found_though_a_letter_is_wrong(open_page: Visit, question: str) -> None:
    """One is missing, too many, another one, or in the other order; the section comes first."""
    page = ask(open_page, question)
    assert page.evaluate(LINKS)[0] == BANDWIDTH
    said = page.locator("#search-said").inner_text()
    assert ("“bandwidth”" in said) == (question not in ("bandwidths",))


def test_a_hit_leads_to_its_section(open_page: Visit) -> None:
    """Not to the top of its page."""
    page = ask(open_page, "bandwidth")
    page.locator("#search-results a").first.click()
    page.wait_for_url("**#the-bandwidth-how-far-to-look")
    top = page.locator("#the-bandwidth-how-far-to-look").bounding_box()["y"]
    assert 0 <= top < 150


def test_names_of_functions_terms_and_authors_are_found(open_page: Visit) -> None:
    for question, place in {
        "leave_one_out": "./appendices/api-functions.html#attnbook.leave_one_out",
        "alibi": "./appendices/terms.html#term-alibi",
        "Bahdanau": "./appendices/references.html",
    }.items():
        links = ask(open_page, question).evaluate(LINKS)
        assert any(link.startswith(place) for link in links[:12]), (question, links[:12])


def test_excerpts_show_a_formula_once(open_page: Visit) -> None:
    """As a line of text, neither as source nor twice; what was asked for is marked."""
    page = ask(open_page, "weights at a query")
    texts = page.locator("#search-results .context").all_inner_texts()
    assert len(texts) > 5
    assert [text for text in texts if re.search(r"\\[a-z]+|\$", text)] == []
    marked = page.locator("#search-results mark").all_inner_texts()
    assert {word.lower() for word in marked} >= {"weights", "query"}


def test_the_index_has_each_formula_once() -> None:
    """KaTeX writes each twice into a page, for the eye and for the ear."""
    index = str(unpacked(INDEX.read_text(encoding="utf-8")))
    assert "f̂(q)=∑_(j=1)^nw_j(q)" in index.replace(" ", "")
    assert "\\\\sum" not in index and "\\\\frac" not in index
    assert re.findall(r"(w_j\(q\)\s*v_j)\W{0,3}\1", index) == []


def test_every_place_of_the_index_is_there() -> None:
    pages = unpacked(INDEX.read_text(encoding="utf-8"))
    assert {f"{page}.html" for page in pages} == HTML.keys() - {"search.html"}
    lost = [
        (page, entry[0])
        for page, (_, entries) in pages.items()
        for entry in entries
        if f'id="{entry[0]}"' not in HTML[f"{page}.html"]
    ]
    assert lost == []


def test_nothing_is_found_where_nothing_is(open_page: Visit) -> None:
    page = ask(open_page, "zzyzzx")
    assert page.locator("#search-said").inner_text() == "“zzyzzx” is nowhere in the book."
    assert page.locator("#search-results li").count() == 0


def test_the_search_works_from_a_folder(blank: Page) -> None:
    """Without a server, where a page may not fetch anything."""
    blank.goto(f"{(SITE / 'search.html').as_uri()}?q=bandwith")
    blank.wait_for_function(f"{LINKS}[0] === '{BANDWIDTH}'")


def test_the_search_works_in_firefox(firefox: Firefox, site: str) -> None:
    """From the field above a page, with a letter too few, to the section."""
    firefox.resize(820, 900)
    firefox.go(f"{site}/chapters/03-queries-keys-values.html")
    firefox.tap(".search-button")
    firefox.type("bandwith\ue007")
    firefox.wait("return location.pathname.endsWith('/search.html')")
    firefox.wait(f"return {LINKS}[0] === '{BANDWIDTH}'")
    firefox.tap("#search-results a")
    firefox.wait("return location.hash === '#the-bandwidth-how-far-to-look'")
