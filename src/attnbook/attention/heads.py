"""Heads: attention of a sequence to itself, and several of them side by side."""

from typing import Any

from array_api_compat import array_namespace, device
from jaxtyping import Bool, Float, Real

from attnbook._types import Array, Layer, Score
from attnbook._validation import (
    cast_parameter,
    check_causal,
    check_layers_mask,
    check_multi_head,
    check_rows,
    check_widths,
    divided,
    positive_int,
    positive_or_none,
)
from attnbook.attention import attend, positions, scores
from attnbook.attention.weighted_average import unchecked_attend
from attnbook.layers.linear import linear


def self_attention(
    x: Float[Array, "... n e"],
    w_q: Float[Array, "d e"],
    w_k: Float[Array, "d e"],
    w_v: Float[Array, "p e"],
    *,
    score: Score = scores.scaled_dot,
    mask: Bool[Array, "..."] | None = None,
    causal: bool = False,
    return_weights: bool = False,
) -> Any:
    """Self-attention, f(X) = softmax(Q Kᵀ / √d) V with Q = X W_qᵀ, K = X W_kᵀ and V = X W_vᵀ.

    Args:
        x: tokens as rows, of shape (..., n, e).
        w_q: of shape (d, e), as torch.nn.Linear keeps a matrix.
        w_k: of shape (d, e).
        w_v: of shape (p, e).
        score: of queries and keys, in place of the scaled dot product.
        mask: boolean, of shape (..., n, n) or one that broadcasts with it, True = may attend.
            Leading axes that only the mask has become axes of the output.
        causal: token i attends to the tokens j ≤ i alone, beside what a mask says.
        return_weights: give the (..., n, n) weights too.

    Returns:
        Of shape (..., n, p), or the pair (output, weights).

    Raises:
        ValueError: shapes or dtypes that do not fit.
        TypeError: arrays of different libraries.

    Source: Vaswani et al. (2017), section 3.2; with rows as tokens.
    """
    check_rows(x=x)
    e = x.shape[-1]
    w_q = cast_parameter(x, ("d", e), of="x", w_q=w_q)
    w_k = cast_parameter(x, ("d", e), of="x", w_k=w_k)
    w_v = cast_parameter(x, ("p", e), of="x", w_v=w_v)
    queries, keys, values = x @ w_q.mT, x @ w_k.mT, x @ w_v.mT
    return attend(
        queries, keys, values, score=score, mask=mask, causal=causal, return_weights=return_weights
    )


def single_head(layer: Layer, x: Float[Array, "... n e"], **how: Any) -> Any:
    """self_attention with the matrices of a SelfAttention of either back end; how: as attend.

    Of the mask's leading axes each is one of x.
    """
    check_widths(layer.embed_dim, x=x)
    check_layers_mask(how.get("mask"), (*x.shape[:-1], x.shape[-2]), x=x)
    return attend(linear(layer.query, x), linear(layer.key, x), linear(layer.value, x), **how)


def split_heads(x: Float[Array, "... n e"], num_heads: int) -> Float[Array, "... heads n d"]:
    """Cut a width into heads: head h has the columns from h·d on, d = e / num_heads of them.

    Args:
        x: of shape (..., n, e).
        num_heads: a divisor of e.

    Returns:
        Of shape (..., num_heads, n, e / num_heads).

    Raises:
        ValueError: a width that num_heads does not divide.
    """
    check_rows(x=x)
    divided(x.shape[-1], num_heads=num_heads)
    return _split_heads(x, num_heads)


