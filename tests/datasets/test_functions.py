"""Random functions: their points, their noise, their length scales."""

import math

import numpy as np
import pytest

from attnbook import datasets


def test_sizes_and_points():
    """Even over [−1, 1], each function at its own; one length scale for all."""
    out = datasets.smooth_functions(2003)
    assert [a.shape for a in out] == [(2003, 33)] * 3 + [(2003,)]
    assert out._fields == ("x", "y", "true", "length_scale")
    np.testing.assert_allclose(out.length_scale, 0.3, rtol=1e-12)
    assert -1 <= out.x.min() < -0.999
    assert 0.999 < out.x.max() <= 1
    assert abs(out.x.mean()) < 4 / math.sqrt(3 * out.x.size)
    assert abs(out.x.var() - 1 / 3) < 0.005
    assert len(np.unique(out.x)) == out.x.size
    assert datasets.smooth_functions(5, 7).y.shape == (5, 7)
    for n, points in ((0, 3), (3, 0)):
        assert datasets.smooth_functions(n, points).y.shape == (n, points)


@pytest.mark.parametrize("noise", [0.2, 1.5])
def test_the_noise_is_as_large_as_it_says(noise):
    """(y − f(x)) / σ is standard normal and apart in every point; the functions have variance 1."""
    how = {} if noise == 0.2 else {"noise": noise}
    out = datasets.smooth_functions(2003, 11, **how)
    z = (out.y - out.true) / noise
    assert abs(z.mean()) < 4 / math.sqrt(z.size)
    assert abs(z.std() - 1) < 0.02
    assert abs(np.mean(np.abs(z) < 1) - 0.6827) < 0.015
    assert abs(np.mean(z[:, 1:] * z[:, :-1])) < 4 / math.sqrt(z.size)
    assert abs(np.mean(z * out.true)) < 4 / math.sqrt(z.size)
    assert abs(out.true[:, 0].var() - 1) < 4 * math.sqrt(2 / 2003)
    quiet = datasets.smooth_functions(2003, 11, noise=0)
    np.testing.assert_array_equal(quiet.y, quiet.true)
    np.testing.assert_array_equal(quiet.true, out.true)


def test_length_scales_are_even_in_their_logarithm():
    """Between the ends, whichever comes first."""
    for ends in ((0.1, 1.6), (1.6, 0.1)):
        scale = datasets.smooth_functions(4001, 1, length_scale=ends).length_scale
        assert 0.1 <= scale.min() < 0.101
        assert 1.58 < scale.max() <= 1.6
        octaves = np.bincount(np.log2(scale / 0.1).astype(int), minlength=4) / 4001
        assert np.all(np.abs(octaves - 1 / 4) < 4 * math.sqrt(3 / 16 / 4001))
    np.testing.assert_allclose(datasets.smooth_functions(3, length_scale=1.7).length_scale, 1.7)
    same = datasets.smooth_functions(3, length_scale=(1.7, 1.7))
    np.testing.assert_array_equal(same.y, datasets.smooth_functions(3, length_scale=1.7).y)


def test_a_seed_settles_it_and_a_generator_goes_on():
    one, same, other = (datasets.smooth_functions(3, seed=seed) for seed in (0, 0, 1))
    for name in ("x", "y", "true"):
        np.testing.assert_array_equal(getattr(one, name), getattr(same, name))
        assert np.all(getattr(one, name) != getattr(other, name))
    np.testing.assert_array_equal(datasets.smooth_functions(3).y, one.y)
    rng = np.random.default_rng(0)
    first, second = (datasets.smooth_functions(3, seed=rng) for _ in range(2))
    np.testing.assert_array_equal(first.y, one.y)
    assert np.all(second.y != first.y)
