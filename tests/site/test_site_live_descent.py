"""The live figure of gradient descent takes the steps of chapter 2's loop."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from live_visits import alone, choose, figure, numbers, read, regression, text
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page

from attnbook import kernels, leave_one_out, nadaraya_watson
from attnbook_course import live

shown = partial(figure, "bandwidth_descent")


def error_and_slope(theta: float) -> tuple[float, float]:
    """The chapter's function of that name."""
    x, y, _ = regression()
    h = math.exp(theta)
    w = kernels.gaussian(kernels.distance(x, x, h)) * (1 - np.eye(len(x)))
    w = w / w.sum(axis=1, keepdims=True)
    f = w @ y
    df = (w * kernels.distance(x, x, h) ** 2 * (y.T - f)).sum(axis=1, keepdims=True)
    return float(np.mean((y - f) ** 2)), float(np.mean(-2 * (y - f) * df))


def begin(page: Page, start: float, rate: float) -> None:
    """Stand at the start, with nothing that runs."""
    choose(page, start=math.log10(start), rate=math.log10(rate))
    page.get_by_role("button", name="begin again").click()


def step(page: Page, count: int = 1) -> None:
    button = page.get_by_role("button", name="one step")
    for _ in range(count):
        button.press("Enter")


@pytest.mark.parametrize(("start", "rate"), [(1, 1), (2, 0.3), (0.02, 10), (2, 5), (100, 10)])
def test_thirty_steps_are_the_chapters(page: Page, start: float, rate: float) -> None:
    begin(page, start, rate)
    step(page, 30)
    theta, bandwidths, errors = math.log(start), [], []
    for _ in range(31):
        error, slope = error_and_slope(theta)
        bandwidths.append(math.exp(theta))
        errors.append(error)
        theta = theta - rate * slope
    trail = read(page, "trail")
    assert_allclose(np.exp(trail["theta"]), bandwidths, rtol=1e-9)
    assert_allclose(trail["h"], bandwidths, rtol=1e-9)
    assert_allclose(trail["error"], errors, rtol=1e-9)


@pytest.mark.parametrize("start", [0.015, 0.05, 0.106, 0.5, 3.0, 50.0])
def test_the_slope_is_the_quotient_of_differences(page: Page, start: float) -> None:
    begin(page, start, 1)
    x, y, _ = regression()

    def error(theta: float) -> float:
        return float(np.mean((y - leave_one_out(x, y, bandwidth=math.exp(theta))) ** 2))

    theta = math.log(start)
    quotient = (error(theta + 1e-4) - error(theta - 1e-4)) / 2e-4
    (slope,) = read(page, "trail")["slope"]
    assert slope == pytest.approx(quotient, rel=1e-5, abs=1e-9)


def test_the_fit_the_ball_and_the_sentence(page: Page) -> None:
    begin(page, 2, 1)
    step(page, 3)
    trail = {key: column[-1] for key, column in read(page, "trail").items()}
    x, y, (grid, _) = regression()
    fit = nadaraya_watson(grid[:, None], x, y, bandwidth=math.exp(trail["theta"]))[:, 0]
    assert_allclose(read(page, "curve")["estimate"], fit, rtol=1e-9)
    assert read(page, "ball") == {"h": [trail["h"]], "error": [trail["error"]]}
    following = math.exp(trail["theta"] - trail["slope"])
    assert text(page).startswith("Step 3: ")
    assert_allclose(
        numbers(text(page)), [trail["h"], trail["error"], trail["slope"], following], rtol=5e-3
    )


def test_the_curve_is_the_leave_one_out_error(page: Page) -> None:
    valley = read(page, "valley")
    x, y, _ = regression()
    expected = [np.mean((y - leave_one_out(x, y, bandwidth=h)) ** 2) for h in valley["h"]]
    assert_allclose(valley["error"], expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("start", "rate", "count", "said"),
    [
        (100, 1, 2, "The slope is almost zero: all weights are nearly equal."),
        (0.002, 10, 2, "The slope is almost zero: the nearest points have all the weight."),
        (0.106, 1, 1, "This is the floor of the valley."),
        (2, 5, 2, "One step jumped over the valley: the learning rate is too large."),
        (0.5, 10, 1, "One step jumped over the valley: the learning rate is too large."),
    ],
)
def test_it_says_where_the_loop_stands(
    page: Page, start: float, rate: float, count: int, said: str
) -> None:
    begin(page, start, rate)
    step(page, count)
    assert text(page).endswith(said)


def test_a_step_out_of_the_picture_is_drawn_at_its_edge(browser: Browser, tmp_path: Path) -> None:
    """And stays a number, where kernel values underflow to 0: the slope beyond is zero, not NaN."""
    x, y, (grid, curve) = regression()
    steep = live.bandwidth_descent(x, 1.5 * y, (grid, 1.5 * curve), start=0.7, learning_rate=10)
    with alone(browser, tmp_path, steep) as seen:
        step(seen.page, 2)
        trail = read(seen.page, "trail")
    assert np.exp(trail["theta"][-1]) < 1e-5 and 7e-4 < trail["h"][-1] < 1e-3
    assert trail["slope"][-1] == pytest.approx(0, abs=1e-6)


def test_another_start_begins_there(page: Page) -> None:
    begin(page, 2, 0.1)
    step(page)
    choose(page, start=0.5)
    assert read(page, "trail")["theta"] == [pytest.approx(math.log(10**0.5))]
