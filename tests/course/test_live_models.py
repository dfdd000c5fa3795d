"""Models stored for the live figures: a file holds all of a model, rounded to float16."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from torch import nn

from attnbook import convert
from attnbook.torch import DecoderOnly, EncoderOnly, Transformer
from attnbook.train.byte_pairs import BytePairs, learn_pairs
from attnbook_course.live import models

SIZES = {"embed_dim": 6, "num_heads": 3, "mlp_dim": 10, "num_layers": 2}


def translator(**options: Any) -> Transformer:
    torch.manual_seed(0)
    return Transformer(7, 5, 11, **SIZES, **options)


def regressor(**options: Any) -> EncoderOnly:
    torch.manual_seed(1)
    return EncoderOnly(3, 1, **SIZES, **options)


MADE = {
    "translator": translator,
    "post": lambda: translator(norm="post", activation="relu"),
    "regressor": regressor,
    "places": lambda: regressor(max_length=5, activation="swiglu"),
    "writer": lambda: DecoderOnly(7, 5, **SIZES),
}


def rounded(model: nn.Module) -> dict[str, np.ndarray]:
    """The parameters as float16 has them."""
    return {n: p.detach().numpy().astype(np.float16) for n, p in model.named_parameters()}


@pytest.mark.parametrize("name", MADE)
def test_a_model_comes_back(name):
    model = MADE[name]()
    twin = models.unpack(models.pack(model))
    assert type(twin) is type(model) and not twin.training
    for size in inspect.signature(type(model)).parameters:
        assert getattr(twin, size) == getattr(model, size)
    expected = rounded(model)
    assert [n for n, _ in twin.named_parameters()] == list(expected)
    for parameter, array in zip(twin.parameters(), expected.values(), strict=True):
        assert parameter.dtype == torch.float32 and parameter.requires_grad
        assert_array_equal(parameter.detach().numpy(), array)
    assert models.pack(twin) == models.pack(model)  # nothing more is lost


def test_a_model_of_jax_gives_the_same_file():
    for model in (translator(), regressor(max_length=5)):
        assert models.pack(convert.torch_to_jax(model)) == models.pack(model)


def test_the_file_is_what_it_says():
    """The safetensors layout: 8 bytes of length, JSON, numbers one after the other."""
    model = regressor()
    data = models.pack(model)
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert length % 8 == 0
    about = header.pop("__metadata__")
    assert about["kind"] == "EncoderOnly"
    assert json.loads(about["sizes"])["max_length"] is None
    at = 0
    for name, array in rounded(model).items():
        place = header.pop(name)
        assert place["dtype"] == "F16" and tuple(place["shape"]) == array.shape
        start, end = place["data_offsets"]
        assert start == at and end == start + 2 * array.size
        found = np.frombuffer(data[8 + length + start : 8 + length + end], "<f2")
        assert_array_equal(found, array.ravel())
        at = end
    assert header == {} and 8 + length + at == len(data)


def test_unpacking_draws_no_random_number():
    data = models.pack(translator())
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    models.unpack(data)
    assert torch.equal(torch.rand(2), expected)


def test_models_are_stored_by_name(folder):
    with pytest.raises(ValueError, match="name: got 'a', expected one of nothing stored"):
        models.load("a")
    assert models.load_label("a") == "Load the model"
    assert models.store("a", regressor()) == folder / "a.bin"
    models.store("b-2", Transformer(29, 21, 80))
    assert isinstance(models.load("a"), EncoderOnly)
    assert models.load_label("b-2") == "Load the model (0.5 MB)"
    with pytest.raises(ValueError, match="name: got 'c', expected one of a, b-2"):
        models.load("c")
    for name in ("", "../a", "a.bin", "A"):
        with pytest.raises(ValueError, match=f"name: got '{re.escape(name)}', expected small"):
            models.store(name, regressor())


def test_byte_pairs_are_stored_with_their_model(folder):
    pairs = learn_pairs("the mean of the means of these and those, " * 9, 270)
    model = DecoderOnly(len(pairs.tokens), 5, **SIZES)
    models.store("writer", model, pairs)
    assert isinstance(models.load("writer"), DecoderOnly)
    found, text = models.load_pairs("writer"), "the means of théses\n"
    assert (found.tokens, found.rank) == (pairs.tokens, pairs.rank)
    assert found.encode(text) == pairs.encode(text) and found.decode(pairs.encode(text)) == text
    models.store("other", model)
    with pytest.raises(ValueError, match="name: got 'other', expected a model that reads byte"):
        models.load_pairs("other")
    with pytest.raises(ValueError, match="name: got 'none', expected one of other, writer"):
        models.load_pairs("none")
    others = (
        BytePairs([*pairs.tokens, "<end>"], pairs.rank, special=["<end>"]),
        BytePairs(pairs.tokens, pairs.rank, patterns=[r"\S+|\s+"]),
        BytePairs(pairs.tokens, pairs.rank, normal_form="NFC"),
        BytePairs(pairs.tokens[::-1], pairs.rank),
    )
    for other in others:
        with pytest.raises(ValueError, match="pairs: got others, expected byte pairs of learn"):
            models.pack(model, other)


def test_the_package_keeps_them_beside_its_other_assets():
    assert models.FOLDER.parent.is_dir()
    assert (models.FOLDER.name, models.FOLDER.parent.name) == ("models", "live")
    for file in models.FOLDER.glob("*.bin"):
        assert type(models.load(file.stem)).__name__ in models.KINDS


def test_other_models_are_refused():
    for model in (nn.Linear(2, 2), nn.MultiheadAttention(4, 2), "model"):
        with pytest.raises(TypeError, match=f"model: got {type(model).__name__}, expected one of"):
            models.pack(model)


OPTIONS = [
    {"num_kv_heads": 1},
    {"bias": False},
    {"rms_norm": True},
    {"eps": 1e-6},
    {"rotary_base": 20.0},
    {"last_norm": False},
    {"activation": "gelu_tanh"},
]


@pytest.mark.parametrize("how", OPTIONS, ids=lambda how: next(iter(how)))
def test_blocks_that_a_page_does_not_know_are_refused(how):
    with pytest.raises(ValueError, match=f"model: got {next(iter(how))}=.*, expected .* on a web"):
        models.pack(EncoderOnly(2, 1, embed_dim=8, num_heads=2, **how))


def test_a_writer_that_a_page_does_not_know_is_refused():
    for how in ({"tied": True}, {"attention": "linear"}):
        with pytest.raises(ValueError, match=f"model: got {next(iter(how))}=.*, expected .* on a"):
            models.pack(DecoderOnly(7, 5, **SIZES, **how))


@pytest.mark.parametrize("wrong", [70_000.0, np.inf, np.nan])
def test_numbers_that_float16_does_not_have_are_named(wrong):
    model = regressor()
    with torch.no_grad():
        model.encoder[1].mlp.output.bias[3] = wrong
    with pytest.raises(ValueError, match=r"got encoder\.1\.mlp\.output\.bias that is not finite"):
        models.pack(model)


def test_what_is_no_model_is_refused():
    data = models.pack(regressor())
    length = int.from_bytes(data[:8], "little")
    foreign = b'{"__metadata__": {"kind": "Linear"}}'
    broken = [
        b"",
        b"<!doctype html>",
        data[:100],
        data[:-2],
        data + b"12",
        data[:8] + b"[" + bytes(length - 1),
        len(foreign).to_bytes(8, "little") + foreign,
    ]
    for wrong in broken:
        with pytest.raises(ValueError, match=f"data: got {len(wrong)} bytes that are no stored"):
            models.unpack(wrong)
