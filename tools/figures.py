"""All drawings and still figures of the built site as SVG and PDF, in one archive with an index.

python tools/figures.py                   _build/html → _build/figures/attnbook-figures.zip
python tools/figures.py SITE ZIP          of another site

Numbers and captions are the site's own. A drawing gets the colours that read on white and on black
instead of the page's; the PDFs are vectors too. Nothing is asked of the network.
"""

import html
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from browser import chromium, opened
from check_environment import ROOT, project_table
from playwright.sync_api import Browser
from print_book import commit_day, set_dates
from release import write_zip

from attnbook_course.drawings.canvas import COLOURS

SITE = ROOT / "_build" / "html"
ARCHIVE = ROOT / "_build" / "figures" / "attnbook-figures.zip"
PAINT = re.compile(r"var\(--drawing-(\w+)(?:, #\w+)?\)")
READ = r"""text => {
  const page = new DOMParser().parseFromString(text, "text/html");
  const words = (element) => {
    const copy = element.cloneNode(true);
    copy.querySelectorAll(".headerlink, .katex-mathml").forEach((part) => part.remove());
    return copy.textContent.replace(/\s+/g, " ").trim();
  };
  const heading = page.querySelector("h1");
  return [...page.querySelectorAll(".bd-article figure[id]")].map((figure) => {
    const drawing = figure.querySelector("svg[data-drawing]");
    const image = figure.querySelector('img[src*=".svg"]');
    const number = figure.querySelector(".caption-number");
    const caption = figure.querySelector(".caption-text") ?? figure.querySelector("figcaption");
    return {
      name: figure.id,
      chapter: words(heading),
      number: number ? words(number) : "",
      caption: caption ? words(caption) : "",
      alt: (drawing?.getAttribute("aria-label") ?? image?.alt) || "",
      svg: drawing ? new XMLSerializer().serializeToString(drawing) : "",
      source: image?.getAttribute("src").split("?")[0] ?? "",
    };
  });
}"""
SIZE = """() => {
  const { width, height } = document.querySelector("svg").getBoundingClientRect();
  return [Math.ceil(width), Math.ceil(height)];
}"""


@dataclass(frozen=True)
class Figure:
    """One figure of a page."""

    name: str
    chapter: str
    number: str
    caption: str
    alt: str
    svg: str

    @property
    def file(self) -> str:
        """Its file's name without an ending, such as figure-1-02-fig-data."""
        digits = re.findall(r"\d+", self.number)
        places = [digits[0], *(f"{int(d):02d}" for d in digits[1:])] if digits else []
        return "-".join(["figure", *places, self.name.removeprefix("fig-")])


def read(browser: Browser, site: Path, pages: Sequence[Path]) -> list[Figure]:
    """The figures of some pages that are vectors, in the pages' order."""
    desk = browser.new_page()
    found = []
    for file in pages:
        for entry in desk.evaluate(READ, file.read_text(encoding="utf-8")):
            source = file.parent / entry.pop("source")
            if source.suffix == ".svg":
                entry["svg"] = source.resolve().read_text(encoding="utf-8")
            if entry["svg"]:
                svg = PAINT.sub(lambda role: COLOURS[role[1]], entry.pop("svg"))
                found.append(Figure(svg=svg, **entry))
    desk.close()
    return found


def print_pdf(browser: Browser, figure: Figure, pdf: Path) -> None:
    """One page of a figure's size."""
    sheet = browser.new_page()
    drawing = figure.svg[figure.svg.index("<svg") :]
    style = "<style>* { margin: 0 } svg { display: block; max-width: none !important }</style>"
    sheet.set_content(f"<!doctype html><title>{html.escape(figure.number)}</title>{style}{drawing}")
    width, height = sheet.evaluate(SIZE)
    sheet.pdf(path=pdf, width=f"{width}px", height=f"{height + 1}px", print_background=True)
    sheet.close()


def index(figures: Sequence[Figure]) -> str:
    """A page that shows all figures with their captions, and says how to use them."""
    project = project_table()
    home = project.get("urls", {}).get("Book", "")
    cite = (
        f"{project['authors'][0]['name']}, <i>From Kernel Regression to the Transformer</i>, "
        f"version {project['version']}, figure 1.1" + (f", {home}" if home else "")
    )
    parts, chapter = [], ""
    for figure in figures:
        if figure.chapter != chapter:
            chapter = figure.chapter
            parts.append(f"<h2>{html.escape(chapter)}</h2>")
        parts.append(
            f'<figure><img src="svg/{figure.file}.svg" alt="{html.escape(figure.alt)}">'
            f"<figcaption><b>{html.escape(figure.number)}</b> {html.escape(figure.caption)}<br>"
            f'<a href="svg/{figure.file}.svg">SVG</a> <a href="pdf/{figure.file}.pdf">PDF</a>'
            "</figcaption></figure>"
        )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        "<title>Figures of From Kernel Regression to the Transformer</title>"
        "<style>body { max-width: 45em; margin: 2em auto; padding: 0 1em; font: 1em/1.5 serif }"
        "img { max-width: 100%; height: auto } figure { margin: 2em 0 }</style>"
        "<h1>Drawings and figures</h1><p>Each figure is here as SVG and as PDF, for slides and "
        "handouts. You may use and change them under "
        '<a href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</a> if you say whose '
        f"they are and what you changed. To cite one: {cite}.</p>" + "".join(parts) + "</html>"
    )


def pack(browser: Browser, site: Path, archive: Path, pages: Sequence[Path]) -> list[Figure]:
    """Write the archive; the figures in it."""
    figures, day = read(browser, site, pages), commit_day(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for kind in ("svg", "pdf"):
            (root / kind).mkdir()
        (root / "index.html").write_text(index(figures), encoding="utf-8")
        shutil.copy(ROOT / "LICENSE-CONTENT", root)
        for figure in figures:
            (root / "svg" / f"{figure.file}.svg").write_text(figure.svg, encoding="utf-8")
            pdf = root / "pdf" / f"{figure.file}.pdf"
            print_pdf(browser, figure, pdf)
            set_dates(pdf, day)
        files = [(f"{archive.stem}/{p.relative_to(root).as_posix()}", p) for p in root.rglob("*.*")]
        files.append((f"{archive.stem}/LICENSE-CONTENT", root / "LICENSE-CONTENT"))
        archive.parent.mkdir(parents=True, exist_ok=True)
        write_zip(archive, files, int(day.timestamp()))
    return figures


def main(words: Sequence[str]) -> int:
    """The command; returns its exit status."""
    site, archive = map(Path, words or (SITE, ARCHIVE))
    pages = sorted(site.glob("*.html")) + sorted(site.glob("chapters/*.html"))
    pages += sorted(site.glob("appendices/*.html"))
    program = chromium()
    if program is None or not pages:
        print("figures need a Chromium, and the site: run make book", file=sys.stderr)
        return 1
    with opened(program) as browser:
        figures = pack(browser, site, archive, pages)
    print(f"{archive}: {len(figures)} figures, {archive.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
