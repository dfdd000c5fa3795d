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


def test_fourier_by_hand(backend):
    """Angles 0, π/2 and π: cosines 1, 0, −1 and sines 0, 1, 0, over √3."""
    x, frequencies = np.array([[0.5, 0.0]]), np.array([[0.0, 1], [math.pi, 7], [2 * math.pi, 9]])
    out = backend.call(random_features.fourier, x, frequencies)
    expected = np.array([[1, 0, -1, 0, 1, 0]]) / math.sqrt(3)
    np.testing.assert_allclose(out, expected, atol=1e-15)


def test_positive_by_hand(backend):
    """x = (1, 1), ω = (1, 0), (2, 3): exponents 1 − 1 and 5 − 1, over √2."""
    frequencies = np.array([[1.0, 0.0], [2.0, 3.0]])
    out = backend.call(random_features.positive, np.ones((1, 2)), frequencies)
    np.testing.assert_allclose(out, np.exp([[0, 4]]) / math.sqrt(2), rtol=1e-14)


def test_regular_by_hand(backend):
    """P = 4, ℓ = 2: frequencies 0 and π/2, heights √(√(2π)/2) and √(√(2π) exp(−π²/2))."""
    out = backend.call(random_features.regular, np.array([1.0]), 2, length_scale=2.0, period=4.0)
    low = math.sqrt(math.sqrt(2 * math.pi) / 2)
    high = math.sqrt(math.sqrt(2 * math.pi) * math.exp(-(math.pi**2) / 2))
    np.testing.assert_allclose(out, [[low, 0, 0, high]], atol=1e-15)


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
def test_regular_is_the_kernel_with_its_repeats(backend, rng, length_scale, period):
    """With enough frequencies to 1e-12; in the second case the repeats overlap."""
    x, z = rng.uniform(-1, 1, size=(2, 5)), rng.uniform(-1, 1, size=7)
    how = {"length_scale": length_scale, "period": period}
    left, right = (backend.call(random_features.regular, a, 24, **how) for a in (x, z))
    assert left.shape == (2, 5, 48)
    shifts = period * np.arange(-9, 10)
    repeats = [gaussian_process.covariance(x + s, z, length_scale) for s in shifts]
    np.testing.assert_allclose(left @ right.T, sum(repeats), atol=1e-11)


def test_regular_has_at_most_its_count_of_frequencies():
    """The sums of squares of cosine and sine do not depend on x: a stationary kernel."""
    x = np.linspace(-1, 1, 11)
    out = random_features.regular(x, 3, length_scale=0.3, period=5.2)
    assert out.shape == (11, 6)
    squares = out[:, :3] ** 2 + out[:, 3:] ** 2
    np.testing.assert_allclose(squares, np.broadcast_to(squares[0], (11, 3)), rtol=1e-12)
    assert np.ptp(out[:, 2]) > 0 == np.ptp(out[:, 3])


@pytest.mark.parametrize("name", ["fourier", "positive"])
def test_equals_the_loop(backend, rng, name):
    x, frequencies = rng.normal(size=(2, 3, 5)), rng.normal(size=(7, 5))
    out = backend.call(getattr(random_features, name), x, frequencies)
    waves = (np.cos, np.sin) if name == "fourier" else (np.exp,)
    for i, j in np.ndindex(2, 3):
        half = 0 if name == "fourier" else sum(a * a for a in x[i, j]) / 2
        angles = [sum(o * a for o, a in zip(row, x[i, j], strict=True)) for row in frequencies]
        one = [wave(angle - half) / math.sqrt(7) for wave in waves for angle in angles]
        np.testing.assert_allclose(out[i, j], one, rtol=1e-12)


@pytest.mark.parametrize("name", ["fourier", "positive"])
def test_keeps_its_dtype(backend, rng, name):
    x, frequencies = rng.normal(size=(3, 2)), rng.normal(size=(5, 2))
    function = getattr(random_features, name)
    for dtype in ("float32", *backend.half):
        narrow = backend.cast(backend.array(x), dtype)
        out = function(narrow, backend.array(frequencies))
        assert backend.dtype(out) == dtype
        wide = backend.numpy(backend.cast(out, "float32"))
        np.testing.assert_allclose(wide, function(x, frequencies), rtol=0.05, atol=0.02)
        line = random_features.regular(narrow, 3, length_scale=1, period=9)
        assert backend.dtype(line) == dtype


def test_has_a_gradient(differentiable, rng):
    """d/dx of the sum of positive features by hand: φ (ω − x)."""
    x, frequencies = rng.normal(size=(3, 2)), rng.normal(size=(5, 2))
    w = differentiable.array(frequencies)
    (slope,) = differentiable.gradient(lambda a: random_features.positive(a, w).sum(), x)
    phi = random_features.positive(x, frequencies)
    expected = np.sum(phi[..., None] * (frequencies - x[:, None]), axis=1)
    np.testing.assert_allclose(slope, expected, rtol=1e-12)


@pytest.mark.parametrize("function", [random_features.fourier, random_features.positive])
def test_wrong_arguments_of_random_features_are_named(function, rng):
    x = rng.normal(size=(3, 2))
    calls = {
        r"x: got shape \(2,\), expected \(\.\.\., n, width\)": (x[0], np.ones((4, 2))),
        r"frequencies: got shape \(4, 3\), expected \(r, 2\)": (x, np.ones((4, 3))),
        "frequencies: got no rows, expected at least one": (x, np.ones((0, 2))),
        "frequencies: got dtype int64, expected a floating one": (x, np.ones((4, 2), np.int64)),
        "x: got dtype int64, expected a floating one": (np.ones((3, 2), np.int64), np.ones((4, 2))),
    }
    for message, arguments in calls.items():
        with pytest.raises(ValueError, match=message):
            function(*arguments)
    with pytest.raises(TypeError, match="frequencies: got a list"):
        function(x, [[1.0, 2.0]])


def test_wrong_arguments_of_regular_features_are_named():
    x = np.zeros(3)
    calls = {
        r"x: got shape \(\), expected \(\.\.\., n\)": (np.array(0.5), 3, 1.0, 1.0),
        "x: got dtype int64, expected a floating one": (np.arange(3), 3, 1.0, 1.0),
        "count: got 0, expected an integer, 1 or more": (x, 0, 1.0, 1.0),
        "length_scale: got 0, expected a number above 0": (x, 3, 0, 1.0),
        "period: got -1, expected a number above 0": (x, 3, 1.0, -1),
    }
    for message, (at, count, length_scale, period) in calls.items():
        with pytest.raises(ValueError, match=message):
            random_features.regular(at, count, length_scale=length_scale, period=period)
