"""Every live figure alone on a page: drawn, named, inside the page, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import bokeh
import numpy as np
import pytest
from playwright.sync_api import Browser
from site_visits import Visit, served, visit
from test_site_pages import AXE, TOO_WIDE, WIDTHS, axe_findings

from attnbook import datasets
from attnbook.course import live
from attnbook.course.live import models

BOKEH = Path(bokeh.__file__).parent / "server" / "static" / "js"
FIGURES = [name for name in live.__all__ if name.islower()]
ROLES = ("slider", "combobox", "button")
THEMES = {"light": ("#ffffff", "#222222"), "dark": ("#121212", "#e0e0e0")}
SMALL = {"width": 360, "height": 740}
slow = pytest.mark.slow
# one look of each kind now, the others in the long run
LOOKS = [
    ("light", "desk"),
    *(
        pytest.param(*look, marks=slow)
        for look in (("light", "phone"), ("dark", "desk"), ("dark", "phone"))
    ),
]
LARGE = [  # the same for what is as large as it may be: the smallest phone says most
    ("light", SMALL),
    *(
        pytest.param(*look, marks=slow)
        for look in (("light", "desk"), ("dark", "desk"), ("dark", SMALL))
    ),
]
PAGE = """<!doctype html>
<html lang="en" data-content_root="/">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>A live figure</title><link rel="icon" href="data:,">
<style>
body {{ margin: 16px auto; padding: 0 16px; max-width: 720px; font-family: sans-serif;
       background: {0}; color: {1} }}
</style>
</head>
<body><main><h1>A live figure</h1>{2}</main></body>
</html>"""


# what the Tab key would stop at without saying what it is, in the page and in every shadow root
TAB_STOPS = """() => {
  const found = [], native = /^(A|BUTTON|INPUT|SELECT|SUMMARY|TEXTAREA)$/;
  const look = (node) => {
    for (const element of node.querySelectorAll("*")) {
      if (element.tabIndex >= 0 && !native.test(element.tagName) && !element.hasAttribute("role"))
        found.push(element.className);
      if (element.shadowRoot) look(element.shadowRoot);
    }
  };
  look(document);
  return found;
}"""
TEXT_SIZES = """() => {
  const sizes = [];
  const look = (node) => {
    for (const element of node.querySelectorAll(".bk-slider-title, .bk-input, .bk-btn, label, .bk-clearfix, strong"))
      sizes.push(parseFloat(getComputedStyle(element).fontSize));
    for (const element of node.querySelectorAll("*")) if (element.shadowRoot) look(element.shadowRoot);
  };
  look(document);
  return sizes;
}"""
KEYS = np.array(
    [[1.5, 0.5], [0.4, 1.3], [-1.0, 1.1], [-1.4, -0.6], [0.2, -1.2], [0.7, 0.4], [0, 0]]
)
VALUES = np.array([[0, 0], [1, 2.5], [3, 3], [4, 1], [2.5, -1], [2, 1], [1, 0.5]])


def regression() -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Data and truth, the truth over a grid that is not the data's."""
    grid = np.linspace(-3, 3, 61)
    return *datasets.heteroskedastic(), (grid, datasets.curve(grid))


def figure(name: str) -> live.LiveFigure:
    """A live figure of the package on the data of these tests."""
    if name == "attention_browser":
        weights = np.full((2, 3), 1 / 3)
        case = live.Attention("even", ["a", "b"], ["x", "y", "z"], {"one": weights, "two": weights})
        return live.attention_browser([case], name="live-matrices")
    if name == "residual_stream":
        states = np.arange(30.0).reshape(2, 3, 5)
        stream = live.Stream("short", ["a", "b", "c"], ["embedding", "attention"], states)
        return live.residual_stream([stream], name="live-stream")
    if name == "model_heads":
        return live.model_heads("smollm2")
    if name == "translation_attention":
        case = live.Attention("1", ["e"], ["one"], {"one": [[1.0]]})
        return live.translation_attention(
            [case], name="live-translation", model="absent",
            source_vocabulary=["one"], target_vocabulary=["e"],
        )  # fmt: skip
    if name == "text_writer":
        return live.text_writer("The mean of", model="absent")
    if name == "in_context_regression":
        return live.in_context_regression(np.linspace(-1, 1, 5), np.ones(5), model="regressor")
    own_data: dict[str, tuple[np.ndarray, ...]] = {"estimators": (), "parts": (), "ring": ()}
    data = {"query_and_keys": (KEYS, VALUES), "self_attention_points": (KEYS,), **own_data}
    return getattr(live, name)(*data.get(name, regression()))


