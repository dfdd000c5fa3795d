"""Coefficients of one pass, of many and of recursive least squares, against solves and loops."""

import functools

import numpy as np
import pytest
import scipy.linalg

from attnbook.kernel import gaussian_process, random_features
from attnbook.linear_attention import online_regression

NOISE = 0.2


def problem(rng, *lead, n=5, p=2):
    """Keys on a line, their kernel, values."""
    x = rng.uniform(-1, 1, size=(*lead, n))
    return x, gaussian_process.covariance(x, x, 0.3), rng.normal(size=(*lead, n, p))


def test_one_pass_by_hand(backend):
    """K_21 = ½, y = (1, 1): u = (1, ½); with β = ½: (½, ½ (1 − ¼))."""
    gram, values = np.array([[1, 0.5], [0.5, 1]]), np.ones((2, 1))
    for beta, expected in ((1.0, [[1], [0.5]]), (0.5, [[0.5], [0.375]])):
        out = backend.call(online_regression.one_pass, gram, values, beta=beta)
        np.testing.assert_allclose(out, expected, rtol=1e-15)


@pytest.mark.parametrize("beta", [1.0, 0.4, "one per pair"])
def test_one_pass_is_the_delta_rule(backend, rng, beta):
    """The state S of a loop over the pairs is Φᵀu, for every feature map."""
    rows, values = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 5, 4))
    rate = rng.uniform(0.2, 1, size=5) if isinstance(beta, str) else beta
    u = backend.call(online_regression.one_pass, rows @ rows.swapaxes(-1, -2), values, beta=rate)
    for b in range(2):
        state = np.zeros((3, 4))
        for key, value, step in zip(rows[b], values[b], np.broadcast_to(rate, 5), strict=True):
            state = state + step * np.outer(key, value - key @ state)
        np.testing.assert_allclose(rows[b].T @ u[b], state, rtol=1e-10, atol=1e-12)


def test_one_pass_is_forward_substitution(rng):
    _, gram, values = problem(rng, n=11)
    lower = np.eye(11) + 0.7 * np.tril(gram, -1)
    expected = scipy.linalg.solve_triangular(lower, 0.7 * values, lower=True)
    np.testing.assert_allclose(
        online_regression.one_pass(gram, values, beta=0.7), expected, rtol=1e-10
    )


def test_what_comes_later_changes_nothing_before(rng):
    """Causal: the first coefficients are those of the first pairs alone."""
    _, gram, values = problem(rng, n=7)
    early = online_regression.one_pass(gram[:4, :4], values[:4])
    np.testing.assert_allclose(online_regression.one_pass(gram, values)[:4], early, rtol=1e-12)


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_passes_equal_the_loop(backend, rng, count):
    _, gram, values = problem(rng, 2)
    out = backend.call(online_regression.passes, gram, values, count, noise=NOISE)
    for b in range(2):
        u = np.zeros((5, 2))
        for _ in range(count):
            for i in range(5):
                others = gram[b, i] @ u - gram[b, i, i] * u[i]
                u[i] = (values[b, i] - others) / (gram[b, i, i] + NOISE**2)
        np.testing.assert_allclose(out[b], u, rtol=1e-9, atol=1e-12)


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


def test_without_noise_passes_still_converge(rng):
    """Keys that are far apart: u = K⁻¹ y."""
    gram = gaussian_process.covariance(np.arange(4.0), np.arange(4.0), 0.5)
    values = rng.normal(size=(4, 1))
    u = online_regression.passes(gram, values, 100, noise=0)
    np.testing.assert_allclose(u, np.linalg.solve(gram, values), rtol=1e-10)


def test_recursive_by_hand(backend):
    """φ = 1, y = 2, σ = 1: mean 1, variance ½; after a second one 4/3 and 1/3."""
    for n, mean, variance in ((1, 1, 1 / 2), (2, 4 / 3, 1 / 3)):
        out = backend.call(
            online_regression.recursive, np.ones((n, 1)), np.full((n, 1), 2.0), noise=1.0
        )
        np.testing.assert_allclose(out[0], [[mean]], rtol=1e-15)
        np.testing.assert_allclose(out[1], [[variance]], rtol=1e-15)


