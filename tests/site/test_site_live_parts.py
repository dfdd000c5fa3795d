"""The live figure of chapter 12 combines parts as attnbook.exact.online_softmax does, in bfloat16 too."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial as given
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page
from site_visits import ROOT, Visit, next_frames
from test_site_live import READ, SET, WORDS
from test_site_live_pages import alone
from test_site_live_points import ON_SCREEN, VALUE

from attnbook.course import live
from attnbook.course.live.parts import ORDERS, SCORES, VALUES
from attnbook.exact import online_softmax

CHAPTER = "12-exact-and-fast"
CUTS = [2, 5, 5, 9]  # the third part has no key
ENDS = "Bokeh.documents.at(-1).get_model_by_name('cuts').data.after"
PLACE = """(after) => {
  const document = Bokeh.documents.at(-1), find = (name) => document.get_model_by_name(name);
  find("count").value = after.length + 1;
  find("cuts").data = { after, x: after.map((k) => k + 0.5) };
  find("update").execute(find("order"));
}"""
START = """([scores, values]) => {
  const keys = Bokeh.documents.at(-1).get_model_by_name("keys");
  keys.data = { ...keys.data, score: scores, value: values };
}"""


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The figure on the screen; every test sets what it reads."""
    with alone(browser, tmp_path_factory.mktemp("parts"), live.parts()) as seen:
        yield seen.page
        assert seen.complaints == []


def choose(
    page: Page, after: list[int], order: str, step: int, arithmetic: str = "double precision"
) -> None:
    """Put scores and values where they start, cut, and set the controls."""
    page.evaluate(START, [list(SCORES), list(VALUES)])
    page.evaluate(PLACE, after)
    for name, value in (("order", order), ("arithmetic", arithmetic), ("step", step)):
        page.evaluate(SET, [name, value])


def rounded(number: float) -> float:
    """The nearest number of bfloat16."""
    return float(torch.tensor(number, dtype=torch.float32).bfloat16())


def key_by_key(scores: list, values: list, to: Callable[[float], float]) -> online_softmax.Partial:
    """A part whose sums take one key after the other, each step rounded."""
    top, total, weighted = max(scores, default=-math.inf), 0.0, 0.0
    for s, v in zip(scores, values, strict=True):
        share = to(math.exp(to(s - top)))
        total, weighted = to(total + share), to(weighted + to(share * v))
    of = given(torch.tensor, dtype=torch.bfloat16 if to is rounded else torch.float64)
    return online_softmax.Partial(of([top]), of([total]), of([[weighted]]))


def combined(
    after: list[int], pairs: list[tuple[int, int]], to: Callable[[float], float]
) -> list[online_softmax.Partial]:
    """The parts that are left, each pair of places combined into the first of the two."""
    ends = [0, *after, len(SCORES)]
    left = [key_by_key(list(SCORES[a:b]), list(VALUES[a:b]), to) for a, b in pairwise(ends)]
    for a, b in pairs:
        left[a] = online_softmax.combine(left[a], left.pop(b))
    return left


