"""Functions that somebody hands in, a score or a kernel, and what they may give."""

from typing import Any

from attnbook.arguments import known_true, one_library

Array = Any


def function(example: str, **argument: Any) -> None:
    """Refuse what cannot be called, and name a function that can."""
    for name, value in argument.items():
        if not callable(value):
            raise ValueError(f"{name}: got {value!r}, expected a function such as {example}")


def of_score(found: Array, queries: Array, keys: Array) -> Array:
    """Check what a score gave: a floating number for every query and key, of their library."""
    xp = one_library(queries=queries, score=found)
    if not xp.isdtype(found.dtype, "real floating"):
        raise ValueError(f"score: gave dtype {found.dtype}, expected a floating one")
    m, n = queries.shape[-2], keys.shape[-2]
    if tuple(found.shape[-2:]) != (m, n):
        raise ValueError(f"score: gave shape {tuple(found.shape)}, expected (..., {m}, {n})")
    return found


def of_kernel(found: Array, distance: Array, mask: Array | None) -> Array:
    """Check what a kernel gave: a number of 0 or more for every distance that counts.

    Returns:
        It in the distances' dtype, 0 where the mask says no.
    """
    xp = one_library(distance=distance, kernel=found)
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
    if known_true(~((least >= 0) & (most < xp.inf))):
        one = most if known_true(least >= 0) else least
        u = float(xp.max(xp.where((found == one) | xp.isnan(found), distance, 0 * distance)))
        raise ValueError(
            f"kernel: gave {float(one)} at u = {u}, expected finite numbers, 0 or more"
        )
    return found
