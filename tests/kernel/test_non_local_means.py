"""Patches and non-local means: twins in loops, answers known by hand, the mirrored border."""

import math

import numpy as np
import pytest

from attnbook import datasets, nadaraya_watson
from attnbook.kernel import non_local_means

FITTING = [((5, 7), width) for width in (1, 3, 5, 9)]
FITTING += [((7, 5), 5), ((2, 3), 3), ((1, 1), 1), ((1, 3), 1)]
fitting = pytest.mark.parametrize(("shape", "width"), FITTING)


def mirrored(i, n):
    """The place of i among n: what lies beyond either end is read backwards, the end once."""
    i = abs(i)
    return i if i < n else 2 * (n - 1) - i


def patches_loop(image, width):
    rows, columns = image.shape
    around = range(-(width // 2), width // 2 + 1)
    return [
        [image[mirrored(r + i, rows), mirrored(c + j, columns)] for i in around for j in around]
        for r in range(rows)
        for c in range(columns)
    ]


def non_local_means_loop(image, bandwidth, width):
    """Pixel by pixel, each compared with every other."""
    patches, out = patches_loop(image, width), []
    for one in patches:
        distances = [sum((a - b) ** 2 for a, b in zip(one, p, strict=True)) for p in patches]
        weights = [math.exp(-d / width**2 / (2 * bandwidth**2)) for d in distances]
        grey = sum(w * y for w, y in zip(weights, image.ravel(), strict=True))
        out.append(grey / sum(weights))
    return np.reshape(out, image.shape)


@fitting
def test_patches_equal_the_loop(rng, shape, width):
    image = rng.normal(size=shape)
    np.testing.assert_array_equal(non_local_means.patches(image, width), patches_loop(image, width))


def test_patches_by_hand():
    """Rows of a patch from top to bottom; beyond the border, what lies inside it as far away."""
    image = np.arange(1.0, 13.0).reshape(3, 4)
    out = non_local_means.patches(image, 3)
    assert out.shape == (12, 9)
    assert out[5].tolist() == [1, 2, 3, 5, 6, 7, 9, 10, 11]  # around 6
    assert out[0].tolist() == [6, 5, 6, 2, 1, 2, 6, 5, 6]  # around 1, in a corner
    assert out[7].tolist() == [3, 4, 3, 7, 8, 7, 11, 12, 11]  # around 8, at the right
    assert non_local_means.patches(image, 1).tolist() == [[i] for i in range(1, 13)]


@fitting
def test_non_local_means_equals_the_loop(rng, shape, width):
    image = rng.normal(size=shape)
    out = non_local_means.non_local_means(image, 0.7, width=width)
    np.testing.assert_allclose(out, non_local_means_loop(image, 0.7, width), rtol=1e-12)


def test_a_patch_is_five_pixels_wide_unless_told(rng):
    image = rng.normal(size=(5, 7))
    expected = non_local_means.non_local_means(image, 0.7, width=5)
    np.testing.assert_array_equal(non_local_means.non_local_means(image, 0.7), expected)


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


@pytest.mark.parametrize("grey", [0.0, 0.3, -1e6])
def test_a_constant_image_stays(grey):
    image = np.full((5, 7), grey)
    out = non_local_means.non_local_means(image, 0.01, width=3)
    np.testing.assert_allclose(out, image, rtol=1e-14)


def test_narrow_and_wide(rng):
    """A bandwidth near 0 leaves every pixel as it is; a large one gives all the mean."""
    image = rng.normal(size=(5, 7))
    np.testing.assert_allclose(non_local_means.non_local_means(image, 1e-3), image, rtol=1e-14)
    mean = np.full((5, 7), image.mean())
    np.testing.assert_allclose(
        non_local_means.non_local_means(image, 1e5), mean, rtol=1e-7, atol=1e-9
    )


def test_equal_surroundings_are_averaged_wherever_they_are(rng):
    """Every grey occurs four times, far apart: of what is added to one pixel a quarter stays."""
    tile = rng.permutation(np.arange(35.0)).reshape(5, 7)
    image = np.block([[tile, tile[:, ::-1]], [tile[::-1], tile[::-1, ::-1]]])
    noisy = image.copy()
    noisy[2, 3] += 0.01
    out = non_local_means.non_local_means(noisy, 0.1, width=1)
    np.testing.assert_allclose(out[2, 3] - image[2, 3], 0.01 / 4, atol=1e-4)


def test_turned_moved_and_stretched(rng):
    """Mirroring, adding a grey and stretching greys with the bandwidth commute with it."""
    image = rng.normal(size=(5, 7))
    out = non_local_means.non_local_means(image, 0.7)
    for turn in (np.transpose, np.flipud, np.fliplr):
        turned = non_local_means.non_local_means(turn(image), 0.7)
        np.testing.assert_allclose(turned, turn(out), rtol=1e-12)
    np.testing.assert_allclose(non_local_means.non_local_means(3 - image, 0.7), 3 - out, rtol=1e-12)
    np.testing.assert_allclose(
        non_local_means.non_local_means(10 * image, 7.0), 10 * out, rtol=1e-12
    )


def test_float32_stays(rng):
    image = rng.normal(size=(5, 7)).astype(np.float32)
    assert non_local_means.patches(image, 3).dtype == np.float32
    out = non_local_means.non_local_means(image, 0.7, width=3)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, non_local_means_loop(image, 0.7, 3), rtol=1e-4)


def test_it_may_not_be_written_to(rng):
    image = rng.normal(size=(5, 7))
    image.flags.writeable = False
    assert non_local_means.patches(image, 3).flags.writeable
    assert non_local_means.non_local_means(image, 0.7).flags.writeable


@pytest.mark.parametrize("shape", [(), (7,), (5, 7, 3), (1, 5, 7)])
def test_an_image_has_two_axes(shape):
    for call in (non_local_means.patches, non_local_means.non_local_means):
        message = r"image: got shape \(.*\), expected \(rows, columns\)"
        with pytest.raises(ValueError, match=message):
            call(np.ones(shape), 1)


BAD_WIDTHS = [((5, 7), wrong) for wrong in (0, -1, 2, 2.5, 3.0, True, None, "3", 11)]
BAD_WIDTHS += [((7, 5), 11), ((1, 9), 3), ((0, 7), 1)]


@pytest.mark.parametrize(("shape", "width"), BAD_WIDTHS)
def test_a_width_is_odd_and_fits(shape, width):
    """Up to the mirror image of all but the border: 2 · 5 − 1 pixels of 5."""
    message = rf"width: got {width!r}, expected an odd number that fits \({shape[0]}, {shape[1]}\)"
    with pytest.raises(ValueError, match=message):
        non_local_means.patches(np.ones(shape), width)
    with pytest.raises(ValueError, match=message):
        non_local_means.non_local_means(np.ones(shape), 0.7, width=width)


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, math.nan, [1.0, 1.0]])
def test_bad_bandwidths(bandwidth):
    with pytest.raises(ValueError, match=r"bandwidth: got .*, expected a number above 0"):
        non_local_means.non_local_means(np.ones((5, 7)), bandwidth)


