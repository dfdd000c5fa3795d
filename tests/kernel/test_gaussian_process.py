"""Gaussian processes against scikit-learn's, by hand, and as draws."""

import math
import re

import numpy as np
import pytest

from attnbook.kernel.gaussian_process import covariance, draw, posterior


def assert_close(out, expected, tolerance=1e-9):
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)


def test_covariance_by_hand():
    x, z = np.array([0.0, 1.0]), np.array([0.0, 2.0, -1.0])
    assert_close(covariance(x, z, 1), np.exp([[0, -2, -0.5], [-0.5, -0.5, -2]]), 1e-15)
    assert_close(covariance(x, z, 2.0), np.exp([[0, -0.5, -0.125], [-0.125, -0.125, -0.5]]), 1e-15)


def test_covariance_equals_the_loop(rng):
    """A length scale a function, and leading axes."""
    x, z = rng.normal(size=(2, 3, 5)), rng.normal(size=(2, 3, 7))
    scale = rng.uniform(0.5, 2, size=(2, 3))
    out = covariance(x, z, scale)
    assert out.shape == (2, 3, 5, 7)
    for i, j, m, n in np.ndindex(2, 3, 5, 7):
        u = (x[i, j, m] - z[i, j, n]) / scale[i, j]
        assert_close(out[i, j, m, n], math.exp(-(u**2) / 2), 1e-14)


BAD_SCALES = [0, -1.0, math.nan, math.inf, None, "1", True, 1j, np.array([0.3, 0.0])]


@pytest.mark.parametrize("scale", BAD_SCALES)
def test_bad_length_scales(scale, rng):
    x = rng.normal(size=(2, 3))
    for call in (
        lambda: covariance(x, x, scale),
        lambda: draw(x, scale, rng),
        lambda: posterior(x, x, x, length_scale=scale, noise=0.1),
    ):
        with pytest.raises(ValueError, match=r"length_scale: got .*, expected numbers above 0"):
            call()


@pytest.mark.parametrize("noise", [-0.1, math.nan, math.inf, None, "0.1", True])
def test_bad_noise(noise, rng):
    x = rng.normal(size=3)
    with pytest.raises(ValueError, match=f"noise: got {noise!r}, expected 0 or more"):
        posterior(x, x, x, length_scale=1.0, noise=noise)


def test_one_point_by_hand():
    """k y / (1 + σ²) and 1 − k² / (1 + σ²)."""
    queries, keys, values = np.array([0.0, 1.0, 50.0]), np.array([0.0]), np.array([3.0])
    mean, variance = posterior(queries, keys, values, length_scale=1.0, noise=0.5)
    k = np.array([1, math.exp(-0.5), 0])
    assert_close(mean, 3 * k / 1.25, 1e-14)
    assert_close(variance, 1 - k**2 / 1.25, 1e-14)


@pytest.mark.parametrize("noise", [0.05, 0.3, 2.0])
@pytest.mark.parametrize("length_scale", [0.2, 1.0])
def test_equals_scikit_learn(rng, noise, length_scale):
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    kernel = gaussian_process.kernels.RBF(length_scale)
    keys, values, queries = rng.normal(size=13), rng.normal(size=13), rng.normal(size=7)
    peer = gaussian_process.GaussianProcessRegressor(kernel, alpha=noise**2, optimizer=None)
    expected, deviation = peer.fit(keys[:, None], values).predict(queries[:, None], return_std=True)
    mean, variance = posterior(queries, keys, values, length_scale=length_scale, noise=noise)
    assert_close(mean, expected)
    assert_close(variance, deviation**2)
    assert np.all((variance > 0) & (variance <= 1))


