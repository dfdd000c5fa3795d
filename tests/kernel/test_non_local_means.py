"""Patches and non-local means: answers known by hand, the mirrored border, widths that fit."""

import math

import numpy as np
import pytest

from attnbook.kernel import non_local_means


def test_patches_by_hand():
    """Rows of a patch from top to bottom; beyond the border, what lies inside it as far away."""
    image = np.arange(1.0, 13.0).reshape(3, 4)
    out = non_local_means.patches(image, 3)
    assert out.shape == (12, 9)
    assert out[5].tolist() == [1, 2, 3, 5, 6, 7, 9, 10, 11]  # around 6
    assert out[0].tolist() == [6, 5, 6, 2, 1, 2, 6, 5, 6]  # around 1, in a corner
    assert out[7].tolist() == [3, 4, 3, 7, 8, 7, 11, 12, 11]  # around 8, at the right
    assert non_local_means.patches(image, 1).tolist() == [[i] for i in range(1, 13)]


@pytest.mark.parametrize("width", [1, 3, 5, 7])
def test_a_chessboard(width):
    """Mirrored it goes on, so two patches are equal or differ by 1 everywhere, at any width.

    Of 35 squares 18 are black (0) and 17 white (1); a square of the other colour weighs
    w = exp(−1/(2h²)): white becomes 17 / (17 + 18 w), black 17 w / (18 + 17 w).
    """
    board, h = np.indices((5, 7)).sum(0) % 2 * 1.0, 0.6
    w = math.exp(-1 / (2 * h**2))
    expected = np.where(board == 1, 17 / (17 + 18 * w), 17 * w / (18 + 17 * w))
    out = non_local_means.non_local_means(board, h, width=width)
    np.testing.assert_allclose(out, expected, rtol=1e-13)


BAD_WIDTHS = [((5, 7), 2), ((5, 7), 11), ((7, 5), 11), ((1, 9), 3)]


@pytest.mark.parametrize(("shape", "width"), BAD_WIDTHS)
def test_a_width_is_odd_and_fits(shape, width):
    """Up to the mirror image of all but the border: 2 · 5 − 1 pixels of 5."""
    message = rf"width: got {width!r}, expected an odd number that fits \({shape[0]}, {shape[1]}\)"
    with pytest.raises(ValueError, match=message):
        non_local_means.patches(np.ones(shape), width)
    with pytest.raises(ValueError, match=message):
        non_local_means.non_local_means(np.ones(shape), 0.7, width=width)


def test_pixels_are_finite_and_floating():
    image = np.ones((5, 7))
    image[2, 3] = np.nan
    with pytest.raises(ValueError, match=r"^image: got .* that are NaN or infinite, expected "):
        non_local_means.non_local_means(image, 0.7)
    with pytest.raises(ValueError, match=r"^image: got dtype int64, expected a floating one"):
        non_local_means.non_local_means(np.ones((5, 7), dtype=int), 0.7)


def test_a_patch_is_five_pixels_wide_unless_told(rng):
    image = rng.normal(size=(5, 7))
    expected = non_local_means.non_local_means(image, 0.7, width=5)
    np.testing.assert_array_equal(non_local_means.non_local_means(image, 0.7), expected)
