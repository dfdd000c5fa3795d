"""The live figure of self-attention on points gives Python's numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page
from site_visits import next_frames
from test_site_live import READ, SET, WORDS
from test_site_live_pages import LARGE, alone
from test_site_pages import TOO_WIDE, axe_findings

from attnbook import attend, scores
from attnbook.course import live

POINTS = np.array(
    [[1.5, 0.5], [1.1, 1.3], [-1.0, 1.1], [-1.4, 0.6], [0.2, -1.2], [0.7, -0.9], [0.0, 0.0]]
)
LETTERS = "ABCDEFG"
VALUE = "(name) => Bokeh.documents.at(-1).get_model_by_name(name).value"
ON_SCREEN = """([x, y]) => {
  const view = [...Bokeh.index.query((v) => v.model.type === "Figure")][0];
  const box = view.el.getBoundingClientRect();
  return [box.x + view.frame.x_scale.compute(x), box.y + view.frame.y_scale.compute(y)];
}"""


@pytest.fixture(scope="module")
def points(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The figure on the screen; every test sets what it reads."""
    figure = live.self_attention_points(POINTS)
    with alone(browser, tmp_path_factory.mktemp("points"), figure) as seen:
        yield seen.page
        assert seen.complaints == []


def choose(
    page: Page,
    score: str = "gaussian",
    scale: float = 1.0,
    layers: int = 3,
    residual: str = "off",
) -> None:
    """Set the controls, and put every point where it starts."""
    for name, (x, y) in zip(LETTERS, POINTS.tolist(), strict=True):
        move(page, name, x, y)
    for name, value in (("score", score), ("layers", layers), ("residual", residual)):
        page.evaluate(SET, [name, value])
    for name in ("bandwidth", "temperature"):
        page.evaluate(SET, [name, float(np.log10(scale))])


def move(page: Page, name: str, x: float, y: float) -> None:
    for control, value in (("point", name), ("point_x", x), ("point_y", y)):
        page.evaluate(SET, [control, value])


def start(page: Page) -> np.ndarray:
    drawn = page.evaluate(READ, "start")
    return np.c_[drawn["x"], drawn["y"]]


def layers_of(points: np.ndarray, score: str, scale: float, residual: str) -> np.ndarray:
    """The points before the first of 20 layers and after each, by attend."""
    score_of = {
        "gaussian": lambda q, k: scores.gaussian_score(q, k, bandwidth=scale),
        "scaled dot": lambda q, k: scores.scaled_dot(q, k) / scale,
    }[score]
    states = [points]
    for _ in range(20):
        average = attend(states[-1], states[-1], states[-1], score=score_of)
        states.append((states[-1] + average) / 2 if residual == "half" else average)
    return np.array(states)


def spread(states: np.ndarray) -> np.ndarray:
    centred = states - states.mean(axis=1, keepdims=True)
    return np.sqrt(np.mean(np.sum(centred**2, axis=2), axis=1))


@pytest.mark.parametrize("residual", ["off", "half"])
@pytest.mark.parametrize("scale", [0.05, 0.4, 1.7, 10.0])
@pytest.mark.parametrize("score", ["gaussian", "scaled dot"])
def test_every_layer_is_attends(points: Page, score: str, scale: float, residual: str) -> None:
    choose(points, score, scale, 20, residual)
    move(points, "C", -0.3, 1.9)
    moved = POINTS.copy()
    moved[2] = [-0.3, 1.9]
    expected = layers_of(moved, score, scale, residual)
    paths, after = (points.evaluate(READ, name) for name in ("paths", "after"))
    assert_allclose(start(points), moved, atol=0)
    drawn = np.array([paths["xs"], paths["ys"]]).transpose(2, 1, 0)
    assert_allclose(drawn, expected, atol=1e-10)
    assert_allclose(np.c_[after["x"], after["y"]], expected[-1], atol=1e-10)
    shares = spread(expected) / spread(expected)[0]
    assert_allclose(points.evaluate(READ, "spread")["spread"], shares, atol=1e-10)


@pytest.mark.parametrize("layers", [1, 6])
def test_as_many_layers_are_drawn_as_chosen(points: Page, layers: int) -> None:
    choose(points, "gaussian", 0.7, layers, "half")
    expected = layers_of(POINTS, "gaussian", 0.7, "half")
    after = points.evaluate(READ, "after")
    assert_allclose(np.c_[after["x"], after["y"]], expected[layers], atol=1e-10)
    assert [len(way) for way in points.evaluate(READ, "paths")["xs"]] == [layers + 1] * 7
    share = float(spread(expected)[layers] / spread(expected)[0])
    assert points.evaluate(READ, "now") == {"layer": [layers], "spread": [pytest.approx(share)]}
    text = points.evaluate(WORDS)
    assert text.startswith(f"After {layers} layer{'s' * (layers > 1)} the spread is ")
    said = re.search(r"[\d.]+(?= %)", text)
    assert said is not None
    assert float(said[0]) == pytest.approx(100 * share, rel=0.06)


