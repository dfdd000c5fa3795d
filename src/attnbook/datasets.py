"""Every data set of the book, as NumPy arrays: made from a seed, or shipped inside a package."""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int

Array = np.ndarray


def curve(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """The running example's mean, f(x) = ½ sin x − sin 3x + 0.2 x²."""
    return 0.5 * np.sin(x) - np.sin(3 * x) + 0.2 * x**2


def noise_level(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """The running example's standard deviation, s(x) = 0.2 + 0.05 abs(x)."""
    return 0.2 + 0.05 * np.abs(x)


def heteroskedastic(
    n: int = 150, *, seed: int = 0, spacing: Literal["even", "random"] = "even"
) -> tuple[Float[Array, "n 1"], Float[Array, "n 1"]]:
    """The running example, y = f(x) + s(x) ε with ε standard normal and x on [−3, 3].

    Args:
        n: the number of points.
        seed: of NumPy's default generator.
        spacing: "even" for a grid, "random" for uniform draws.

    Returns:
        x and y, float64, of shape (n, 1) each.
    """
    if spacing not in ("even", "random"):
        raise ValueError(f"spacing: got {spacing!r}, expected 'even' or 'random'")
    rng = np.random.default_rng(seed)
    x = np.linspace(-3, 3, n) if spacing == "even" else rng.uniform(-3, 3, n)
    y = curve(x) + noise_level(x) * rng.standard_normal(n)
    return x[:, None], y[:, None]


def engel() -> tuple[Float[Array, "235 1"], Float[Array, "235 1"]]:
    """Engel's data: income and food expenditure of 235 Belgian working-class households.

    Returns:
        income and food expenditure in francs a year, float64, of shape (235, 1) each, by
        increasing income.

    Source: Engel (1857), as in Koenker and Bassett (1982); shipped with statsmodels.
    """
    import statsmodels.api as sm

    table = sm.datasets.engel.load_pandas().data.sort_values(["income", "foodexp"])
    return table[["income"]].to_numpy(), table[["foodexp"]].to_numpy()


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


def digit_comparisons(
    n: int, *, seed: int = 0, length: int = 10
) -> tuple[Int[Array, "n length"], Float[Array, " n"]]:
    """Rows of random digits, and whether a row has more 4s than 2s.

    Args:
        n: the number of rows.
        seed: of NumPy's default generator.
        length: of a row.

    Returns:
        Digits from 0 to 9, int64, of shape (n, length); labels, 1.0 or 0.0, float32, of shape (n,).
    """
    digits = np.random.default_rng(seed).integers(0, 10, size=(n, length))
    more = np.sum(digits == 4, axis=1) > np.sum(digits == 2, axis=1)
    return digits, more.astype(np.float32)


def results(name: str) -> dict[str, Any]:
    """Stored results of an experiment in benchmarks/, with their date and machine."""
    folder = files("attnbook").joinpath("assets", "results")
    try:
        return json.loads(folder.joinpath(f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        stored = ", ".join(sorted(f.name.removesuffix(".json") for f in folder.iterdir()))
        raise ValueError(f"name: got {name!r}, expected one of {stored}") from None
