"""Live figures that run a transformer in the page: its numbers are Python's, and it is asked for."""

from __future__ import annotations

import base64
import math
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from playwright.sync_api import Browser, Page, expect
from site_visits import ROOT, Visit, new_page, next_frames, served, visit
from test_site_live import READ, SET, WORDS
from test_site_live_pages import BOKEH, LARGE, PAGE, THEMES, alone
from test_site_live_points import ON_SCREEN, VALUE
from test_site_pages import TOO_WIDE, axe_findings

import attnbook
from attnbook import datasets, nadaraya_watson
from attnbook.course import live
from attnbook.course.live import models
from attnbook.datasets import END, PAD, START
from attnbook.generate import decoding
from attnbook.kernel import gaussian_process
from attnbook.torch import EncoderOnly, Transformer

ENGINE = """([code, stored]) => {
  const names = "half erf unpack encoder_only encode_source init_cache seq2seq_step greedy number_words";
  window.engine = new Function(`${code}; return { ${names.replaceAll(" ", ", ")} }`)();
  window.model = stored && engine.unpack(Uint8Array.from(atob(stored), (c) => c.charCodeAt(0)).buffer);
}"""
READ_TOKENS = """([x, mask]) => engine.encoder_only(model, x, mask ? (i, j) => mask[i][j] : undefined).map((said) => [...said])"""
STEPS = """([source, written]) => {
  const memory = engine.encode_source(model, source), cache = engine.init_cache(model);
  return written.map((token) => {
    const { logits, weights } = engine.seq2seq_step(model, memory, cache, token);
    return [[...logits], weights.map((w) => [...w])];
  });
}"""
GREEDY = "([source, start, end]) => engine.greedy(model, source, start, end).tokens"
TEXT = "(name) => Bokeh.documents.at(-1).get_model_by_name(name).text"
SMALL = {"embed_dim": 12, "num_heads": 3, "mlp_dim": 20, "num_layers": 2}
VARIANTS = [("pre", "gelu"), ("post", "relu"), ("pre", "swiglu")]


