"""Live figures that take steps by themselves: they stop when asked, and while nobody sees them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from live_visits import FIND, alone, choose, figure, text
from playwright.sync_api import Browser, Page

from attnbook_course.live.regressor_training import NAME

SCROLL = "scrollTo({{ top: {}, behavior: 'instant' }})"
HIDDEN = (
    "Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })"
)
OUT_OF_SIGHT = {
    SCROLL.format(2500): SCROLL.format(0),
    HIDDEN: "delete document.visibilityState",
}


@dataclass
class Run:
    """What a figure calls its buttons, and what it counts."""

    first: dict[str, float]  # controls
    ends: dict[str, float]  # controls whose change ends a run
    start: str
    reset: str
    steps: str  # how many have been taken
    drawn: str  # which of them are drawn
    in_half_a_second: int
    at_once: int
    every: int
    said: str


RUNS = {
    "bandwidth_descent": Run(
        first={"start": np.log10(2), "rate": -1},
        ends={"start": 0.5},
        start="run",
        reset="begin again",
        steps=f"{FIND}('trail').data.theta.length - 1",
        drawn=f"[...{FIND}('trail').data.theta.keys()]",
        in_half_a_second=5,
        at_once=20,
        every=1,
        said="Step 40: ",
    ),
    "regressor_training": Run(
        first={"seed": 0, "rate": -1, "pairs": 2},
        ends={"seed": 5, "pairs": 5},
        start="start",
        reset="reset",
        steps=f"window.attnbookTraining['{NAME}'].training.step",
        drawn=f"[...{FIND}('trail').data.step]",
        in_half_a_second=50,
        at_once=100,
        every=5,
        said="Step 200 of 2000; ",
    ),
}
LABEL = f"{FIND}('run').label"


@pytest.fixture(scope="module", params=RUNS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def run(name: str) -> Run:
    return RUNS[name]


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory, name: str) -> Iterator[Page]:
    with alone(browser, tmp_path_factory.mktemp("figure"), figure(name)) as seen:
        yield seen.page


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def begin(page: Page, run: Run) -> None:
    """Stand at the start, with nothing that runs."""
    choose(page, **run.first)
    press(page, run.reset)


def steps(page: Page, run: Run) -> int:
    return page.evaluate(run.steps)


def test_it_runs_until_it_is_stopped(page: Page, run: Run) -> None:
    """A new rate holds from the next step on; a button and another start end the run."""
    for stop in ("stop", "one step", run.reset, *run.ends):
        begin(page, run)
        press(page, run.start)
        assert page.evaluate(LABEL) == "stop"
        page.wait_for_function(f"{run.steps} > 3")
        choose(page, rate=-0.5)
        assert page.evaluate(LABEL) == "stop"
        page.wait_for_function(f"{run.steps} > {steps(page, run)}")
        if stop in run.ends:
            choose(page, **{stop: run.ends[stop]})
        else:
            press(page, stop)
        assert page.evaluate(LABEL) == run.start
        then = steps(page, run)
        assert then == 0 or stop in ("stop", "one step")
        page.wait_for_timeout(400)
        assert steps(page, run) == page.evaluate(run.drawn)[-1] == then


def test_a_key_starts_and_stops_it(page: Page, run: Run) -> None:
    """The button stays under the keys when its label changes."""
    begin(page, run)
    page.get_by_role("button", name=run.start, exact=True).focus()
    for label in ("stop", run.start) * 2:
        page.keyboard.press("Enter")
        assert page.evaluate(LABEL) == label
        page.get_by_role("button", name=label, exact=True).wait_for()
        page.wait_for_timeout(120)


def test_so_many_steps_a_second_and_none_while_nobody_sees_them(page: Page, run: Run) -> None:
    begin(page, run)
    page.evaluate("document.body.style.paddingBottom = '3000px'")
    press(page, run.start)
    began = page.evaluate("performance.now()")
    page.wait_for_function(f"{run.steps} >= {run.in_half_a_second}")
    assert page.evaluate("performance.now()") - began >= 480
    for hide, show in OUT_OF_SIGHT.items():
        page.evaluate(hide)
        page.wait_for_timeout(200)
        then = steps(page, run)
        page.wait_for_timeout(500)
        assert steps(page, run) == then and page.evaluate(LABEL) == "stop"
        page.evaluate(show)
        page.wait_for_function(f"{run.steps} > {then + 2}")
    press(page, "stop")
    page.evaluate("document.body.style.paddingBottom = ''")


def test_with_less_motion_many_steps_come_at_once(
    browser: Browser, tmp_path: Path, name: str, run: Run
) -> None:
    with alone(browser, tmp_path, figure(name)) as seen:
        seen.page.emulate_media(reduced_motion="reduce")
        seen.page.reload()
        seen.page.wait_for_selector("[data-ready=true]")
        for count in (run.at_once, 2 * run.at_once):
            press(seen.page, f"{run.at_once} steps")
            assert steps(seen.page, run) == count
        assert seen.page.evaluate(run.drawn) == list(range(0, count + 1, run.every))
        assert text(seen.page).startswith(run.said)
