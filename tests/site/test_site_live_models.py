"""Figures that run a model in the page: it is asked for, checked before use, and Python's."""

from __future__ import annotations

import json
import re
import runpy
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from attnbook_site.assets import WORKER, assemble
from attnbook_site.live import ASKING
from live_visits import FIND, alone, choose, figure, lay_out, read, says, text
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page
from site_visits import ROOT, SITE, served, visiting
from test_site_live_numbers import HEADS, LAYERS, STATIC, TEXT, by_torch, write_small_model

from attnbook import pretrained, softmax
from attnbook.torch import DecoderOnly
from attnbook_course import live
from attnbook_course.live import models
from attnbook_course.live.figure import SCRIPTS

OPENING = "Compute the mean of"
WRITTEN = "attnbookWritten['live-writer']"
RESTS = f"() => {WRITTEN}?.running === false"
ONLY = "Only the book's website can load the model."


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=False).first.click()


def writer() -> live.LiveFigure:
    return live.text_writer(OPENING, model="docstrings", next_tokens=[(" the", 0.5)])


def test_the_writer_writes_what_python_writes(browser: Browser, tmp_path: Path) -> None:
    """At temperature 0 token by token; the bars are the probabilities at another temperature."""
    model, pairs = models.load("docstrings"), models.load_pairs("docstrings")
    tokens = pairs.encode(OPENING)
    with alone(browser, tmp_path, writer()) as seen:
        page = seen.page
        assert not any("/models/" in url for url in seen.requests)  # nobody has asked for it
        press(page, "Load the model")
        page.wait_for_function(RESTS)
        choose(page, temperature=0)
        press(page, "begin again")
        for _ in range(5):
            press(page, "one token")
            with torch.no_grad():
                tokens.append(int(model(torch.tensor([tokens]))[0, -1].argmax()))
        assert page.evaluate(f"{WRITTEN}.tokens") == tokens
        plain = re.sub("</?strong>", "", text(page, "written"))
        assert plain.replace("&lt;", "<").replace("&amp;", "&") == pairs.decode(tokens)
        assert text(page).startswith("5 tokens are written. ")
        choose(page, temperature=0.5)
        with torch.no_grad():
            shares = softmax(model(torch.tensor([tokens]))[0, -1].double().numpy() / 0.5)
        assert_allclose(read(page, "bars")["share"], np.sort(shares)[:-9:-1], atol=1e-4)
        choose(page, beginning="Return <b>")
        assert text(page, "written") == "<strong>Return &lt;b></strong>"
        assert sum("/models/" in url for url in seen.requests) == 1


def test_a_model_of_the_readers_own(browser: Browser, tmp_path: Path) -> None:
    """A damaged file changes nothing; a whole one writes what Python writes; nothing is sent."""
    model = DecoderOnly(3, 8, embed_dim=12, num_heads=3, mlp_dim=20, activation="relu", bias=False)
    models.save(tmp_path / "mine", model, "abc")
    data = (tmp_path / "mine").read_bytes()
    (tmp_path / "flipped").write_bytes(data[:-2] + bytes([data[-2] ^ 1, data[-1]]))
    (tmp_path / "text").write_text("a text and no model", "utf-8")
    program = runpy.run_path(str(ROOT / "examples" / "writer.py"))
    program["save"](tmp_path / "program", program["Writer"](3), "abc")
    with alone(browser, tmp_path, writer()) as seen:
        page = seen.page
        own = page.get_by_label("Open a model of your own")
        assert own.bounding_box()["height"] >= 44
        before = text(page)
        for name, reason in (("flipped", "it is damaged"), ("text", "it is not in the")):
            own.set_input_files(tmp_path / name)
            says(page, f"{name} was not opened: {reason}", "notice")
            assert text(page) == before and not page.evaluate(f"{WRITTEN}.own")
        for name in ("program", "mine"):
            own.set_input_files(tmp_path / name)
            says(page, f"The most probable next token of {name} is")
            assert page.evaluate(f"{WRITTEN}.tokens") == [
                0
            ]  # it begins anew; of the text it knows "a"
            press(page, "one token")
        choose(page, temperature=0, beginning="cabé")
        says(page, "leaves out what it has never seen: 'é'.", "notice")
        tokens, read_by_python = [2, 0, 1], models.unpack(data)
        for _ in range(4):
            press(page, "one token")
            with torch.no_grad():
                tokens.append(int(read_by_python(torch.tensor([tokens]))[0, -1].argmax()))
        assert page.evaluate(f"{WRITTEN}.tokens") == tokens
        assert not any("/models/" in url for url in seen.requests)


