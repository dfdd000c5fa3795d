"""Functions that somebody hands in, a score, a kernel or a loss, and what they may give."""

import math
from typing import Any

from array_api_compat import array_namespace, is_array_api_obj

from attnbook._validation.arrays import broadcast_leading_axes, common_namespace, is_concretely_true
from attnbook._validation.types import Array


def check_scores(found: Array, queries: Array, keys: Array, values: Array) -> Array:
    """Check what a score gave: a floating number for every query and key, of their library.

    Leading axes of its own broadcast with those of the arrays.
    """
    xp = common_namespace(queries=queries, score=found)
    if not xp.isdtype(found.dtype, "real floating"):
        raise ValueError(f"score: gave dtype {found.dtype}, expected a floating one")
    m, n = queries.shape[-2], keys.shape[-2]
    if tuple(found.shape[-2:]) != (m, n):
        raise ValueError(f"score: gave shape {tuple(found.shape)}, expected (..., {m}, {n})")
    broadcast_leading_axes(queries=queries, keys=keys, values=values, score=found)
    return found


def check_weights(weights: Array, queries: Array, keys: Array) -> None:
    """Refuse the scores whose softmax is NaN although queries and keys are finite.

    A row is NaN as a whole, where it has a NaN or +∞ among what the mask allows, or −∞ alone.
    """
    xp = array_namespace(weights)
    lost = xp.isnan(weights[..., :1])
    if not is_concretely_true(xp.any(lost)):
        return
    if is_concretely_true(xp.all(xp.isfinite(queries))) and is_concretely_true(
        xp.all(xp.isfinite(keys))
    ):
        rows = int(xp.sum(xp.astype(lost, xp.int64)))
        raise ValueError(
            f"score: gave {rows} rows of {math.prod(lost.shape)} that have NaN or +∞, or −∞ alone, "
            "expected a finite number for at least one key that the mask allows"
        )


def check_kernel(found: Array, distance: Array, mask: Array | None) -> Array:
    """Check what a kernel gave: a number of 0 or more for every distance that counts.

    Returns:
        It in the distances' dtype, 0 where the mask says no.
    """
    xp = common_namespace(distance=distance, kernel=found)
    if tuple(found.shape) != tuple(distance.shape):
        got, expected = tuple(found.shape), tuple(distance.shape)
        raise ValueError(f"kernel: gave shape {got}, expected {expected}, one a distance")
    if xp.isdtype(found.dtype, "complex floating"):
        raise ValueError(f"kernel: gave dtype {found.dtype}, expected a floating one")
    if found.dtype != distance.dtype:
        found = xp.astype(found, distance.dtype)
    if mask is not None:
        found = xp.where(mask, found, xp.zeros_like(found))
    if 0 in found.shape:
        return found
    least, most = xp.min(found), xp.max(found)  # NaN if one is
    if is_concretely_true(~((least >= 0) & (most < xp.inf))):
        one = most if is_concretely_true(least >= 0) else least
        u = float(xp.max(xp.where((found == one) | xp.isnan(found), distance, 0 * distance)))
        raise ValueError(
            f"kernel: gave {float(one)} at u = {u}, expected finite numbers, 0 or more"
        )
    return found


def check_loss(found: Any) -> Any:
    """Check what a loss gave: one floating number."""
    if not is_array_api_obj(found):
        raise TypeError(f"loss: gave a {type(found).__name__}, expected an array of shape ()")
    if tuple(found.shape) != () or not common_namespace(loss=found).isdtype(
        found.dtype, "real floating"
    ):
        got = f"dtype {found.dtype}, shape {tuple(found.shape)}"
        raise ValueError(f"loss: gave {got}, expected a floating number of shape ()")
    return found
