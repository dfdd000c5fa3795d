"""Kernels: how much a key counts at u = distance / bandwidth.

A kernel is any function of u ≥ 0 that is not negative. Only ratios of kernel values enter a
weighted average, so a constant factor changes no prediction. Those below take a difference as well,
K(−u) = K(u), and give NaN for NaN.
"""

import math
from collections.abc import Callable
from typing import Any

from jaxtyping import Float

from attnbook._types import Array
from attnbook._validation import check_floating
from attnbook.attention.distances import distance as distance

Kernel = Callable[[Any], Array]  # of u = distance / bandwidth


def gaussian(u: Float[Array, "..."]) -> Float[Array, "..."]:
    """Gaussian kernel, K(u) = exp(−u²/2).

    Args:
        u: distance / bandwidth, any shape.

    Returns:
        K(u), the shape of u; 1 at u = 0, never quite 0.

    Source: Nadaraya (1964), Watson (1964), up to the constant 1/√(2π).
    """
    xp = check_floating(u=u)
    return xp.exp(-0.5 * u * u)


def boxcar(u: Float[Array, "..."]) -> Float[Array, "..."]:
    """Boxcar (uniform) kernel, K(u) = 1 for −1 ≤ u ≤ 1, else 0.

    Args:
        u: distance / bandwidth, any shape.

    Returns:
        K(u), the shape of u. Averaging with it is averaging over a ball of radius h.
    """
    xp = check_floating(u=u)
    inside = xp.where(xp.abs(u) <= 1, xp.ones_like(u), xp.zeros_like(u))
    return xp.where(xp.isnan(u), math.nan, inside)


def triangular(u: Float[Array, "..."]) -> Float[Array, "..."]:
    """Triangular kernel, ``max(0, 1 − |u|)``. Often printed as Epanechnikov's, which it is not.

    Args:
        u: distance / bandwidth, any shape.

    Returns:
        K(u), the shape of u.
    """
    xp = check_floating(u=u)
    u = xp.abs(u)
    return xp.where(u >= 1, xp.zeros_like(u), 1 - u)  # NaN is not ≥ 1, and stays NaN


def epanechnikov(u: Float[Array, "..."]) -> Float[Array, "..."]:
    """Epanechnikov kernel, K(u) = ¾ max(0, 1 − u²).

    Args:
        u: distance / bandwidth, any shape.

    Returns:
        K(u), the shape of u.

    Source: Epanechnikov (1969), who showed it the best for estimating a density.
    """
    xp = check_floating(u=u)
    return xp.where(xp.abs(u) >= 1, xp.zeros_like(u), 0.75 * (1 - u * u))
