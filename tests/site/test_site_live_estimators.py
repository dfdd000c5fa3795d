"""The live figure of chapter 11 gives Python's weights, negative ones too."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from live_visits import FIND, alone, choose, drag, read, text, value
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page

from attnbook import nadaraya_watson
from attnbook.kernel import gaussian_process
from attnbook.linear_attention import online_regression
from attnbook_course import live

X = np.array([0.3, -0.8, 0.1, 0.35, -0.2, 0.9, 0.3])  # two points in one place
Y = np.array([1.0, -0.5, 0.25, 1.5, -1.25, 0.5, 0.0])
ARRIVALS = {"as given": np.arange(7), "reversed": np.arange(7)[::-1]}
COLUMNS = ("sum", "delta", "passes", "kernel", "posterior")
SHOWN = dict(zip(("sum", "delta", "passes", "Nadaraya–Watson", "posterior"), COLUMNS, strict=True))
VISIBLE = """() => [...Bokeh.index.query((v) => v.model.type === "GlyphRenderer" && v.model.glyph.type === "Line")]
  .filter((v) => v.model.visible).map((v) => v.model.glyph.y.field)"""


def shown() -> live.LiveFigure:
    return live.estimators(X, Y)


def start(page: Page, **controls: object) -> None:
    """Set the controls, and put the points where they start."""
    points = [X.tolist(), Y.tolist()]
    page.evaluate(f"([x, y]) => {{ {FIND}('context').data = {{ x, y }} }}", points)
    first = {"point": "1", "shown": "delta", "order": "as given", "position": 0.25, "beta": 1}
    choose(page, **first | {"passes": 2} | controls)
    page.evaluate(f"{FIND}('update').execute({FIND}('point'))")


def arrival(page: Page) -> np.ndarray:
    """The points in the order that their numbers say."""
    return np.argsort([int(name) for name in read(page, "arrived")["name"]])


def weights(queries: np.ndarray, order: np.ndarray, beta: float, count: int) -> dict:
    """Of each estimator at each query, a column per point: Python's predictions of unit values."""
    x, n = X[order], len(X)
    gram, k = (gaussian_process.covariance(a, x, 0.3) for a in (x, queries))
    units = np.eye(n)
    posterior = partial(gaussian_process.posterior, queries, x, length_scale=0.3, noise=0.2)
    by_time = {
        "sum": k,
        "delta": k @ online_regression.one_pass(gram, units, beta=beta),
        "passes": k @ online_regression.passes(gram, units, count, noise=0.2),
        "kernel": nadaraya_watson(np.c_[queries], np.c_[x], units, bandwidth=0.1),
        "posterior": np.stack([posterior(unit)[0] for unit in units], axis=1),
    }
    back = np.argsort(order)
    return {name: w[:, back] for name, w in by_time.items()}


@pytest.mark.parametrize(("beta", "doublings"), [(1.0, 0), (0.35, 3), (1.5, 6)])
@pytest.mark.parametrize("order", [*ARRIVALS, "shuffled 1", "shuffled 2", "shuffled 3"])
def test_weights_and_curves_are_pythons(
    page: Page, order: str, beta: float, doublings: int
) -> None:
    start(page, order=order, position=-0.37, beta=beta, passes=doublings)
    found = arrival(page)
    same = {name for name, given in ARRIVALS.items() if found.tolist() == given.tolist()}
    assert same == {order} & {*ARRIVALS}
    curve = read(page, "curve")
    expected = weights(np.array(curve["x"]), found, beta, 2**doublings)
    there = weights(np.array([-0.37]), found, beta, 2**doublings)
    for shown, column in SHOWN.items():
        assert_allclose(curve[column], expected[column] @ Y, atol=1e-8, err_msg=column)
        choose(page, shown=shown)
        bars = read(page, "bars")
        assert_allclose(bars["weight"], there[column][0], atol=1e-8, err_msg=column)


def test_the_text_says_the_prediction_and_what_the_weights_sum_to(page: Page) -> None:
    for shown, column in SHOWN.items():
        start(page, shown=shown, position=0.6)
        w = weights(np.array([0.6]), np.arange(7), 1.0, 4)
        here = w[column][0]
        said = text(page)
        numbers = [f"{v:.3f}".replace("-", "−") for v in (here @ Y, here.sum(), here.min())]
        assert said.startswith("From 7 points, at x = 0.60, ")
        assert f" {numbers[0]}. The weights sum to {numbers[1]}, and " in said
        below = int((here < -5e-4).sum())
        if below:
            verb = "is" if below == 1 else "are"
            assert f"and {below} {verb} negative, down to {numbers[2]}." in said
        else:
            assert "and none is negative." in said
        ours = f"The posterior mean predicts {w['posterior'][0] @ Y:.3f}.".replace("-", "−")
        assert said.endswith(ours) == (shown != "posterior")


def test_negative_bars_go_down_in_another_colour(page: Page) -> None:
    start(page, shown="posterior", position=0.6)
    bars = read(page, "bars")
    of_sign = {False: set(), True: set()}
    for weight, colour in zip(bars["weight"], bars["colour"], strict=True):
        of_sign[weight < 0].add(colour)
    assert [len(colours) for colours in of_sign.values()] == [1, 1]
    assert of_sign[False] != of_sign[True]
    assert page.evaluate(f"{FIND}('below').y_range.start") <= min(bars["weight"]) < 0


def test_the_chosen_curve_and_the_ticked_ones_are_drawn(page: Page) -> None:
    start(page)
    assert sorted(page.evaluate(VISIBLE)) == ["delta", "kernel", "posterior", "sum"]
    for name in ("sum", "delta"):
        page.get_by_role("checkbox", name=name).uncheck()
    assert sorted(page.evaluate(VISIBLE)) == ["delta", "kernel", "posterior"]
    assert len(read(page, "query")["y"]) == 3
    for name in ("sum", "delta"):
        page.get_by_role("checkbox", name=name).check()


def test_points_come_and_go_by_keyboard(page: Page) -> None:
    start(page)
    page.get_by_role("button", name="add a point at the query").press("Enter")
    page.get_by_role("slider", name="point y").press("ArrowRight")
    context = read(page, "context")
    assert_allclose([context["x"], context["y"]], [[*X, 0.25], [*Y, 0.01]], atol=1e-9)
    assert read(page, "arrived")["name"][-1] == "8"
    page.get_by_role("button", name="remove the point").press("Space")
    assert read(page, "context")["x"] == X.tolist()


def test_a_drag_moves_a_point_or_the_query(page: Page) -> None:
    start(page)
    drag(page, (0.9, 0.5), (0.7, -1.0))
    drag(page, (0.0, 2.5), (-0.5, 2.5))
    context = read(page, "context")
    assert_allclose([context["x"][5], context["y"][5]], [0.7, -1.0], atol=0.03)
    assert value(page, "position") == pytest.approx(-0.5, abs=0.02)


def test_one_point_and_sixteen(browser: Browser, tmp_path: Path) -> None:
    with alone(browser, tmp_path, live.estimators([0.2], [1.0])) as seen:
        add = seen.page.get_by_role("button", name="add a point at the query")
        assert seen.page.get_by_role("button", name="remove the point").is_disabled()
        assert text(seen.page).startswith("From 1 point, at x = 0.25, the delta rule")
        for _ in range(15):
            add.press("Enter")
        assert add.is_disabled()
        curve = read(seen.page, "curve")
        assert all(np.isfinite(np.array(curve[c], dtype=float)).all() for c in COLUMNS)
