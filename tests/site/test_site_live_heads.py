"""The live figure of several heads gives Python's numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page
from test_site_live import READ, SET, WORDS
from test_site_live_pages import alone, figure, regression

from attnbook import leave_one_out, nadaraya_watson

VALUE = "(name) => Bokeh.documents.at(-1).get_model_by_name(name).value"
ENDS = "(name) => { const m = Bokeh.documents.at(-1).get_model_by_name(name); return [m.start, m.end]; }"


@pytest.fixture(scope="module")
def heads(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The figure on the screen; every test sets what it reads."""
    with alone(browser, tmp_path_factory.mktemp("heads"), figure("kernel_heads")) as seen:
        yield seen.page
        assert seen.complaints == []


def choose(page: Page, bandwidths: list[float], weights: list[float]) -> None:
    page.evaluate(SET, ["heads", str(len(bandwidths))])
    for i, (h, u) in enumerate(zip(bandwidths, weights, strict=True), start=1):
        page.evaluate(SET, [f"bandwidth{i}", float(np.log10(h))])
        page.evaluate(SET, [f"weight{i}", u])


def left_out(bandwidths: list[float]) -> np.ndarray:
    x, y, _ = regression()
    return np.hstack([leave_one_out(x, y, bandwidth=h) for h in bandwidths])


def best(bandwidths: list[float]) -> np.ndarray:
    _, y, _ = regression()
    return np.linalg.lstsq(left_out(bandwidths), y[:, 0])[0]


def numbers(text: str) -> list[float]:
    return [
        float(number) for number in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", text.replace("−", "-"))
    ]


def weights_of(page: Page, count: int) -> list[float]:
    return [page.evaluate(VALUE, f"weight{i}") for i in range(1, count + 1)]


@pytest.mark.parametrize(
    ("bandwidths", "weights"),
    [([0.02], [1.0]), ([0.12, 100.0], [1.3, -0.4]), ([0.05, 0.5, 3.0], [0.7, -0.25, 2.0])],
)
def test_the_curves_and_the_errors_are_pythons(
    heads: Page, bandwidths: list[float], weights: list[float]
) -> None:
    choose(heads, bandwidths, weights)
    x, y, (grid, _) = regression()
    curves = [nadaraya_watson(grid[:, None], x, y, bandwidth=h)[:, 0] for h in bandwidths]
    on_points = np.hstack([nadaraya_watson(x, x, y, bandwidth=h) for h in bandwidths])
    drawn = heads.evaluate(READ, "curve")
    for i, curve in enumerate(curves, start=1):
        assert_allclose(drawn[f"head{i}"], curve, atol=1e-10)
    assert_allclose(drawn["estimate"], np.array(weights) @ curves, atol=1e-10)
    errors = [np.mean((y[:, 0] - p @ weights) ** 2) for p in (left_out(bandwidths), on_points)]
    said = numbers(heads.evaluate(WORDS))
    assert_allclose(said[:2], errors, rtol=5e-3)
    assert said[2] == pytest.approx(sum(weights), abs=5e-3)


@pytest.mark.parametrize("bandwidths", [[0.3], [0.12, 100.0], [0.1, 0.4, 100.0], [0.1, 0.12, 0.15]])
def test_the_best_combination_is_least_squares(heads: Page, bandwidths: list[float]) -> None:
    choose(heads, bandwidths, [0.0] * len(bandwidths))
    heads.get_by_role("button", name="best combination").click()
    found = weights_of(heads, len(bandwidths))
    assert_allclose(found, best(bandwidths), rtol=1e-6)
    for i, u in enumerate(found, start=1):
        start, end = heads.evaluate(ENDS, f"weight{i}")
        assert start <= u <= end
    _, y, _ = regression()
    least = np.mean((y[:, 0] - left_out(bandwidths) @ best(bandwidths)) ** 2)
    assert numbers(heads.evaluate(WORDS))[0] == pytest.approx(least, rel=5e-3)


def test_a_weight_out_of_reach_widens_its_slider(heads: Page) -> None:
    bandwidths = [0.2, 0.25, 0.3]
    assert np.max(np.abs(best(bandwidths))) > 2
    choose(heads, bandwidths, [0.0, 0.0, 0.0])
    heads.get_by_role("button", name="best combination").click()
    names = [f"head {i}, coefficient a" for i in (1, 2, 3)]
    shown = [
        heads.get_by_role("slider", name=name).get_attribute("aria-valuetext") for name in names
    ]
    said = [float((text or "nan").replace("−", "-")) for text in shown]
    assert_allclose(said, best(bandwidths), atol=0.00501)


def test_two_heads_with_one_bandwidth_share_the_weight(heads: Page) -> None:
    choose(heads, [0.2, 0.2], [0.0, 1.0])
    heads.get_by_role("button", name="best combination").click()
    assert_allclose(weights_of(heads, 2), best([0.2])[0] / 2, rtol=1e-4)


def test_a_wide_head_is_said_to_be_an_intercept(heads: Page) -> None:
    choose(heads, [0.12, 20.5], [1.0, 0.0])
    assert "Head 2 is so wide that it is the mean of y" in heads.evaluate(WORDS)
    choose(heads, [50.0, 0.1, 100.0], [1.0, 0.0, 0.0])
    assert "Heads 1 and 3 are" in heads.evaluate(WORDS)
    choose(heads, [0.12, 19.5], [1.0, 0.0])
    assert "intercept" not in heads.evaluate(WORDS)


def test_only_the_heads_in_use_have_controls(heads: Page) -> None:
    for count in ("1", "3", "2"):
        heads.get_by_role("combobox", name="heads").select_option(count)
        for kind in ("bandwidth h", "coefficient a"):
            assert heads.get_by_role("slider", name=kind).count() == int(count)


def test_the_keyboard_moves_a_bandwidth(heads: Page) -> None:
    choose(heads, [0.12, 1.0], [1.0, 0.0])
    before = heads.evaluate(READ, "curve")["head1"]
    heads.get_by_role("slider", name="head 1, bandwidth h").press("ArrowRight")
    assert heads.evaluate(VALUE, "bandwidth1") == pytest.approx(np.log10(0.12) + 0.01, abs=6e-3)
    assert heads.evaluate(READ, "curve")["head1"] != before


def test_the_first_state(browser: Browser, tmp_path: Path) -> None:
    with alone(browser, tmp_path, figure("kernel_heads")) as seen:
        text = seen.page.evaluate(WORDS)
        assert weights_of(seen.page, 2) == [1, 0]
        assert seen.page.get_by_role("slider").count() == 4
    _, y, _ = regression()
    expected = np.mean((y - left_out([10**-0.92])) ** 2)
    assert numbers(text)[0] == pytest.approx(expected, rel=5e-3)
    assert "intercept" in text
