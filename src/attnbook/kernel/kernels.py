"""Kernels: how much a key counts at u = distance / bandwidth.

A kernel is any function of u ≥ 0 that is not negative. Only ratios of kernel values enter a
weighted average, so a constant factor changes no prediction. Those below take a difference as well,
K(−u) = K(u), and give NaN for NaN.
"""

import math
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

from array_api_compat import array_namespace
from jaxtyping import Float

from attnbook._typing import Array
from attnbook._validation.arrays import check_bandwidth, check_floating, check_qkv

Kernel = Callable[[Array], Array]  # of u = distance / bandwidth


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


def squared_distance(
    queries: Float[Array, "... m d"], keys: Float[Array, "... n d"], bandwidth: Any = 1.0
) -> Float[Array, "... m n"]:
    """Squared distance in bandwidths, u²_ij = Σ_c ((q_ic − k_jc) / h_c)².

    Differences come first: the expanded square ‖q‖² − 2 q·k + ‖k‖² needs one matrix product, but
    loses digits where distances are small beside the coordinates. Time grows with d, memory does
    not.

    Args:
        queries: of shape (..., m, d).
        keys: of shape (..., n, d); leading axes broadcast.
        bandwidth: h, a number, or an array of shape () or (d,), in the units of the coordinates.

    Returns:
        u², of shape (..., m, n).
    """
    xp = check_qkv(queries=queries, keys=keys)
    return unchecked_squared_distance(queries, keys, check_bandwidth(xp, bandwidth, keys))


def unchecked_squared_distance(queries: Array, keys: Array, h: Any) -> Array:
    """The formula of squared_distance, for what was checked before."""
    per_coordinate = not isinstance(h, float) and h.ndim == 1

    def term(c: int) -> Any:
        difference = queries[..., :, None, c] - keys[..., None, :, c]
        u = difference / (h[c] if per_coordinate else h)
        return u * u

    return reduce(operator.add, map(term, range(queries.shape[-1])))


def distance(
    queries: Float[Array, "... m d"], keys: Float[Array, "... n d"], bandwidth: Any = 1.0
) -> Float[Array, "... m n"]:
    """Distance in bandwidths, u_ij = √u²_ij; see squared_distance.

    At u = 0 the root has no derivative; the one given here is 0, so that gradients stay finite.

    Args:
        queries: of shape (..., m, d).
        keys: of shape (..., n, d); leading axes broadcast.
        bandwidth: h, a number, or an array of shape () or (d,), in the units of the coordinates.

    Returns:
        u, of shape (..., m, n).
    """
    xp = check_qkv(queries=queries, keys=keys)
    return unchecked_distance(queries, keys, check_bandwidth(xp, bandwidth, keys))


def unchecked_distance(queries: Array, keys: Array, h: Any) -> Array:
    """The formula of distance, for what was checked before."""
    squared = unchecked_squared_distance(queries, keys, h)
    xp = array_namespace(squared)
    apart = squared > 0
    root = xp.sqrt(xp.where(apart, squared, xp.ones_like(squared)))
    return xp.where(apart, root, xp.zeros_like(squared))
