"""Exact attention in blocks: forward with streams, backward from one number per row.

Nothing of order m × n is ever held. These are the formulas in the open, block by block; the fused
kernels of the libraries do the same steps without leaving the processor, and are faster.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from jaxtyping import Float, Int

from attnbook._types import Array
from attnbook._validation import (
    broadcast_leading_axes,
    check_floating,
    common_namespace,
    positive_int,
    promote_autocast,
    upcast_half,
    without_autocast,
)
from attnbook.attention import scores
from attnbook.exact import online_softmax
from attnbook.exact.inputs import check_inputs


def forward(
    q: Float[Array, "... m d"],
    k: Float[Array, "... n d"],
    v: Float[Array, "... n p"],
    *,
    block: int = 64,
    causal: bool = False,
) -> tuple[Float[Array, "... m p"], Float[Array, "... m"]]:
    """Attention o_i = Σ_j w_ij v_j and L_i = log Σ_j exp(s_ij), where s_ij = q_iᵀk_j / √d.

    A block of queries goes over the blocks of keys and keeps one part, the combination of those so
    far. In causal attention the blocks of keys that come later are never computed. Under jax.jit
    the blocks are unrolled: (m / block) × (n / block) of them are compiled.

    Args:
        q: queries of shape (..., m, d).
        k: keys of shape (..., n, d).
        v: values of shape (..., n, p); leading axes broadcast.
        block: how many queries, and how many keys, are computed at a time.
        causal: query i may attend to the keys j ≤ i alone; for as many queries as keys.

    Returns:
        The averages, of shape (..., m, p), and the log-sum-exps, of shape (..., m) with the leading
        axes of the scores. Where there are no keys they are 0 and −∞. float16 and bfloat16 are
        computed in float32, and the log-sum-exps stay so.

    Raises:
        ValueError: shapes or dtypes that do not fit, a block that is no integer above 0, causal
            with other numbers of queries and keys.
        TypeError: arrays of different libraries.

    Source: Dao et al. (2022), algorithm 1; Rabe and Staats (2021), section 2.
    """
    q, k, v = promote_autocast(q, k, v)
    xp = check_inputs(q, k, v, causal)
    block = positive_int(block=block)
    wide = upcast_half(xp, q, k, v)
    with without_autocast(q):
        parts = (_part_of(here, block, causal, *wide) for here in _slices(q.shape[-2], block))
        outputs, logs = zip(*map(online_softmax.unchecked_finish, parts), strict=True)
    output = xp.astype(xp.concat(outputs, axis=-2), v.dtype, copy=False)
    return output, xp.concat(logs, axis=-1)


def _part_of(
    rows: slice, block: int, causal: bool, q: Array, k: Array, v: Array
) -> online_softmax.Partial:
    """The part of all keys for some queries: those of the blocks of keys, combined as they come."""
    parts = (
        online_softmax.unchecked_partial(
            scores.unchecked_scaled_dot(q[..., rows, :], k[..., columns, :]),
            v[..., columns, :],
            _diagonal(q, rows, columns) if causal else None,
        )
        for columns in _slices(k.shape[-2], block)
        if not (causal and _is_later(rows, columns))
    )
    return functools.reduce(online_softmax.unchecked_combine, parts)


def backward(
    g: Float[Array, "... m p"],
    q: Float[Array, "... m d"],
    k: Float[Array, "... n d"],
    v: Float[Array, "... n p"],
    output: Float[Array, "... m p"],
    log_sum_exp: Float[Array, "... m"],
    *,
    block: int = 64,
    causal: bool = False,
) -> tuple[Float[Array, "... m d"], Float[Array, "... n d"], Float[Array, "... n p"]]:
    """Gradients of Σ_i g_iᵀo_i with respect to q, k and v, with w_ij = exp(s_ij − L_i) once more.

    With δ_i = g_iᵀo_i and the gradient ds_ij = w_ij (g_iᵀv_j − δ_i) with respect to a score,
    dq_i = Σ_j ds_ij k_j / √d, dk_j = Σ_i ds_ij q_i / √d and dv_j = Σ_i w_ij g_i.

    Args:
        g: the gradient with respect to the output, of shape (..., m, p).
        q: queries of shape (..., m, d).
        k: keys of shape (..., n, d).
        v: values of shape (..., n, p); leading axes broadcast.
        output: what forward gave, of shape (..., m, p).
        log_sum_exp: what forward gave, of shape (..., m).
        block: as in forward.
        causal: as it was in forward.

    Returns:
        The gradients with respect to q, k and v, in their shapes and dtype.

    Raises:
        ValueError, TypeError: as forward.

    Source: Dao et al. (2022), algorithm 4.
    """
    given = q, k, v
    g, q, k, v, output = promote_autocast(g, q, k, v, output)
    xp = check_inputs(q, k, v, causal)
    _check_outputs(q, k, v, g=g, output=output, log_sum_exp=log_sum_exp)
    block = positive_int(block=block)
    wide_g, wide_q, wide_k, wide_v, wide_output = upcast_half(xp, g, q, k, v, output)
    logs = xp.astype(log_sum_exp, wide_q.dtype)[..., None]
    delta = xp.sum(wide_g * wide_output, axis=-1, keepdims=True)
    down, across = _slices(q.shape[-2], block), _slices(k.shape[-2], block)
    dq: Any = [0.0] * len(down)
    dk: Any = [0.0] * len(across)
    dv: Any = [0.0] * len(across)
    for c, columns in enumerate(across):
        of_keys = [a[..., columns, :] for a in (wide_k, wide_v)]
        for r, rows in enumerate(down):
            if causal and _is_later(rows, columns):
                continue
            of_queries = (a[..., rows, :] for a in (wide_g, wide_q, logs, delta))
            mask = _diagonal(q, rows, columns) if causal else None
            with without_autocast(q):
                for_q, for_k, for_v = unchecked_gradients(mask, *of_keys, *of_queries)
            dq[r], dk[c], dv[c] = dq[r] + for_q, dk[c] + for_k, dv[c] + for_v
    found = (xp.concat(blocks, axis=-2) for blocks in (dq, dk, dv))
    dq, dk, dv = (_summed_to(xp, a, like) for a, like in zip(found, given, strict=True))
    return dq, dk, dv


def unchecked_gradients(
    mask: Array | None, k: Array, v: Array, g: Array, q: Array, logs: Array, delta: Array
) -> tuple[Array, Array, Array]:
    """What one block of scores adds to the gradients of its queries, keys and values.

    With w = exp(s − L), the gradient with respect to the scores is ds = w ∘ (g vᵀ − δ).
    """
    xp = array_namespace(q)
    found = scores.unchecked_scaled_dot(q, k)
    if mask is not None:
        found = xp.where(mask, found, -xp.inf)
    weights = xp.exp(found - logs)
    by_scores = weights * (g @ v.mT - delta) / math.sqrt(q.shape[-1])
    return by_scores @ k, by_scores.mT @ q, weights.mT @ g


def block_kinds(
    allowed: Callable[[Any, Any], Any], m: int, n: int, block: int
) -> Int[np.ndarray, "rows columns"]:
    """Which blocks of an (m, n) mask are empty (0), partial (1) or full (2).

    An empty block need not be computed, and a full one needs no mask. A row of blocks is looked at
    at a time: the mask never exists as a whole.

    Args:
        allowed: whether query i may attend to key j, a function of integer NumPy arrays that
            broadcast, such as lambda i, j: j <= i.
        m: the number of queries.
        n: the number of keys.
        block: how many queries, and how many keys, a block has; the last ones may have fewer.

    Returns:
        Integers of NumPy's, one per block, of shape (⌈m / block⌉, ⌈n / block⌉).

    Raises:
        ValueError: a block that is no integer above 0; allowed gives no truth values, or of a shape
            that does not fit.
    """
    block = positive_int(block=block)
    starts, j = np.arange(0, n, block), np.arange(n)
    kinds = np.zeros((-(-m // block), len(starts)), dtype=np.int64)
    for row in range(len(kinds)):
        i = np.arange(row * block, min((row + 1) * block, m))
        mask = np.broadcast_to(allowed(i[:, None], j[None, :]), (len(i), n))
        if mask.dtype != bool:
            raise ValueError(f"allowed: gave {mask.dtype}, expected truth values")
        some = np.logical_or.reduceat(mask.any(axis=0), starts)
        every = np.logical_and.reduceat(mask.all(axis=0), starts)
        kinds[row] = some.astype(int) + every
    return kinds


def _slices(length: int, block: int) -> list[slice]:
    """The blocks of so many rows; of none, one block without a row."""
    return [slice(i, min(i + block, length)) for i in range(0, max(length, 1), block)]


def _is_later(rows: slice, columns: slice) -> bool:
    """Whether all of a block's keys come after its queries; both are cut at the same places."""
    return bool(columns.start > rows.start)


