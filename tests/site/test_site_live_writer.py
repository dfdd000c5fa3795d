"""The live writer: its tokens, probabilities and draws are Python's, and it stops when asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from live_visits import FIND, alone, choose, models_asked, read, says, text
from numpy.testing import assert_allclose, assert_array_equal
from playwright.sync_api import Browser, Page
from test_site_live_models import random, start_engine

from attnbook import softmax
from attnbook.generate import sampling
from attnbook.torch import DecoderOnly
from attnbook.train.byte_pairs import learn_pairs
from attnbook_course import live
from attnbook_course.live import models

LEARNED = "Return the mean of the array, or the means of its rows.\n    " * 20
PAIRS = learn_pairs(LEARNED, 300)
PLACES, BEGUN = 10, "Return the"
NAMES = "byte_pairs unpack init_cache writer_step next_probabilities"
STEPS = """(tokens) => {
  const cache = engine.init_cache(model);
  return tokens.map((token) => {
    const { logits, weights } = engine.writer_step(model, cache, token);
    return [[...logits], weights.map((heads) => heads.map((one) => [...one]))];
  });
}"""
RESTS = "() => attnbookWritten['live-writer']?.running === false"
TOKENS = "attnbookWritten['live-writer'].tokens"
TRICKY = [
    "Return the mean",
    "x",
    " ",
    "\n\n",
    "it's  two   spaces",
    "12 345, (a_b)",
    "é — naïve\t",
    "aaaa aaa",
    "日本",
    "<b>&amp;",
    "the mean the means",
]


def writer() -> DecoderOnly:
    return random(DecoderOnly, len(PAIRS.tokens), PLACES, seed=7)


def store(folder: Path) -> None:
    target = folder / "_static" / "models"
    target.mkdir(parents=True)
    (target / "small-writer.bin").write_bytes(models.pack(writer(), PAIRS))
    (target / "no-pairs.bin").write_bytes(models.pack(writer()))


def shares_after(tokens: list[int], temperature: float) -> np.ndarray:
    """Python's probabilities of the token that follows."""
    with torch.no_grad():
        logits = writer()(torch.tensor([tokens]))[0, -1].double().numpy()
    return softmax(logits / temperature)


def weights_over(tokens: list[int], model: DecoderOnly | None = None) -> np.ndarray:
    """Python's attention weights, of shape (layers, heads, n, n)."""
    with torch.no_grad():
        _, weights = (model or writer())(torch.tensor([tokens]), return_weights=True)
    return torch.cat(list(weights)).numpy()


def waits(temperature: float) -> str:
    """What the figure says while the page has no model."""
    when = "the page loads the model when you press a button."
    return f"Temperature {temperature:.2f}, top-p 1.00: {when}"


def plain(shown: str) -> str:
    return re.sub(r"</?span[^>]*>", "", shown)


def told_weights(weights: np.ndarray, tokens: list[int]) -> str:
    """A token and those that it reads most, as the figure says them."""
    order = np.argsort(-weights, kind="stable")[:3]
    named = [f"'{PAIRS.decode([tokens[j]]).replace(' ', '␣')}' {weights[j]:.2f}" for j in order]
    asked = PAIRS.decode([tokens[len(weights) - 1]]).replace(" ", "␣")
    return f"'{asked}' reads {', '.join(named)}."


@pytest.fixture(scope="module")
def engine(blank: Page) -> Page:
    packed = models.pack(writer(), PAIRS)
    start_engine(blank, packed, ("decoder_only.js", "byte_pairs.js"), NAMES)
    blank.evaluate("() => { window.pairs = engine.byte_pairs(model.merges); }")
    return blank


@pytest.fixture(scope="module")
def page(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    figure = live.text_writer(BEGUN, model="small-writer", temperature=1.0)
    with alone(browser, tmp_path_factory.mktemp("writer"), figure, prepare=store) as seen:
        assert models_asked(seen) == []
        assert text(seen.page) == waits(1.0)
        begin(seen.page, 1.0)
        yield seen.page
        assert len(models_asked(seen)) == 1


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).click()
    page.wait_for_function(RESTS)


def begin(page: Page, temperature: float) -> None:
    choose(page, temperature=temperature, top_p=1.0)
    press(page, "begin again")


def test_texts_become_pythons_tokens(engine: Page) -> None:
    found = engine.evaluate("(texts) => texts.map(pairs.encode)", TRICKY)
    assert found == [PAIRS.encode(text) for text in TRICKY]
    assert engine.evaluate("(all) => all.map(pairs.decode)", found) == TRICKY
    half = PAIRS.encode("é")[:1]  # no whole character
    assert engine.evaluate("pairs.decode", half) == PAIRS.decode(half) == "\ufffd"


