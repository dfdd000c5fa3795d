"""Masks: True where a query may attend to a key."""

from typing import Any

from array_api_compat import array_namespace, device
from jaxtyping import Bool, Int

from attnbook._types import Array
from attnbook._validation import common_namespace, is_concretely_true, nonnegative_int


def with_causal(mask: Array | None, queries: Array) -> Array:
    """A mask that also hides what comes after each of the queries (..., m, d)."""
    earlier = _earlier(array_namespace(queries), queries.shape[-2], queries)
    return earlier if mask is None else mask & earlier


def causal_mask(n: int, like: Array) -> Bool[Array, "n n"]:
    """Causal mask, True where key j is not later than query i: j ≤ i.

    Args:
        n: the number of tokens, 0 or more.
        like: an array whose library and device the mask takes.

    Returns:
        Boolean, of shape (n, n).

    Raises:
        ValueError: n that is no integer or below 0.
        TypeError: like that is no array.
    """
    xp = common_namespace(like=like)
    return _earlier(xp, nonnegative_int(n=n), like)


def _earlier(xp: Any, n: int, like: Array) -> Array:
    position = xp.arange(n, device=device(like))
    return position[None, :] <= position[:, None]


def padding_mask(lengths: Int[Array, "..."], n: int) -> Bool[Array, "... 1 n"]:
    """Padding mask, True for the first lengths[b] of n keys.

    Args:
        lengths: integers of shape (...), one per sequence, from 0 to n.
        n: the padded length.

    Returns:
        Boolean, of shape (..., 1, n), the same for every query.

    Raises:
        ValueError: lengths that are no integers from 0 to n.
        TypeError: lengths that are no array.
    """
    xp = common_namespace(lengths=lengths)
    position = xp.arange(nonnegative_int(n=n), device=device(lengths))
    if not xp.isdtype(lengths.dtype, "integral"):
        raise ValueError(f"lengths: got dtype {lengths.dtype}, expected integers")
    ends = xp.astype(lengths, position.dtype)
    if is_concretely_true(xp.any((ends < 0) | (ends > n))):
        raise ValueError(f"lengths: got {lengths}, expected integers from 0 to n = {n}")
    return (position < ends[..., None])[..., None, :]
