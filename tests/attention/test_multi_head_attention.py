"""Several heads: full and shared, masked for all alike, with scores that know where a token stands."""

from types import SimpleNamespace

import numpy as np
import pytest
import reference_heads
from array_api_compat import array_namespace
from reference_heads import OWNERS

from attnbook import scores
from attnbook.attention import heads, positions

sharing = pytest.mark.parametrize("num_kv_heads", OWNERS)


def drawn(rng, num_kv_heads, bias=True):
    """Parameters of 4 heads of width 3, large enough that weights are far from even."""
    rows = {"query": 12, "key": 3 * num_kv_heads, "value": 3 * num_kv_heads, "output": 12}
    parameters = {f"{name}.weight": rng.normal(size=(n, 12)) / 3 for name, n in rows.items()}
    if bias:
        parameters |= {f"{name}.bias": rng.normal(size=n) for name, n in rows.items()}
    return parameters


def run(backend, parameters, num_kv_heads, q, k=None, v=None, mask=None, **how):
    """multi_head_attention of a layer that is nothing but its parameters."""
    names = tuple(parameters)

    def function(q, k, v, mask, *tensors):
        given = dict(zip(names, tensors, strict=True))
        layer = SimpleNamespace(embed_dim=12, num_heads=4, num_kv_heads=num_kv_heads)
        for name in ("query", "key", "value", "output"):
            weight, bias = given[f"{name}.weight"], given.get(f"{name}.bias")
            setattr(layer, name, SimpleNamespace(weight=weight, bias=bias))
        return heads.multi_head_attention(layer, q, k, v, mask, **how)

    return backend.call(function, q, k, v, mask, *parameters.values())


