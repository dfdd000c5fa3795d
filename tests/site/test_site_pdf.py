"""The whole book as one PDF: complete, with true page numbers, and with links that stay inside."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route
from print_book import ADDRESS, TAKE_OUT, Desk, title_page
from pypdf import PageObject, PdfReader
from site_visits import ROOT, SITE, article, listed, next_frames, run_tool

pytestmark = pytest.mark.slow  # the whole book is printed
FILES = list(listed())
PAGES = {
    file: (SITE / f"{file}.html").read_text(encoding="utf-8")
    for file in FILES
    if (SITE / f"{file}.html").is_file()
}
LIVE = {"08-three-transformers": 2, "11-weights-without-softmax": 0, "13-many-devices": 2}
TEXTS = {file: article(page) for file, page in PAGES.items()}
print_book = partial(run_tool, "print_book.py")


@pytest.fixture(scope="module")
def printed(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The book, printed anew. The tool itself fails if a page complains or asks another host."""
    pdf = tmp_path_factory.mktemp("pdf") / "attnbook.pdf"
    done = print_book(SITE, pdf)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return pdf


@pytest.fixture(scope="module")
def reader(printed: Path) -> PdfReader:
    return PdfReader(printed)


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


def leads_to(reader: PdfReader, link: dict[str, Any]) -> int:
    """The page number of an inner link's place."""
    place = reader.named_destinations[link["/Dest"]]
    return reader.get_destination_page_number(place) + 1


def test_every_page_and_section_is_in_the_outline(reader: PdfReader) -> None:
    """In the order of _toc.yml, and with the page's own words."""
    assert len(PAGES) == len(FILES)
    entries = [(level, words(title)) for level, title, _ in outline(reader)]
    titles = [title for level, title in entries if level == 1]
    assert titles == ["Contents", *(headings(1, page)[0] for page in TEXTS.values())]
    sections = [title for level, title in entries if level == 2 and title != "Solutions"]
    expected = [title for page in TEXTS.values() for title in headings(2, page)]
    assert len(sections) == len(expected)
    assert [e for s, e in zip(sections, expected, strict=True) if e not in s] == []


def test_the_page_numbers_of_the_contents_are_right(reader: PdfReader) -> None:
    """Printed number, link and outline agree, and the number stands at the foot of that page."""
    entries = [(title, page) for level, title, page in outline(reader) if level <= 2]
    (_, first), (_, end), *_ = entries
    expected = [page for _, page in entries[1:]]
    inner = [leads_to(reader, link) for n in range(first, end) for link in links(reader, n)]
    assert inner == expected
    shown: list[int] = []  # the pieces that are numbers; two columns may stand in one line
    for number in range(first, end):
        pieces: list[str] = []
        reader.pages[number - 1].extract_text(
            visitor_text=lambda piece, *_, pieces=pieces: pieces.append(piece.strip())
        )
        foot, *others = [int(piece) for piece in pieces if piece.isdecimal()]
        assert foot == number
        shown += others
    assert shown == expected
    for title, number in [(title, page) for level, title, page in outline(reader) if level == 1]:
        text = reader.pages[number - 1].extract_text()
        assert str(number) in text.splitlines()[:4] and words(title) in words(text), title


def test_links_stay_in_the_book_or_lead_to_the_web(reader: PdfReader) -> None:
    """No link to this machine; the chapters' links on the first page lead to the chapters."""
    found = [link for n in range(1, len(reader.pages) + 1) for link in links(reader, n)]
    outer = [link["/A"]["/URI"] for link in found if "/A" in link]
    assert len(outer) > 50
    assert [address for address in outer if not address.startswith("https://")] == []
    assert len([link for link in found if "/Dest" in link]) > 500
    starts = {title: page for level, title, page in outline(reader) if level == 1}
    _, landing, first, *_ = starts.values()
    for number, chapter in enumerate(FILES[1:10], 1):
        (start,) = (page for title, page in starts.items() if title.startswith(f"{number}. "))
        slug = "/" + chapter.replace("/", "-")
        from_index = [link for n in range(landing, first) for link in links(reader, n)]
        there = [leads_to(reader, link) for link in from_index if link.get("/Dest") == slug]
        assert set(there) == {start}, chapter


def test_every_figure_is_printed_with_its_words(printed: Path) -> None:
    """Still and live ones: each page's pictures are in the tags that a screen reader follows."""
    found = re.findall(rb"/Alt \((.*?[^\\])\)\n|/Alt <(\w+)>\n", printed.read_bytes(), re.DOTALL)
    plain = [re.sub(rb"\\(.)", rb"\1", text).decode("latin-1") for text, _ in found if text]
    wide = [bytes.fromhex(text.decode()).decode("utf-16") for _, text in found if text]
    shown = {re.sub(r"\s", "", text) for text in plain + wide}
    for file, text in TEXTS.items():
        seen = re.sub(r'<div class="attnbook-still">.*?</div>', "", text, flags=re.DOTALL)
        still = re.findall(r'<img [^>]*?alt="([^"]*)"', seen)
        text = re.sub(r'<div class="screen-only">.*?</script>\s*</div>', "", text, flags=re.DOTALL)
        live = re.findall(r'class="attnbook-live"[^>]*aria-label="([^"]*)"', text)
        assert len(live) == LIVE.get(Path(file).name, int("chapters/" in file))
        assert {words(label) for label in still + live} <= shown, file


