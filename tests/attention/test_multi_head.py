"""Multi-head kernel regression: by hand, against the loop, and what it shares with one head."""

import math
import re

import numpy as np
import pytest
import reference
from reference import sample

from attnbook import nadaraya_watson
from attnbook.kernel.regression import multi_head

Q, K, V = np.ones((3, 2)), np.ones((7, 2)), np.ones((7, 5))
HEADS = {"one per head": np.array([0.6, 1.1, 1.9]), "one per coordinate": None}


def test_by_hand(backend):
    """Keys 0 and 2, values 0 and 1, at 0: heads 1/(1 + e²) and 1/(1 + e^½), combined as 3 and −2."""
    q, k, v = (np.array(a)[:, None] for a in ([0.0], [0.0, 2.0], [0.0, 1.0]))
    out = backend.call(
        multi_head, q, k, v, bandwidths=np.array([1.0, 2.0]), combination=np.array([3.0, -2.0])
    )
    heads = 1 / (1 + math.exp(2)), 1 / (1 + math.exp(0.5))
    np.testing.assert_allclose(out, [[3 * heads[0] - 2 * heads[1]]], rtol=1e-13)


@pytest.mark.parametrize("bandwidths", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("masked", [False, True])
def test_equals_the_loop(backend, rng, bandwidths, masked):
    """Three heads; with a mask some queries have no neighbour: NaN, whatever the combination."""
    q, k, v = sample(rng, 11)
    bandwidths = rng.uniform(0.5, 2, size=(3, 2)) if bandwidths is None else bandwidths
    combination = np.array([0.7, -1.3, 0.0])
    mask = rng.random((11, 3, 7)) < 0.3 if masked else None
    expected = reference.multi_head(q, k, v, bandwidths, combination, mask)
    how = {"bandwidths": bandwidths, "combination": combination, "mask": mask}
    out = backend.call(multi_head, q, k, v, **how)
    assert np.isnan(expected).any() == masked
    np.testing.assert_allclose(out, expected, rtol=1e-11, atol=1e-14)


def test_as_many_heads_as_coordinates(backend, rng):
    """(2,) is a bandwidth per head, not one per coordinate."""
    q, k, v = sample(rng)
    how = {"bandwidths": np.array([0.5, 2.0]), "combination": np.array([1.5, -0.25])}
    expected = reference.multi_head(q, k, v, [0.5, 2.0], [1.5, -0.25])
    np.testing.assert_allclose(backend.call(multi_head, q, k, v, **how), expected, rtol=1e-11)


def test_one_head_is_kernel_regression(backend, rng):
    q, k, v = sample(rng)
    how = {"bandwidths": np.array([0.8]), "combination": np.array([1.0])}
    one = backend.call(nadaraya_watson, q, k, v, bandwidth=0.8)
    np.testing.assert_allclose(backend.call(multi_head, q, k, v, **how), one, rtol=1e-12)


def test_the_combination_is_free_in_sign_and_sum(backend, rng):
    """Constant values 1: the prediction is the coefficients' sum, outside the range of the values."""
    q, k, _ = sample(rng)
    for combination in ([2.0, 3.0, -0.5], [0.0, 0.0, 0.0], [-1.0, -1.0, 0.25]):
        how = {"bandwidths": np.array([0.6, 1.1, 1.9]), "combination": np.array(combination)}
        out = backend.call(multi_head, q, k, np.ones((7, 5)), **how)
        np.testing.assert_allclose(out, np.full((3, 5), sum(combination)), rtol=1e-13, atol=1e-14)


def test_the_order_of_heads_does_not_matter(backend, rng):
    q, k, v = sample(rng)
    bandwidths, combination = np.array([0.6, 1.1, 1.9]), np.array([2.0, 3.0, -0.5])
    outs = [
        backend.call(multi_head, q, k, v, bandwidths=bandwidths[o], combination=combination[o])
        for o in ([0, 1, 2], [2, 0, 1])
    ]
    np.testing.assert_allclose(outs[0], outs[1], rtol=1e-12, atol=1e-14)
    swapped = {"bandwidths": bandwidths, "combination": combination[[2, 0, 1]]}
    assert np.abs(backend.call(multi_head, q, k, v, **swapped) - outs[0]).max() > 0.1


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_keeps_the_dtype(backend, rng, dtype):
    """Parameters in float64 beside data in less."""
    if dtype not in ("float32", *backend.half):
        pytest.skip(f"{backend.name} has no {dtype}")
    arrays = sample(rng)
    parameters = np.array([0.6, 1.9]), np.array([0.75, 0.5])
    q, k, v = (backend.cast(backend.array(a), dtype) for a in arrays)
    bandwidths, combination = map(backend.array, parameters)
    out = multi_head(q, k, v, bandwidths=bandwidths, combination=combination)
    assert backend.dtype(out) == dtype
    rounded = [backend.numpy(backend.cast(a, "float32")).astype(np.float64) for a in (q, k, v)]
    expected = reference.multi_head(*rounded, *parameters)
    tolerance = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}[dtype]
    out = backend.numpy(backend.cast(out, "float32"))
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)


