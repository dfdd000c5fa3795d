"""A weighted average in parts: three arrays say all of some keys, and two parts combine into one.

Parts may be cut anywhere and combined in any order, on any machine. What comes out is the softmax
average over all keys, and no row of scores was ever seen as a whole.
"""

from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device
from jaxtyping import Bool, Float

from attnbook._types import Array
from attnbook._validation import (
    broadcast_leading_axes,
    check_floating,
    check_mask,
    common_namespace,
    is_broadcastable,
    nonnegative_int,
    promote_autocast,
    without_autocast,
)


class Partial(NamedTuple):
    """What is kept of some keys: m = max s_j, Σ exp(s_j − m) and Σ exp(s_j − m) v_j, per query.

    Args:
        top: m, the largest score, of shape (..., rows); −∞ where no key was allowed.
        total: sum of the weights, of shape (..., rows), before they are divided.
        weighted: sum of the weighted values, of shape (..., rows, p).
    """

    top: Array
    total: Array
    weighted: Array


def empty(rows: int, p: int, like: Array) -> Partial:
    """The part without a key, the identity of combine: m = −∞, and both sums are 0.

    Args:
        rows: the number of queries, 0 or more.
        p: the width of the values, 0 or more.
        like: an array whose library, dtype, device and leading axes, all but its last two, the part
            takes.

    Returns:
        A part of shapes (..., rows), (..., rows) and (..., rows, p).

    Raises:
        ValueError: rows or p that are no integers or below 0, an array that is not floating.
        TypeError: like that is no array.
    """
    xp = check_floating(like=like)
    shape = (*like.shape[:-2], nonnegative_int(rows=rows))
    how = {"dtype": like.dtype, "device": device(like)}
    weighted = xp.zeros((*shape, nonnegative_int(p=p)), **how)
    return Partial(xp.full(shape, -xp.inf, **how), xp.zeros(shape, **how), weighted)


def partial(
    scores: Float[Array, "... n"],
    values: Float[Array, "... n p"],
    mask: Bool[Array, "..."] | None = None,
) -> Partial:
    """The part of n keys: m = max_j s_j, Σ_j exp(s_j − m) and Σ_j exp(s_j − m) v_j.

    The sums are in the dtype of what comes: half precision adds up its own rounding errors.

    Args:
        scores: of shape (..., rows, n), or (n,) for a single row.
        values: of shape (..., n, p); leading axes broadcast.
        mask: boolean, broadcastable to the scores, True = takes part.

    Returns:
        A part of shapes (..., rows), (..., rows) and (..., rows, p). A row for which no key is
        allowed is as empty has it.

    Raises:
        ValueError: shapes or dtypes that do not fit.
        TypeError: arrays of different libraries.

    Source: Milakov and Gimelshein (2018), algorithm 3.
    """
    scores, values = promote_autocast(scores, values)
    check_floating(scores=scores, values=values)
    if scores.ndim == 0:
        raise ValueError("scores: got shape (), expected (..., rows, n)")
    if values.ndim < 2:
        raise ValueError(f"values: got shape {tuple(values.shape)}, expected (..., n, p)")
    if values.shape[-2] != scores.shape[-1]:
        n = scores.shape[-1]
        raise ValueError(f"values: got {values.shape[-2]} rows, expected {n}, one per score")
    if scores.ndim == 1 and values.ndim > 2:
        raise ValueError(
            f"scores: got shape {tuple(scores.shape)} with values of shape {tuple(values.shape)}, "
            "expected (..., rows, n): scores of a single row take values of shape (n, p)"
        )
    lead = broadcast_leading_axes(scores=scores, values=values)
    check_mask(mask, (*lead, *scores.shape[-2:]), scores=scores)
    with without_autocast(scores):
        return unchecked_partial(scores, values, mask)


def unchecked_partial(scores: Array, values: Array, mask: Array | None) -> Partial:
    """The formula of partial, for what was checked before."""
    xp = array_namespace(scores)
    if mask is not None:
        scores = xp.where(mask, scores, -xp.inf)
    if scores.shape[-1] == 0:  # no number is the largest of none
        top = xp.full(scores.shape[:-1], -xp.inf, dtype=scores.dtype, device=device(scores))
    else:
        top = xp.max(scores, axis=-1)
    weights = xp.exp(scores - _finite(xp, top)[..., None])
    return Partial(top, xp.sum(weights, axis=-1), weights @ values)