def test_recursive_is_bayesian_linear_regression(backend, rng):
    """Mean (ΦᵀΦ + σ²I)⁻¹ Φᵀy and covariance σ² (ΦᵀΦ + σ²I)⁻¹, fewer or more pairs than features."""
    for n in (0, 3, 13):
        rows, values = rng.normal(size=(2, n, 5)), rng.normal(size=(2, n, 3))
        out = backend.call(online_regression.recursive, rows, values, noise=NOISE)
        matrix = rows.swapaxes(-1, -2) @ rows + NOISE**2 * np.eye(5)
        mean = np.linalg.solve(matrix, rows.swapaxes(-1, -2) @ values)
        np.testing.assert_allclose(out[0], mean, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(out[1], NOISE**2 * np.linalg.inv(matrix), rtol=1e-8, atol=1e-10)


def test_recursive_on_features_is_the_posterior_of_their_kernel(rng):
    """With regular features enough: mean and variance of the Gaussian process itself."""
    x, y, queries = rng.uniform(-1, 1, size=9), rng.normal(size=9), np.linspace(-1, 1, 7)
    phi = functools.partial(random_features.regular, count=24, length_scale=0.3, period=5.2)
    mean, covariance = online_regression.recursive(phi(x), y[:, None], noise=NOISE)
    expected, variance = gaussian_process.posterior(queries, x, y, length_scale=0.3, noise=NOISE)
    rows = phi(queries)
    np.testing.assert_allclose((rows @ mean)[:, 0], expected, atol=1e-8)
    np.testing.assert_allclose(np.sum(rows @ covariance * rows, axis=-1), variance, atol=1e-8)


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


@pytest.mark.parametrize("name", FUNCTIONS)
def test_keeps_its_dtype(backend, rng, name):
    _, gram, values = problem(rng)
    expected = FUNCTIONS[name](gram, values)
    for dtype in ("float32", *backend.half):
        out = FUNCTIONS[name](*(backend.cast(backend.array(a), dtype) for a in (gram, values)))
        for got, wanted in zip(
            *(a if isinstance(a, tuple) else (a,) for a in (out, expected)), strict=True
        ):
            assert backend.dtype(got) == dtype
            wide = backend.numpy(backend.cast(got, "float32"))
            np.testing.assert_allclose(wide, wanted, rtol=0.1, atol=0.1)


def test_one_pass_has_a_gradient(differentiable, rng):
    """d/dy of Σ u is Mᵀ 1."""
    _, gram, values = problem(rng)
    given = differentiable.array(gram)
    (slope,) = differentiable.gradient(lambda y: online_regression.one_pass(given, y).sum(), values)
    expected = np.linalg.inv(np.eye(5) + np.tril(gram, -1)).T @ np.ones((5, 2))
    np.testing.assert_allclose(slope, expected, rtol=1e-10)


GRAM, VALUES, FEW = np.eye(5), np.ones((5, 2)), np.ones((4, 2))
WRONG = {
    "one_pass": [
        ({"gram": GRAM[:, :4]}, r"gram: got shape \(5, 4\), expected \(\.\.\., n, n\)"),
        ({"values": FEW}, r"values: got shape \(4, 2\), expected \(..., 5, p\), a row per pair"),
        (
            {"gram": np.stack([GRAM] * 2), "values": np.stack([VALUES] * 3)},
            "gram, values: got shapes .*, expected leading axes that broadcast",
        ),
        ({"values": VALUES.astype("f4")}, "values: got dtype float32, expected float64 as in gram"),
        ({"beta": np.nan}, "beta: got nan, expected a finite number, or one per pair"),
        ({"beta": "1"}, "beta: got '1', expected a finite number"),
        ({"beta": np.ones(4)}, r"beta: got shape \(4,\), expected one that fits \(5,\)"),
        ({"beta": np.ones((3, 5))}, r"beta: got shape \(3, 5\), expected one that fits \(5,\)"),
        ({"beta": np.ones(5, np.int64)}, "beta: got dtype int64, expected a floating one"),
    ],
    "passes": [
        ({"gram": GRAM[0]}, r"gram: got shape \(5,\), expected \(\.\.\., n, n\)"),
        ({"count": -1}, "count: got -1, expected an integer, 0 or more"),
        ({"noise": -1}, "noise: got -1, expected 0 or more"),
        (
            {"gram": 0 * GRAM, "noise": 0},
            "noise: got 0 and a 0 on the diagonal of gram, expected noise above 0",
        ),
    ],
    "recursive": [
        ({"features": GRAM[0]}, r"features: got shape \(5,\), expected \(\.\.\., n, r\)"),
        ({"values": VALUES[:, 0]}, r"values: got shape \(5,\), expected \(\.\.\., 5, p\)"),
        ({"noise": 0}, "noise: got 0, expected a number above 0"),
    ],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_named(name):
    good = {"features" if name == "recursive" else "gram": GRAM, "values": VALUES}
    for wrong, message in WRONG[name]:
        with pytest.raises(ValueError, match=message):
            FUNCTIONS[name](**good | wrong)
    with pytest.raises(TypeError, match="values: got a list, expected a NumPy"):
        FUNCTIONS[name](**good | {"values": [[1.0]]})
