"""Distances between queries and keys, in bandwidths."""

import operator
from functools import reduce
from typing import Any

from array_api_compat import array_namespace
from jaxtyping import Float

from attnbook._types import Array
from attnbook._validation import check_bandwidth, check_qkv


def unchecked_squared_distance(queries: Array, keys: Array, h: Any) -> Array:
    """u²_ij = Σ_c ((q_ic − k_jc) / h_c)², for what was checked before."""
    per_coordinate = not isinstance(h, float) and h.ndim == 1

    def term(c: int) -> Any:
        difference = queries[..., :, None, c] - keys[..., None, :, c]
        u = difference / (h[c] if per_coordinate else h)
        return u * u

    return reduce(operator.add, map(term, range(queries.shape[-1])))


def distance(
    queries: Float[Array, "... m d"], keys: Float[Array, "... n d"], bandwidth: Any = 1.0
) -> Float[Array, "... m n"]:
    """Distance in bandwidths, u_ij = √(Σ_c ((q_ic − k_jc) / h_c)²).

    Differences come first: the expanded square ‖q‖² − 2 q·k + ‖k‖² needs one matrix product, but
    loses digits where distances are small beside the coordinates. Time grows with d, memory does
    not. At u = 0 the root has no derivative; the one given is 0, so that gradients stay finite.

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