def combine(a: Partial, b: Partial) -> Partial:
    """Two parts as one: the sums of each times exp(its m − the larger m), added.

    It is associative, (a, b), c is as good as a, (b, c), and its order does not matter, up to
    rounding; with empty nothing changes, exactly.

    Args:
        a: a part of some keys.
        b: a part of other keys, for as many rows; leading axes broadcast.

    Returns:
        The part of the keys of both.

    Raises:
        ValueError: parts of other shapes or dtypes.
        TypeError: what is no part, or parts of different libraries.

    Source: Milakov and Gimelshein (2018), equation 4; Dao et al. (2022), section 3.1.
    """
    check_floating(**_fields(a=a), **_fields(b=b))
    _check_together(a, b)
    with without_autocast(a.top):
        return unchecked_combine(a, b)


def unchecked_combine(a: Partial, b: Partial) -> Partial:
    """The formula of combine, for what was checked before."""
    xp = array_namespace(a.top)
    top = xp.maximum(a.top, b.top)
    larger = _finite(xp, top)
    of_a, of_b = xp.exp(a.top - larger), xp.exp(b.top - larger)
    return Partial(
        top,
        of_a * a.total + of_b * b.total,
        of_a[..., None] * a.weighted + of_b[..., None] * b.weighted,
    )


def finish(part: Partial) -> tuple[Float[Array, "... rows p"], Float[Array, "... rows"]]:
    """The average Σ_j w_j v_j with w = softmax(s), and log Σ_j exp(s_j).

    The two say what a part says: m can be chosen freely, also as the log-sum-exp, and then the
    total is 1.

    Args:
        part: of all keys.

    Returns:
        The averages, of shape (..., rows, p), and the log-sum-exps, of shape (..., rows). Where no
        key was allowed they are 0 and −∞.

    Raises:
        ValueError: arrays of shapes or dtypes that make no part.
        TypeError: what is no part.
    """
    check_floating(**_fields(part=part))
    with without_autocast(part.top):
        return unchecked_finish(part)


def unchecked_finish(part: Partial) -> tuple[Any, Any]:
    """The formula of finish, for what was checked before."""
    xp = array_namespace(part.top)
    nothing = part.total == 0
    total = xp.where(nothing, xp.ones_like(part.total), part.total)
    return part.weighted / total[..., None], part.top + xp.log(total)


def _finite(xp: Any, top: Array) -> Array:
    """The largest scores, and 0 where they are −∞: from −∞ nothing can be subtracted."""
    return xp.where(top == -xp.inf, xp.zeros_like(top), top)


def _fields(**argument: Partial) -> dict[str, Array]:
    """The arrays of a part by name, where their shapes belong together."""
    ((name, part),) = argument.items()
    if not isinstance(part, Partial):
        raise TypeError(f"{name}: got a {type(part).__name__}, expected a Partial")
    fields = {f"{name}.{field}": array for field, array in part._asdict().items()}
    common_namespace(**fields)
    top, total, weighted = (tuple(array.shape) for array in part)
    if top != total or not weighted or weighted[:-1][-1:] != top[-1:]:
        raise ValueError(
            f"{name}: got shapes {top}, {total}, {weighted}, expected (..., rows), (..., rows), "
            "(..., rows, p)"
        )
    if not is_broadcastable(top, weighted[:-1]):
        raise ValueError(
            f"{name}: got leading axes {top[:-1]} of the largest scores and {weighted[:-2]} of the "
            "weighted sums, expected leading axes that broadcast to those of the sums"
        )
    return fields


def _check_together(a: Partial, b: Partial) -> None:
    """Check that two parts are of the same rows and width, and that leading axes broadcast."""
    here, there = tuple(a.weighted.shape), tuple(b.weighted.shape)
    if (*a.top.shape[-1:], here[-1]) != (*b.top.shape[-1:], there[-1]):
        raise ValueError(f"b: got sums of shape {there}, expected rows and width of {here} as in a")
    try:
        np.broadcast_shapes(here[:-1], there[:-1])
    except ValueError:
        raise ValueError(
            f"a, b: got shapes {here} and {there}, expected leading axes that broadcast"
        ) from None