def random(kind: Any, *sizes: int | None, seed: int = 0, **options: Any) -> Any:
    """A model with parameters from which every part has its say, as the file keeps them."""
    torch.manual_seed(seed)
    model = kind(*sizes, **SMALL, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    return models.unpack(models.pack(model))


@pytest.fixture(scope="module")
def blank(browser: Browser) -> Iterator[Page]:
    """A page with nothing in it."""
    page = new_page(browser)
    yield page
    page.close()


def start_engine(page: Page, model: Any = None) -> None:
    stored = base64.b64encode(models.pack(model)).decode() if model else None
    page.evaluate(ENGINE, [models.scripts("number_words.js"), stored])


def test_every_float16_is_read(blank: Page) -> None:
    start_engine(blank)
    bits = np.arange(2**16, dtype=np.uint16)
    expected = bits.view(np.float16).astype(float)
    finite = np.isfinite(expected)
    found = blank.evaluate("(all) => all.map(engine.half)", bits[finite].tolist())
    assert_array_equal(found, expected[finite])


def test_erf_is_right_to_seven_digits(blank: Page) -> None:
    start_engine(blank)
    x = np.linspace(-6, 6, 4801)
    found = blank.evaluate("(all) => all.map(engine.erf)", x.tolist())
    assert_allclose(found, [math.erf(v) for v in x], atol=2e-7, rtol=0)


def test_numbers_are_said_in_the_books_words(blank: Page) -> None:
    start_engine(blank)
    task = datasets.number_words(train=2_000, held_out=1)
    rows = {
        int(n): task.read(row) for n, row in zip(task.train.numbers, task.train.source, strict=True)
    }
    for edge in (0, 10, 100, 101, 110, 1_000, 1_001, 1_100, 20_000, 100_000, 100_100, 999_999):
        words = datasets.number_words.__globals__["_words"](edge, "en")
        rows[edge] = words.replace(",", "").replace("-", " ").split()
    said = blank.evaluate("(all) => all.map(engine.number_words)", list(rows))
    assert said == list(rows.values())


@pytest.mark.parametrize("max_length", [None, 9])
@pytest.mark.parametrize(("norm", "activation"), VARIANTS)
def test_the_encoder_reads_as_pythons(
    blank: Page, norm: str, activation: str, max_length: int | None
) -> None:
    model = random(EncoderOnly, 3, 2, max_length, norm=norm, activation=activation)
    start_engine(blank, model)
    rng = np.random.default_rng(2)
    x = rng.normal(size=(7, 3)).astype(np.float32)
    mask = rng.random((7, 7)) < 0.6
    mask[2] = False  # a token that reads nothing
    for allowed in (None, mask):
        found = blank.evaluate(
            READ_TOKENS, [x.tolist(), None if allowed is None else mask.tolist()]
        )
        with torch.no_grad():
            said = model(torch.tensor(x), None if allowed is None else torch.tensor(mask))
        assert_allclose(found, said, atol=1e-4, rtol=0)


@pytest.mark.parametrize(("norm", "activation"), VARIANTS)
def test_the_decoder_steps_as_pythons(blank: Page, norm: str, activation: str) -> None:
    """With cached keys and values it gives what Python gives in one pass, on a padded batch."""
    model = random(Transformer, 7, 11, 9, norm=norm, activation=activation)
    start_engine(blank, model)
    source, written = [3, 5, 6, 3, 4], [START, 7, 3, 10, 4, 4, 9]
    padded = torch.tensor([[*source, PAD, PAD]])
    with torch.no_grad():
        logits, weights = model(padded, padded != PAD, torch.tensor([written]), return_weights=True)
    steps = blank.evaluate(STEPS, [source, written])
    assert_allclose([one for one, _ in steps], logits[0], atol=1e-4, rtol=0)
    last = np.stack([one for _, one in steps], axis=1)  # (heads, written, source)
    assert_allclose(last, weights[-1][0, :, :, :5], atol=1e-4, rtol=0)


@pytest.mark.parametrize("seed", range(4))
def test_greedy_decoding_is_pythons(blank: Page, seed: int) -> None:
    model = random(Transformer, 7, 5, 13, seed=seed)
    start_engine(blank, model)
    source = torch.tensor([[3, 6, 4, 5]])
    with torch.no_grad():
        tokens, _ = decoding.greedy(model, source, source != PAD, start=START, end=END, limit=13)
    assert blank.evaluate(GREEDY, [source[0].tolist(), START, END]) == tokens[0].tolist()


TASK = datasets.number_words(train=500, held_out=1)
FULL = datasets.number_words()
CASES = [
    live.Attention(
        "21", "einundzwanzig", ["twenty", "one"],
        {f"head {h}": np.tile([0.1 * h, 1 - 0.1 * h], (13, 1)) for h in (1, 2, 3)},
    )
]  # fmt: skip
CONTEXT = np.array([-0.8, -0.45, -0.1, 0.3, 0.62, 0.9]), np.array([0.4, -0.7, 1.1, 0.2, -1.3, 0.6])


def translator() -> Transformer:
    vocabularies = len(TASK.source_vocabulary), len(TASK.target_vocabulary)
    return random(Transformer, *vocabularies, 24, seed=5)


def regressor() -> EncoderOnly:
    return random(EncoderOnly, 3, 1, seed=6)


def translation() -> live.LiveFigure:
    return live.translation_attention(
        CASES, name="live-translation", model="small-translator",
        source_vocabulary=TASK.source_vocabulary, target_vocabulary=TASK.target_vocabulary,
    )  # fmt: skip


def regression() -> live.LiveFigure:
    return live.in_context_regression(*CONTEXT, model="small-regressor")


FIGURES = {"translation": translation, "regression": regression}
LOADED = {"translation": ("said", "model writes"), "regression": ("words", "the transformer ")}


def store(folder: Path) -> None:
    """Put both models where the site has them."""
    target = folder / "_static" / "models"
    target.mkdir(parents=True)
    for name, model in (("small-translator", translator()), ("small-regressor", regressor())):
        (target / f"{name}.bin").write_bytes(models.pack(model))


def nothing(folder: Path) -> None:
    """No model at all."""


def load(page: Page) -> None:
    button = page.get_by_role("button", name="Load the model")
    if button.count() and button.is_enabled():
        button.click()
    page.wait_for_function("() => window.attnbookModels")


def models_asked(seen: Visit) -> list[str]:
    return [url for url in seen.requests if "/models/" in url]


@pytest.fixture(scope="module")
def translated(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The translation, its model loaded."""
    folder = tmp_path_factory.mktemp("translation")
    with alone(browser, folder, translation(), prepare=store) as seen:
        assert models_asked(seen) == []
        load(seen.page)
        yield seen.page
        assert [url.rpartition("/")[2] for url in models_asked(seen)] == ["small-translator.bin"]
        assert seen.complaints == []


@pytest.fixture(scope="module")
def regressed(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The regression, its model loaded; every test puts the points where it wants them."""
    folder = tmp_path_factory.mktemp("regression")
    with alone(browser, folder, regression(), prepare=store) as seen:
        seen.page.wait_for_function("() => window.attnbookModels")  # with the figure, unasked
        yield seen.page
        assert [url.rpartition("/")[2] for url in models_asked(seen)] == ["small-regressor.bin"]
        assert seen.complaints == []


def expected_translation(words: list[str]) -> tuple[str, np.ndarray, np.ndarray]:
    """Python's letters, the weights of the last layer's heads, (heads, letters, words), and the
    probability of each token that it writes, the end among them."""
    source = torch.tensor([[TASK.source_vocabulary.index(word) for word in words]])
    model = translator()
    with torch.no_grad():
        tokens, _ = decoding.greedy(model, source, source != PAD, start=START, end=END, limit=24)
        written = torch.tensor([[START, *tokens[0][:-1]]])
        logits, weights = model(source, source != PAD, written, return_weights=True)
        shares = torch.softmax(logits.double(), -1)[0].numpy()
    letters = [TASK.target_vocabulary[t] for t in tokens[0] if t != END]
    probabilities = shares[np.arange(len(tokens[0])), np.asarray(tokens[0])]
    return "".join(letters), weights[-1][0, :, : len(letters)].numpy(), probabilities


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (759_002, "seven hundred and fifty nine thousand and two"),
        (13, "thirteen"),
        (40_100, "forty thousand one hundred"),
    ],
)
def test_a_number_is_translated_as_in_python(translated: Page, number: int, words: str) -> None:
    translated.get_by_role("textbox", name="number from 0 to 999,999").fill(str(number))
    translated.get_by_role("button", name="Translate").click()
    text, weights, probabilities = expected_translation(words.split())
    assert text, "choose another seed: this model writes nothing"
    translated.wait_for_function(f"() => ({TEXT})('said').includes('{words}.')")
    said = translated.evaluate(TEXT, "said")
    assert said.startswith(
        f"{number:,}: {words}. The model writes: {text}. The probability that it gives to this "
        f"answer is {probabilities.prod():.2f}: it is in doubt, most about "
    )
    assert said.endswith(f", {probabilities.min():.2f}.")
    example = translated.get_by_role("combobox", name="example")
    assert example.locator("option:checked").inner_text() == f"{number:,}, live"
    for h, head in enumerate(("head 1", "head 2", "head 3")):
        translated.get_by_role("combobox", name="head").select_option(head)
        cells = translated.evaluate(READ, "cells")
        drawn = np.full(weights[h].shape, np.nan)
        drawn[np.array(cells["y"]) - 1, np.array(cells["x"]) - 1] = cells["weight"]
        assert_allclose(drawn, weights[h], atol=0.00501)