def test_pixels_are_finite_and_floating():
    image = np.ones((5, 7))
    image[2, 3] = np.nan
    with pytest.raises(ValueError, match=r"^image: got .* that are NaN or infinite, expected "):
        non_local_means.non_local_means(image, 0.7)
    with pytest.raises(ValueError, match=r"^image: got dtype int64, expected a floating one"):
        non_local_means.non_local_means(np.ones((5, 7), dtype=int), 0.7)


@pytest.mark.parametrize("width", [3, 5, 7])
def test_the_kernel_is_the_gaussian_of_scikit_learn(width):
    """Patches by extract_patches_2d, weights by rbf_kernel with γ = 1/(2h² · width²)."""
    pytest.importorskip("sklearn")
    from sklearn.feature_extraction.image import extract_patches_2d
    from sklearn.metrics.pairwise import rbf_kernel

    _, noisy = datasets.photograph(23)
    padded = np.pad(noisy, width // 2, mode="reflect")
    patches = extract_patches_2d(padded, (width, width)).reshape(noisy.size, -1)
    np.testing.assert_array_equal(non_local_means.patches(noisy, width), patches)
    weights = rbf_kernel(patches, gamma=1 / (2 * 0.07**2 * width**2))
    expected = (weights @ noisy.ravel() / weights.sum(-1)).reshape(noisy.shape)
    out = non_local_means.non_local_means(noisy, 0.07, width=width)
    np.testing.assert_allclose(out, expected, rtol=1e-9)


@pytest.mark.parametrize("h", [0.05, 0.1, 0.2])
def test_scikit_image_is_near(h):
    """Its exponential is approximate, and soon 0; the middle of its patch weighs more.

    With patches weighted in the same way, in a window as large as the image, and √2 h for h, no
    pixel differs by more than a hundredth.
    """
    restoration = pytest.importorskip("skimage.restoration")
    _, noisy = datasets.photograph(24)
    theirs = restoration.denoise_nl_means(
        noisy, patch_size=3, patch_distance=24, h=math.sqrt(2) * h, sigma=0, fast_mode=False
    )
    middle = np.exp(-((np.arange(3) - 1) ** 2) / (2 * 0.5**2))
    weights = np.outer(middle, middle).ravel() / middle.sum() ** 2
    p = non_local_means.patches(noisy, 3) * np.sqrt(weights)
    ours = nadaraya_watson(p, p, noisy.reshape(-1, 1), bandwidth=h).reshape(noisy.shape)
    np.testing.assert_allclose(ours, theirs, atol=0.01)
    assert np.abs(theirs - noisy).max() > 0.05  # and both have done something


def test_what_is_no_numpy_array_is_named():
    for function in (non_local_means.patches, non_local_means.non_local_means):
        with pytest.raises(TypeError, match=r"^image: got a list, expected a NumPy array$"):
            function([[1.0] * 5] * 5, 3)
