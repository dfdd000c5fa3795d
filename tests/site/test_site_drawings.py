"""Drawings on a page, and the archive of all figures."""

from __future__ import annotations

import io
import re
import sys
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from pypdf import PdfReader
from site_visits import ROOT, new_page, run_tool

from attnbook_course import drawings
from attnbook_course.drawings import rows_of_chapters

sys.path.insert(0, str(ROOT / "_ext"))

import figures
from attnbook_site.drawings import inline, without_code
from docutils import nodes

NAMES = [name for name in drawings.__all__ if name[0].islower() and name != "rung"]
ALL = {name: getattr(drawings, name)() for name in NAMES}
ALL |= {f"rung {n}": drawings.rung(n) for n in range(1, 1 + len(drawings.RUNGS))}
ALL |= {f"steps {n}": drawings.average_in_steps(n) for n in rows_of_chapters.CHAPTERS}
ALL |= {"nine heads": drawings.sentence([(14, head) for head in range(1, 10)])}
ALL |= {"three heads": drawings.sentence([(12, 2), (17, 1), (14, 9)], token=14)}
ALL |= {f"word {k}": drawings.sentence(token=k) for k in range(16)}
STYLE = (ROOT / "_ext/attnbook_site/static/content.css").read_text(encoding="utf-8")
# What touches: labels that overlap, leave the sheet, or that a line crosses.
TOUCHING = """svg => {
  // a line's box is as high as its font likes, 1.15 to 1.4 of the type; its letters take half of that or a little more
  const texts = [...svg.querySelectorAll("text")].map((t) => {
    const { x, y, width, height } = t.getBBox(), ink = Math.min(height, 0.68 * parseFloat(getComputedStyle(t).fontSize));
    const turned = t.transform.baseVal.consolidate()?.matrix ?? svg.createSVGMatrix(), back = turned.inverse();
    const corners = [[x, y], [x + width, y], [x, y + height], [x + width, y + height]].map(([x, y]) => new DOMPoint(x, y).matrixTransform(turned));
    const [xs, ys] = [corners.map((p) => p.x), corners.map((p) => p.y)], [left, top] = [Math.min(...xs), Math.min(...ys)];
    // where the box is for who turns the head with it: words turned alike are then side by side
    const aside = { x: x - back.e, y: y - back.f, width, height };
    return { words: t.textContent, box: { x, y, width, height }, thin: (height - ink) / 2, back, aside, turn: back.b.toFixed(3),
      around: { x: left, y: top, width: Math.max(...xs) - left, height: Math.max(...ys) - top } };
  });
  const sheet = svg.viewBox.baseVal, found = [];
  const inside = (p, { box: b, thin, back }) => {
    const q = new DOMPoint(p.x, p.y).matrixTransform(back);
    return q.x > b.x - 1 && q.x < b.x + b.width + 1 && q.y > b.y + thin && q.y < b.y + b.height - thin;
  };
  texts.forEach(({ words, thin, around: a, aside, turn }, i) => {
    if (a.x < 0 || a.x + a.width > sheet.width || a.y + thin < 2 || a.y + a.height - thin > sheet.height - 2) found.push(`outside: ${words}`);
    for (const other of texts.slice(i + 1)) {
      const [a, b] = turn === other.turn ? [aside, other.aside] : [texts[i].around, other.around], its = other.thin;
      if (a.x < b.x + b.width && b.x < a.x + a.width && a.y + thin < b.y + b.height - its && b.y + its < a.y + a.height - thin)
        found.push(`overlap: ${words}, ${other.words}`);
    }
  });
  for (const path of svg.querySelectorAll("path"))
    for (let s = 0; s <= path.getTotalLength(); s += 1.5) {
      const hit = texts.find((t) => inside(path.getPointAtLength(s), t));
      if (hit) { found.push(`crossed: ${hit.words}`); break; }
    }
  return found;
}"""
FIGURE = """<figure class="align-default" id="fig-{name}">{inside}<figcaption><p>
<span class="caption-number">Figure {number} </span><span class="caption-text">Of {name}.</span>
<a class="headerlink" href="#fig-{name}">#</a></p></figcaption></figure>"""
PLOT = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="300pt" height="150pt"><path d="M0 0h9"/></svg>'
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of one page, with a drawing, a plot, and a picture that is no vector."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "chapters").mkdir()
    (folder / "_images").mkdir()
    (folder / "_images/plot.svg").write_text(PLOT, encoding="utf-8")
    drawing = inline(drawings.cache().svg, "A cache, told.")
    body = "".join(
        FIGURE.format(name=name, number=number, inside=inside)
        for name, number, inside in (
            ("plot", "8.2", '<img alt="A plot." src="../_images/plot.svg?v=1">'),
            ("cache", "8.10", drawing),
            ("photo", "8.11", '<img alt="A photo." src="../_images/photo.png">'),
        )
    )
    text = f'<!doctype html><h1>Three</h1><article class="bd-article">{body}</article>'
    (folder / "chapters/08-three.html").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.slow
