"""The live figure of self-attention on points gives Python's numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest
from live_visits import choose, drag, read, tap, text, value
from numpy.testing import assert_allclose
from playwright.sync_api import Page

from attnbook import attend, scores
from attnbook_course import live

POINTS = np.array(
    [[1.5, 0.5], [1.1, 1.3], [-1.0, 1.1], [-1.4, 0.6], [0.2, -1.2], [0.7, -0.9], [0.0, 0.0]]
)


def shown() -> live.LiveFigure:
    return live.self_attention_points(POINTS)


def start(page: Page, points: np.ndarray = POINTS, scale: float = 1.0, **values: object) -> None:
    """Set the controls, and put every point where it starts."""
    for name, (x, y) in zip("ABCDEFG", points.tolist(), strict=True):
        choose(page, point=name, point_x=x, point_y=y)
    scales = dict.fromkeys(("bandwidth", "temperature"), float(np.log10(scale)))
    choose(page, **{"score": "gaussian", "layers": 3, "residual": "off"} | scales | values)


def starts(page: Page) -> np.ndarray:
    drawn = read(page, "start")
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
def test_every_layer_is_attends(page: Page, score: str, scale: float, residual: str) -> None:
    moved = POINTS.copy()
    moved[2] = [-0.3, 1.9]
    start(page, moved, scale, score=score, layers=20, residual=residual)
    expected = layers_of(moved, score, scale, residual)
    paths, after = read(page, "paths"), read(page, "after")
    assert_allclose(starts(page), moved, atol=0)
    drawn = np.array([paths["xs"], paths["ys"]]).transpose(2, 1, 0)
    assert_allclose(drawn, expected, atol=1e-10)
    assert_allclose(np.c_[after["x"], after["y"]], expected[-1], atol=1e-10)
    shares = spread(expected) / spread(expected)[0]
    assert_allclose(read(page, "spread")["spread"], shares, atol=1e-10)


@pytest.mark.parametrize("layers", [1, 6])
def test_as_many_layers_are_drawn_as_chosen(page: Page, layers: int) -> None:
    start(page, scale=0.7, layers=layers, residual="half")
    expected = layers_of(POINTS, "gaussian", 0.7, "half")
    after = read(page, "after")
    assert_allclose(np.c_[after["x"], after["y"]], expected[layers], atol=1e-10)
    assert [len(way) for way in read(page, "paths")["xs"]] == [layers + 1] * 7
    share = float(spread(expected)[layers] / spread(expected)[0])
    assert read(page, "now") == {"layer": [layers], "spread": [pytest.approx(share)]}
    assert text(page).startswith(f"After {layers} layer{'s' * (layers > 1)} the spread is ")
    said = re.search(r"[\d.]+(?= %)", text(page))
    assert said is not None
    assert float(said[0]) == pytest.approx(100 * share, rel=0.06)


def test_the_text_says_the_spread_before_and_the_collapse_after(page: Page) -> None:
    start(page, layers=0)
    assert text(page).endswith(f"is {spread(POINTS[None])[0]:.2f}.")
    start(page, scale=10.0, layers=20)
    assert "less than 0.001 %" in text(page)
    start(page, scale=0.05, layers=1)
    assert "100 % of the start" in text(page)
    start(page, np.tile([0.1, 0.7], (7, 1)))
    assert text(page) == "All points start in one place, and stay there."


@pytest.mark.parametrize(
    ("path", "number", "end"),
    [
        ([(-1.36, 0.58), (0.5, -1.5)], 3, (0.5, -1.5)),
        ([(1.5, 0.5), (9, 0.5)], 0, (2, 0.5)),  # beyond the plane it stays in reach
    ],
)
def test_a_drag_moves_the_nearest_point_alone(
    page: Page, path: list[tuple[float, float]], number: int, end: tuple[float, float]
) -> None:
    start(page)
    drag(page, *path)
    expected = POINTS.copy()
    expected[number] = end
    assert_allclose(starts(page), expected, atol=0.02)
    point, *place = value(page, "point", "point_x", "point_y")
    ring = read(page, "chosen")
    assert point == "ABCDEFG"[number]
    assert_allclose([place, [ring["x"][0], ring["y"][0]]], [end, end], atol=0.02)


def test_a_tap_or_the_menu_chooses_a_point_and_moves_none(page: Page) -> None:
    start(page)
    tap(page, 0.3, -1.5)
    assert value(page, "point", "point_x", "point_y") == ["E", 0.2, -1.2]
    page.get_by_role("combobox", name="point").select_option("B")
    assert value(page, "point", "point_x", "point_y") == ["B", 1.1, 1.3]
    assert_allclose(starts(page), POINTS, atol=0)


@pytest.mark.parametrize("score", ["scaled dot", "gaussian"])
def test_a_score_shows_its_own_scale(page: Page, score: str) -> None:
    page.get_by_role("combobox", name="score").select_option(score)
    for scale, of in (("temperature τ", "scaled dot"), ("bandwidth h", "gaussian")):
        assert page.get_by_role("slider", name=scale).count() == (score == of)
