"""The live figure of a query and its keys gives Python's numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page
from scipy.spatial import ConvexHull
from site_visits import next_frames
from test_site_live import READ, SET, WORDS
from test_site_live_pages import KEYS, VALUES, alone, figure
from test_site_live_points import ON_SCREEN

from attnbook import attend, scores
from attnbook.course import live
from attnbook.course.live.query_and_keys import convex_hull


def cosine(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(q, axis=-1)[:, None] * np.linalg.norm(k, axis=-1)
    return np.where(lengths > 0, q @ k.T / np.where(lengths > 0, lengths, 1), 0)


SCORES: dict[str, Callable[..., np.ndarray]] = {
    "gaussian": scores.gaussian_score,
    "dot": scores.dot,
    "scaled dot": scores.scaled_dot,
    "cosine": cosine,
}


@pytest.fixture(scope="module")
def plane(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The figure on the screen; every test sets what it reads."""
    with alone(browser, tmp_path_factory.mktemp("plane"), figure("query_and_keys")) as seen:
        yield seen.page
        assert seen.complaints == []


def choose(page: Page, score: str, temperature: float, query: tuple[float, float]) -> None:
    page.evaluate(SET, ["score", score])
    page.evaluate(SET, ["temperature", float(np.log10(temperature))])
    for axis, value in zip("xy", query, strict=True):
        page.evaluate(SET, [f"query_{axis}", value])


@pytest.mark.parametrize("query", [(0.6, -0.3), (0.0, 0.0), (-2.0, 2.0)])
@pytest.mark.parametrize("temperature", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("score", SCORES)
def test_the_weights_and_the_output_are_attends(
    plane: Page, score: str, temperature: float, query: tuple[float, float]
) -> None:
    choose(plane, score, temperature, query)
    expected, weights = attend(
        np.array([query]), KEYS, VALUES, return_weights=True,
        score=lambda q, k: SCORES[score](q, k) / temperature,
    )  # fmt: skip
    output = plane.evaluate(READ, "output")
    assert_allclose([output["x"][0], output["y"][0]], expected[0], atol=1e-10)
    for name in ("keys", "values"):
        assert_allclose(plane.evaluate(READ, name)["weight"], weights[0], atol=1e-10)

    equations = ConvexHull(VALUES).equations  # normal · point + offset ≤ 0 inside
    assert np.all(equations[:, :2] @ [output["x"][0], output["y"][0]] + equations[:, 2] < 1e-9)

    text = plane.evaluate(WORDS)
    said = [float(number) for number in re.findall(r"-?\d+\.\d+", text.replace("−", "-"))]
    assert_allclose(said[0], np.max(weights), atol=5e-4)
    assert_allclose(said[1:3], expected[0], atol=6e-3)
    assert_allclose(said[3], 1 / np.sum(weights**2), atol=6e-3)
    if np.ptp(weights) < 1e-12:
        assert text.startswith("All scores are equal")
    else:
        assert text.startswith("ABCDEFG"[int(np.argmax(weights))])


def test_a_drag_in_the_left_plane_moves_the_query(plane: Page) -> None:
    choose(plane, "gaussian", 1.0, (0.0, 0.0))
    box = plane.locator(".bk-events").first.bounding_box()
    assert box is not None
    x, y = box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"]
    plane.mouse.move(x, y)
    plane.mouse.down()
    plane.mouse.move(x + 40, y - 60, steps=4)
    plane.mouse.move(x + 80, y - 90, steps=4)
    plane.mouse.up()
    query = plane.evaluate(READ, "query")
    assert query["x"][0] > 0.3 and query["y"][0] > 0.3


def test_a_finger_moves_the_query_and_not_the_page(browser: Browser, tmp_path: Path) -> None:
    with alone(browser, tmp_path, figure("query_and_keys"), width="phone") as seen:
        page = seen.page
        box = page.locator(".bk-events").first.bounding_box()
        assert box is not None
        x, y = page.evaluate(ON_SCREEN, [1, 0.5])  # on the query
        touch = page.context.new_cdp_session(page)
        touch.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
        steps = [{"x": x - 8 * i, "y": y - 12 * i} for i in range(11)]
        for kind, step in zip(["touchStart"] + ["touchMove"] * 10, steps, strict=True):
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [step]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        next_frames(page)
        query = page.evaluate(READ, "query")
        assert page.evaluate("scrollY") == 0
        assert query["x"][0] == pytest.approx(0, abs=0.3)
        assert query["y"][0] == pytest.approx(1.9, abs=0.3)


def test_a_tap_beyond_the_plane_stays_in_reach(plane: Page) -> None:
    choose(plane, "dot", 1.0, (0.0, 0.0))
    plane.locator(".bk-events").first.click(position={"x": 60, "y": 60})
    query = plane.evaluate(READ, "query")
    assert -2 <= query["x"][0] < -1 and 1 < query["y"][0] <= 2


def test_the_keyboard_moves_the_query(plane: Page) -> None:
    choose(plane, "dot", 1.0, (0.0, 0.0))
    for name in ("query x", "query y", "temperature τ"):
        plane.get_by_role("slider", name=name).press("ArrowRight")
    query = plane.evaluate(READ, "query")
    assert_allclose([query["x"][0], query["y"][0]], 0.01, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_hull_is_scipys(seed: int) -> None:
    points = np.random.default_rng(seed).integers(-3, 4, (13, 2)).astype(float)
    ours = np.array(convex_hull(points))
    hull = ConvexHull(points)
    assert {*map(tuple, ours.tolist())} == {*map(tuple, points[hull.vertices].tolist())}
    x, y = ours.T
    assert np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2 == pytest.approx(hull.volume)


def test_values_on_a_line_or_in_a_point_are_drawn_too() -> None:
    assert convex_hull(np.array([[0.0, 0.0], [2.0, 2.0], [1.0, 1.0]])) == [(0, 0), (2, 2)]
    live.query_and_keys(KEYS[:1], VALUES[:1])._repr_html_()


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"keys, values: got \(7, 2\), \(6, 2\)"):
        live.query_and_keys(KEYS, VALUES[:6])
    with pytest.raises(ValueError, match="names: got 3 letters, expected 7"):
        live.query_and_keys(KEYS, VALUES, "ABC")
