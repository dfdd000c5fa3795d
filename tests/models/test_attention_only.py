"""Layers of attention and nothing else: the loop, and the past alone."""

import numpy as np
import pytest
import reference_heads
from layer_harness import distinct_starts
from reference_heads import OWNERS

from attnbook.models import transformer

sharing = pytest.mark.parametrize("num_kv_heads", OWNERS)


def make(library, num_kv_heads=4, num_layers=2):
    """11 tokens, up to 7 of them, of width 12."""
    return library.scaled_up("AttentionOnly", 11, 7, 12, 4, num_layers, num_kv_heads)


@pytest.fixture
def tokens(rng):
    return rng.integers(0, 11, size=(2, 7))


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@sharing
def test_equals_the_loop(library, tokens, num_kv_heads, num_layers):
    """Logits and the weights of every layer; without weights the same logits."""
    model = make(library, num_kv_heads, num_layers)
    logits, weights = library.call(model, tokens, True)
    assert logits.shape == (2, 7, 11)
    assert type(weights) is list
    assert len(weights) == num_layers
    for b in range(2):
        right, shares = reference_heads.attention_only(
            library.parameters(model), OWNERS[num_kv_heads], num_layers, tokens[b]
        )
        np.testing.assert_allclose(logits[b], right, rtol=1e-10, atol=1e-11)
        for ours, theirs in zip(weights, shares, strict=True):
            np.testing.assert_allclose(ours[b], theirs, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(library.call(model, tokens), logits, rtol=1e-11, atol=1e-11)
    later = np.triu(np.ones((7, 7), bool), 1)
    for each in weights:
        assert np.all(each[..., later] == 0)
        assert np.ptp(each) > 0.5
    out = transformer.attention_only(model, library.moved(tokens))
    np.testing.assert_array_equal(library.returned(out), library.call(model, tokens))


def test_the_future_does_not_count_at_all(library, tokens):
    """A later token changed: the logits before it move by exactly 0, its own do move."""
    model = make(library)
    before = library.call(model, tokens)
    for t in (1, 4, 6):
        other = tokens.copy()
        other[:, t:] = (tokens[:, t:] + 5) % 11
        after = library.call(model, other)
        np.testing.assert_array_equal(after[:, :t], before[:, :t])
        assert np.all(np.abs(after[:, t] - before[:, t]).max(-1) > 0.01)


def test_shorter_sequences_and_leading_axes(library, rng):
    """The first tokens alone have the same logits; a batch of batches, each by itself."""
    model, tokens = make(library), rng.integers(0, 11, size=(2, 3, 7))
    out = library.call(model, tokens)
    for i, j in np.ndindex(2, 3):
        for n in (1, 5, 7):
            one, weights = library.call(model, tokens[i, j, :n], True)
            np.testing.assert_allclose(one, out[i, j, :n], rtol=1e-10, atol=1e-11)
            assert [w.shape for w in weights] == [(4, n, n)] * 2


def test_positions_do_count(library, tokens):
    """The same tokens in another order: the last one has other logits; and one repeated token too."""
    model = make(library)
    order = [3, 1, 5, 0, 2, 4, 6]
    before, after = library.call(model, tokens)[:, -1], library.call(model, tokens[:, order])[:, -1]
    assert np.all(np.abs(after - before).max(-1) > 0.01)
    same = library.call(model, np.full((1, 7), 3))[0]
    assert len(np.unique(same.round(6), axis=0)) == 7


@sharing
def test_names_and_shapes(library, num_kv_heads):
    """Every parameter's shape, and the sizes that a conversion reads."""
    model = make(library, num_kv_heads, num_layers=3)
    rows = {"query": 12, "key": 3 * num_kv_heads, "value": 3 * num_kv_heads, "output": 12}
    expected = {
        "embedding.weight": (11, 12),
        "position": (7, 12),
        "readout.weight": (11, 12),
        "readout.bias": (11,),
    }
    for layer in range(3):
        expected |= {f"layers.{layer}.{p}.weight": (n, 12) for p, n in rows.items()}
        expected |= {f"layers.{layer}.{p}.bias": (n,) for p, n in rows.items()}
    assert {n: a.shape for n, a in library.parameters(model).items()} == expected
    names = ("vocab_size", "max_length", "embed_dim", "num_heads", "num_layers", "num_kv_heads")
    assert [getattr(model, n) for n in names] == [11, 7, 12, 4, 3, num_kv_heads]
    model = library.make("AttentionOnly", 13, 5)
    assert [getattr(model, n) for n in names] == [13, 5, 64, 4, 2, 4]


def test_starts_differ_from_part_to_part(library):
    """Embeddings and positions of variance 1."""
    starts = distinct_starts(library, "AttentionOnly", 101, 97, 12, share=0.999)
    for name in ("embedding.weight", "position"):
        assert abs(starts[name].mean()) < 0.12
        assert abs(starts[name].std() - 1) < 0.1
