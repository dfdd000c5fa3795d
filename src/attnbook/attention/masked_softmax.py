"""Softmax: scores become weights, positive numbers that sum to 1 over what a mask allows."""

from typing import Any

from array_api_compat import is_jax_array, is_torch_array
from jaxtyping import Bool, Float

from attnbook._validation.arrays import check_floating, check_mask, upcast_half
from attnbook._validation.types import Array


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
