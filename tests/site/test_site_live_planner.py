"""The live figure of a plan shows attnbook.distributed.plan's numbers, and says what binds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_visits import alone, choose, figure, read, text
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page

from attnbook.distributed.layout import DEVICES, MODELS, Cluster, Layout
from attnbook.distributed.plan import Plan, plan
from attnbook_course import live

START = Layout(zero=1, heads=8, micro_batches=4)
SIZES = {
    "model": "Llama 3 70B",
    "device": "H100",
    "reached": 100,
    "count": 10,
    "batch": 22,
    "sequence": 13,
}
shown = partial(figure, "planner")


def show(page: Page, layout: Layout, **sizes: Any) -> None:
    """Set all controls; sizes as powers of 2."""
    choose(page, **SIZES | sizes, recompute=layout.recompute)
    choose(page, micro_batches=int(np.log2(layout.micro_batches)))
    ways = ("zero", "heads", "stages", "ring", "experts")
    choose(page, **{key: str(getattr(layout, key)) for key in ways})


def planned(layout: Layout, **sizes: Any) -> Plan:
    """The same by Python."""
    of = SIZES | sizes
    cluster = Cluster(2 ** of["count"], **DEVICES[of["device"]], reached=of["reached"] / 100)
    model = replace(MODELS[of["model"]], sequence=2 ** of["sequence"])
    return plan(model, 2 ** of["batch"], cluster, layout)


CASES = {
    "heads and copies": (START, {}),
    "sharded": (Layout(zero=3, recompute="all"), {"batch": 23}),
    "stages": (Layout(zero=1, heads=8, stages=4, micro_batches=16), {"reached": 50}),
    "a ring": (Layout(zero=3, heads=8, ring=8), {"sequence": 17, "batch": 22}),
    "experts": (
        Layout(zero=2, experts=8, micro_batches=2),
        {"model": "Mixtral 8x7B", "device": "A100", "count": 6, "batch": 21},
    ),
    "too large": (Layout(), {"batch": 23}),
}


@pytest.mark.parametrize(("layout", "sizes"), CASES.values(), ids=CASES)
def test_bars_are_pythons(page: Page, layout: Layout, sizes: dict[str, int]) -> None:
    show(page, layout, **sizes)
    found = planned(layout, **sizes)
    for source, expected, scale in (("held", found.memory, 1e9), ("spent", found.seconds, 1)):
        drawn = read(page, source)
        assert drawn["y"] == list(expected)
        ends = np.cumsum(list(expected.values())) / scale
        assert_allclose(drawn["right"], ends, rtol=1e-9)
        assert_allclose(drawn["left"], [0, *ends[:-1]], rtol=1e-9)
        told = [one for one in drawn["text"] if one]
        assert len(told) == sum(size > 0 for size in expected.values())
    hidden = {name: all_of - found.seconds[name] for name, all_of in found.sending.items()}
    pale = {name: size for name, size in hidden.items() if size > 1e-6 * found.step}
    drawn = read(page, "hidden")
    assert drawn["y"] == list(pale)
    begin = [max(0, found.seconds["compute"] - size) for size in pale.values()]
    assert_allclose(drawn["left"], begin, rtol=1e-9)
    said = text(page)
    assert f"{found.copies:,} copies of the model" in said
    assert ("Memory binds" in said) == (found.binds == "memory")
    if found.binds != "memory":
        assert f"take {100 * found.utilisation:.1f}% of the data sheet's." in said


def test_sentences(page: Page) -> None:
    show(page, START)
    assert text(page) == (
        "128 copies of the model, 8 devices each; 1 row per micro-batch. A device holds 58.9 of 80 "
        "GB. A step takes 3.1 s, 1,350,000 tokens per second; the model's own operations take "
        "65.2% of the data sheet's. Computing binds; the largest loss is sums over heads, 27.3% of "
        "the step."
    )
    show(page, Layout(zero=3, recompute="all"), batch=23)
    assert text(page).endswith(" Computing binds; all sending hides.")
    show(page, Layout(zero=3), batch=23)
    assert text(page).endswith(" Memory binds: it does not fit, and activations take most, 183 GB.")
    show(page, Layout(zero=1, heads=8, stages=16, recompute="all"), batch=18, count=7)
    assert "The pipeline's bubble binds, with " in text(page)


@pytest.mark.parametrize(
    ("layout", "sizes", "said"),
    [
        (Layout(heads=8), {"batch": 18, "count": 14}, "The batch is too small: "),
        (Layout(heads=8, stages=16), {"count": 3}, "8 devices cannot hold copies of 128 devices"),
        (Layout(experts=2), {}, "This model has no experts to divide into 2 ways."),
        (
            Layout(experts=8, heads=4),
            {"model": "Mixtral 8x7B", "count": 3},
            "2 copies cannot divide experts into 8 ways.",
        ),
    ],
)
def test_it_says_what_cannot_be_divided(
    page: Page, layout: Layout, sizes: dict[str, int], said: str
) -> None:
    show(page, layout, **sizes)
    assert text(page).startswith(said)
    assert not any(read(page, "spent")["right"]) and read(page, "hidden")["y"] == []
    with pytest.raises(ValueError, match="expected a multiple of the layout's"):
        planned(layout, **sizes)


def test_a_plan_of_ones_own(browser: Browser, tmp_path: Path) -> None:
    layout = Layout(zero=3, experts=8, recompute="all")
    own = live.planner(
        "Mixtral 8x7B", device="A100", devices=64, batch=2**20, sequence=2**12, layout=layout
    )
    with alone(browser, tmp_path, own) as seen:
        sizes = {"model": "Mixtral 8x7B", "device": "A100", "count": 6, "batch": 20}
        found = planned(layout, **sizes, sequence=12)
        assert_allclose(read(seen.page, "spent")["right"][-1], found.step, rtol=1e-9)
