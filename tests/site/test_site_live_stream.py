"""The live figure of the residual stream gives NumPy's lengths, cosines and coordinates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page
from site_visits import next_frames
from test_site_live import PLOTS, READ, SET, WORDS
from test_site_live_attention import CELL, VALUE
from test_site_live_pages import LARGE, alone
from test_site_pages import TOO_WIDE, axe_findings

from attnbook.course import live

LABELS = """() => {
  const { down, across } = Bokeh.documents.at(-1).get_model_by_name("update").args;
  return [across, down].map((one) => one.ticker.ticks.map((tick) => one.major_label_overrides.get(tick)));
}"""
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


def by_hand() -> live.Stream:
    """Two tokens in the plane whose lengths are whole numbers; the second never changes."""
    first = [[3, 4], [3, 0], [0, 0], [0, 250]]
    states = np.array([[one, [0, 0]] for one in first])
    return live.Stream("by hand", ["<b>", " "], ["input", "A", "B", "C"], states)


CASES = [
    case("pre-norm", "f o r ␣ i", 7),
    case("post-norm", "x", 5, STEPS[:3], seed=1),
    by_hand(),
    case("wide", "one two three", 67, [*"abcdefghijk"], seed=3),
]


def browse(cases: list[live.Stream]) -> live.LiveFigure:
    return live.residual_stream(cases, name="live-stream")


@pytest.fixture(scope="module")
def stream(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The figure on the screen; every test sets what it reads."""
    with alone(browser, tmp_path_factory.mktemp("stream"), browse(CASES)) as seen:
        yield seen.page
        assert seen.complaints == []


def choose(page: Page, example: int, token: float, step: float, colour: str = "change") -> None:
    chosen = {"example": str(example), "token": token, "step": step, "colour": colour}
    for pair in chosen.items():
        page.evaluate(SET, list(pair))


def parts(chosen: live.Stream) -> dict[str, np.ndarray]:
    """The stream before every step, what the step adds, and the stream after it."""
    after = np.asarray(chosen.states, dtype=float)
    before = np.concatenate([np.zeros((1, *after.shape[1:])), after[:-1]])
    return {"before": before, "change": after - before, "after": after}


@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_bars_are_the_tokens_stream(stream: Page, number: int) -> None:
    chosen = CASES[number]
    expected = parts(chosen)
    records, n, e = np.shape(chosen.states)
    for step in range(records):
        for token in range(n):
            choose(stream, number, token + 1, step)
            bars = stream.evaluate(READ, "bars")
            assert bars["x"] == list(range(1, min(e, 64) + 1))
            unit = np.max(np.abs(expected["after"][:, token, :64])) / 127 or 1  # rounded to it
            rounded = np.rint(expected["after"] / unit) * unit
            shown = parts(replace(chosen, states=rounded))
            for part, vectors in expected.items():
                kept = 0.5 if part != "change" else 1  # a change is a difference of two
                assert_allclose(
                    bars[part], vectors[step, token, :64], rtol=0, atol=1.01 * kept * unit
                )
                assert_allclose(bars[part], shown[part][step, token, :64], rtol=0, atol=1e-4 * unit)
            assert stream.evaluate(READ, "frame") == {"x": [token + 1], "y": [step]}
            drawn = stream.evaluate(DRAWN)
            all_steps = np.concatenate([v[:, token, :64] for v in shown.values()])
            reach = 1.05 * np.max(np.abs(all_steps)) or 1
            assert_allclose(drawn["reach"], reach, rtol=1e-5)
            assert drawn["titles"] == ["before", f"what {chosen.labels[step]} adds", "after"]
    assert drawn["axis"] == ("coordinate, the first 64 of 67" if e == 67 else "coordinate")


@pytest.mark.parametrize("colour", ["change", "stream"])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_colours_are_lengths_on_one_scale(stream: Page, number: int, colour: str) -> None:
    choose(stream, number, 1, 1, colour)
    part = "change" if colour == "change" else "after"
    of_all = [np.linalg.norm(parts(one)[part], axis=-1) for one in CASES]
    cells = stream.evaluate(READ, "cells")
    drawn = np.full(of_all[number].shape, np.nan)
    drawn[np.array(cells["y"]), np.array(cells["x"]) - 1] = cells["length"]
    assert_allclose(drawn, of_all[number], rtol=1e-6)
    scale = stream.evaluate(DRAWN)
    assert scale["high"] == pytest.approx(max(np.max(lengths) for lengths in of_all))
    assert scale["scale"] == f"length of the {colour}"


