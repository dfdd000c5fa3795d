"""The references: each is cited on some page, and each that is cited is there, in one form."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENTRY = re.compile(r"^@(?P<kind>\w+)\{(?P<key>\w+),\n(?P<fields>.*?)^\}", re.M | re.S)
FIELD = re.compile(r"\b(\w+) = \{")
CITED = re.compile(r"\{cite:[pt]\}`(\w+(?:,\s*\w+)*)`")
PLACES = {
    "article": {"journal"},
    "inproceedings": {"booktitle"},
    "book": {"publisher"},
    "misc": {"howpublished"},
    "phdthesis": {"school"},
    "techreport": {"institution"},
}


def references() -> list[re.Match[str]]:
    """All entries of the file."""
    path = ROOT / "references.bib"
    if not path.is_file():
        pytest.skip("no references.bib here")
    return list(ENTRY.finditer(path.read_text("utf-8")))


def cited() -> dict[str, str]:
    """Each key that a page cites, with the page."""
    pages = [ROOT / "index.md"]
    for folder in ("chapters", "appendices", "lectures", "homework"):
        pages += sorted((ROOT / folder).glob("*.md"))
    return {
        key.strip(): page.name
        for page in pages
        if page.is_file()
        for keys in CITED.findall(page.read_text("utf-8"))
        for key in keys.split(",")
    }


def test_each_reference_is_cited():
    assert sorted({m["key"] for m in references()} - set(cited())) == []


def test_each_citation_has_a_reference():
    found = {m["key"] for m in references()}
    assert {key: page for key, page in cited().items() if key not in found} == {}


def test_no_key_and_no_doi_is_there_twice():
    text = "".join(m[0] for m in references())
    keys = Counter(m["key"] for m in references())
    dois = Counter(doi.lower() for doi in re.findall(r"\bdoi = \{(.+?)\}", text))
    assert [name for name, times in (keys + dois).items() if times > 1] == []


def test_each_reference_says_who_what_where_and_when():
    for match in references():
        fields = set(FIELD.findall(match["fields"]))
        wanted = {"author", "title", "year"} | PLACES[match["kind"]]
        assert wanted <= fields, f"{match['key']} lacks {sorted(wanted - fields)}"
