"""Every live figure under a finger on a phone, and in its wide layout on a screen of 1280 × 720."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest
from firefox import Firefox
from live_visits import DEEP, FIGURES, FIND, THEMES, figure, html_page, lay_ground, place, value
from playwright.sync_api import Browser, CDPSession, Locator, Page
from site_visits import WIDTHS, next_frames, rests, served, visiting

SLIDE = {"width": 1280, "height": 720}
NAMES = [name for name in FIGURES if "large" not in name]
# below 454 pixels
LOW = ("kernel_regression", "kernel_heads", "self_attention_points", "in_context_regression")
READY = "document.querySelectorAll('[data-ready=true]').length"
# whatever a reader can change: controls, and the places of points
STATE = """(at) => JSON.stringify([...Bokeh.documents[at]._all_models.values()]
  .filter((m) => "value" in m.attributes || m.type === "ColumnDataSource")
  .map((m) => [m.name, m.type === "ColumnDataSource" ? Object.values(m.data).map((c) => Array.from(c)) : m.value]))"""
HANDLES = """(at) => {
  const views = [...Bokeh.index.query((v) => v.model.type === "Figure" && v.model.document === Bokeh.documents[at])];
  return views.flatMap((view) => {
    const box = view.el.getBoundingClientRect();
    return [...view.renderer_views.values()].filter((one) => one.model.name === "handle").flatMap(({ glyph }) =>
      Array.from(glyph.sx, (x, i) => [box.x + x, box.y + glyph.sy[i]]));
  });
}"""
SIZES = f"""(host) => ({DEEP})(host).filter((one) => one.matches(".noUi-handle"))
  .map((one) => one.getBoundingClientRect()).filter((b) => b.width).map((b) => [b.width, b.height])"""
TYPE = f"""(host) => {{
  const texts = ({DEEP})(host).filter((one) => one.getClientRects().length && [...one.childNodes].some((n) => n.nodeType === 3 && n.data.trim()));
  const canvas = [...Bokeh.index.query((v) => host.contains(v.root.el))].flatMap(({{ model }}) =>
    Object.entries(model.attributes).filter(([key]) => key.endsWith("text_font_size")).map(([, size]) => parseFloat(size?.value ?? size)));
  return [...texts.map((one) => parseFloat(getComputedStyle(one).fontSize)), ...canvas];
}}"""
MENUS = f"""(host) => ({DEEP})(host).filter((one) => one.matches("select") && one.getClientRects().length).map((one) => {{
  const context = document.createElement("canvas").getContext("2d"), style = getComputedStyle(one);
  context.font = style.font;
  const longest = Math.max(...[...one.options].map((option) => context.measureText(option.text).width));
  return [longest, one.clientWidth - parseFloat(style.paddingLeft) - 18, one.getRootNode().querySelector("label")?.textContent];
}})"""
# boxes of controls that lie on each other, and whether one leaves the figure
OVERLAPS = f"""(host) => {{
  const inner = host.getBoundingClientRect();
  const boxes = ({DEEP})(host).filter((one) => one.matches(".noUi-target, .noUi-handle, select, input, .bk-btn, label, .bk-slider-title"))
    .map((one) => [one, one.getBoundingClientRect()]).filter(([, box]) => box.width);
  const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
  return boxes.flatMap(([one, a], i) => [
    ...boxes.slice(i + 1).filter(([two, b]) => over(a, b) && !one.contains(two)).map(([two]) => `${{one.className}} on ${{two.className}}`),
    ...(a.left < inner.left - 1 || a.right > inner.right + 1 ? [`${{one.className}} leaves`] : [])]);
}}"""
COLOURS = f"""(host) => ({DEEP})(host).filter((one) => one.matches("select, input, .bk-btn, .noUi-target")).map((one) =>
  [one.className, getComputedStyle(one).color, getComputedStyle(one).backgroundColor])"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where each figure has a page, in light and dark, and in the wide layout."""
    folder = tmp_path_factory.mktemp("figures")
    lay_ground(folder)
    for name in NAMES:
        for theme in THEMES:
            page = html_page(figure(name), theme)
            page = page.replace("</main>", '<p style="height: 2000px"></p></main>')
            (folder / f"{name}-{theme}.html").write_text(page, encoding="utf-8")
        page = html_page(figure(name).wide())
        page = page.replace("max-width: 720px", "").replace("<h1>A live figure</h1>", "")
        (folder / f"{name}-wide.html").write_text(page, encoding="utf-8")
    with served(folder) as address:
        yield address


