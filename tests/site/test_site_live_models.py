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
from attnbook_site.assets import WORKER, copy_models
from live_visits import (
    FIND,
    alone,
    choose,
    drag,
    figure,
    html_page,
    lay_ground,
    matrix,
    models_asked,
    read,
    says,
    tap,
    text,
    value,
)
from numpy.testing import assert_allclose, assert_array_equal
from playwright.sync_api import Browser, Page, expect
from site_visits import ROOT, served, visiting

import attnbook
from attnbook import datasets, nadaraya_watson
from attnbook.datasets import END, PAD, START
from attnbook.generate import decoding
from attnbook.kernel import gaussian_process
from attnbook.torch import EncoderOnly, Transformer
from attnbook_course import live
from attnbook_course.live import models

ENGINE = """([code, names, stored]) => {
  window.engine = new Function(`${code}; return { ${names} }`)();
  window.model = stored && engine.unpack(Uint8Array.from(atob(stored), (c) => c.charCodeAt(0)).buffer);
}"""
NAMES = "half erf unpack encoder_only encode_source init_cache seq2seq_step greedy number_words"
READ_TOKENS = """([x, mask]) => engine.encoder_only(model, x, mask ? (i, j) => mask[i][j] : undefined).map((said) => [...said])"""
STEPS = """([source, written]) => {
  const memory = engine.encode_source(model, source), cache = engine.init_cache(model);
  return written.map((token) => {
    const { logits, weights } = engine.seq2seq_step(model, memory, cache, token);
    return [[...logits], weights.map((w) => [...w])];
  });
}"""
GREEDY = "([source, start, end]) => engine.greedy(model, source, start, end).tokens"
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


def start_engine(
    page: Page,
    packed: bytes | None = None,
    scripts: tuple[str, ...] = ("number_words.js",),
    names: str = NAMES,
) -> None:
    """Functions of the scripts, and a model for them."""
    stored = base64.b64encode(packed).decode() if packed else None
    page.evaluate(ENGINE, [models.scripts(*scripts), names.replace(" ", ", "), stored])


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
    start_engine(blank, models.pack(model))
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
    start_engine(blank, models.pack(model))
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
    start_engine(blank, models.pack(model))
    source = torch.tensor([[3, 6, 4, 5]])
    with torch.no_grad():
        tokens, _ = decoding.greedy(model, source, source != PAD, start=START, end=END, limit=13)
    assert blank.evaluate(GREEDY, [source[0].tolist(), START, END]) == tokens[0].tolist()


TASK = datasets.number_words(train=500, held_out=1)
WORDS, LETTERS = TASK.source_vocabulary, TASK.target_vocabulary
SHARES = {f"head {h}": np.tile([0.1 * h, 1 - 0.1 * h], (13, 1)) for h in (1, 2, 3)}
CASES = [live.Attention("21", "einundzwanzig", ["twenty", "one"], SHARES)]
CONTEXT = np.array([-0.8, -0.45, -0.1, 0.3, 0.62, 0.9]), np.array([0.4, -0.7, 1.1, 0.2, -1.3, 0.6])


def translator() -> Transformer:
    return random(Transformer, len(WORDS), len(LETTERS), 24, seed=5)


def regressor() -> EncoderOnly:
    return random(EncoderOnly, 3, 1, seed=6)


def translation() -> live.LiveFigure:
    names = {"name": "live-translation", "model": "small-translator"}
    return live.translation_attention(
        CASES, source_vocabulary=WORDS, target_vocabulary=LETTERS, **names
    )


def regression() -> live.LiveFigure:
    return live.in_context_regression(*CONTEXT, model="small-regressor")


FIGURES = {"translation": translation, "regression": regression}
NOTICE = {"translation": "said", "regression": "notice"}
LOADED = {"translation": ("model writes", "said"), "regression": ("the transformer ", "words")}


def store(folder: Path) -> None:
    """Put both models where the site has them."""
    target = folder / "_static" / "models"
    target.mkdir(parents=True)
    for name, model in (("small-translator", translator()), ("small-regressor", regressor())):
        (target / f"{name}.bin").write_bytes(models.pack(model))


