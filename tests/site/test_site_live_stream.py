"""The live figure of the residual stream gives NumPy's lengths, cosines and coordinates."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from live_visits import LABELS, PLOTS, alone, choose, drag, matrix, read, tap, text, value
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page

from attnbook_course import live

DRAWN = """() => {
  const { scale, panels, coordinate } = Bokeh.documents.at(-1).get_model_by_name("update").args;
  return { high: scale.color_mapper.high, scale: scale.title, titles: panels.map((panel) => panel.title.text),
    reach: panels.map((panel) => panel.y_range.end), axis: coordinate.axis_label };
}"""
STEPS = ["embedding", "attention 1", "MLP 1", "attention 2", "MLP 2"]


def case(title: str, tokens: str, e: int, labels: list[str] = STEPS, seed: int = 0) -> live.Stream:
    """A random walk of every token, with a readout."""
    rng = np.random.default_rng(seed)
    shape = (len(labels), len(tokens.split()))
    states = np.cumsum(rng.normal(size=(*shape, e)), axis=0)
    said, p = rng.choice(list("abc "), size=shape), rng.random(shape)
    readout = [list(zip(*pair, strict=True)) for pair in zip(said.tolist(), p, strict=True)]
    return live.Stream(title, tokens.split(), labels, states, readout)


# two tokens in the plane whose lengths are whole numbers; the second never changes
BY_HAND = [[[3, 4], [0, 0]], [[3, 0], [0, 0]], [[0, 0], [0, 0]], [[0, 250], [0, 0]]]
CASES = [
    case("pre-norm", "f o r ␣ i", 7),
    case("post-norm", "x", 5, STEPS[:3], seed=1),
    live.Stream("by hand", ["<b>", " "], ["input", "A", "B", "C"], np.array(BY_HAND)),
    case("wide", "one two three", 67, [*"abcdefghijk"], seed=3),
]


def shown() -> live.LiveFigure:
    return live.residual_stream(CASES, name="live-stream")


def show(page: Page, example: int, token: float, step: float, colour: str = "change") -> None:
    choose(page, example=str(example), token=token, step=step, colour=colour)


def parts(chosen: live.Stream) -> dict[str, np.ndarray]:
    """The stream before every step, what the step adds, and the stream after it."""
    after = np.asarray(chosen.states, dtype=float)
    before = np.concatenate([np.zeros((1, *after.shape[1:])), after[:-1]])
    return {"before": before, "change": after - before, "after": after}


@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_bars_are_the_tokens_stream(page: Page, number: int) -> None:
    chosen = CASES[number]
    expected = parts(chosen)
    records, n, e = np.shape(chosen.states)
    for step in range(records):
        for token in range(n):
            show(page, number, token + 1, step)
            bars = read(page, "bars")
            assert bars["x"] == list(range(1, min(e, 64) + 1))
            unit = np.max(np.abs(expected["after"][:, token, :64])) / 127 or 1  # rounded to it
            rounded = np.rint(expected["after"] / unit) * unit
            drawn = parts(replace(chosen, states=rounded))
            for part, vectors in expected.items():
                kept = 0.5 if part != "change" else 1  # a change is a difference of two
                assert_allclose(
                    bars[part], vectors[step, token, :64], rtol=0, atol=1.01 * kept * unit
                )
                assert_allclose(bars[part], drawn[part][step, token, :64], rtol=0, atol=1e-4 * unit)
            assert read(page, "frame") == {"x": [token + 1], "y": [step]}
            look = page.evaluate(DRAWN)
            all_steps = np.concatenate([v[:, token, :64] for v in drawn.values()])
            reach = 1.05 * np.max(np.abs(all_steps)) or 1
            assert_allclose(look["reach"], reach, rtol=1e-5)
            assert look["titles"] == ["before", f"what {chosen.labels[step]} adds", "after"]
    assert look["axis"] == ("coordinate, the first 64 of 67" if e == 67 else "coordinate")


@pytest.mark.parametrize("colour", ["change", "stream"])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_colours_are_lengths_on_one_scale(page: Page, number: int, colour: str) -> None:
    show(page, number, 1, 1, colour)
    part = "change" if colour == "change" else "after"
    of_all = [np.linalg.norm(parts(one)[part], axis=-1) for one in CASES]
    drawn = matrix(page, "cells", of_all[number].shape, "length", first=0)
    assert_allclose(drawn, of_all[number], rtol=1e-6)
    scale = page.evaluate(DRAWN)
    assert scale["high"] == pytest.approx(max(np.max(lengths) for lengths in of_all))
    assert scale["scale"] == f"length of the {colour}"


@pytest.mark.parametrize("number", [0, 1, 3])
def test_the_text_gives_numpys_numbers(page: Page, number: int) -> None:
    chosen = CASES[number]
    before, change, after = parts(chosen).values()
    records, n, _ = after.shape
    assert chosen.readout is not None
    for step in range(1, records):
        for token in range(n):
            show(page, number, token + 1, step)
            u, v, w = (x[step, token] for x in (change, before, after))
            lengths = [np.linalg.norm(x) for x in (u, v, w)]
            said, p = chosen.readout[step][token]
            found = re.fullmatch(
                rf"At '{chosen.tokens[token]}' \({token + 1}\w\w of {n}\) {chosen.labels[step]} "
                r"adds a change of length (.+) to a stream of length (.+) \(cosine (.+)\), which "
                r"becomes (.+) long; the readout would now say '(.)' with probability (.+)\.",
                text(page),
            )
            assert found is not None, text(page)
            told = [float(number.replace("−", "-")) for number in found.group(1, 2, 4, 3, 6)]
            assert_allclose(told[:3], lengths, rtol=5.01e-3)
            assert_allclose(told[3:], [u @ v / lengths[0] / lengths[1], p], atol=0.00501)
            assert found[5] == ("␣" if said == " " else said)


def test_the_text_by_hand(page: Page) -> None:
    expected = {
        (1, 0): "the stream begins with input, a vector of length 5.00.",
        (1, 1): "A adds a change of length 4.00 to a stream of length 5.00 (cosine −0.80), which "
        "becomes 3.00 long.",
        (1, 2): "B adds a change of length 3.00 to a stream of length 3.00 (cosine −1.00), which "
        "becomes 0.00 long.",
        (1, 3): "C adds a change of length 250 to a stream of length 0.00, which becomes 250 long.",
        (2, 1): "A adds a change of length 0.00 to a stream of length 0.00, which becomes 0.00 "
        "long.",
    }
    for (token, step), told in expected.items():
        show(page, 2, token, step)
        told = ("At '<b>' (1st of 2) " if token == 1 else "At '␣' (2nd of 2) ") + told
        assert text(page) == told
        assert page.locator(PLOTS).get_by_text(told).count() == 1  # <b> is not taken for HTML


@pytest.mark.parametrize(
    ("example", "title", "tokens"), [(0, "pre-norm", CASES[0].tokens), (2, "by hand", ["<b>", "␣"])]
)
def test_axes_and_sliders_carry_the_names(
    page: Page, example: int, title: str, tokens: list[str]
) -> None:
    show(page, 3, 2, 2)
    page.get_by_role("combobox", name="example").select_option(title)
    labels = CASES[example].labels
    assert page.evaluate(LABELS) == [list(tokens), list(labels)]
    sliders = page.get_by_role("slider").all()
    said = [slider.get_attribute("aria-valuetext") for slider in sliders]
    assert said == [tokens[1], labels[2]]
    for name in (f"step: {labels[2]}", f"token: {tokens[1]}"):
        assert page.locator(PLOTS).get_by_text(name).count() == 1


def test_a_smaller_example_keeps_the_choice_in_reach(page: Page) -> None:
    show(page, 0, 5, 4)
    example, sliders = page.get_by_role("combobox", name="example"), page.get_by_role("slider")
    example.select_option("post-norm")
    assert value(page, "token", "step") == [1, 2]
    assert read(page, "frame") == {"x": [1], "y": [2]}
    assert sliders.count() == 1  # one token: nothing to choose
    example.select_option("wide")
    assert [one.get_attribute("aria-valuemax") for one in sliders.all()] == ["3.0", "10.0"]


def test_a_tap_and_a_drag_choose_a_cell(page: Page) -> None:
    show(page, 0, 1, 0)
    tap(page, 4.3, 2.8)
    assert read(page, "frame") == {"x": [4], "y": [3]}
    assert text(page).startswith("At '␣' (4th of 5) attention 2 adds")
    drag(page, (4, 3), (2, 0.1))
    assert value(page, "token", "step") == [2, 0]


def test_one_example_is_not_to_be_chosen(browser: Browser, tmp_path: Path) -> None:
    with alone(browser, tmp_path, live.residual_stream(CASES[:1], name="live-stream")) as seen:
        assert seen.page.get_by_role("combobox", name="example").count() == 0
        assert seen.page.get_by_role("combobox", name="colour").count() == 1