@dataclass
class Phone:
    """A page on a phone and a finger on it."""

    page: Page
    touch: CDPSession

    def go(self, address: str, name: str) -> Any:
        """The figure's element, drawn and at rest."""
        if not self.page.url.endswith(f"/{name}.html"):
            self.page.goto(f"{address}/{name}.html")
            self.page.wait_for_function(READY)
        self.rest()
        return self.page.locator(".attnbook-live")

    def rest(self) -> None:
        """At the top, once nothing scrolls any more: a tap on a page that still moves only stops it."""
        self.page.evaluate(
            """() => new Promise((done) => {
              let still = 0;
              const look = () => {
                still = scrollY === 0 ? still + 1 : 0;
                if (still === 20) return done();
                scrollTo({ top: 0, behavior: "instant" });
                requestAnimationFrame(look);
              };
              look();
            })"""
        )

    def swipe(self, x: float, y: float, dx: float, dy: float) -> None:
        """A finger that goes down, moves and leaves."""
        for i in range(13):
            step = {"x": x + dx * i / 12, "y": y + dy * i / 12}
            kind = "touchMove" if i else "touchStart"
            self.touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [step]})
        self.touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        next_frames(self.page)


@pytest.fixture(scope="module")
def phone(in_fonts: Browser, address: str) -> Iterator[Phone]:
    """One phone for all of it, with one set of fonts after the other."""
    options = {"viewport": WIDTHS["phone"], "has_touch": True, "is_mobile": True}
    with visiting(in_fonts, address, **options) as seen:
        yield Phone(seen.page, seen.page.context.new_cdp_session(seen.page))


@pytest.fixture(scope="module")
def slide(in_fonts: Browser, address: str) -> Iterator[Page]:
    """A projector, with one set of fonts after the other."""
    with visiting(in_fonts, address, viewport=SLIDE) as seen:
        yield seen.page


def boxes(host: Locator, selector: str) -> list[Any]:
    return [box for one in host.locator(selector).all() if (box := one.bounding_box())]


