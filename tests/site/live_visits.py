"""A live figure alone on a page: its controls, what it draws and says, and a hand on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import bokeh
import numpy as np
from playwright.sync_api import Browser, Page
from site_visits import WIDTHS, Visit, next_frames, rests, served, visiting

from attnbook import datasets
from attnbook_course import live
from attnbook_course.live import models

BOKEH = Path(bokeh.__file__).parent / "server" / "static" / "js"
THEMES = {"light": ("#ffffff", "#222222"), "dark": ("#121212", "#e0e0e0")}
PAGE = """<!doctype html>
<html lang="en" data-content_root="/" style="color-scheme: {2}">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>A live figure</title><link rel="icon" href="data:,">
<style>
body {{ margin: 16px auto; padding: 0 16px; max-width: 720px; font-family: sans-serif;
       background: {0}; color: {1} }}
</style>
</head>
<body><main><h1>A live figure</h1>{3}</main></body>
</html>"""
PLOTS = "[id$=-plots]"  # the description is in the page too, for paper
FIND = "Bokeh.documents.at(-1).get_model_by_name"
WORDS = f"{FIND}('words').text"
READ = f"""(name) => Object.fromEntries(
  Object.entries({FIND}(name).data).map(([key, column]) => [key, [...column]]))"""
# the tokens at a matrix's columns and rows
LABELS = f"""() => {{
  const {{ across, down }} = {FIND}("update").args;
  return [across, down].map((one) => one.ticker.ticks.map((tick) => one.major_label_overrides.get(tick)));
}}"""
# every element within one, and within every shadow root of it
DEEP = """(host) => {
  const found = [];
  const look = (node) => {
    for (const one of node.querySelectorAll("*")) { found.push(one); if (one.shadowRoot) look(one.shadowRoot); }
  };
  look(host);
  return found;
}"""
# where a place of a plot is on the screen; the plots are counted from above
PLACE = """([x, y, plot]) => {
  const views = [...Bokeh.index.query((v) => v.model.type === "Figure")];
  views.sort((a, b) => a.el.getBoundingClientRect().y - b.el.getBoundingClientRect().y);
  const { el, frame } = views[plot], box = el.getBoundingClientRect();
  return [box.x + frame.x_scale.compute(x), box.y + frame.y_scale.compute(y)];
}"""
KEYS = np.array(
    [[1.5, 0.5], [0.4, 1.3], [-1.0, 1.1], [-1.4, -0.6], [0.2, -1.2], [0.7, 0.4], [0, 0]]
)
VALUES = np.array([[0, 0], [1, 2.5], [3, 3], [4, 1], [2.5, -1], [2, 1], [1, 0.5]])


def regression() -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Data and truth, the truth over a grid that is not the data's."""
    grid = np.linspace(-3, 3, 61)
    return *datasets.heteroskedastic(), (grid, datasets.curve(grid))


def matrices(
    title: str, rows: list[str], columns: list[str], heads: int, seed: int = 0
) -> live.Attention:
    """Weights of as many heads as a trained model has, by the names that chapter 6 gives them."""
    rng = np.random.default_rng(seed)
    weights = {
        f"layer {h // 4 + 1}, head {h % 4 + 1}": rng.dirichlet(np.ones(len(columns)), len(rows))
        for h in range(heads)
    }
    return live.Attention(title, rows, columns, weights)


def browse(rows: list[str], columns: list[str], heads: int) -> live.LiveFigure:
    cases = [matrices(f"number {seed}", rows, columns, heads, seed) for seed in (0, 1)]
    return live.attention_browser(cases, name="live-matrices")


def stream() -> live.LiveFigure:
    """Two examples of 24 tokens, ten records and the width 64."""
    steps = ["embedding", *(f"{part} {b}" for b in range(1, 5) for part in ("attention", "MLP"))]
    labels, tokens = [*steps, "last norm"], ["seventeen", "one", "a"] * 8
    said = [[("47", 0.33)] * 24] * 10
    states = np.cumsum(np.random.default_rng(0).normal(size=(2, 10, 24, 64)), axis=1)
    cases = [live.Stream(f"number {i}", tokens, labels, x, said) for i, x in enumerate(states)]
    return live.residual_stream(cases, name="live-stream")


LETTERS = list("neunhundertviertausenddreihundertfünfundzwanzig")
TOKENS = [str(t) for t in np.random.default_rng(0).integers(10, 60, 36)]
# of the sizes that the chapters' have, or of the largest that there may be
FIGURES: dict[str, Callable[[], live.LiveFigure]] = {
    "kernel_regression": partial(live.kernel_regression, *regression()),
    "kernel_heads": partial(live.kernel_heads, *regression()),
    "bandwidth_descent": partial(live.bandwidth_descent, *regression()),
    "query_and_keys": partial(live.query_and_keys, KEYS, VALUES),
    "attention_browser": partial(browse, LETTERS, ["thousand"] * 9, 4),
    "self_attention_points": lambda: live.self_attention_points(
        np.random.default_rng(0).normal(size=(12, 2))
    ),
    "attention_browser square": partial(browse, TOKENS, TOKENS, 8),
    "attention_browser large": partial(browse, ["letter"] * 60, ["seventeen", "thousand"] * 20, 2),
    "residual_stream": stream,
    "translation_attention": lambda: live.translation_attention(
        [matrices("904,325", LETTERS, ["thousand"] * 9, 4)],
        name="live-translation",
        model="translator",
        source_vocabulary=datasets.number_words().source_vocabulary,
        target_vocabulary=datasets.number_words().target_vocabulary,
    ),
    "in_context_regression": partial(
        live.in_context_regression, np.linspace(-1, 1, 5), np.ones(5), model="regressor"
    ),
    "regressor_training": live.regressor_training,
    "model_heads": partial(live.model_heads, "smollm2"),
    "ask_model": partial(live.ask_model, "smollm2", next_tokens=[(" down", 0.5)]),
    "estimators": live.estimators,
    "parts": live.parts,
    "ring": live.ring,
    "planner": live.planner,
    "text_writer": partial(
        live.text_writer, "The mean of", model="absent", next_tokens=[(" the", 0.5)]
    ),
}