def test_the_writer_steps_as_pythons(engine: Page) -> None:
    tokens = PAIRS.encode("Return the mean of it")[:PLACES]
    with torch.no_grad():
        expected = writer()(torch.tensor([tokens]))[0]
    logits, weights = zip(*engine.evaluate(STEPS, tokens), strict=True)
    assert_allclose(logits, expected, atol=1e-4, rtol=0)
    by_layer = weights_over(tokens)
    for i, of_token in enumerate(weights):
        assert_allclose(of_token, by_layer[:, :, i, : i + 1], atol=1e-5, rtol=0)


TIED = [0.0, 1.0, 1.0, 1.0, -2.0, 1.0, 0.0, -np.log(2)]


@pytest.mark.parametrize("top_p", [0.1, 0.25, 0.3, 0.5, 0.8, 0.9, 0.95, 1.0])
@pytest.mark.parametrize("temperature", [0.1, 0.7, 1.0, 1.5])
def test_the_tail_is_cut_off_as_pythons(engine: Page, temperature: float, top_p: float) -> None:
    rows = [TIED, [0.0] * 4, *np.random.default_rng(0).normal(0, 3, (4, 300)).tolist()]
    rows += [np.log(shares).tolist() for shares in ([0.3, 0.1, 0.1, 0.5], [0.5, 0.4, 0.1])]
    found = engine.evaluate(
        "([rows, t, p]) => rows.map((row) => engine.next_probabilities(row, t, p))",
        [rows, temperature, top_p],
    )
    for row, p in zip(rows, found, strict=True):
        expected = sampling.probabilities(row, temperature=temperature, top_p=top_p)
        if top_p < 1:  # at 1 what is cut off is less than rounding
            assert_array_equal(np.array(p) == 0, expected == 0)
        assert_allclose(p, expected, atol=1e-12, rtol=0)


def test_the_stored_writer_reads_and_draws_as_pythons(blank: Page) -> None:
    model, pairs = models.load("docstrings"), models.load_pairs("docstrings")
    tokens = pairs.encode("Compute the mean of")
    packed = models.pack(model, pairs)
    start_engine(blank, packed, ("decoder_only.js", "byte_pairs.js"), NAMES)
    logits, weights = blank.evaluate(STEPS, tokens)[-1]
    with torch.no_grad():
        expected = model(torch.tensor([tokens]))[0, -1]
    assert_allclose(logits, expected, atol=1e-4, rtol=0)
    assert_allclose(weights, weights_over(tokens, model)[:, :, -1], atol=1e-5, rtol=0)
    for temperature, top_p in ((1.0, 0.9), (0.7, 0.5)):
        p = blank.evaluate(
            "(args) => engine.next_probabilities(...args)", [logits, temperature, top_p]
        )
        assert_allclose(
            p, sampling.probabilities(expected, temperature=temperature, top_p=top_p), atol=1e-4
        )


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.5])
def test_the_bars_are_the_models_probabilities(page: Page, temperature: float) -> None:
    begin(page, temperature)
    p = shares_after(PAIRS.encode(BEGUN), temperature)
    order = np.argsort(-p)[:8]
    assert_allclose(read(page, "bars")["share"], p[order], atol=1e-4)
    first = PAIRS.decode([order[0]]).replace(" ", "␣").replace("\n", "⏎")
    told = text(page)
    assert told.startswith(f"The most probable next token is '{first}' {p[order[0]]:.2f}, then '")


