"""Attention: a weighted average whose weights are the softmax of scores."""

import functools
import math
from collections.abc import Callable
from typing import Any, Literal, overload

from array_api_compat import array_namespace, is_jax_array, is_torch_array
from jaxtyping import Bool, Float

from attnbook._fast import sdpa
from attnbook._validation.arrays import (
    broadcast_shapes,
    check_attention,
    check_causal,
    check_floating,
    check_how,
    check_mask,
    promote_autocast,
    upcast_half,
)
from attnbook._validation.callables import check_scores, check_weights
from attnbook._validation.types import Array, Drop, Score
from attnbook.attention import scores
from attnbook.attention.masks import with_causal


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


@overload
def attend(
    queries: Float[Array, "... m d"],
    keys: Float[Array, "... n d_k"],
    values: Float[Array, "... n p"],
    *,
    score: Score = scores.scaled_dot,
    mask: Bool[Array, "..."] | None = None,
    causal: bool = False,
    return_weights: Literal[False] = False,
) -> Array: ...
@overload
def attend(
    queries: Float[Array, "... m d"],
    keys: Float[Array, "... n d_k"],
    values: Float[Array, "... n p"],
    *,
    score: Score = scores.scaled_dot,
    mask: Bool[Array, "..."] | None = None,
    causal: bool = False,
    return_weights: Literal[True],
) -> tuple[Array, Array]: ...
@overload
def attend(
    queries: Float[Array, "... m d"],
    keys: Float[Array, "... n d_k"],
    values: Float[Array, "... n p"],
    *,
    score: Score = scores.scaled_dot,
    mask: Bool[Array, "..."] | None = None,
    causal: bool = False,
    return_weights: bool,
) -> Array | tuple[Array, Array]: ...
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
    transformer's attention. The default, without return_weights, takes PyTorch's fused kernel where
    that is the faster way, and is compiled in JAX. The kernel's memory grows with m + n, also if
    causal; a mask has m × n entries itself, of which PyTorch makes numbers, and brings the product
    back.

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
        column of every query. Where torch.compile hides the numbers, keys may be NaN to which no
        query at all may attend, and of later values that causal hides, NaN spoils some rows only.

    Raises:
        ValueError: shapes or dtypes that do not fit, a score that is no function, gives no
            floating number per query and key, or NaN or −∞ alone to a query that may attend, causal
            with other numbers of queries and keys; causal or return_weights that are not True or
            False.
        TypeError: arrays of different libraries.

    Source: Bahdanau, Cho and Bengio (2015), equations 5 and 6; Vaswani et al. (2017), equation 1.
    """
    queries, keys, values = promote_autocast(queries, keys, values)
    check_how(score, causal, return_weights)
    # other scores say themselves which widths they take
    check_attention(queries, keys, values, mask, one_width=score is scores.scaled_dot)
    if causal:
        check_causal(queries, keys)
    if score is scores.scaled_dot and not return_weights:
        return fast_average(queries, keys, values, mask, causal)
    weights = attention_weights(queries, keys, values, mask, causal, score)
    output = weighted_average(weights, values)
    if not return_weights:
        return output
    return output, array_namespace(output).astype(weights, output.dtype)


def attention_weights(
    queries: Array, keys: Array, values: Array, mask: Array | None, causal: bool, score: Score
) -> Float[Array, "... m n"]:
    """Weights w_i = softmax_j(score(q_i, k_j)) of what was checked before, in float32 or wider.

    Leading axes of the scores must broadcast with those of the values.
    """
    xp = array_namespace(queries)
    q, k = upcast_half(xp, queries, keys)
    mask = with_causal(mask, queries) if causal else mask
    if score is scores.scaled_dot:
        return masked_softmax(xp, scores.unchecked_scaled_dot(q, k), mask)
    weights = masked_softmax(xp, check_scores(score(q, k), q, k, values), mask)
    check_weights(weights, q, k)
    return weights


def weighted_average(weights: Float[Array, "... m n"], values: Float[Array, "... n p"]) -> Array:
    """Averages out_i = Σ_j w_ij v_j, in the dtype of the values."""
    if weights.dtype == values.dtype:
        return weights @ values
    xp = array_namespace(values)
    return xp.astype(weights @ xp.astype(values, weights.dtype), values.dtype)


def fast_average(
    queries: Array,
    keys: Array,
    values: Array,
    mask: Array | None,
    causal: bool,
    drop: Drop | None = None,
) -> Array:
    """What attend gives with its default score, checked before, by the fastest way there is.

    PyTorch's fused kernel leaves weights out itself, the share that a layer's dropout says.
    """
    if is_torch_array(queries):
        share = getattr(drop, "share", None)
        repays = share is not None or (
            drop is None and fused_repays(queries, keys, values, mask, causal)
        )
        if repays and sdpa.is_applicable(queries, keys, values):
            if share is not None:
                output = sdpa.fused(queries, keys, values, mask, causal, share)
            else:
                output = sdpa.average(queries, keys, values, mask, causal, _scaled_dot_average)
            if (mask is None and not causal) or sdpa.is_settled(output, queries):
                return output
    compiled = is_jax_array(queries) and drop is None
    average = _compiled() if compiled else functools.partial(_scaled_dot_average, drop=drop)
    return average(queries, keys, values, mask, causal)


def fused_repays(queries: Any, keys: Any, values: Any, mask: Any, causal: bool) -> bool:
    """Whether PyTorch's fused kernel is the faster way: not for few weights with a gradient."""
    import torch

    wanted = torch.is_grad_enabled() and any(a.requires_grad for a in (queries, keys, values))
    if not wanted or (causal and mask is None):
        return True
    if torch.compiler.is_compiling() and sdpa.is_exporting():
        return True  # the program is for all sizes
    lead = tuple(queries.shape[:-2])
    if lead != keys.shape[:-2]:
        lead = broadcast_shapes(lead, tuple(keys.shape[:-2]))
    weights: int = math.prod(lead) * queries.shape[-2] * keys.shape[-2]
    return weights >= (sdpa.MIN_WEIGHTS if mask is None else sdpa.MIN_MASKED_WEIGHTS)


def _scaled_dot_average(
    queries: Array,
    keys: Array,
    values: Array,
    mask: Array | None,
    causal: bool,
    drop: Drop | None = None,
) -> Array:
    weights = attention_weights(queries, keys, values, mask, causal, scores.scaled_dot)
    return weighted_average(weights if drop is None else drop(weights), values)


@functools.cache
def _compiled() -> Callable[..., Array]:
    import jax

    return jax.jit(_scaled_dot_average, static_argnames="causal")
