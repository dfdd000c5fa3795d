"""Drawings on a page, and the archive of all figures."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import figures
import numpy as np
import pytest
from attnbook_site.drawings import inline, without_code
from docutils import nodes
from matplotlib.colors import to_rgb
from playwright.sync_api import Browser
from site_visits import ROOT, new_page

from attnbook_course import drawings

ALL = {name: drawings.show(name) for name in drawings.names()}
ALL |= {f"rung {n}": drawings.rung(n) for n in range(1, 1 + len(drawings.RUNGS))}
ALL |= {f"steps {n}": drawings.average_in_steps(n) for n in range(1, 14)}
ALL |= {"average": drawings.weighted_average(), "sentence": drawings.sentence()}
ALL |= {"nine heads": drawings.sentence([(14, head) for head in range(1, 10)])}
OUTSIDE = """svg => {
  const sheet = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter((text) => {
    const { left, right, top, bottom } = text.getBoundingClientRect();
    return left < sheet.left - 2 || right > sheet.right + 2
      || top < sheet.top - 4 || bottom > sheet.bottom + 4; // a line is higher than its letters
  }).map((text) => text.textContent);
}"""
PLOT = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="300pt" height="150pt"><path d="M0 0h9"/></svg>'
)


@pytest.mark.slow
def test_the_archive_has_every_figure_twice_and_an_index(tmp_path: Path) -> None:
    inside = inline(drawings.show("cache").svg, 'A "cache", told.')
    assert inside is not None and inside.startswith("<svg ") and ", #" not in inside
    assert inline(PLOT, "A plot.") is None
    body = (
        f'<figure id="fig-cache">{inside}<figcaption><span class="caption-number">Figure 8.10'
        '</span><span class="caption-text">Of it.</span></figcaption></figure>'
        '<figure id="fig-plot"><img src="plot.svg?v=1"></figure><figure id="fig-photo"></figure>'
    )
    (tmp_path / "plot.svg").write_text(PLOT, encoding="utf-8")
    (tmp_path / "page.html").write_text(f'<article class="bd-article">{body}</article>', "utf-8")
    assert figures.main(tmp_path, tmp_path / "all.zip") == 2
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        files = {name for name in archive.namelist() if name[-1] != "/"}
        drawing = archive.read("all/svg/figure-8-10-cache.svg").decode()
        index = archive.read("all/index.html").decode()
    linked = {f"all/{path}" for path in re.findall(r'(?:src|href)="((?:svg|pdf)/[^"]*)"', index)}
    assert len(linked) == 4 and files - linked == {
        f"all/{name}" for name in ("index.html", "LICENSE-CONTENT", "CITATION.cff")
    }
    assert "var(" not in drawing and "A &quot;cache&quot;, told." in drawing
    assert "Figure 8.10</b> Of it." in index


def test_labels_stay_on_the_sheet(browser: Browser) -> None:
    page, found = new_page(browser), {}
    for name, drawing in ALL.items():
        page.set_content(f'<body style="margin: 0; width: 480px">{drawing.svg}</body>')
        if outside := page.eval_on_selector("svg", OUTSIDE):
            found[name] = outside
    page.close()
    assert not found


def test_type_has_enough_contrast_in_both_themes() -> None:
    """As WCAG computes it from relative luminances."""
    style = (ROOT / "_ext/attnbook_site/static/content.css").read_text(encoding="utf-8")
    for theme, paper in (("html {", "#fdfcf9"), ('"dark"] {', "#15181c")):
        block = next(b for b in style.split("}") if "--drawing-ink" in b and theme in b)
        colours = dict(re.findall(r"--drawing-(\w+): (#\w{6})", block))
        rgb = np.array([to_rgb(one) for one in (paper, *colours.values())])
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        page, *lights = 0.05 + linear @ [0.2126, 0.7152, 0.0722]
        for name, light in zip(colours, lights, strict=True):
            assert max(light / page, page / light) >= (3 if name == "line" else 4.5), name


@pytest.mark.parametrize(("code", "left"), [('drawings.show("block")', 1), ("x\nrung()", 2)])
def test_the_folded_call_of_a_drawing_goes(code: str, left: int) -> None:
    image = nodes.image(uri="a.svg")
    source = nodes.container("", nodes.literal_block(code, code), nb_element="cell_code_source")
    output = nodes.container("", nodes.figure("", image), nb_element="cell_code_output")
    cell = nodes.container("", source, output, nb_element="cell_code", hide_mode="input")
    without_code(image)
    assert len(cell) == left and cell[-1] is output
