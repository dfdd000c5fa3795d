"""What must hold of every page of the site, in both themes and at both widths."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from firefox import Firefox
from playwright.sync_api import Browser, Page
from site_visits import (
    FRAMES,
    ROOT,
    SITE,
    WIDTHS,
    Visit,
    faded,
    next_frames,
    out_of_date,
    pages_of,
    rests,
    visiting,
)

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
WEIGHT_LIMIT = 360_000  # bytes on the way: a second at 3 Mbit/s
INDEX_LIMIT = 400_000  # the words of all pages, which the search page alone asks for
TEXT = {"document", "stylesheet", "script", "fetch", "xhr"}
PAGES = pages_of(SITE) if SITE.is_dir() else ["index.html"]

UNSHOWN_MATHS = r"""() => [
  ...[...document.querySelectorAll(".math")]
    .filter(e => !e.querySelector(".katex")).map(e => e.textContent),
  ...[...document.querySelectorAll(".katex-error")].map(e => e.textContent),
  ...[...document.querySelectorAll(".bd-article p, .bd-article li, .bd-article td, .bd-article dd")]
    .filter(e => {
      const copy = e.cloneNode(true);
      copy.querySelectorAll("code, pre, .katex").forEach(part => part.remove());
      return /\$[^$]+\$|\\\(|\\\[|\\begin\{/.test(copy.textContent);
    }).map(e => e.textContent)]"""
UNNAMED_IMAGES = """() => [...document.querySelectorAll(".bd-article img")]
  .filter(e => !(e.getAttribute("alt") || "").trim()
            || /^(_images|[.][.]|[0-9a-f]{64})|[.](svg|png)$/.test(e.alt)).map(e => e.src)"""
# an icon without its drawing, and a sign of the icons' font, which the site does not have
INVISIBLE_ICONS = r"""() => [
  ...[...document.querySelectorAll(".fa-solid, .fas, .fab, .far")]
    .filter(e => !getComputedStyle(e).maskImage.startsWith("url")),
  ...[...document.querySelectorAll("a, button, summary")]
    .filter(e => /[\ue000-\uf8ff]/.test(getComputedStyle(e, "::before").content
                                      + getComputedStyle(e, "::after").content))]
  .map(e => e.className)"""
BEFORE_LOAD = """() => performance.getEntriesByType("resource")
  .filter(e => e.startTime < performance.getEntriesByType("navigation")[0].loadEventEnd)
  .map(e => e.name)"""
BROKEN_IMAGES = """async () => {
  const images = [...document.images];
  for (const image of images) image.loading = "eager";
  await Promise.all(images.map(image => image.decode().catch(() => null)));
  return images.filter(image => !image.naturalWidth).map(image => image.src);
}"""
# what a phone lays out only when the reader comes near is looked at too
ALL_LAID_OUT = ".bd-article section { content-visibility: visible !important; }"
TOO_WIDE = """() => document.documentElement.scrollWidth - document.documentElement.clientWidth"""
# text that a box shows only in part, where nothing scrolls
CUT_OFF = """() => [...document.querySelectorAll(
    ".bd-article :is(p, li, .math-scroll, pre, figure, table, .admonition)")]
  .filter(e => {
    if (!e.offsetParent || e.closest(".katex")) return false;
    for (let box = e; box && !box.matches(".bd-article"); box = box.parentElement)
      if (/auto|scroll/.test(getComputedStyle(box).overflowX)) return false;
    return e.getBoundingClientRect().right > document.documentElement.clientWidth + 1;
  }).map(e => e.className + " " + e.textContent.slice(0, 60))"""

# each node's HTML is not read, nor style sheets a second time, which only an experiment of axe does
RUN_AXE = """async (rules) => {
  axe.configure({ noHtml: true });
  const options = { resultTypes: ["violations"], preload: { assets: ["media"] } };
  if (rules) options.runOnly = rules;
  const found = await axe.run(options);
  return found.violations;
}"""
# each live figure that the reader is near stands there, or says that it cannot
BEGUN = """return [...document.querySelectorAll(".attnbook-live")].every((one) => {
  const box = one.getBoundingClientRect(), near = box.top < innerHeight && box.bottom > 0;
  return !near || !one.checkVisibility() || one.dataset.ready
    || one.textContent.includes("could not load");
})"""
COLOURS = ["color-contrast", "link-in-text-block"]  # the rules that another theme can break


def axe_findings(page: Page, rules: list[str] | None = None) -> list[str]:
    """Serious and critical findings of axe on an open page, one line each; of all rules, or some."""
    if page.evaluate("typeof axe") == "undefined":  # a page is checked at several widths
        page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
    violations = page.evaluate(RUN_AXE, rules)
    return [
        f"{finding['id']} ({finding['impact']}): {node['target']} {node['failureSummary']}"
        for finding in violations
        if finding["impact"] in ("serious", "critical")
        for node in finding["nodes"]
    ]


def weight(seen: Visit) -> dict[str, int]:
    """Bytes of each file of a first load, text compressed as the hosts of static pages send it.

    Without figures, and without what a live figure asks for when the page has loaded and rests.
    """
    first = seen.page.evaluate(BEFORE_LOAD)
    return {
        answer.url.removeprefix(seen.address): len(
            gzip.compress(answer.body(), 6)
            if answer.request.resource_type in TEXT
            else answer.body()
        )
        for answer in seen.responses
        if answer.request.resource_type != "image"
        and (answer.url in first or not re.search("^blob:|/_static/(bokeh|live)/", answer.url))
    }


def check_page(page: Page) -> None:
    """Content that does not depend on theme or width."""
    assert page.evaluate(UNSHOWN_MATHS) == []
    assert page.evaluate(UNNAMED_IMAGES) == []
    assert page.evaluate(BROKEN_IMAGES) == []
    assert page.evaluate(INVISIBLE_ICONS) == []
    assert page.locator("h1:visible").count() == 1


@pytest.fixture
def seen(browser: Browser, site: str) -> Iterator[Visit]:
    """A visit in a desk's window, which keeps what the page asks for."""
    assert AXE.is_file(), "axe-core is missing: run npm ci"
    with visiting(browser, site, viewport=WIDTHS["desk"], color_scheme="light") as seen:
        yield seen


def theme(page: Page, name: str) -> None:
    """Light or dark, as the system of the reader has it, once the colours have changed."""
    page.emulate_media(color_scheme=name)
    page.wait_for_function(f"document.documentElement.dataset.theme === '{name}'")
    faded(page)


def to_phone(page: Page) -> None:
    """A phone's window, in which all is laid out."""
    page.set_viewport_size(WIDTHS["phone"])
    page.add_style_tag(content=ALL_LAID_OUT)
    rests(page, "document.documentElement.scrollHeight")


@pytest.mark.parametrize("path", PAGES)
def test_page(seen: Visit, path: str) -> None:
    """No outside request, no complaint, everything shown, named, reachable and inside the page."""
    page = seen.go(path, rest=True)
    assert page.locator("html").get_attribute("data-theme") == "light"
    check_page(page)
    files = weight(seen)
    assert files.pop("/_static/search-index.js", 0) <= INDEX_LIMIT
    assert sum(files.values()) <= WEIGHT_LIMIT, sorted(files.items(), key=lambda item: -item[1])[:8]
    assert axe_findings(page) == []
    to_phone(page)
    assert page.evaluate(TOO_WIDE) <= 0
    assert page.evaluate(CUT_OFF) == []
    assert page.context.cookies() == []


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES)
def test_a_page_in_the_dark_and_on_a_phone(seen: Visit, path: str) -> None:
    """What the test above leaves out: colours on a dark desk, and all rules on a light phone."""
    page = seen.go(path)
    theme(page, "dark")
    check_page(page)
    assert axe_findings(page, COLOURS) == []
    theme(page, "light")
    to_phone(page)
    assert axe_findings(page) == []


def test_every_link_within_the_site_leads_somewhere() -> None:
    """Of pages and decks: the file is there, and in it the place."""
    files = [SITE / path for path in PAGES] + sorted((SITE / "lectures").glob("*.html"))
    texts = {file.resolve(): file.read_text(encoding="utf-8") for file in files}
    places = {
        file: set(re.findall(r'\s(?:id|name)="([^"]+)"', text)) for file, text in texts.items()
    }
    lost = set()
    for file, text in texts.items():
        for link in re.findall(r'<a [^>]*?href="([^"]*)"', text):
            address = urlsplit(unescape(link))
            if address.scheme or address.netloc:
                continue
            target = (file.parent / unquote(address.path)).resolve() if address.path else file
            anchor = unquote(address.fragment)
            slide = anchor.startswith("/")  # of a deck
            known = slide or not anchor or target not in places or anchor in places[target]
            if not (target.exists() and known):
                lost.add((file.relative_to(SITE.resolve()).as_posix(), link))
    assert sorted(lost) == []


@pytest.mark.parametrize("path", PAGES)
def test_a_page_waits_for_one_style_sheet_and_no_script(path: str) -> None:
    """Each sheet or script before the text is a round trip that a phone waits for.

    No script, style, image or frame has another host's address, and an image says its size, so
    that the text below stays where it is.
    """
    text = (SITE / path).read_text(encoding="utf-8")
    elsewhere = r'src="http|src="//|<link href="http|type="text/css" href="http|@import url\(h'
    assert re.findall(elsewhere, text) == []
    assert len(re.findall(r'<link[^>]*rel="stylesheet"', text)) == 1
    if path != "search.html":
        scripts = re.findall(r"<script [^>]*src=[^>]*>", text)
        assert scripts and [s for s in scripts if "defer" not in s] == []
    images = re.findall(r'<img [^>]*src="[^"]*_images/[^>]*>', text)
    assert [i for i in images if not re.search(r'width="\d+" height="\d+"', i)] == []


def test_the_console_of_firefox_is_silent(firefox: Firefox, site: str) -> None:
    """No error and no warning on any page, though it reads every attribute of a formula.

    A page that complains is loaded once more: Firefox may draw a formula of which only the first
    half has arrived, and finds a child missing. What a page itself has wrong it has wrong twice.
    """

    def complaints(path: str) -> list[str]:
        firefox.log.clear()
        firefox.go(f"{site}/{path}")
        firefox.wait(BEGUN)
        firefox.run(f"await ({FRAMES})()")
        return [line for line in firefox.log if line.startswith(("error", "warn"))]

    firefox.resize(1280, 900)
    said = {path: complaints(path) and complaints(path) for path in PAGES}
    assert {path: lines for path, lines in said.items() if lines} == {}


def test_formulas_have_no_empty_attributes() -> None:
    """KaTeX writes a length that is none, and Firefox complains."""
    assert [p for p in PAGES if 'columnspacing=""' in (SITE / p).read_text(encoding="utf-8")] == []


def test_a_link_into_a_chapter_lands_on_a_phone(open_page: Visit) -> None:
    """Though the sections above were not laid out when it was opened; and nothing jumps after it."""
    open_page.page.set_viewport_size(WIDTHS["phone"])
    top = "document.getElementById('exercises').getBoundingClientRect().top"
    page = open_page.go("chapters/01-kernel-regression.html#exercises")
    skipped = "getComputedStyle(document.getElementById('exercises')).contentVisibility"
    assert page.evaluate(skipped) == "auto"
    assert 0 <= page.evaluate(top) < 200
    page.wait_for_load_state("load")
    for _ in range(10):
        next_frames(page)
        assert 0 <= page.evaluate(top) < 200


def test_the_site_is_built() -> None:
    """Without a site the list of pages is empty, and the other tests here would say nothing."""
    assert out_of_date(ROOT, SITE) is None and PAGES


def test_a_site_older_than_a_source_is_not_tested(tmp_path: Path) -> None:
    """It says which source, and what to do; a build that finds nothing to write is one too."""
    site = tmp_path / "_build" / "html"
    sheet, script = site / "_static" / "book.css", tmp_path / "src" / "attnbook" / "live.js"
    kept = tmp_path / "src" / "__pycache__" / "live.pyc"
    for file in (script, kept):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("", encoding="utf-8")
    assert out_of_date(tmp_path, site) == f"no built site in {site}: run make book"
    sheet.parent.mkdir(parents=True)
    sheet.write_text("", encoding="utf-8")
    for file, time in ((script, 1000), (sheet, 1000), (kept, 2000)):
        os.utime(file, (time, time))
    assert out_of_date(tmp_path, site) is None
    os.utime(script, (1001, 1001))
    said = "src/attnbook/live.js is newer than the built site: run make book"
    assert out_of_date(tmp_path, site) == said
