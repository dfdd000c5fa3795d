"""Drawings that move: their buttons, keys and fingers, and what is left without a script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from firefox import Firefox
from playwright.sync_api import Page, expect
from site_visits import ROOT, Visit, served, without_script
from slides.clicks import in_clicks
from test_site_extension import built_book

from attnbook_course import drawings

SCRIPT = ROOT / "_ext/attnbook_site/static/moving.js"
BOOK = """# A page

Words above.

```{figure} images/steps.svg
:alt: An average in steps.

The steps.
```

Words between.

```{figure} images/words.svg
:alt: A sentence whose words ask.

The words.
```

```{figure} images/still.svg
:alt: A still drawing.

Still.
```
"""
HEADS = "# Heads\n\n```{figure} images/heads.svg\n:alt: Three heads.\n\nThree heads.\n```\n"
STILL = "# Another\n\n```{figure} images/still.svg\n:alt: A still drawing.\n\nStill.\n```\n"
TOC = "format: jb-book\nroot: index\nchapters:\n  - file: still\n  - file: heads\n"
SHOWN = """[...document.querySelectorAll("[data-step]")]
  .filter((one) => getComputedStyle(one).visibility === "visible").map((one) => one.dataset.step)"""
PLACES = """[...document.querySelectorAll(".moving, .moving-stage, figcaption, .moving-controls > *")]
  .map((one) => { const { x, y, width, height } = one.getBoundingClientRect();
    return [x, y + scrollY, width, height].map((side) => Math.round(side)); })"""
SWIPE = """([dx, dy]) => {
  const stage = document.querySelector(".moving-steps .moving-stage");
  const fire = (type, x, y) => stage.dispatchEvent(new PointerEvent(type,
    { bubbles: true, isPrimary: true, pointerType: "touch", clientX: x, clientY: y }));
  fire("pointerdown", 200, 200);
  fire("pointerup", 200 + dx, 200 + dy);
}"""
SHIFT = """new Promise((done) => new PerformanceObserver((list) => done(list.getEntries()
  .reduce((sum, one) => sum + one.value, 0))).observe({ type: "layout-shift", buffered: true })
  || setTimeout(() => done(0), 500))"""
DRAWN = """(() => {
  const svg = document.querySelector(".moving-steps svg").cloneNode(true);
  for (const one of svg.querySelectorAll("[data-shown]")) one.removeAttribute("data-shown");
  return svg.innerHTML;
})()"""
SHARES = """[...document.querySelectorAll(".moving-words circle")].map((one) =>
  (one.getAttribute("r") / document.querySelector("[data-radius]").dataset.radius) ** 2)"""
HEIGHTS = """[...document.querySelectorAll('[data-shown] rect')].map((one) => one.getAttribute("height"))"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A book of two pages, one with drawings that move."""
    folder = tmp_path_factory.mktemp("moving") / "book"
    source = folder.with_name("source")
    (source / "images").mkdir(parents=True)
    texts = {
        "images/steps.svg": drawings.average_in_steps(2).svg,
        "images/words.svg": drawings.sentence().svg,
        "images/still.svg": drawings.cache().svg,
        "images/heads.svg": drawings.sentence([(12, 2), (17, 1), (14, 9)], token=14).svg,
        "index.md": BOOK,
        "still.md": STILL,
        "heads.md": HEADS,
        "_toc.yml": TOC,
        "references.bib": "",
    }
    for name, text in texts.items():
        (source / name).write_text(text, encoding="utf-8")
    with served(built_book(folder, source)) as address:
        yield address


@pytest.fixture
def page(open_page: Visit) -> Page:
    """The page with a drawing in four steps and a sentence."""
    return open_page.go("index.html", rest=True)


def buttons(page: Page) -> tuple[Any, Any, Any]:
    """Back, next, and the line that says which step is shown."""
    box = page.locator(".moving-steps")
    return (
        box.get_by_role("button", name="Back"),
        box.get_by_role("button", name="Next"),
        box.locator("[aria-live]"),
    )


def all_below_each_other(page: Page) -> None:
    """All four steps stand in the drawing, and nothing is there that goes through them."""
    svg = page.locator(".moving-steps svg")
    box = svg.bounding_box()
    assert box["height"] > 500
    assert page.evaluate(SHOWN) == ["1", "2", "3", "4"]
    for number in range(1, 5):
        inner = page.locator(f"[data-step='{number}']").bounding_box()
        assert box["y"] <= inner["y"] < inner["y"] + inner["height"] <= box["y"] + box["height"]
    assert not page.locator(".moving-controls").is_visible()


