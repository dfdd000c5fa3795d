"""Kernels at points whose value one knows, and distances one can compute by hand."""

import math

import numpy as np
import pytest
import reference

from attnbook import kernels

JUST_ABOVE_ONE = math.nextafter(1, 2)
BY_HAND = [
    ("gaussian", 0.0, 1.0),
    ("gaussian", 1.0, 0.6065306597126334),  # e^(-1/2)
    ("gaussian", 2.0, 0.1353352832366127),  # e^(-2)
    ("gaussian", 3.0, 0.011108996538242306),  # e^(-9/2)
    ("boxcar", 0.0, 1.0),
    ("boxcar", 0.5, 1.0),
    ("boxcar", 1.0, 1.0),  # the edge belongs to the ball
    ("boxcar", JUST_ABOVE_ONE, 0.0),
    ("triangular", 0.0, 1.0),
    ("triangular", 0.25, 0.75),
    ("triangular", 1.0, 0.0),
    ("triangular", 3.0, 0.0),
    ("epanechnikov", 0.0, 0.75),
    ("epanechnikov", 0.5, 0.5625),  # 3/4 · 3/4
    ("epanechnikov", 1.0, 0.0),
    ("epanechnikov", 3.0, 0.0),
]
BY_HAND += [(name, -u, value) for name, u, value in BY_HAND]  # a difference does as well
SLOPES = [  # dK/du at u
    ("gaussian", 1.0, -0.6065306597126334),
    ("gaussian", 2.0, -0.2706705664732254),
    ("boxcar", 0.5, 0.0),
    ("triangular", 0.25, -1.0),
    ("triangular", 1.0, 0.0),  # at the edge, that of the outside
    ("triangular", 3.0, 0.0),
    ("epanechnikov", 0.5, -0.75),
    ("epanechnikov", 1.0, 0.0),
    ("epanechnikov", 3.0, 0.0),
]


@pytest.mark.parametrize(("name", "u", "expected"), BY_HAND)
def test_value_by_hand(backend, name, u, expected):
    out = backend.call(getattr(kernels, name), np.array([u]))
    np.testing.assert_allclose(out, [expected], rtol=1e-15)


@pytest.mark.parametrize("name", reference.KERNELS)
def test_nan_stays_nan(backend, name):
    out = backend.call(getattr(kernels, name), np.array([np.nan, np.inf, -np.inf]))
    np.testing.assert_array_equal(out, [np.nan, 0, 0])


@pytest.mark.parametrize("name", reference.KERNELS)
def test_equals_the_loop(backend, rng, name):
    u = rng.uniform(0, 2, size=(2, 3, 5))
    expected = np.vectorize(reference.KERNELS[name])(u)
    np.testing.assert_allclose(backend.call(getattr(kernels, name), u), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "area"),
    [("gaussian", math.sqrt(2 * math.pi)), ("boxcar", 2), ("triangular", 1), ("epanechnikov", 1)],
)
def test_area_under_the_curve(name, area):
    """The constants: triangular and Epanechnikov are densities, the other two have height 1."""
    u = np.linspace(-10, 10, 200_001)
    assert np.trapezoid(getattr(kernels, name)(np.abs(u)), u) == pytest.approx(area, abs=2e-4)


@pytest.mark.parametrize(("name", "u", "expected"), SLOPES)
def test_slope_by_hand(differentiable, name, u, expected):
    (slope,) = differentiable.gradient(lambda x: getattr(kernels, name)(x).sum(), np.array([u]))
    np.testing.assert_allclose(slope, [expected], rtol=1e-14)


@pytest.mark.parametrize("name", reference.KERNELS)
def test_keeps_float32(backend, name):
    u = np.array([0.25, 0.5, 2.0], dtype=np.float32)
    out = backend.call(getattr(kernels, name), u)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, np.vectorize(reference.KERNELS[name])(u), rtol=1e-6)


@pytest.mark.parametrize("name", reference.KERNELS)
def test_keeps_half_precision(backend, name):
    for half in backend.half:
        u = backend.cast(backend.array(np.array([0.25, 0.5, 2.0])), half)
        out = getattr(kernels, name)(u)
        assert backend.dtype(out) == half
        expected = np.vectorize(reference.KERNELS[name])([0.25, 0.5, 2.0])
        out = backend.numpy(backend.cast(out, "float32"))
        np.testing.assert_allclose(out, expected, rtol=0.01)


def test_distance_by_hand(backend):
    """(0, 0) to (3, 4): 5; with h = 2 half of it; with h = (3, 4) the diagonal of a unit square."""
    q, k = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])
    for bandwidth, expected in (
        (1.0, 5.0),
        (2.0, 2.5),
        ([3.0, 4.0], math.sqrt(2)),
        (np.array([3.0, 4.0]), math.sqrt(2)),
        (np.array(2.0), 2.5),
    ):
        u = backend.call(kernels.distance, q, k, bandwidth)
        squared = backend.call(kernels.squared_distance, q, k, bandwidth)
        np.testing.assert_allclose(u, [[expected]], rtol=1e-15)
        np.testing.assert_allclose(squared, [[expected**2]], rtol=1e-15)


@pytest.mark.parametrize("bandwidth", [0.7, np.array([0.3, 2.0])])
def test_distance_equals_the_loop(backend, rng, bandwidth):
    q, k = rng.normal(size=(11, 1, 3, 2)), rng.normal(size=(13, 7, 2))
    expected = reference.pairs(lambda a, b: reference.distance(a, b, bandwidth), q, k)
    out = backend.call(kernels.distance, q, k, bandwidth)
    squared = backend.call(kernels.squared_distance, q, k, bandwidth)
    assert out.shape == (11, 13, 3, 7)
    np.testing.assert_allclose(out, expected, rtol=1e-13)
    np.testing.assert_allclose(squared, expected**2, rtol=1e-13)


def test_distance_takes_differences_first(backend):
    """Far from the origin ‖q‖² − 2 q·k + ‖k‖² has no digit left; the difference is exact."""
    q, k = np.array([[2.0**30 + 1, 2.0**30]]), np.array([[2.0**30, 2.0**30 + 1]])
    np.testing.assert_array_equal(backend.call(kernels.squared_distance, q, k), [[2.0]])


def test_distance_has_a_gradient_where_points_coincide(differentiable):
    """At u = 0 it is 0; for the other key, at distance 5, it is the unit vector."""
    q, k = np.array([[0.0, 0.0]]), np.array([[0.0, 0.0], [3.0, 4.0]])
    dq, dk = differentiable.gradient(lambda q, k: kernels.distance(q, k).sum(), q, k)
    np.testing.assert_allclose(dq, [[-0.6, -0.8]], rtol=1e-15)
    np.testing.assert_allclose(dk, [[0.0, 0.0], [0.6, 0.8]], rtol=1e-15)


def test_distance_of_a_point_to_itself_is_0(backend):
    points = np.array([[0.3, -2.0], [5.0, 0.0]])
    expected = [[0.0, math.hypot(4.7, 2)], [math.hypot(4.7, 2), 0.0]]
    np.testing.assert_allclose(backend.call(kernels.distance, points, points), expected, rtol=1e-15)


def test_distance_is_in_bandwidths_of_1_unless_told(backend):
    q, k = np.array([[1.0]]), np.array([[4.0], [-1.0]])
    for function, expected in ((kernels.distance, [[3, 2]]), (kernels.squared_distance, [[9, 4]])):
        np.testing.assert_array_equal(backend.call(function, q, k), expected)
