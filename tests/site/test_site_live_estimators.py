"""The live figure of chapter 11 gives Python's weights, negative ones too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page
from site_visits import ROOT, Visit, next_frames
from test_site_live import READ, SET, WORDS
from test_site_live_pages import alone
from test_site_live_points import ON_SCREEN, VALUE

from attnbook import nadaraya_watson
from attnbook.course import live
from attnbook.kernel import gaussian_process
from attnbook.linear_attention import online_regression

X = np.array([0.3, -0.8, 0.1, 0.35, -0.2, 0.9, 0.3])  # two points in one place
Y = np.array([1.0, -0.5, 0.25, 1.5, -1.25, 0.5, 0.0])
ARRIVALS = {"as given": np.arange(7), "reversed": np.arange(7)[::-1]}
CHAPTER = "11-weights-without-softmax"
COLUMNS = ("sum", "delta", "passes", "kernel", "posterior")
SHOWN = dict(zip(("sum", "delta", "passes", "Nadaraya–Watson", "posterior"), COLUMNS, strict=True))
VISIBLE = """() => [...Bokeh.index.query((v) => v.model.type === "GlyphRenderer" && v.model.glyph.type === "Line")]
  .filter((v) => v.model.visible).map((v) => v.model.glyph.y.field)"""


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The figure on the screen; every test sets what it reads."""
    with alone(browser, tmp_path_factory.mktemp("estimators"), live.estimators(X, Y)) as seen:
        yield seen.page
        assert seen.complaints == []


def choose(
    page: Page, shown: str = "delta", order: str = "as given", query: float = 0.25,
    beta: float = 1.0, doublings: int = 2,
) -> None:  # fmt: skip
    """Set the controls, and put the points where they start."""
    source = "Bokeh.documents.at(-1).get_model_by_name('context')"
    page.evaluate(f"([x, y]) => {{ {source}.data = {{ x, y }} }}", [X.tolist(), Y.tolist()])
    controls = {
        "point": "1", "shown": shown, "order": order, "position": query, "beta": beta,
        "passes": doublings,
    }  # fmt: skip
    for name, value in controls.items():
        page.evaluate(SET, [name, value])
    update = "Bokeh.documents.at(-1).get_model_by_name('update')"
    page.evaluate(f"{update}.execute(Bokeh.documents.at(-1).get_model_by_name('point'))")


def arrival(page: Page) -> np.ndarray:
    """The points in the order that their numbers say."""
    return np.argsort([int(name) for name in page.evaluate(READ, "arrived")["name"]])


def weights(queries: np.ndarray, order: np.ndarray, beta: float, count: int) -> dict:
    """Of each estimator at each query, a column per point: Python's predictions of unit values."""
    x, n = X[order], len(X)
    gram, k = (gaussian_process.covariance(a, x, 0.3) for a in (x, queries))
    units = np.eye(n)
    by_time = {
        "sum": k,
        "delta": k @ online_regression.one_pass(gram, units, beta=beta),
        "passes": k @ online_regression.passes(gram, units, count, noise=0.2),
        "kernel": nadaraya_watson(np.c_[queries], np.c_[x], units, bandwidth=0.1),
        "posterior": np.stack(
            [gaussian_process.posterior(queries, x, u, length_scale=0.3, noise=0.2)[0] for u in units],
            axis=1,
        ),
    }  # fmt: skip
    back = np.argsort(order)
    return {name: w[:, back] for name, w in by_time.items()}


@pytest.mark.parametrize(("beta", "doublings"), [(1.0, 0), (0.35, 3), (1.5, 6)])
@pytest.mark.parametrize("order", ["as given", "reversed", "shuffled 2"])
def test_weights_and_curves_are_pythons(
    page: Page, order: str, beta: float, doublings: int
) -> None:
    choose(page, order=order, query=-0.37, beta=beta, doublings=doublings)
    found = arrival(page)
    if order in ARRIVALS:
        assert found.tolist() == ARRIVALS[order].tolist()
    curve = page.evaluate(READ, "curve")
    expected = weights(np.array(curve["x"]), found, beta, 2**doublings)
    there = weights(np.array([-0.37]), found, beta, 2**doublings)
    for shown, column in SHOWN.items():
        assert_allclose(curve[column], expected[column] @ Y, atol=1e-8, err_msg=column)
        page.evaluate(SET, ["shown", shown])
        bars = page.evaluate(READ, "bars")
        assert_allclose(bars["weight"], there[column][0], atol=1e-8, err_msg=column)


def test_one_pass_is_the_delta_rule_and_many_are_the_posterior(page: Page) -> None:
    choose(page, beta=round(1 / (1 + 0.2**2), 12), doublings=0)
    curve = page.evaluate(READ, "curve")
    assert_allclose(curve["passes"], curve["delta"], atol=1e-9)
    between = [0.0] * 7
    for doublings in range(7):
        choose(page, doublings=doublings)
        curve = {name: np.array(v) for name, v in page.evaluate(READ, "curve").items()}
        between[doublings] = float(np.abs(curve["passes"] - curve["posterior"]).max())
    assert between[6] < 0.1 * between[0]


