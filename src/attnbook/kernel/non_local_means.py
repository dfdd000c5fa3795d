"""Non-local means: every pixel asks the whole image who looks like it."""

from numbers import Integral
from typing import Any

import numpy as np
from jaxtyping import Float

from attnbook._validation import check_finite, check_floating, check_numpy
from attnbook.kernel.regression import nadaraya_watson

Array = np.ndarray


def patches(image: Float[Array, "rows columns"], width: int) -> Float[Array, "pixels patch"]:
    """Each pixel's patch, width × width pixels around it; the image is mirrored at its border.

    Args:
        image: of shape (rows, columns).
        width: odd.

    Returns:
        Of shape (rows · columns, width²), a row per pixel, in reading order.

    Raises:
        ValueError: an image that has not two axes, a width that is even or too large.
        TypeError: an image that is no NumPy array.
    """
    check_numpy(image=image)
    if image.ndim != 2:
        raise ValueError(f"image: got shape {image.shape}, expected (rows, columns)")
    if image.dtype.kind not in "biuf":
        raise ValueError(f"image: got dtype {image.dtype}, expected real numbers")
    expected = f"expected an odd number that fits {image.shape}"
    if not isinstance(width, Integral) or isinstance(width, bool):
        raise ValueError(f"width: got {width!r}, {expected}, an integer")
    if width % 2 != 1 or not 1 <= width <= 2 * min(image.shape) - 1:
        raise ValueError(f"width: got {width}, {expected}")
    padded = np.pad(image, width // 2, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (width, width))
    return windows.reshape(image.size, width * width)


def non_local_means(
    image: Float[Array, "rows columns"], bandwidth: float, *, width: int = 5
) -> Float[Array, "rows columns"]:
    """Non-local means, out_i = Σ_j w_ij y_j with w_ij ∝ exp(−‖p_i − p_j‖² / (2h²)).

    The patches p are queries and keys, the pixels y are values: Nadaraya–Watson of an image on
    itself. All pixels are compared, wherever they are.

    Args:
        image: grey values y, of shape (rows, columns).
        bandwidth: h, in grey values: the distance is the root mean square over a patch.
        width: of a patch, odd.

    Returns:
        Of the image's shape.

    Raises:
        ValueError: an image, width or bandwidth that does not fit.

    Source: Buades, Coll and Morel (2005), section 3, with a flat patch and the whole image.
    """
    check_numpy(image=image)
    check_finite(check_floating(image=image), image=image)
    p = patches(image, width) / width  # so that a squared distance is the mean over the patch
    found: Any = nadaraya_watson(p, p, image.reshape(-1, 1), bandwidth=bandwidth)
    return found.reshape(image.shape)