def _diagonal(like: Array, rows: slice, columns: slice) -> Array | None:
    """The causal mask of a block on the diagonal; those before it need none."""
    if columns.start < rows.start:
        return None
    position = array_namespace(like).arange(rows.stop - rows.start, device=device(like))
    return position[None, :] <= position[:, None]


def _summed_to(xp: Any, gradient: Array, like: Array) -> Array:
    """A gradient summed over the axes along which its array was broadcast."""
    extra = gradient.ndim - like.ndim
    axes = [axis for axis in range(gradient.ndim) if axis < extra]
    axes += [extra + a for a, size in enumerate(like.shape[:-2]) if size == 1]
    if axes:
        gradient = xp.sum(gradient, axis=tuple(axes), keepdims=True)
    return xp.astype(xp.reshape(gradient, like.shape), like.dtype, copy=False)


def _check_outputs(q: Array, k: Array, v: Array, **given: Array) -> None:
    """Check the gradient of the output, the output, and the log-sum-exps."""
    common_namespace(q=q, **given)
    check_floating(q=q, g=given["g"], output=given["output"])
    lead, m = broadcast_leading_axes(q=q, k=k, v=v), q.shape[-2]
    whole = (*lead, m, v.shape[-1])
    scored = (*broadcast_leading_axes(q=q, k=k), m)
    expected = {"g": [whole], "output": [whole], "log_sum_exp": [scored, (*lead, m)]}
    for name, shapes in expected.items():
        if tuple(given[name].shape) not in shapes:
            got = tuple(given[name].shape)
            raise ValueError(f"{name}: got shape {got}, expected {shapes[0]}")
