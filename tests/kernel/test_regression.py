"""Kernel regression: by hand, against the loop, leave-one-out against refits."""

import math

import numpy as np
import pytest
import reference
from reference import MASK_SHAPES, sample

from attnbook import kernels, leave_one_out, nadaraya_watson

KERNELS = list(reference.KERNELS)


def column(*numbers):
    return np.array(numbers, dtype=float)[:, None]


BY_HAND = [  # kernel, bandwidth, query, keys, values, prediction
    ("gaussian", 1.0, 1, (0, 2), (10, 30), 20),  # half way
    ("gaussian", 1.0, 0, (0, 2), (0, 1), 1 / (1 + math.exp(2))),  # weights 1 : e^(-2)
    ("gaussian", 2.0, 0, (0, 2), (0, 1), 1 / (1 + math.exp(0.5))),  # h squared: 1 : e^(-1/2)
    ("boxcar", 1.0, 0, (-1, 0, 1, 1.5), (3, 6, 9, 100), 6),  # both edges count
    ("boxcar", 2.0, 0, (-1, 0, 1, 1.5), (3, 6, 9, 10), 7),
    ("triangular", 1.0, 0, (0, 0.5, 2), (0, 3, 100), 1),  # weights 1 : 1/2
    ("triangular", 2.0, 0, (0, 0.5), (0, 7), 3),  # 1 : 3/4
    ("epanechnikov", 1.0, 0, (0, 0.5, 2), (0, 7, 100), 3),  # 3/4 : 9/16
    ("epanechnikov", 2.0, 0, (0, 1), (0, 7), 3),  # 3/4 : 9/16
]


@pytest.mark.parametrize(("name", "h", "query", "keys", "values", "expected"), BY_HAND)
def test_prediction_by_hand(backend, name, h, query, keys, values, expected):
    kernel = getattr(kernels, name)
    arrays = column(query), column(*keys), column(*values)
    out = backend.call(nadaraya_watson, *arrays, kernel=kernel, bandwidth=h)
    np.testing.assert_allclose(out, [[expected]], rtol=1e-14)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("bandwidth", [0.9, np.array([0.6, 1.9])])
def test_equals_the_loop(backend, rng, small_blocks, name, bandwidth):
    """Predictions with and without weights, and the weights."""
    q, k, v = sample(rng)
    expected = reference.nadaraya_watson(q, k, v, name, bandwidth)
    how = {"kernel": getattr(kernels, name), "bandwidth": bandwidth}
    out = backend.call(nadaraya_watson, q, k, v, **how)
    np.testing.assert_allclose(out, expected[0], rtol=1e-11)
    with_weights = backend.call(nadaraya_watson, q, k, v, **how, return_weights=True)
    for found, right in zip(with_weights, expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-11)


@pytest.mark.parametrize("bandwidth", [(0.6, 1.9), [1, 2], np.array(0.9), np.array([1, 2])])
def test_every_kind_of_bandwidth(backend, rng, bandwidth):
    q, k, v = sample(rng)
    expected, _ = reference.nadaraya_watson(q, k, v, "gaussian", bandwidth)
    out = backend.call(nadaraya_watson, q, k, v, bandwidth=bandwidth)
    np.testing.assert_allclose(out, expected, rtol=1e-11)


@pytest.mark.parametrize("shape", MASK_SHAPES.values(), ids=MASK_SHAPES)
@pytest.mark.parametrize("name", ["gaussian", "epanechnikov"])
def test_masks(backend, rng, small_blocks, shape, name):
    """At a density of 0.3 some queries have no neighbour: NaN."""
    q, k, v = sample(rng, 11)
    mask = rng.random(shape) < 0.3
    expected = reference.nadaraya_watson(q, k, v, name, 1.1, mask)
    assert np.isnan(expected[1]).any() or shape != (11, 3, 7)
    how = {"kernel": getattr(kernels, name), "bandwidth": 1.1, "mask": mask}
    out = backend.call(nadaraya_watson, q, k, v, **how)
    np.testing.assert_allclose(out, expected[0], rtol=1e-11, atol=1e-14)
    with_weights = backend.call(nadaraya_watson, q, k, v, **how, return_weights=True)
    for found, right in zip(with_weights, expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-11, atol=1e-14)


