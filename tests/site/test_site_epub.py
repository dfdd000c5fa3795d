"""The book as one EPUB: well-formed, complete, with formulas, and with links that arrive."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from functools import partial
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from playwright.sync_api import Browser
from site_visits import SITE, article, listed, run_tool

FILES = listed()
H, M = "{http://www.w3.org/1999/xhtml}", "{http://www.w3.org/1998/Math/MathML}"
E, OPF = "{http://www.idpf.org/2007/ops}", "{http://www.idpf.org/2007/opf}"
SVG = "{http://www.w3.org/2000/svg}"
bind = partial(run_tool, "make_epub.py")


@pytest.fixture(scope="module")
def bound(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The book, bound anew: the tool fails where a page asks another host or lacks a file."""
    epub = tmp_path_factory.mktemp("epub") / "attnbook.epub"
    done = bind(SITE, epub)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return zipfile.ZipFile(epub)


@pytest.fixture(scope="module")
def pages(bound: zipfile.ZipFile) -> dict[str, Element]:
    """Every page, as strict XML."""
    names = [name for name in bound.namelist() if name.endswith(".xhtml")]
    return {name: ElementTree.fromstring(bound.read(name)) for name in names}


def kind(element: Element) -> str:
    return element.get(f"{E}type", "")


def test_the_archive_says_what_it_is_and_lists_what_it_holds(bound: zipfile.ZipFile) -> None:
    first = bound.infolist()[0]
    assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
    assert bound.read(first) == b"application/epub+zip"
    package = ElementTree.fromstring(bound.read("book/book.opf"))
    items = {one.attrib["id"]: one.attrib for one in package.iter(f"{OPF}item")}
    listed = {f"book/{one['href']}" for one in items.values()}
    assert listed | {"mimetype", "META-INF/container.xml", "book/book.opf"} == set(bound.namelist())
    spine = [items[one.attrib["idref"]]["href"] for one in package.iter(f"{OPF}itemref")]
    slugs = [f"pages/{file.replace('/', '-')}.xhtml" for file in FILES]
    assert spine == ["cover.xhtml", "about.xhtml", *slugs]
    for one in items.values():
        if one["href"].endswith(".xhtml"):
            text = bound.read(f"book/{one['href']}").decode()
            for sign, name in (("<math", "mathml"), ("<svg", "svg")):
                assert (sign in text) == (name in one.get("properties", "").split()), one["href"]
    assert bound.read("book/cover.png")[:4] == b"\x89PNG"


def test_every_link_arrives_and_every_picture_is_there(
    bound: zipfile.ZipFile, pages: dict[str, Element]
) -> None:
    names = {name: {e.get("id") for e in page.iter()} for name, page in pages.items()}
    links = 0
    for name, page in pages.items():
        folder = name.rpartition("/")[0]
        doubled = [i for i, n in Counter(e.get("id") for e in page.iter()).items() if i and n > 1]
        assert not doubled, (name, doubled)
        for element in page.iter():
            path = element.get("href") or element.get("src")
            if path is None or re.match(r"(https?|mailto):", path):
                assert path is None or element.tag == f"{H}a", f"{name} would fetch {path}"
                continue
            file, _, anchor = path.partition("#")
            parts = [*folder.split("/"), *file.split("/")] if file else name.split("/")
            while ".." in parts:
                at = parts.index("..")
                del parts[at - 1 : at + 1]
            target = "/".join(parts)
            assert target in bound.namelist(), f"{name}: {path}"
            assert not anchor or anchor in names[target], f"{name}: {path}"
            links += element.tag == f"{H}a"
    assert links > 3000
    tags = {element.tag for page in pages.values() for element in page.iter()}
    assert not tags & {f"{H}script", f"{H}button", f"{H}details"}


@pytest.mark.parametrize("file", FILES)
def test_a_page_has_all_that_the_site_has(pages: dict[str, Element], file: str) -> None:
    page = pages[f"book/pages/{file.replace('/', '-')}.xhtml"]
    there = article((SITE / f"{file}.html").read_text(encoding="utf-8"))
    tags = Counter(element.tag for element in page.iter())
    assert tags[f"{M}math"] == there.count("<math ")
    assert tags[f"{H}pre"] == len(re.findall(r"<pre[ >]", there))
    stills = sum(element.get("class") == "still" for element in page.iter(f"{H}figure"))
    live = there.count('class="attnbook-live"')
    assert stills == (0 if file == "index" else live)  # the landing page borrows chapter 1's
    notes = {e.get("id"): e for e in page.iter(f"{H}aside") if kind(e) == "endnote"}
    ways = [e.attrib["href"].rpartition("#")[2] for e in page.iter(f"{H}a") if kind(e) == "noteref"]
    assert sorted(notes) == sorted(ways)
    solutions = there.count('class="solution ')
    folds = there.count("<details") + solutions
    assert len(notes) <= folds and bool(notes) == bool(folds)
    told = ["".join(note.itertext()) for note in notes.values()]
    assert sum("Solution to" in text for text in told) == solutions
    assert "var(--" not in ElementTree.tostring(page, "unicode")


def test_the_colours_and_letters_of_drawings_stay(pages: dict[str, Element]) -> None:
    drawings = [svg for page in pages.values() for svg in page.iter(f"{SVG}svg")]
    assert len(drawings) > 50
    for drawing in drawings:
        assert drawing.get("aria-label") or drawing.get("aria-hidden")
        for element in drawing.iter():
            assert element.get("fill", "none") == element.get("fill", "none").strip() != ""


def test_pictures_are_of_kinds_that_every_reader_shows(bound: zipfile.ZipFile) -> None:
    pictures = [name for name in bound.namelist() if name.startswith("book/images/")]
    assert {Path(name).suffix for name in pictures} <= {".svg", ".png", ".jpg"}
    for name in pictures:
        if name.endswith(".svg"):
            text = bound.read(name).decode()
            ElementTree.fromstring(text)
            assert "<!DOCTYPE" not in text
            assert not re.search(r'<path id="[^"]*"(?![^>]* d=)[^>]*>', text), name


def test_a_lost_picture_stops_it_and_the_same_site_gives_the_same_book(
    browser: Browser, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    (site / "chapters").mkdir(parents=True)
    page = "<html><body><article class=bd-article><h1>One</h1><p>Two.</p>{}</article></body></html>"
    (site / "index.html").write_text(page.format(""), encoding="utf-8")
    toc = tmp_path / "toc.yml"
    toc.write_text("root: index\n", encoding="utf-8")
    once, again = tmp_path / "once.epub", tmp_path / "again.epub"
    assert bind(site, once, toc).returncode == bind(site, again, toc).returncode == 0
    assert once.read_bytes() == again.read_bytes()
    lost = page.format('<img src="lost.svg" alt="lost">')
    (site / "index.html").write_text(lost, encoding="utf-8")
    done = bind(site, once, toc)
    assert done.returncode == 1
    assert "lost.svg" in done.stderr
    assert once.read_bytes() == again.read_bytes(), "an unfinished book replaced the finished one"
