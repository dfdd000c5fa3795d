"""How a live figure comes, speaks and is kept: scripts in time, sentences at rest, a picture."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from live_visits import choose, text
from PIL import Image
from playwright.sync_api import Page
from site_visits import ROOT, SITE, Visit, next_frames

from attnbook_course.figures import COLOURS
from attnbook_course.live.figure import SCRIPTS

CHAPTER = "chapters/01-kernel-regression.html"
HOST = "#live-kernel-regression"
READY = f"{HOST}[data-ready=true]"
BOKEH = ["bokeh.min.js", "bokeh-widgets.min.js"]
BOKEH_TIMES = """() => [performance.getEntriesByType("navigation")[0].loadEventEnd,
  ...performance.getEntriesByType("resource").filter((e) => e.name.includes("/bokeh/")).map((e) => e.startTime)]"""
SAVE_DATA = "Object.defineProperty(navigator, 'connection', { value: { saveData: true, addEventListener() {} } })"
LISTEN = f"""() => {{
  const status = document.querySelector("{HOST} [role=status]");
  window.heard = [];
  new MutationObserver(() => heard.push(status.textContent)).observe(status, {{ childList: true }});
}}"""


def come_near(page: Page) -> None:
    """The figure comes when the reader does."""
    page.locator(HOST).scroll_into_view_if_needed()
    page.wait_for_selector(READY)


def bokeh(seen: Visit) -> list[str]:
    return [url.rpartition("/")[2] for url in seen.requests if "/bokeh/" in url]


def kept(page: Page) -> None:
    """Wait until the scripts are there, though not run."""
    page.wait_for_function(
        "typeof attnbookBokeh === 'object' && Object.keys(attnbookBokeh.kept).length === 2"
    )
    page.evaluate("Promise.all(Object.values(attnbookBokeh.kept))")


def test_the_scripts_come_when_the_page_rests_and_then_it_needs_no_network(
    open_page: Visit,
) -> None:
    page = open_page.go(CHAPTER)
    kept(page)
    loaded, *started = page.evaluate(BOKEH_TIMES)
    assert len(started) == 2 and min(started) >= loaded > 0
    assert page.evaluate("typeof Bokeh") == "undefined"  # nothing runs before it is wanted
    page.context.set_offline(True)
    come_near(page)
    assert bokeh(open_page) == BOKEH  # nothing twice


def test_a_figure_that_does_not_come_leaves_its_still(open_page: Visit) -> None:
    open_page.expected = "ERR_FAILED"
    open_page.page.route("**/_static/live/*", lambda route: route.abort())
    page = open_page.go(CHAPTER)
    still = page.locator(f"{HOST} .attnbook-still")
    assert still.is_visible()
    page.unroute("**/_static/live/*")
    page.evaluate("window.dispatchEvent(new Event('online'))")
    come_near(page)
    assert not still.is_visible()


def test_a_reader_who_saves_data_gets_them_with_the_figure(open_page: Visit) -> None:
    open_page.page.add_init_script(SAVE_DATA)
    page = open_page.go(CHAPTER, rest=True)
    page.evaluate("new Promise((done) => requestIdleCallback(() => requestIdleCallback(done)))")
    assert bokeh(open_page) == []
    come_near(page)
    assert bokeh(open_page) == BOKEH


@pytest.mark.parametrize("missing", BOKEH)
@pytest.mark.parametrize("way", ["online", "try again"])
def test_a_script_that_does_not_come_is_tried_again(
    open_page: Visit, missing: str, way: str
) -> None:
    open_page.expected = "ERR_FAILED|^Event$"  # a promise that nobody waits for
    open_page.page.route(f"**/{missing}", lambda route: route.abort())
    page = open_page.go(CHAPTER)
    page.locator(HOST).scroll_into_view_if_needed()
    failed = page.get_by_text("The live figure could not load.")
    failed.wait_for()
    assert page.locator(f"{HOST} .attnbook-still p").is_visible()
    button = page.get_by_role("button", name="try again")
    button.click()  # still without a network
    failed.wait_for()
    page.unroute(f"**/{missing}")
    if way == "online":
        page.evaluate("window.dispatchEvent(new Event('online'))")
    else:
        button.click()
    page.wait_for_selector(READY)
    assert failed.count() == 0
    assert not page.locator(f"{HOST} .attnbook-still").is_visible()
    assert page.get_by_role("slider", name="bandwidth h").count() == 1
    assert page.locator(f"{HOST} .bk-slider-title").count() == 2  # it was drawn once


def test_the_pages_have_the_scripts_of_this_source(site: str) -> None:
    """A figure lies in its notebook, which keeps the script that it was executed with."""
    live = (SITE / "_static" / "live").glob("*.js")
    built = "".join(file.read_text(encoding="utf-8") for file in live)
    for script in sorted((ROOT / "src" / "attnbook_course" / "live" / "static").glob("*.js")):
        text = script.read_text(encoding="utf-8")
        beside = SITE / "_static" / "models" / script.name  # what a worker loads is in no notebook
        if beside.is_file() and beside.read_text(encoding="utf-8") == text:
            continue
        quoted = json.dumps(text)[1:-1].replace("</", "<\\/")
        shared = script.name in SCRIPTS
        parts = re.split("%[A-Z_]+%", text.strip()) if shared else [quoted]
        assert all(part.strip() in built for part in parts), (
            f"the notebooks hold figures with another {script.name}: "
            "execute their chapters with tools/weave.py --force, then run make book"
        )


@pytest.mark.parametrize(
    ("path", "name", "said"),
    [
        (
            "11-weights-without-softmax",
            "estimators",
            "From 10 points, at x = 0.25, the delta rule with β",
        ),
        ("12-exact-and-fast", "parts", "12 keys in 4 parts, and nothing is combined yet."),
        ("13-many-devices", "ring", "Step 2 of 4: 3 devices compute for 2.75 ms, one waits."),
    ],
)
def test_the_chapter_shows_it(open_page: Visit, path: str, name: str, said: str) -> None:
    page = open_page.go(f"chapters/{path}.html")
    page.locator(f"#live-{name}").scroll_into_view_if_needed()
    page.wait_for_selector(f"#live-{name}[data-ready=true]")
    assert text(page).startswith(said)


@pytest.fixture
def figure(open_page: Visit) -> Page:
    """The chapter with its live figure on the screen."""
    open_page.page.clock.install()
    page = open_page.go(CHAPTER)
    come_near(page)
    return page


def test_the_sentence_is_heard_when_the_handle_rests(figure: Page) -> None:
    """The page's clock is the test's: a busy machine does not rest in between."""
    figure.clock.pause_at(figure.evaluate("Date.now()") / 1000 + 60)
    status = figure.locator(f"{HOST} [role=status]")
    assert status.text_content() == ""  # nothing was moved
    figure.evaluate(LISTEN)
    slider = figure.get_by_role("slider", name="query x")
    for _ in range(5):
        slider.press("ArrowRight")
        figure.clock.run_for(500)
    assert figure.evaluate("heard") == []
    figure.clock.run_for(200)
    assert figure.evaluate("heard") == [text(figure)]
    assert "at x = −0.45 " in status.text_content()
    figure.clock.run_for(5_000)
    assert len(figure.evaluate("heard")) == 1


def test_the_picture_is_what_is_seen(figure: Page) -> None:
    button = figure.get_by_role("button", name="save as PNG")
    button.focus()
    pictures = []
    for position in (-0.5, 1.5):
        choose(figure, position=position)
        next_frames(figure)
        with figure.expect_download() as download:
            figure.keyboard.press("Enter")
        assert download.value.suggested_filename == "live-kernel-regression.png"
        with Image.open(download.value.path()) as image:
            pictures.append(np.asarray(image.convert("RGB")).astype(int))
    first, second = pictures
    boxes = [box for box in figure.locator(f"{HOST} .bk-Figure").all() if box.is_visible()]
    widths = {round((box.bounding_box() or {})["width"]) for box in boxes}
    assert len(boxes) == 2 and first.shape[1] - 24 in widths
    assert (first[[0, 0, -1, -1], [0, -1, 0, -1]] == 255).all()  # on white
    orange, blue = (
        [int(COLOURS[name][i : i + 2], 16) for i in (1, 3, 5)] for name in ("weights", "estimate")
    )
    assert (np.abs(first - blue).max(axis=2) < 12).sum() > 500  # the estimate
    at = [
        np.median(np.nonzero((np.abs(p - orange).max(axis=2) < 12).any(axis=0))[0])
        for p in pictures
    ]
    assert at[1] - at[0] > 100  # the query has moved to the right
    words = [p[12:60].min(axis=2) < 90 for p in pictures]
    assert all(w.sum() > 200 for w in words) and (words[0] != words[1]).any()
    assert second.shape == first.shape
