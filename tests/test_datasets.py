"""The data sets: their sizes, their first numbers, and that a seed settles them."""

import math

import numpy as np
import pytest

from attnbook import datasets


def test_curve_and_noise_by_hand():
    x = np.array([0.0, np.pi / 2, -2.0])
    expected = [0, 1.5 + 0.2 * (np.pi / 2) ** 2, -0.5 * np.sin(2) + np.sin(6) + 0.8]
    np.testing.assert_allclose(datasets.curve(x), expected, rtol=1e-14)
    np.testing.assert_allclose(datasets.noise_level(x), [0.2, 0.2 + 0.025 * np.pi, 0.3])


def test_heteroskedastic():
    x, y = datasets.heteroskedastic()
    assert x.shape == y.shape == (150, 1)
    np.testing.assert_allclose(x[:, 0], np.linspace(-3, 3, 150))
    again = datasets.heteroskedastic(seed=0)[1]
    np.testing.assert_array_equal(y, again)
    assert np.all(y != datasets.heteroskedastic(seed=1)[1])
    drawn = datasets.heteroskedastic(13, spacing="random")[0]
    assert drawn.shape == (13, 1)
    assert np.all(np.abs(drawn) <= 3)
    assert np.ptp(np.diff(drawn[:, 0])) > 0.1  # no grid
    with pytest.raises(ValueError, match="spacing: got 'odd', expected 'even' or 'random'"):
        datasets.heteroskedastic(spacing="odd")


@pytest.mark.parametrize("spacing", ["even", "random"])
def test_the_noise_is_as_large_as_it_says(spacing):
    """(y − f(x)) / s(x) is standard normal: mean and variance of 20 011 draws."""
    x, y = datasets.heteroskedastic(20_011, spacing=spacing)
    z = (y - datasets.curve(x)) / datasets.noise_level(x)
    assert abs(z.mean()) < 0.03
    assert abs(z.var() - 1) < 0.05
    outer = np.abs(x) > 2
    assert abs(z[outer].var() - z[~outer].var()) < 0.08


def test_engel():
    pytest.importorskip("statsmodels")
    income, food = datasets.engel()
    assert income.shape == food.shape == (235, 1)
    assert income.dtype == food.dtype == np.float64
    assert np.all(np.diff(income[:, 0]) >= 0)
    assert income[0, 0] == pytest.approx(377.058, abs=1e-3)
    assert income[-1, 0] == pytest.approx(4957.813, abs=1e-3)
    assert income.mean() == pytest.approx(982.473, abs=1e-3)
    assert food.mean() == pytest.approx(624.150, abs=1e-3)


def test_digits():
    pytest.importorskip("sklearn")
    digits = datasets.digits()
    assert digits.train_images.shape == (1347, 64)
    assert digits.test_images.shape == (450, 64)
    assert (digits.train_images.min(), digits.train_images.max()) == (0, 16)
    share = np.bincount(digits.test_labels) / np.bincount(digits.train_labels)
    np.testing.assert_allclose(share, 1 / 3, atol=0.02)
    again, other = datasets.digits(), datasets.digits(seed=1)
    np.testing.assert_array_equal(digits.test_labels, again.test_labels)
    assert np.any(digits.test_labels != other.test_labels)
    together = np.concatenate([digits.train_images, digits.test_images])
    assert len(np.unique(together, axis=0)) == 1797


def test_digit_comparisons():
    """Labels against a loop; every digit occurs, equally often; a seed settles it."""
    digits, labels = datasets.digit_comparisons(211, length=13)
    assert digits.shape == (211, 13)
    assert digits.dtype == np.int64
    assert labels.dtype == np.float32
    expected = [1.0 if row.count(4) > row.count(2) else 0.0 for row in digits.tolist()]
    assert labels.tolist() == expected
    share = np.bincount(digits.ravel(), minlength=10) / digits.size
    assert len(share) == 10
    np.testing.assert_allclose(share, 0.1, atol=0.02)
    for drawn in np.moveaxis(digits, 1, 0):  # every place has every digit
        assert set(drawn.tolist()) == set(range(10))
    again, other = (
        datasets.digit_comparisons(211, length=13, seed=0),
        datasets.digit_comparisons(211, length=13, seed=1),
    )
    np.testing.assert_array_equal(again[0], digits)
    assert np.any(other[0] != digits)
    assert datasets.digit_comparisons(3)[0].shape == (3, 10)


@pytest.mark.parametrize("length", [1, 2, 10])
def test_the_share_of_labels_is_the_exact_probability(length):
    """4s and 2s are trinomial: Σ over a > b of n! / (a! b! (n − a − b)!) · 0.1^(a + b) · 0.8^(n − a − b)."""
    probability = sum(
        math.comb(length, a) * math.comb(length - a, b) * 0.1 ** (a + b) * 0.8 ** (length - a - b)
        for a in range(length + 1)
        for b in range(length + 1 - a)
        if a > b
    )
    by_hand = {1: 0.1, 2: 0.1**2 + 2 * 0.1 * 0.8}
    if length in by_hand:
        assert probability == pytest.approx(by_hand[length])
    n = 20_011
    labels = datasets.digit_comparisons(n, length=length)[1]
    error = math.sqrt(probability * (1 - probability) / n)
    assert abs(labels.mean() - probability) < 4 * error