@pytest.mark.parametrize("number", [0, 1, 3])
def test_the_text_gives_numpys_numbers(stream: Page, number: int) -> None:
    chosen = CASES[number]
    before, change, after = parts(chosen).values()
    records, n, _ = after.shape
    assert chosen.readout is not None
    for step in range(1, records):
        for token in range(n):
            choose(stream, number, token + 1, step)
            text = stream.evaluate(WORDS)
            u, v, w = (x[step, token] for x in (change, before, after))
            lengths = [np.linalg.norm(x) for x in (u, v, w)]
            said, p = chosen.readout[step][token]
            found = re.fullmatch(
                rf"At '{chosen.tokens[token]}' \({token + 1}\w\w of {n}\) {chosen.labels[step]} "
                r"adds a change of length (.+) to a stream of length (.+) \(cosine (.+)\), which "
                r"becomes (.+) long; the readout would now say '(.)' with probability (.+)\.",
                text,
            )
            assert found is not None, text
            told = [float(number.replace("−", "-")) for number in found.group(1, 2, 4, 3, 6)]
            assert_allclose(told[:3], lengths, rtol=5.01e-3)
            assert_allclose(told[3:], [u @ v / lengths[0] / lengths[1], p], atol=0.00501)
            assert found[5] == ("␣" if said == " " else said)


def test_the_text_by_hand(stream: Page) -> None:
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
        choose(stream, 2, token, step)
        start = "At '<b>' (1st of 2) " if token == 1 else "At '␣' (2nd of 2) "
        assert stream.evaluate(WORDS) == start + told
        assert (
            stream.locator(PLOTS).get_by_text(start + told).count() == 1
        )  # <b> is not taken for HTML


def test_axes_and_sliders_carry_the_names(stream: Page) -> None:
    plots = stream.locator(PLOTS)
    choose(stream, 0, 2, 2)
    assert stream.evaluate(LABELS) == [CASES[0].tokens, STEPS]
    assert plots.get_by_text("step: MLP 1").count() == plots.get_by_text("token: o").count() == 1
    said = [slider.get_attribute("aria-valuetext") for slider in stream.get_by_role("slider").all()]
    assert said == ["o", "MLP 1"]
    stream.get_by_role("combobox", name="example").select_option("by hand")
    assert stream.evaluate(LABELS) == [["<b>", "␣"], ["input", "A", "B", "C"]]
    assert plots.get_by_text("step: B").count() == plots.get_by_text("token: ␣").count() == 1


def test_a_smaller_example_keeps_the_choice_in_reach(stream: Page) -> None:
    choose(stream, 0, 5, 4)
    stream.get_by_role("combobox", name="example").select_option("post-norm")
    assert [stream.evaluate(VALUE, name) for name in ("token", "step")] == [1, 2]
    assert stream.evaluate(READ, "frame") == {"x": [1], "y": [2]}
    assert stream.get_by_role("slider").count() == 1  # one token: nothing to choose
    stream.get_by_role("combobox", name="example").select_option("wide")
    ends = [slider.get_attribute("aria-valuemax") for slider in stream.get_by_role("slider").all()]
    assert ends == ["3.0", "10.0"]


def test_a_tap_and_a_drag_choose_a_cell(stream: Page) -> None:
    choose(stream, 0, 1, 0)
    next_frames(stream)
    stream.mouse.click(*stream.evaluate(CELL, [4.3, 2.8]))
    assert stream.evaluate(READ, "frame") == {"x": [4], "y": [3]}
    assert stream.evaluate(WORDS).startswith("At '␣' (4th of 5) attention 2 adds")
    stream.mouse.move(*stream.evaluate(CELL, [4, 3]))
    stream.mouse.down()
    stream.mouse.move(*stream.evaluate(CELL, [2, 0.1]), steps=5)
    stream.mouse.up()
    assert [stream.evaluate(VALUE, name) for name in ("token", "step")] == [2, 0]


def test_the_keyboard_reaches_everything(stream: Page) -> None:
    choose(stream, 0, 1, 1)
    stream.get_by_role("slider", name="step").press("ArrowRight")
    stream.get_by_role("slider", name="token").press("ArrowRight")
    assert stream.evaluate(WORDS).startswith("At 'o' (2nd of 5) MLP 1 adds")
    stream.get_by_role("combobox", name="colour").select_option("length of the stream")
    assert stream.evaluate(DRAWN)["scale"] == "length of the stream"


