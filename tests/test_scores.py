"""Scores one can compute by hand, and the loop."""

import math

import numpy as np
import pytest
import reference

from attnbook import kernels, scores


def test_dot_by_hand(backend):
    q, k = np.array([[1.0, 2.0]]), np.array([[3.0, 5.0], [-2.0, 1.0], [0.5, 0.25]])
    np.testing.assert_array_equal(backend.call(scores.dot, q, k), [[13.0, 0.0, 1.0]])


def test_scaled_dot_by_hand(backend):
    """Query (0, √2) and the unit vectors: scores 0 and 1; in four dimensions the scale is 2."""
    q = np.array([[0.0, math.sqrt(2)]])
    np.testing.assert_allclose(backend.call(scores.scaled_dot, q, np.eye(2)), [[0.0, 1.0]])
    q, k = np.array([[1.0, 2.0, 3.0, 4.0]]), np.ones((1, 4))
    np.testing.assert_array_equal(backend.call(scores.scaled_dot, q, k), [[5.0]])


@pytest.mark.parametrize(
    ("bandwidth", "expected"),
    [(1.0, -12.5), (5.0, -0.5), ([3.0, 4.0], -1.0), (np.array([3.0, 4.0]), -1.0)],
)
def test_gaussian_score_by_hand(backend, bandwidth, expected):
    q, k = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])
    out = backend.call(scores.gaussian_score, q, k, bandwidth)
    np.testing.assert_allclose(out, [[expected]], rtol=1e-15)


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "gaussian_score"])
@pytest.mark.parametrize("d", [2, 5])
def test_equals_the_loop(backend, rng, name, d):
    q, k = rng.normal(size=(11, 1, 3, d)), rng.normal(size=(13, 7, d))
    out = backend.call(getattr(scores, name), q, k)
    assert out.shape == (11, 13, 3, 7)
    expected = reference.pairs(getattr(reference, name), q, k)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-14)


def test_gaussian_score_is_the_logarithm_of_the_gaussian_kernel(backend, rng):
    q, k, h = rng.normal(size=(3, 5)), rng.normal(size=(7, 5)), rng.uniform(0.5, 2, size=5)
    kernel = backend.call(lambda q, k, h: kernels.gaussian(kernels.distance(q, k, h)), q, k, h)
    np.testing.assert_allclose(
        np.exp(backend.call(scores.gaussian_score, q, k, h)), kernel, rtol=1e-12
    )


@pytest.mark.parametrize("bandwidth", [np.float64(0.5), np.float32(0.5), np.int64(2), 2, 0.5])
def test_numpy_scalars_do_not_widen_float32(backend, rng, bandwidth):
    q, k = (rng.normal(size=(n, 2)).astype(np.float32) for n in (3, 7))
    out = backend.call(scores.gaussian_score, q, k, bandwidth)
    assert out.dtype == np.float32
    score = lambda a, b: reference.gaussian_score(a, b, float(bandwidth))  # noqa: E731
    np.testing.assert_allclose(out, reference.pairs(score, q, k), rtol=1e-5)
