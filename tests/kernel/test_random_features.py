"""Features against the kernels whose products they are."""

import math

import numpy as np
import pytest

from attnbook import kernels
from attnbook.kernel import gaussian_process, random_features

COUNT = 40_000  # frequencies where a mean is compared


def points(rng, m=3, n=5, d=3):
    return 0.4 * rng.normal(size=(m, d)), 0.4 * rng.normal(size=(n, d))


def within_standard_error(products, expected):
    """The mean over frequencies, products (..., r), is the kernel within four standard errors."""
    error = products.std(axis=-1) / math.sqrt(products.shape[-1])
    assert np.all(np.abs(products.mean(axis=-1) - expected) < 4 * error)
    assert np.all(error < 0.05)


def test_fourier_is_the_gaussian_kernel_on_average(rng):
    """Also with a bandwidth, by which the frequencies are divided; every feature has length 1."""
    (q, k), frequencies = points(rng), rng.normal(size=(COUNT, 3))
    for h in (1.0, 0.5):
        left, right = (random_features.fourier(a, frequencies / h) for a in (q, k))
        np.testing.assert_allclose(np.sum(left**2, axis=-1), 1, rtol=1e-12)
        each = left[:, None] * right * COUNT  # the pair of a frequency: cosines and sines
        products = each[..., :COUNT] + each[..., COUNT:]
        within_standard_error(products, kernels.gaussian(kernels.distance(q, k, h)))
        np.testing.assert_allclose(products.mean(axis=-1), left @ right.T, rtol=1e-9)


def test_positive_is_the_exponential_of_the_product_on_average(rng):
    """And the second moment of one feature's product is exp(‖q + k‖²) times its mean's square."""
    (q, k), frequencies = points(rng), rng.normal(size=(COUNT, 3))
    left, right = (random_features.positive(a, frequencies) for a in (q, k))
    products = left[:, None] * right * COUNT
    assert np.all(products > 0)
    kernel = np.exp(q @ k.T)
    within_standard_error(products, kernel)
    ratio = products**2 / kernel[..., None] ** 2
    error = ratio.std(axis=-1) / math.sqrt(COUNT)
    expected = np.exp(np.sum((q[:, None] + k) ** 2, axis=-1))
    assert np.all(np.abs(ratio.mean(axis=-1) - expected) < 4 * error + 0.02 * expected)


@pytest.mark.parametrize(("length_scale", "period"), [(0.3, 5.2), (1.0, 3.0)])
def test_regular_is_the_kernel_with_its_repeats(rng, length_scale, period):
    """With enough frequencies to 1e-12; in the second case the repeats overlap."""
    x, z = rng.uniform(-1, 1, size=(2, 5)), rng.uniform(-1, 1, size=7)
    how = {"length_scale": length_scale, "period": period}
    left, right = (random_features.regular(a, 24, **how) for a in (x, z))
    assert left.shape == (2, 5, 48)
    shifts = period * np.arange(-9, 10)
    repeats = [gaussian_process.covariance(x + s, z, length_scale) for s in shifts]
    np.testing.assert_allclose(left @ right.T, sum(repeats), atol=1e-11)
