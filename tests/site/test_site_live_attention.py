"""The live figure of attention matrices shows the weights it was given."""

from __future__ import annotations

import numpy as np
import pytest
from live_visits import LABELS, PLOTS, choose, drag, matrix, read, tap, text, value
from numpy.testing import assert_allclose
from playwright.sync_api import Page

from attnbook import softmax
from attnbook_course import live


def case(title: str, rows: str, columns: str, seed: int = 0) -> live.Attention:
    """Random weights; the tokens are words."""
    m, n = len(rows.split()), len(columns.split())
    one, two = softmax(2 * np.random.default_rng(seed).normal(size=(2, m, n)))
    return live.Attention(title, rows.split(), columns.split(), {"one": one, "two": two})


# weights whose text is known: a row that reads nothing, and one with a blank
KNOWN = np.array([[0, 0, 0], [0.125, 0.875, 0], [0.054, 0.005, 0.941]])
MASKED = live.Attention(
    "masked", ["a", " ", "z"], ["<b>", "x", "<b>"], {"one": KNOWN, "two": KNOWN}
)
CASES = [
    case("first", "d r e i z e h n e i n s", "three and ten and one"),
    case("second", "q", "one two three", seed=1),
    MASKED,
    case("fourth", " ".join("abcdefghijklmnopqrstu"), "x y", seed=3),
]


def shown() -> live.LiveFigure:
    return live.attention_browser(CASES, name="live-matrices", units=("letter", "word"))


@pytest.mark.parametrize("head", ["one", "two"])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_every_row_is_the_models(page: Page, number: int, head: str) -> None:
    chosen = CASES[number]
    weights = np.asarray(chosen.weights[head])
    m, n = weights.shape
    choose(page, example=str(number), head=str(list(chosen.weights).index(head)))
    for row in range(m):
        choose(page, row=row + 1)
        bars = read(page, "bars")
        assert bars["x"] == list(range(1, n + 1))
        assert_allclose(bars["weight"], weights[row], atol=0.00501)
        assert read(page, "frame") == {"x": [(n + 1) / 2], "y": [row + 1], "width": [n]}
    assert_allclose(matrix(page, "cells", (m, n)), weights, atol=0.00501)
    signs = [[token.replace(" ", "␣") for token in all_] for all_ in (chosen.columns, chosen.rows)]
    assert page.evaluate(LABELS) == signs


@pytest.mark.parametrize(
    ("number", "row", "said"),
    [
        (2, 1, "The letter 'a' (1st of 3) reads nothing."),
        (2, 2, "The letter '␣' (2nd of 3) reads 'x' 0.88, '<b>' (1st) 0.12."),
        (2, 3, "The letter 'z' (3rd of 3) reads '<b>' (3rd) 0.94, '<b>' (1st) 0.05."),
        (3, 21, "The letter 'u' (21st of 21) reads "),
        (3, 12, "The letter 'l' (12th of 21) reads "),
    ],
)
def test_the_text_says_what_the_row_reads(page: Page, number: int, row: int, said: str) -> None:
    choose(page, example=str(number), head="0", row=row)
    assert text(page).startswith(said) and (number == 3 or text(page) == said)
    assert page.locator(PLOTS).get_by_text(said).count() == 1  # <b> is not taken for HTML


def test_a_shorter_example_keeps_the_row_in_reach(page: Page) -> None:
    choose(page, example="3", row=17)
    example, slider = page.get_by_role("combobox", name="example"), page.get_by_role("slider")
    example.select_option("masked")
    assert value(page, "row") == 3
    assert read(page, "frame")["y"] == [3]
    assert slider.get_attribute("aria-valuemax") == "3.0"
    example.select_option("second")
    assert text(page).startswith("The letter 'q' (1st of 1)")
    assert slider.count() == 0
    example.select_option("fourth")
    assert slider.count() == 1


def test_a_tap_and_a_drag_set_the_row(page: Page) -> None:
    choose(page, example="0", row=1)
    tap(page, 2, 7.4, plot=1)
    assert value(page, "row") == 7
    drag(page, (4, 8.6), (3, 4.2), plot=1)
    assert value(page, "row") == 4
    drag(page, (4, 8.6), (3, 4.2), (3, 14), plot=1)
    assert value(page, "row") == 12
    assert text(page).startswith("The letter 's' (12th of 12)")


def test_it_is_light() -> None:
    cases = [case(f"number {i}", "a " * 50, "seventeen " * 10, i) for i in range(16)]
    figure = live.attention_browser(cases, name="live-matrices")
    assert len(figure._repr_html_().encode()) < 80_000
