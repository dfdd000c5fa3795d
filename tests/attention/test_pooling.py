"""Attention pooling: one sequence and many, and what must not count."""

import numpy as np
import pytest
from layer_harness import Library, distinct_starts

from attnbook import padding_mask

SIZES = {"embed_dim": 2, "key_dim": 3, "hidden_dim": 5}


@pytest.fixture
def call():
    """PyTorch's; JAX's is the same formula, and compiles long for each shape."""
    library = Library("torch")
    layer = library.scaled_up("AttentionPooling", 11, **SIZES)
    return lambda *args, **how: library.call(layer, *args, **how)


def test_one_sequence_and_a_batch_of_batches(call, rng):
    """(n,) gives a number, (2, 3, n) gives (2, 3): each sequence by itself; any kind of integers."""
    tokens = rng.integers(0, 11, size=(2, 3, 7))
    out = call(tokens.astype(np.uint8))
    assert out.shape == (2, 3)
    for i, j in np.ndindex(2, 3):
        one, weights, values = call(tokens[i, j], return_weights=True)
        assert (one.shape, weights.shape, values.shape) == ((), (7,), (7,))
        np.testing.assert_allclose(one, out[i, j], rtol=1e-12)


def test_neither_padding_nor_the_order_counts(call, rng):
    """Any tokens in the padding: exactly the same logit; of no token the weights are 0."""
    tokens, lengths = rng.integers(0, 11, size=(3, 7)), np.array([5, 3, 0])
    mask = padding_mask(lengths, 7)
    before, weights, _ = call(tokens, mask, return_weights=True)
    other = np.where(mask[:, 0, :], tokens, (tokens + 5) % 11)
    np.testing.assert_array_equal(call(other, mask), before)
    np.testing.assert_array_equal(weights[~mask[:, 0, :]], 0)
    np.testing.assert_allclose(call(tokens[0, :5]), before[0], rtol=1e-11)
    order = rng.permutation(7)
    np.testing.assert_allclose(call(tokens[:, order]), call(tokens), rtol=1e-12)


def test_sizes_and_starts(library):
    plain = library.make("AttentionPooling", 13)
    assert (plain.vocab_size, plain.embed_dim, plain.key_dim, plain.hidden_dim) == (13, 16, 32, 32)
    starts = distinct_starts(library, "AttentionPooling", 3, 3, 3, 3)
    assert 0.1 < np.mean(np.concatenate([np.abs(a).ravel() for a in starts.values()])) < 1
