"""The live figure of several heads gives Python's numbers."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from live_visits import FIND, choose, figure, numbers, read, regression, text, value
from numpy.testing import assert_allclose
from playwright.sync_api import Page

from attnbook import leave_one_out, nadaraya_watson

shown = partial(figure, "kernel_heads")


def combine(page: Page, bandwidths: list[float], weights: list[float]) -> None:
    choose(page, heads=str(len(bandwidths)))
    for i, (h, u) in enumerate(zip(bandwidths, weights, strict=True), start=1):
        choose(page, **{f"bandwidth{i}": float(np.log10(h)), f"weight{i}": u})


def left_out(bandwidths: list[float]) -> np.ndarray:
    x, y, _ = regression()
    return np.hstack([leave_one_out(x, y, bandwidth=h) for h in bandwidths])


def best(page: Page, bandwidths: list[float], given: list[float]) -> list[float]:
    """The weights that the button sets."""
    combine(page, bandwidths, given)
    page.get_by_role("button", name="best combination").press("Enter")
    return [value(page, f"weight{i}") for i in range(1, len(given) + 1)]


def test_the_first_state(page: Page) -> None:
    page.reload()
    page.wait_for_selector("[data-ready=true]")
    _, y, _ = regression()
    assert value(page, "weight1", "weight2") == [1, 0]
    expected = np.mean((y - left_out([10**-0.92])) ** 2)
    assert numbers(text(page))[0] == pytest.approx(expected, rel=5e-3)
    assert "intercept" in text(page)


@pytest.mark.parametrize(
    ("bandwidths", "weights"),
    [([0.02], [1.0]), ([0.12, 100.0], [1.3, -0.4]), ([0.05, 0.5, 3.0], [0.7, -0.25, 2.0])],
)
def test_the_curves_and_the_errors_are_pythons(
    page: Page, bandwidths: list[float], weights: list[float]
) -> None:
    combine(page, bandwidths, weights)
    x, y, (grid, _) = regression()
    curves = [nadaraya_watson(grid[:, None], x, y, bandwidth=h)[:, 0] for h in bandwidths]
    on_points = np.hstack([nadaraya_watson(x, x, y, bandwidth=h) for h in bandwidths])
    drawn = read(page, "curve")
    for i, curve in enumerate(curves, start=1):
        assert_allclose(drawn[f"head{i}"], curve, atol=1e-10)
    assert_allclose(drawn["estimate"], np.array(weights) @ curves, atol=1e-10)
    errors = [np.mean((y[:, 0] - p @ weights) ** 2) for p in (left_out(bandwidths), on_points)]
    said = numbers(text(page))
    assert_allclose(said[:2], errors, rtol=5e-3)
    assert said[2] == pytest.approx(sum(weights), abs=5e-3)


@pytest.mark.parametrize(
    "bandwidths",
    [[0.3], [0.12, 100.0], [0.1, 0.4, 100.0], [0.1, 0.12, 0.15], [0.2, 0.25, 0.3]],
)
def test_the_best_combination_is_least_squares(page: Page, bandwidths: list[float]) -> None:
    """Where a weight is out of a slider's reach, that grows, and says it."""
    found = best(page, bandwidths, [0.0] * len(bandwidths))
    _, y, _ = regression()
    expected = np.linalg.lstsq(left_out(bandwidths), y[:, 0])[0]
    assert_allclose(found, expected, rtol=1e-6)
    assert np.max(np.abs(expected)) > 2 or bandwidths != [0.2, 0.25, 0.3]
    for i, u in enumerate(found, start=1):
        start, end = page.evaluate(
            f"(name) => [{FIND}(name).start, {FIND}(name).end]", f"weight{i}"
        )
        assert start <= u <= end
        slider = page.get_by_role("slider", name=f"head {i}, coefficient a")
        said = (slider.get_attribute("aria-valuetext") or "nan").replace("−", "-")
        assert float(said) == pytest.approx(u, abs=0.00501)
    least = np.mean((y[:, 0] - left_out(bandwidths) @ expected) ** 2)
    assert numbers(text(page))[0] == pytest.approx(least, rel=5e-3)


def test_two_heads_with_one_bandwidth_share_the_weight(page: Page) -> None:
    (alone,) = best(page, [0.2], [0.0])
    assert_allclose(best(page, [0.2, 0.2], [0.0, 1.0]), alone / 2, rtol=1e-4)


def test_a_wide_head_is_said_to_be_an_intercept(page: Page) -> None:
    combine(page, [0.12, 20.5], [1.0, 0.0])
    assert "Head 2 is so wide that it is the mean of y" in text(page)
    combine(page, [50.0, 0.1, 100.0], [1.0, 0.0, 0.0])
    assert "Heads 1 and 3 are" in text(page)
    combine(page, [0.12, 19.5], [1.0, 0.0])
    assert "intercept" not in text(page)


def test_only_the_heads_in_use_have_controls(page: Page) -> None:
    for count in ("1", "3", "2"):
        page.get_by_role("combobox", name="heads").select_option(count)
        for kind in ("bandwidth h", "coefficient a"):
            assert page.get_by_role("slider", name=kind).count() == int(count)
