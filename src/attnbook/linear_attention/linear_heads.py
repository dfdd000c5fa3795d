"""Heads without the softmax: what LinearAttention and GatedDelta compute, for both back ends."""

from typing import Any

from array_api_compat import array_namespace
from jaxtyping import Bool, Float

from attnbook._types import Array, Layer
from attnbook._validation import check_multi_head, upcast_half
from attnbook.attention.heads import merge_heads, project
from attnbook.layers.activations import sigmoid, silu
from attnbook.layers.linear import linear
from attnbook.layers.norms import apply_norm
from attnbook.linear_attention import chunked, weights

DECAY_START = 3.0  # a decay's first bias: σ(3) = 0.95 of the state stays
SMALLEST = 1e-6  # under the root of a length, which keeps a token of zeros from 0/0


def elu_plus_one(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """A feature that is never negative, elu(x) + 1: x + 1 above 0, exp(x) below.

    Args:
        x: of any shape.

    Returns:
        Of the shape of x.

    Source: Katharopoulos et al. (2020), equation 7; the unit is Clevert, Unterthiner and
        Hochreiter's (2016).
    """
    xp = array_namespace(x)
    return xp.where(x > 0, x + 1, xp.exp(xp.where(x > 0, xp.zeros_like(x), x)))


def unit_length(x: Float[Array, "... d"]) -> Float[Array, "... d"]:
    """Rows of length 1, x / √(‖x‖² + 10⁻⁶).

    Args:
        x: of shape (..., d).

    Returns:
        Of the shape of x.
    """
    xp = array_namespace(x)
    return x / xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True) + SMALLEST)


def linear_heads(
    layer: Layer,
    queries: Float[Array, "... n e"],
    keys: Array | None = None,
    values: Array | None = None,
    mask: Bool[Array, "..."] | None = None,
    return_weights: bool = False,
    causal: bool = False,
) -> Any:
    """Linear attention, W_o [head_1; …; head_H] + b_o, each head an average with positive weights.

    head_i = Σ_j φ(q_i)ᵀ φ(k_j) v_j / Σ_j φ(q_i)ᵀ φ(k_j) with φ = elu + 1, over all j, or j ≤ i if
    causal. The sums are one state of shape (d, p + 1) for all queries, so the cost grows with n and
    not with n².

    Args:
        layer: a LinearAttention of either back end, for its parameters.
        queries: tokens, of shape (..., n, e).
        keys: the same tokens, or None.
        values: the same tokens, or None.
        mask: boolean, broadcastable to (..., 1, n), True = a key that may be seen.
        return_weights: give the (..., heads, n, n) weights too, which sum to 1.
        causal: token i reads the tokens j ≤ i alone.

    Returns:
        Of shape (..., n, e), or the pair (output, weights). A token that may see nothing has
        weights 0, and heads 0.

    Raises:
        ValueError: shapes or dtypes that do not fit, other keys or values than the queries, a mask
            that says more than which keys are hidden.
        TypeError: arrays of different libraries.

    Source: Katharopoulos et al. (2020), sections 3.2 to 3.4.
    """
    q, k, v, seen = _heads(layer, queries, keys, values, mask)
    xp = array_namespace(q)
    q, k, wide = upcast_half(xp, q, k, v)
    q, k = elu_plus_one(q), elu_plus_one(k)
    if seen is not None:
        k = xp.where(seen, k, xp.zeros_like(k))
    if return_weights:
        products = weights(q, k) if causal else q @ k.mT
        shares = _divided(products, xp.sum(products, axis=-1, keepdims=True))
        return _joined(layer, xp.astype(shares @ wide, v.dtype)), xp.astype(shares, v.dtype)
    with_one = xp.concat([wide, xp.ones_like(wide[..., :1])], axis=-1)
    sums = chunked(q, k, with_one)[0] if causal else q @ (k.mT @ with_one)
    return _joined(layer, xp.astype(_divided(sums[..., :-1], sums[..., -1:]), v.dtype))