def test_the_script_is_small_and_comes_where_it_is_needed(open_page: Visit) -> None:
    assert SCRIPT.stat().st_size < 8_000
    for path, times in (("index.html", 1), ("still.html", 0)):
        open_page.requests.clear()
        open_page.go(path, rest=True)
        assert len([url for url in open_page.requests if "moving.js" in url]) == times
    assert open_page.page.locator("svg[data-drawing=cache]").count() == 1
    assert open_page.page.locator(".moving").count() == 0  # a still drawing has no box


def test_buttons_go_through_the_steps(page: Page) -> None:
    back, forth, said = buttons(page)
    expect(said).to_have_text("Step 1 of 4: scores")
    expect(back).to_have_attribute("aria-disabled", "true")
    for number, name in enumerate(("exponentials", "weights", "weighted sum"), 2):
        forth.click()
        expect(said).to_have_text(f"Step {number} of 4: {name}")
        assert page.evaluate(SHOWN) == [str(number)]
    expect(forth).to_have_attribute("aria-disabled", "true")
    forth.click(force=True)
    expect(said).to_have_text("Step 4 of 4: weighted sum")
    back.click()
    expect(said).to_have_text("Step 3 of 4: weights")


def test_keys_go_through_the_steps_where_the_focus_is(page: Page) -> None:
    said = buttons(page)[2]
    page.keyboard.press("ArrowRight")
    expect(said).to_have_text("Step 1 of 4: scores")
    page.locator(".moving-steps .moving-stage").focus()
    presses = {"ArrowRight": 2, "End": 4, "ArrowLeft": 3, "Home": 1, "Alt+ArrowRight": 1}
    for key, number in presses.items():  # the last is the browser's
        page.keyboard.press(key)
        expect(said).to_contain_text(f"Step {number} of 4")


@pytest.mark.parametrize(
    ("moves", "number"),
    [
        ([(-80, 5)], 2),
        ([(-80, 5), (-80, 5), (80, 5)], 2),
        ([(80, 0)], 1),
        ([(3, 2)], 2),
        ([(0, 0)] * 4, 1),
        ([(-40, 90)], 1),
        ([(-20, 0)], 1),
    ],
)
def test_fingers_go_through_the_steps(
    page: Page, moves: list[tuple[int, int]], number: int
) -> None:
    """A swipe to the left goes on, one to the right back, a tap on and round; others scroll."""
    for move in moves:
        page.evaluate(SWIPE, move)
    expect(buttons(page)[2]).to_contain_text(f"Step {number} of 4")


def test_bars_become_dots_and_end_where_they_are_drawn(page: Page) -> None:
    """On the way they are neither; at the end every number is that of the drawing."""
    drawn = page.evaluate(DRAWN)
    page.evaluate("document.querySelector('.moving-steps [data-go=\"1\"]').click()")
    seen = page.evaluate(
        f"""() => new Promise((done) => {{
          const heights = [];
          const look = () => {{
            heights.push({HEIGHTS}.join());
            if (performance.now() - began > 700) done(heights); else requestAnimationFrame(look);
          }};
          const began = performance.now();
          look();
        }})"""
    )
    assert len(set(seen)) > 2
    page.wait_for_function("document.querySelectorAll('[data-shown] [opacity]').length === 0")
    assert page.evaluate(DRAWN) == drawn


@pytest.mark.parametrize("open_page", [{"reduced_motion": "reduce"}], indirect=True)
def test_without_motion_the_next_step_is_there_at_once(page: Page) -> None:
    (before, after, final) = page.evaluate(
        f"""() => {{
          const before = {HEIGHTS}.join();
          document.querySelector('.moving-steps [data-go="1"]').click();
          const after = {HEIGHTS}.join();
          return new Promise((done) => setTimeout(() => done([before, after, {HEIGHTS}.join()]), 600));
        }}"""
    )
    assert before != after == final


@pytest.mark.parametrize(
    "open_page",
    [{"viewport": {"width": width, "height": 800}} for width in (320, 390, 768, 1440)],
    indirect=True,
)
def test_nothing_shifts(page: Page) -> None:
    """Neither when the script comes, nor from step to step or word to word."""
    assert page.evaluate(SHIFT) < 0.02
    before = page.evaluate(PLACES)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for one in [buttons(page)[1]] * 3 + page.locator("[data-token]").all()[::5]:
        one.click()
        assert page.evaluate(PLACES) == before


@without_script
def test_without_a_script_all_steps_stand_below_each_other(page: Page) -> None:
    all_below_each_other(page)
    assert "“his” reads man 0.63" in page.locator(".moving-words svg").text_content()