def nothing(folder: Path) -> None:
    pass


def load(page: Page) -> None:
    button = page.get_by_role("button", name="Load the model")
    if button.count() and button.is_enabled():
        button.click()
    page.wait_for_function("() => window.attnbookModels")


@pytest.fixture(scope="module")
def translated(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("translation")
    with alone(browser, folder, translation(), prepare=store) as seen:
        assert models_asked(seen) == []
        load(seen.page)
        yield seen.page
        assert models_asked(seen) == ["small-translator.bin"]


@pytest.fixture(scope="module")
def regressed(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The regression, its model loaded; every test puts the points where it wants them."""
    folder = tmp_path_factory.mktemp("regression")
    with alone(browser, folder, regression(), prepare=store) as seen:
        seen.page.wait_for_function("() => window.attnbookModels")  # with the figure, unasked
        yield seen.page
        assert models_asked(seen) == ["small-regressor.bin"]


def expected_translation(words: list[str]) -> tuple[str, np.ndarray, np.ndarray]:
    """Python's letters, the weights of the last layer's heads, (heads, letters, words), and the
    probability of each token that it writes, the end among them."""
    source = torch.tensor([[WORDS.index(word) for word in words]])
    model = translator()
    with torch.no_grad():
        tokens, _ = decoding.greedy(model, source, source != PAD, start=START, end=END, limit=24)
        written = torch.tensor([[START, *tokens[0][:-1]]])
        logits, weights = model(source, source != PAD, written, return_weights=True)
        shares = torch.softmax(logits.double(), -1)[0].numpy()
    letters = [LETTERS[t] for t in tokens[0] if t != END]
    probabilities = shares[np.arange(len(tokens[0])), np.asarray(tokens[0])]
    return "".join(letters), weights[-1][0, :, : len(letters)].numpy(), probabilities


def enter(page: Page, number: object) -> None:
    box = page.get_by_role("textbox")
    box.fill(str(number))
    box.press("Enter")


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
    written, weights, probabilities = expected_translation(words.split())
    assert written, "choose another seed: this model writes nothing"
    says(translated, f"{words}.", "said", "includes")
    said = text(translated, "said")
    assert said.startswith(
        f"{number:,}: {words}. The model writes: {written}. The probability that it gives to this "
        f"answer is {probabilities.prod():.2f}: it is in doubt, most about "
    )
    assert said.endswith(f", {probabilities.min():.2f}.")
    example = translated.get_by_role("combobox", name="example")
    assert example.locator("option:checked").inner_text() == f"{number:,}, live"
    for h, head in enumerate(("head 1", "head 2", "head 3")):
        translated.get_by_role("combobox", name="head").select_option(head)
        assert_allclose(matrix(translated, "cells", weights[h].shape), weights[h], atol=0.00501)


def test_typing_a_number_is_enough_once_the_model_is_there(translated: Page) -> None:
    enter(translated, 90)
    says(translated, "90: ninety. The model", "said")
    count = translated.locator("option").count()
    for number in (91, 90):  # one example a number
        enter(translated, number)
        says(translated, f"{number}: ", "said")
    assert translated.locator("option").count() == count + 1
    translated.get_by_role("combobox", name="example").select_option("21")
    assert read(translated, "frame")["width"] == [2]


OUT_OF_RANGE = "is out of range: the model has learned the numbers from 0 to 999,999."


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "Type a number from 0 to 999,999."),
        ("1000000", f"1,000,000 {OUT_OF_RANGE}"),
        ("-5", f"−5 {OUT_OF_RANGE}"),
        ("999999", None),
    ],
)
def test_what_is_no_number_is_said(translated: Page, typed: str, said: str | None) -> None:
    enter(translated, typed)
    says(translated, said or "999,999: nine", "said")
    assert said in (text(translated, "said"), None)


def test_a_number_typed_first_loads_the_model(browser: Browser, tmp_path: Path) -> None:
    """Once, though the button is pressed as well."""
    with alone(browser, tmp_path, translation(), prepare=store) as seen:
        assert models_asked(seen) == []
        enter(seen.page, 21)
        seen.page.get_by_role("button", name=re.compile("Load|Translate")).click()
        says(seen.page, "21: twenty one. The model writes", "said")
        assert len(models_asked(seen)) == 1


def test_doubt_is_said_and_certainty_is_not_hidden(browser: Browser, tmp_path: Path) -> None:
    """The book's own translator writes "siebzehn" for 0, and gives it little."""
    with alone(browser, tmp_path, figure("translation_attention")) as seen:
        said = {}
        for number in ("0", "759002"):
            enter(seen.page, number)
            says(seen.page, f"{int(number):,}: ", "said")
            says(seen.page, "prob", "said", "includes")
            said[number] = text(seen.page, "said")
        assert "siebzehn" in said["0"] and "it is in doubt, most about 'z' (letter 5)" in said["0"]
        assert "tausendzwei." in said["759002"] and "doubt" not in said["759002"]
        found = [float(re.search(r"answer is ([\d.]+\d)", one)[1]) for one in said.values()]  # type: ignore[index]
        assert found == pytest.approx([0.59, 0.98], abs=0.02)


@pytest.mark.parametrize("part", ["words", "letters", "heads"])
def test_a_model_for_other_words_is_refused(browser: Browser, tmp_path: Path, part: str) -> None:
    """Or for other letters, or with another number of heads: then its weights have no place."""
    sizes = {"words": len(WORDS), "letters": len(LETTERS), "heads": SMALL["num_heads"]}
    source, target, num_heads = (sizes | {part: 2}).values()
    other = Transformer(source, target, 24, **{**SMALL, "num_heads": num_heads})
    with alone(browser, tmp_path, translation(), prepare=store) as seen:
        file = tmp_path / "_static" / "models" / "small-translator.bin"
        file.write_bytes(models.pack(other))
        load(seen.page)
        says(seen.page, "does not fit this figure.", "said", "endsWith")


def test_a_text_that_is_hidden_is_not_heard(regressed: Page) -> None:
    """A screen reader hears what is on the screen: of two changed sentences, the one that shows."""
    regressed.evaluate(
        f"""() => {{
          {FIND}("notice").text = "Nobody sees this.";
          {FIND}("words").text = "Everybody sees this.";
        }}"""
    )
    expect(regressed.locator("[role=status]")).to_have_text("Everybody sees this.")


def arrange(page: Page, x: np.ndarray, y: np.ndarray, query: float = 0.25, h: float = 0.1) -> None:
    """Put the points there, as many as given."""
    more = len(x) - len(points(page))
    name = "add a point" if more > 0 else "remove the point"
    for _ in range(abs(more)):
        page.get_by_role("button", name=name).click()
    for i, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        choose(page, point=str(i + 1), point_x=a, point_y=b)
    choose(page, position=query, bandwidth=float(np.log10(h)))


def points(page: Page) -> np.ndarray:
    drawn = read(page, "context")
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
    curve, query = (read(regressed, name) for name in ("curve", "query"))
    grid = np.array(curve["x"])
    assert (grid[0], grid[-1]) == (-1, 1)
    expected = predictions(x, y, grid, h)
    for name, tolerance in (("kernel", 1e-9), ("posterior", 1e-9), ("transformer", 1e-4)):
        assert_allclose(curve[name], expected[name], atol=tolerance, rtol=0, err_msg=name)
    there = [float(v[0]) for v in predictions(x, y, np.array([-0.35]), h).values()]
    assert query["x"] == [-0.35] * 3
    assert_allclose(query["y"], there, atol=1e-4, rtol=0)
    told = text(regressed)
    assert told.startswith(
        f"From {n} point{'s' * (n > 1)}, at x = −0.35: Nadaraya–Watson with h = "
    )
    kernel, mean = (f"{v:.3f}".replace("-", "−") for v in there[:2])
    assert f" says {kernel}, the Gaussian process {mean}, the transformer " in told
    said = float(told.removesuffix(".").rpartition(" ")[2].replace("−", "-"))
    assert said == pytest.approx(there[2], abs=0.0006)


def test_the_gaussian_process_can_be_another(browser: Browser, tmp_path: Path) -> None:
    other = live.in_context_regression(
        *CONTEXT, model="small-regressor", length_scale=0.7, noise=0.0
    )
    with alone(browser, tmp_path, other, prepare=nothing) as seen:
        seen.expected = "404"
        curve = read(seen.page, "curve")
        mean, _ = gaussian_process.posterior(
            np.array(curve["x"]), *CONTEXT, length_scale=0.7, noise=0
        )
        assert_allclose(curve["posterior"], mean, atol=1e-6)
        assert np.isnan(np.array(curve["transformer"], dtype=float)).all()
        assert text(seen.page).endswith("the transformer is not loaded yet.")


def test_a_drag_moves_a_point_or_the_query(regressed: Page) -> None:
    arrange(regressed, *CONTEXT)
    drag(regressed, (-0.1, 1.1), (0.1, -2))
    expected = np.c_[CONTEXT]
    expected[2] = 0.1, -2
    assert_allclose(points(regressed), expected, atol=0.03)
    assert_allclose(value(regressed, "point_x", "point_y"), [0.1, -2], atol=0.03)
    assert value(regressed, "point", "position") == ["3", 0.25]
    drag(regressed, (0.7, 2.5), (-0.5, 2.2))
    assert value(regressed, "position") == pytest.approx(-0.5, abs=0.02)
    assert_allclose(points(regressed), expected, atol=0.03)
    drag(regressed, (0.9, 0.6), (3, 0.6))
    expected[5] = 1, 0.6
    assert_allclose(points(regressed), expected, atol=0.03)


def test_a_tap_or_a_key_adds_a_point_chooses_one_and_removes_it(regressed: Page) -> None:
    arrange(regressed, *CONTEXT, query=0.5)
    tap(regressed, 0.5, 2.0)
    tap(regressed, 0.3, 0.2)
    regressed.get_by_role("button", name="add a point at the query").press("Enter")
    assert value(regressed, "point", "point_x", "point_y") == ["8", 0.5, 0]
    expected = [*np.c_[CONTEXT], [0.5, 2], [0.5, 0]]
    assert_allclose(points(regressed), expected, atol=0.03)
    tap(regressed, 0.3, 0.2)
    assert value(regressed, "point") == "4"
    ring = read(regressed, "chosen")
    assert (ring["x"], ring["y"]) == ([0.3], [0.2])
    regressed.get_by_role("button", name="remove the point").press("Space")
    assert_allclose(points(regressed), np.delete(expected, 3, axis=0), atol=0.03)
    assert value(regressed, "point") == "4"
    assert regressed.get_by_role("combobox", name="point").locator("option").count() == 7


def test_there_are_from_one_to_32_points(regressed: Page) -> None:
    arrange(regressed, np.linspace(-1, 1, 32).round(2), np.zeros(32))
    assert regressed.get_by_role("button", name="add a point").is_disabled()
    tap(regressed, 0.5, 2)
    assert len(points(regressed)) == 32
    arrange(regressed, CONTEXT[0][:1], CONTEXT[1][:1])
    assert regressed.get_by_role("button", name="remove the point").is_disabled()


@pytest.mark.parametrize("name", FIGURES)
def test_the_model_comes_from_below_the_sites_own_address(
    browser: Browser, tmp_path: Path, name: str
) -> None:
    """Also where the site lies in a folder of its host, and on a page in a folder of the site."""
    lay_ground(tmp_path / "book", store)
    (tmp_path / "book" / "chapters").mkdir()
    page = html_page(FIGURES[name]()).replace('content_root="/"', 'content_root="../"')
    (tmp_path / "book" / "chapters" / "08.html").write_text(page, encoding="utf-8")
    with served(tmp_path) as address, visiting(browser, address) as seen:
        seen.go("book/chapters/08.html").wait_for_selector("[data-ready=true]")
        load(seen.page)
        says(seen.page, *LOADED[name], "includes")
        (asked,) = models_asked(seen)
        assert f"{address}/book/_static/models/{asked}" in seen.requests


def text_writer() -> live.LiveFigure:
    return live.text_writer("a", model="small-writer")


def ask_model() -> live.LiveFigure:
    return live.ask_model("smollm2", next_tokens=[(" down", 0.5)])


LOADS = "live.models.load('small-{}') gives it, "
NOTEBOOKS = [  # a figure, its button, the text that says it, and what to call
    (translation, "Load the model", "said", f"{LOADS.format('translator')}and decoding.greedy"),
    (regression, "Load the model", "notice", f"{LOADS.format('regressor')}to call with tokens"),
    (text_writer, "write", "notice", f"{LOADS.format('writer')}and sampling.sample writes."),
    (ask_model, "load the model", "notice", "pretrained.fetch('smollm2') and pretrained.from_gguf"),
]


@pytest.mark.parametrize(("shown", "button", "notice", "call"), NOTEBOOKS)
def test_a_notebook_is_told_what_to_call(
    browser: Browser, tmp_path: Path, shown: Any, button: str, notice: str, call: str
) -> None:
    only = "Only the book's website can load the model."
    with alone(browser, tmp_path, shown(), in_notebook=True) as seen:
        seen.page.get_by_role("button", name=button).click()
        says(seen.page, f"{only} In Python, {call}", notice)
        assert seen.page.get_by_text(only).is_visible()
        assert models_asked(seen) == []


def test_a_page_from_the_disk_is_told_too(browser: Browser, tmp_path: Path) -> None:
    lay_ground(tmp_path, nothing)
    page = html_page(translation()).replace('content_root="/"', 'content_root="./"')
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    with visiting(browser, tmp_path.as_uri()) as seen:
        seen.go("index.html").wait_for_selector("[data-ready=true]")
        seen.page.get_by_role("button", name="Load the model").click()
        says(seen.page, "Only the book", "said")


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("what", ["missing", "half"])
def test_a_model_that_does_not_come_is_said(
    browser: Browser, tmp_path: Path, name: str, what: str
) -> None:
    stored = tmp_path / "_static" / "models"

    def half(folder: Path) -> None:
        store(folder)
        for file in stored.iterdir():
            file.write_bytes(file.read_bytes()[:-500])

    way = half if what == "half" else nothing
    with alone(browser, tmp_path, FIGURES[name](), prepare=way) as seen:
        seen.expected = "404"
        page = seen.page
        button = page.get_by_role("button", name="Load the model")
        if name == "translation":
            button.click()
        says(page, "The model could not be", NOTICE[name])
        assert ("answers 404" in text(page, NOTICE[name])) == (what == "missing")
        assert page.evaluate("window.attnbookModels") is None
        assert button.is_enabled()
        shutil.rmtree(stored, ignore_errors=True)
        store(tmp_path)
        for file in stored.iterdir():
            os.utime(file, (time.time() + 60,) * 2)  # a newer file, in whole seconds too
        button.click()  # once more
        says(page, *LOADED[name], "includes")


def test_the_site_takes_the_packages_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attnbook, "__file__", str(tmp_path / "__init__.py"))
    live, site = tmp_path / "attnbook_course" / "live", tmp_path / "site"
    shutil.copytree(ROOT / "src" / "attnbook_course" / "live" / "static", live / "static")
    copy_models(site)  # there may be none
    workers = {*WORKER, "quantised.wasm"}
    assert {file.name for file in site.iterdir()} == workers
    (live / "models").mkdir()
    for _ in range(2):  # a second build finds the first one's files
        (live / "models" / "a.bin").write_bytes(b"numbers")
        copy_models(site)
    assert {file.name for file in site.iterdir()} == {*workers, "a.bin"}
    assert (site / "a.bin").read_bytes() == b"numbers"
    for name in WORKER:
        assert (site / name).read_bytes() == (live / "static" / name).read_bytes()
    assert (site / "quantised.wasm").read_bytes()[:4] == b"\0asm"