def test_typing_a_number_is_enough_once_the_model_is_there(translated: Page) -> None:
    box = translated.get_by_role("textbox")
    box.fill("90")
    box.press("Enter")
    translated.wait_for_function(f"() => ({TEXT})('said').startsWith('90: ninety. The model')")
    count = translated.locator("option").count()
    for number in ("91", "90"):  # one example a number
        box.fill(number)
        box.press("Enter")
        translated.wait_for_function(f"() => ({TEXT})('said').startsWith('{number}: ')")
    assert translated.locator("option").count() == count + 1
    translated.get_by_role("combobox", name="example").select_option("21")
    assert translated.evaluate(READ, "frame")["width"] == [2]


def test_what_is_no_number_is_said(translated: Page) -> None:
    box = translated.get_by_role("textbox")
    box.fill("")
    box.press("Enter")
    translated.wait_for_function(f"() => ({TEXT})('said') === 'Type a number from 0 to 999,999.'")
    for typed, shown in (("1000000", "1,000,000"), ("-5", "−5")):
        box.fill(typed)
        box.press("Enter")
        told = f"{shown} is out of range: the model has learned the numbers from 0 to 999,999."
        translated.wait_for_function(f"() => ({TEXT})('said') === '{told}'")
    box.fill("999999")
    box.press("Enter")
    translated.wait_for_function(f"() => ({TEXT})('said').startsWith('999,999: nine')")


