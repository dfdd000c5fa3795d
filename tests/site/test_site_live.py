"""The live figure answers, with Python's numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page
from site_visits import Visit, visit

from attnbook import datasets, kernels, nadaraya_watson

CHAPTER = "chapters/01-kernel-regression.html"
HOST = "#live-kernel-regression"
PLOTS = "[id$=-plots]"  # the description is in the page too, for paper
SET = """([name, value]) => {
  const model = Bokeh.documents.at(-1).get_model_by_name(name);
  model.value = value;
}"""
READ = """(name) => {
  const source = Bokeh.documents.at(-1).get_model_by_name(name);
  return Object.fromEntries(Object.entries(source.data).map(([key, column]) => [key, [...column]]));
}"""
WORDS = "Bokeh.documents.at(-1).get_model_by_name('words').text"


@pytest.fixture(scope="module")
def figure(browser: Browser, site: str) -> Iterator[Page]:
    """The chapter with its live figure on the screen; every test sets what it reads."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = visit(context, site).go(CHAPTER)
    assert page.evaluate("typeof Bokeh") == "undefined"  # nothing runs before it is wanted
    page.locator(HOST).scroll_into_view_if_needed()
    page.wait_for_selector(f"{HOST}[data-ready=true]")
    yield page
    context.close()


@pytest.mark.parametrize("name", ["gaussian", "boxcar", "triangular", "epanechnikov"])
@pytest.mark.parametrize("log_h", [-1.5, -0.92, 0.3])
def test_the_curve_and_the_weights_are_pythons(figure: Page, name: str, log_h: float) -> None:
    for control, value in (("kernel", name), ("bandwidth", log_h), ("position", 1.234)):
        figure.evaluate(SET, [control, value])
    x, y = datasets.heteroskedastic()
    kernel, h = getattr(kernels, name), 10**log_h
    curve, data, query = (figure.evaluate(READ, source) for source in ("curve", "data", "query"))

    estimate = np.array([np.nan if v is None else v for v in curve["estimate"]], dtype=float)
    expected = nadaraya_watson(np.c_[curve["x"]], x, y, kernel=kernel, bandwidth=h)[:, 0]
    assert_allclose(estimate, expected, atol=1e-6)

    at = np.array([[1.234]])
    expected, weights = nadaraya_watson(at, x, y, kernel=kernel, bandwidth=h, return_weights=True)
    assert_allclose(query["y"][0], expected[0, 0], atol=1e-6)
    assert_allclose(data["weight"], weights[0], atol=1e-6)


@pytest.mark.parametrize(("name", "log_h"), [("gaussian", -0.92), ("boxcar", -0.5)])
def test_the_number_of_neighbours_is_the_weights_own(figure: Page, name: str, log_h: float) -> None:
    """One over the sum of squares: unequal weights count for fewer points, equal ones for all."""
    for control, value in (("kernel", name), ("bandwidth", log_h), ("position", 0.4)):
        figure.evaluate(SET, [control, value])
    x, y = datasets.heteroskedastic()
    _, weights = nadaraya_watson(
        np.array([[0.4]]), x, y, kernel=getattr(kernels, name), bandwidth=10**log_h,
        return_weights=True,
    )  # fmt: skip
    neighbours = 1 / (weights**2).sum()
    assert abs(neighbours - 1 / weights.max()) > 1 or name == "boxcar"
    assert figure.evaluate(WORDS).endswith(f" an average over about {neighbours:.1f} points.")


def test_a_query_without_neighbour_is_said_to_have_none(figure: Page) -> None:
    for control, value in (("kernel", "boxcar"), ("bandwidth", -1.5), ("position", 3.4)):
        figure.evaluate(SET, [control, value])
    words = figure.evaluate(WORDS)
    assert "no neighbour" in words
    assert np.isnan(figure.evaluate(READ, "query")["y"][0])


def test_the_sliders_move_by_keyboard_and_have_names(figure: Page) -> None:
    slider = figure.get_by_role("slider", name="query x")
    before = figure.evaluate(READ, "query")["x"][0]
    slider.press("ArrowRight")
    assert figure.evaluate(READ, "query")["x"][0] > before
    assert figure.get_by_role("slider", name="bandwidth h").count() == 1


def test_a_slider_says_the_number_that_it_shows(figure: Page) -> None:
    bandwidth, query = (figure.get_by_role("slider", name=n) for n in ("bandwidth h", "query x"))
    figure.evaluate(SET, ["bandwidth", -0.92])
    figure.evaluate(SET, ["position", -0.5])
    assert bandwidth.get_attribute("aria-valuetext") == "0.120"
    assert query.get_attribute("aria-valuetext") == "−0.50"
    bandwidth.press("Home")
    assert figure.get_by_text("bandwidth h: 0.0100").count() == 1
    assert bandwidth.get_attribute("aria-valuetext") == "0.0100"
    query.press("ArrowLeft")
    assert query.get_attribute("aria-valuetext") == "−0.51"


def test_a_minus_is_a_minus(figure: Page) -> None:
    for control, value in (("kernel", "gaussian"), ("bandwidth", -0.92), ("position", -1.5)):
        figure.evaluate(SET, [control, value])
    x, y = datasets.heteroskedastic()
    expected = nadaraya_watson(np.array([[-1.5]]), x, y, bandwidth=10**-0.92)[0, 0]
    assert expected < 0
    said = f"h = 0.120: at x = −1.50 the prediction is −{-expected:.3f}, an average over about "
    assert figure.evaluate(WORDS).startswith(said)


def test_a_tap_moves_the_query(figure: Page) -> None:
    figure.evaluate(SET, ["position", -0.5])
    figure.locator(f"{HOST} .bk-events").first.click(position={"x": 400, "y": 150})
    assert figure.evaluate(READ, "query")["x"][0] != -0.5


def test_nothing_goes_wrong_on_the_way(open_page: Visit) -> None:
    page = open_page.go(CHAPTER)
    page.locator(HOST).scroll_into_view_if_needed()
    page.wait_for_selector(f"{HOST}[data-ready=true]")
    assert open_page.outside == []
    assert open_page.complaints == []
