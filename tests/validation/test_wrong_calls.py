"""Calls that can only be a mistake: the error names the argument."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from attnbook import attend, datasets, nadaraya_watson
from attnbook.attention import heads, positions
from attnbook.datasets import regression_prompts
from attnbook.generate import decoding, sampling
from attnbook.kernel import gaussian_process, non_local_means, regression
from attnbook_course import figures

X = np.random.default_rng(0).standard_normal((2, 5, 8))
EYE = np.eye(8)

FLAGS = [  # calls, whose one argument by name is wrong
    *(partial(attend, X, X, X, causal=wrong) for wrong in ("no", 1, None, np.tri(5) > 0)),
    partial(heads.self_attention, X, EYE, EYE, EYE, causal="no"),
    *(partial(attend, X, X, X, return_weights=wrong) for wrong in ("no", 0)),
    partial(nadaraya_watson, X, X, X, return_weights=1),
]
CALLS = [  # a call, and the argument that is wrong
    (lambda: sampling.probabilities([[1.0, 2.0], [3.0]]), "logits"),
    (lambda: regression_prompts.mask(3, [[1], [2, 3]]), "seen"),
    (lambda: gaussian_process.covariance(X[0], X[0], [[1.0], [1.0, 2.0]]), "length_scale"),
    (lambda: positions.sinusoidal(5, X), "d"),
    (lambda: regression.in_metric(X, X, X, metric=EYE * np.nan), "metric"),
    (lambda: non_local_means.patches(np.array([["a", "b"], ["c", "d"]]), 1), "image"),
    (lambda: datasets.curve("x"), "x"),
    (lambda: datasets.curve(np.array([1j])), "x"),
    (lambda: datasets.noise_level(None), "x"),
    (lambda: datasets.heteroskedastic(9, spacing=np.array(["even", "random"])), "spacing"),
    (lambda: datasets.digits(seed=2**32), "seed"),
    (lambda: datasets.python_reference().decode([999]), "tokens"),
    (lambda: datasets.python_reference().decode([-1]), "tokens"),
    (lambda: datasets.python_reference().decode([1.7]), "tokens"),
    (lambda: datasets.number_words("de", train=9, held_out=9).read([-1]), "tokens"),
    (lambda: datasets.number_words("de", train=9, held_out=9).decode("abc"), "tokens"),
    (lambda: figures.panels(0, 1), "rows"),
    (lambda: figures.panels(1, 1, height=0), "height"),
    (lambda: figures.regression(figures.panels()[0]), "axes"),
    (lambda: figures.regression(figures.panels()[1], X[0, 0]), "data"),
    (lambda: figures.regression(figures.panels()[1], estimate=(X[0, 0], X[0, 0, :3])), "estimate"),
    (lambda: figures.regression(figures.panels()[1], units="xyz"), "units"),
    (lambda: figures.label(figures.panels()[1], "a", (0, 0), "no-colour"), "colour"),
    (lambda: figures.label(figures.panels()[1], "a", (np.nan, 0), "truth"), "at"),
]


def expect_error(call: Callable[[], Any], name: str) -> None:
    with pytest.raises((ValueError, TypeError), match=rf"^{name}: got .*, expected "):
        call()


@pytest.mark.parametrize("call", FLAGS)
def test_a_flag_is_true_or_false(call: partial[Any]) -> None:
    (name,) = call.keywords
    with pytest.raises(ValueError, match=rf"^{name}: got .*, expected True or False$"):
        call()


@pytest.mark.parametrize(("call", "name"), CALLS)
def test_the_argument_is_named(call: Callable[[], Any], name: str) -> None:
    error = TypeError if name == "axes" else ValueError
    with pytest.raises(error, match=rf"^{name}: got (.|\n)*, expected "):
        call()
    figures.plt.close("all")


def test_flags_of_numpy_pass() -> None:
    expected = attend(X, X, X, causal=True)
    np.testing.assert_array_equal(attend(X, X, X, causal=np.bool_(True)), expected)


def test_what_is_useful_passes() -> None:
    text = datasets.python_reference()
    assert text.decode([int(t) for t in text.train[:9]]) == text.decode(text.train[:9])
    assert datasets.curve(1.5) == datasets.curve(np.array([1.5]))[0]


def test_layers_of_torch() -> None:
    torch = pytest.importorskip("torch")
    import attnbook.torch as layers

    x, token = torch.ones(2, 5, 8), torch.tensor([1, 2])
    mask = torch.ones(5, 4, dtype=torch.bool)
    block, model = layers.EncoderBlock(8, 2, 16), layers.DecoderOnly(11, 6, 8, 2, 16, 1)
    decoder, cache = layers.DecoderBlock(8, 2, 16), model.empty(2)
    source, words = torch.ones(2, 5, dtype=torch.int64), torch.ones(2, 5, dtype=torch.bool)
    writer = layers.EncoderDecoder(11, 12, 4, 6)
    memory, state = writer.encode(source, words)
    for call, name in (
        (lambda: block(x, causal="no"), "causal"),
        (lambda: block(x, return_weights=1), "return_weights"),
        (lambda: decoder(x, x.double()), "memory"),
        (lambda: decoder(x, x[:1].expand(3, 5, 8)), "x, memory"),
        (lambda: decoder(x, x, memory_mask=mask), "memory_mask"),
        (lambda: model.step(cache._replace(keys=None), token), "cache"),
        (lambda: model.step(cache._replace(length=token / 2), token), "cache"),
        (lambda: model.step(cache._replace(length=token - 9), token), "cache"),
        (lambda: writer.step(memory._replace(values=None), state, token), "memory"),
        (lambda: writer.step(memory, torch.zeros(3, 6), torch.ones(3).long()), "state"),
        (lambda: writer.step(memory, state.double(), token), "state"),
        (lambda: decoding.greedy(writer, source / 1, words, start=1, end=2, limit=3), "source"),
    ):
        expect_error(call, name)


def test_layers_of_jax() -> None:
    jax = pytest.importorskip("jax")
    import attnbook.jax as layers

    key, x = jax.random.key(0), jax.numpy.ones((2, 5, 8))
    dropped = layers.MultiHeadAttention(8, 2, dropout=0.5, key=key)
    for call in (
        lambda: layers.MLP(8, 16, key=0),
        lambda: layers.MLP(8, 16, key=None),
        lambda: layers.GRUCell(3, 4, key=jax.random.split(key, 2)),
        lambda: layers.KernelRegression(1.0, key=0),
        lambda: dropped(x, key=0),
        lambda: layers.MultiHeadAttention(8, 2, key=key)(x, key="x"),
    ):
        with pytest.raises(TypeError, match=r"^key: got .*, expected one random key"):
            call()
    np.testing.assert_array_equal(
        layers.MLP(8, 16, key=jax.random.PRNGKey(0)).hidden.weight,
        layers.MLP(8, 16, key=jax.random.key(0)).hidden.weight,
    )