@contextmanager
def alone(
    browser: Browser,
    folder: Path,
    figure: live.LiveFigure,
    theme: str = "light",
    width: str | dict[str, int] = "desk",
    prepare: Callable[[Path], None] | None = None,
    in_notebook: bool = False,
) -> Iterator[Visit]:
    """A visit to a page with a figure and nothing else, Bokeh's scripts served from its package.

    So are the models, unless the folder is prepared with others.
    """
    (folder / "_static").mkdir()
    (folder / "_static" / "bokeh").symlink_to(BOKEH)
    if prepare:
        prepare(folder)
    else:
        (folder / "_static" / "models").symlink_to(models.FOLDER)
    page = PAGE.format(*THEMES[theme], figure._repr_html_())
    if in_notebook:  # which takes Bokeh's scripts from elsewhere, and says nothing of a site
        page = page.replace(' data-content_root="/"', "")
        page = page.replace("https://cdn.bokeh.org/bokeh/release/", "/_static/bokeh/")
        page = page.replace("${file}-${version}.min.js", "${file}.min.js")
    (folder / "index.html").write_text(page, encoding="utf-8")
    context = browser.new_context(viewport=WIDTHS[width] if isinstance(width, str) else width)
    with served(folder) as address:
        seen = visit(context, address)
        seen.go("index.html").wait_for_selector(f"#{figure.name}[data-ready=true]")
        yield seen
    context.close()


@dataclass
class Look:
    """What one visit to a figure found."""

    shown: live.LiveFigure
    too_wide: int
    axe: list[str]
    controls: list[tuple[str, str]]
    tab_stops: list[str]
    words: dict[str, bool]
    groups: int
    sizes: set[float]
    height: float
    outside: list[str]
    complaints: list[str]


@pytest.fixture(scope="module")
def look(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str, str], Look]:
    """A figure by its name, theme and width; each is opened once."""

    @cache
    def look(name: str, theme: str, width: str) -> Look:
        shown = figure(name)
        with alone(browser, tmp_path_factory.mktemp(name), shown, theme, width) as seen:
            page = seen.page
            if name == "in_context_regression":  # it loads its model, and its button goes
                page.wait_for_function("!Bokeh.documents[0].get_model_by_name('load').visible")
            box = page.locator(f"#{shown.name}").bounding_box()
            assert box is not None
            roles = [(r, e) for r in ROLES for e in page.get_by_role(r).all()]
            return Look(
                shown=shown,
                height=box["height"],
                too_wide=page.evaluate(TOO_WIDE),
                axe=axe_findings(page),
                controls=[(role, element.aria_snapshot()) for role, element in roles],
                tab_stops=page.evaluate(TAB_STOPS),
                words={
                    text: page.get_by_text(text, exact=True).is_visible()
                    for text in ("live figure", shown.title)
                },
                groups=page.get_by_role(
                    "group", name=f"{shown.title}. {shown.description}"
                ).count(),
                sizes=set(page.evaluate(TEXT_SIZES)),
                outside=seen.outside,
                complaints=seen.complaints,
            )

    return look


@pytest.mark.parametrize(("theme", "width"), LOOKS)
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_whole(
    look: Callable[[str, str, str], Look], name: str, theme: str, width: str
) -> None:
    assert AXE.is_file(), "axe-core is missing: run npm ci"
    seen = look(name, theme, width)
    assert seen.too_wide <= 0
    assert seen.axe == []
    assert [text for role, text in seen.controls if f'{role} "' not in text] == []
    assert seen.tab_stops == []
    assert seen.outside == []
    assert seen.complaints == []


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_says_what_it_is(look: Callable[[str, str, str], Look], name: str) -> None:
    seen = look(name, "light", "desk")
    assert seen.words == {"live figure": True, seen.shown.title: True}
    assert seen.groups == 1
    assert min(seen.sizes) >= 14, seen.sizes  # pixels, on a desk


@pytest.mark.parametrize("name", FIGURES)
def test_the_room_kept_is_about_what_it_takes(
    look: Callable[[str, str, str], Look], name: str
) -> None:
    seen = look(name, "light", "desk")
    assert abs(seen.height / 16 - seen.shown.min_height) < 10


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_figure_gives_the_same_text(name: str) -> None:
    assert figure(name)._repr_html_() == figure(name)._repr_html_()


def test_a_page_can_hold_all_of_them() -> None:
    names = {figure(name).name for name in FIGURES}
    assert len(names) == len(FIGURES)
