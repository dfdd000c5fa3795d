"""Heads split and merged, and self-attention with one of them."""

import numpy as np
import pytest
import reference_heads

from attnbook import attend, scores
from attnbook.attention import heads


def test_split_by_hand(backend):
    """Columns 0 to 2 are head 0's, columns 3 to 5 head 1's."""
    x = np.array([[0.0, 1, 2, 3, 4, 5], [10, 11, 12, 13, 14, 15]])
    out = backend.call(heads.split_heads, x, 2)
    np.testing.assert_array_equal(out, [[[0, 1, 2], [10, 11, 12]], [[3, 4, 5], [13, 14, 15]]])


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
@pytest.mark.parametrize("num_heads", [1, 2, 5, 10])
def test_split_and_merge_equal_the_loop(backend, rng, lead, num_heads):
    x = rng.normal(size=(*lead, 7, 10))
    d = 10 // num_heads
    out = backend.call(heads.split_heads, x, num_heads)
    assert out.shape == (*lead, num_heads, 7, d)
    for h, i, c in np.ndindex(num_heads, 7, d):
        np.testing.assert_array_equal(out[..., h, i, c], x[..., i, h * d + c])
    np.testing.assert_array_equal(backend.call(heads.merge_heads, out), x)
    parts = rng.normal(size=(*lead, 3, 7, 5))
    merged = backend.call(heads.merge_heads, parts)
    assert merged.shape == (*lead, 7, 15)
    right = np.concatenate([parts[..., h, :, :] for h in range(3)], -1)
    np.testing.assert_array_equal(merged, right)
    np.testing.assert_array_equal(backend.call(heads.split_heads, merged, 3), parts)


def test_split_and_merge_bad_input(backend):
    x = np.ones((7, 10))
    for num_heads in (3, 4, 20):
        message = f"num_heads: got {num_heads}, expected a divisor of 10, the width"
        with pytest.raises(ValueError, match=message):
            backend.call(heads.split_heads, x, num_heads)
    for num_heads in (0, -2, 2.0, None):
        with pytest.raises(ValueError, match=f"num_heads: got {num_heads}, expected an integer"):
            backend.call(heads.split_heads, x, num_heads)
    with pytest.raises(ValueError, match=r"x: got shape \(10,\), expected \(..., n, width\)"):
        backend.call(heads.split_heads, np.ones(10), 2)
    with pytest.raises(ValueError, match=r"x: got shape \(7, 10\), expected \(..., heads, n, d\)"):
        backend.call(heads.merge_heads, x)
    for function in (lambda x: heads.split_heads(x, 2), heads.merge_heads):
        with pytest.raises(ValueError, match=r"x: got dtype .*int64, expected a floating one"):
            backend.call(function, np.ones((2, 7, 10), int))
        with pytest.raises(TypeError, match="x: got a list, expected a NumPy, PyTorch or JAX"):
            function([[[1.0, 2.0]]])


MASKS = {
    "no mask": None,
    "causal": (7, 7),
    "one per sequence": (2, 1, 7),
    "one per pair": (2, 7, 7),
}


def allowed(rng, shape):
    if shape == (7, 7):
        return np.tril(np.ones(shape, bool))
    return None if shape is None else rng.random(shape) < 0.6


@pytest.fixture
def one(rng):
    """A batch of sequences, and W_q, W_k, W_v; queries and values have widths of their own."""
    x = rng.normal(size=(2, 7, 3))
    shapes = {"query": (5, 3), "key": (5, 3), "value": (11, 3)}
    return x, {f"{name}.weight": rng.normal(size=shape) for name, shape in shapes.items()}


@pytest.mark.parametrize("shape", MASKS.values(), ids=MASKS)
def test_self_attention_equals_the_loop(backend, rng, one, shape):
    x, parameters = one
    mask = allowed(rng, shape)
    for how in ({}, {"return_weights": True}):
        out = backend.call(heads.self_attention, x, *parameters.values(), mask=mask, **how)
        out, weights = out if how else (out, None)
        assert out.shape == (2, 7, 11)
        for b in range(2):
            right, shares = reference_heads.self_attention(
                parameters, x[b], reference_heads.of_each(mask, b)
            )
            np.testing.assert_allclose(out[b], right, rtol=1e-11, atol=1e-12)
            if how:
                np.testing.assert_allclose(weights[b], shares, rtol=1e-11, atol=1e-12)


def test_self_attention_is_not_symmetric_and_takes_a_score(backend, one):
    x, parameters = one
    w_q, w_k, w_v = parameters.values()
    how = {"score": scores.gaussian_score, "return_weights": True}
    out, weights = backend.call(heads.self_attention, x, w_q, w_k, w_v, **how)
    right, shares = attend(x @ w_q.T, x @ w_k.T, x @ w_v.T, **how)
    np.testing.assert_allclose(out, right, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(weights, shares, rtol=1e-10, atol=1e-12)
    assert np.abs(weights - np.swapaxes(weights, -1, -2)).max() > 0.01


def test_self_attention_bad_input(backend, one):
    x, parameters = one
    given = dict(zip(("w_q", "w_k", "w_v"), parameters.values(), strict=True))
    for name, letter in (("w_q", "d"), ("w_k", "d"), ("w_v", "p")):
        for wrong in (np.ones((5, 4)), np.ones(3), np.ones((2, 5, 3))):
            message = rf"{name}: got shape \(.*\), expected \({letter}, 3\)"
            with pytest.raises(ValueError, match=message):
                backend.call(heads.self_attention, x, *(given | {name: wrong}).values())
    with pytest.raises(ValueError, match="keys: got 4 coordinates, expected 5 as in queries"):
        backend.call(heads.self_attention, x, *(given | {"w_k": np.ones((4, 3))}).values())
    with pytest.raises(ValueError, match=r"x: got shape \(3,\), expected \(..., n, width\)"):
        backend.call(heads.self_attention, x[0, 0], *given.values())
    with pytest.raises(ValueError, match=r"mask: got shape \(3, 3\), expected one that fits"):
        backend.call(heads.self_attention, x, *given.values(), mask=np.ones((3, 3), bool))
    with pytest.raises(ValueError, match="score: got 'dot', expected a function such as"):
        backend.call(heads.self_attention, x, *given.values(), score="dot")


@pytest.mark.parametrize("name", ["w_q", "w_k", "w_v"])
def test_a_matrix_of_another_library_is_named_with_the_tokens(backend, one, name):
    if backend.name == "numpy":
        pytest.skip("NumPy's arrays are not another library's")
    x, parameters = one
    given = dict(zip(("w_q", "w_k", "w_v"), parameters.values(), strict=True))
    matrices = {n: a if n == name else backend.array(a) for n, a in given.items()}
    with pytest.raises(TypeError, match=f"x, {name}: got arrays of .*, expected one library"):
        heads.self_attention(backend.array(x), **matrices)
