"""Attention pooling: token by token, and padded."""

import operator
from types import SimpleNamespace

import backends
import numpy as np
import pytest
import reference
from layer_harness import Library, distinct_starts

from attnbook import padding_mask
from attnbook.attention.pooling import pool

SIZES = {"embed_dim": 2, "key_dim": 3, "hidden_dim": 5}
LINEAR = {"key": (3, 2), "value_hidden": (5, 2), "value_out": (1, 5), "head_hidden": (5, 1)}
SHAPES = {"embedding.weight": (11, 2), "query": (1, 3)}
for name, shape in (LINEAR | {"head_out": (1, 5)}).items():
    SHAPES |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


class Plain(SimpleNamespace):
    """A layer that is only its parameters."""

    def __call__(self, tokens, mask=None, return_weights=False):
        return pool(self, tokens, mask, return_weights)


def of_numpy():
    rng, layer = np.random.default_rng(5), Plain(vocab_size=11)
    for name, shape in SHAPES.items():
        owner, _, last = name.rpartition(".")
        part = vars(layer).setdefault(owner, SimpleNamespace()) if owner else layer
        setattr(part, last, rng.normal(size=shape))
    return layer


class Pooling:
    """A layer of one library as a function of NumPy arrays, and its parameters."""

    def __init__(self, name):
        if name == "numpy":
            self.backend, self.layer = backends.load(name), of_numpy()
        else:
            library = Library(name.removesuffix("-jit"))
            self.backend = library.backend
            self.layer = library.scaled_up("AttentionPooling", 11, **SIZES)
        self.run = self.layer
        if name == "jax-jit":
            import equinox

            self.run = equinox.filter_jit(self.layer)
        found = {n: operator.attrgetter(n)(self.layer) for n in SHAPES}
        self.parameters = {n: self.backend.numpy(p) for n, p in found.items()}

    def __call__(self, tokens, mask=None, **how):
        mask = None if mask is None else self.backend.array(mask)
        out = self.run(self.backend.array(np.array(tokens)), mask, **how)
        if isinstance(out, tuple):
            return tuple(map(self.backend.numpy, out))
        return self.backend.numpy(out)


@pytest.fixture(scope="module", params=["numpy", "torch", "jax", "jax-jit"])
def call(request):
    return Pooling(request.param)


def loop(parameters, tokens, mask):
    """Logits, weights and values of every sequence."""
    results = [
        reference.attention_pooling(parameters, row, allowed)
        for row, allowed in zip(tokens.tolist(), mask.tolist(), strict=True)
    ]
    return [np.array([r[i] for r in results]) for i in range(3)]


@pytest.mark.parametrize("lengths", [[7, 7, 7], [7, 1, 0]])
def test_equals_the_loop(call, rng, lengths):
    """With a padding mask too; a sequence of no token has weights 0, and the head's value at 0."""
    tokens = rng.integers(0, 11, size=(3, 7))
    mask = padding_mask(np.array(lengths), 7)
    expected = loop(call.parameters, tokens, mask[:, 0, :])
    outs = call(tokens, None if min(lengths) == 7 else mask, return_weights=True)
    for out, right in zip(outs, expected, strict=True):
        assert out.shape == right.shape
        np.testing.assert_allclose(out, right, rtol=1e-11, atol=1e-13)
    alone = call(tokens, mask)
    np.testing.assert_allclose(alone, expected[0], rtol=1e-11, atol=1e-13)
    assert np.ptp(expected[1][0]) > 0.01
    assert np.ptp(expected[0]) > 0.01


def test_one_sequence_and_a_batch_of_batches(call, rng):
    """(n,) gives a number, (2, 3, n) gives (2, 3): each sequence by itself."""
    tokens = rng.integers(0, 11, size=(2, 3, 7))
    out = call(tokens)
    assert out.shape == (2, 3)
    for i, j in np.ndindex(2, 3):
        one, weights, values = call(tokens[i, j], return_weights=True)
        assert (one.shape, weights.shape, values.shape) == ((), (7,), (7,))
        np.testing.assert_allclose(one, out[i, j], rtol=1e-12)


def test_padding_does_not_count_at_all(call, rng):
    """Any tokens in the padding: exactly the same logit; cut off: the same to rounding."""
    tokens = rng.integers(0, 11, size=(3, 7))
    mask = padding_mask(np.array([5, 3, 1]), 7)
    before, weights, _ = call(tokens, mask, return_weights=True)
    other = np.where(mask[:, 0, :], tokens, (tokens + 5) % 11)
    assert (other != tokens).sum() == 2 + 4 + 6
    np.testing.assert_array_equal(call(other, mask), before)
    np.testing.assert_array_equal(weights[~mask[:, 0, :]], 0)
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-12)
    for row, length, logit in zip(tokens, (5, 3, 1), before, strict=True):
        np.testing.assert_allclose(call(row[:length]), logit, rtol=1e-11)


def test_the_order_of_tokens_does_not_matter(call, rng):
    tokens = rng.integers(0, 11, size=(3, 7))
    order = rng.permutation(7)
    before, weights, values = call(tokens, return_weights=True)
    after, moved, _ = call(tokens[:, order], return_weights=True)
    np.testing.assert_allclose(after, before, rtol=1e-12)
    np.testing.assert_allclose(moved, weights[:, order], rtol=1e-12)
    for row in range(3):  # the same token has the same value wherever it stands
        for token in np.unique(tokens[row]):
            assert np.ptp(values[row][tokens[row] == token]) < 1e-14


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_every_kind_of_integer(call, rng, dtype):
    tokens = rng.integers(0, 11, size=(3, 7))
    assert (tokens.min(), tokens.max()) == (0, 10)
    np.testing.assert_array_equal(call(tokens.astype(dtype)), call(tokens))


def test_a_mask_must_fit(library, rng):
    layer, tokens = library.make("AttentionPooling", 11, **SIZES), rng.integers(0, 11, size=(3, 7))
    with pytest.raises(ValueError, match=r"mask: got shape \(3, 7\), expected one that fits"):
        library.call(layer, tokens, np.ones((3, 7), dtype=bool))


def test_sizes_and_their_names(library):
    """Every parameter's shape, and the sizes that a conversion reads."""
    layer = library.make("AttentionPooling", 11, **SIZES)
    assert {n: a.shape for n, a in library.parameters(layer).items()} == SHAPES
    assert (layer.vocab_size, layer.embed_dim, layer.key_dim, layer.hidden_dim) == (11, 2, 3, 5)
    plain = library.make("AttentionPooling", 13)
    assert (plain.embed_dim, plain.key_dim, plain.hidden_dim) == (16, 32, 32)


def test_starts_differ_from_part_to_part(library):
    starts = distinct_starts(library, "AttentionPooling", 3, 3, 3, 3)
    assert 0.1 < np.mean(np.concatenate([np.abs(drawn).ravel() for drawn in starts.values()])) < 1
