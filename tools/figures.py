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
from pathlib import Path

from browser import chromium, opened
from check_environment import ROOT
from playwright.sync_api import Page

from attnbook_course.drawings.canvas import COLOURS

SITE = ROOT / "_build" / "html"
ARCHIVE = ROOT / "_build" / "figures" / "attnbook-figures.zip"
PAINT = re.compile(r"var\(--drawing-(\w+)(?:, #\w+)?\)")
READ = r"""text => {
  const page = new DOMParser().parseFromString(text, "text/html");
  page.querySelectorAll(".headerlink, .katex-mathml").forEach((part) => part.remove());
  const words = (element) => element?.textContent.replace(/\s+/g, " ").trim() ?? "";
  return [...page.querySelectorAll(".bd-article figure[id]")].map((figure) => {
    const drawing = figure.querySelector("svg[data-drawing]");
    const image = figure.querySelector('img[src*=".svg"]');
    return {
      name: figure.id,
      number: words(figure.querySelector(".caption-number")),
      caption: words(figure.querySelector(".caption-text") ?? figure.querySelector("figcaption")),
      alt: (drawing?.getAttribute("aria-label") ?? image?.alt) || "",
      svg: drawing ? new XMLSerializer().serializeToString(drawing) : "",
      source: image?.getAttribute("src").split("?")[0] ?? "",
    };
  });
}"""
STYLE = "<style>* { margin: 0 } svg { display: block; max-width: none !important }</style>"
INDEX = """<!doctype html><html lang="en"><meta charset="utf-8">
<title>Figures of From Kernel Regression to the Transformer</title>
<style>body { max-width: 45em; margin: 2em auto; padding: 0 1em; font: 1em/1.5 serif }
img { max-width: 100%; height: auto } figure { margin: 2em 0 }</style>
<h1>Drawings and figures</h1><p>Each figure is here as SVG and as PDF, for slides and handouts. You
may use and change them under <a href="https://creativecommons.org/licenses/by/4.0/">CC BY 4.0</a>
if you say whose they are and what you changed; CITATION.cff says how to cite the book.</p>
"""


def file_name(figure: dict[str, str]) -> str:
    """A figure's file without an ending, such as figure-1-02-data."""
    digits = re.findall(r"\d+", figure["number"])
    places = [digits[0], *(f"{int(d):02d}" for d in digits[1:])] if digits else []
    return "-".join(["figure", *places, figure["name"].removeprefix("fig-")])


def write(desk: Page, figure: dict[str, str], page: Path, folder: Path) -> str:
    """Write a figure of a page as SVG and PDF; its entry in the index, or none for no vectors."""
    source = page.parent / figure["source"]
    svg = source.read_text(encoding="utf-8") if source.suffix == ".svg" else figure["svg"]
    if not svg:
        return ""
    svg, name = PAINT.sub(lambda role: COLOURS[role[1]], svg), file_name(figure)
    (folder / "svg" / f"{name}.svg").write_text(svg, encoding="utf-8")
    desk.set_content(f"<!doctype html>{STYLE}{svg[svg.index('<svg') :]}")
    size = "(svg) => [svg.clientWidth, svg.clientHeight]"
    width, height = desk.locator("svg").first.evaluate(size)
    pdf = folder / "pdf" / f"{name}.pdf"
    desk.pdf(path=pdf, width=f"{width}px", height=f"{height + 1}px", print_background=True)
    alt, number, caption = (html.escape(figure[key]) for key in ("alt", "number", "caption"))
    return (
        f'<figure><img src="svg/{name}.svg" alt="{alt}"><figcaption><b>{number}</b> {caption}<br>'
        f'<a href="svg/{name}.svg">SVG</a> <a href="pdf/{name}.pdf">PDF</a></figcaption></figure>\n'
    )


def main(site: Path = SITE, archive: Path = ARCHIVE) -> int:
    """Write the archive; how many figures are in it."""
    pages = sorted(site.glob("*.html")) + sorted(site.glob("chapters/*.html"))
    pages += sorted(site.glob("appendices/*.html"))
    found = chromium()
    if found is None or not pages:
        sys.exit("figures need a Chromium, and the site: run make book")
    archive.parent.mkdir(parents=True, exist_ok=True)
    with opened(found) as browser, tempfile.TemporaryDirectory() as root:
        desk, folder, entries = browser.new_page(), Path(root) / archive.stem, []
        for kind in ("svg", "pdf"):
            (folder / kind).mkdir(parents=True)
        for page in pages:
            for figure in desk.evaluate(READ, page.read_text(encoding="utf-8")):
                entries.append(write(desk, figure, page, folder))
        (folder / "index.html").write_text(INDEX + "".join(entries), encoding="utf-8")
        for name in ("LICENSE-CONTENT", "CITATION.cff"):
            shutil.copy(ROOT / name, folder)
        shutil.make_archive(str(archive.with_suffix("")), "zip", root, archive.stem)
    return sum(map(bool, entries))


if __name__ == "__main__":
    given = [Path(word) for word in sys.argv[1:]]
    print(f"{main(*given)} figures")
