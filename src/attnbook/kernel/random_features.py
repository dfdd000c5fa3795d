"""Features: vectors whose products are a kernel, so that sums over keys fit into a matrix."""

import math

import numpy as np
from array_api_compat import array_namespace, device
from jaxtyping import Float

from attnbook._types import Array
from attnbook._validation import (
    cast_parameter,
    check_floating,
    check_rows,
    positive_int,
    upcast_half,
)
from attnbook._validation import positive as check_positive


def fourier(
    x: Float[Array, "... n d"], frequencies: Float[Array, "r d"]
) -> Float[Array, "... n 2*r"]:
    """Random Fourier features, φ(x) = [cos ωᵢᵀx, sin ωᵢᵀx] / √r.

    The product φ(q)ᵀφ(k) is the mean of cos ωᵢᵀ(q − k). For frequencies from N(0, I) its
    expectation is the Gaussian kernel, exp(−‖q − k‖²/2); divide them by h for a bandwidth h.

    Args:
        x: points of shape (..., n, d).
        frequencies: ω, of shape (r, d).

    Returns:
        Of shape (..., n, 2r), r cosines and then r sines, of length 1.

    Raises:
        ValueError: shapes that do not fit, r = 0, arrays that are not floating.
        TypeError: arrays of different libraries.

    Source: Rahimi and Recht (2007), section 3.
    """
    wide, angles = _projected(x, frequencies)
    xp, scale = array_namespace(wide), 1 / math.sqrt(frequencies.shape[0])
    return xp.astype(scale * xp.concat([xp.cos(angles), xp.sin(angles)], axis=-1), x.dtype)


def positive(
    x: Float[Array, "... n d"], frequencies: Float[Array, "r d"]
) -> Float[Array, "... n r"]:
    """Positive features, φ(x) = exp(ωᵢᵀx − ‖x‖²/2) / √r.

    For frequencies from N(0, I) the expectation of φ(q)ᵀφ(k) is exp(qᵀk), the softmax's numerator.
    No product is below 0, so a sum of them can be divided by.

    Args:
        x: queries or keys of shape (..., n, d).
        frequencies: ω, of shape (r, d), the same for queries and keys.

    Returns:
        Of shape (..., n, r).

    Raises:
        ValueError: shapes that do not fit, r = 0, arrays that are not floating.
        TypeError: arrays of different libraries.

    Source: Choromanski et al. (2021), lemma 1.
    """
    wide, angles = _projected(x, frequencies)
    xp, scale = array_namespace(wide), 1 / math.sqrt(frequencies.shape[0])
    half_square = 0.5 * xp.sum(wide * wide, axis=-1, keepdims=True)
    return xp.astype(scale * xp.exp(angles - half_square), x.dtype)


def regular(
    x: Float[Array, "... n"], count: int, *, length_scale: float, period: float
) -> Float[Array, "... n waves"]:
    """Features at regular frequencies ω_j = 2πj/λ, √c_j [cos ω_j x, sin ω_j x] for j from 0.

    The weights are the Fourier series of the Gaussian kernel, repeated with period λ:
    c_j = (2 − [j = 0]) √(2π) ℓ/λ exp(−ω_j²ℓ²/2). So the product is the sum of exp(−(x − x′)²/(2ℓ²))
    over all repeats, but for the frequencies left out.

    Args:
        x: points on a line, of shape (..., n), of which no two should be farther apart than λ less
            a few ℓ.
        count: the number of frequencies, 1 or more.
        length_scale: ℓ, above 0.
        period: λ, above 0.

    Returns:
        Of shape (..., n, 2 · count), the cosines and then the sines, of which the first is 0.

    Raises:
        ValueError: points that are not floating or of shape (), a number that is not above 0.
        TypeError: x that is no array.
    """
    xp = check_floating(x=x)
    if x.ndim == 0:
        raise ValueError("x: got shape (), expected (..., n)")
    count = positive_int(count=count)
    length_scale = check_positive(length_scale=length_scale)
    period = check_positive(period=period)
    (wide,) = upcast_half(xp, x)
    j = np.arange(count)
    omega = 2 * math.pi / period * j
    series = (
        math.sqrt(2 * math.pi) * length_scale / period * np.exp(-0.5 * (length_scale * omega) ** 2)
    )
    omega, height = (
        xp.asarray(a, dtype=wide.dtype, device=device(x))
        for a in (omega, np.sqrt(np.where(j == 0, 1, 2) * series))
    )
    angles = wide[..., None] * omega
    waves = [height * xp.cos(angles), height * xp.sin(angles)]
    return xp.astype(xp.concat(waves, axis=-1), x.dtype)


def _projected(x: Array, frequencies: Array) -> tuple[Array, Array]:
    """Points, in float32 or wider, and their products ωᵢᵀx, of shape (..., n, r)."""
    xp = check_rows(x=x)
    (wide,) = upcast_half(xp, x)
    frequencies = cast_parameter(wide, ("r", x.shape[-1]), of="x", frequencies=frequencies)
    if frequencies.shape[0] == 0:
        raise ValueError("frequencies: got no rows, expected at least one")
    return wide, wide @ frequencies.mT