def test_gradients_are_slopes(differentiable, rng):
    """In the data, the bandwidths and the combination, whose slope is each head's own sum."""
    arrays = [*sample(rng), np.array([0.6, 1.9]), np.array([0.7, -1.3])]

    def loss(q, k, v, h, a):
        return (multi_head(q, k, v, bandwidths=h, combination=a) ** 2).sum()

    grads = differentiable.gradient(loss, *arrays)
    for i, grad in enumerate(grads):
        step = 1e-6 * rng.normal(size=grad.shape)
        ahead, behind = (
            loss(*(a + sign * step if j == i else a for j, a in enumerate(arrays)))
            for sign in (1, -1)
        )
        assert np.all(grad != 0)
        np.testing.assert_allclose((grad * step).sum(), (ahead - behind) / 2, rtol=1e-5)


@pytest.mark.parametrize(
    ("bandwidths", "combination", "message"),
    [
        ((3,), (2,), "bandwidths: got shape (3,), expected (2,) or (2, 2), one per head"),
        ((2, 3), (2,), "bandwidths: got shape (2, 3), expected (2,) or (2, 2), one per head"),
        ((), (2,), "bandwidths: got shape (), expected (2,) or (2, 2)"),
        ((0,), (0,), "one per head and at least one"),
        ((2,), (2, 1), "combination: got shape (2, 1), expected (heads,)"),
    ],
)
def test_wrong_shapes(backend, bandwidths, combination, message):
    how = {"bandwidths": np.ones(bandwidths), "combination": np.ones(combination)}
    with pytest.raises(ValueError, match=re.escape(message)):
        backend.call(multi_head, Q, K, V, **how)


def test_wrong_combinations_and_masks(backend):
    two = np.ones(2)
    with pytest.raises(ValueError, match="combination: got dtype"):
        backend.call(multi_head, Q, K, V, bandwidths=two, combination=np.ones(2, int))
    how = {"bandwidths": two, "combination": two, "mask": np.ones((7, 3), bool)}
    message = r"mask: got shape \(7, 3\), expected one that fits \(3, 7\)"
    with pytest.raises(ValueError, match=message):
        backend.call(multi_head, Q, K, V, **how)


def test_wrong_values_and_kinds(backend):
    q, k, v, two = map(backend.array, (Q, K, V, np.ones(2)))
    if backend.name != "jax-jit":
        for wrong in (0.0, -1.0, np.nan, np.inf):
            h = backend.array(np.array([1.0, wrong]))
            with pytest.raises(ValueError, match="bandwidth: got"):
                multi_head(q, k, v, bandwidths=h, combination=two)
    with pytest.raises(TypeError, match="bandwidths: got a list, expected a NumPy, PyTorch or JAX"):
        multi_head(q, k, v, bandwidths=[1.0, 1.0], combination=two)
    with pytest.raises(TypeError, match="combination: got a list, expected a NumPy, PyTorch or"):
        multi_head(q, k, v, bandwidths=two, combination=[1.0, 1.0])


def test_leading_axes_broadcast(backend, rng):
    """The batch is its sequences one by one."""
    q, k, v = rng.normal(size=(3, 2)), rng.normal(size=(11, 7, 2)), rng.normal(size=(7, 5))
    how = {"bandwidths": np.array([0.6, 1.9]), "combination": np.array([0.7, -1.3])}
    expected = [reference.multi_head(q, one, v, *how.values()) for one in k]
    np.testing.assert_allclose(backend.call(multi_head, q, k, v, **how), expected, rtol=1e-11)


def test_points_that_do_not_fit_are_named_before_the_bandwidths(backend, rng):
    """The bandwidths are right for the keys: what is wrong is the queries' width."""
    q, k, v = rng.normal(size=(3, 1)), rng.normal(size=(7, 2)), rng.normal(size=(7, 5))
    how = {"bandwidths": np.ones((2, 2)), "combination": np.ones(2)}
    with pytest.raises(ValueError, match="keys: got 2 coordinates, expected 1 as in queries"):
        backend.call(multi_head, q, k, v, **how)
