"""Attention: a weighted average whose weights are the softmax of scores."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_jax_array, is_torch_array
from jaxtyping import Bool, Float

from attnbook._types import Array, Score
from attnbook._validation import (
    broadcast_leading_axes,
    check_attention,
    check_causal,
    check_floating,
    check_function,
    check_mask,
    common_namespace,
    is_concretely_true,
    promote_autocast,
    upcast_half,
)
from attnbook.attention import scores
from attnbook.attention.masks import with_causal
from attnbook.layers.dropout import dropout as leave_out

# Weights from which on PyTorch's fused kernel is used where a gradient is wanted; where none is, it
# is at any size. experiments.fused_kernel measures the border.
FUSED_FROM = 2**16


def softmax(
    scores: Float[Array, "... n"], mask: Bool[Array, "..."] | None = None
) -> Float[Array, "... n"]:
    """Softmax over the last axis, w_j = exp(s_j) / Σ_l exp(s_l), the sum over what the mask allows.

    The largest score is subtracted first, so no exponential overflows.

    Args:
        scores: of shape (..., n).
        mask: boolean, broadcastable to the scores, True = takes part.

    Returns:
        Weights of the scores' shape, not negative, each row summing to 1. A row that the mask
        leaves empty is 0.

    Raises:
        ValueError: scores without an axis or not floating, a mask that does not fit.
        TypeError: arrays of different libraries.
    """
    xp = check_floating(scores=scores)
    if scores.ndim == 0:
        raise ValueError("scores: got shape (), expected (..., n)")
    check_mask(mask, tuple(scores.shape), scores=scores)
    return masked_softmax(xp, scores, mask)


def masked_softmax(xp: Any, scores: Array, mask: Array | None) -> Array:
    """The formula of softmax, for what was checked before; by the library's own if it has one."""
    if mask is not None:
        some = xp.any(mask, axis=-1, keepdims=True)
        shut = xp.where(some, -xp.inf, xp.zeros_like(scores))  # an empty row: any score will do
        weights = masked_softmax(xp, xp.where(mask, scores, shut), None)
        return xp.where(some, weights, xp.zeros_like(scores))
    if is_torch_array(scores):
        return scores.softmax(-1)
    (wide,) = upcast_half(xp, scores)
    if is_jax_array(scores):
        import jax

        return xp.astype(jax.nn.softmax(wide, axis=-1), scores.dtype)
    if scores.shape[-1] == 0:
        return scores
    exponentials = xp.exp(wide - xp.max(wide, axis=-1, keepdims=True))
    return xp.astype(exponentials / xp.sum(exponentials, axis=-1, keepdims=True), scores.dtype)


def attend(
    queries: Float[Array, "... m d"],
    keys: Float[Array, "... n d_k"],
    values: Float[Array, "... n p"],
    *,
    score: Score = scores.scaled_dot,
    mask: Bool[Array, "..."] | None = None,
    causal: bool = False,
    return_weights: bool = False,
) -> Any:
    """Attention, out_i = Σ_j w_ij v_j with w_i = softmax_j(score(q_i, k_j)).

    With score=gaussian_score this is the Nadaraya–Watson estimator, with the default it is the
    transformer's attention. The default, without return_weights, goes through PyTorch's fused
    kernel, whose memory grows with m + n, also if causal; a mask has m × n entries itself. Where a
    gradient is wanted, few weights go by the formula, and many have no second derivative, but
    within torch.nn.attention.sdpa_kernel(SDPBackend.MATH). JAX compiles the formula.

    Args:
        queries: of shape (..., m, d).
        keys: of shape (..., n, d), or of the width that the score takes.
        values: of shape (..., n, p); leading axes broadcast.
        score: a function of queries and keys that gives the (..., m, n) scores.
        mask: boolean, of shape (..., m, n) or one that broadcasts with it, True = may attend.
            Leading axes that only the mask has become axes of the output. One of shape (b, n) for
            b sequences would be taken for (m, n) where b = m: write mask[:, None, :].
        causal: query i may attend to the keys j ≤ i alone, as causal_mask says, beside what a mask
            says; for as many queries as keys.
        return_weights: give the (..., m, n) weights too.

    Returns:
        The averages, of shape (..., m, p), or the pair (averages, weights). A query that may attend
        to nothing has weights 0 and output 0. float16 and bfloat16 are computed in float32.

        A key that a query may not attend to does not change its output, even if it is NaN or
        infinite; gradients with respect to the queries, which multiply such a key by 0, may be NaN.
        A value does not either, as long as it is finite: 0 times NaN or infinity is NaN, in that
        column of every query. Under torch.compile masked keys must be finite as well.

    Raises:
        ValueError: shapes or dtypes that do not fit, a score that is no function, gives no
            floating number per query and key, or NaN or −∞ alone to a query that may attend, causal
            with other numbers of queries and keys.
        TypeError: arrays of different libraries.

    Source: Bahdanau, Cho and Bengio (2015), equations 5 and 6; Vaswani et al. (2017), equation 1.
    """
    queries, keys, values = promote_autocast(queries, keys, values)
    # other scores say themselves which widths they take
    check_attention(queries, keys, values, mask, one_width=score is scores.scaled_dot)
    if causal:
        check_causal(queries, keys)
    return unchecked_attend(queries, keys, values, mask, causal, score, return_weights)


