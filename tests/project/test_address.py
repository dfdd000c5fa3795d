"""The book's address stands in pyproject.toml; pages say it when they are built, and none else."""

from __future__ import annotations

import re

import pytest
from attnbook_site.project import filled
from check_environment import ROOT

COPY = ("https://github.com/some-one/a.copy", "https://some-one.github.io/a.copy")
PAGES = [ROOT / "index.md", ROOT / "appendices/api.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_passages_of_a_page_are_there_where_the_book_has_an_address(page):
    text = page.read_text("utf-8")
    without, with_one = filled(text, "", ""), filled(text, *COPY)
    assert "address:" not in without + with_one
    assert "some-one" not in without and "some-one" in with_one
    assert not re.search(r"\{(repository|pages|quoted|name|owner_and_name)\}", without + with_one)


def test_a_passage_within_a_sentence_keeps_its_space_and_its_marks():
    text = "It is<!-- address:  at <{pages}> -->.\n\n<!-- address:\nBy {owner_and_name}\n-->\n\nOn"
    assert filled(text, "", "") == "It is.\n\n\n\nOn"
    assert filled(text, *COPY) == f"It is at <{COPY[1]}>.\n\nBy some-one/a.copy\n\nOn"
