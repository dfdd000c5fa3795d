"""The layers of attention: their loops, their starts, and what must not count at all."""

import numpy as np
import pytest
import reference
import reference_heads
from layer_harness import Library, distinct_starts, part
from reference_heads import OWNERS

from attnbook import convert, scores
from attnbook.attention import positions

sharing = pytest.mark.parametrize("num_kv_heads", OWNERS)
PARTS = ("query", "key", "value", "output")
CAUSAL = np.tril(np.ones((7, 7), bool))


@pytest.fixture
def x(rng):
    return rng.normal(size=(2, 7, 12))


@pytest.mark.parametrize("masked", [False, True])
def test_self_attention_equals_the_loop(library, x, rng, masked):
    layer = library.scaled_up("SelfAttention", 12, 5)
    mask = rng.random((2, 7, 7)) < 0.6 if masked else None
    out, weights = library.call(layer, x, mask, True)
    assert out.shape == (2, 7, 5)
    for b in range(2):
        own = None if mask is None else mask[b]
        right, shares = reference_heads.self_attention(library.parameters(layer), x[b], own)
        np.testing.assert_allclose(out[b], right, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(weights[b], shares, rtol=1e-11, atol=1e-12)
    alone = library.call(layer, x, mask=mask)
    np.testing.assert_allclose(alone, out, rtol=1e-11, atol=1e-12)
    assert np.ptp(weights) > 0.5
    other = library.call(layer, x, mask=mask, score=scores.gaussian_score)
    q, k, v = (x @ weight.T for weight in library.parameters(layer).values())
    right, _ = reference.attend(q, k, v, reference.gaussian_score, mask)
    np.testing.assert_allclose(other, right, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("how", [{}, {"bias": False}, {"dropout": 0.3}])
@sharing
def test_multi_head_attention_equals_the_loop(library, x, rng, num_kv_heads, how):
    """Dropout does nothing to a layer that does not train."""
    layer = library.scaled_up("MultiHeadAttention", 12, 4, num_kv_heads=num_kv_heads, **how)
    keys, values, mask = *rng.normal(size=(2, 2, 11, 12)), rng.random((2, 7, 11)) < 0.6
    out, weights = library.call(layer, x, keys, values, mask, True)
    for b in range(2):
        right, shares = reference_heads.multi_head_attention(
            library.parameters(layer), OWNERS[num_kv_heads], x[b], keys[b], values[b], mask[b]
        )
        np.testing.assert_allclose(out[b], right, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(weights[b], shares, rtol=1e-11, atol=1e-12)
    alone = library.call(layer, x, keys, values, mask)
    np.testing.assert_allclose(alone, out, rtol=1e-11, atol=1e-12)


def test_positions_as_a_score(library, x):
    """Rotary positions turn the queries and keys of every head; the loop turns them pair by pair."""
    layer = library.scaled_up("MultiHeadAttention", 12, 2)
    place = library.moved(np.arange(7))

    def score(q, k):
        return scores.scaled_dot(positions.rotary(q, place), positions.rotary(k, place))

    for weights in (False, True):
        out = library.call(layer, x, None, None, None, weights, score=score)
        for b in range(2):
            expected = reference_heads.multi_head_attention(
                library.parameters(layer), [0, 1], *[x[b]] * 3, score=reference_heads.turned(10_000)
            )
            for ours, right in zip(out if weights else (out,), expected, strict=False):
                np.testing.assert_allclose(ours[b], right, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
@sharing
def test_names_and_shapes(library, num_kv_heads, bias):
    layer = library.make("MultiHeadAttention", 12, 4, num_kv_heads=num_kv_heads, bias=bias)
    rows = dict(zip(PARTS, (12, 3 * num_kv_heads, 3 * num_kv_heads, 12), strict=True))
    expected = {f"{p}.weight": (n, 12) for p, n in rows.items()}
    expected |= {f"{p}.bias": (n,) for p, n in rows.items() if bias}
    assert {n: a.shape for n, a in library.parameters(layer).items()} == expected
    sizes = layer.embed_dim, layer.num_heads, layer.num_kv_heads, layer.bias, layer.dropout
    assert sizes == (12, 4, num_kv_heads, bias, 0.0)


def test_defaults(library):
    layer = library.make("MultiHeadAttention", 12, 4)
    sizes = layer.embed_dim, layer.num_heads, layer.num_kv_heads, layer.bias, layer.dropout
    assert sizes == (12, 4, 4, True, 0.0)
    layer = library.make("SelfAttention", 5)
    assert (layer.embed_dim, layer.head_dim) == (5, 5)
    known = library.parameters(library.make("SelfAttention", 5, 3))
    assert {n: a.shape for n, a in known.items()} == {f"{p}.weight": (3, 5) for p in PARTS[:3]}


@pytest.mark.parametrize("args", [("SelfAttention", 12, 12), ("MultiHeadAttention", 12, 4)])
def test_starts_differ_from_part_to_part(library, args):
    """As wide as torch.nn.Linear's, 1/√e."""
    starts = distinct_starts(library, *args)
    for drawn in starts.values():
        assert 0.7 / np.sqrt(12) < np.abs(drawn).max() <= 1 / np.sqrt(12)
    assert sum(drawn.size for drawn in starts.values()) > 400


@pytest.mark.parametrize("seed", [None, 3], ids=["at rest", "training"])
@sharing
def test_the_future_does_not_count_at_all(library, x, rng, num_kv_heads, seed):
    """Later tokens changed: earlier outputs move by exactly 0, with the same weights left out too."""
    layer = library.scaled_up("MultiHeadAttention", 12, 4, num_kv_heads=num_kv_heads, dropout=0.3)
    before = library.call(layer, x, mask=CAUSAL, seed=seed)
    for t in (1, 4, 6):
        other = x.copy()
        other[:, t:] += 1e3 * rng.normal(size=(2, 7 - t, 12))
        after = library.call(layer, other, mask=CAUSAL, seed=seed)
        np.testing.assert_array_equal(after[:, :t], before[:, :t])
        assert np.all(np.abs(after[:, t] - before[:, t]).max(-1) > 1)


@pytest.mark.parametrize("name", ["SelfAttention", "MultiHeadAttention"])
def test_the_order_of_tokens_moves_the_outputs_alone(library, x, rng, name):
    layer = library.scaled_up(name, 12, 4)
    order = rng.permutation(7)
    before, after = (library.call(layer, tokens) for tokens in (x, x[:, order]))
    np.testing.assert_allclose(after, before[:, order], rtol=1e-11, atol=1e-12)
    assert np.abs(after - before).max() > 0.1


@pytest.mark.parametrize("name", ["SelfAttention", "MultiHeadAttention"])
def test_padding_does_not_count_at_all(library, x, rng, name):
    """Any numbers in the padding: exactly the same output of the others; cut off: to rounding."""
    layer = library.scaled_up(name, 12, 4)
    mask = np.arange(7) < np.array([5, 3])[:, None, None]
    other = np.where(mask.mT, x, 1e3 * rng.normal(size=x.shape))
    before, after = (library.call(layer, tokens, mask=mask) for tokens in (x, other))
    for b, length in enumerate((5, 3)):
        np.testing.assert_array_equal(after[b, :length], before[b, :length])
        cut = library.call(layer, x[b, :length])
        np.testing.assert_allclose(cut, before[b, :length], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
def test_gradients_agree(x, bias):
    """Of every parameter, torch = JAX, to 1e-10, with a row that may attend to nothing."""
    torch, jax = (Library(name).backend for name in ("torch", "jax"))
    import equinox as eqx

    twin = Library("jax").scaled_up("MultiHeadAttention", 12, 4, num_kv_heads=2, bias=bias)
    layer = convert.jax_to_torch(twin)
    mask = CAUSAL.copy()
    mask[2] = False
    out = layer(torch.array(x), mask=torch.array(mask))
    nothing = twin.output.bias if bias else np.zeros(12)  # W_o · 0 + b_o
    np.testing.assert_array_equal(out[:, 2].detach(), np.broadcast_to(nothing, (2, 12)))
    (out**2).sum().backward()
    seen = jax.array(x), None, None, jax.array(mask)
    np.testing.assert_allclose(twin(*seen), out.detach(), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(twin(*seen)[:, 2], np.broadcast_to(nothing, (2, 12)))
    gradient = eqx.filter_jit(eqx.filter_grad(lambda twin: (twin(*seen) ** 2).sum()))(twin)
    for name, parameter in layer.named_parameters():
        ours, theirs = parameter.grad.numpy(), part(gradient, name)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * max(1, np.abs(ours).max()))
        assert np.isfinite(ours).all()
        # the keys' shift is the same for all tokens: the softmax does not see it
        assert (np.abs(ours).max() > 1e-6) == (name != "key.bias"), name


def test_compiled(x):
    """Under jax.jit and a random key that is traced."""
    made = Library("jax")
    import equinox as eqx

    layer = made.scaled_up("MultiHeadAttention", 12, 4, dropout=0.3)
    given, key = made.moved(x), made.backend.jax.random.key(3)
    for how in ({}, {"key": key}):
        np.testing.assert_allclose(
            eqx.filter_jit(layer)(given, **how), layer(given, **how), rtol=1e-11, atol=1e-12
        )
