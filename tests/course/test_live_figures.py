"""Live figures as Python makes them: the same text each time, safe in a page; what they refuse."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
import torch
from scipy import spatial

from attnbook import datasets
from attnbook import torch as torch_layers
from attnbook.train.byte_pairs import learn_pairs
from attnbook_course import builds, live
from attnbook_course.checks import writers
from attnbook_course.live import models, weights
from attnbook_course.live.query_and_keys import convex_hull

HALF = np.full((2, 2), 0.5)
PLANE = np.random.default_rng(0).normal(size=(5, 2))
SIZES = {"embed_dim": 12, "num_heads": 3, "mlp_dim": 20, "num_layers": 2}


def of_cases(*cases: live.Attention) -> live.LiveFigure:
    return live.attention_browser(cases, name="live-a", units=("letter", "word"))


def item_of(figure: live.LiveFigure) -> str:
    found = re.search(r"^const item = (.*);$", figure._repr_html_(), re.MULTILINE)
    assert found is not None
    return found[1]


def test_a_figure_is_the_same_text_each_time() -> None:
    x, y = datasets.heteroskedastic()
    first, second = (live.kernel_regression(x, y, (x, y))._repr_html_() for _ in range(2))
    assert first == second
    assert first.startswith('<div id="live-kernel-regression" class="attnbook-live" role="group"')
    assert repr(live.ring()).startswith("Live figure: 4 devices on a ring.")


def test_a_token_cannot_end_the_script() -> None:
    case = live.Attention("</script>", ["</script>", "b"], ["x", "y"], {"one": HALF})
    html = of_cases(case)._repr_html_()
    assert html.count("</script>") == html.count("<script")
    assert "<\\/script>" in item_of(of_cases(case))
    assert json.loads(item_of(of_cases(case)))["root_id"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: live.kernel_regression([1, 2], [1], ([], [])), "x, y: got 2, 1 numbers"),
        (lambda: live.query_and_keys(PLANE, PLANE[1:]), r"keys, values: got \(5, 2\), \(4, 2\)"),
        (lambda: live.query_and_keys(PLANE[:, :1], PLANE), r"keys: got shape \(5, 1\), expected"),
        (lambda: live.self_attention_points(PLANE[0]), r"points: got shape \(2,\), expected"),
        (lambda: live.Attention("", "ab", "xyz", {"h": HALF}), r"weights: got \(2, 2\) for head h"),
        (lambda: live.Attention("", "ab", "xy", {"h": 2 * HALF}), "weights: got rows of head h"),
        (
            lambda: of_cases(
                live.Attention("", "ab", "xy", {"h": HALF}),
                live.Attention("", "ab", "xy", {"g": HALF}),
            ),
            r"cases: got heads \['g'\], expected \['h'\]",
        ),
        (
            lambda: live.Stream("ab", "xyz", np.ones((3, 1, 4)), []),
            r"states: got shape \(3, 1, 4\)",
        ),
        (lambda: live.Stream("ab", "xy", np.ones((2, 2, 4)), [[]]), "readout: got 1 records"),
        (lambda: weights.Sentence("", "ab", np.ones((1, 1, 2, 2))), "weights: got others"),
        (lambda: weights.Sentence("", "ab", np.ones((2, 2))), r"weights: got shape \(2, 2\)"),
        (lambda: weights.load("gpt2"), "name: got 'gpt2', expected one of smollm2"),
        (lambda: models.load("Writer"), "name: got 'Writer', expected small letters"),
        (lambda: models.load_pairs("regressor"), "name: got 'regressor', expected a model that"),
        (lambda: models.unpack(models.read("regressor")[:-2]), "data: got .* bytes, expected"),
    ],
)
def test_what_does_not_fit(call, message) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


def test_a_residual_stream_is_sent_in_bytes() -> None:
    """A coordinate is wrong by half a unit at most, of which 127 are the largest."""
    states = np.cumsum(np.random.default_rng(0).normal(size=(3, 2, 8)), axis=0)
    sent = live.Stream("ab", ["e", "a", "m"], states, [[("x", 0.5)] * 2] * 3).sent()
    drawn = sent["coordinates"].reshape(states.shape) * sent["unit"][:, None]
    assert np.abs(drawn - states).max() <= 0.51 * np.abs(states).max() / 127
    change = np.diff(states, axis=0, prepend=0)
    np.testing.assert_allclose(sent["change"], np.linalg.norm(change, axis=-1).ravel(), rtol=1e-6)
    before = states[:-1].reshape(-1, 8)
    product = np.sum(before * change[1:].reshape(-1, 8), axis=-1)
    cosine = product / np.linalg.norm(before, axis=-1) / sent["change"][2:]
    np.testing.assert_allclose(sent["cosine"][2:], cosine, rtol=1e-5)
    assert np.isnan(sent["cosine"][:2]).all()  # nothing stood before


def test_the_hull_is_scipys() -> None:
    points = np.random.default_rng(3).normal(size=(40, 2))
    corners = spatial.ConvexHull(points).vertices
    assert set(convex_hull(points)) == set(map(tuple, points[corners].tolist()))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "FOLDER", tmp_path)
    return tmp_path


def test_a_stored_model_is_the_same_to_half_precision(folder) -> None:
    model = torch_layers.EncoderOnly(3, 2, 9, **SIZES)
    models.store("small", model)
    loaded = models.load("small")
    for mine, theirs in zip(loaded.parameters(), model.parameters(), strict=True):
        assert torch.equal(mine, theirs.half().float())
    assert not loaded.training and models.load_label("small").startswith("Load the model (0.0")
    with torch.no_grad():
        model.readout.bias[0] = 1e5
    with pytest.raises(ValueError, match=r"^model: got readout\.bias that is not finite"):
        models.pack(model)
    with pytest.raises(TypeError, match=r"^model: got Linear, expected one of"):
        models.pack(torch.nn.Linear(2, 2))


def test_byte_pairs_are_stored_with_their_model(folder) -> None:
    pairs = learn_pairs("Return the mean. " * 30, 280)
    models.store("small", torch_layers.DecoderOnly(len(pairs.tokens), 8, **SIZES), pairs)
    text = "Return it — naïvely"
    assert models.load_pairs("small").encode(text) == pairs.encode(text)


def test_a_built_gpt_is_stored_as_a_model(tmp_path) -> None:
    """Of numbers that float16 has, so that nothing is rounded but sums of float32."""

    def half(given: Any) -> Any:
        if isinstance(given, np.ndarray):
            return torch.from_numpy(given).half().float()
        if isinstance(given, list):
            return [*map(half, given)]
        return {name: half(one) for name, one in given.items()}

    weights, tokens = half(writers.weights(0)), torch.tensor([[3, 1, 4, 1, 5]])
    models.save_built(tmp_path / "mine", weights, writers.HEADS, "abcdefghijk")
    model = models.unpack((tmp_path / "mine").read_bytes())
    expected = builds.logits(tokens, weights, writers.HEADS)
    np.testing.assert_allclose(model(tokens).detach(), expected, rtol=0, atol=1e-4)
    with pytest.raises(ValueError, match=r"^characters: got 10 different of 11, expected 11"):
        models.save(tmp_path / "mine", model, "aacdefghijk")


def test_stored_weights_are_the_same_to_a_unit(folder) -> None:
    scores = np.random.default_rng(0).normal(size=(2, 3, 4, 4)) + np.log(np.tri(4) + 1e-300)
    given = np.exp(scores) * np.tri(4)
    given /= given.sum(axis=-1, keepdims=True)
    weights.store("small", "a model", [weights.Sentence("one", ["<s>", "a", " b", "c"], given)])
    loaded = weights.load("small")
    (sentence,) = loaded.sentences
    assert (loaded.model, sentence.shape, sentence.title) == ("a model", (2, 3), "one")
    assert list(sentence.tokens) == ["<s>", "a", " b", "c"]
    assert np.abs(sentence.weights - given).max() <= 1 / 510 + 1e-6
