"""Gaussian processes: random functions, and the best that anyone can say about them."""

import numpy as np
from jaxtyping import Float

from attnbook.arguments import numpy_arrays

Array = np.ndarray
JITTER = 1e-9  # on the diagonal: a matrix of smooth functions is singular to rounding


def covariance(
    x: Float[Array, "... m"], z: Float[Array, "... n"], length_scale: float | Float[Array, "..."]
) -> Float[Array, "... m n"]:
    """Covariance of a smooth function's values, exp(−(x − z)² / (2ℓ²)).

    Args:
        x: points on a line, of shape (..., m).
        z: points, of shape (..., n).
        length_scale: ℓ, above 0: a number, or one a function, of shape (...).

    Returns:
        Of shape (..., m, n).

    Raises:
        ValueError: a length scale that is not above 0.
        TypeError: points that are no NumPy array.

    Source: Rasmussen and Williams (2006), equation 4.9.
    """
    numpy_arrays(x=x, z=z)
    scale = np.asarray(length_scale, dtype=float)
    if not np.all(scale > 0):
        raise ValueError(f"length_scale: got {length_scale}, expected numbers above 0")
    distance = (x[..., :, None] - z[..., None, :]) / scale[..., None, None]
    return np.exp(-0.5 * distance**2)


def draw(
    x: Float[Array, "functions n"],
    length_scale: float | Float[Array, " functions"],
    rng: np.random.Generator,
) -> Float[Array, "functions n"]:
    """Values at x of random functions, jointly normal with mean 0 and the covariance above.

    Args:
        x: points, a row a function.
        length_scale: ℓ, one for all or one a function.
        rng: NumPy's generator.

    Returns:
        Of the shape of x.
    """
    numpy_arrays(x=x)
    matrix = covariance(x, x, length_scale) + JITTER * np.eye(x.shape[-1])
    normal = rng.standard_normal((*x.shape, 1))
    return (np.linalg.cholesky(matrix) @ normal)[..., 0]


def posterior(
    queries: Float[Array, "... m"],
    keys: Float[Array, "... n"],
    values: Float[Array, "... n"],
    *,
    length_scale: float | Float[Array, "..."],
    noise: float,
) -> tuple[Float[Array, "... m"], Float[Array, "... m"]]:
    """Posterior mean kᵀ (K + σ²I)⁻¹ y and variance 1 − kᵀ (K + σ²I)⁻¹ k at every query.

    k holds the covariances of a query with the keys, K those of the keys. No prediction from these
    data has a smaller expected squared error than the mean.

    Args:
        queries: of shape (..., m).
        keys: of shape (..., n).
        values: noisy values y at the keys, of shape (..., n).
        length_scale: ℓ that the functions were drawn with.
        noise: standard deviation σ, 0 or more.

    Returns:
        Mean and variance of the function at the queries, without noise, each of shape (..., m).

    Raises:
        ValueError: a length scale that is not above 0, noise below 0.
        TypeError: what is no NumPy array.

    Source: Rasmussen and Williams (2006), equations 2.25 and 2.26.
    """
    numpy_arrays(queries=queries, keys=keys, values=values)
    if not noise >= 0:
        raise ValueError(f"noise: got {noise}, expected 0 or more")
    between = covariance(queries, keys, length_scale)
    among = covariance(keys, keys, length_scale)
    solved = np.linalg.solve(
        among + max(noise**2, JITTER) * np.eye(keys.shape[-1]),
        np.concatenate([values[..., None], np.swapaxes(between, -1, -2)], axis=-1),
    )
    mean = (between @ solved[..., :1])[..., 0]
    return mean, 1 - np.sum(between * np.swapaxes(solved[..., 1:], -1, -2), axis=-1)
