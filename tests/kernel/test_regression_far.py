"""Kernel regression so far from the data, or so narrow, that every square overflows."""

import math

import numpy as np
import pytest
import reference

from attnbook import kernels, leave_one_out, nadaraya_watson, scores


def column(*numbers, dtype=float):
    return np.array(numbers, dtype=dtype)[:, None]


def known(backend):
    if backend.name == "jax-jit":
        pytest.skip("under jax.jit the values are not known")


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(
    ("dtype", "queries", "h", "expected"),
    [
        (np.float32, (1e25, -1e25, 1e37), 1.0, (5, 3, 5)),
        (np.float64, (1e200, -1e300, 1e17), 1.0, (5, 3, 5)),
        (np.float64, (0.3, 0.9, 1.6, 1e200), 1e-160, (3, 4, 5, 5)),
        (np.float32, (0.3, 0.9, 1.6, 1e30), 1e-20, (3, 4, 5, 5)),
    ],
)
def test_a_query_whose_squares_overflow_has_the_nearest_value(
    backend, small_blocks, weights, dtype, queries, h, expected
):
    known(backend)
    q, k, v = (column(*a, dtype=dtype) for a in (queries, (0, 1, 2), (3, 4, 5)))
    out = backend.call(nadaraya_watson, q, k, v, bandwidth=h, return_weights=weights)
    if weights:
        out, found = out
        np.testing.assert_array_equal(found, column(*expected) == [[3, 4, 5]])
    np.testing.assert_array_equal(out, column(*expected))


def test_near_queries_beside_a_far_one_are_what_they_are_alone(backend, rng, small_blocks):
    """With a bandwidth per coordinate, leading axes and a mask."""
    known(backend)
    q, k = rng.normal(size=(11, 3, 2)), rng.normal(size=(7, 2))
    v, h, mask = rng.normal(size=(7, 5)), np.array([0.6, 1.9]), rng.random((11, 3, 7)) < 0.4
    expected, _ = reference.nadaraya_watson(q, k, v, "gaussian", h, mask)
    far = np.concatenate([q, np.full((11, 1, 2), 1e200)], axis=-2)
    mask = np.concatenate([mask, np.ones((11, 1, 7), bool)], axis=-2)
    out = backend.call(nadaraya_watson, far, k, v, bandwidth=h, mask=mask)
    np.testing.assert_allclose(out[:, :3], expected, rtol=1e-11, atol=1e-14)
    nearest = np.argmax((k / h**2).sum(-1))  # the last in the direction of (1, 1)
    np.testing.assert_array_equal(out[:, 3], np.broadcast_to(v[nearest], (11, 5)))


def test_a_masked_key_is_not_the_nearest_and_nobody_stays_nan(backend, small_blocks):
    known(backend)
    q, k, v = column(1e200, 1e200), column(0, 1, 2), column(3, 4, 5)
    mask = np.array([[True, True, False], [False, False, False]])
    out = backend.call(nadaraya_watson, q, k, v, mask=mask)
    np.testing.assert_array_equal(out, column(4, np.nan))


def test_keys_at_one_place_share(backend):
    known(backend)
    out = backend.call(nadaraya_watson, column(1e200), column(1, 1, 0), column(3, 5, 100))
    np.testing.assert_array_equal(out, [[4]])


def test_leave_one_out_with_a_bandwidth_whose_squares_overflow(backend, small_blocks):
    known(backend)
    out = backend.call(leave_one_out, column(0, 1, 3), column(3, 4, 5), bandwidth=1e-160)
    np.testing.assert_array_equal(out, column(4, 3, 4))


def test_gradients_where_squares_overflow(differentiable, small_blocks):
    """The weights do not move: nothing flows to points, and all to the nearest value."""
    known(differentiable)

    def loss(q, k, v, h):
        return nadaraya_watson(q, k, v, bandwidth=h).sum()

    q, k, v = column(1e200, -1e180, 1e300), column(0, 1, 2), column(3, 4, 5)
    gradients = differentiable.gradient(loss, q, k, v, np.array(1.0))
    for gradient, expected in zip(gradients, (0, 0, column(1, 0, 2), 0), strict=True):
        np.testing.assert_array_equal(gradient, expected)


def test_scores_from_the_nearest_are_the_scores_less_the_largest(backend, rng):
    q, k, h = rng.normal(size=(11, 1, 3, 2)), rng.normal(size=(13, 7, 2)), np.array([0.3, 1.7])
    mask = np.array([True] * 5 + [False] * 2)
    for allowed in (None, mask):
        expected = -0.5 * np.sum(((q[..., :, None, :] - k[..., None, :, :]) / h) ** 2, axis=-1)
        kept = expected if allowed is None else expected[..., allowed]
        expected = expected - kept.max(-1, keepdims=True)
        for bandwidth in (h, 0.3 if allowed is None else h):
            if isinstance(bandwidth, float):
                squares = np.sum((q[..., :, None, :] - k[..., None, :, :]) ** 2, axis=-1)
                expected = -0.5 * squares / bandwidth**2
                expected = expected - expected.max(-1, keepdims=True)
            out = backend.call(scores.from_nearest, q, k, bandwidth, allowed)
            np.testing.assert_allclose(out, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("factor", [1e-40, 1e-300, 1e300])
@pytest.mark.parametrize("name", ["boxcar", "epanechnikov"])
def test_a_constant_factor_changes_no_prediction(backend, rng, name, factor):
    """However small: a query has no neighbour only where the kernel is 0 itself."""
    kernel = getattr(kernels, name)
    q, k, v = rng.normal(size=(3, 2)), rng.normal(size=(7, 2)), rng.normal(size=(7, 5))
    expected = backend.call(nadaraya_watson, q, k, v, kernel=kernel, bandwidth=2.0)
    assert np.isfinite(expected).all()
    how = {"kernel": lambda u: factor * kernel(u), "bandwidth": 2.0}
    scaled = backend.call(nadaraya_watson, q, k, v, **how)
    np.testing.assert_allclose(scaled, expected, rtol=1e-12)


def test_gaussian_score_itself_is_minus_infinity_there(backend):
    if backend.name in ("numpy", "strict"):
        pytest.skip("NumPy warns of the overflow")
    out = backend.call(scores.gaussian_score, column(1e200), column(0, 1))
    np.testing.assert_array_equal(out, [[-math.inf, -math.inf]])