def pairs_of(order: str, parts: int) -> list[tuple[int, int]]:
    """The places that are combined at each step, of those that are left."""
    if order == "left to right":
        return [(0, 1)] * (parts - 1)
    found, sizes = [], parts
    while sizes > 1:  # a row of the tree after the other
        found += [(k, k + 1) for k in range(sizes // 2)]
        sizes -= sizes // 2
    return found


def numbers_of(text: str) -> list[float]:
    """The three numbers of the step's sentence, and the softmax average."""
    step, rest = text.split(". The softmax average of all keys is ")
    named = step.partition(": ")[2].split(", ")
    said = [*(one.rpartition(" ")[2] for one in named), rest.partition(". ")[0]]
    return [float(one.replace("−", "-")) for one in said]


def average(part: online_softmax.Partial) -> float:
    return float(online_softmax.finish(part)[0][0, 0])


SOFTMAX = float(np.exp(SCORES) @ np.array(VALUES) / np.exp(SCORES).sum())


@pytest.mark.parametrize("arithmetic", ["double precision", "bfloat16"])
@pytest.mark.parametrize("order", ["left to right", "tree"])
@pytest.mark.parametrize("after", [CUTS, list(range(1, 12)), [0, 12]])
def test_every_step_is_pythons(page: Page, after: list[int], order: str, arithmetic: str) -> None:
    to = rounded if arithmetic == "bfloat16" else float
    pairs = pairs_of(order, len(after) + 1)
    ends = [0, *after, 12]
    for step in range(len(after) + 1):
        choose(page, after, order, step, arithmetic)
        expected = combined(after, pairs[:step], to)
        drawn = page.evaluate(READ, "spans")
        full = [part for part in expected if part.total > 0]
        assert_allclose(drawn["top"], [float(part.top) for part in full], rtol=0, atol=1e-12)
        assert_allclose(drawn["average"], [average(part) for part in full], rtol=0, atol=1e-12)
        covered = [(a - 0.6, b - 0.4) for a, b in zip(drawn["left"], drawn["right"], strict=True)]
        assert covered[0][0] == pytest.approx(0) and covered[-1][1] == pytest.approx(12)
        assert {round(edge) for piece in covered for edge in piece} <= set(ends)
        faint = page.evaluate(READ, "lines")["alpha"].count(0.15)
        assert faint == step  # of neighbours, each step joins two at a cut
        if step and (made := expected[pairs[step - 1][0]]).total > 0:
            said = [float(made.top), float(made.total), average(made), SOFTMAX]
            assert_allclose(numbers_of(page.evaluate(WORDS)), said, rtol=0, atol=6e-5)


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_ends_at_the_softmax_average(page: Page, order: str) -> None:
    for after in (CUTS, list(range(1, 12)), [3, 6, 9]):
        choose(page, after, order, len(after))
        assert_allclose(page.evaluate(READ, "spans")["average"], [SOFTMAX], rtol=0, atol=1e-12)
        assert page.evaluate(WORDS).endswith("Every order ends there.")


def test_in_bfloat16_the_order_decides(page: Page) -> None:
    """The three results that the text gives; they differ from each other and from the average."""
    after = [3, 6, 9]
    choose(page, after, "shuffled 1", 3, "bfloat16")
    text = page.evaluate(WORDS)
    ends = dict.fromkeys(("left to right", "tree", "shuffled 1"), 0.0)
    for order in ends:
        ends[order] = float(text.split(f"{order} ends at ")[1][:6])
    for order in ("left to right", "tree"):
        (whole,) = combined(after, pairs_of(order, 4), rounded)
        assert ends[order] == pytest.approx(average(whole), abs=6e-5)
    (drawn,) = page.evaluate(READ, "spans")["average"]
    assert ends["shuffled 1"] == pytest.approx(drawn, abs=6e-5)
    assert drawn == rounded(drawn)
    assert len({*ends.values(), round(SOFTMAX, 4)}) == 4
    assert all(abs(end / SOFTMAX - 1) < 0.02 for end in ends.values())


def test_shuffles_are_orders_of_the_parts(page: Page) -> None:
    after, seen = list(range(1, 12)), set()
    for order in ORDERS[2:]:
        first = []
        for step in range(1, 12):
            choose(page, after, order, step)
            drawn = page.evaluate(READ, "spans")
            blue = {
                round(k) for a, b, c in zip(drawn["left"], drawn["right"], drawn["colour"], strict=True)
                if c == "#1f7fc4" for k in np.arange(a + 0.4, b)
            }  # fmt: skip
            assert len(blue) == step + 1
            first.append(tuple(sorted(blue)))
        seen.add(tuple(first))
    assert len(seen) == 3


def test_a_part_without_keys_changes_nothing(page: Page) -> None:
    choose(page, [4, 4], "left to right", 0)
    before = page.evaluate(READ, "spans")
    assert len(before["top"]) == 2 and "−∞" in page.evaluate(READ, "table")["text"]
    choose(page, [4, 4], "left to right", 1)
    after = page.evaluate(READ, "spans")
    assert {k: v for k, v in after.items() if k != "colour"} == {
        k: v for k, v in before.items() if k != "colour"
    }
    assert page.evaluate(WORDS).startswith("Step 1 of 2 gives keys 1 to 4: ")


def test_cuts_and_scores_are_dragged(page: Page) -> None:
    choose(page, [3, 6, 9], "left to right", 0)
    low = page.evaluate("Bokeh.documents.at(-1).get_model_by_name('above').y_range.start")
    for start, end in (((3.5, low + 0.6), (7.5, low + 0.6)), ((10, 3), (10, -2))):
        page.mouse.move(*page.evaluate(ON_SCREEN, list(start)))
        page.mouse.down()
        page.mouse.move(*page.evaluate(ON_SCREEN, list(end)), steps=8)
        page.mouse.up()
        next_frames(page)
    assert page.evaluate(ENDS) == [6, 7, 9]
    assert (page.evaluate(VALUE, "cut"), page.evaluate(VALUE, "place")) == ("2", 7)
    keys = page.evaluate(READ, "keys")
    assert_allclose(keys["score"], [*SCORES[:9], -2, *SCORES[10:]], atol=0.01)
    assert (page.evaluate(VALUE, "key"), page.evaluate(VALUE, "score")) == ("10", -2)


def test_all_of_it_by_keyboard(page: Page) -> None:
    choose(page, [3, 6, 9], "left to right", 0)
    page.get_by_role("combobox", name="cut").select_option("2")
    page.get_by_role("slider", name="cut after key").press("ArrowLeft")
    assert page.evaluate(ENDS) == [3, 5, 9]
    page.get_by_role("slider", name="steps").press("End")
    assert page.evaluate(WORDS).startswith("Step 3 of 3 gives keys 1 to 12: top 4.75, ")
    page.get_by_role("slider", name="parts").press("ArrowLeft")
    assert page.evaluate(ENDS) == [4, 8] and page.evaluate(VALUE, "step") == 2
    page.get_by_role("combobox", name="key", exact=True).select_option("7")
    page.get_by_role("slider", name="its score").press("ArrowRight")
    page.get_by_role("slider", name="its value").press("ArrowLeft")
    keys = page.evaluate(READ, "keys")
    assert_allclose([keys["score"][6], keys["value"][6]], [4.76, 6.24], atol=1e-9)
    page.get_by_role("combobox", name="computed in").select_option("bfloat16")
    assert "In bfloat16, left to right ends at " in page.evaluate(WORDS)


def test_a_screen_reader_hears_the_sentence(page: Page) -> None:
    choose(page, [3, 6, 9], "tree", 1)
    choose(page, [3, 6, 9], "tree", 2)
    said = page.evaluate(WORDS)
    page.wait_for_function("(said) => document.querySelector('[role=status]').textContent === said", arg=said)  # fmt: skip


def test_a_row_of_ones_own(browser: Browser, tmp_path: Path) -> None:
    scores, values = np.array([-20.0, 20.0, 0.0]), np.array([-4.0, 7.5, 1.0])
    with alone(browser, tmp_path, live.parts(scores, values)) as seen:
        assert seen.page.evaluate(READ, "spans")["top"] == [-20, 20, 0]
        assert " is 7.5000. " in seen.page.evaluate(WORDS)
        assert seen.complaints == []


@pytest.mark.skipif(
    not (ROOT / "chapters" / f"{CHAPTER}.md").is_file(), reason="the chapter is to be written"
)
def test_the_chapter_shows_it(open_page: Visit) -> None:
    page = open_page.go(f"chapters/{CHAPTER}.html")
    page.locator("#live-parts").scroll_into_view_if_needed()
    page.wait_for_selector("#live-parts[data-ready=true]")
    assert page.evaluate(WORDS).startswith("12 keys in 4 parts, and nothing is combined yet.")
    assert open_page.outside == []
    assert open_page.complaints == []
