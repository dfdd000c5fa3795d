"""Gaussian processes: random functions, and the best that anyone can say about them."""

from typing import Any

import numpy as np
from jaxtyping import Float

from attnbook._validation import check_finite, check_numpy, nonnegative

Array = np.ndarray
JITTER = 1e-9  # on the diagonal: a matrix of smooth functions is singular to rounding


def covariance(
    x: Float[Array, "... m"], z: Float[Array, "... n"], length_scale: float | Float[Array, "..."]
) -> Float[Array, "... m n"]:
    """Covariance of a smooth function's values, exp(−(x − z)² / (2ℓ²)).

    Args:
        x: points on a line, of shape (..., m).
        z: points, of shape (..., n).
        length_scale: ℓ, above 0: a number, or one per function, of shape (...).

    Returns:
        Of shape (..., m, n).

    Raises:
        ValueError: a length scale that is not above 0, points that are not finite, shapes that do
            not fit.
        TypeError: points that are no NumPy array.

    Source: Rasmussen and Williams (2006), equation 4.9.
    """
    scale = _checked_scale(length_scale, x=x, z=z)
    distance = (x[..., :, None] - z[..., None, :]) / scale[..., None, None]
    return np.exp(-0.5 * distance**2)


def draw(
    x: Float[Array, "functions n"],
    length_scale: float | Float[Array, " functions"],
    rng: np.random.Generator,
) -> Float[Array, "functions n"]:
    """Values at x of random functions, jointly normal with mean 0 and the covariance above.

    Args:
        x: points, a row per function.
        length_scale: ℓ, one for all or one per function.
        rng: NumPy's generator.

    Returns:
        Of the shape of x.

    Raises:
        ValueError: a length scale that is not above 0, or neither one nor one per function.
        TypeError: points that are no NumPy array, rng that is no generator.
    """
    scale = _checked_scale(length_scale, x=x)
    if np.broadcast_shapes(scale.shape, x.shape[:-1]) != x.shape[:-1]:
        expected = f"() or {x.shape[:-1]}, one per function"
        raise ValueError(f"length_scale: got shape {scale.shape}, expected {expected}")
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng: got a {type(rng).__name__}, expected a NumPy generator")
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
        ValueError: a length scale that is not above 0, noise below 0, numbers that are not finite,
            shapes that do not fit.
        TypeError: what is no NumPy array.

    Source: Rasmussen and Williams (2006), equations 2.25 and 2.26.
    """
    _checked_scale(length_scale, queries=queries, keys=keys, values=values)
    if values.shape[-1] != keys.shape[-1]:
        n = keys.shape[-1]
        raise ValueError(f"values: got {values.shape[-1]} numbers, expected {n}, one per key")
    noise = nonnegative(noise=noise)
    between = covariance(queries, keys, length_scale)
    among = covariance(keys, keys, length_scale)
    lead = np.broadcast_shapes(values.shape[:-1], between.shape[:-2])
    given = (values[..., None], np.swapaxes(between, -1, -2))
    solved = np.linalg.solve(
        among + max(noise**2, JITTER) * np.eye(keys.shape[-1]),
        np.concatenate([np.broadcast_to(a, lead + a.shape[-2:]) for a in given], axis=-1),
    )
    mean = (between @ solved[..., :1])[..., 0]
    return mean, 1 - np.sum(between * np.swapaxes(solved[..., 1:], -1, -2), axis=-1)


def _checked_scale(length_scale: Any, **points: Array) -> Array:
    """The length scale as an array, where it and all points are what they should be."""
    check_numpy(**points)
    for name, array in points.items():
        if array.dtype.kind not in "iuf" or array.ndim == 0:
            got = f"dtype {array.dtype}, shape {array.shape}"
            raise ValueError(f"{name}: got {got}, expected real numbers of shape (..., n)")
    check_finite(np, **points)
    scale = np.asarray(length_scale)
    if scale.dtype.kind not in "iuf" or not np.all((scale > 0) & np.isfinite(scale)):
        raise ValueError(f"length_scale: got {length_scale!r}, expected numbers above 0")
    try:
        np.broadcast_shapes(scale.shape, *(array.shape[:-1] for array in points.values()))
    except ValueError:
        shapes = ", ".join(str(array.shape) for array in (*points.values(), scale))
        raise ValueError(
            f"{', '.join(points)}, length_scale: got shapes {shapes}, expected leading axes that "
            "broadcast"
        ) from None
    return scale
