"""The live figure of a query and its keys gives Python's numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from live_visits import KEYS, VALUES, choose, drag, figure, numbers, read, text
from numpy.testing import assert_allclose
from playwright.sync_api import Page
from scipy.spatial import ConvexHull

from attnbook import attend, scores
from attnbook_course.live.query_and_keys import convex_hull

shown = partial(figure, "query_and_keys")


def cosine(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(q, axis=-1)[:, None] * np.linalg.norm(k, axis=-1)
    return np.where(lengths > 0, q @ k.T / np.where(lengths > 0, lengths, 1), 0)


SCORES: dict[str, Callable[..., np.ndarray]] = {
    "gaussian": scores.gaussian_score,
    "dot": scores.dot,
    "scaled dot": scores.scaled_dot,
    "cosine": cosine,
}


@pytest.mark.parametrize("query", [(0.6, -0.3), (0.0, 0.0), (-2.0, 2.0)])
@pytest.mark.parametrize("temperature", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("score", SCORES)
def test_the_weights_and_the_output_are_attends(
    page: Page, score: str, temperature: float, query: tuple[float, float]
) -> None:
    x, y = query
    choose(page, score=score, temperature=float(np.log10(temperature)), query_x=x, query_y=y)

    def divided(q: np.ndarray, k: np.ndarray) -> np.ndarray:
        return SCORES[score](q, k) / temperature

    queries = np.array([query])
    expected, weights = attend(queries, KEYS, VALUES, score=divided, return_weights=True)
    output = read(page, "output")
    assert_allclose([output["x"][0], output["y"][0]], expected[0], atol=1e-10)
    for name in ("keys", "values"):
        assert_allclose(read(page, name)["weight"], weights[0], atol=1e-10)

    equations = ConvexHull(VALUES).equations  # normal · point + offset ≤ 0 inside
    assert np.all(equations[:, :2] @ [output["x"][0], output["y"][0]] + equations[:, 2] < 1e-9)

    said = numbers(text(page))
    assert_allclose(said[0], np.max(weights), atol=5e-4)
    assert_allclose(said[1:3], expected[0], atol=6e-3)
    assert_allclose(said[3], 1 / np.sum(weights**2), atol=6e-3)
    if np.ptp(weights) < 1e-12:
        assert text(page).startswith("All scores are equal")
    else:
        assert text(page).startswith("ABCDEFG"[int(np.argmax(weights))])


@pytest.mark.parametrize(
    ("path", "end"),
    [
        ([(0, 0), (0.6, 0.5), (1.1, 1.4)], (1.1, 1.4)),
        ([(-1.9, 1.8)], (-1.9, 1.8)),
        ([(0, 0), (-9, 9)], (-2, 2)),
    ],
)
def test_a_tap_or_a_drag_in_the_left_plane_moves_the_query(
    page: Page, path: list[tuple[float, float]], end: tuple[float, float]
) -> None:
    choose(page, score="dot", query_x=0, query_y=0)
    drag(page, *path)
    query = read(page, "query")
    assert_allclose([query["x"][0], query["y"][0]], end, atol=0.03)


@pytest.mark.parametrize("seed", range(5))
def test_the_hull_is_scipys(seed: int) -> None:
    points = np.random.default_rng(seed).integers(-3, 4, (13, 2)).astype(float)
    ours = np.array(convex_hull(points))
    hull = ConvexHull(points)
    assert {*map(tuple, ours.tolist())} == {*map(tuple, points[hull.vertices].tolist())}
    x, y = ours.T
    assert np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2 == pytest.approx(hull.volume)