def test_a_number_typed_first_loads_the_model(browser: Browser, tmp_path: Path) -> None:
    """Once, though the button is pressed as well."""
    with alone(browser, tmp_path, translation(), prepare=store) as seen:
        assert models_asked(seen) == []
        box = seen.page.get_by_role("textbox")
        box.fill("21")
        box.press("Enter")
        seen.page.get_by_role("button", name=re.compile("Load|Translate")).click()
        answered = f"() => ({TEXT})('said').startsWith('21: twenty one. The model writes')"
        seen.page.wait_for_function(answered)
        assert len(models_asked(seen)) == 1
        assert seen.complaints == []


def test_doubt_is_said_and_certainty_is_not_hidden(browser: Browser, tmp_path: Path) -> None:
    """The book's own translator writes "siebzehn" for 0, and gives it little."""
    heads = {f"head {h}": [[1.0]] for h in range(4)}
    figure = live.translation_attention(
        [live.Attention("1", "e", ["one"], heads)], name="live-translation", model="translator",
        source_vocabulary=FULL.source_vocabulary, target_vocabulary=FULL.target_vocabulary,
    )  # fmt: skip
    with alone(browser, tmp_path, figure) as seen:
        said = {}
        for number in ("0", "759002"):
            box = seen.page.get_by_role("textbox")
            box.fill(number)
            box.press("Enter")
            start = f"{int(number):,}: "
            seen.page.wait_for_function(
                f"() => ({TEXT})('said').startsWith('{start}') && ({TEXT})('said').includes('prob')"
            )
            said[number] = seen.page.evaluate(TEXT, "said")
        assert "siebzehn" in said["0"] and "it is in doubt, most about 'z' (letter 5)" in said["0"]
        assert "tausendzwei." in said["759002"] and "doubt" not in said["759002"]
        found = [float(re.search(r"answer is ([\d.]+\d)", text)[1]) for text in said.values()]  # type: ignore[index]
        assert found == pytest.approx([0.59, 0.98], abs=0.02)


@pytest.mark.parametrize("part", ["words", "letters", "heads"])
def test_a_model_for_other_words_is_refused(browser: Browser, tmp_path: Path, part: str) -> None:
    """Or for other letters, or with another number of heads: then its weights have no place."""
    words, letters = len(TASK.source_vocabulary), len(TASK.target_vocabulary)
    heads = SMALL["num_heads"]
    sizes = {
        "words": (5, letters, heads),
        "letters": (words, 5, heads),
        "heads": (words, letters, 2),
    }
    with alone(browser, tmp_path, translation(), prepare=store) as seen:
        source, target, num_heads = sizes[part]
        other = Transformer(source, target, 24, **{**SMALL, "num_heads": num_heads})
        file = tmp_path / "_static" / "models" / "small-translator.bin"
        file.write_bytes(models.pack(other))
        load(seen.page)
        seen.page.wait_for_function(f"() => ({TEXT})('said').endsWith('does not fit this figure.')")
        assert seen.complaints == []


