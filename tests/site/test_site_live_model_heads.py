"""The live figure of a real model's heads shows its weights, and the means that Python gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page
from test_site_live import READ, SET, WORDS
from test_site_live_attention import VALUE
from test_site_live_models import TEXT, nothing
from test_site_live_pages import alone

from attnbook.course import live
from attnbook.course.live import weights

GIVEN = weights.load("smollm2").sentences
ALL_THERE = """() => {
  const { cases } = Bokeh.documents.at(-1).get_model_by_name("update").args;
  return cases.data.units.every((one) => one.length);
}"""
# where a place of a plot is on the screen: 0 the map, 1 the arcs, 2 the matrix
PLACE = """([plot, x, y]) => {
  const views = [...Bokeh.index.query((v) => v.model.type === "Figure")];
  views.sort((a, b) => a.el.getBoundingClientRect().y - b.el.getBoundingClientRect().y);
  const { el, frame } = views[plot], box = el.getBoundingClientRect();
  return [box.x + frame.x_scale.compute(x), box.y + frame.y_scale.compute(y)];
}"""


def means(sentence: live.Sentence) -> dict[str, np.ndarray | None]:
    """Of every head, (layers, heads), by three loops over the tokens."""
    tokens, w = sentence.tokens, np.asarray(sentence.weights)
    n = len(tokens)
    followed = {
        i: [j + 1 for j in range(i) if tokens[j] == tokens[i]]
        for i in range(n)
        if tokens[i] in tokens[:i]
    }
    looks = [sum(w[:, :, i, j] for j in keys) for i, keys in followed.items()]
    return {
        "first": np.mean([w[:, :, i, 0] for i in range(1, n)], axis=0),
        "before": np.mean([w[:, :, i, i - 1] for i in range(2, n)], axis=0),
        "followed": np.mean(looks, axis=0) if looks else None,
    }


@pytest.fixture(scope="module")
def heads(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The figure on the screen, all sentences loaded; every test sets what it reads."""
    figure = live.model_heads("smollm2", head=(17, 1))
    with alone(browser, tmp_path_factory.mktemp("heads"), figure) as seen:
        seen.page.wait_for_function(ALL_THERE)
        yield seen.page
        assert seen.complaints == []


def choose(page: Page, **values: float | str) -> None:
    for name, value in values.items():
        page.evaluate(SET, [name, value])


@pytest.mark.parametrize("number", range(len(GIVEN)))
def test_the_map_is_pythons(heads: Page, number: int) -> None:
    choose(heads, sentence=str(number), layer=19, head=7)
    for measure, expected in means(GIVEN[number]).items():
        choose(heads, measure=measure)
        cells, said = heads.evaluate(READ, "all"), heads.evaluate(WORDS)
        drawn = np.zeros((30, 9))
        drawn[np.array(cells["x"]) - 1, np.array(cells["y"]) - 1] = cells["weight"]
        if expected is None:
            assert said.endswith("No token of this sentence comes twice, so no head can look at what followed.")  # fmt: skip
            continue
        assert_allclose(drawn, expected, atol=1e-6)
        assert f" {(expected > 0.5).sum()} of 270 heads put more than half" in said
        assert f"{expected[18, 6]:.2f} on " in said


@pytest.mark.parametrize(("layer", "head", "token"), [(17, 1, 12), (19, 7, 17), (1, 9, 1)])
def test_a_heads_weights_are_the_models(heads: Page, layer: int, head: int, token: int) -> None:
    choose(heads, sentence="2", measure="first", layer=layer, head=head, token=token)
    sentence = GIVEN[2]
    w = np.asarray(sentence.weights)[layer - 1, head - 1]
    cells = heads.evaluate(READ, "cells")
    drawn = np.zeros_like(w)
    drawn[np.array(cells["y"]) - 1, np.array(cells["x"]) - 1] = cells["weight"]
    assert_allclose(drawn, w, atol=1e-6)
    assert len(cells["x"]) == 17 * 18 / 2  # nothing above the diagonal
    row = w[token - 1, :token]
    dots, arcs = heads.evaluate(READ, "dots"), heads.evaluate(READ, "arcs")
    assert_allclose(np.square(dots["size"]) / 18**2, row, atol=1e-6)  # its area is the weight
    assert arcs["end"] == [j + 1 for j in range(token - 1) if row[j] > 0.02]
    assert_allclose(arcs["width"], [max(0.7, 8 * row[j - 1]) for j in arcs["end"]], atol=1e-5)
    best = int(row.argmax())
    text = heads.evaluate(WORDS)
    assert text.startswith(f"Head {layer}.{head}: the token '{sentence.tokens[token - 1].strip()}'")
    assert re.search(rf"attends to '{sentence.tokens[best].strip()}'[^,]* {row[best]:.2f}", text)