def test_many_functions_are_each_by_itself(rng):
    queries, keys, values = (rng.normal(size=(2, 3, n)) for n in (5, 7, 7))
    scale = rng.uniform(0.5, 2, size=(2, 3))
    out = posterior(queries, keys, values, length_scale=scale, noise=0.3)
    assert [a.shape for a in out] == [(2, 3, 5)] * 2
    for i, j in np.ndindex(2, 3):
        points = queries[i, j], keys[i, j], values[i, j]
        one = posterior(*points, length_scale=scale[i, j], noise=0.3)
        for many, each in zip(out, one, strict=True):
            assert_close(many[i, j], each)


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


def test_more_points_leave_less_variance(rng):
    keys, queries = rng.uniform(-1, 1, size=31), np.linspace(-1, 1, 11)
    before = np.ones(11)
    for n in (1, 4, 13, 31):
        after = posterior(queries, keys[:n], keys[:n], length_scale=0.4, noise=0.2)[1]
        assert np.all(after < before)
        assert np.all(after > 0)
        before = after


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


@pytest.mark.parametrize("name", ["list", "torch", "jax.numpy"])
def test_what_is_no_numpy_array_is_named(name):
    x, rng = np.linspace(0, 1, 5), np.random.default_rng(0)
    other = list(x) if name == "list" else pytest.importorskip(name).asarray(x)
    how = {"length_scale": 0.5, "noise": 0.1}
    for argument, call in (
        ("x", lambda: covariance(other, x, 0.5)),
        ("x", lambda: draw(other, 0.5, rng)),
        ("z", lambda: covariance(x, other, 0.5)),
        ("queries", lambda: posterior(other, x, x, **how)),
        ("keys", lambda: posterior(x, other, x, **how)),
        ("values", lambda: posterior(x, x, other, **how)),
    ):
        message = rf"^{argument}: got a \w+, expected a NumPy array$"
        with pytest.raises(TypeError, match=message):
            call()


def test_shapes_that_do_not_fit_are_named(rng):
    x, five, other = rng.normal(size=(2, 3)), np.ones(5), np.ones((7, 5))
    apart = "expected leading axes that broadcast"
    real = "expected real numbers of shape (..., n)"
    of_all = f"queries, keys, values, length_scale: got shapes (2, 3), (7, 5), (5,), (), {apart}"
    one_each = "length_scale: got shape (7, 2), expected () or (2,), one per function"
    for arguments, message in (
        ((x, other, 1), f"x, z, length_scale: got shapes (2, 3), (7, 5), (), {apart}"),
        ((x, x, five), f"x, z, length_scale: got shapes (2, 3), (2, 3), (5,), {apart}"),
        ((np.ones(()), x, 1), f"x: got dtype float64, shape (), {real}"),
        ((x, x * 1j, 1), f"z: got dtype complex128, shape (2, 3), {real}"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            covariance(*arguments)
    for at, scale, message in (
        (x > 0, 1, f"x: got dtype bool, shape (2, 3), {real}"),
        (x, np.ones((7, 2)), one_each),
        (
            np.array([0, np.nan, 1]),
            1,
            "x: got 1 entries of 3 that are NaN or infinite, expected finite",
        ),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            draw(at, scale, rng)
    for arguments, message in (
        ((x, other, five), of_all),
        ((five, np.ones(3), five), "values: got 5 numbers, expected 3, one per key"),
        (
            (five, five[:2], np.array([0, np.inf])),
            "values: got 1 entries of 2 that are NaN or infinite",
        ),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            posterior(*arguments, length_scale=1.0, noise=0.1)
    with pytest.raises(TypeError, match="rng: got a int, expected a NumPy generator"):
        draw(x, 1.0, 3)


def test_values_of_several_functions_at_the_same_keys(rng):
    """Leading axes broadcast: three functions seen at the same points."""
    queries, keys, values = rng.normal(size=7), rng.normal(size=5), rng.normal(size=(3, 5))
    mean, variance = posterior(queries, keys, values, length_scale=0.5, noise=0.1)
    for row, one in zip(mean, values, strict=True):
        expected, alone = posterior(queries, keys, one, length_scale=0.5, noise=0.1)
        assert_close(row, expected)
        assert_close(variance, np.broadcast_to(alone, variance.shape))
