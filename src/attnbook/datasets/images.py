"""Pictures: handwritten digits, and a photograph with noise."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from attnbook._validation import check_numpy, int_between, nonnegative, nonnegative_int

Array = np.ndarray


@dataclass(frozen=True)
class Digits:
    """Handwritten digits in a training and a held-out part."""

    train_images: Float[Array, "n 64"]
    train_labels: Int[Array, " n"]
    test_images: Float[Array, "m 64"]
    test_labels: Int[Array, " m"]


def digits(*, seed: int = 0) -> Digits:
    """The 1797 digits of the UCI test set: 8 × 8 pixels from 0 to 16, a quarter held out.

    Args:
        seed: of the split, in which each class has its share.

    Raises:
        ValueError: a seed that is no integer from 0 to 2³² − 1.

    Source: Alpaydin and Kaynak (1998); shipped with scikit-learn.
    """
    int_between(0, 2**32 - 1, seed=seed)
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels, test_size=0.25, random_state=seed, stratify=labels
    )
    return Digits(train_images, train_labels, test_images, test_labels)


def shifted(
    images: Float[Array, "n pixels"], offsets: Int[Array, "n 2"], size: int
) -> Float[Array, "n size_squared"]:
    """Square images moved on a square canvas of size × size pixels; what leaves it is cut off.

    Args:
        images: a row an image, of shape (n, pixels).
        offsets: rows down and columns to the right of the centre, of shape (n, 2); one up and to
            the left of it where the canvas has an odd number of pixels more.
        size: of the canvas, at least as wide as the images.

    Returns:
        Of shape (n, size²); 0 where no image is.

    Raises:
        ValueError: images that are not square, offsets that do not fit, a canvas that is too small.
        TypeError: what is no NumPy array.
    """
    check_numpy(images=images, offsets=offsets)
    width = math.isqrt(images.shape[-1]) if images.ndim == 2 else 0
    if width == 0 or width**2 != images.shape[-1]:
        raise ValueError(f"images: got shape {images.shape}, expected (n, width · width)")
    if offsets.shape != (len(images), 2) or not np.issubdtype(offsets.dtype, np.integer):
        got = f"{offsets.dtype} of shape {offsets.shape}"
        raise ValueError(f"offsets: got {got}, expected integers ({len(images)}, 2)")
    nonnegative_int(least=width, size=size)
    reach = int(np.abs(offsets).max(initial=0))
    canvas = np.zeros((len(images), size + 2 * reach, size + 2 * reach), dtype=images.dtype)
    first = reach + (size - width) // 2 + offsets
    number = np.arange(len(images))[:, None, None]
    rows = first[:, 0, None, None] + np.arange(width)[:, None]
    columns = first[:, 1, None, None] + np.arange(width)
    canvas[number, rows, columns] = images.reshape(-1, width, width)
    return canvas[:, reach : reach + size, reach : reach + size].reshape(-1, size**2)


def photograph(
    size: int = 96, *, noise: float = 0.1, seed: int = 0
) -> tuple[Float[Array, "size size"], Float[Array, "size size"]]:
    """A square of a photograph in grey, and the same with Gaussian noise.

    Args:
        size: rows and columns, up to 300.
        noise: the standard deviation that is added, where black is 0 and white is 1.
        seed: of NumPy's default generator.

    Returns:
        The clean and the noisy square, float64; the noisy one is not clipped to [0, 1].

    Raises:
        ValueError: a size that is not from 1 to 300, noise below 0.

    Source: the Summer Palace in Beijing, "china.jpg", shipped with scikit-learn.
    """
    from sklearn.datasets import load_sample_image

    int_between(1, 300, size=size)
    nonnegative(noise=noise)
    nonnegative_int(seed=seed)
    colours = load_sample_image("china.jpg")[60 : 60 + size, 200 : 200 + size] / 255
    clean = colours @ np.array([0.299, 0.587, 0.114])  # the luma of ITU-R BT.601
    return clean, clean + noise * np.random.default_rng(seed).standard_normal(clean.shape)