def test_leading_axes_broadcast(backend, rng, small_blocks):
    q, k, v = rng.normal(size=(11, 1, 3, 2)), rng.normal(size=(13, 7, 2)), rng.normal(size=(7, 5))
    expected, _ = reference.nadaraya_watson(q, k, v)
    out = backend.call(nadaraya_watson, q, k, v)
    assert out.shape == (11, 13, 3, 5)
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_values_may_have_more_leading_axes_than_queries(backend, rng, small_blocks):
    q, k, v = rng.normal(size=(3, 2)), rng.normal(size=(7, 2)), rng.normal(size=(11, 7, 5))
    expected, _ = reference.nadaraya_watson(q, k, v)
    np.testing.assert_allclose(backend.call(nadaraya_watson, q, k, v), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["boxcar", "triangular", "epanechnikov"])
def test_no_neighbour_is_nan_and_no_warning(backend, small_blocks, name):
    """Only the query at 0 has a key within one bandwidth."""
    q, k, v = column(0, 10, -10), column(0, 0.5, -0.5), column(1, 1, 1)
    how = {"kernel": getattr(kernels, name)}
    output, weights = backend.call(nadaraya_watson, q, k, v, **how, return_weights=True)
    assert np.isnan(weights[1:]).all()
    for out in (output, backend.call(nadaraya_watson, q, k, v, **how)):
        np.testing.assert_allclose(out, [[1], [np.nan], [np.nan]], rtol=1e-15)


def test_a_gaussian_query_with_everything_masked_is_nan(backend, small_blocks):
    q, k, v = column(0, 1, 2), column(0, 1), column(3, 3)
    mask = np.array([[True, False], [False, False], [True, True]])
    output, weights = backend.call(nadaraya_watson, q, k, v, mask=mask, return_weights=True)
    assert np.isnan(weights[1]).all()
    for out in (output, backend.call(nadaraya_watson, q, k, v, mask=mask)):
        np.testing.assert_allclose(out, [[3], [np.nan], [3]], rtol=1e-14)


@pytest.mark.parametrize("distance", [1e2, 1e4, 1e6, 1e15])
def test_far_from_all_data_float32_gives_the_nearest_value(backend, small_blocks, distance):
    """The Gaussian weights underflow; their ratio does not."""
    q = column(1 + distance, -distance, 1 + 2 * distance).astype(np.float32)
    k, v = column(0, 1).astype(np.float32), column(3, 5).astype(np.float32)
    far = 1e-2 if distance < 1e6 else distance / 1e6  # so that the keys stay apart in float32
    k = k * np.float32(far * 100)
    out = backend.call(nadaraya_watson, q, k, v, bandwidth=1e-2)
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, [[5], [3], [5]])