def test_a_text_that_is_hidden_is_not_heard(browser: Browser, tmp_path: Path) -> None:
    """A screen reader hears what is on the screen: of two changed sentences, the one that shows."""
    text = """([notice, words]) => {
      const find = (name) => Bokeh.documents.at(-1).get_model_by_name(name);
      find("notice").text = notice;
      find("words").text = words;
    }"""
    with alone(browser, tmp_path, regression(), prepare=store) as seen:
        seen.page.wait_for_function("() => window.attnbookModels")
        status = seen.page.locator("[role=status]")
        expect(status).not_to_be_empty()  # what the model says has been told
        seen.page.evaluate(text, ["Nobody sees this.", "Everybody sees this."])
        expect(status).to_have_text("Everybody sees this.")


def arrange(page: Page, x: np.ndarray, y: np.ndarray, query: float = 0.25, h: float = 0.1) -> None:
    """Put the points there, as many as given."""
    drawn = page.evaluate(READ, "context")["x"]
    for _ in range(len(drawn) - len(x)):
        page.get_by_role("button", name="remove the point").click()
    for _ in range(len(x) - len(drawn)):
        page.get_by_role("button", name="add a point").click()
    for i, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        for control, value in (("point", str(i + 1)), ("point_x", a), ("point_y", b)):
            page.evaluate(SET, [control, value])
    for control, value in (("position", query), ("bandwidth", float(np.log10(h)))):
        page.evaluate(SET, [control, value])


def points(page: Page) -> np.ndarray:
    drawn = page.evaluate(READ, "context")
    return np.c_[drawn["x"], drawn["y"]]


def predictions(x: np.ndarray, y: np.ndarray, at: np.ndarray, h: float) -> dict[str, np.ndarray]:
    """What Python's three regressions say."""
    n, m = len(x), len(at)
    tokens = np.zeros((n + m, 3), dtype=np.float32)
    tokens[:, 0] = np.r_[x, at]
    tokens[:n, 1], tokens[n:, 2] = y, 1
    mask = np.eye(n + m, dtype=bool)
    mask[:n, :n], mask[n:, :n] = np.tri(n, dtype=bool), True
    with torch.no_grad():
        said = regressor()(torch.tensor(tokens), torch.tensor(mask))[n:, 0].numpy()
    mean, _ = gaussian_process.posterior(at, x, y, length_scale=0.3, noise=0.2)
    kernel = nadaraya_watson(at[:, None], x[:, None], y[:, None], bandwidth=h)[:, 0]
    return {"kernel": kernel, "posterior": mean, "transformer": said}


@pytest.mark.parametrize("h", [0.02, 0.4])
@pytest.mark.parametrize("n", [1, 6, 32])
def test_all_three_curves_are_pythons(regressed: Page, n: int, h: float) -> None:
    rng = np.random.default_rng(n)
    x, y = np.round(rng.uniform(-1, 1, n), 2), np.round(rng.normal(size=n), 2)
    arrange(regressed, x, y, -0.35, h)
    assert_allclose(points(regressed), np.c_[x, y], atol=0)
    curve, query = (regressed.evaluate(READ, name) for name in ("curve", "query"))
    grid = np.array(curve["x"])
    assert (grid[0], grid[-1]) == (-1, 1)
    expected = predictions(x, y, grid, h)
    for name, tolerance in (("kernel", 1e-9), ("posterior", 1e-9), ("transformer", 1e-4)):
        assert_allclose(curve[name], expected[name], atol=tolerance, rtol=0, err_msg=name)
    there = [float(v[0]) for v in predictions(x, y, np.array([-0.35]), h).values()]
    assert query["x"] == [-0.35] * 3
    assert_allclose(query["y"], there, atol=1e-4, rtol=0)
    text = regressed.evaluate(WORDS)
    assert text.startswith(
        f"From {n} point{'s' * (n > 1)}, at x = −0.35: Nadaraya–Watson with h = "
    )
    kernel, mean = (f"{v:.3f}".replace("-", "−") for v in there[:2])
    assert f" says {kernel}, the Gaussian process {mean}, the transformer " in text
    said = float(text.removesuffix(".").rpartition(" ")[2].replace("−", "-"))
    assert said == pytest.approx(there[2], abs=0.0006)


