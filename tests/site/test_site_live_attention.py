"""The live figure of attention matrices shows the weights it was given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page
from site_visits import next_frames
from test_site_live import PLOTS, READ, SET, WORDS
from test_site_live_pages import LARGE, alone
from test_site_pages import TOO_WIDE, axe_findings

from attnbook import softmax
from attnbook.course import live

VALUE = "(name) => Bokeh.documents.at(-1).get_model_by_name(name).value"
LABELS = """(axis) => {
  const { down, across } = Bokeh.documents.at(-1).get_model_by_name("update").args;
  return [down, across].map((one) => one.ticker.ticks.map((tick) => one.major_label_overrides.get(tick)));
}"""
CELL = """([x, y]) => {
  const [view] = Bokeh.index.query((v) => v.model.type === "Figure" && v.model.above.length > 0);
  const box = view.el.getBoundingClientRect();
  return [box.x + view.frame.x_scale.compute(x), box.y + view.frame.y_scale.compute(y)];
}"""


def case(
    title: str, rows: str, columns: str, heads: str = "one two", seed: int = 0
) -> live.Attention:
    """Random weights; the tokens are words."""
    m, n = len(rows.split()), len(columns.split())
    logits = 2 * np.random.default_rng(seed).normal(size=(len(heads.split()), m, n))
    weights = dict(zip(heads.split(), softmax(logits), strict=True))
    return live.Attention(title, rows.split(), columns.split(), weights)


def masked() -> live.Attention:
    """Weights whose text is known: a row that reads nothing, and one with a blank."""
    weights = np.array([[0, 0, 0], [0.125, 0.875, 0], [0.054, 0.005, 0.941]])
    return live.Attention(
        "masked", ["a", " ", "z"], ["<b>", "x", "<b>"], {"one": weights, "two": weights}
    )


CASES = [
    case("first", "d r e i z e h n e i n s", "three and ten and one"),
    case("second", "q", "one two three", seed=1),
    masked(),
    case("fourth", " ".join("abcdefghijklmnopqrstu"), "x y", seed=3),
]


def browse(cases: list[live.Attention]) -> live.LiveFigure:
    return live.attention_browser(cases, name="live-matrices", units=("letter", "word"))


@pytest.fixture(scope="module")
def matrices(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The figure on the screen; every test sets what it reads."""
    with alone(browser, tmp_path_factory.mktemp("matrices"), browse(CASES)) as seen:
        yield seen.page
        assert seen.complaints == []


def choose(page: Page, example: int, head: int, row: float) -> None:
    for name, value in (("example", str(example)), ("head", str(head)), ("row", row)):
        page.evaluate(SET, [name, value])


@pytest.mark.parametrize("head", ["one", "two"])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_every_row_is_the_models(matrices: Page, number: int, head: str) -> None:
    chosen = CASES[number]
    weights = np.asarray(chosen.weights[head])
    m, n = weights.shape
    for row in range(m):
        choose(matrices, number, list(chosen.weights).index(head), row + 1)
        bars = matrices.evaluate(READ, "bars")
        assert bars["x"] == list(range(1, n + 1))
        assert_allclose(bars["weight"], weights[row], atol=0.00501)
        frame = matrices.evaluate(READ, "frame")
        assert frame == {"x": [(n + 1) / 2], "y": [row + 1], "width": [n]}
    cells = matrices.evaluate(READ, "cells")
    drawn = np.full((m, n), np.nan)
    drawn[np.array(cells["y"]) - 1, np.array(cells["x"]) - 1] = cells["weight"]
    assert_allclose(drawn, weights, atol=0.00501)


def test_the_axes_carry_the_tokens(matrices: Page) -> None:
    choose(matrices, 0, 0, 1)
    assert matrices.evaluate(LABELS) == [list(CASES[0].rows), list(CASES[0].columns)]
    choose(matrices, 2, 0, 1)
    assert matrices.evaluate(LABELS) == [["a", "␣", "z"], ["<b>", "x", "<b>"]]


def test_the_text_says_what_the_row_reads(matrices: Page) -> None:
    expected = [
        "The letter 'a' (1st of 3) reads nothing.",
        "The letter '␣' (2nd of 3) reads 'x' 0.88, '<b>' (1st) 0.12.",
        "The letter 'z' (3rd of 3) reads '<b>' (3rd) 0.94, '<b>' (1st) 0.05.",
    ]
    for row, text in enumerate(expected, start=1):
        choose(matrices, 2, 0, row)
        assert matrices.evaluate(WORDS) == text
        assert (
            matrices.locator(PLOTS).get_by_text(text).count() == 1
        )  # <b> is shown, and not taken for HTML
    choose(matrices, 3, 0, 21)
    assert matrices.evaluate(WORDS).startswith("The letter 'u' (21st of 21) reads ")
    choose(matrices, 3, 0, 12)
    assert matrices.evaluate(WORDS).startswith("The letter 'l' (12th of 21) reads ")


def test_a_shorter_example_keeps_the_row_in_reach(matrices: Page) -> None:
    choose(matrices, 3, 0, 17)
    matrices.get_by_role("combobox", name="example").select_option("masked")
    assert matrices.evaluate(VALUE, "row") == 3
    assert matrices.evaluate(READ, "frame")["y"] == [3]
    slider = matrices.get_by_role("slider", name="letter, counted from the top")
    assert slider.get_attribute("aria-valuemax") == "3.0"
    matrices.get_by_role("combobox", name="example").select_option("second")
    assert matrices.evaluate(WORDS).startswith("The letter 'q' (1st of 1)")
    assert matrices.get_by_role("slider").count() == 0
    matrices.get_by_role("combobox", name="example").select_option("fourth")
    assert matrices.get_by_role("slider").count() == 1


