"""The doors: on a phone's first screen, done with the keyboard, in a page of another origin; and their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page
from site_visits import ROOT, SITE, WIDTHS, Visit, served
from test_site_pages import axe_findings

from attnbook import attend, causal_mask, scores, softmax
from attnbook.layers import norms

NAMES = [file.stem for file in sorted((ROOT / "doors").glob("*.js")) if file.stem != "door"]
phone = pytest.mark.parametrize(
    "open_page", [{"viewport": WIDTHS["phone"], "has_touch": True}], indirect=True, ids=[""]
)


@pytest.mark.parametrize("name", NAMES)
def test_a_door_tells_its_question_to_whoever_gets_a_link_and_has_a_card(name: str) -> None:
    html = (SITE / "doors" / f"{name}.html").read_text("utf-8")
    question = html.partition("<h1>")[2].partition("</h1>")[0]
    assert f'<meta property="og:title" content="{question}" />' in html
    assert (SITE / "_static" / "doors" / f"{name}.png").is_file()


def slide(page: Page, label: str, key: str, times: int = 1) -> None:
    """Press a key on a slider."""
    control = page.locator("#controls label", has_text=label).locator("input")
    for _ in range(times):
        control.press(key)


def choose(page: Page, words: str) -> None:
    """Take one of some words."""
    page.locator("fieldset label", has_text=words).locator("input").press("Space")


def press(page: Page, words: str, times: int = 1) -> None:
    """Press a button, with the keyboard."""
    for _ in range(times):
        page.get_by_role("button", name=words, exact=True).press("Enter")


def average(page: Page) -> Iterator[None]:
    slide(page, "query", "ArrowLeft", 22)
    yield
    choose(page, "as attention")


def two_matrices(page: Page) -> Iterator[None]:
    slide(page, "turns by", "ArrowRight", 23)
    yield
    slide(page, "turns by", "ArrowRight")


def square_root(page: Page) -> Iterator[None]:
    slide(page, "width", "End")
    yield
    choose(page, "divided")


def mask(page: Page) -> Iterator[None]:
    press(page, "crown")
    choose(page, "no later word")
    yield
    press(page, "throne")


def heads(page: Page) -> Iterator[None]:
    for _ in range(2):  # 3 and 7, 4 and 6, 5 and 5
        slide(page, "word before", "ArrowRight")
        slide(page, "word after", "ArrowLeft")
    yield
    choose(page, "two heads")


def block(page: Page) -> Iterator[None]:
    slide(page, "after block", "ArrowRight", 4)
    yield
    choose(page, "replaces")


def cache(page: Page) -> Iterator[None]:
    press(page, "Write a word", 9)
    choose(page, "kept")
    yield
    press(page, "Write a word", 12)


def hull(page: Page) -> Iterator[None]:
    slide(page, "to the right", "ArrowRight", 16)
    slide(page, "up", "ArrowRight", 16)
    yield
    choose(page, "each ten")


# Each stops once, before its last step.
TASKS: dict[str, Callable[[Page], Iterator[None]]] = {
    one.__name__.replace("_", "-"): one
    for one in (average, two_matrices, square_root, mask, heads, block, cache, hull)
}


@phone
@pytest.mark.parametrize("name", NAMES)
def test_a_door_is_one_screen_of_a_phone_and_its_task_can_be_done_with_keys(
    open_page: Visit, name: str
) -> None:
    """What it asks for is done when all of it was done, and not before; one file is all it loads."""
    page = open_page.go(f"doors/{name}.html")
    task = page.locator("#task")
    assert task.get_attribute("class") is None
    assert (
        task.bounding_box()["y"] + task.bounding_box()["height"] < 760
    )  # the rest is for other fonts
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("performance.getEntriesByType('resource').length") == 0
    assert len(page.content().encode()) < 40_000
    for _ in TASKS[name](page):
        assert task.get_attribute("class") is None
    assert task.get_attribute("class") == "done", page.inner_text("#said")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert axe_findings(page) == []
    assert "✓" in page.locator("#seen").inner_text()
    assert not open_page.faults


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_figure_stands_in_a_page_of_another_origin(
    open_page: Visit, browser: Browser, tmp_path: Path, scheme: str
) -> None:
    """The line that a door offers works there with the keyboard, as dark as the device or as it says."""
    line = open_page.go("doors/hull.html").locator("#line").text_content() or ""
    other = {"light": "dark", "dark": "light"}[scheme]
    fixed = line.replace(".html", f".html?mode={other}").replace('loading="lazy" ', "")
    (tmp_path / "blog.html").write_text(line + fixed, "utf-8")
    with served(tmp_path) as address:
        page = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(f"{address}/blog.html")
        assert page.url.split("/")[2] != open_page.page.url.split("/")[2]
        for figure, shown in zip(page.frames[1:], (scheme, other), strict=True):
            figure.locator("#task").wait_for()
            ground = figure.evaluate("getComputedStyle(document.body).backgroundColor")
            assert ground == {"light": "rgb(253, 252, 249)", "dark": "rgb(21, 24, 28)"}[shown]
        list(TASKS["hull"](figure))  # type: ignore[arg-type]  # a frame has what a page has
        assert figure.locator("#task").get_attribute("class") == "done"
        for width in (1280, 340):  # all of it shows
            page.set_viewport_size({"width": width, "height": 1000})
            assert figure.evaluate("document.documentElement.scrollHeight") <= 480
        page.close()


def test_the_numbers_of_the_doors_are_the_package_s(open_page: Visit) -> None:
    """Attention's weights with a mask, a block with its sum, and a kernel's weights as a softmax."""
    rng = np.random.default_rng(0)
    page = open_page.go("doors/mask.html")
    rows = rng.normal(size=(6, 4))
    q, k = (np.array(page.evaluate(f"W_{one}")) for one in "qk")
    for masked in (False, True):
        own = page.evaluate(
            "([rows, masked]) => self_weights(rows, masked)", [rows.tolist(), masked]
        )
        allowed = causal_mask(6, rows) if masked else np.ones((6, 6), bool)
        expected = attend(rows @ q.T, rows @ k.T, np.eye(6), mask=allowed)
        assert_allclose(own, expected, rtol=1e-12)
    count = """[false, true].map((masked) => [...Array(6).keys()].map((at) => {
      const words = (one) => WORDS.map((word, j) => of_word.get(j === at && one ? OTHER[j] : word));
      const [a, b] = [false, true].map((one) => outputs(words(one), masked));
      return a.filter((row, i) => row.some((entry, axis) => entry !== b[i][axis])).length;
    }))"""  # how many outputs change with each word
    assert page.evaluate(count) == [[6] * 6, [6, 5, 4, 3, 2, 1]]
    page = open_page.go("doors/average.html")
    keys, at = np.linspace(-2, 2, 9), 0.3
    own = page.evaluate("([keys, at]) => attention_weights(keys, at, 0.4)", [keys.tolist(), at])
    expected = softmax(scores.gaussian_score(np.array([[at]]), keys[:, None], 0.4))[0]
    assert_allclose(own, expected, rtol=1e-12)
    page = open_page.go("doors/block.html")
    rows = rng.normal(size=(6, 12))
    made = page.evaluate("random_block(normal(4))")
    part = {name: np.array(matrix) for name, matrix in made.items()}

    def attention(x: np.ndarray) -> np.ndarray:
        return attend(x @ part["q"].T, x @ part["k"].T, x @ part["v"].T) @ part["o"].T

    def mlp(x: np.ndarray) -> np.ndarray:
        return np.maximum(x @ part["hidden"].T, 0) @ part["output"].T

    def expected_of(keep: int) -> np.ndarray:
        x = keep * rows + attention(norms.layer_norm(rows))
        return keep * x + mlp(norms.layer_norm(x))

    for keep in (0, 1):
        given = [rows.tolist(), made, bool(keep)]
        own = page.evaluate("([rows, block, adds]) => through(rows, [block], adds)[1]", given)
        assert_allclose(own, expected_of(keep), rtol=1e-9, atol=1e-12)
    alike = page.evaluate("""[true, false].map((adds) => [...Array(8).keys()].map((seed) => {
      const next = normal(seed), start = Array.from({ length: 6 }, () => Array.from({ length: WIDTH }, next));
      return likeness(through(start, Array.from({ length: 4 }, () => random_block(next)), adds)[4]);
    }))""")
    with_sum, without = alike  # at block 4, of eight seeds, as the text says
    assert max(with_sum) < 0.9 and min(without) > 0.99, alike
