"""Catalogues for translators: what they may change, what is stale, and a site in two languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import translate
from babel.messages import Catalog
from site_visits import ROOT, article
from test_site_extension import FIXTURE, built_book

PAGE = "chapters/02-second"
GERMAN = {
    "Second chapter": "Zweites Kapitel",
    "The first numbered formula here belongs to chapter 2:": "Die erste Formel ist von Kapitel 2:",
    "Here {eq}`eq-scaled` follows {eq}`eq-average` of the chapter before.": (
        "Auf {eq}`eq-average` des Kapitels davor folgt {eq}`eq-scaled`."
    ),
}
KEPT = [
    r'<div class="math-scroll">.*?</div>',
    r"<pre>.*?</pre>",
    r'<section id="[^"]*"',
    r'<div class="math[^>]* id="[^"]*"',
    r'<span class="eqno">\([\d.]+\)',
]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small book, built, with its messages written."""
    folder = tmp_path_factory.mktemp("translation") / "book"
    built_book(folder, FIXTURE)
    assert translate.main(["template"], folder) == 0
    return folder


def catalog_of(book: Path, strings: dict[str, str]) -> str:
    """Update the German catalogue of the page, and fill it in."""
    assert translate.main(["update", "de", PAGE], book) == 0
    file = book / "locales/de/LC_MESSAGES" / f"{PAGE}.po"
    text = file.read_text("utf-8")
    for english, german in strings.items():
        assert f'msgid "{english}"\nmsgstr ""' in text
        text = text.replace(
            f'msgid "{english}"\nmsgstr ""', f'msgid "{english}"\nmsgstr "{german}"'
        )
    file.write_text(text, "utf-8")
    return text


@pytest.fixture(scope="module")
def german(book: Path) -> Path:
    """The small book's site in German."""
    catalog_of(book, GERMAN)
    notice = book / "locales/de/notice.md"
    assert "reviewed" in notice.read_text("utf-8")  # what a new language has, until it says it
    notice.write_text("Ungeprüft.\n", "utf-8")
    assert translate.main(["build", "de"], book) == 0
    return book / "_build/de/_build/html"


def article_of(site: Path, page: str = f"{PAGE}.html") -> str:
    return article((site / page).read_text("utf-8"))


def parts(pattern: str, text: str) -> list[str]:
    return re.findall(pattern, text, re.DOTALL)


def test_prose_is_replaced_and_all_else_stays(book: Path, german: Path) -> None:
    before, after = article_of(book / "_build/html"), article_of(german)
    assert "Zweites Kapitel" in after and "Second chapter" not in after
    assert "Die erste Formel ist von Kapitel 2:" in after
    assert "Ungeprüft." in after and "Ungeprüft." not in before
    for kept in KEPT:
        assert parts(kept, after) == parts(kept, before) != [], kept
    links = r'<a class="reference internal" href="([^"]*)"'
    assert sorted(parts(links, after)) == sorted(parts(links, before)) != []


def test_a_page_without_a_catalogue_is_the_same(book: Path, german: Path) -> None:
    page = "chapters/01-sample.html"
    title = re.compile(r'<p class="admonition-title">.*?</p>')  # Sphinx knows German for some
    before, after = (article_of(site, page) for site in (book / "_build/html", german))
    assert title.sub("", after) == title.sub("", before)
    assert len(title.findall(after)) == len(title.findall(before)) > 0


def test_a_changed_paragraph_is_stale_and_stands_in_english(
    book: Path, german: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = book / f"{PAGE}.md"
    text = source.read_text("utf-8")
    source.write_text(text.replace("formula here belongs", "formula here already belongs"), "utf-8")
    assert translate.main(["template"], book) == 0
    capsys.readouterr()
    assert translate.main(["update", "de", PAGE], book) == 0
    said = capsys.readouterr().out
    assert f"{PAGE}: 4 messages, 1 not translated, 1 stale" in said  # the formula's has no words
    assert "stale: The first numbered formula here already belongs" in said
    assert translate.main(["build", "de"], book) == 0
    after = article_of(german)
    assert "already belongs" in after and "Die erste Formel" not in after
    source.write_text(text, "utf-8")


@pytest.mark.parametrize(
    ("english", "german", "said"),
    [
        ("It is $x^2$ at 0.12.", "Es ist $x^2$ bei 0.12.", ""),
        ("It is $x^2$ at 0.12.", "Es ist bei 0.12.", "lacks $x^2$"),
        ("It is $x^2$ at 0.12.", "Es ist $x^2$ bei 0.21.", "lacks 0.12"),
        ("It is $x^2$ at 0.12.", "Es ist $x^2$ bei 0.21.", "adds 0.21"),
        ("See {ref}`the asides <asides-1>`.", "Siehe {ref}`die Exkurse <asides-1>`.", ""),
        (
            "See {ref}`the asides <asides-1>`.",
            "Siehe {ref}`die Exkurse <asides-2>`.",
            "{ref} asides-1",
        ),
        ("See {eq}`eq-a` and {eq}`eq-b`.", "Siehe {eq}`eq-b` und {eq}`eq-a`.", ""),
        ("See {cite:p}`one,two`.", "Siehe {cite:p}`one`.", "{cite:p} one,two"),
        ("Call `attend`.", "`attend` rufen.", ""),
        ("Call `attend`.", "`attention` rufen.", "lacks `attend`"),
        ("[Here](https://a.org/b).", "[Hier](https://a.org/c).", "lacks ](https://a.org/b)"),
    ],
)
def test_what_a_translation_loses_is_named(english: str, german: str, said: str) -> None:
    catalog = Catalog(locale="de")
    catalog.add(english, german)
    found = " ".join(translate.problems(catalog))
    assert (said in found) if said else not found
    catalog.get(english).flags.add("fuzzy")  # not in force
    assert not list(translate.problems(catalog))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["update", "German", PAGE], "LANGUAGE: got 'German', expected a name such as de"),
        (["update", "de", "chapters/9"], "PAGE: got 'chapters/9', expected a page as in _toc.yml"),
        (["build", "xx"], "LANGUAGE: got 'xx', expected a folder of locales/"),
        (["check", "xx"], "LANGUAGE: got 'xx', expected a folder of locales/"),
        (["template"], "the outputs are not at hand"),
    ],
)
def test_what_cannot_be_done_is_said(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert translate.main(words, tmp_path) == 1
    assert said in capsys.readouterr().err


def test_the_books_own_translations_lose_nothing_and_say_what_they_are() -> None:
    files = list(translate.catalogues(ROOT))
    assert files
    assert translate.main(["check"]) == 0
    for file in files:
        language = file.relative_to(ROOT / "locales").parts[0]
        assert (ROOT / "locales" / language / "notice.md").read_text("utf-8").strip()
    workflow = (ROOT / ".github/workflows/pages.yml").read_text("utf-8")
    assert "translat" not in workflow, "a translation that nobody checked is published"