def loop(parameters, num_kv_heads, queries, keys, values, mask=None, **how):
    """Sequence by sequence."""
    pairs = []
    for b, given in enumerate(zip(queries, keys, values, strict=True)):
        own = reference_heads.of_each(mask, b)
        one = reference_heads.multi_head_attention(
            parameters, OWNERS[num_kv_heads], *given, own, **how
        )
        pairs.append(one)
    return [np.array(each) for each in zip(*pairs, strict=True)]


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("shape", [None, (5, 7), (2, 1, 7), (2, 5, 7)])
@sharing
def test_multi_head_attention_equals_the_loop_over_heads(backend, rng, num_kv_heads, shape, bias):
    """Queries, keys and values of three sequences; a mask is the same for every head."""
    parameters = drawn(rng, num_kv_heads, bias)
    q, k, v = rng.normal(size=(2, 5, 12)), *rng.normal(size=(2, 2, 7, 12))
    mask = None if shape is None else rng.random(shape) < 0.6
    expected, shares = loop(parameters, num_kv_heads, q, k, v, mask)
    out, weights = run(backend, parameters, num_kv_heads, q, k, v, mask=mask, return_weights=True)
    assert weights.shape == (2, 4, 5, 7)
    np.testing.assert_allclose(out, expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(weights, shares, rtol=1e-11, atol=1e-12)
    alone = run(backend, parameters, num_kv_heads, q, k, v, mask=mask)
    np.testing.assert_allclose(alone, expected, rtol=1e-11, atol=1e-12)
    assert np.ptp(shares, axis=-1).max() > 0.5


def test_keys_and_values_that_are_left_out(backend, rng):
    """Without keys they are the queries, without values the keys."""
    parameters = drawn(rng, 2)
    q, k = rng.normal(size=(2, 5, 12)), rng.normal(size=(2, 7, 12))
    for given, meant in (((q,), (q, q, q)), ((q, k), (q, k, k)), ((q, None, q), (q, q, q))):
        out = run(backend, parameters, 2, *given)
        np.testing.assert_allclose(out, loop(parameters, 2, *meant)[0], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("num_kv_heads", [1, 2])
def test_shared_heads_are_full_heads_with_repeated_rows(backend, rng, num_kv_heads):
    """Every row of W_k and W_v that two heads share, written down for both."""
    few = drawn(rng, num_kv_heads)
    rows = np.concatenate([3 * owner + np.arange(3) for owner in OWNERS[num_kv_heads]])
    full = {n: p[rows] if n.startswith(("key", "value")) else p for n, p in few.items()}
    x = rng.normal(size=(2, 7, 12))
    a, b = (run(backend, p, n, x, return_weights=True) for p, n in ((few, num_kv_heads), (full, 4)))
    for ours, theirs in zip(a, b, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)


def test_leading_axes(backend, rng):
    """No batch, a batch of batches; one sequence of keys for every sequence of queries."""
    parameters = drawn(rng, 2)
    q, k = rng.normal(size=(2, 3, 5, 12)), rng.normal(size=(7, 12))
    mask = rng.random((2, 3, 1, 7)) < 0.6
    out = run(backend, parameters, 2, q, k, mask=mask)
    for b in np.ndindex(2, 3):
        expected = loop(parameters, 2, q[b][None], k[None], k[None], mask[b])[0]
        np.testing.assert_allclose(out[b], expected[0], rtol=1e-11, atol=1e-12)
        alone = run(backend, parameters, 2, q[b], k, mask=mask[b])
        np.testing.assert_allclose(alone, expected[0], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("weights", [False, True])
def test_scores_that_are_biased(backend, rng, weights):
    """Linear biases come in with a score of queries and keys with heads: a slope a head."""
    parameters, x, bias = drawn(rng, 2), rng.normal(size=(2, 7, 12)), positions.alibi(4, 7)

    def score(q, k):
        xp = array_namespace(q)
        return scores.scaled_dot(q, k) + xp.asarray(bias)

    def biased(h, i, j, q, k):
        return reference_heads.plain(h, i, j, q, k) - abs(i - j) / 4 ** (h + 1)

    out = run(backend, parameters, 2, x, score=score, return_weights=weights)
    expected = loop(parameters, 2, x, x, x, score=biased)
    for ours, theirs in zip(out if weights else (out,), expected, strict=False):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)


def test_half_precision(backend, rng):
    """Scores are taken in float32, where those of float16 would overflow."""
    for dtype in backend.half:
        x = np.full((1, 2, 12), 200.0) + np.arange(2)[:, None]
        eye = {f"{n}.weight": np.eye(12) for n in ("query", "key", "value", "output")}
        layer = SimpleNamespace(embed_dim=12, num_heads=4, num_kv_heads=4)
        for name, weight in eye.items():
            weight = backend.cast(backend.array(weight), dtype)
            setattr(layer, name.removesuffix(".weight"), SimpleNamespace(weight=weight, bias=None))
        given = backend.cast(backend.array(x), dtype)
        # q · k = 3 · 200² = 120 000, and 65 504 is the largest
        for drop in (None, lambda weights: weights):
            out = heads.multi_head_attention(layer, given, drop=drop)
            assert backend.dtype(out) == dtype
            np.testing.assert_array_equal(backend.numpy(backend.cast(out, "float64")), 201)


def test_multi_head_attention_bad_input(backend, rng):
    parameters, x = drawn(rng, 2), rng.normal(size=(2, 7, 12))
    for place, name in enumerate(("queries", "keys", "values")):
        for wrong in (np.ones((2, 7, 11)), np.ones((2, 7, 24))):
            given = [x, x, x]
            given[place] = wrong
            with pytest.raises(ValueError, match=rf"{name}: got .*, expected \(..., n, 12\)"):
                run(backend, parameters, 2, *given)
        given[place] = x[0, 0]
        with pytest.raises(ValueError, match=rf"{name}: got shape \(12,\), expected \(..., n, wi"):
            run(backend, parameters, 2, *given)
    with pytest.raises(ValueError, match="values: got 5 rows, expected 7, one per key"):
        run(backend, parameters, 2, x, x, x[:, :5])
    with pytest.raises(ValueError, match=r"mask: got shape \(2, 4, 7, 7\), expected one that fits"):
        run(backend, parameters, 2, x, mask=np.ones((2, 4, 7, 7), bool))
    with pytest.raises(ValueError, match=r"mask: got dtype .*float64, expected bool"):
        run(backend, parameters, 2, x, mask=np.ones((7, 7)))
    with pytest.raises(ValueError, match="score: got 'dot', expected a function such as"):
        run(backend, parameters, 2, x, score="dot")