def test_the_text_says_the_spread_before_and_the_collapse_after(points: Page) -> None:
    choose(points, layers=0)
    assert points.evaluate(WORDS).endswith(f"is {spread(POINTS[None])[0]:.2f}.")
    choose(points, scale=10.0, layers=20)
    assert "less than 0.001 %" in points.evaluate(WORDS)
    choose(points, scale=0.05, layers=1)
    assert "100 % of the start" in points.evaluate(WORDS)


def test_points_in_one_place_have_no_spread_to_lose(points: Page) -> None:
    choose(points)
    for name in LETTERS:
        move(points, name, 0.1, 0.7)
    assert points.evaluate(WORDS) == "All points start in one place, and stay there."
    choose(points)


def test_a_drag_moves_the_nearest_point_alone(points: Page) -> None:
    choose(points)
    x, y = points.evaluate(ON_SCREEN, [-1.36, 0.58])
    to = points.evaluate(ON_SCREEN, [0.5, -1.5])
    points.mouse.move(x, y)
    points.mouse.down()
    points.mouse.move(*to, steps=5)
    points.mouse.up()
    expected = POINTS.copy()
    expected[3] = [0.5, -1.5]
    assert_allclose(start(points), expected, atol=0.02)
    assert points.evaluate(VALUE, "point") == "D"
    assert_allclose([points.evaluate(VALUE, f"point_{a}") for a in "xy"], [0.5, -1.5], atol=0.02)
    ring = points.evaluate(READ, "chosen")
    assert_allclose([ring["x"][0], ring["y"][0]], [0.5, -1.5], atol=0.02)


def test_a_drag_beyond_the_plane_stays_in_reach(points: Page) -> None:
    choose(points)
    x, y = points.evaluate(ON_SCREEN, [1.5, 0.5])
    points.mouse.move(x, y)
    points.mouse.down()
    points.mouse.move(x + 500, y, steps=5)
    points.mouse.up()
    assert_allclose(start(points)[0], [2, 0.5], atol=0.02)


def test_a_tap_chooses_the_nearest_point_and_moves_none(points: Page) -> None:
    choose(points)
    points.mouse.click(*points.evaluate(ON_SCREEN, [0.3, -1.5]))
    assert points.evaluate(VALUE, "point") == "E"
    assert [points.evaluate(VALUE, f"point_{axis}") for axis in "xy"] == [0.2, -1.2]
    assert_allclose(start(points), POINTS, atol=0)


def test_the_keyboard_moves_the_chosen_point(points: Page) -> None:
    choose(points)
    points.get_by_role("combobox", name="point").select_option("B")
    assert_allclose(start(points), POINTS, atol=0)
    points.get_by_role("slider", name="point x").press("ArrowRight")
    points.get_by_role("slider", name="point y").press("ArrowLeft")
    expected = POINTS.copy()
    expected[1] += [0.01, -0.01]
    assert_allclose(start(points), expected, atol=1e-9)


def test_a_score_shows_its_own_scale(points: Page) -> None:
    for score, shown, hidden in (
        ("scaled dot", "temperature τ", "bandwidth h"),
        ("gaussian", "bandwidth h", "temperature τ"),
    ):
        points.get_by_role("combobox", name="score").select_option(score)
        assert points.get_by_role("slider", name=shown).count() == 1
        assert points.get_by_role("slider", name=hidden).count() == 0


@pytest.mark.parametrize(("theme", "width"), LARGE)
def test_twelve_points_are_whole(browser: Browser, tmp_path: Path, theme: str, width: Any) -> None:
    figure = live.self_attention_points(np.random.default_rng(0).normal(size=(12, 2)))
    with alone(browser, tmp_path, figure, theme, width) as seen:
        assert seen.page.evaluate(TOO_WIDE) <= 0
        assert axe_findings(seen.page) == []
        assert seen.outside == []
        assert seen.complaints == []


def test_a_finger_moves_a_point_and_not_the_page(browser: Browser, tmp_path: Path) -> None:
    with alone(browser, tmp_path, live.self_attention_points(POINTS), width="phone") as seen:
        page = seen.page
        x, y = page.evaluate(ON_SCREEN, [0.2, -1.2])
        touch = page.context.new_cdp_session(page)
        touch.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
        steps = [{"x": x - 4 * i, "y": y - 12 * i} for i in range(11)]
        for kind, step in zip(["touchStart"] + ["touchMove"] * 10, steps, strict=True):
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [step]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        next_frames(page)
        assert page.evaluate("scrollY") == 0
        assert page.evaluate(VALUE, "point") == "E"
        moved = start(page)
        assert moved[4, 1] > -0.2
        assert_allclose(np.delete(moved, 4, axis=0), np.delete(POINTS, 4, axis=0), atol=0)


def test_bad_input_is_named() -> None:
    for points in (POINTS[:1], POINTS[:, :1], POINTS[0], np.zeros((13, 2))):
        with pytest.raises(ValueError, match=rf"points: got {re.escape(str(points.shape))}, "):
            live.self_attention_points(points)
    for names in ("ABC", "ABCDEFF"):
        with pytest.raises(ValueError, match=f"names: got '{names}', expected 7 different letters"):
            live.self_attention_points(POINTS, names)