@pytest.mark.parametrize("name", ["gaussian", "triangular"])
def test_a_query_without_neighbour_spoils_no_gradient(differentiable, small_blocks, name):
    """The lost query's NaN is dropped from the loss: what is left has an ordinary gradient."""
    kernel = getattr(kernels, name)
    q, k, v = column(0.2, 50, 0.4), column(0, 0.5), column(1, 2)
    mask = differentiable.array(np.array([[True, True], [False, False], [True, True]]))

    def loss(q, k, v, h, mask=mask):
        out = nadaraya_watson(q, k, v, kernel=kernel, bandwidth=h, mask=mask)
        return differentiable.xp.where(out == out, out, differentiable.xp.zeros_like(out)).sum()

    def kept(q, k, v, h):
        return loss(q, k, v, h, None)

    spoilt = differentiable.gradient(loss, q, k, v, np.array([0.9]))
    clean = differentiable.gradient(kept, q[[0, 2]], k, v, np.array([0.9]))
    np.testing.assert_array_equal(spoilt[0][1], 0)
    np.testing.assert_allclose(spoilt[0][[0, 2]], clean[0], rtol=1e-12, atol=1e-15)
    for a, b in zip(spoilt[1:], clean[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("bandwidth", [np.float64(0.5), np.float32(0.5), np.int64(1), 1])
def test_numpy_scalars_do_not_widen_float32(backend, rng, bandwidth):
    q, k, v = (a.astype(np.float32) for a in sample(rng))
    out = backend.call(nadaraya_watson, q, k, v, bandwidth=bandwidth)
    assert out.dtype == np.float32
    expected, _ = reference.nadaraya_watson(q, k, v, bandwidth=float(bandwidth))
    np.testing.assert_allclose(out, expected, rtol=2e-5)


def test_a_float64_bandwidth_does_not_widen_float32(backend, rng):
    q, k, v = (a.astype(np.float32) for a in sample(rng))
    h = np.array([0.5, 2.0])
    for out in (
        backend.call(nadaraya_watson, q, k, v, bandwidth=h),
        *backend.call(nadaraya_watson, q, k, v, bandwidth=h, return_weights=True),
        backend.call(leave_one_out, k, v, bandwidth=h),
    ):
        assert out.dtype == np.float32


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision(backend, rng, half):
    """The dtype is kept, and the sums run in float32: distance 500 squared is beyond float16."""
    if half not in backend.half:
        pytest.skip(f"{backend.name} has no {half}")
    arrays = [np.array([[0.0], [500.0]]), np.array([[0.0], [400.0]]), np.array([[3.0], [5.0]])]
    q, k, v = (backend.cast(backend.array(a), half) for a in arrays)
    outs = nadaraya_watson(q, k, v), nadaraya_watson(q, k, v, return_weights=True)[0]
    for out in outs:
        assert backend.dtype(out) == half
        np.testing.assert_array_equal(backend.numpy(backend.cast(out, "float32")), [[3], [5]])
    out = leave_one_out(k, v)
    assert backend.dtype(out) == half
    np.testing.assert_array_equal(backend.numpy(backend.cast(out, "float32")), [[5], [3]])


def test_no_queries_and_no_columns(backend, rng, small_blocks):
    assert backend.call(nadaraya_watson, *sample(rng, m=0)).shape == (0, 5)
    assert backend.call(nadaraya_watson, *sample(rng, p=0)).shape == (3, 0)
    assert backend.call(nadaraya_watson, *sample(rng, 0)).shape == (0, 3, 5)


def test_leave_one_out_by_hand(backend):
    """Three keys on a line, boxcar of radius 1: the ends see the middle, the middle sees both."""
    out = backend.call(leave_one_out, column(0, 1, 2), column(10, 20, 60), kernel=kernels.boxcar)
    np.testing.assert_allclose(out, [[20], [35], [20]], rtol=1e-15)


@pytest.mark.parametrize("name", KERNELS)
def test_leave_one_out_equals_refits(backend, rng, small_blocks, name):
    bandwidth = np.array([0.9, 1.9])
    k, v = rng.normal(size=(7, 2)), rng.normal(size=(7, 5))
    refits = []
    for i in range(7):
        others = np.delete(k, i, 0), np.delete(v, i, 0)
        output, _ = reference.nadaraya_watson(k[[i]], *others, name, bandwidth)
        refits.append(output[0])
    how = {"kernel": getattr(kernels, name), "bandwidth": bandwidth}
    np.testing.assert_allclose(backend.call(leave_one_out, k, v, **how), refits, rtol=1e-11)


def test_leave_one_out_with_leading_axes(backend, rng, small_blocks):
    k, v = rng.normal(size=(13, 7, 2)), rng.normal(size=(11, 1, 7, 5))
    out = backend.call(leave_one_out, k, v)
    expected, _ = reference.nadaraya_watson(k, k, v, mask=~np.eye(7, dtype=bool))
    assert out.shape == (11, 13, 7, 5)
    np.testing.assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_leave_one_out_of_a_single_key_is_nan(backend, name):
    out = backend.call(leave_one_out, column(1), column(2), kernel=getattr(kernels, name))
    np.testing.assert_array_equal(out, [[np.nan]])


def test_leave_one_out_of_a_lonely_key_is_nan(backend):
    k, v = column(0, 0.5, 9), column(1, 2, 3)
    out = backend.call(leave_one_out, k, v, kernel=kernels.epanechnikov)
    np.testing.assert_allclose(out, [[2], [1], [np.nan]], rtol=1e-15)