@cache
def figure(name: str) -> live.LiveFigure:
    return FIGURES[name]()


def html_page(shown: live.LiveFigure, theme: str = "light") -> str:
    """A page with a figure and nothing else."""
    return PAGE.format(*THEMES[theme], theme, shown._repr_html_())


def lay_ground(folder: Path, prepare: Callable[[Path], None] | None = None) -> None:
    """What a page of the site finds in its folder: Bokeh's scripts, and the package's models.

    Or others, that ``prepare`` puts there.
    """
    (folder / "_static").mkdir(parents=True)
    (folder / "_static" / "bokeh").symlink_to(BOKEH)
    if prepare:
        prepare(folder)
    else:
        (folder / "_static" / "models").symlink_to(models.FOLDER)


def lay_out(
    folder: Path,
    shown: live.LiveFigure,
    theme: str = "light",
    prepare: Callable[[Path], None] | None = None,
    in_notebook: bool = False,
) -> None:
    """A page with a figure and nothing else."""
    lay_ground(folder, prepare)
    page = html_page(shown, theme)
    if in_notebook:  # which takes Bokeh's scripts from elsewhere, and says nothing of a site
        page = page.replace(' data-content_root="/"', "")
        page = page.replace("https://cdn.bokeh.org/bokeh/release/", "/_static/bokeh/")
        page = page.replace("${file}-${version}.min.js", "${file}.min.js")
    (folder / "index.html").write_text(page, encoding="utf-8")


@contextmanager
def alone(
    browser: Browser,
    folder: Path,
    shown: live.LiveFigure,
    theme: str = "light",
    width: str = "desk",
    prepare: Callable[[Path], None] | None = None,
    in_notebook: bool = False,
) -> Iterator[Visit]:
    """A visit to a page with a figure and nothing else."""
    lay_out(folder, shown, theme, prepare, in_notebook)
    with served(folder) as address, visiting(browser, address, viewport=WIDTHS[width]) as seen:
        seen.go("index.html").wait_for_selector(f"#{shown.name}[data-ready=true]")
        yield seen


def choose(page: Page, **values: Any) -> None:
    """Set controls, one after the other."""
    for pair in values.items():
        page.evaluate(f"([name, value]) => {{ {FIND}(name).value = value; }}", list(pair))


def value(page: Page, *names: str) -> Any:
    """What a control is set to, or a list of what several are."""
    found = [page.evaluate(f"(name) => {FIND}(name).value", name) for name in names]
    return found if len(names) > 1 else found[0]


def read(page: Page, name: str) -> dict[str, Any]:
    """The columns of what is drawn."""
    found: dict[str, Any] = page.evaluate(READ, name)
    return found


def matrix(
    page: Page, name: str, shape: tuple[int, ...], column: str = "weight", first: int = 1
) -> np.ndarray:
    """Cells by their rows, which count from ``first``, and columns, with NaN where none is."""
    cells, found = read(page, name), np.full(shape, np.nan)
    found[np.array(cells["y"]) - first, np.array(cells["x"]) - 1] = cells[column]
    return found


def text(page: Page, name: str = "words") -> str:
    """What the figure says."""
    found: str = page.evaluate(f"(name) => {FIND}(name).text", name)
    return found


def says(page: Page, words: str, name: str = "words", how: str = "startsWith") -> None:
    """Wait until a text of the figure starts with the words, includes them or endsWith them."""
    said = f"([name, how, words]) => {FIND}(name).text[how](words)"
    page.wait_for_function(said, arg=[name, how, words])


def models_asked(seen: Visit) -> list[str]:
    """The files of models that a page has asked for."""
    return [url.rpartition("/")[2] for url in seen.requests if "/models/" in url]


def numbers(said: str) -> list[float]:
    """The numbers with a point in a text."""
    return [float(one) for one in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", said.replace("−", "-"))]


def place(page: Page, x: float, y: float, plot: int = 0) -> tuple[float, float]:
    """Where a place of a plot is on the screen, once new labels of an axis have their room."""
    left, top = rests(page, f"({PLACE})([{x}, {y}, {plot}])")
    return left, top


def tap(page: Page, x: float, y: float, plot: int = 0) -> None:
    page.mouse.click(*place(page, x, y, plot))
    next_frames(page)


def drag(page: Page, *path: tuple[float, float], plot: int = 0) -> None:
    """The mouse goes down in a plot, to one place after the other, and up."""
    page.mouse.move(*place(page, *path[0], plot))
    page.mouse.down()
    for x, y in path[1:]:
        page.mouse.move(*place(page, x, y, plot), steps=6)
    page.mouse.up()
    next_frames(page)
