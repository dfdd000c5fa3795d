"""The laboratory's model is the published one: in Node against PyTorch, and in a page with hands on it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import published
import pytest
import torch
from attnbook_site.assets import WORKER, assemble
from attnbook_site.maths import node_program
from firefox import Firefox
from gguf import GGMLQuantizationType as Q
from live_visits import (
    DEEP,
    FIND,
    alone,
    choose,
    lay_out,
    matrix,
    models_asked,
    read,
    says,
    text,
    value,
)
from numpy.testing import assert_allclose
from playwright.sync_api import Browser, Page
from site_visits import served

from attnbook import datasets, pretrained, softmax
from attnbook.train.byte_pairs import learn_pairs
from attnbook_course import live
from attnbook_course.live import models

STATIC = models.FOLDER.parent / "static"
NAME = "live-ask-model"
PAIRS = learn_pairs("the cat sat on the mat, and the dog sat on the cat. x = 12\n" * 20, 300)
LAYERS, HEADS, WIDTH = 3, 4, 64
TEXT = "the cat sat on the mat, the cat sat"
TRICKY = ["x = 43, y = 12\n", "it's  two   spaces", "é — naïve\t", "日本 2024", "<|im_start|>", " "]
SPECIAL = "the"  # of the small model; who types it means the letters, as in "bathe"
Cut = Sequence[tuple[int, int]]

# The worker's own script, without a page: it reads a file and a list of calls.
HARNESS = """
const fs = require("fs"), vm = require("vm");
const [, folder, file, out] = process.argv;
const read = (name) => fs.readFileSync(`${folder}/${name}`);
const run = (code) => vm.runInThisContext(code.toString());
globalThis.importScripts = (...names) => names.forEach((name) => run(read(name)));
globalThis.postMessage = (message) => { globalThis.last = message; };
run(read("model_worker.js"));
globalThis.published = fs.readFileSync(file);
globalThis.compiled = new WebAssembly.Module(read("quantised.wasm"));
run(`{
  const room = make_room(published.length);
  room.file.set(published);
  model = open_llama(room, compiled);
  pairs = pairs_of(model.fields);
  globalThis.some = (logits) => [logits.indexOf(Math.max(...logits)), logits.filter((_, n) => n % 16 === 0)];
}`);
const numbers = (of) => JSON.stringify(of, (_, one) => (ArrayBuffer.isView(one) ? [...one] : one));
const calls = JSON.parse(fs.readFileSync(0));
fs.writeFileSync(out, numbers(calls.map((code) => run(code))));
"""


def in_node(folder: Path, file: Path, calls: list[str]) -> list[Any]:
    """What each call gives, beside the worker's functions and a model."""
    assemble(STATIC / "quantised.wat", folder / "quantised.wasm")
    for name in WORKER:
        (folder / name).write_bytes((STATIC / name).read_bytes())
    out = folder / "out.json"
    command = [node_program(), "-e", HARNESS, str(folder), str(file), str(out)]
    subprocess.run(command, input=json.dumps(calls), text=True, check=True)
    return json.loads(out.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model of the same kind: matrices in Q4_1, embeddings in Q8_0, digits cut first."""
    file, rng = tmp_path_factory.mktemp("small") / "smollm2.gguf", np.random.default_rng(0)
    vocab, kv, mlp = len(PAIRS.tokens), 32, 96
    writer = gguf.GGUFWriter(file, "llama")
    sizes = {
        "block_count": LAYERS,
        "embedding_length": WIDTH,
        "feed_forward_length": mlp,
        "context_length": 128,
        "attention.head_count": HEADS,
        "attention.head_count_kv": 2,
    }
    for name, number in sizes.items():
        writer.add_uint32(f"llama.{name}", number)
    writer.add_float32("llama.rope.freq_base", 5e4)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    writer.add_string("tokenizer.ggml.model", "gpt2")
    writer.add_string("tokenizer.ggml.pre", "smollm")
    writer.add_array("tokenizer.ggml.tokens", PAIRS.tokens)
    kinds = [3 if token == SPECIAL else 1 for token in PAIRS.tokens]
    writer.add_array("tokenizer.ggml.token_type", kinds)
    writer.add_array("tokenizer.ggml.merges", [" ".join(pair) for pair in PAIRS.rank])
    shapes = {"token_embd": (vocab, WIDTH), "output_norm": (WIDTH,)}
    of_layer = {
        "attn_q": (WIDTH, WIDTH),
        "attn_k": (kv, WIDTH),
        "attn_v": (kv, WIDTH),
        "attn_output": (WIDTH, WIDTH),
        "ffn_gate": (mlp, WIDTH),
        "ffn_up": (mlp, WIDTH),
        "ffn_down": (WIDTH, mlp),
        "attn_norm": (WIDTH,),
        "ffn_norm": (WIDTH,),
    }
    for i in range(LAYERS):
        shapes |= {f"blk.{i}.{name}": shape for name, shape in of_layer.items()}
    for name, shape in shapes.items():
        kind = Q.F32 if len(shape) == 1 else Q.Q8_0 if name == "token_embd" else Q.Q4_1
        array = (rng.normal(size=shape) * 0.3 + (len(shape) == 1)).astype(np.float32)
        raw = gguf.quants.quantize(array, kind)
        writer.add_tensor(f"{name}.weight", raw, raw_dtype=None if kind is Q.F32 else kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


@pytest.fixture
def model(small: Path) -> Any:
    """The same in PyTorch."""
    return pretrained.from_gguf(small)


@pytest.fixture
def tokens(small: Path) -> list[int]:
    return [0, *typed(pretrained.tokens_from_gguf(small), TEXT)]


def typed(pairs: Any, text: str) -> list[int]:
    found: list[int] = pairs.encode(text, split_special_tokens=True)
    return found


@contextmanager
def without(model: Any, heads: Cut) -> Iterator[None]:
    """The model without what some heads add."""
    width = model.embed_dim // model.num_heads
    kept = {name: p.clone() for name, p in model.named_parameters()}
    with torch.no_grad():
        for layer, head in heads:
            columns = slice(width * (head - 1), width * head)
            model.decoder[layer - 1].attention.output.weight[:, columns] = 0
        yield
        for name, p in model.named_parameters():
            p.copy_(kept[name])


def by_torch(model: Any, tokens: list[int], cut: Cut = ()) -> tuple[np.ndarray, np.ndarray]:
    """Logits of the next token, and the weights of all heads as the worker stores them."""
    with without(model, cut):
        logits, weights = model(torch.tensor([tokens]), return_weights=True)
    below = np.tril_indices(len(tokens))
    rows = [one[0, h].numpy()[below] for one in weights for h in range(one.shape[1])]
    return logits[0, -1].numpy(), np.concatenate(rows)


def shares_after(model: Any, tokens: list[int], cut: Cut = ()) -> np.ndarray:
    return softmax(by_torch(model, tokens, cut)[0])


def test_the_small_model_is_pythons(
    small: Path, model: Any, tokens: list[int], tmp_path: Path
) -> None:
    """With heads and without; and a second pass from a layer on."""
    pairs = pretrained.tokens_from_gguf(small)
    assert pairs.special == [SPECIAL]
    cuts: list[Cut] = [(), [(2, 3)], [(1, 1), (3, 4)]]
    texts = (TEXT, "bathe", *TRICKY)
    calls = [f"pairs.encode({json.dumps(one)})" for one in texts]
    calls += [f"forward(model, {tokens}, {json.dumps(list(map(list, cut)))})" for cut in cuts]
    calls += [
        f"(() => {{ const streams = []; forward(model, {tokens}, [], {{ streams }});"
        f" return forward(model, {tokens}, [[2, 3]], {{ streams, first: 1 }}); }})()"
    ]
    found = in_node(tmp_path, small, calls)
    assert found[: len(texts)] == [typed(pairs, one) for one in texts]
    *passes, second = found[len(texts) :]
    for cut, one in zip(cuts, passes, strict=True):
        logits, weights = by_torch(model, tokens, cut)
        assert_allclose(one["logits"], logits, rtol=0, atol=2e-5 * np.abs(logits).max())
        assert_allclose(one["weights"], weights, rtol=0, atol=1e-5)
    assert_allclose(second["logits"], passes[1]["logits"], rtol=1e-6)
    assert np.abs(np.subtract(passes[1]["logits"], passes[0]["logits"])).max() > 0.01


def test_the_published_model_is_pythons(tmp_path: Path) -> None:
    """On a hundred texts: the same first token, and logits to a thousandth."""
    file = published.smollm2()
    model, pairs = pretrained.from_gguf(file), pretrained.tokens_from_gguf(file)
    texts = datasets.python_reference().decode(datasets.python_reference().train[:30_000])
    starts = range(0, 30_000, 300)
    prompts = [[0, *pairs.encode(texts[at : at + 40 + at % 31])] for at in starts]
    calls = [f"pairs.encode({json.dumps(one)})" for one in TRICKY]
    calls += [f"some(forward(model, {tokens}).logits)" for tokens in prompts]
    found = in_node(tmp_path, file, calls)
    assert found[: len(TRICKY)] == [typed(pairs, one) for one in TRICKY]
    largest = 0.0
    for tokens, (best, logits) in zip(prompts, found[len(TRICKY) :], strict=True):
        with torch.no_grad():
            expected = model(torch.tensor([tokens]))[0, -1].numpy()
        largest = max(largest, float(np.abs(expected[::16] - logits).max()))
        assert expected.max() - expected[best] < 2 * largest  # the same one, if none is as good
    print(f"largest difference of a logit: {largest:.1e}")
    assert largest < 1e-3


def explained(weights: np.ndarray, groups: np.ndarray) -> float:
    """The share of the variance between groups, adjusted for their number, by a loop over them."""
    means = {g: weights[groups == g].mean() for g in set(groups)}
    within = sum((w - means[g]) ** 2 for w, g in zip(weights, groups, strict=True))
    return 1 - within / (len(weights) - len(means)) / weights.var(ddof=1)


def test_shares_of_variance(
    small: Path, model: Any, tokens: list[int], tmp_path: Path, rng: np.random.Generator
) -> None:
    weights, groups = rng.gamma(2.0, size=60), rng.integers(0, 5, 60)
    weights += groups
    calls = [f"explained({weights.tolist()}, {groups.tolist()})", "explained([1, 1, 1], [1, 1, 2])"]
    head = {"layer": 2, "head": 3}
    calls += [
        f"ask({json.dumps({'text': TEXT, 'cut': [], 'most': 8})}), kernel({json.dumps(head)}), last"
    ]
    share, nothing_varies, told = in_node(tmp_path, small, calls)
    assert share == pytest.approx(explained(weights, groups), rel=1e-9) and nothing_varies == 0
    with torch.no_grad():
        weights = model(torch.tensor([tokens]), return_weights=True)[1][1][0, 2].numpy()
    relative, before = [], []
    for i in range(2, len(tokens)):
        row = weights[i, 1 : i + 1]
        relative += list(row / row.mean())
        before += [tokens[j - 1] == tokens[i] for j in range(1, i + 1)]
    share = explained(np.array(relative), np.array(before))
    assert told["shares"]["before"] == pytest.approx(max(0, share), abs=1e-4)
    assert told["shares"]["digits"] == 0  # the text has none


def figure(file: Path) -> live.LiveFigure:
    """The figure, of another file than the published one."""
    shown = live.ask_model("smollm2", head=(2, 3), next_tokens=[(" down", 0.5)])
    update = shown.layout.select_one({"name": "layer"}).js_property_callbacks["change:value"][0]
    data = file.read_bytes()
    update.args |= {"bytes": len(data), "sha256": sha256(data).hexdigest()}
    update.args |= {"layers": LAYERS, "heads": HEADS}
    for name, end in (("layer", LAYERS), ("head", HEADS)):
        shown.layout.select_one({"name": name}).end = end
    return shown


def prepared(file: Path | None) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        target = folder / "_static" / "models"
        target.mkdir(parents=True)
        for name in WORKER:
            (target / name).write_bytes((STATIC / name).read_bytes())
        assemble(STATIC / "quantised.wat", target / "quantised.wasm")
        if file is not None:
            (target / "smollm2.gguf").write_bytes(file.read_bytes())

    return prepare


@pytest.fixture
def lab(browser: Browser, tmp_path: Path, small: Path) -> Iterator[Page]:
    """The figure with the small model, loaded and asked with the text."""
    with alone(browser, tmp_path, figure(small), prepare=prepared(small)) as seen:
        assert text(seen.page, "said") == "The most probable next token is '␣down' 0.50."
        assert not any(file.endswith((".gguf", ".wasm", ".js")) for file in models_asked(seen))
        choose(seen.page, own=TEXT)
        press(seen.page, "load the model")
        says(seen.page, "predicted", "why", "includes")
        yield seen.page


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).click()


def test_what_comes_next_with_heads_and_without(lab: Page, model: Any, tokens: list[int]) -> None:
    whole = shares_after(model, tokens)
    order = np.argsort(-whole)[: len(read(lab, "bars")["y"])]
    assert_allclose(read(lab, "bars")["whole"], whole[order], atol=1e-5)
    assert np.isnan(np.array(read(lab, "bars")["cut"], dtype=float)).all()
    with torch.no_grad():
        weights = model(torch.tensor([tokens]), return_weights=True)[1]
    means = np.array([[w[0, h, 1:, 0].mean() for h in range(HEADS)] for w in weights])
    assert_allclose(matrix(lab, "all", (HEADS, LAYERS)).T, means, atol=0.5 / 255 + 1e-5)
    press(lab, "cut this head")
    says(lab, "Without head 2.3 it is", "said", "includes")
    choose(lab, layer=3, head=1)
    press(lab, "cut this head")
    says(lab, "Without the heads 2.3, 3.1 it is", "said", "includes")
    less = shares_after(model, tokens, [(2, 3), (3, 1)])
    assert_allclose(read(lab, "bars")["cut"], less[order], atol=1e-5)
    assert f"; {np.abs(whole - less).sum() / 2:.2f} of the probability" in text(lab, "said")
    press(lab, "put this head back")
    says(lab, "Without head 2.3 it is", "said", "includes")
    press(lab, "put all back")
    lab.wait_for_function(f"() => {FIND}('said').text.indexOf('Without') < 0")


def test_each_head_is_cut_in_turn(lab: Page, model: Any, tokens: list[int]) -> None:
    whole, moved = shares_after(model, tokens), np.zeros((LAYERS, HEADS))
    for i, h in np.ndindex(moved.shape):
        moved[i, h] = np.abs(whole - shares_after(model, tokens, [(i + 1, h + 1)])).sum() / 2
    press(lab, "cut each head in turn")
    lab.wait_for_function(f"() => attnbookAsking['{NAME}'].scanning === false")
    found = lab.evaluate(f"() => [...attnbookAsking['{NAME}'].moved]")
    assert_allclose(np.reshape(found, (LAYERS, HEADS)), moved, atol=1e-5)
    assert value(lab, "measure") == "cut"
    assert_allclose(max(read(lab, "all")["weight"]), 1)
    best = np.unravel_index(moved.argmax(), moved.shape)
    named = f"{best[0] + 1}.{best[1] + 1}"
    assert f"Cut alone, head {named} moves most, {moved.max():.2f} of" in text(lab)
    press(lab, "strongest head")
    assert value(lab, "layer", "head") == [best[0] + 1, best[1] + 1]
    choose(lab, own="the dog")
    lab.wait_for_function(f"() => {FIND}('measure').value === 'first'")


def test_a_long_text_is_cut_off(lab: Page) -> None:
    choose(lab, own="the cat " * 130)
    says(lab, "The text is long", "said", "includes")


def test_firefox_computes_it_too(
    firefox: Firefox, small: Path, model: Any, tokens: list[int], tmp_path: Path
) -> None:
    """The same probabilities, on a phone's screen."""
    lay_out(tmp_path, figure(small), prepare=prepared(small))
    firefox.resize(390, 844)
    firefox.log.clear()
    with served(tmp_path) as address:
        firefox.go(f"{address}/index.html")
        firefox.wait(f"return document.querySelector('#{NAME}').dataset.ready === 'true'")
        firefox.run(f"{FIND}('own').value = {json.dumps(TEXT)};")
        load = "(one) => one.matches('button') && one.textContent.includes('load the model')"
        firefox.run(f"({DEEP})(document).find({load}).click();")
        firefox.wait(f"return {FIND}('why').text.includes('predicted')")
        found = firefox.run(f"return [...{FIND}('bars').data.whole]")
    whole = np.sort(shares_after(model, tokens))[::-1]
    assert_allclose(found, whole[: len(found)], atol=1e-5)
    assert [line for line in firefox.log if line.startswith("error")] == []


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("none", "this site has no copy of it"),
        ("another", "the file is not the published one"),
        ("longer", "the file is too long"),
    ],
)
def test_a_file_that_is_not_there(
    browser: Browser, tmp_path: Path, small: Path, file: str, reason: str
) -> None:
    data = small.read_bytes()
    other = tmp_path / "other.gguf"
    other.write_bytes(data + b"0" if file == "longer" else data[:-1] + b"0")
    (tmp_path / "site").mkdir()
    given = None if file == "none" else other
    with alone(browser, tmp_path / "site", figure(small), prepare=prepared(given)) as seen:
        seen.expected = "404"
        press(seen.page, "load the model")
        says(seen.page, f"The model could not be loaded: {reason}.", "notice")
        assert seen.page.get_by_role("button", name="load the model").is_enabled()


def test_a_reader_stops_the_download(browser: Browser, tmp_path: Path, small: Path) -> None:
    with alone(browser, tmp_path, figure(small), prepare=prepared(small)) as seen:
        seen.page.route("**/smollm2.gguf", lambda route: None)  # no answer comes
        press(seen.page, "load the model")
        press(seen.page, "stop")
        seen.page.wait_for_function(f"() => !attnbookAsking['{NAME}'].worker")
        seen.page.unroute("**/smollm2.gguf")
        press(seen.page, "load the model")
        says(seen.page, "predicted", "why", "includes")


def test_other_arguments() -> None:
    for call, words in (
        (lambda: live.ask_model("gpt2"), "stored: got 'gpt2', expected one of smollm2"),
        (lambda: live.ask_model("smollm2", head=(31, 1)), "head: got 31, expected "),
        (lambda: live.ask_model("smollm2", next_tokens=[("a", 2)]), "next_tokens: got "),
    ):
        with pytest.raises(ValueError, match=words):
            call()