def test_the_gaussian_process_can_be_another(browser: Browser, tmp_path: Path) -> None:
    figure = live.in_context_regression(
        *CONTEXT, model="small-regressor", length_scale=0.7, noise=0.0
    )
    with alone(browser, tmp_path, figure, prepare=nothing) as seen:
        curve = seen.page.evaluate(READ, "curve")
        mean, _ = gaussian_process.posterior(
            np.array(curve["x"]), *CONTEXT, length_scale=0.7, noise=0
        )
        assert_allclose(curve["posterior"], mean, atol=1e-6)
        assert np.isnan(np.array(curve["transformer"], dtype=float)).all()
        assert seen.page.evaluate(WORDS).endswith("the transformer is not loaded yet.")


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*page.evaluate(ON_SCREEN, list(start)))
    page.mouse.down()
    page.mouse.move(*page.evaluate(ON_SCREEN, list(end)), steps=6)
    page.mouse.up()
    next_frames(page)


def test_a_drag_moves_a_point_or_the_query(regressed: Page) -> None:
    arrange(regressed, *CONTEXT)
    drag(regressed, (-0.1, 1.1), (0.1, -2))
    expected = np.c_[CONTEXT]
    expected[2] = 0.1, -2
    assert_allclose(points(regressed), expected, atol=0.03)
    assert regressed.evaluate(VALUE, "point") == "3"
    assert_allclose([regressed.evaluate(VALUE, f"point_{a}") for a in "xy"], [0.1, -2], atol=0.03)
    assert regressed.evaluate(VALUE, "position") == 0.25
    drag(regressed, (0.7, 2.5), (-0.5, 2.2))
    assert regressed.evaluate(VALUE, "position") == pytest.approx(-0.5, abs=0.02)
    assert_allclose(points(regressed), expected, atol=0.03)
    drag(regressed, (0.9, 0.6), (3, 0.6))
    expected[5] = 1, 0.6
    assert_allclose(points(regressed), expected, atol=0.03)


def test_a_tap_adds_a_point_or_chooses_one(regressed: Page) -> None:
    arrange(regressed, *CONTEXT)
    for place in ((0.5, 2.0), (0.3, 0.2)):
        regressed.mouse.click(*regressed.evaluate(ON_SCREEN, list(place)))
        next_frames(regressed)
    assert_allclose(points(regressed), [*np.c_[CONTEXT], [0.5, 2]], atol=0.03)
    assert regressed.evaluate(VALUE, "point") == "4"
    ring = regressed.evaluate(READ, "chosen")
    assert (ring["x"], ring["y"]) == ([0.3], [0.2])
    regressed.get_by_role("button", name="remove the point").click()
    expected = [*np.delete(np.c_[CONTEXT], 3, axis=0), [0.5, 2]]
    assert_allclose(points(regressed), expected, atol=0.03)
    assert regressed.evaluate(VALUE, "point") == "4"
    assert regressed.get_by_role("combobox", name="point").locator("option").count() == 6


