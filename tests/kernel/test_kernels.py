"""Kernels at points whose value one knows, and distances one can compute by hand."""

import math

import numpy as np
import pytest

from attnbook import kernels

BACKENDS = ("numpy", "strict", "torch", "jax-jit")
BY_HAND = {
    "gaussian": [(0, 1), (1, math.exp(-0.5)), (3, math.exp(-4.5))],
    "boxcar": [(0, 1), (1, 1), (math.nextafter(1, 2), 0)],  # the edge belongs to the ball
    "triangular": [(0, 1), (0.25, 0.75), (1, 0), (3, 0)],
    "epanechnikov": [(0, 0.75), (0.5, 0.5625), (1, 0), (3, 0)],  # 3/4 · 3/4
}
SLOPES = {  # at the edge, that of the outside
    "gaussian": [(1, -math.exp(-0.5)), (2, -2 * math.exp(-2))],
    "boxcar": [(0.5, 0)],
    "triangular": [(0.25, -1), (1, 0), (3, 0)],
    "epanechnikov": [(0.5, -0.75), (1, 0), (3, 0)],
}


@pytest.mark.parametrize("name", BY_HAND)
def test_values_by_hand(backend, name):
    """Of a difference, too; NaN stays NaN, and far away is 0."""
    u, expected = np.array(BY_HAND[name], dtype=float).T
    for sign in (1, -1):
        found = backend.call(getattr(kernels, name), sign * u)
        np.testing.assert_allclose(found, expected, rtol=1e-15)
    found = backend.call(getattr(kernels, name), np.array([np.nan, np.inf, -np.inf]))
    np.testing.assert_array_equal(found, [np.nan, 0, 0])


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_by_hand(differentiable, name):
    u, expected = np.array(SLOPES[name], dtype=float).T
    (slope,) = differentiable.gradient(lambda x: getattr(kernels, name)(x).sum(), u)
    np.testing.assert_allclose(slope, expected, rtol=1e-14)


def test_distance_takes_differences_first(backend):
    """Far from the origin ‖q‖² − 2 q·k + ‖k‖² has no digit left; the difference is exact."""
    q, k = np.array([[2.0**30 + 1, 2.0**30]]), np.array([[2.0**30, 2.0**30 + 1]])
    np.testing.assert_array_equal(backend.call(kernels.distance, q, k), [[2.0**0.5]])


def test_distance_has_a_gradient_where_points_coincide(differentiable):
    """At u = 0 it is 0; for the other key, at distance 5, it is the unit vector."""
    q, k = np.array([[0.0, 0.0]]), np.array([[0.0, 0.0], [3.0, 4.0]])
    dq, dk = differentiable.gradient(lambda q, k: kernels.distance(q, k).sum(), q, k)
    np.testing.assert_allclose(dq, [[-0.6, -0.8]], rtol=1e-15)
    np.testing.assert_allclose(dk, [[0.0, 0.0], [0.6, 0.8]], rtol=1e-15)