def unchecked_attend(
    queries: Array,
    keys: Array,
    values: Array,
    mask: Array | None,
    causal: bool,
    score: Score = scores.scaled_dot,
    return_weights: bool = False,
    dropout: float = 0.0,
    key: Any = None,
) -> Any:
    """What attend gives, for what was checked before; dropout is the share of weights left out.

    The weights that are returned are those before any is left out.
    """
    plain = score is scores.scaled_dot and not return_weights
    if plain and is_torch_array(queries) and is_fused(queries, keys, values):
        output = fused(queries, keys, values, mask, causal, dropout)
        if (mask is None and not causal) or not is_concretely_true(~output.isfinite().all()):
            return output  # else there may be NaN behind the mask: the kernel adds −∞ to it
    if plain and is_jax_array(queries) and dropout == 0:
        return _compiled()(queries, keys, values, mask, causal)
    xp, dtype = array_namespace(queries), values.dtype
    weights = attention_weights(queries, keys, mask, causal, score)
    kept = leave_out(weights, dropout, key) if dropout else weights
    output = xp.astype(kept @ xp.astype(values, weights.dtype), dtype)
    return (output, xp.astype(weights, dtype)) if return_weights else output


def attention_weights(
    queries: Array, keys: Array, mask: Array | None, causal: bool, score: Score = scores.scaled_dot
) -> Float[Array, "... m n"]:
    """Weights w_i = softmax_j(score(q_i, k_j)) of what was checked before, in float32 or wider."""
    xp = array_namespace(queries)
    q, k = upcast_half(xp, queries, keys)
    mask = with_causal(mask, queries) if causal else mask
    if score is scores.scaled_dot:
        return masked_softmax(xp, scores.unchecked_scaled_dot(q, k), mask)
    check_function("attnbook.scores.dot", score=score)
    found = score(q, k)
    common_namespace(queries=queries, score=found)
    if not xp.isdtype(found.dtype, "real floating"):
        raise ValueError(f"score: gave dtype {found.dtype}, expected a floating one")
    m, n = q.shape[-2], k.shape[-2]
    if tuple(found.shape[-2:]) != (m, n):
        raise ValueError(f"score: gave shape {tuple(found.shape)}, expected (..., {m}, {n})")
    broadcast_leading_axes(queries=q, keys=k, score=found)
    weights = masked_softmax(xp, found, mask)
    lost = xp.any(xp.isnan(weights[..., :1]))  # a row is NaN as a whole
    if is_concretely_true(lost & xp.all(xp.isfinite(q)) & xp.all(xp.isfinite(k))):
        raise ValueError(
            "score: gave rows that have NaN or +∞, or −∞ alone, expected a finite number for at "
            "least one key that the mask allows"
        )
    return weights


@functools.cache
def _compiled() -> Callable[..., Array]:
    """The formula, compiled by JAX."""
    import jax

    def formula(queries: Array, keys: Array, values: Any, mask: Any, causal: bool) -> Any:
        weights = attention_weights(queries, keys, mask, causal)
        return (weights @ values.astype(weights.dtype)).astype(values.dtype)

    return jax.jit(formula, static_argnames="causal")


def is_fused(queries: Any, keys: Any, values: Any) -> bool:
    """Whether PyTorch's fused kernel is the way: not for few weights whose gradient is wanted.

    Below the border the formula is as fast, and has derivatives of every order.
    """
    import torch

    if queries.numel() == 0 or keys.numel() == 0:
        return False
    if not (torch.is_grad_enabled() and any(a.requires_grad for a in (queries, keys, values))):
        return True
    weights: int = queries.numel() // queries.shape[-1] * keys.shape[-2]
    return weights >= FUSED_FROM


def fused(
    queries: Any, keys: Any, values: Any, mask: Any, causal: bool, dropout: float = 0.0
) -> Any:
    """Scaled dot-product attention by PyTorch's fused kernel, which never holds the weights.

    The kernel wants the axes (batch, head, row, column) and equal widths. It is causal by itself,
    or has a mask, but not both. On a CPU half precision is computed in float32.
    """
    from torch.nn.functional import pad, scaled_dot_product_attention

    (m, d), (n, p), dtype = queries.shape[-2:], values.shape[-2:], values.dtype
    arrays = [queries, keys, values]
    if dtype.itemsize < 4 and not queries.is_cuda:
        arrays = [a.float() for a in arrays]
    if mask is not None and causal:
        mask, causal = with_causal(mask, queries), False
    shapes = (tuple(a.shape[:-2]) for a in (*arrays, mask) if a is not None)
    lead, width = np.broadcast_shapes(*shapes), max(d, p)
    axes = lead if len(lead) == 2 else (math.prod(lead), 1)
    arrays = [a if a.shape[-1] == width else pad(a, (0, width - a.shape[-1])) for a in arrays]
    q, k, v = (a.expand(*lead, -1, -1).reshape(*axes, -1, width) for a in arrays)
    if mask is not None:  # one for all rows stays one, or the kernel makes numbers of every copy
        shared = mask.ndim <= 2
        mask = mask.expand(m, n) if shared else mask.expand(*lead, m, n).reshape(*axes, m, n)
    how = {"attn_mask": mask, "dropout_p": dropout, "is_causal": causal, "scale": 1 / math.sqrt(d)}
    output = scaled_dot_product_attention(q, k, v, **how)
    return output.reshape(*lead, m, width)[..., :p].to(dtype)
