"""Print the whole book into one PDF: title page, contents with page numbers, then every page.

python tools/print_book.py [site [pdf [toc]]]

Each page of the built site is opened in Chromium as on paper, and its text taken out. All texts
become one document, in which links between pages lead to places of the document. It is printed
twice: the first time says on which page everything stands. Chromium gets the site's files alone.
"""

from __future__ import annotations

import base64
import html
import json
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml
from browser import UNFOLD, chromium, opened
from check_environment import ROOT, project_table
from playwright.sync_api import Browser, BrowserContext, Page, Route, ViewportSize
from pypdf import PdfReader

SITE = ROOT / "_build" / "html"
PDF = ROOT / "_build" / "pdf" / "attnbook.pdf"
ADDRESS = "http://book.invalid"  # nobody's; every request to it is answered from the site's folder
PRINTED = f"{ADDRESS}/book.html"
# what A4 leaves between the margins of print.css
PAPER: ViewportSize = {"width": 642, "height": 900}
TAKE_OUT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
# until a few frames more have been drawn
FRAMES = """() => new Promise((done) => {
  const next = (left) => (left ? requestAnimationFrame(() => next(left - 1)) : setTimeout(done));
  next(8);
})"""
FAULTS = r"""() => {
  const raw = (e) => {
    const copy = e.cloneNode(true);
    copy.querySelectorAll("code, pre, .katex").forEach((part) => part.remove());
    return /\$[^$]+\$|\\\(|\\\[|\\[a-z]+\{|\\frac/.test(copy.textContent);
  };
  return [
    ...[...document.images].filter((e) => !e.naturalWidth).map((e) => `no picture: ${e.alt}`),
    ...[...document.querySelectorAll("button, input")].map((e) => `a control on paper: ${e.type}`),
    ...[...document.querySelectorAll('a[href^="#"]')]
      .filter((e) => !document.getElementById(decodeURIComponent(e.hash.slice(1))))
      .map((e) => `a link leads nowhere: ${e.hash || e.outerHTML}`),
    ...[...document.querySelectorAll("p, li, td, dd, h1, h2, h3, .math, .katex-error")]
      .filter(raw).map((e) => `a formula is not set: ${e.textContent}`)];
}"""


class Desk:
    """The browser's desk: it hands out the site's files, and notes what went wrong."""

    def __init__(self, browser: Browser, site: Path) -> None:
        """Open a browser window in which everything looks as on paper."""
        self.site, self.faults, self.book = site, list[str](), ""
        self.context: BrowserContext = browser.new_context(
            viewport=PAPER, device_scale_factor=2, color_scheme="light"
        )
        self.context.route("**/*", self.answer)

    def answer(self, route: Route) -> None:
        """A file of the site, or the book itself; any other request is a fault."""
        url = route.request.url
        file = self.site / unquote(urlsplit(url).path).lstrip("/")
        if url == PRINTED:
            route.fulfill(body=self.book, content_type="text/html; charset=utf-8")
        elif url.startswith(f"{ADDRESS}/") and file.is_file():
            route.fulfill(path=file)
        else:
            self.faults.append(f"asked for {url}")
            route.abort()

    def open(self, url: str) -> Page:
        """A page at rest."""

        def hear(message: Any) -> None:
            if message.type in ("error", "warning"):
                self.faults.append(f"{url}: {message.text}")

        page = self.context.new_page()
        page.on("pageerror", lambda error: self.faults.append(f"{url}: {error}"))
        page.on("console", hear)
        page.emulate_media(media="print")
        page.goto(url)
        page.evaluate("document.fonts.ready")
        return page


def order(toc: dict[str, Any]) -> list[tuple[str, str]]:
    """Every page of the table of contents with the name of its part, in the reader's order."""
    parts = toc.get("parts", [])
    return [(toc["root"], "")] + [(c["file"], p["caption"]) for p in parts for c in p["chapters"]]


def commit_day(root: Path) -> datetime:
    """The day of the newest commit, which is the same for everyone who prints it."""
    command = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return datetime.fromtimestamp(int(done.stdout), UTC) if done.stdout else datetime.now(UTC)


def still(page: Page, address: str) -> None:
    """Put a picture in the place of each live figure, and say where it lives."""
    where = f'at <a href="{address}">{address}</a>' if address else "on the book's site"
    page.evaluate(UNFOLD)
    live = page.locator(":not(.screen-only) > .attnbook-live")
    while live.count():  # each round replaces the first
        figure = page.locator(f"#{live.first.get_attribute('id')}")
        figure.scroll_into_view_if_needed()
        figure.and_(page.locator("[data-ready]")).wait_for(timeout=60_000)
        before, seen = b"", figure.screenshot()
        while seen != before:  # the drawing follows a moment later
            page.evaluate(FRAMES)
            before, seen = seen, figure.screenshot()
        picture = base64.b64encode(seen).decode()
        name = html.escape(figure.get_attribute("aria-label") or "")
        figure.evaluate(
            "(figure, html) => { figure.outerHTML = html; }",
            f'<figure class="still"><img src="data:image/png;base64,{picture}" alt="{name}">'
            f"<figcaption>As it starts; it moves {where}.</figcaption></figure>",
        )