def test_at_temperature_0_it_writes_what_python_does(page: Page) -> None:
    """Beyond its places too, of which it then reads the last half anew."""
    begin(page, 0.0)
    tokens = PAIRS.encode(BEGUN)
    press(page, "write 60 tokens")
    found, begun = page.evaluate(TOKENS), len(tokens)
    kept = tokens  # what the page has read, in its places
    for at in range(begun, begun + 60):
        with torch.no_grad():
            logits = writer()(torch.tensor([kept]))[0, -1]
        assert logits[found[at]] >= logits.max() - 1e-4, at
        kept = [*kept, found[at]]
        if len(kept) > PLACES:
            kept = found[: at + 1][-(PLACES // 2) :]
    assert len(found) == begun + 60
    shown = plain(text(page, "written")).replace("&lt;", "<").replace("&amp;", "&")
    assert shown == f"<strong>{BEGUN}</strong>{PAIRS.decode(found)[len(BEGUN) :]}"


def test_tokens_that_top_p_cuts_off_stand_as_outlines(page: Page) -> None:
    begin(page, 0.5)
    with torch.no_grad():
        logits = writer()(torch.tensor([PAIRS.encode(BEGUN)]))[0, -1]
    all_of_them, kept = (
        sampling.probabilities(logits, temperature=0.5, top_p=share) for share in (1.0, 0.1)
    )
    choose(page, top_p=0.1)
    order = np.argsort(-all_of_them)[:8]
    assert_allclose(read(page, "bars")["share"], kept[order], atol=1e-4)
    cut = order[kept[order] == 0]
    assert len(cut) > 0
    found = read(page, "outlines")
    assert_allclose(found["share"], all_of_them[cut], atol=1e-4)
    assert found["y"] == list(range(9 - len(cut), 9))
    choose(page, top_p=1.0)
    assert read(page, "outlines") == {"y": [], "share": []}


def test_the_text_shows_what_a_head_reads(page: Page) -> None:
    begin(page, 1.0)
    tokens = PAIRS.encode(BEGUN)
    weights = weights_over(tokens)
    layers, heads = weights.shape[:2]
    options = page.evaluate(f"{FIND}('head').options.map(([value]) => value)")
    of_heads = [f"{layer} {h}" for layer in range(1, layers + 1) for h in range(1, heads + 1)]
    assert options == ["mean", *of_heads]
    expected = told_weights(weights.mean(axis=(0, 1))[-1], tokens)
    assert text(page, "reading") == f"Mean of all heads: {expected}"
    choose(page, head="2 3", reader=1)
    at = len(tokens) - 2
    row = weights[1, 2, at, : at + 1]
    assert text(page, "reading") == f"Layer 2, head 3: {told_weights(row, tokens)}"
    shares = [int(one) for one in re.findall(r"/ (\d+)%", text(page, "written"))]
    assert_allclose(shares, 65 * row / row.max(), atol=0.51)
    choose(page, reader=40)  # more than there are: the first reads itself alone
    assert text(page, "reading").endswith(" 1.00.")
    choose(page, head="mean", reader=0)


@pytest.mark.parametrize("left", [0.0, 0.4, 0.9999])
def test_a_draw_is_where_the_shares_reach(page: Page, left: float) -> None:
    begin(page, 1.0)
    p = shares_after(PAIRS.encode(BEGUN), 1.0).cumsum()
    page.evaluate("(left) => { window.kept_random = Math.random; Math.random = () => left; }", left)
    press(page, "one token")
    page.evaluate("() => { Math.random = window.kept_random; }")
    (drawn,) = page.evaluate(TOKENS)[len(PAIRS.encode(BEGUN)) :]
    assert p[drawn] > left - 1e-4 and (drawn == 0 or p[drawn - 1] <= left + 1e-4)


def test_it_stops_and_begins_with_another_text(page: Page) -> None:
    begin(page, 1.0)
    page.evaluate(
        "() => { window.kept_frame = requestAnimationFrame; requestAnimationFrame = () => 0; }"
    )
    page.get_by_role("button", name="write 60 tokens").click()
    page.get_by_role("button", name="stop").click()
    page.evaluate("() => { requestAnimationFrame = window.kept_frame; }")
    page.wait_for_function(RESTS)
    assert len(page.evaluate(TOKENS)) == len(PAIRS.encode(BEGUN)) + 1
    box = page.get_by_role("textbox", name="how the text begins")
    for typed, tokens in (("a < b", PAIRS.encode("a < b")), ("", PAIRS.encode("\n"))):
        box.fill(typed)
        box.press("Enter")
        page.wait_for_function(f"() => {TOKENS}.length === {len(tokens)}")
        assert page.evaluate(TOKENS) == tokens
    box.fill(BEGUN)
    box.press("Enter")


def test_what_comes_next_shows_before_the_model_is_there(browser: Browser, tmp_path: Path) -> None:
    figure = live.text_writer("a", model="small-writer", next_tokens=[(" b\n", 0.75), ("c", 0.1)])
    with alone(browser, tmp_path, figure, prepare=store) as seen:
        assert read(seen.page, "bars") == {"y": [1, 2], "share": [0.75, 0.1]}
        assert text(seen.page) == "The most probable next token is '␣b⏎' 0.75."
        choose(seen.page, temperature=0.5)
        assert read(seen.page, "bars") == {"y": [], "share": []}
        assert text(seen.page) == waits(0.5)
        assert models_asked(seen) == []


def test_a_model_of_other_tokens_is_refused(browser: Browser, tmp_path: Path) -> None:
    with alone(browser, tmp_path, live.text_writer("a", model="no-pairs"), prepare=store) as seen:
        seen.page.get_by_role("button", name="write").click()
        says(seen.page, "does not fit this figure.", "notice", "endsWith")
