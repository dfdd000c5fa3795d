"""Functions that somebody hands in, a score, a kernel or a loss, and what they may give."""

from typing import Any

from array_api_compat import is_array_api_obj

from attnbook.arguments import one_library

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


def of_kernel(found: Array, distance: Array) -> Array:
    """Check what a kernel gave: a number for every distance, of their library."""
    one_library(distance=distance, kernel=found)
    if tuple(found.shape) != tuple(distance.shape):
        got, expected = tuple(found.shape), tuple(distance.shape)
        raise ValueError(f"kernel: gave shape {got}, expected {expected}, one a distance")
    return found


def of_loss(found: Array) -> Array:
    """Check what a loss gave: one floating number."""
    if not is_array_api_obj(found):
        raise TypeError(f"loss: gave a {type(found).__name__}, expected an array of shape ()")
    if tuple(found.shape) != () or not one_library(loss=found).isdtype(
        found.dtype, "real floating"
    ):
        got = f"dtype {found.dtype}, shape {tuple(found.shape)}"
        raise ValueError(f"loss: gave {got}, expected a floating number of shape ()")
    return found