def test_a_tap_and_a_drag_set_the_row(matrices: Page) -> None:
    choose(matrices, 0, 0, 1)
    next_frames(matrices)
    matrices.mouse.click(*matrices.evaluate(CELL, [2, 7.4]))
    assert matrices.evaluate(VALUE, "row") == 7
    matrices.mouse.move(*matrices.evaluate(CELL, [4, 8.6]))
    matrices.mouse.down()
    matrices.mouse.move(*matrices.evaluate(CELL, [3, 4.2]), steps=5)
    assert matrices.evaluate(VALUE, "row") == 4
    matrices.mouse.move(*matrices.evaluate(CELL, [3, 14]), steps=5)
    matrices.mouse.up()
    assert matrices.evaluate(VALUE, "row") == 12
    assert matrices.evaluate(WORDS).startswith("The letter 's' (12th of 12)")


def test_the_keyboard_moves_the_row_and_chooses_the_head(matrices: Page) -> None:
    choose(matrices, 0, 0, 4)
    matrices.get_by_role("slider", name="letter, counted from the top").press("ArrowRight")
    assert matrices.evaluate(VALUE, "row") == 5
    matrices.get_by_role("combobox", name="head").select_option("two")
    weights = CASES[0].weights["two"][4]
    assert_allclose(matrices.evaluate(READ, "bars")["weight"], weights, atol=0.00501)


def large(n: int, cases: int, heads: str) -> list[live.Attention]:
    """Matrices of 60 rows with long tokens that repeat."""
    columns = " ".join(["seventeen", "thousand"][j % 2] for j in range(n))
    return [case(f"number {i}", "letter " * 60, columns, heads, i) for i in range(cases)]


@pytest.mark.parametrize(("theme", "width"), LARGE)
def test_the_largest_matrix_is_whole(
    browser: Browser, tmp_path: Path, theme: str, width: Any
) -> None:
    with alone(browser, tmp_path, browse(large(40, 2, "one two")), theme, width) as seen:
        (_, top), (_, bottom) = (seen.page.evaluate(CELL, [1, y]) for y in (1, 2))
        assert bottom - top == pytest.approx(11, abs=0.1)  # pixels for a label
        assert seen.page.evaluate(TOO_WIDE) <= 0
        assert axe_findings(seen.page) == []
        assert seen.outside == []
        assert seen.complaints == []


def test_a_finger_taps_a_row_and_scrolls_the_page(browser: Browser, tmp_path: Path) -> None:
    with alone(browser, tmp_path, browse(large(5, 1, "one")), width="phone") as seen:
        page = seen.page
        assert page.get_by_role("combobox").count() == 0  # one head, one example
        touch = page.context.new_cdp_session(page)
        touch.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
        x, y = page.evaluate(CELL, [3, 20])
        for kind, fingers in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})
        next_frames(page)
        assert page.evaluate(VALUE, "row") == 20
        touch.send(
            "Input.synthesizeScrollGesture", {"x": x, "y": y, "yDistance": -150, "speed": 800}
        )
        assert page.evaluate("scrollY") > 100


def test_it_is_light() -> None:
    cases = [case(f"number {i}", "a " * 50, "seventeen " * 10, "one", i) for i in range(16)]
    assert len(browse(cases)._repr_html_().encode()) < 80_000


def test_the_description_can_be_given() -> None:
    figure = live.attention_browser(CASES, name="live-a", description="Heads of a model.")
    assert (figure.name, figure.description) == ("live-a", "Heads of a model.")
    assert "4 examples: a letter a row, a word a column" in browse(CASES).description
    assert "Choose an example and a row" in browse(CASES).description
    assert "on one example: a letter a row" in browse(CASES[:1]).description
    assert "Choose a row" in browse(CASES[:1]).description


def test_bad_input_is_named() -> None:
    w = np.full((2, 4), 0.25)
    with pytest.raises(ValueError, match=r"got \(4, 2\) for head one, expected \(2, 4\)"):
        live.Attention("x", "ab", "cdef", {"one": w.T})
    with pytest.raises(ValueError, match=r"rows, columns: got \(0, 4\) tokens"):
        live.Attention("x", "", "cdef", {"one": w[:0]})
    with pytest.raises(ValueError, match="weights: got no head"):
        live.Attention("x", "ab", "cdef", {})
    for wrong in (2 * w, w - 0.5, np.nan * w, np.array([[1.5, -0.5, 0, 0]] * 2)):
        with pytest.raises(ValueError, match="rows of head two that are no weights"):
            live.Attention("x", "ab", "cdef", {"one": w, "two": wrong})
    with pytest.raises(ValueError, match="cases: got none"):
        browse([])
    good, other = (live.Attention("x", "ab", "cdef", {head: w}) for head in ("one", "two"))
    with pytest.raises(ValueError, match=r"cases: got heads \['two'\], expected \['one'\]"):
        browse([good, other])
    with pytest.raises(FrozenInstanceError):
        good.title = "y"  # type: ignore[misc]
