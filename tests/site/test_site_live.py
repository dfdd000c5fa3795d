"""The live figure answers, with Python's numbers."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from live_visits import choose, figure, read, tap, text
from numpy.testing import assert_allclose
from playwright.sync_api import Page

from attnbook import datasets, kernels, nadaraya_watson

shown = partial(figure, "kernel_regression")


@pytest.mark.parametrize("name", ["gaussian", "boxcar", "triangular", "epanechnikov"])
@pytest.mark.parametrize("log_h", [-1.5, -0.92, -0.5, 0.3])
@pytest.mark.parametrize("at", [1.234, 0.4, -1.5])
def test_curve_weights_and_text_are_pythons(page: Page, name: str, log_h: float, at: float) -> None:
    """The number of neighbours, too: one over the sum of the squared weights."""
    choose(page, kernel=name, bandwidth=log_h, position=at)
    x, y = datasets.heteroskedastic()
    kernel, h = getattr(kernels, name), 10**log_h
    curve, data, query = (read(page, source) for source in ("curve", "data", "query"))

    estimate = np.array([np.nan if v is None else v for v in curve["estimate"]], dtype=float)
    expected = nadaraya_watson(np.c_[curve["x"]], x, y, kernel=kernel, bandwidth=h)[:, 0]
    assert_allclose(estimate, expected, atol=1e-6)

    expected, weights = nadaraya_watson(
        np.array([[at]]), x, y, kernel=kernel, bandwidth=h, return_weights=True
    )
    assert_allclose(query["y"][0], expected[0, 0], atol=1e-6)
    assert_allclose(data["weight"], weights[0], atol=1e-6)
    said = f"h = {h:#.3g}: at x = {at:.2f} the prediction is {expected[0, 0]:.3f}, an average over "
    assert text(page) == f"{said}about {1 / (weights**2).sum():.1f} points.".replace("-", "−")


def test_a_query_without_neighbour_is_said_to_have_none(page: Page) -> None:
    choose(page, kernel="boxcar", bandwidth=-1.5, position=3.4)
    assert "no neighbour" in text(page)
    assert np.isnan(read(page, "query")["y"][0])


def test_a_slider_says_the_number_that_it_shows(page: Page) -> None:
    bandwidth, query = (page.get_by_role("slider", name=n) for n in ("bandwidth h", "query x"))
    choose(page, bandwidth=-0.92, position=-0.5)
    assert bandwidth.get_attribute("aria-valuetext") == "0.120"
    assert query.get_attribute("aria-valuetext") == "−0.50"
    bandwidth.press("Home")
    assert page.get_by_text("bandwidth h: 0.0100").count() == 1
    assert bandwidth.get_attribute("aria-valuetext") == "0.0100"


def test_a_tap_moves_the_query(page: Page) -> None:
    choose(page, position=-0.5)
    tap(page, 1.25, 0)
    assert read(page, "query")["x"][0] == pytest.approx(1.25, abs=0.02)
