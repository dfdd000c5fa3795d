"""Every live figure alone on a page: drawn, named, inside the page, moved by keys and heard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_visits import DEEP, FIGURES, FIND, WORDS, alone, choose, figure, place, value
from playwright.sync_api import Browser, Page
from site_visits import Visit, next_frames
from test_site_pages import AXE, TOO_WIDE, axe_findings

from attnbook_course import live

ROLES = ("slider", "combobox", "button")
# the smallest phone says most of what is as large as it may be; the others in the long run
LARGE = (
    "attention_browser large",
    "in_context_regression",
    "residual_stream",
    "self_attention_points",
    "translation_attention",
)
LIGHT = {
    "translation_attention": 55_000,
    "in_context_regression": 55_000,
    "residual_stream": 150_000,
}
NOW = [(name, "light", "small") for name in LARGE]
LATER = [
    pytest.param(name, theme, width, marks=pytest.mark.slow)
    for name in FIGURES
    for theme in ("light", "dark")
    for width in ("desk", "phone", "small")
    if (theme, width) != ("light", "desk") and (name, theme, width) not in NOW
]
# what the Tab key would stop at without saying what it is
TAB_STOPS = f"""() => ({DEEP})(document).filter((one) => one.tabIndex >= 0 && !one.hasAttribute("role")
  && !/^(A|BUTTON|INPUT|SELECT|SUMMARY|TEXTAREA)$/.test(one.tagName)).map((one) => one.className)"""
TEXT_SIZES = f"""() => ({DEEP})(document)
  .filter((one) => one.matches(".bk-slider-title, .bk-input, .bk-btn, label, .bk-clearfix, strong"))
  .map((one) => parseFloat(getComputedStyle(one).fontSize))"""
CONTROLS = """() => [...Bokeh.documents.at(-1)._all_models.values()]
  .filter((one) => ["Slider", "Select"].includes(one.type))
  .filter((one) => !one.disabled && Bokeh.index.find_one(one)?.el.checkVisibility())
  .map(({ type, name, title }) => ({ type, name, title }))"""
# all that a reader sees of a figure but for one control
BESIDE = """(name) => JSON.stringify([...Bokeh.documents.at(-1)._all_models.values()]
  .filter((one) => one.name !== name)
  .map((one) => one.type === "ColumnDataSource" ? Object.values(one.data).map((all) => [...all])
    : one.attributes.value ?? (one.type === "Div" ? one.text : "")))"""


@pytest.fixture(scope="module", params=FIGURES)
def drawn(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[live.LiveFigure, Visit]]:
    """A figure, and a visit to it on a light desk."""
    shown = figure(request.param)
    with alone(browser, tmp_path_factory.mktemp("figure"), shown) as seen:
        load(seen.page)
        if request.param == "parts":  # where every order gives another number
            choose(seen.page, arithmetic="bfloat16", step=3)
        yield shown, seen


def load(page: Page) -> None:
    """What a figure asks the site for, if anything."""
    page.wait_for_load_state("networkidle")
    button = page.get_by_role("button", name=re.compile(r"^Load the model( \(.*\))?$"))
    if button.count():
        button.click()
        page.wait_for_function("() => window.attnbookModels")


def check_whole(page: Page) -> None:
    """Nothing leaves the page, and everyone can use what is there."""
    assert AXE.is_file(), "axe-core is missing: run npm ci"
    assert page.evaluate(TOO_WIDE) <= 0
    assert axe_findings(page) == []
    for role in ROLES:
        named = [one.aria_snapshot() for one in page.get_by_role(role).all()]  # type: ignore[arg-type]
        assert [text for text in named if f'{role} "' not in text] == []
    assert page.evaluate(TAB_STOPS) == []


def test_a_figure_is_whole(drawn: tuple[live.LiveFigure, Visit]) -> None:
    """And keeps about the room in the page that it takes."""
    shown, seen = drawn
    check_whole(seen.page)
    for words in ("live figure", shown.title):
        assert seen.page.get_by_text(words, exact=True).is_visible()
    named = f"{shown.title}. {shown.description}"
    assert seen.page.get_by_role("group", name=named).count() == 1
    assert min(seen.page.evaluate(TEXT_SIZES)) >= 14  # pixels, on a desk
    box = seen.page.locator(f"#{shown.name}").bounding_box()
    assert box is not None and abs(box["height"] / 16 - shown.min_height) < 10


@pytest.mark.parametrize(("name", "theme", "width"), [*NOW, *LATER])
def test_a_figure_is_whole_in_other_looks(
    browser: Browser, tmp_path: Path, name: str, theme: str, width: str
) -> None:
    with alone(browser, tmp_path, figure(name), theme, width) as seen:
        load(seen.page)
        check_whole(seen.page)
        if name == "attention_browser large":
            (_, top), (_, bottom) = (place(seen.page, 1, y, plot=1) for y in (1, 2))
            assert bottom - top == pytest.approx(11, abs=0.1)  # pixels for a label
        if name == "residual_stream":
            (left, _), (right, _) = (place(seen.page, x, 1) for x in (1, 2))
            assert right - left >= 10  # pixels of a cell


def test_keys_move_every_control_and_are_heard(drawn: tuple[live.LiveFigure, Visit]) -> None:
    """A slider a step, a menu to each option: the drawing follows, a text says the number."""
    _, seen = drawn
    page = seen.page
    controls = page.evaluate(CONTROLS)
    assert controls
    for control in controls:
        name, title = control["name"], control["title"]
        before, beside = value(page, name), page.evaluate(BESIDE, name)
        if control["type"] == "Slider":
            step, end = page.evaluate(f"(name) => [{FIND}(name).step, {FIND}(name).end]", name)
            slider = page.get_by_role("slider", name=title, exact=True)
            slider.press("ArrowLeft" if before == end else "ArrowRight")
            next_frames(page)
            assert abs(value(page, name) - before) == pytest.approx(step, abs=0.6 * step), title
            redrawn = page.evaluate(BESIDE, name) != beside  # no comparison of long texts is told
            assert redrawn, title
            says = f"{title}: {slider.get_attribute('aria-valuetext')}"
            assert page.get_by_text(says, exact=True).is_visible()
            continue
        menu = page.get_by_role("combobox", name=title, exact=True)
        chosen = menu.locator("option:checked").inner_text()
        others = [one for one in menu.locator("option").all_inner_texts() if one != chosen]
        for option in [*others, chosen]:
            menu.select_option(option)
            next_frames(page)
            now = value(page, name), page.evaluate(BESIDE, name)
            moved, redrawn = now[0] != before, now[1] != beside
            assert moved and redrawn, option
            before, beside = now
    page.wait_for_function(f"document.querySelector('[role=status]').textContent === {WORDS}")


def test_figures_are_light() -> None:
    """A page has their bytes, whether the reader comes to them or not."""
    for name, most in LIGHT.items():
        assert len(figure(name)._repr_html_().encode()) < most, name


def test_every_kind_of_live_figure_is_looked_at() -> None:
    assert {name.split()[0] for name in FIGURES} == {one for one in live.__all__ if one.islower()}