@pytest.mark.parametrize("name", NAMES)
def test_on_a_phone(phone: Phone, address: str, name: str) -> None:
    """The plots first, or the text that they read; controls whole and below them; a swipe scrolls."""
    host, page = phone.go(address, f"{name}-light"), phone.page
    plots, controls = boxes(host, ".bk-Figure"), boxes(host, "input.bk-input, select, .noUi-base")
    assert max(box["y"] + box["height"] for box in plots) <= min(box["y"] for box in controls)
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in plots)
    assert min(min(size) for size in host.evaluate(SIZES) or [[24]]) >= 24
    assert min(host.evaluate(TYPE)) >= 11
    for longest, room, label in host.evaluate(MENUS):
        assert label and longest <= room, (label, longest, room)
    assert host.evaluate(OVERLAPS) == []

    phone.rest()
    handles = page.evaluate(HANDLES, 0)
    for box in boxes(host, ".bk-Figure")[:2]:
        top, bottom = int(box["y"]) + 60, int(box["y"] + box["height"]) - 30
        places = product(range(90, 360, 9), range(top, min(bottom, 780), 9))
        free = [at for at in places if all(math.dist(at, one) > 30 for one in handles)]
        if not free:
            continue
        x, y = free[len(free) // 2]
        for dx, dy in ((0, -160), (-70, 0)):
            phone.rest()
            before = page.evaluate(STATE, 0)
            phone.swipe(x, y, dx, dy)
            if dy:
                page.wait_for_function("scrollY > 100")
            else:
                assert page.evaluate("scrollY") <= 100
            assert page.evaluate(STATE, 0) == before


@pytest.mark.parametrize(
    ("name", "axes"),
    [
        ("kernel_regression", "x"),
        ("query_and_keys", "xy"),
        ("self_attention_points", "xy"),
        ("in_context_regression", "xy"),
        ("estimators", "xy"),
        ("parts", "y"),
    ],
)
def test_a_finger_drags_a_handle_and_not_the_page(
    phone: Phone, address: str, name: str, axes: str
) -> None:
    """Also one that misses its middle by 11 pixels, so that it is 24 wide; no other handle moves."""
    phone.go(address, f"{name}-light")
    first, *others = phone.page.evaluate(HANDLES, 0)
    phone.swipe(first[0] + 8, first[1] + 8, 40, -60)
    assert phone.page.evaluate("scrollY") == 0
    found, *left = phone.page.evaluate(HANDLES, 0)
    assert left == others
    for axis, before, after, way in zip("xy", first, found, (40, -60), strict=True):
        if axis in axes:
            assert after - before == pytest.approx(way, abs=12)


@pytest.mark.parametrize(
    ("name", "at", "chosen"),
    [
        ("attention_browser", (3, 20, 1), {"row": 20}),
        ("residual_stream", (3, 4, 0), {"token": 3, "step": 4}),
        ("model_heads", (24, 3, 0), {"layer": 24, "head": 3}),
    ],
)
def test_a_finger_taps_a_cell(
    phone: Phone, address: str, name: str, at: tuple[float, float, int], chosen: dict[str, int]
) -> None:
    phone.go(address, f"{name}-light")
    phone.page.touchscreen.tap(*place(phone.page, *at))
    next_frames(phone.page)
    assert {one: value(phone.page, one) for one in chosen} == chosen


def test_a_swipe_over_a_slider_scrolls_and_a_tap_moves_it(phone: Phone, address: str) -> None:
    host, page = phone.go(address, "kernel_regression-light"), phone.page
    box = host.locator(".noUi-base").last.bounding_box()
    assert box is not None
    x, y = box["x"] + 0.9 * box["width"], box["y"] + 4
    before = page.evaluate(STATE, 0)
    phone.swipe(x, y, 0, -160)
    page.wait_for_function("scrollY > 100")
    assert page.evaluate(STATE, 0) == before
    phone.rest()
    page.touchscreen.tap(x, y)
    page.wait_for_function(f"Math.abs({FIND}('position').value - 2.8) < 0.1")


def test_chapter_9s_legend_is_whole(phone: Phone, address: str) -> None:
    phone.go(address, "in_context_regression-light")
    inside = """() => [...Bokeh.index.query((v) => v.model.type === "Legend")].map((v) => {
      const canvas = v.canvas.bbox ?? v.parent.bbox;
      return [v.bbox.left, v.bbox.right, v.parent.el.offsetWidth, v.model.items.length];
    })"""
    ((left, right, width, items),) = phone.page.evaluate(inside)
    assert left >= 0 and right <= width and items == 3


@pytest.mark.parametrize("name", ["kernel_heads", "translation_attention"])
def test_dark_reaches_menus_inputs_and_tracks(phone: Phone, address: str, name: str) -> None:
    host = phone.go(address, f"{name}-dark")
    text = host.evaluate("(host) => getComputedStyle(host).color")
    for kind, colour, ground in host.evaluate(COLOURS):
        assert ground == "rgba(0, 0, 0, 0)" or ground.startswith("rgba(138, 147, 158"), kind
        assert colour == text or "noUi" in kind, kind


WHOLE = """(host) => {
  const box = host.getBoundingClientRect(), [plots, controls] = [".plots", ".controls"].map((kind) =>
    (DEEP)(host).find((one) => one.matches(kind)).getBoundingClientRect());
  return { bottom: Math.max(plots.bottom, controls.bottom), right: controls.right, gap: controls.left - plots.right,
    width: document.documentElement.scrollWidth, height: document.documentElement.scrollHeight };
}""".replace("DEEP", DEEP)
BOX = "(({ x, y, width, height }) => ({ x, y, width, height }))(document.querySelector('.attnbook-live').getBoundingClientRect())"


@pytest.mark.parametrize("name", NAMES)
def test_wide_it_fits_a_slide(slide: Page, address: str, name: str) -> None:
    slide.goto(f"{address}/{name}-wide.html")
    slide.wait_for_function(READY)
    host = slide.locator(".attnbook-live")
    rests(slide, BOX)
    seen = host.evaluate(WHOLE)
    assert seen["bottom"] <= 720 and seen["right"] <= 1280 and seen["gap"] >= 0
    assert seen["width"] <= 1280 and seen["height"] <= 736
    assert host.evaluate(OVERLAPS) == []
    assert min(host.evaluate(TYPE)) >= 11
    if name not in LOW:
        slide.set_viewport_size({"width": 800, "height": 720})  # no room beside: as in the page
        slide.wait_for_function(f"{BOX}.height > 454")
        slide.set_viewport_size(SLIDE)


def test_a_button_and_an_address_fill_the_screen(slide: Page, address: str) -> None:
    slide.goto(f"{address}/residual_stream-light.html")
    slide.wait_for_function(READY)
    host = slide.locator(".attnbook-live")
    before = rests(slide, BOX)
    as_before = f"JSON.stringify({BOX}) === '{json.dumps(before, separators=(',', ':'))}'"
    slide.get_by_role("button", name="full screen").click()
    slide.wait_for_function(f"{BOX}.height >= innerHeight")
    rests(slide, BOX)
    assert host.evaluate(WHOLE)["bottom"] <= 720 and host.evaluate(WHOLE)["gap"] >= 0
    slide.get_by_role("button", name="leave full screen").click()
    slide.wait_for_function(as_before)
    slide.goto(f"{address}/residual_stream-light.html?wide=live-stream")
    slide.wait_for_function(READY)
    assert rests(slide, BOX) == {"x": 0, "y": 0, **SLIDE}
    slide.get_by_role("slider", name="token").press("Escape")
    slide.wait_for_function(as_before)


def test_the_still_stays_until_the_figure_is_ready(slide: Page, address: str) -> None:
    gate: list[Any] = []
    slide.route("**/bokeh-widgets.min.js", lambda route: gate.append(route))
    with slide.expect_request("**/bokeh-widgets.min.js"):
        slide.goto(f"{address}/kernel_regression-light.html")
    still = slide.locator(".attnbook-still")
    assert still.is_visible()
    assert slide.get_by_role("button").count() == 0
    while not gate:
        next_frames(slide)
    for route in gate:
        route.continue_()
    slide.wait_for_function(READY)
    slide.unroute("**/bokeh-widgets.min.js")
    assert not still.is_visible()


def test_in_firefox(firefox: Firefox, address: str) -> None:
    """A finger that begins on a handle drags it, one elsewhere changes nothing; controls whole."""
    firefox.resize(500, 844)
    for name in ("kernel_regression", "in_context_regression"):
        firefox.go(f"{address}/{name}-light.html")
        firefox.wait("return document.querySelector('[data-ready=true]') !== null")
        host = "document.querySelector('.attnbook-live')"
        assert firefox.run(f"return ({OVERLAPS})({host})") == []
        assert min(firefox.run(f"return ({TYPE})({host})")) >= 11
        x, y = map(round, firefox.run(f"return ({HANDLES})(0)[0]"))
        for top, moves in ((y, True), (y - 120, False)):
            before = firefox.run(f"return ({STATE})(0)")
            on = [{"x": x + 6 * i, "y": top - 4 * i, "duration": 20 * (i > 0)} for i in range(9)]
            first, *others = [{"type": "pointerMove", **step} for step in on]
            down, up = ({"type": f"pointer{way}", "button": 0} for way in ("Down", "Up"))
            path = [first, down, *others, up]
            firefox.act("pointer", path, parameters={"pointerType": "touch"})
            assert (firefox.run(f"return ({STATE})(0)") != before) == moves, (name, moves)