def test_all_of_it_by_keyboard(regressed: Page) -> None:
    arrange(regressed, *CONTEXT, query=0.5)
    regressed.get_by_role("button", name="add a point at the query").press("Enter")
    regressed.get_by_role("slider", name="point x").press("ArrowRight")
    regressed.get_by_role("slider", name="point y").press("ArrowLeft")
    next_frames(regressed)
    assert_allclose(points(regressed), [*np.c_[CONTEXT], [0.51, -0.01]], atol=1e-9)
    regressed.get_by_role("combobox", name="point").select_option("2")
    next_frames(regressed)
    assert [regressed.evaluate(VALUE, f"point_{a}") for a in "xy"] == [-0.45, -0.7]
    regressed.get_by_role("button", name="remove the point").press("Space")
    expected = [*np.delete(np.c_[CONTEXT], 1, axis=0), [0.51, -0.01]]
    assert_allclose(points(regressed), expected, atol=1e-9)
    regressed.get_by_role("slider", name="query x").press("ArrowRight")
    assert regressed.evaluate(READ, "query")["x"] == [pytest.approx(0.51)] * 3


def test_there_are_from_one_to_32_points(regressed: Page) -> None:
    arrange(regressed, np.linspace(-1, 1, 32).round(2), np.zeros(32))
    assert regressed.get_by_role("button", name="add a point").is_disabled()
    regressed.mouse.click(*regressed.evaluate(ON_SCREEN, [0.5, 2]))
    next_frames(regressed)
    assert len(points(regressed)) == 32
    arrange(regressed, CONTEXT[0][:1], CONTEXT[1][:1])
    assert regressed.get_by_role("button", name="remove the point").is_disabled()


@pytest.mark.parametrize("name", FIGURES)
def test_the_model_comes_from_below_the_sites_own_address(
    browser: Browser, tmp_path: Path, name: str
) -> None:
    """Also where the site lies in a folder of its host, and on a page in a folder of the site."""
    store(tmp_path / "book")
    (tmp_path / "book" / "_static" / "bokeh").symlink_to(BOKEH)
    (tmp_path / "book" / "chapters").mkdir()
    page = PAGE.format(*THEMES["light"], FIGURES[name]()._repr_html_())
    page = page.replace('data-content_root="/"', 'data-content_root="../"')
    (tmp_path / "book" / "chapters" / "08.html").write_text(page, encoding="utf-8")
    context = browser.new_context()
    with served(tmp_path) as address:
        seen = visit(context, address)
        seen.go("book/chapters/08.html").wait_for_selector("[data-ready=true]")
        load(seen.page)
        box, text = LOADED[name]
        seen.page.wait_for_function(f"() => ({TEXT})('{box}').includes('{text}')")
        assert len(models_asked(seen)) == 1
        assert models_asked(seen)[0].startswith(f"{address}/book/_static/models/")
        assert seen.outside == []
        assert seen.complaints == []
    context.close()


@pytest.mark.parametrize("name", FIGURES)
def test_a_notebook_is_told_what_to_call(browser: Browser, tmp_path: Path, name: str) -> None:
    with alone(browser, tmp_path, FIGURES[name](), in_notebook=True) as seen:
        seen.page.get_by_role("button", name="Load the model").click()
        box = "said" if name == "translation" else "notice"
        seen.page.wait_for_function(f"() => ({TEXT})('{box}').startsWith('Only the book')")
        assert f"live.models.load('small-{name[:7]}" in seen.page.evaluate(TEXT, box)[:200]
        assert seen.page.get_by_text("Only the book's website can load the model.").is_visible()
        assert models_asked(seen) == []
        assert seen.complaints == []