def test_a_tap_on_the_map_chooses_a_head(heads: Page) -> None:
    choose(heads, sentence="0", layer=1, head=1)
    heads.mouse.click(*heads.evaluate(PLACE, [0, 24.3, 2.8]))
    assert [heads.evaluate(VALUE, name) for name in ("layer", "head")] == [24, 3]
    assert heads.evaluate(READ, "chosen") == {"x": [24], "y": [3]}
    assert heads.evaluate(WORDS).startswith("Head 24.3: ")


def test_a_tap_chooses_a_token_and_a_pointer_only_shows_it(heads: Page) -> None:
    choose(heads, sentence="0", layer=17, head=1, token=16)
    for plot, x, y in ((1, 9.2, 0.3), (2, 3, 8.9)):
        heads.mouse.move(*heads.evaluate(PLACE, [plot, x, y]))
        heads.wait_for_function(f"{WORDS}.includes(\"the token 'the' (9th of 16)\")")
        assert heads.evaluate(READ, "frame")["y"] == [9]
        assert heads.evaluate(VALUE, "token") == 16
        heads.mouse.move(2, 2)
        heads.wait_for_function(f"{WORDS}.includes('(16th of 16)')")
    heads.mouse.click(*heads.evaluate(PLACE, [1, 5.8, 0.3]))
    assert heads.evaluate(VALUE, "token") == 6
    heads.mouse.click(*heads.evaluate(PLACE, [2, 2.1, 12.8]))
    assert heads.evaluate(VALUE, "token") == 13
    assert "the token 'sun' (13th of 16)" in heads.evaluate(WORDS)


def test_a_button_finds_the_strongest_head(heads: Page) -> None:
    for number, measure in (("2", "followed"), ("0", "before"), ("1", "first")):
        choose(heads, sentence=number, measure=measure, layer=1, head=1)
        heads.get_by_role("button", name="the head with the largest").click()
        found = means(GIVEN[int(number)])[measure]
        assert found is not None
        layer, head = (heads.evaluate(VALUE, name) for name in ("layer", "head"))
        assert found[layer - 1, head - 1] == pytest.approx(found.max(), abs=1e-6)


def test_the_keyboard_moves_everything_and_sliders_say_their_token(heads: Page) -> None:
    choose(heads, sentence="3", layer=4, head=5, token=5)
    sliders = {name: heads.get_by_role("slider", name=name) for name in ("layer", "head", "token")}
    assert sliders["token"].get_attribute("aria-valuetext") == "3"
    for slider in sliders.values():
        slider.press("ArrowRight")
    assert [heads.evaluate(VALUE, name) for name in sliders] == [5, 6, 6]
    choose(heads, token=13)
    assert sliders["token"].get_attribute("aria-valuetext") == "⏎"
    heads.get_by_role("combobox", name="sentence").select_option(GIVEN[0].title)
    assert heads.evaluate(VALUE, "token") == 16
    assert sliders["token"].get_attribute("aria-valuetext") == "."
    heads.get_by_role("combobox", name="colour of a head").select_option("the token before")
    assert "on the token before." in heads.evaluate(WORDS)


def cut(folder: Path) -> None:
    """A file that is not whole."""
    (folder / "_static" / "models").mkdir()
    (folder / "_static" / "models" / "smollm2.weights").write_bytes(b"\2" + bytes(30))


@pytest.mark.parametrize(
    ("prepare", "in_notebook", "reason"),
    [
        (nothing, False, "The other sentences could not be loaded: the host answers 404."),
        (cut, False, "The other sentences could not be loaded: it does not fit this figure."),
        (nothing, True, "Only the book's website can load the other sentences."),
    ],
)
def test_without_the_file_the_first_sentence_stands(
    browser: Browser,
    tmp_path: Path,
    prepare: Callable[[Path], None],
    in_notebook: bool,
    reason: str,
) -> None:
    figure = live.model_heads("smollm2")
    with alone(browser, tmp_path, figure, prepare=prepare, in_notebook=in_notebook) as seen:
        page = seen.page
        page.get_by_role("combobox", name="sentence").select_option(GIVEN[2].title)
        page.wait_for_function("Bokeh.documents[0].get_model_by_name('notice').visible")
        told = f"{reason} In Python, live.model_heads('smollm2', whole=True) shows all sentences."
        assert page.evaluate(TEXT, "notice") == told
        assert page.evaluate(VALUE, "sentence") == "0"
        choose(page, layer=17, head=1)
        assert "(16th of 16) attends to 'down' 0.62" in page.evaluate(WORDS)


def test_a_notebook_can_hold_all_sentences(browser: Browser, tmp_path: Path) -> None:
    figure = live.model_heads("smollm2", whole=True)
    assert len(figure._repr_html_()) < 400_000
    with alone(browser, tmp_path, figure, prepare=nothing, in_notebook=True) as seen:
        choose(seen.page, sentence="3", layer=19, head=7)
        assert "(22nd of 22) attends to '5' 0.91" in seen.page.evaluate(WORDS)
        assert seen.complaints == []