def _split_heads(x: Array, num_heads: int) -> Array:
    """The formula of split_heads, for what was checked before."""
    xp = array_namespace(x)
    *lead, n, e = x.shape
    return xp.moveaxis(xp.reshape(x, (*lead, n, num_heads, e // num_heads)), (-2,), (-3,))


def merge_heads(x: Float[Array, "... heads n d"]) -> Float[Array, "... n e"]:
    """Put heads side by side again, the inverse of split_heads.

    Args:
        x: of shape (..., heads, n, d).

    Returns:
        Of shape (..., n, heads · d).

    Raises:
        ValueError: fewer than three axes.
    """
    check_rows(x=x)
    if x.ndim < 3:
        raise ValueError(f"x: got shape {tuple(x.shape)}, expected (..., heads, n, d)")
    return _merge_heads(x)


def _merge_heads(x: Array) -> Array:
    """The formula of merge_heads, for what was checked before."""
    xp = array_namespace(x)
    *lead, heads, n, d = x.shape
    return xp.reshape(xp.moveaxis(x, (-3,), (-2,)), (*lead, n, heads * d))


def multi_head_attention(
    layer: Layer,
    queries: Float[Array, "... m e"],
    keys: Float[Array, "... n e"] | None = None,
    values: Float[Array, "... n e"] | None = None,
    mask: Bool[Array, "..."] | None = None,
    return_weights: bool = False,
    *,
    score: Score = scores.scaled_dot,
    causal: bool = False,
    dropout: float = 0.0,
    key: Any = None,
) -> Any:
    """Multi-head attention, W_o [head_1; …; head_H] + b_o with head_h = attend(q_h, k_h, v_h).

    q_h, k_h and v_h are the h-th parts of W_q x + b_q, W_k x' + b_k and W_v x'' + b_v. With fewer
    key and value heads than query heads, neighbouring query heads share one. With a rotary_base
    every q_h and k_h is turned by its position.

    Args:
        layer: a MultiHeadAttention of either back end, for its parameters.
        queries: of shape (..., m, e).
        keys: of shape (..., n, e); the queries without them: self-attention.
        values: of shape (..., n, e); the keys without them.
        mask: boolean, broadcastable to (..., m, n), True = may attend; the same for all heads, so
            without an axis for them, and for no more sequences than there are.
        return_weights: give the (..., heads, m, n) weights too, before any is left out.
        score: of queries and keys with heads, (..., heads, m, d) and (..., heads, n, d).
        causal: query i attends to the keys j ≤ i alone, beside what a mask says.
        dropout: the share of weights that is left out, while a model learns.
        key: what JAX and NumPy draw them from, as in layers.dropout.dropout.

    Returns:
        Of shape (..., m, e), or the pair (output, weights).

    Raises:
        ValueError: shapes or dtypes that do not fit.
        TypeError: arrays of different libraries.

    Source: Vaswani et al. (2017), section 3.2.2; shared heads: Shazeer (2019), Ainslie et al.
        (2023).
    """
    keys = queries if keys is None else keys
    values = keys if values is None else values
    check_multi_head(layer, queries, keys, values, mask)
    if causal:
        check_causal(queries, keys)
    q, k, v = project(layer, queries, keys, values)
    mask = mask[..., None, :, :] if mask is not None and mask.ndim > 2 else mask  # for all heads
    found = unchecked_attend(q, k, v, mask, causal, score, return_weights, dropout, key)
    heads, weights = found if return_weights else (found, None)
    output = linear(layer.output, _merge_heads(heads))
    return (output, weights) if return_weights else output


def project(
    layer: Layer,
    queries: Float[Array, "... m e"],
    keys: Float[Array, "... n e"],
    values: Float[Array, "... n e"],
    places: Real[Array, "..."] | None = None,
    shared: bool = False,
) -> tuple[Array, Array, Array]:
    """Queries W_q x + b_q, keys W_k x' + b_k and values W_v x'' + b_v, cut into heads.

    Where the layer has a rotary_base, queries and keys are turned by their positions.

    Args:
        layer: a MultiHeadAttention of either back end, for its parameters.
        queries: x, of shape (..., m, e).
        keys: x', of shape (..., n, e).
        values: x'', of shape (..., n, e).
        places: rotary positions of queries and of keys, where these are as many: of shape (n,), or
            a row for each sequence, (..., n); 0, 1, … without them.
        shared: give keys and values that several heads share once, as a cache stores them.

    Returns:
        q of shape (..., heads, m, d), k and v of shape (..., heads, n, d), or (..., kv_heads, n, d)
        if shared.
    """
    q = _split_heads(linear(layer.query, queries), layer.num_heads)
    k = _split_heads(linear(layer.key, keys), layer.num_kv_heads)
    v = _split_heads(linear(layer.value, values), layer.num_kv_heads)
    base = getattr(layer, "rotary_base", None)  # a layer of one's own may know nothing of it
    if base is not None:
        q, k = _turn(q, places, base), _turn(k, places, base)
    times = 1 if shared else layer.num_heads // layer.num_kv_heads
    return (q, k, v) if times == 1 else (q, _repeat_kv(k, times), _repeat_kv(v, times))


def _turn(
    x: Float[Array, "... heads n d"], places: Array | None, base: float
) -> Float[Array, "... heads n d"]:
    """Every head turned by the positions of its tokens."""
    if places is None:
        places = array_namespace(x).arange(x.shape[-2], device=device(x))
    return positions.unchecked_rotary(x, places[..., None, :], base)


def _repeat_kv(x: Float[Array, "... kv n d"], times: int) -> Float[Array, "... heads n d"]:
    """Every key or value head for as many query heads as share it."""
    return array_namespace(x).repeat(x, times, axis=-3)


def head_shape(
    embed_dim: int, num_heads: int, num_kv_heads: int | None
) -> tuple[int, int, int, int]:
    """A width, heads of queries, heads of keys and values, the width of a head."""
    width = positive_int(embed_dim=embed_dim)
    head_dim = divided(width, num_heads=num_heads)
    shared = num_heads if num_kv_heads is None else num_kv_heads
    if num_heads % positive_int(num_kv_heads=shared):
        raise ValueError(
            f"num_kv_heads: got {shared}, expected a divisor of {num_heads}, the heads"
        )
    return width, int(num_heads), int(shared), head_dim


def rotary_base_or_none(head_dim: int, rotary_base: float | None) -> float | None:
    """The base of rotary positions in heads of a width, which they need even; None for none."""
    base = positive_or_none(rotary_base=rotary_base)
    if base is not None and head_dim % 2:
        raise ValueError(
            f"rotary_base: got {rotary_base!r} for heads of width {head_dim}, expected an even "
            "width, whose pairs can turn, or None"
        )
    return None if base is None else float(base)