def _divided(sums: Array, total: Array) -> Array:
    """Sums / total, and 0 where the total is 0."""
    xp = array_namespace(sums)
    return sums / xp.where(total == 0, xp.ones_like(total), total)


def delta_heads(
    layer: Layer,
    queries: Float[Array, "... n e"],
    keys: Array | None = None,
    values: Array | None = None,
    mask: Bool[Array, "..."] | None = None,
    return_weights: bool = False,
    causal: bool = False,
) -> Any:
    """A state with decay and the delta rule, W_o [head_1; …; head_H] + b_o.

    head = norm(recurrent(q, k, v, decay=a, beta=β)) with q and k = silu(W x + b), made of length 1,
    v = W_v x + b_v, and a number per head and token: a = σ(W_a x + b_a) if the layer has a gate,
    β = σ(W_β x + b_β) if it has the delta rule. A hidden token writes nothing and lets nothing
    decay.

    Arguments are those of linear_heads, but that the layer is a GatedDelta and causal must be True:
    a state is written in the order of the tokens.

    Returns:
        Outputs of shape (..., n, e), or the pair of outputs and weights. The weights are those of
        the heads before their norm; they may be negative, and do not sum to 1.

    Raises:
        ValueError, TypeError: as linear_heads; causal=False.

    Source: Yang et al. (2025), section 3.4, without its convolutions and its gate of the output.
    """
    q, k, v, seen = _heads(layer, queries, keys, values, mask)
    if not causal:
        raise ValueError(
            "causal: got False, expected True: a state is written in the order of the tokens"
        )
    xp = array_namespace(q)
    q, k, wide = upcast_half(xp, q, k, v)
    q, k = unit_length(silu(q)), unit_length(silu(k))
    decay = _rate(layer.decay, queries) if layer.gate else None
    beta = _rate(layer.beta, queries) if layer.delta else None
    if seen is not None:
        k = xp.where(seen, k, xp.zeros_like(k))
        decay = None if decay is None else xp.where(seen[..., 0], decay, xp.ones_like(decay))
    if return_weights:
        kept = weights(q, k, decay=decay, beta=beta)
        return _normed(layer, kept @ wide, v), xp.astype(kept, v.dtype)
    return _normed(layer, chunked(q, k, wide, decay=decay, beta=beta)[0], v)


def _rate(layer: Any, x: Float[Array, "... n e"]) -> Float[Array, "... heads n"]:
    """A number between 0 and 1 for each head and token, in float32 or wider."""
    xp = array_namespace(x)
    return xp.moveaxis(sigmoid(*upcast_half(xp, linear(layer, x))), (-1,), (-2,))


def _normed(layer: Layer, heads: Array, v: Array) -> Array:
    return _joined(layer, apply_norm(layer.head_norm, array_namespace(v).astype(heads, v.dtype)))


def _joined(layer: Layer, heads: Float[Array, "... heads n d"]) -> Float[Array, "... n e"]:
    return linear(layer.output, merge_heads(heads))


def _heads(
    layer: Layer,
    queries: Array,
    keys: Array | None,
    values: Array | None,
    mask: Array | None,
) -> tuple[Array, Array, Array, Array | None]:
    """What a layer is given, checked: its heads, and which keys may be seen, (..., 1, n, 1)."""
    check_multi_head(layer, queries, queries, queries, mask)
    for name, array in (("keys", keys), ("values", values)):
        if array is not None and array is not queries:
            raise ValueError(
                f"{name}: got other tokens than the queries, expected None: a state is written by "
                "the tokens that read it, and MultiHeadAttention reads a memory"
            )
    if mask is not None and mask.ndim > 1 and mask.shape[-2] != 1:
        raise ValueError(
            f"mask: got shape {tuple(mask.shape)}, expected (..., 1, n): one state serves every "
            "query, so a mask can hide keys from all of them, and not some from each"
        )
    if mask is not None:
        mask = mask[:, None] if mask.ndim == 1 else mask[..., None, 0, :, None]
    return *project(layer, queries, queries, queries), mask
