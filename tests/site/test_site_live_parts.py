"""The live figure of chapter 12 combines parts as attnbook.exact.online_softmax does, in bfloat16 too."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from live_visits import FIND, alone, choose, drag, figure, read, text, value
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page

from attnbook.exact import online_softmax
from attnbook_course import live
from attnbook_course.live.parts import ORDERS, SCORES, VALUES

CUTS = [2, 5, 5, 9]  # the third part has no key
START = f"""([scores, values, after]) => {{
  const keys = {FIND}("keys");
  keys.data = {{ ...keys.data, score: scores, value: values }};
  {FIND}("count").value = after.length + 1;
  {FIND}("cuts").data = {{ after, x: after.map((k) => k + 0.5) }};
  {FIND}("update").execute({FIND}("order"));
}}"""
shown = partial(figure, "parts")


def start(
    page: Page, after: list[int], order: str, step: int, arithmetic: str = "double precision"
) -> None:
    """Put scores and values where they start, cut, and set the controls."""
    page.evaluate(START, [list(SCORES), list(VALUES), after])
    choose(page, order=order, arithmetic=arithmetic, step=step)


def rounded(number: float) -> float:
    return float(torch.tensor(number, dtype=torch.float32).bfloat16())


def key_by_key(scores: list, values: list, to: Callable[[float], float]) -> online_softmax.Partial:
    """A part whose sums take one key after the other, each step rounded."""
    top, total, weighted = max(scores, default=-math.inf), 0.0, 0.0
    for s, v in zip(scores, values, strict=True):
        share = to(math.exp(to(s - top)))
        total, weighted = to(total + share), to(weighted + to(share * v))
    of = partial(torch.tensor, dtype=torch.bfloat16 if to is rounded else torch.float64)
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
        start(page, after, order, step, arithmetic)
        expected = combined(after, pairs[:step], to)
        drawn = read(page, "spans")
        full = [part for part in expected if part.total > 0]
        assert_allclose(drawn["top"], [float(part.top) for part in full], rtol=0, atol=1e-12)
        assert_allclose(drawn["average"], [average(part) for part in full], rtol=0, atol=1e-12)
        covered = [(a - 0.6, b - 0.4) for a, b in zip(drawn["left"], drawn["right"], strict=True)]
        assert covered[0][0] == pytest.approx(0) and covered[-1][1] == pytest.approx(12)
        assert {round(edge) for piece in covered for edge in piece} <= set(ends)
        faint = read(page, "lines")["alpha"].count(0.15)
        assert faint == step  # of neighbours, each step joins two at a cut
        if step and (made := expected[pairs[step - 1][0]]).total > 0:
            said = [float(made.top), float(made.total), average(made), SOFTMAX]
            assert_allclose(numbers_of(text(page)), said, rtol=0, atol=6e-5)


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_ends_at_the_softmax_average(page: Page, order: str) -> None:
    for after in (CUTS, list(range(1, 12)), [3, 6, 9]):
        start(page, after, order, len(after))
        assert_allclose(read(page, "spans")["average"], [SOFTMAX], rtol=0, atol=1e-12)
        assert text(page).endswith("Every order ends there.")


def test_in_bfloat16_the_order_decides(page: Page) -> None:
    """The three results that the text gives; they differ from each other and from the average."""
    after = [3, 6, 9]
    start(page, after, "shuffled 1", 3, "bfloat16")
    told = text(page)
    ends = dict.fromkeys(("left to right", "tree", "shuffled 1"), 0.0)
    for order in ends:
        ends[order] = float(told.split(f"{order} ends at ")[1][:6])
    for order in ("left to right", "tree"):
        (whole,) = combined(after, pairs_of(order, 4), rounded)
        assert ends[order] == pytest.approx(average(whole), abs=6e-5)
    (drawn,) = read(page, "spans")["average"]
    assert ends["shuffled 1"] == pytest.approx(drawn, abs=6e-5)
    assert drawn == rounded(drawn)
    assert len({*ends.values(), round(SOFTMAX, 4)}) == 4
    assert all(abs(end / SOFTMAX - 1) < 0.02 for end in ends.values())


def test_shuffles_are_orders_of_the_parts(page: Page) -> None:
    after, seen = list(range(1, 12)), set()
    for order in ORDERS[2:]:
        first = []
        for step in range(1, 12):
            start(page, after, order, step)
            drawn = read(page, "spans")
            spans = zip(drawn["left"], drawn["right"], drawn["colour"], strict=True)
            blue = [np.arange(a + 0.4, b).round() for a, b, colour in spans if colour == "#1f7fc4"]
            keys = set(np.concatenate(blue).tolist())
            assert len(keys) == step + 1
            first.append(tuple(sorted(keys)))
        seen.add(tuple(first))
    assert len(seen) == 3


def test_a_part_without_keys_changes_nothing(page: Page) -> None:
    start(page, [4, 4], "left to right", 0)
    before = read(page, "spans")
    assert len(before["top"]) == 2 and "−∞" in read(page, "table")["text"]
    start(page, [4, 4], "left to right", 1)
    after = read(page, "spans")
    assert before | {"colour": after["colour"]} == after
    assert text(page).startswith("Step 1 of 2 gives keys 1 to 4: ")


def test_cuts_and_scores_are_dragged(page: Page) -> None:
    start(page, [3, 6, 9], "left to right", 0)
    low = page.evaluate(f"{FIND}('above').y_range.start")
    for path in (((3.5, low + 0.6), (7.5, low + 0.6)), ((10, 3), (10, -2))):
        drag(page, *path)
    assert read(page, "cuts")["after"] == [6, 7, 9]
    scores = read(page, "keys")["score"]
    assert_allclose(scores, [*SCORES[:9], -2, *SCORES[10:]], atol=0.01)
    assert value(page, "cut", "place", "key", "score") == ["2", 7, "10", -2]


def test_controls_move_cuts_and_keys(page: Page) -> None:
    start(page, [3, 6, 9], "left to right", 3)
    assert text(page).startswith("Step 3 of 3 gives keys 1 to 12: top 4.75, ")
    choose(page, cut="2", place=5)
    assert read(page, "cuts")["after"] == [3, 5, 9]
    choose(page, count=3)
    assert read(page, "cuts")["after"] == [4, 8] and value(page, "step") == 2
    choose(page, key="7")
    assert_allclose(value(page, "score", "value"), [SCORES[6], VALUES[6]])
    choose(page, score=4.76, value=6.24)
    keys = read(page, "keys")
    assert_allclose([keys["score"][6], keys["value"][6]], [4.76, 6.24], atol=1e-9)


def test_a_row_of_ones_own(browser: Browser, tmp_path: Path) -> None:
    scores, values = np.array([-20.0, 20.0, 0.0]), np.array([-4.0, 7.5, 1.0])
    with alone(browser, tmp_path, live.parts(scores, values)) as seen:
        assert read(seen.page, "spans")["top"] == [-20, 20, 0]
        assert " is 7.5000. " in text(seen.page)