@pytest.mark.parametrize("script", ["", "let = ;", "throw new Error('mine')"])
def test_where_the_script_alone_fails_all_steps_show(open_page: Visit, script: str) -> None:
    """It does not load, is not understood, or stops; the other scripts run."""
    open_page.expected = "ERR_FAILED|Unexpected token|mine"
    answer = {"body": script, "content_type": "text/javascript"}
    open_page.page.route(
        "**/moving.js*", lambda route: route.fulfill(**answer) if script else route.abort()
    )
    page = open_page.go("index.html")
    assert page.evaluate("document.documentElement.dataset.backend") == "torch"
    all_below_each_other(page)


def test_on_paper_all_steps_stand_below_each_other(page: Page) -> None:
    buttons(page)[1].click()
    page.emulate_media(media="print")
    all_below_each_other(page)


def test_words_say_what_they_read(page: Page) -> None:
    """Under the mouse, after a click, and by keys; one stop for the tab key."""
    box = page.locator(".moving-words")
    said, line = box.locator(".moving-said"), box.locator("[data-part=said]")
    words = box.get_by_role("button")
    assert words.count() == 16
    expect(words.nth(5)).to_have_attribute("aria-pressed", "true")
    assert box.locator("[tabindex='0']").count() == 1
    words.nth(13).hover()
    expect(said).to_have_text("“went” reads sun 1.00")
    expect(line).to_have_text("“went” reads sun 1.00")
    words.nth(4).click()
    expect(said).to_have_text("“walked” reads man 0.72, <s> 0.12, old 0.10")
    words.nth(4).focus()
    page.mouse.move(0, 0)
    page.keyboard.press("ArrowRight")
    expect(said).to_have_text("“his” reads man 0.63, <s> 0.26, old 0.05")
    for key in ("End", "ArrowRight"):
        page.keyboard.press(key)
        expect(words.nth(15)).to_be_focused()
    assert box.locator("[tabindex='0']").count() == 1


@pytest.mark.parametrize(
    ("path", "token", "heads", "said"),
    [
        ("index.html", 7, [(14, 9)], []),
        (
            "heads.html",
            5,
            [(12, 2), (17, 1), (14, 9)],
            ["layer 17, head 1: “his” reads walked 0.78", "layer 14, head 9: “his” reads man 0.63"],
        ),
    ],
)
def test_dots_are_as_large_as_the_weights(
    open_page: Visit, path: str, token: int, heads: list[tuple[int, int]], said: list[str]
) -> None:
    """Of several heads all rows change at once, and are said."""
    page = open_page.go(path, rest=True)
    page.emulate_media(reduced_motion="reduce")
    page.locator(f"[data-token='{token}']").click()
    expect(page.locator(f"[data-token='{token}']")).to_have_attribute("aria-pressed", "true")
    sizes = page.evaluate(SHARES)
    expected = [drawings.words_read.weights_of(*head)[token] for head in heads]
    assert sizes == pytest.approx(np.ravel(expected, order="F").tolist(), abs=1e-6)
    for words in said:
        expect(page.locator(".moving-said")).to_contain_text(words)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_who_listens_hears_the_drawing_and_its_steps(page: Page) -> None:
    heard = page.locator(".moving-steps").aria_snapshot()
    for words in ("A drawing in 4 steps", "An average in steps.", "Step 1 of 4: scores", "Next"):
        assert words in heard
    for live in page.locator(".moving [aria-live]").all():
        assert live.get_attribute("aria-live") == "polite"


def test_steps_take_the_same_place_in_firefox(firefox: Firefox, site: str) -> None:
    firefox.resize(390, 800)
    firefox.go(f"{site}/index.html")
    firefox.wait("return document.querySelector('.moving-steps').dataset.now === '1'")
    place = "return document.querySelector('[data-shown]').getBoundingClientRect().top"
    before = firefox.run(place)
    firefox.tap("[data-go='1']")
    firefox.wait("return document.querySelector('.moving-steps').dataset.now === '2'")
    assert firefox.run(place) == pytest.approx(before, abs=12)  # its highest label
    assert firefox.run(f"return {SHOWN}") == ["2"]
    firefox.tap("[data-token='13']")
    firefox.wait("return document.querySelector('.moving-said').textContent.includes('sun 1.00')")


def test_in_a_deck_each_step_is_a_click(blank: Page) -> None:
    """All groups are fragments; their own cuts, and no other."""
    blank.set_content(in_clicks(drawings.average_in_steps(1), []))
    assert blank.locator("g.fragment").count() == 4
    assert blank.locator("svg > text").count() > 6  # query and keys are there from the beginning
    with pytest.raises(LookupError, match="average_in_steps comes in its own 4 steps"):
        in_clicks(drawings.average_in_steps(1), ["weights"])
