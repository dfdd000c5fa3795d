"""Attention weights stored for a live figure: a byte each, of a causal head half of them."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from attnbook import softmax
from attnbook_course import live
from attnbook_course.live import weights

TOKENS = [" a", "b", " a", "\n", "c"]


def random(n: int = 5, layers: int = 3, heads: int = 2, seed: int = 0) -> np.ndarray:
    """Causal weights of shape (layers, heads, n, n)."""
    scores = 2 * np.random.default_rng(seed).normal(size=(layers, heads, n, n))
    return softmax(np.where(np.tri(n, dtype=bool), scores, -np.inf))


def sentences() -> list[live.Sentence]:
    return [
        live.Sentence("first", TOKENS, random()),
        live.Sentence("second", TOKENS[:4], random(4, seed=1)),
    ]


def test_weights_come_back_rounded():
    """To the nearest of 0, 1/255, …, 1; what is stored again is the same."""
    found = weights.unpack(weights.pack("a model", sentences()))
    assert found.model == "a model"
    for one, two in zip(found.sentences, sentences(), strict=True):
        assert (one.title, one.tokens) == (two.title, two.tokens)
        expected = np.rint(255 * two.weights) / 255
        assert_allclose(one.weights, expected, atol=1e-7, rtol=0)
    assert weights.pack("a model", found.sentences) == weights.pack("a model", sentences())


def test_a_file_is_what_it_says():
    """A header, then each head's rows up to the diagonal."""
    data = weights.pack("a model", sentences())
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert (header["layers"], header["heads"]) == (3, 2)
    assert [one["tokens"] for one in header["sentences"]] == [TOKENS, TOKENS[:4]]
    numbers = np.frombuffer(data[8 + length :], np.uint8)
    assert len(numbers) == 3 * 2 * (15 + 10)
    rows = [row[: i + 1] for head in random().reshape(6, 5, 5) for i, row in enumerate(head)]
    assert_array_equal(numbers[:90], np.rint(255 * np.concatenate(rows)))


def test_files_are_found_by_name(folder):
    with pytest.raises(ValueError, match="name: got 'a', expected one of nothing stored"):
        weights.load("a")
    assert weights.store("a", "a model", sentences()) == folder / "a.weights"
    weights.store("b-2", "a model", sentences())
    assert weights.load("a").sentences[1].title == "second"
    with pytest.raises(ValueError, match="name: got 'c', expected one of a, b-2"):
        live.model_heads("c")
    with pytest.raises(ValueError, match=re.escape("name: got '../a', expected small letters")):
        weights.store("../a", "a model", sentences())


def test_what_is_stored_is_smollm2():
    """Chapter 10's model, and heads that it names: in the words shown twice, and the sinks."""
    given = weights.load("smollm2")
    assert "SmolLM2-135M" in given.model
    assert {sentence.shape for sentence in given.sentences} == {(30, 9)}
    twice = given.sentences[2]
    assert twice.tokens[1:9] == twice.tokens[9:]
    assert twice.weights[16, 0][range(2, 17), range(1, 16)].mean() > 0.9  # 17.1 looks one back
    for layer, head in ((18, 4), (18, 5), (18, 6), (19, 7)):  # these at what followed
        assert twice.weights[layer - 1, head - 1][range(9, 17), range(2, 10)].mean() > 0.5
    for sentence in given.sentences:
        assert sentence.tokens[0] == "<s>"
        first = sentence.weights[:, :, 1:, 0].mean(axis=2)
        assert 100 < (first > 0.5).sum() < 200  # of 270


def test_the_first_sentence_lies_in_the_page():
    data = {}
    for whole in (False, True):
        layout = live.model_heads("smollm2", whole=whole).layout
        update = next(iter(layout.select_one({"name": "sentence"}).js_property_callbacks.values()))
        data[whole] = update[0].args["cases"].data
    given = weights.load("smollm2").sentences
    assert data[True]["tokens"] == data[False]["tokens"] == [list(one.tokens) for one in given]
    for units, one in zip(data[True]["units"], given, strict=True):
        assert_array_equal(units, one.units())
    assert_array_equal(data[False]["units"][0], given[0].units())
    assert [len(units) for units in data[False]["units"][1:]] == [0] * (len(given) - 1)


@pytest.mark.parametrize(
    ("tokens", "given", "message"),
    [
        ("a", random(1), "tokens: got 1, expected two or more"),
        ("abc", random(), r"weights: got shape \(3, 2, 5, 5\), expected \(layers, heads, 3, 3\)"),
        ("abcde", random()[0], r"weights: got shape \(2, 5, 5\), expected"),
        ("abcde", 0.9 * random(), "weights: got rows that do not sum to 1"),
        ("abcde", np.full((1, 1, 5, 5), 0.2), "weights: got one on a later token"),
    ],
)
def test_what_are_no_weights_is_named(tokens, given, message):
    with pytest.raises(ValueError, match=message):
        live.Sentence("", list(tokens), given)


def test_models_do_not_mix_and_files_are_whole():
    with pytest.raises(ValueError, match="sentences: got layers and heads"):
        weights.pack("a", [*sentences(), live.Sentence("", TOKENS, random(layers=4))])
    with pytest.raises(ValueError, match=r"sentences: got layers and heads \[\]"):
        weights.pack("a", [])
    with pytest.raises(TypeError, match="tokens: got 3, expected a list of tokens"):
        live.Sentence("", 3, random())
    data = weights.pack("a", sentences())
    for wrong in (b"", b"<!doctype html>", data[:60], data[:-1], data + b"1"):
        with pytest.raises(ValueError, match=f"data: got {len(wrong)} bytes that are no stored"):
            weights.unpack(wrong)


@pytest.mark.parametrize("head", [(0, 1), (31, 1), (1, 10)])
def test_a_head_that_the_model_has_not_is_named(head):
    with pytest.raises(ValueError, match="head: got"):
        live.model_heads("smollm2", head=head)
