"""Coefficients of one pass, of many and of recursive least squares: how they meet."""

import functools

import numpy as np
import pytest

from attnbook.kernel import gaussian_process, random_features
from attnbook.linear_attention import online_regression

NOISE = 0.2


def problem(rng, *lead, n=5, p=2):
    """Keys on a line, their kernel, values."""
    x = rng.uniform(-1, 1, size=(*lead, n))
    return x, gaussian_process.covariance(x, x, 0.3), rng.normal(size=(*lead, n, p))


def test_the_first_pass_is_the_delta_rule(rng):
    """With β = 1/(1 + σ²), where the kernel of a key with itself is 1."""
    _, gram, values = problem(rng)
    first = online_regression.passes(gram, values, 1, noise=NOISE)
    delta = online_regression.one_pass(gram, values, beta=1 / (1 + NOISE**2))
    np.testing.assert_allclose(first, delta, rtol=1e-12)


def test_many_passes_are_the_posterior(rng):
    """Predictions from the coefficients: chapter 9's posterior mean."""
    x, gram, values = problem(rng, n=11, p=1)
    queries = np.linspace(-1, 1, 7)
    u = online_regression.passes(gram, values, 3000, noise=NOISE)
    mean = gaussian_process.covariance(queries, x, 0.3) @ u
    expected, _ = gaussian_process.posterior(
        queries, x, values[:, 0], length_scale=0.3, noise=NOISE
    )
    np.testing.assert_allclose(mean[:, 0], expected, rtol=1e-8, atol=1e-10)


def test_recursive_on_features_is_the_posterior_of_their_kernel(rng):
    """With regular features enough: mean and variance of the Gaussian process itself."""
    x, y, queries = rng.uniform(-1, 1, size=9), rng.normal(size=9), np.linspace(-1, 1, 7)
    phi = functools.partial(random_features.regular, count=24, length_scale=0.3, period=5.2)
    mean, covariance = online_regression.recursive(phi(x), y[:, None], noise=NOISE)
    expected, variance = gaussian_process.posterior(queries, x, y, length_scale=0.3, noise=NOISE)
    rows = phi(queries)
    np.testing.assert_allclose((rows @ mean)[:, 0], expected, atol=1e-8)
    np.testing.assert_allclose(np.sum(rows @ covariance * rows, axis=-1), variance, atol=1e-8)


BACKENDS = ("numpy", "strict", "torch", "jax-jit")
FUNCTIONS = {
    "one_pass": online_regression.one_pass,
    "passes": functools.partial(online_regression.passes, count=3, noise=NOISE),
    "recursive": functools.partial(online_regression.recursive, noise=NOISE),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_leading_axes_broadcast(backend, rng, name):
    """One matrix and two sets of values; sizes chosen so that a solve could take rows for a batch."""
    gram, values = problem(rng, n=3, p=3)[1], rng.normal(size=(3, 3, 3))
    for matrix, y in ((gram, values), (np.stack([gram, 2 * gram, gram / 2]), values[0])):
        out = backend.call(FUNCTIONS[name], matrix, y)
        out = out if isinstance(out, tuple) else (out,)
        for b in range(3):
            own = (a[b] if a.ndim > 2 else a for a in (matrix, y))
            one = FUNCTIONS[name](*own)
            for many, each in zip(out, one if isinstance(one, tuple) else (one,), strict=True):
                np.testing.assert_allclose(many[b], each, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("beta", [np.nan, "1"])
def test_beta_is_a_number(rng, beta):
    _, gram, values = problem(rng)
    with pytest.raises(
        ValueError, match=r"beta: got .*, expected a finite number, or one per pair"
    ):
        online_regression.one_pass(gram, values, beta=beta)


def test_a_singular_equation_is_refused(rng):
    _, gram, values = problem(rng)
    with pytest.raises(ValueError, match="noise: got 0 and a 0 on the diagonal of gram, expected"):
        online_regression.passes(0 * gram, values, 3, noise=0)
    for noise in (-1.0, np.nan):
        with pytest.raises(ValueError, match=r"noise: got .*, expected 0 or more"):
            online_regression.passes(gram, values, 3, noise=noise)
