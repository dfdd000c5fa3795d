"""Gaussian processes by hand, as draws, and of several functions."""

import math

import numpy as np
import pytest

from attnbook.kernel.gaussian_process import covariance, draw, posterior


def assert_close(out, expected, tolerance=1e-9):
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)


def test_without_noise_it_interpolates(rng):
    """Through every point, sure of it; far away it knows nothing. Points close together are solved too."""
    keys, values = np.linspace(-1, 1, 5), rng.normal(size=5)
    mean, variance = posterior(keys, keys, values, length_scale=0.5, noise=0)
    assert_close(mean, values, 1e-5)
    assert_close(variance, 0, 1e-7)
    mean, variance = posterior(np.array([40.0]), keys, values, length_scale=0.5, noise=0)
    assert_close(mean, 0)
    assert_close(variance, 1)
    close = np.linspace(0, 1, 33)
    mean, variance = posterior(close, close, np.sin(close), length_scale=2.0, noise=0)
    assert_close(mean, np.sin(close), 1e-4)
    assert np.all(np.abs(variance) < 1e-5)
    repeated = np.zeros(2)
    assert_close(posterior(repeated, repeated, repeated + 3, length_scale=1, noise=0)[0], 3, 1e-5)


def test_draws_have_the_covariance():
    """20 000 functions at the same five points; one length scale for all, or one per function."""
    x, n = np.array([-1.0, -0.5, 0.1, 0.2, 1.0]), 20_000
    for scale in (0.5, np.repeat([0.5, 0.2], n)):
        rows = np.size(scale) if np.ndim(scale) else n
        values = draw(np.broadcast_to(x, (rows, 5)), scale, np.random.default_rng(3))
        assert values.shape == (rows, 5)
        for part, length_scale in ((values[:n], 0.5), (values[n:], 0.2)):
            if len(part):
                expected = covariance(x, x, length_scale)
                error = np.sqrt((1 + expected**2) / n)
                assert np.all(np.abs(part.mean(0)) < 4 / math.sqrt(n))
                assert np.all(np.abs(part.T @ part / n - expected) < 4 * error)
                assert np.all(np.abs((part**4).mean(0) - 3) < 4 * math.sqrt(96 / n))
                assert abs(np.mean(part[1:, 0] * part[:-1, 0])) < 4 / math.sqrt(n)


def test_a_generator_goes_on_and_a_seed_settles_it():
    x = np.linspace(-1, 1, 7)[None]
    rng = np.random.default_rng(3)
    one, other = draw(x, 0.3, rng), draw(x, 0.3, rng)
    np.testing.assert_array_equal(draw(x, 0.3, np.random.default_rng(3)), one)
    assert np.all(one != other)
    close = draw(np.linspace(0, 0.1, 211)[None], 1.0, rng)  # a singular matrix, but for rounding
    assert np.all(np.abs(np.diff(close)) < 0.01)


def test_wrong_draws_and_points(rng):
    x = rng.normal(size=(2, 3))
    with pytest.raises(TypeError, match="rng: got a int, expected a NumPy generator"):
        draw(x, 1.0, 3)
    with pytest.raises(
        ValueError, match=r"length_scale: got shape \(7, 2\), expected \(\) or \(2,\)"
    ):
        draw(x, np.ones((7, 2)), rng)
    with pytest.raises(
        ValueError, match="x: got 1 entries of 3 that are NaN or infinite, expected"
    ):
        draw(np.array([0, np.nan, 1]), 1.0, rng)