def test_a_press_stops_the_writer_and_a_long_text_goes_on(browser: Browser, tmp_path: Path) -> None:
    """Where its 128 places end, half of them are read anew."""
    with alone(browser, tmp_path, writer()) as seen:
        page = seen.page
        press(page, "Load the model")
        page.wait_for_function(f"{WRITTEN}?.tokens.length > 10")
        press(page, "stop")
        count = page.evaluate(f"{WRITTEN}.tokens.length")
        page.wait_for_timeout(300)
        assert page.evaluate(f"{WRITTEN}.tokens.length") == count < 64
        for _ in range(3):
            press(page, "write 60 tokens")
            page.wait_for_function(RESTS)
        assert page.evaluate(f"{WRITTEN}.tokens.length") > 150
        assert page.evaluate(f"{WRITTEN}.cache[0].keys.length") <= 128


def test_a_model_that_does_not_come_is_said(browser: Browser, tmp_path: Path) -> None:
    """Missing, or half of it; a second press asks again."""
    data = models.read("docstrings")
    with alone(browser, tmp_path, writer(), prepare=lambda folder: None) as seen:
        seen.expected = "404"
        file = tmp_path / "_static" / "models" / "docstrings.bin"
        press(seen.page, "Load the model")
        says(seen.page, "The model could not be loaded: the host answers 404.", "notice")
        file.write_bytes(data[: len(data) // 2])
        press(seen.page, "Load the model")
        says(seen.page, "The model could not be loaded", "notice")
        assert seen.page.evaluate("window.attnbookModels") is None
        file.write_bytes(data)
        time.sleep(1.1)  # the server knows whole seconds
        file.touch()
        press(seen.page, "Load the model")
        seen.page.wait_for_function(RESTS)
        assert not seen.page.evaluate(f"{FIND}('notice').visible")


def test_a_notebook_is_told_what_to_call(browser: Browser, tmp_path: Path) -> None:
    lay_out(tmp_path, figure("text_writer"))
    file = tmp_path / "index.html"
    page = file.read_text("utf-8").replace(' data-content_root="/"', "")
    page = page.replace("https://cdn.bokeh.org/bokeh/release/", "/_static/bokeh/")
    file.write_text(page.replace("${file}-${version}.min.js", "${file}.min.js"), "utf-8")
    with served(tmp_path) as address, visiting(browser, address) as seen:
        seen.go("index.html").wait_for_selector("[data-ready=true]")
        seen.page.get_by_role("button", name=re.compile("load the model", re.I)).click()
        says(seen.page, ONLY, "notice")
        assert "live.models.load('docstrings')" in text(seen.page, "notice")


# The laboratory of chapter 10, with a small model of the same kind


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("small") / "smollm2.gguf")


class WithModel(live.LiveFigure):
    """As on a site that has the model's file."""

    def _repr_html_(self) -> str:
        return super()._repr_html_().replace(ASKING, f"{ASKING}data-model ")


def laboratory(file: Path) -> live.LiveFigure:
    """The figure, of another file than the published one."""
    shown = live.ask_model(
        "smollm2", head=(2, 3), token=" his", next_tokens=[(" down", 0.5), (".", 0.1)]
    )
    update = shown.layout.select_one({"name": "layer"}).js_property_callbacks["change:value"][0]
    data = file.read_bytes()
    update.args |= {"bytes": len(data), "sha256": sha256(data).hexdigest()}
    update.args |= {"layers": LAYERS, "heads": HEADS}
    for name, end in (("layer", LAYERS), ("head", HEADS)):
        shown.layout.select_one({"name": name}).end = end
    return WithModel(**vars(shown))


def with_file(data: bytes | None) -> Callable[[Path], None]:
    """What the site has: the worker's scripts, and a file of the model."""

    def prepare(folder: Path) -> None:
        for name in WORKER:
            (folder / name).write_bytes((STATIC / name).read_bytes())
        assemble(STATIC / "quantised.wat", folder / "quantised.wasm")
        if data is not None:
            (folder / "smollm2.gguf").write_bytes(data)

    return prepare


def test_the_model_is_asked_with_heads_and_without(
    browser: Browser, tmp_path: Path, small: Path
) -> None:
    model, pairs = pretrained.from_gguf(small), pretrained.tokens_from_gguf(small)
    tokens = [0, *pairs.encode(TEXT, split_special_tokens=True)]
    shares = lambda cut: softmax(by_torch(model, tokens, cut)[0])  # noqa: E731
    whole, moved = shares(()), np.zeros((LAYERS, HEADS))
    for i, h in np.ndindex(moved.shape):
        moved[i, h] = np.abs(whole - shares([(i + 1, h + 1)])).sum() / 2
    prepare = with_file(small.read_bytes())
    with alone(browser, tmp_path, laboratory(small), prepare=prepare) as seen:
        page = seen.page
        assert not any("/models/" in url for url in seen.requests)
        choose(page, own=TEXT)
        press(page, "load the model")
        page.wait_for_function(f"{FIND}('cases').data.tokens[0].length === {len(tokens)}")
        order = np.argsort(-whole)[:8]
        assert_allclose(read(page, "bars")["whole"], whole[order], atol=1e-5)
        first = pairs.decode([int(order[0])]).replace(" ", "␣").replace("\n", "⏎")
        says(page, f"The most probable next token is '{first}' {whole[order[0]]:.2f}", "said")
        press(page, "cut this head")
        says(page, "Without head 2.3 it is", "said")
        assert_allclose(read(page, "bars")["cut"], shares([(2, 3)])[order], atol=1e-5)
        assert f"; {moved[1, 2]:.2f} of the probability" in text(page, "said")
        press(page, "put all back")
        page.wait_for_function(f"!{FIND}('said').text.includes('Without')")
        press(page, "cut each head in turn")
        state = "attnbookAsking['live-ask-model']"
        page.wait_for_function(f"{state}.scanning === false && {state}.moved")
        found = page.evaluate(f"[...{state}.moved]")
        assert_allclose(np.reshape(found, moved.shape), moved, atol=1e-5)
        best = np.unravel_index(moved.argmax(), moved.shape)
        says(page, f"Cut alone, head {best[0] + 1}.{best[1] + 1} moves most, {moved.max():.2f}")
        choose(page, own="the cat " * 130)
        says(page, "The text is long", "said")


def test_without_the_model_nothing_promises_it(browser: Browser, tmp_path: Path) -> None:
    """A line on top says how to get it; heads of the stored sentence move."""
    with alone(browser, tmp_path, figure("ask_model")) as seen:
        buttons = seen.page.locator(".attnbook-live").get_by_role("button")
        assert buttons.all_inner_texts() == ["save as PNG"]
        assert not seen.page.get_by_label("your text").is_visible()
        assert "make model" in text(seen.page, "notice")
        assert text(seen.page).startswith("Head 14.9: the token 'his' (6th of 16) attends to 'man'")


def test_what_asks_and_what_answers_is_seen_at_once(browser: Browser, tmp_path: Path) -> None:
    """Text, button, answer and the weights of a head, in 800 pixels."""
    lay_out(tmp_path, WithModel(**vars(figure("ask_model"))), width="656px")
    with served(tmp_path) as address, visiting(browser, address) as seen:
        seen.go("index.html").wait_for_selector("[data-ready=true]")
        answer, weights = (seen.page.locator(".bk-Figure").nth(n).bounding_box() for n in (0, 1))
        asked = seen.page.get_by_role("button", name="load the model").bounding_box()
        top = seen.page.locator(".attnbook-live").bounding_box()["y"]
        assert asked["y"] < answer["y"]
        assert max(one["y"] + one["height"] for one in (answer, weights)) - top < 800


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: None, "this site has no copy of it"),
        (lambda data: data[:-1] + b"0", "the file is not the published one"),
        (lambda data: data + b"0", "the file is too long"),
        (lambda data: data[:-1], "the file is not the published one"),
    ],
)
def test_hash_and_size_are_checked_before_use(
    browser: Browser, tmp_path: Path, small: Path, change: Any, reason: str
) -> None:
    prepare = with_file(change(small.read_bytes()))
    with alone(browser, tmp_path, laboratory(small), prepare=prepare) as seen:
        seen.expected = "404"
        press(seen.page, "load the model")
        says(seen.page, f"The model could not be loaded: {reason}.", "notice")
        assert seen.page.get_by_role("button", name="load the model").is_enabled()


def test_the_pages_have_the_scripts_of_this_source(site: str) -> None:
    """A figure lies in its notebook, which keeps the script that it was executed with."""
    built = "".join(file.read_text("utf-8") for file in (SITE / "_static" / "live").glob("*.js"))
    for script in sorted((ROOT / "src" / "attnbook_course" / "live" / "static").glob("*.js")):
        source = script.read_text("utf-8")
        beside = SITE / "_static" / "models" / script.name  # what a worker loads is in no notebook
        if beside.is_file() and beside.read_text("utf-8") == source:
            continue
        quoted = json.dumps(source)[1:-1].replace("</", "<\\/")
        parts = re.split("%[A-Z_]+%", source.strip()) if script.name in SCRIPTS else [quoted]
        assert all(part.strip() in built for part in parts), (
            f"the notebooks hold figures with another {script.name}: "
            "execute their chapters with tools/weave.py --force, then run make book"
        )
