"""Drawings on a page, and the archive of all figures."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import figures
import pytest
from attnbook_site.drawings import inline, without_code
from docutils import nodes
from playwright.sync_api import Browser
from site_visits import ROOT, new_page

from attnbook_course import drawings

ALL = {name: drawings.show(name) for name in drawings.names()}
ALL |= {f"rung {n}": drawings.rung(n) for n in range(1, 1 + len(drawings.RUNGS))}
ALL |= {f"steps {n}": drawings.average_in_steps(n) for n in range(1, 14)}
ALL |= {"average": drawings.weighted_average(), "sentence": drawings.sentence()}
ALL |= {"nine heads": drawings.sentence([(14, head) for head in range(1, 10)])}
# Labels that leave the sheet, or that lie on another. A line's box is higher than its letters.
TOUCHING = """svg => {
  const sheet = svg.getBoundingClientRect(), scale = sheet.width / svg.viewBox.baseVal.width;
  const turned = (t) => t.hasAttribute("transform");
  const texts = [...svg.querySelectorAll("text")].filter((t) => t.textContent.trim()).map((t) => {
    const { left, right, top, bottom } = t.getBoundingClientRect(), thin = turned(t) ? 0 : 4 * scale;
    return { t, left, right, top: top + thin, bottom: bottom - thin };
  });
  const outside = texts.filter((a) => a.left < sheet.left - 2 || a.right > sheet.right + 2
    || a.top < sheet.top - 2 || a.bottom > sheet.bottom + 2).map((a) => `outside: ${a.t.textContent}`);
  const pairs = texts.filter((a) => !turned(a.t)).flatMap((a, i, flat) => flat.slice(i + 1).filter((b) =>
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom).map((b) => [a, b]));
  return [...outside, ...pairs.map(([a, b]) => `overlap: ${a.t.textContent}, ${b.t.textContent}`)];
}"""
PLOT = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="300pt" height="150pt"><path d="M0 0h9"/></svg>'
)
FIGURE = """<figure id="fig-{name}">{inside}<figcaption>
<span class="caption-number">Figure {number} </span><span class="caption-text">Of {name}.</span>
<a class="headerlink" href="#fig-{name}">#</a></figcaption></figure>"""


@pytest.mark.slow
def test_the_archive_has_every_figure_twice_and_an_index(tmp_path: Path) -> None:
    (tmp_path / "plot.svg").write_text(PLOT, encoding="utf-8")
    insides = {
        ("plot", "8.2"): '<img alt="A plot." src="../plot.svg?v=1">',
        ("cache", "8.10"): inline(drawings.show("cache").svg, "A cache, told."),
        ("photo", "8.11"): '<img alt="A photo." src="../photo.png">',
    }
    body = "".join(FIGURE.format(name=n, number=d, inside=i) for (n, d), i in insides.items())
    page = tmp_path / "chapters" / "08-three.html"
    page.parent.mkdir()
    page.write_text(f'<!doctype html><article class="bd-article">{body}</article>', "utf-8")
    assert figures.main(tmp_path, tmp_path / "all.zip") == 2
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        files = {name.removeprefix("all/") for name in archive.namelist() if name[-1] != "/"}
        both = ("figure-8-02-plot", "figure-8-10-cache")
        expected = {f"{kind}/{name}.{kind}" for kind in ("svg", "pdf") for name in both}
        assert files == expected | {"index.html", "LICENSE-CONTENT", "CITATION.cff"}
        drawing = archive.read("all/svg/figure-8-10-cache.svg").decode()
        assert "var(" not in drawing and "A cache, told." in drawing
        index = archive.read("all/index.html").decode()
        assert "Figure 8.10</b> Of cache." in index
        assert {*re.findall(r'(?:src|href)="((?:svg|pdf)/[^"]*)"', index)} == expected


def test_labels_keep_apart_and_on_the_sheet(in_fonts: Browser) -> None:
    page, found = new_page(in_fonts), {}
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


@pytest.mark.parametrize(("theme", "paper"), [("html {", "#fdfcf9"), ('"dark"] {', "#15181c")])
def test_type_has_enough_contrast_in_both_themes(theme: str, paper: str) -> None:
    style = (ROOT / "_ext/attnbook_site/static/content.css").read_text(encoding="utf-8")
    block = next(b for b in style.split("}") if "--drawing-ink" in b and theme in b)
    for name, colour in re.findall(r"--drawing-(\w+): (#\w{6})", block):
        light, dark = sorted((luminance(colour), luminance(paper)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= (3 if name == "line" else 4.5), name


def test_a_drawing_says_the_pages_words_and_another_picture_stays_one() -> None:
    assert inline(PLOT, "A plot.") is None
    html = inline(drawings.show("block").svg, 'A "block" & more.')
    assert html is not None and html.startswith("<svg ") and ", #" not in html
    assert 'aria-label="A &quot;block&quot; &amp; more."' in html


@pytest.mark.parametrize(
    ("code", "hidden", "left"),
    [
        ('drawings.show("block")', "input", 1),
        ('drawings.show("block")', None, 2),
        ("x = 1\ndrawings.rung(1)", "input", 2),
    ],
)
def test_the_folded_call_of_a_drawing_goes(code: str, hidden: str | None, left: int) -> None:
    image = nodes.image(uri="a.svg")
    source = nodes.container("", nodes.literal_block(code, code), nb_element="cell_code_source")
    output = nodes.container("", nodes.figure("", image), nb_element="cell_code_output")
    cell = nodes.container("", source, output, nb_element="cell_code", hide_mode=hidden)
    without_code(image)
    assert len(cell) == left and cell[-1] is output
