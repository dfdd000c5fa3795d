"""The whole book as one PDF: complete, with true page numbers, and with links that stay inside."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader
from site_visits import SITE, article, listed, run_tool

pytestmark = pytest.mark.slow  # the whole book is printed
PAGES = {
    file: (SITE / f"{file}.html").read_text(encoding="utf-8")
    for file in listed()
    if (SITE / f"{file}.html").is_file()
}
TEXTS = {file: article(page) for file, page in PAGES.items()}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> PdfReader:
    """The book, printed anew. The tool itself fails if a page complains or asks another host."""
    pdf = tmp_path_factory.mktemp("pdf") / "attnbook.pdf"
    done = run_tool("print_book.py", SITE, pdf)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return PdfReader(pdf)


def words(text: str) -> str:
    """Text without its markup, formulas and blanks."""
    text = re.sub(r'<span class="math">.*</span>|<a class="headerlink".*?</a>|<[^>]+>', "", text)
    return re.sub(r"\s", "", html.unescape(text))


def headings(level: int, page: str) -> list[str]:
    """The words of a page's headings."""
    return [words(found) for found in re.findall(rf"<h{level}(?: [^>]*)?>(.*?)</h{level}>", page)]


def outline(reader: PdfReader) -> Iterator[tuple[int, str, int]]:
    """Level, title and page number of everything in the outline."""

    def below(entries: list[Any], level: int) -> Iterator[tuple[int, str, int]]:
        for entry in entries:
            if isinstance(entry, list):
                yield from below(entry, level + 1)
            else:
                yield level, entry.title, reader.get_destination_page_number(entry) + 1

    return below(reader.outline, 1)


def links(reader: PdfReader, number: int) -> list[dict[str, Any]]:
    """The links on a page."""
    notes = (note.get_object() for note in reader.pages[number - 1].get("/Annots", []))
    return [note for note in notes if note["/Subtype"] == "/Link"]


def test_every_page_of_the_book_is_there_with_its_sections(reader: PdfReader) -> None:
    entries = [(level, words(title)) for level, title, _ in outline(reader)]
    titles = [title for level, title in entries if level == 1]
    assert titles == ["Contents", *(headings(1, page)[0] for page in TEXTS.values())]
    sections = [title for level, title in entries if level == 2 and title != "Solutions"]
    expected = [title for page in TEXTS.values() for title in headings(2, page)]
    assert len(sections) == len(expected)
    assert [e for s, e in zip(sections, expected, strict=True) if e not in s] == []


def test_the_contents_lead_where_their_page_numbers_say(reader: PdfReader) -> None:
    """Link and outline agree, and the number stands at the foot of that page."""
    entries = [(level, title, page) for level, title, page in outline(reader) if level <= 2]
    (_, _, first), (_, _, end), *_ = entries
    inner = [
        reader.get_destination_page_number(reader.named_destinations[link["/Dest"]]) + 1
        for number in range(first, end)
        for link in links(reader, number)
    ]
    assert inner == [page for _, _, page in entries[1:]]
    for level, title, number in entries:
        text = reader.pages[number - 1].extract_text()
        if level == 1:
            assert str(number) in text.splitlines()[:4] and words(title) in words(text), title


def test_links_stay_in_the_book_or_lead_to_the_web(reader: PdfReader) -> None:
    found = [link for n in range(1, len(reader.pages) + 1) for link in links(reader, n)]
    outer = [link["/A"]["/URI"] for link in found if "/A" in link]
    assert len(outer) > 50
    assert [address for address in outer if not address.startswith("https://")] == []
    assert len([link for link in found if "/Dest" in link]) > 500


def test_both_back_ends_are_printed(reader: PdfReader) -> None:
    """In the chapter that has most cells in JAX; to read all pages takes as long as to print them."""
    cells = {file: len(re.findall(r'<div class="cell [^"]*tag_jax', TEXTS[file])) for file in TEXTS}
    most = max(cells, key=lambda file: cells[file])
    starts = [number for level, _, number in outline(reader) if level == 1]
    at = list(TEXTS).index(most) + 1  # after the contents
    pages = reader.pages[starts[at] - 1 : starts[at + 1] - 1]
    text = "".join(page.extract_text() for page in pages)
    assert len(re.findall(r"^JAX *$", text, re.MULTILINE)) >= cells[most] / 2 > 1


FAULTS = {
    "asked for https://example.org/a.png": '<img src="https://example.org/a.png" alt="Far">',
    "no picture: Lost": '<img src="_images/lost.png" alt="Lost">',
    "a link leads nowhere: #index--nowhere": '<a href="#nowhere">there</a>',
    "a formula is not set: Half is": r"<p>Half is \frac{1}{2}.</p>",
    "a control on paper: checkbox": '<input type="checkbox">',
    "index.html: oh": "<script>throw new Error('oh')</script>",
}


def test_the_tool_finds_what_is_wrong_with_a_page(tmp_path: Path) -> None:
    """A book of one page, with every fault at once."""
    toc, site = tmp_path / "_toc.yml", tmp_path / "site"
    toc.write_text("root: index\n", encoding="utf-8")
    shutil.copytree(SITE / "_images", site / "_images")
    shutil.copytree(SITE / "_static", site / "_static", ignore=shutil.ignore_patterns("models"))
    faulty = PAGES["index"].replace("</article>", "".join(FAULTS.values()) + "</article>")
    (site / "index.html").write_text(faulty, encoding="utf-8")
    done = run_tool("print_book.py", site, tmp_path / "faulty.pdf", toc)
    assert done.returncode == 1
    assert [fault for fault in FAULTS if fault not in done.stderr] == []
