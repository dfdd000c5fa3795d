"""The live figure of a real model's heads shows its weights, and the means that Python gives."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from live_visits import FIND, alone, choose, matrix, place, read, says, tap, text, value
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page
from test_site_live_models import nothing

from attnbook_course import live
from attnbook_course.live import weights

GIVEN = weights.load("smollm2").sentences
NOTHING_TWICE = "No token of this sentence comes twice, so no head can look at what followed."
ALL_THERE = f"() => {FIND}('update').args.cases.data.units.every((one) => one.length)"


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


def shown() -> live.LiveFigure:
    return live.model_heads("smollm2", head=(17, 1))


@pytest.fixture(scope="module")
def heads(page: Page) -> Page:
    page.wait_for_function(ALL_THERE)
    return page


@pytest.mark.parametrize("number", range(len(GIVEN)))
def test_the_map_is_pythons(heads: Page, number: int) -> None:
    choose(heads, sentence=str(number), layer=19, head=7)
    for measure, expected in means(GIVEN[number]).items():
        choose(heads, measure=measure)
        said = text(heads)
        if expected is None:
            assert said.endswith(NOTHING_TWICE)
            continue
        assert_allclose(matrix(heads, "all", (9, 30)).T, expected, atol=1e-6)
        assert f" {(expected > 0.5).sum()} of 270 heads put more than half" in said
        assert f"{expected[18, 6]:.2f} on " in said
        assert measure != "before" or "on the token before." in said


@pytest.mark.parametrize(("layer", "head", "token"), [(17, 1, 12), (19, 7, 17), (1, 9, 1)])
def test_a_heads_weights_are_the_models(heads: Page, layer: int, head: int, token: int) -> None:
    choose(heads, sentence="2", measure="first", layer=layer, head=head, token=token)
    sentence = GIVEN[2]
    w = np.asarray(sentence.weights)[layer - 1, head - 1]
    drawn = matrix(heads, "cells", w.shape)
    below = np.tri(len(w), dtype=bool)
    assert_allclose(drawn[below], w[below], atol=1e-6)
    assert np.isnan(drawn[~below]).all()
    row = w[token - 1, :token]
    dots, arcs = read(heads, "dots"), read(heads, "arcs")
    assert_allclose(np.square(dots["size"]) / 18**2, row, atol=1e-6)  # its area is the weight
    assert arcs["end"] == [j + 1 for j in range(token - 1) if row[j] > 0.02]
    assert_allclose(arcs["width"], [max(0.7, 8 * row[j - 1]) for j in arcs["end"]], atol=1e-5)
    best = int(row.argmax())
    said = text(heads)
    assert said.startswith(f"Head {layer}.{head}: the token '{sentence.tokens[token - 1].strip()}'")
    assert re.search(rf"attends to '{sentence.tokens[best].strip()}'[^,]* {row[best]:.2f}", said)


def test_a_tap_on_the_map_chooses_a_head(heads: Page) -> None:
    choose(heads, sentence="0", layer=1, head=1)
    tap(heads, 24.3, 2.8)
    assert value(heads, "layer", "head") == [24, 3]
    assert read(heads, "chosen") == {"x": [24], "y": [3]}
    assert text(heads).startswith("Head 24.3: ")


@pytest.mark.parametrize(
    ("plot", "pointer", "at", "number"),
    [(1, (9.2, 0.3), (5.8, 0.3), 6), (2, (3, 8.9), (2.1, 12.8), 13)],
)
def test_a_tap_chooses_a_token_and_a_pointer_only_shows_it(
    heads: Page, plot: int, pointer: tuple[float, float], at: tuple[float, float], number: int
) -> None:
    """On the arcs and on the matrix."""
    choose(heads, sentence="0", layer=17, head=1, token=16)
    heads.mouse.move(*place(heads, *pointer, plot))
    says(heads, "the token 'the' (9th of 16)", how="includes")
    assert read(heads, "frame")["y"] == [9]
    assert value(heads, "token") == 16
    heads.mouse.move(2, 2)
    says(heads, "(16th of 16)", how="includes")
    tap(heads, *at, plot)
    assert value(heads, "token") == number
    token = GIVEN[0].tokens[number - 1].strip()
    assert f"the token '{token}' ({number}th of 16)" in text(heads)


def test_a_button_finds_the_strongest_head(heads: Page) -> None:
    for number, measure in (("2", "followed"), ("0", "before"), ("1", "first")):
        choose(heads, sentence=number, measure=measure, layer=1, head=1)
        heads.get_by_role("button", name="the head with the largest").click()
        found = means(GIVEN[int(number)])[measure]
        assert found is not None
        layer, head = value(heads, "layer", "head")
        assert found[layer - 1, head - 1] == pytest.approx(found.max(), abs=1e-6)


@pytest.mark.parametrize(("sentence", "token", "said"), [(3, 5, "3"), (3, 13, "⏎"), (0, 16, ".")])
def test_the_slider_says_its_token(heads: Page, sentence: int, token: int, said: str) -> None:
    """And the last one, where a sentence is too short for the one that was chosen."""
    choose(heads, sentence="3", token=22 if sentence == 0 else token)
    choose(heads, sentence=str(sentence))
    assert value(heads, "token") == token
    slider = heads.get_by_role("slider", name="token")
    assert slider.get_attribute("aria-valuetext") == said


def cut(folder: Path) -> None:
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
        page, seen.expected = seen.page, "404"
        page.get_by_role("combobox", name="sentence").select_option(GIVEN[2].title)
        page.wait_for_function(f"{FIND}('notice').visible")
        told = f"{reason} In Python, live.model_heads('smollm2', whole=True) shows all sentences."
        assert text(page, "notice") == told
        assert value(page, "sentence") == "0"
        choose(page, layer=17, head=1)
        assert "(16th of 16) attends to 'down' 0.62" in text(page)


def test_a_notebook_can_hold_all_sentences(browser: Browser, tmp_path: Path) -> None:
    figure = live.model_heads("smollm2", whole=True)
    assert len(figure._repr_html_()) < 400_000
    with alone(browser, tmp_path, figure, prepare=nothing, in_notebook=True) as seen:
        choose(seen.page, sentence="3", layer=19, head=7)
        assert "(22nd of 22) attends to '5' 0.91" in text(seen.page)
