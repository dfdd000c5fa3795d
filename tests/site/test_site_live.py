"""Every live figure in a browser: it draws, it moves by key, pointer and finger, and says so."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from live_visits import (
    FIGURES,
    FIND,
    Phone,
    alone,
    choose,
    drag,
    figure,
    lay_out,
    read,
    text,
)
from PIL import Image
from playwright.sync_api import Browser, Page, expect
from site_visits import SITE, WIDTHS, Visit, next_frames, rests, served, unfold, visiting

NAMES = list(FIGURES)
# a control that a key moves, by its title
KEYED = {
    "kernel_regression": "query x",
    "bandwidth_descent": "start bandwidth h",
    "query_and_keys": "temperature τ",
    "attention_browser": "letter, counted from the top",
    "self_attention_points": "layers",
    "residual_stream": "step",
    "text_writer": "temperature",
    "ask_model": "layer",
    "parts": "steps",
    "ring": "step",
}
# a drag in a plot: where it starts and ends, which plot, and the controls that it moves
DRAGGED: dict[str, tuple[Any, Any, int, dict[str, float]]] = {
    "kernel_regression": ((0, 0), (1.5, 0.5), 0, {"position": 1.5}),
    "query_and_keys": ((0, 0), (-1, 0.5), 0, {"query_x": -1, "query_y": 0.5}),
    "attention_browser": ((3, 3), (3, 12), 1, {"row": 12}),
    "self_attention_points": ((0, 0), (1, -1), 0, {"point_x": 1, "point_y": -1}),
    "residual_stream": ((2, 2), (5, 4), 0, {"token": 5, "step": 4}),
    "ask_model": ((3, 3), (24, 5), 2, {"layer": 24, "head": 5}),
    "parts": ((6.5, -4.6), (8.5, -4.6), 0, {"place": 8}),
}
HANDLES = """() => [...Bokeh.index.query((v) => v.model.type === "Figure")].flatMap((view) => {
  const box = view.el.getBoundingClientRect();
  return [...view.renderer_views.values()].filter((one) => one.model.name === "handle").flatMap(({ glyph }) =>
    Array.from(glyph.sx, (x, i) => [box.x + x, box.y + glyph.sy[i]]));
})"""
STATE = """() => JSON.stringify([...Bokeh.documents[0]._all_models.values()]
  .filter((one) => "value" in one.attributes).map((one) => [one.name, one.value]))"""
SCROLLED = "scrollY"
DARK = "html { color-scheme: dark; color: #ced6dd; background: #14181e; } "
SEEN = Path(__file__).with_name("seen.js").read_text(encoding="utf-8").partition("\n")[2]
DISABLE = """(disabled) => {
  for (const one of Bokeh.documents[0]._all_models.values()) if ("disabled" in one.attributes) one.disabled = disabled;
}"""
# sizes of the type in the plots, in pixels
TYPE = """() => [...Bokeh.index.query((v) => v.model.type === "Figure")].flatMap(({ model }) =>
  [...model.references()].flatMap((one) => Object.entries(one.attributes).filter(([key, size]) =>
    key.endsWith("text_font_size") && /px/.test(size?.value ?? size)).map(([, size]) => parseFloat(size?.value ?? size))))"""


def moved(page: Page, before: str) -> None:
    """The sentence is another, and a screen reader hears it once the handle rests."""
    expect(page.locator("[role=status]")).to_contain_text(text(page)[:40])
    assert text(page) != before and "NaN" not in text(page) and "undefined" not in text(page)


@pytest.mark.parametrize("name", NAMES)
def test_it_draws_and_moves(browser: Browser, tmp_path: Path, name: str) -> None:
    """Nothing complains on the way; a visit fails for a message on the console."""
    with alone(browser, tmp_path, figure(name)) as seen:
        page = seen.page
        picture = Image.open(io.BytesIO(page.locator(".bk-Figure").first.screenshot()))
        assert np.asarray(picture.convert("L")).std() > 5  # not blank
        before = text(page)
        if (
            name == "text_writer"
        ):  # its sentence follows the model; the bars belong to other settings
            page.get_by_role("slider", name=KEYED[name], exact=True).press("ArrowRight")
            assert read(page, "bars")["y"] == []
            return
        handle = page.get_by_role("slider", name=KEYED[name], exact=True)
        said = handle.get_attribute("aria-valuetext")
        handle.press("ArrowLeft" if name == "ring" else "ArrowRight")
        assert handle.get_attribute("aria-valuetext") != said
        moved(page, before)
        if name in DRAGGED:
            start, end, plot, controls = DRAGGED[name]
            before = text(page)
            page.locator(".bk-Figure").nth(plot).scroll_into_view_if_needed()
            drag(page, start, end, plot)
            for control, expected in controls.items():
                found = page.evaluate(f"(name) => {FIND}(name).value", control)
                assert found == pytest.approx(expected, abs=0.1), control
            moved(page, before)


@pytest.mark.parametrize("name", NAMES)
def test_a_finger_scrolls_the_page_unless_it_begins_on_a_handle(
    browser: Browser, tmp_path: Path, name: str
) -> None:
    options = {"viewport": WIDTHS["phone"], "has_touch": True, "is_mobile": True}
    with alone(browser, tmp_path, figure(name), **options) as seen:
        page = seen.page
        finger = Phone(page, page.context.new_cdp_session(page))
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0  # nothing sticks out
        box = page.locator(".bk-Figure").first.bounding_box()
        handles = rests(page, f"({HANDLES})()")
        x, y = next(
            (x, y)
            for x in np.linspace(box["x"] + 8, box["x"] + box["width"] - 8, 12)
            for y in np.linspace(max(box["y"], 190), box["y"] + box["height"] - 8, 8)
            if all(np.hypot(x - a, y - b) > 40 for a, b in handles)
        )
        state = page.evaluate(STATE)
        finger.swipe(x, y, 0, -170)
        assert rests(page, SCROLLED) > 100 and page.evaluate(STATE) == state
        page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
        assert rests(page, SCROLLED) == 0
        if handles and name in DRAGGED:
            a, b = rests(page, f"({HANDLES})()")[0]
            finger.swipe(a, b, 40 if a < 200 else -40, 30)
            assert rests(page, SCROLLED) == 0 and page.evaluate(STATE) != state


def unreadable(page: Page) -> list[str]:
    """Controls that are white in the dark, or whose words have too little contrast."""
    return [words for kind, words in page.evaluate(SEEN) if kind in ("pale", "white")]


@pytest.mark.parametrize("name", NAMES)
def test_in_the_dark_no_control_is_white(browser: Browser, tmp_path: Path, name: str) -> None:
    """Disabled and enabled, under the pointer, focused, and after each button was pressed."""
    with alone(browser, tmp_path, figure(name), color_scheme="dark") as seen:
        page, seen.expected = seen.page, "404"  # a published model is not there
        page.add_style_tag(content=DARK)
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
        assert unreadable(page) == []
        page.evaluate(DISABLE, True)
        next_frames(page)
        assert unreadable(page) == []
        page.evaluate(DISABLE, False)
        next_frames(page)
        for control in page.locator("button:visible, input:visible, select:visible").all():
            control.hover()
            control.focus()
            assert unreadable(page) == []
        for button in page.locator(".bk-btn:visible").all():
            if button.is_enabled():  # another one may have changed that
                button.click()
            next_frames(page)
            assert unreadable(page) == []


@pytest.mark.parametrize("name", NAMES)
def test_on_a_slide_controls_stand_beside_the_plots(
    browser: Browser, tmp_path: Path, name: str
) -> None:
    """The whole figure fits a window of 1280 × 720."""
    lay_out(tmp_path, figure(name), width="none")
    file = tmp_path / "index.html"
    wide = file.read_text("utf-8").replace(
        'class="attnbook-live"', 'class="attnbook-live" data-layout="wide"', 1
    )
    file.write_text(wide, "utf-8")
    size = {"width": 1280, "height": 720}
    with served(tmp_path) as address, visiting(browser, address, viewport=size) as seen:
        page = seen.go("index.html")
        page.wait_for_selector("[data-ready=true]")
        plots, controls = (page.locator(f".{one}") for one in ("plots", "controls"))
        rests(page, "document.querySelector('.attnbook-live').getBoundingClientRect().height")
        left, right = plots.bounding_box(), controls.bounding_box()
        assert left["x"] + left["width"] <= right["x"]
        assert max(one["y"] + one["height"] for one in (left, right)) <= 724
        assert min(page.evaluate(TYPE)) >= 20


def test_the_picture_has_all_plots(browser: Browser, tmp_path: Path) -> None:
    with alone(browser, tmp_path, figure("kernel_regression")) as seen:
        with seen.page.expect_download() as download:
            seen.page.get_by_role("button", name="save as PNG").click()
        assert download.value.suggested_filename == "live-kernel-regression.png"
        picture = Image.open(download.value.path()).convert("RGB")
        box = seen.page.locator(".plots").bounding_box()
        assert np.allclose(picture.size, [box["width"], box["height"]], atol=2)
        pixels = np.asarray(picture).astype(int)
        assert (pixels[:4] == 255).all()  # on white
        orange = (np.abs(pixels - [213, 94, 0]) < 12).all(axis=-1)
        assert orange[: picture.height // 2].any() and orange[-picture.height // 4 :].any()


def test_without_bokeh_the_still_stands_until_a_second_try(
    browser: Browser, tmp_path: Path
) -> None:
    lay_out(tmp_path, figure("ring"))
    with served(tmp_path) as address, visiting(browser, address) as seen:
        seen.expected = "ERR_FAILED|isTrusted|Event"
        seen.page.route("**/bokeh.min.js", lambda route: route.abort())
        page = seen.go("index.html")
        again = page.get_by_role("button", name="try again")
        again.wait_for()
        assert page.locator(".attnbook-still").is_visible()
        page.unroute("**/bokeh.min.js")
        again.click()
        page.wait_for_selector("[data-ready=true]")
        assert not page.locator(".attnbook-still").is_visible()


def test_a_run_goes_on_until_it_is_stopped(browser: Browser, tmp_path: Path) -> None:
    with alone(browser, tmp_path, figure("bandwidth_descent")) as seen:
        page = seen.page
        page.get_by_role("button", name="run").click()
        page.wait_for_function(f"{FIND}('trail').data.h.length > 4")
        page.get_by_role("button", name="stop").click()
        count = len(read(page, "trail")["h"])
        next_frames(page)
        page.wait_for_timeout(400)
        assert len(read(page, "trail")["h"]) == count
        page.get_by_role("button", name="one step").click()
        assert len(read(page, "trail")["h"]) == count + 1
        choose(page, start=0.3)
        assert len(read(page, "trail")["h"]) == 1


def test_who_wants_less_motion_gets_steps_at_once(browser: Browser, tmp_path: Path) -> None:
    with alone(browser, tmp_path, figure("bandwidth_descent"), reduced_motion="reduce") as seen:
        seen.page.get_by_role("button", name="20 steps").click()
        assert text(seen.page).startswith("Step 20:")
        assert len(read(seen.page, "trail")["h"]) == 21


@pytest.mark.parametrize(
    ("path", "most"), [("index.html", 600), ("chapters/08-three-transformers.html", 800)]
)
def test_a_page_comes_light_and_its_figure_when_it_is_near(
    open_page: Visit, path: str, most: int
) -> None:
    """Kilobytes on the way, text compressed."""
    page = open_page.go(path, rest=True)
    sent = {SITE / urlsplit(url).path.lstrip("/") for url in open_page.requests}
    bytes_sent = (gzip.compress(file.read_bytes()) for file in sent if file.is_file())
    assert sum(map(len, bytes_sent)) < 1000 * most
    assert not any("bokeh" in file.name or "fa-solid" in file.name for file in sent)
    unfold(page)
    page.locator(".attnbook-live").first.scroll_into_view_if_needed()
    page.wait_for_selector(".attnbook-live[data-ready=true]")