def test_a_finger_chooses_a_cell_and_scrolls_the_page(browser: Browser, tmp_path: Path) -> None:
    with alone(browser, tmp_path, browse(CASES), width="phone") as seen:
        page = seen.page
        page.set_viewport_size({"width": 390, "height": 600})
        next_frames(page)
        touch = page.context.new_cdp_session(page)
        touch.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
        x, y = page.evaluate(CELL, [3, 4])
        for kind, fingers in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": fingers})
        next_frames(page)
        assert page.evaluate(READ, "frame") == {"x": [3], "y": [4]}
        touch.send(
            "Input.synthesizeScrollGesture", {"x": x, "y": y, "yDistance": -150, "speed": 800}
        )
        assert page.evaluate("scrollY") > 100


def large() -> list[live.Stream]:
    """Two examples of 24 tokens, nine steps and the width 64."""
    steps = ["embedding", *(f"{part} {b}" for b in range(1, 5) for part in ("attention", "MLP"))]
    tokens = " ".join(["seventeen", "one", "a"][j % 3] for j in range(24))
    return [case(norm, tokens, 64, [*steps, "last norm"]) for norm in ("pre-norm", "post-norm")]


@pytest.mark.parametrize(("theme", "width"), LARGE)
def test_a_large_stream_is_whole(browser: Browser, tmp_path: Path, theme: str, width: Any) -> None:
    with alone(browser, tmp_path, browse(large()), theme, width) as seen:
        left, right = (seen.page.evaluate(CELL, [x, 1]) for x in (1, 2))
        assert right[0] - left[0] >= 10  # pixels of a cell
        assert seen.page.evaluate(TOO_WIDE) <= 0
        assert axe_findings(seen.page) == []
        assert seen.outside == []
        assert seen.complaints == []


def test_it_is_light() -> None:
    assert len(browse(large())._repr_html_().encode()) < 150_000


def test_the_description_can_be_given() -> None:
    figure = live.residual_stream(CASES, name="live-a", description="A stream.")
    assert (figure.name, figure.description) == ("live-a", "A stream.")
    assert "a model on 4 examples: a token a column" in browse(CASES).description
    assert "Choose an example, a token and a step" in browse(CASES).description
    assert "a model on one example: a token a column" in browse(CASES[:1]).description
    assert "Choose a token and a step" in browse(CASES[:1]).description


def test_one_example_is_not_to_be_chosen(browser: Browser, tmp_path: Path) -> None:
    with alone(browser, tmp_path, browse(CASES[:1])) as seen:
        assert seen.page.get_by_role("combobox", name="example").count() == 0
        assert seen.page.get_by_role("combobox", name="colour").count() == 1


def test_bad_input_is_named() -> None:
    states = np.zeros((2, 3, 5))
    good = ("x", "abc", ["in", "A"], states)
    with pytest.raises(ValueError, match="cases: got none, expected one or more"):
        browse([])
    with pytest.raises(ValueError, match="tokens: got none, expected one or more"):
        live.Stream("x", "", ["in", "A"], states[:, :0])
    with pytest.raises(ValueError, match="labels: got 1, expected two or more"):
        live.Stream("x", "abc", ["in"], states[:1])
    for wrong in (states[:1], states.mT, states[0], states[..., :0], 1.0):
        shape = re.escape(str(np.shape(wrong)))
        with pytest.raises(ValueError, match=rf"states: got shape {shape}, expected \(2, 3, e\)"):
            live.Stream(*good[:3], wrong)
    for number in (np.nan, np.inf):
        with pytest.raises(ValueError, match="states: got nan or inf, expected finite numbers"):
            live.Stream(*good[:3], states + number)
    pairs = [("a", 0.5)] * 3
    for counts, readout in (
        ("1 records of [3]", [pairs]),
        ("2 records of [2, 3]", [pairs, pairs[:2]]),
    ):
        told = re.escape(f"readout: got {counts} pairs, expected 2 of 3")
        with pytest.raises(ValueError, match=told):
            live.Stream(*good, readout)
    for p in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match=f"readout: got {p} for 'b', expected a probability"):
            live.Stream(*good, [pairs, [*pairs[:2], ("b", p)]])