def test_a_page_from_the_disk_is_told_too(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "bokeh").symlink_to(BOKEH)
    page = PAGE.format(*THEMES["light"], translation()._repr_html_())
    page = page.replace('data-content_root="/"', 'data-content_root="./"')
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    context = browser.new_context()
    seen = visit(context, "")
    seen.page.goto((tmp_path / "index.html").as_uri())
    seen.page.wait_for_selector("[data-ready=true]")
    seen.page.get_by_role("button", name="Load the model").click()
    seen.page.wait_for_function(f"() => ({TEXT})('said').startsWith('Only the book')")
    assert seen.complaints == []
    context.close()


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("what", ["missing", "half"])
def test_a_model_that_does_not_come_is_said(
    browser: Browser, tmp_path: Path, name: str, what: str
) -> None:
    def half(folder: Path) -> None:
        store(folder)
        for file in (folder / "_static" / "models").iterdir():
            file.write_bytes(file.read_bytes()[:-500])

    way = half if what == "half" else nothing
    with alone(browser, tmp_path, FIGURES[name](), prepare=way) as seen:
        page = seen.page
        if name == "translation":
            page.get_by_role("button", name="Load the model").click()
        box = "said" if name == "translation" else "notice"
        page.wait_for_function(f"() => ({TEXT})('{box}').startsWith('The model could not be')")
        assert ("answers 404" in page.evaluate(TEXT, box)) == (what == "missing")
        assert page.evaluate("window.attnbookModels") is None
        button = page.get_by_role("button", name="Load the model")
        assert button.is_enabled()
        # the browser itself notes an answer of 404
        assert [c for c in seen.complaints if "404" not in c] == []
        if what == "half":
            shutil.rmtree(tmp_path / "_static" / "models")
        store(tmp_path)
        for file in (tmp_path / "_static" / "models").iterdir():
            os.utime(file, (time.time() + 60,) * 2)  # a newer file, in whole seconds too
        button.click()  # once more
        wanted, text = LOADED[name]
        page.wait_for_function(f"() => ({TEXT})('{wanted}').includes('{text}')")


@pytest.mark.parametrize(("theme", "width"), LARGE)
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_with_its_model_is_whole(
    browser: Browser, tmp_path: Path, name: str, theme: str, width: Any
) -> None:
    with alone(browser, tmp_path, FIGURES[name](), theme, width, prepare=store) as seen:
        load(seen.page)
        next_frames(seen.page)
        assert seen.page.evaluate(TOO_WIDE) <= 0
        assert axe_findings(seen.page) == []
        assert seen.outside == []
        assert seen.complaints == []


def test_a_finger_moves_a_point_and_not_the_page(browser: Browser, tmp_path: Path) -> None:
    with alone(browser, tmp_path, regression(), width="phone", prepare=store) as seen:
        page = seen.page
        page.locator("canvas").last.scroll_into_view_if_needed()
        before = page.evaluate("scrollY")
        x, y = page.evaluate(ON_SCREEN, [0.62, -1.3])
        touch = page.context.new_cdp_session(page)
        touch.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
        steps = [{"x": x - 4 * i, "y": y - 10 * i} for i in range(11)]
        for kind, place in zip(["touchStart"] + ["touchMove"] * 10, steps, strict=True):
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [place]})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        next_frames(page)
        assert page.evaluate("scrollY") == before
        assert page.evaluate(VALUE, "point") == "5"
        moved = points(page)
        assert moved[4, 1] > -0.8
        assert_allclose(np.delete(moved, 4, axis=0), np.delete(np.c_[CONTEXT], 4, axis=0), atol=0)


def test_the_site_takes_the_packages_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "_ext"))
    from attnbook_site.assets import copy_models  # type: ignore[import-not-found]

    monkeypatch.setattr(attnbook, "__file__", str(tmp_path / "__init__.py"))
    copy_models(tmp_path / "site")  # there may be none
    stored = tmp_path / "course" / "live" / "models"
    stored.mkdir(parents=True)
    for _ in range(2):  # a second build finds the first one's files
        (stored / "a.bin").write_bytes(b"numbers")
        copy_models(tmp_path / "site")
    assert [file.read_bytes() for file in (tmp_path / "site").iterdir()] == [b"numbers"]


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_light(name: str) -> None:
    assert len(FIGURES[name]()._repr_html_().encode()) < 54_000