def test_the_archive_has_every_figure_twice_and_an_index(site: Path, tmp_path: Path) -> None:
    archives = []
    for run in ("a", "b"):
        path = tmp_path / run / "figures.zip"
        done = run_tool("figures.py", site, path)
        assert done.returncode == 0, done.stderr
        assert "2 figures" in done.stdout
        archives.append(path.read_bytes())
    assert archives[0] == archives[1]
    with zipfile.ZipFile(io.BytesIO(archives[0])) as archive:
        names = {name.removeprefix("figures/") for name in archive.namelist()}
        both = ("figure-8-02-plot", "figure-8-10-cache")
        files = {f"{kind}/{name}.{kind}" for kind in ("svg", "pdf") for name in both}
        assert names == files | {"index.html", "LICENSE-CONTENT"}
        drawing = archive.read("figures/svg/figure-8-10-cache.svg").decode()
        assert "var(" not in drawing
        assert "A cache, told." in drawing
        index = archive.read("figures/index.html").decode()
        for words in ("Figure 8.10</b> Of cache.", "CC BY 4.0", "To cite", "<h2>Three</h2>"):
            assert words in index
        assert set(re.findall(r'(?:src|href)="((?:svg|pdf)[^"]*)"', index)) == files
        for name, (width, height) in zip(both, ((400, 200), (560, None)), strict=True):
            (page,) = PdfReader(io.BytesIO(archive.read(f"figures/pdf/{name}.pdf"))).pages
            assert float(page.mediabox.width) == pytest.approx(0.75 * width, abs=2)
            if height:
                assert float(page.mediabox.height) == pytest.approx(0.75 * height, abs=2)
            else:
                assert "step 4" in page.extract_text()


def test_without_a_site_there_is_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert figures.main([str(tmp_path), str(tmp_path / "figures.zip")]) == 1
    assert "make book" in capsys.readouterr().err


def test_labels_keep_apart(in_fonts: Browser) -> None:
    """In every face that is likely; no line goes through one, none leaves the sheet."""
    page = new_page(in_fonts)
    found = {}
    for name, drawing in ALL.items():
        page.set_content(f'<body style="margin: 0; width: 480px">{drawing.svg}</body>')
        if touching := page.eval_on_selector("svg", TOUCHING):
            found[name] = touching
    page.close()
    assert not found


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb, as WCAG has it."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * p for weight, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(("apart", "found"), [(20, []), (8, ["overlap: before, along"])])
def test_turned_words_touch_only_where_they_are_close(
    blank: Page, apart: int, found: list[str]
) -> None:
    sheet = drawings.Canvas("two", 100, "Two words.")
    for x, word in ((100, "before"), (100 + apart * 1.3, "along")):
        sheet.text(x, 80, word, anchor="start", turn=-50)
    blank.set_content(sheet.drawing().svg)
    assert blank.eval_on_selector("svg", TOUCHING) == found


@pytest.mark.parametrize(("theme", "paper"), [("html {", "#fdfcf9"), ('"dark"] {', "#15181c")])
def test_type_has_enough_contrast_in_both_themes(theme: str, paper: str) -> None:
    block = next(b for b in STYLE.split("}") if "--drawing-ink" in b and theme in b)
    for name, colour in re.findall(r"--drawing-(\w+): (#\w{6})", block):
        light, dark = sorted((luminance(colour), luminance(paper)), reverse=True)
        least = 3 if name == "line" else 4.5
        assert (light + 0.05) / (dark + 0.05) >= least, name


def test_a_picture_that_is_no_drawing_stays_one() -> None:
    assert inline(PLOT, "A plot.") is None
    html = inline(f'<?xml version="1.0"?>\n{drawings.block().svg}', 'A "block" & more.')
    assert html is not None
    assert html.startswith("<svg ")
    assert 'aria-label="A &quot;block&quot; &amp; more."' in html


@pytest.mark.parametrize(
    ("code", "hidden", "left"),
    [
        ("drawings.block()", "input", 1),
        ("drawings.cache(tokens=4, head_dim=4)", "input", 1),
        ("drawings.block()", None, 2),
        ("x = 1\ndrawings.block()", "input", 2),
    ],
)
def test_the_folded_call_of_a_drawing_goes(code: str, hidden: str | None, left: int) -> None:
    image = nodes.image(uri="a.svg")
    source = nodes.container("", nodes.literal_block(code, code), nb_element="cell_code_source")
    output = nodes.container("", nodes.figure("", image), nb_element="cell_code_output")
    cell = nodes.container("", source, output, nb_element="cell_code", hide_mode=hidden)
    without_code(image)
    assert len(cell) == left
    assert cell[-1] is output
