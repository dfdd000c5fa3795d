"""A live figure alone on a page: its controls, what it draws and says, and a hand on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import bokeh
import numpy as np
from playwright.sync_api import Browser, CDPSession, Page
from site_visits import WIDTHS, Visit, next_frames, rests, served, visiting

from attnbook import datasets
from attnbook_course import live
from attnbook_course.live import models

BOKEH = Path(bokeh.__file__).parent / "server" / "static" / "js"
PAGE = """<!doctype html>
<html lang="en" data-content_root="/">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>A live figure</title><link rel="icon" href="data:,">
<style>body {{ margin: 16px auto; padding: 0 16px; max-width: {0}; font-family: sans-serif; }}</style>
</head>
<body><main>{1}</main><p style="height: 2000px"></p></body>
</html>"""
FIND = "Bokeh.documents.at(-1).get_model_by_name"
READ = f"""(name) => Object.fromEntries(
  Object.entries({FIND}(name).data).map(([key, column]) => [key, [...column]]))"""
# where a place of a plot is on the screen; the plots are counted from above
PLACE = """([x, y, plot]) => {
  const views = [...Bokeh.index.query((v) => v.model.type === "Figure")];
  views.sort((a, b) => a.el.getBoundingClientRect().y - b.el.getBoundingClientRect().y);
  const { el, frame } = views[plot], box = el.getBoundingClientRect();
  return [box.x + frame.x_scale.compute(x), box.y + frame.y_scale.compute(y)];
}"""


def regression() -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Data and truth, the truth over a grid that is not the data's."""
    grid = np.linspace(-3, 3, 61)
    return *datasets.heteroskedastic(), (grid, datasets.curve(grid))


def browse() -> live.LiveFigure:
    """Two examples as large as chapter 4's, with four heads."""
    rows, rng = list("neunhundertviertausenddreihundert"), np.random.default_rng(0)
    cases = [
        live.Attention(
            f"number {k}",
            rows,
            ["thousand"] * 9,
            {f"head {h}": rng.dirichlet(np.ones(9), len(rows)) for h in range(1, 5)},
        )
        for k in range(2)
    ]
    return live.attention_browser(cases, name="live-matrices", units=("letter", "word"))


def stream() -> live.LiveFigure:
    """24 tokens, nine records and the width 64."""
    labels = ["embedding", *(f"{part} {b}" for b in range(1, 5) for part in ("attention", "MLP"))]
    states = np.cumsum(np.random.default_rng(0).normal(size=(9, 24, 64)), axis=0)
    said = [[("47", 0.33)] * 24] * 9
    return live.residual_stream(live.Stream(["seventeen", "one", "a"] * 8, labels, states, said))


FIGURES: dict[str, Callable[[], live.LiveFigure]] = {
    "kernel_regression": partial(live.kernel_regression, *regression()),
    "bandwidth_descent": partial(live.bandwidth_descent, *regression()),
    "query_and_keys": lambda: live.query_and_keys(*np.random.default_rng(0).normal(size=(2, 7, 2))),
    "attention_browser": browse,
    "self_attention_points": lambda: live.self_attention_points(
        np.random.default_rng(0).normal(size=(12, 2))
    ),
    "residual_stream": stream,
    "text_writer": partial(
        live.text_writer, "The mean of", model="docstrings", next_tokens=[(" the", 0.5)]
    ),
    "ask_model": partial(
        live.ask_model, "smollm2", head=(14, 9), token=" his", next_tokens=[(" Then", 0.2)]
    ),
    "parts": live.parts,
    "ring": live.ring,
}


@cache
def figure(name: str) -> live.LiveFigure:
    return FIGURES[name]()


def lay_out(
    folder: Path,
    shown: live.LiveFigure,
    prepare: Callable[[Path], None] | None = None,
    width: str = "720px",
) -> None:
    """A page with a figure, Bokeh's scripts, and the package's models, or others."""
    (folder / "_static" / "models").mkdir(parents=True)
    (folder / "_static" / "bokeh").symlink_to(BOKEH)
    if prepare:
        prepare(folder / "_static" / "models")
    else:
        for file in models.FOLDER.iterdir():
            (folder / "_static" / "models" / file.name).symlink_to(file)
    (folder / "index.html").write_text(PAGE.format(width, shown._repr_html_()), encoding="utf-8")


@contextmanager
def alone(
    browser: Browser,
    folder: Path,
    shown: live.LiveFigure,
    prepare: Callable[[Path], None] | None = None,
    **options: Any,
) -> Iterator[Visit]:
    """A visit to a page with a figure and nothing else; options are those of the context."""
    lay_out(folder, shown, prepare)
    options = {"viewport": WIDTHS["desk"], **options}
    with served(folder) as address, visiting(browser, address, **options) as seen:
        seen.go("index.html").wait_for_selector(f"#{shown.name}[data-ready=true]")
        yield seen


@dataclass
class Phone:
    """A page on a phone and a finger on it."""

    page: Page
    touch: CDPSession

    def swipe(self, x: float, y: float, dx: float, dy: float) -> None:
        """A finger that goes down, moves and leaves."""
        for i in range(13):
            step = {"x": x + dx * i / 12, "y": y + dy * i / 12}
            kind = "touchMove" if i else "touchStart"
            self.touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [step]})
        self.touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        next_frames(self.page)


def choose(page: Page, **values: Any) -> None:
    """Set controls, one after the other."""
    for pair in values.items():
        page.evaluate(f"([name, value]) => {{ {FIND}(name).value = value; }}", list(pair))


def read(page: Page, name: str) -> dict[str, Any]:
    """The columns of what is drawn."""
    found: dict[str, Any] = page.evaluate(READ, name)
    return found


def text(page: Page, name: str = "words") -> str:
    """What the figure says."""
    found: str = page.evaluate(f"(name) => {FIND}(name).text", name)
    return found


def says(page: Page, words: str, name: str = "words") -> None:
    """Wait until a text of the figure includes the words."""
    said = f"([name, words]) => {FIND}(name).text.includes(words)"
    page.wait_for_function(said, arg=[name, words])


def place(page: Page, x: float, y: float, plot: int = 0) -> tuple[float, float]:
    """Where a place of a plot is on the screen, once new labels of an axis have their room."""
    left, top = rests(page, f"({PLACE})([{x}, {y}, {plot}])")
    return left, top


def drag(page: Page, start: tuple[float, float], end: tuple[float, float], plot: int = 0) -> None:
    """Press at one place of a plot, move and let go at another."""
    first, last = (place(page, *one, plot) for one in (start, end))
    page.mouse.move(*first)
    page.mouse.down()
    page.mouse.move(*last, steps=8)
    page.mouse.up()
    next_frames(page)