def test_order_of_arrival_changes_delta_and_passes_alone(page: Page) -> None:
    curves, orders = {}, ["as given", "reversed", "shuffled 1", "shuffled 2", "shuffled 3"]
    for order in orders:
        choose(page, order=order)
        curves[order] = page.evaluate(READ, "curve")
        assert sorted(arrival(page)) == list(range(7))
    for order in orders[1:]:
        differ = {c for c in COLUMNS if not np.allclose(curves[order][c], curves["as given"][c])}
        assert differ == {"delta", "passes"}, order


def test_the_text_says_the_prediction_and_what_the_weights_sum_to(page: Page) -> None:
    for shown, column in SHOWN.items():
        choose(page, shown=shown, query=0.6)
        w = weights(np.array([0.6]), np.arange(7), 1.0, 4)
        here = w[column][0]
        said = page.evaluate(WORDS)
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
    choose(page, shown="posterior", query=0.6)
    bars = page.evaluate(READ, "bars")
    signs = {colour: {v < 0 for v, c in zip(bars["weight"], bars["colour"], strict=True) if c == colour} for colour in set(bars["colour"])}  # fmt: skip
    assert sorted(map(tuple, signs.values())) == [(False,), (True,)]
    low = page.evaluate("Bokeh.documents.at(-1).get_model_by_name('below').y_range.start")
    assert low <= min(bars["weight"]) < 0


def test_the_chosen_curve_and_the_ticked_ones_are_drawn(page: Page) -> None:
    choose(page, shown="delta")
    assert sorted(page.evaluate(VISIBLE)) == ["delta", "kernel", "posterior", "sum"]
    for name in ("sum", "delta"):
        page.get_by_role("checkbox", name=name).uncheck()
    assert sorted(page.evaluate(VISIBLE)) == ["delta", "kernel", "posterior"]
    assert len(page.evaluate(READ, "query")["y"]) == 3
    for name in ("sum", "delta"):
        page.get_by_role("checkbox", name=name).check()


def test_all_of_it_by_keyboard(page: Page) -> None:
    choose(page)
    page.get_by_role("combobox", name="weights of").select_option("posterior")
    page.get_by_role("button", name="add a point at the query").press("Enter")
    page.get_by_role("slider", name="point y").press("ArrowRight")
    context = page.evaluate(READ, "context")
    assert_allclose([context["x"], context["y"]], [[*X, 0.25], [*Y, 0.01]], atol=1e-9)
    assert page.evaluate(READ, "arrived")["name"][-1] == "8"
    page.get_by_role("button", name="remove the point").press("Space")
    assert page.evaluate(READ, "context")["x"] == X.tolist()
    page.get_by_role("slider", name="query x").press("ArrowRight")
    assert page.evaluate(VALUE, "position") == pytest.approx(0.26)
    page.get_by_role("combobox", name="order of arrival").select_option("reversed")
    assert page.evaluate(READ, "arrived")["name"] == list("7654321")


def test_a_drag_moves_a_point_or_the_query(page: Page) -> None:
    choose(page)
    for start, end in (((0.9, 0.5), (0.7, -1.0)), ((0.0, 2.5), (-0.5, 2.5))):
        page.mouse.move(*page.evaluate(ON_SCREEN, list(start)))
        page.mouse.down()
        page.mouse.move(*page.evaluate(ON_SCREEN, list(end)), steps=6)
        page.mouse.up()
        next_frames(page)
    context = page.evaluate(READ, "context")
    assert_allclose([context["x"][5], context["y"][5]], [0.7, -1.0], atol=0.03)
    assert page.evaluate(VALUE, "position") == pytest.approx(-0.5, abs=0.02)


def test_a_screen_reader_hears_the_sentence(page: Page) -> None:
    choose(page, query=-0.1)
    choose(page, query=-0.11)
    said = page.evaluate(WORDS)
    page.wait_for_function("(said) => document.querySelector('[role=status]').textContent === said", arg=said)  # fmt: skip


def test_one_point_and_sixteen(browser: Browser, tmp_path: Path) -> None:
    with alone(browser, tmp_path, live.estimators([0.2], [1.0])) as seen:
        add = seen.page.get_by_role("button", name="add a point at the query")
        assert seen.page.get_by_role("button", name="remove the point").is_disabled()
        assert seen.page.evaluate(WORDS).startswith("From 1 point, at x = 0.25, the delta rule")
        for _ in range(15):
            add.press("Enter")
        assert add.is_disabled()
        curve = seen.page.evaluate(READ, "curve")
        assert all(np.isfinite(np.array(curve[c], dtype=float)).all() for c in COLUMNS)
        assert seen.complaints == []


@pytest.mark.skipif(
    not (ROOT / "chapters" / f"{CHAPTER}.md").is_file(), reason="the chapter is to be written"
)
def test_the_chapter_shows_it(open_page: Visit) -> None:
    page = open_page.go(f"chapters/{CHAPTER}.html")
    page.locator("#live-estimators").scroll_into_view_if_needed()
    page.wait_for_selector("#live-estimators[data-ready=true]")
    assert page.evaluate(WORDS).startswith("From 10 points, at x = 0.25, the delta rule with β")
    assert open_page.outside == []
    assert open_page.complaints == []
