"""Patches and non-local means: answers known by hand, the mirrored border, widths that fit."""

import numpy as np
import pytest

from attnbook.kernel import non_local_means

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
