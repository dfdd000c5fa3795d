"""Numbers to regress on numbers: the running example and Engel's data."""

from typing import Literal

import numpy as np
from jaxtyping import Float

from attnbook._validation import nonnegative_int, one_of

Array = np.ndarray


def curve(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """The running example's mean, f(x) = ½ sin x − sin 3x + 0.2 x²."""
    x = _real(x)
    return 0.5 * np.sin(x) - np.sin(3 * x) + 0.2 * x**2


def noise_level(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """The running example's standard deviation, s(x) = 0.2 + 0.05 abs(x)."""
    return 0.2 + 0.05 * np.abs(_real(x))


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

    Raises:
        ValueError: a number or a seed that is no integer of at least 0, another spacing.
    """
    one_of(("even", "random"), spacing=spacing)
    nonnegative_int(n=n)
    nonnegative_int(seed=seed)
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


def _real(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Real numbers as a NumPy array."""
    array = np.asarray(x)
    if array.dtype.kind not in "iuf":
        raise ValueError(f"x: got dtype {array.dtype}, expected real numbers")
    return array
