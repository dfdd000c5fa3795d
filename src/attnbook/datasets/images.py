"""Pictures: handwritten digits, and a photograph with noise."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

Array = np.ndarray


@dataclass(frozen=True)
class Digits:
    """Handwritten digits in a training and a held-out part."""

    train_images: Float[Array, "n 64"]
    train_labels: Int[Array, " n"]
    test_images: Float[Array, "m 64"]
    test_labels: Int[Array, " m"]


def digits(*, seed: int = 0, held_out: float = 0.25) -> Digits:
    """The 1797 digits of the UCI test set: 8 × 8 pixels from 0 to 16, split by class shares.

    Args:
        seed: of the split.
        held_out: the share that is held out.

    Source: Alpaydin and Kaynak (1998); shipped with scikit-learn.
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, labels, test_size=held_out, random_state=seed, stratify=labels
    )
    return Digits(train_images, train_labels, test_images, test_labels)


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

    if not 1 <= size <= 300:
        raise ValueError(f"size: got {size}, expected 1 to 300")
    if not noise >= 0:
        raise ValueError(f"noise: got {noise}, expected 0 or more")
    colours = load_sample_image("china.jpg")[60 : 60 + size, 200 : 200 + size] / 255
    clean = colours @ np.array([0.299, 0.587, 0.114])  # the luma of ITU-R BT.601
    return clean, clean + noise * np.random.default_rng(seed).standard_normal(clean.shape)