def read_pages(desk: Desk, pages: list[tuple[str, str]], home: str) -> list[dict[str, Any]]:
    """The text of every page, with its title, its sections and the part it belongs to."""
    slugs = {f"{name}.html": name.replace("/", "-") for name, _ in pages}
    texts = []
    for (name, part), slug in zip(pages, slugs.values(), strict=True):
        page = desk.open(f"{ADDRESS}/{name}.html")
        still(page, f"{home}/{name}.html" if home else "")
        wanted = {"slug": slug, "slugs": slugs, "home": home}
        texts.append({"slug": slug, "part": part, **page.evaluate(TAKE_OUT, wanted)})
        page.close()
    return texts


def title_page(texts: list[dict[str, Any]], project: dict[str, Any], day: datetime) -> str:
    """Title, subtitle, the ladder, version, day and licence."""
    home = project.get("urls", {}).get("Book")
    link = f'<br><a href="{home}">{home}</a>' if home else ""
    return f"""<section class="title-page">
      <div class="title">{texts[0]["title"]}</div>
      <div class="subtitle">{texts[0]["subtitle"]}</div>
      {(ROOT / "src/attnbook_course/drawings/ladder.svg").read_text("utf-8")}
      <p>{project["authors"][0]["name"]}<br>Version {project["version"]}, {day.day} {day:%B %Y}<br>
      Text and figures CC BY 4.0, code MIT{link}</p></section>"""


def contents(texts: list[dict[str, Any]]) -> str:
    """Parts, pages and sections, each a link that will show its page number."""
    lines, part = [], ""
    for text in texts:
        if text["part"] != part:
            part = text["part"]
            lines.append(f'<li class="part">{part}</li>')
        entries = "".join(entry(*section) for section in text["sections"])
        lines.append(entry(text["slug"], text["heading"], entries))
    return f'<section class="chapter contents"><h1>Contents</h1><ul>{"".join(lines)}</ul></section>'


def entry(target: str, words: str, below: str = "") -> str:
    """A line of the contents, and the list below it."""
    kind, below = (' class="page"', f"<ul>{below}</ul>") if below else ("", "")
    return f'<li{kind}><a href="#{target}" data-page="000"><span>{words}</span></a>{below}</li>'


def book(texts: list[dict[str, Any]], project: dict[str, Any], day: datetime) -> str:
    """The document that is printed."""
    styles = dict.fromkeys(style for text in texts for style in text["styles"])
    links = "".join(f'<link rel="stylesheet" href="{style}">' for style in styles)
    running = "".join(
        f"#{text['slug']} {{ page: {text['slug']}; }} @page {text['slug']} {{ @top-right {{ "
        f"font: 9pt Georgia, serif; content: {json.dumps(text['title'], ensure_ascii=False)} }}}}\n"
        for text in texts
    )
    bodies = "".join(
        f'<section class="chapter" id="{text["slug"]}">{text["body"]}</section>' for text in texts
    )
    return f"""<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">
      <title>{texts[0]["title"]}</title>{links}<style>{STYLE}{running}</style></head><body>
      <main class="bd-main"><div class="bd-content"><div class="bd-article-container">
      <article class="bd-article">{title_page(texts, project, day)}{contents(texts)}{bodies}
      </article></div></div></main></body></html>"""


def places(pdf: Path) -> dict[str, int]:
    """The page number of everything that a link leads to."""
    reader = PdfReader(pdf)
    return {
        name.lstrip("/"): (reader.get_destination_page_number(destination) or 0) + 1
        for name, destination in reader.named_destinations.items()
    }


def print_twice(desk: Desk, pdf: Path) -> None:
    """Print, fill the page numbers in, and print again."""
    page = desk.open(PRINTED)
    desk.faults += page.evaluate(FAULTS)
    options: dict[str, Any] = {"prefer_css_page_size": True, "print_background": True}
    page.pdf(path=pdf, format="A4", **options)
    numbers = places(pdf)
    page.evaluate(
        """(numbers) => { for (const link of document.querySelectorAll("[data-page]"))
            link.dataset.page = numbers[link.hash.slice(1)]; }""",
        numbers,
    )
    page.pdf(path=pdf, format="A4", tagged=True, outline=True, **options)
    if places(pdf) != numbers:
        desk.faults.append("the page numbers of the contents are not those of the pages")


def set_dates(pdf: Path, day: datetime) -> None:
    """Write the day of the commit over the hour of printing, which has as many letters."""
    stamp = f"(D:{day:%Y%m%d%H%M%S}+00'00')".encode()
    pdf.write_bytes(re.sub(rb"\(D:\d{14}[-+]\d\d'\d\d'\)", stamp, pdf.read_bytes()))


def main(site: Path = SITE, pdf: Path = PDF, toc: Path = ROOT / "_toc.yml") -> int:
    """Print the book; say what is wrong with it, if anything is."""
    project = project_table()
    pages, day = order(yaml.safe_load(toc.read_text(encoding="utf-8"))), commit_day(ROOT)
    if not (program := chromium()):
        print("No Chromium or Chrome is here, which prints. Do: CHROMIUM=/path make pdf")
        return 1
    pdf.parent.mkdir(parents=True, exist_ok=True)
    with opened(program) as browser:
        desk = Desk(browser, site)
        texts = read_pages(desk, pages, project.get("urls", {}).get("Book", "").rstrip("/"))
        desk.book = book(texts, project, day)
        print_twice(desk, pdf)
    set_dates(pdf, day)
    if desk.faults:
        print(*desk.faults, sep="\n", file=sys.stderr)
        return 1
    print(f"{pdf}: {len(PdfReader(pdf).pages)} pages, {pdf.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