def boxes(page: PageObject) -> tuple[list[tuple[float, ...]], list[tuple[float, float]]]:
    """What is painted on a page: around each shape left, foot, right, top; and where text is."""
    shapes, texts, path = [], [], list[tuple[float, float]]()

    def paint(operator: bytes, numbers: list[Any], matrix: list[float], _: object) -> None:
        a, b, c, d, e, f = matrix
        if operator in (b"m", b"l", b"c", b"re"):
            x, y, *size = map(float, numbers[-2:] if operator == b"c" else numbers)
            corners = [(x, y), (x + size[0], y + size[1])] if size else [(x, y)]
            path.extend((a * x + c * y + e, b * x + d * y + f) for x, y in corners)
        elif operator in (b"f", b"f*", b"S", b"B", b"n"):
            if path and operator != b"n":
                across, up = zip(*path, strict=True)
                shapes.append((min(across), min(up), max(across), max(up)))
            path.clear()

    def write(text: str, matrix: list[float], line: list[float], *_: object) -> None:
        if text.strip():
            (a, b, c, d, e, f), (x, y) = matrix, line[4:]
            texts.append((a * x + c * y + e, b * x + d * y + f))

    page.extract_text(visitor_operand_before=paint, visitor_text=write)
    return shapes, texts


def test_no_page_ends_with_an_empty_box(reader: PdfReader) -> None:
    """Where a cell does not fit, it begins on the next page. Chapter 1, and its solutions."""
    starts = [number for level, _, number in outline(reader) if level == 1]
    empty = []
    for number in range(starts[2], starts[3]):
        shapes, texts = boxes(reader.pages[number - 1])
        for left, foot, right, top in shapes:
            is_box = 400 < right - left < 490 and 3 < top - foot < 725
            if is_box and foot < 100 and not any(foot - 1 <= y <= top for _, y in texts):
                empty.append((number, round(foot), round(top)))
    assert empty == []


def test_it_says_when_and_by_whom(reader: PdfReader) -> None:
    """Title, subtitle, version, licence, and the day of the newest commit, not of the printing."""
    text = " ".join(reader.pages[0].extract_text().split())
    for part in ("From Kernel Regression to", "One weighted average", "Version ", "CC BY 4.0"):
        assert part in text
    command = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0 and "SOURCE_DATE_EPOCH" not in os.environ:
        assert reader.metadata.creation_date.timestamp() == int(done.stdout)


def test_the_title_page_names_the_site_as_soon_as_it_has_an_address() -> None:
    """Before that, the title page has no link."""
    texts = [{"title": "A book", "subtitle": "Short"}]
    project = {"version": "1", "authors": [{"name": "They"}]}
    assert "href" not in title_page(texts, project, datetime(2027, 3, 5, tzinfo=UTC))
    project["urls"] = {"Book": "https://book.test"}
    title = title_page(texts, project, datetime(2027, 3, 5, tzinfo=UTC))
    assert '<a href="https://book.test">https://book.test</a>' in title


FAULTS = {
    "asked for https://example.org/a.png": '<img src="https://example.org/a.png" alt="Far">',
    "no picture: Lost": '<img src="_images/lost.png" alt="Lost">',
    "a link leads nowhere: #index--nowhere": '<a href="#nowhere">there</a>',
    "a formula is not set: Half is": r"<p>Half is \frac{1}{2}.</p>",
    "a formula is not set: A price": "<p>A price of $x$ a piece.</p>",
    "a control on paper: checkbox": '<input type="checkbox">',
    "index.html: oh": "<script>throw new Error('oh')</script>",
}


def test_a_figure_that_is_not_printed_may_have_a_late_script(browser: Browser) -> None:
    """On a busy machine the landing page's figure gets its script when its text is taken out."""
    desk, late = Desk(browser, SITE), list[Route]()
    desk.context.route("**/_static/live/*.js**", lambda route: late.append(route))
    page = desk.open(f"{ADDRESS}/index.html")
    while not late:
        next_frames(page)
    page.evaluate(TAKE_OUT, {"slug": "index", "slugs": {"index.html": "index"}, "home": ""})
    desk.answer(late[0])
    late[0].request.response()
    next_frames(page)
    assert desk.faults == []
    desk.context.close()


def test_the_tool_finds_what_is_wrong_with_a_page(browser: Browser, tmp_path: Path) -> None:
    """A book of one page, sound and then with every fault at once."""
    toc, site = tmp_path / "_toc.yml", tmp_path / "site"
    toc.write_text("root: index\n", encoding="utf-8")
    shutil.copytree(SITE / "_images", site / "_images")
    shutil.copytree(SITE / "_static", site / "_static", ignore=shutil.ignore_patterns("models"))
    (site / "index.html").write_text(PAGES["index"], encoding="utf-8")
    done = print_book(site, tmp_path / "sound.pdf", toc)
    assert done.returncode == 0, done.stdout + done.stderr
    faulty = PAGES["index"].replace("</article>", "".join(FAULTS.values()) + "</article>")
    (site / "index.html").write_text(faulty, encoding="utf-8")
    done = print_book(site, tmp_path / "faulty.pdf", toc)
    assert done.returncode == 1
    assert [fault for fault in FAULTS if fault not in done.stderr] == []
