"""Heads: attention of a sequence to itself, and several of them side by side."""

from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace
from jaxtyping import Bool, Float

from attnbook import answers, arguments, scores, sizes
from attnbook.arguments import widen
from attnbook.attention import Score, attend, softmax, with_causal
from attnbook.linear import linear

Array = Any  # a NumPy, PyTorch or JAX array
Drop = Callable[[Array], Array]  # leaves weights out at random


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
    arguments.rows(x=x)
    e = x.shape[-1]
    w_q = arguments.parameter(x, ("d", e), of="x", w_q=w_q)
    w_k = arguments.parameter(x, ("d", e), of="x", w_k=w_k)
    w_v = arguments.parameter(x, ("p", e), of="x", w_v=w_v)
    queries, keys, values = x @ w_q.mT, x @ w_k.mT, x @ w_v.mT
    return attend(
        queries, keys, values, score=score, mask=mask, causal=causal, return_weights=return_weights
    )


def single_head(layer: Any, x: Float[Array, "... n e"], **how: Any) -> Any:
    """self_attention with the matrices of a SelfAttention of either back end; how: as attend."""
    arguments.widths(layer.embed_dim, x=x)
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
    xp = arguments.rows(x=x)
    *lead, n, e = x.shape
    width = sizes.parts(e, num_heads=num_heads)
    return xp.moveaxis(xp.reshape(x, (*lead, n, num_heads, width)), (-2,), (-3,))


def merge_heads(x: Float[Array, "... heads n d"]) -> Float[Array, "... n e"]:
    """Put heads side by side again, the inverse of split_heads.

    Args:
        x: of shape (..., heads, n, d).

    Returns:
        Of shape (..., n, heads · d).

    Raises:
        ValueError: fewer than three axes.
    """
    xp = arguments.rows(x=x)
    if x.ndim < 3:
        raise ValueError(f"x: got shape {tuple(x.shape)}, expected (..., heads, n, d)")
    *lead, heads, n, d = x.shape
    return xp.reshape(xp.moveaxis(x, (-3,), (-2,)), (*lead, n, heads * d))


def multi_head_attention(
    layer: Any,
    queries: Float[Array, "... m e"],
    keys: Float[Array, "... n e"] | None = None,
    values: Float[Array, "... n e"] | None = None,
    mask: Bool[Array, "..."] | None = None,
    return_weights: bool = False,
    score: Score = scores.scaled_dot,
    drop: Drop | None = None,
    causal: bool = False,
) -> Any:
    """Multi-head attention, W_o [head_1; …; head_H] + b_o with head_h = attend(q_h, k_h, v_h).

    q_h, k_h and v_h are the h-th parts of W_q x + b_q, W_k x' + b_k and W_v x'' + b_v. With fewer
    key and value heads than query heads, neighbouring query heads share one.

    Args:
        layer: a MultiHeadAttention of either back end, for its parameters.
        queries: of shape (..., m, e).
        keys: of shape (..., n, e); the queries without them: self-attention.
        values: of shape (..., n, e); the keys without them.
        mask: boolean, broadcastable to (..., m, n), True = may attend; the same for all heads, so
            without an axis for them.
        return_weights: give the (..., heads, m, n) weights too, before any is left out.
        score: of queries and keys with heads, (..., heads, m, d) and (..., heads, n, d).
        drop: leaves weights out at random while a model learns.
        causal: query i attends to the keys j ≤ i alone, beside what a mask says.

    Returns:
        Of shape (..., m, e), or the pair (output, weights).

    Raises:
        ValueError: shapes or dtypes that do not fit.
        TypeError: arrays of different libraries.

    Source: Vaswani et al. (2017), section 3.2.2; shared heads: Shazeer (2019), Ainslie et al.
        (2023).
    """
    sizes.flags(causal=causal, return_weights=return_weights)
    keys = queries if keys is None else keys
    values = keys if values is None else values
    arguments.widths(layer.embed_dim, queries=queries, keys=keys, values=values)
    arguments.attention(queries, keys, values, mask)
    arguments.same_library(layer.query, queries=queries)
    if mask is not None and mask.ndim > max(queries.ndim, keys.ndim, values.ndim):
        raise ValueError(
            f"mask: got shape {tuple(mask.shape)}, expected no more axes than the tokens have, "
            "(..., m, n): it is the same for all heads"
        )
    q, k, v = project(layer, queries, keys, values)
    mask = mask[..., None, :, :] if mask is not None and mask.ndim > 2 else mask  # for all heads
    if drop is None and not return_weights:
        return linear(
            layer.output, merge_heads(attend(q, k, v, score=score, mask=mask, causal=causal))
        )
    averages, weights = _dropped(q, k, v, mask, causal, score, drop)
    output = linear(layer.output, merge_heads(averages))
    return (output, weights) if return_weights else output


def project(
    layer: Any,
    queries: Float[Array, "... m e"],
    keys: Float[Array, "... n e"],
    values: Float[Array, "... n e"],
) -> tuple[Array, Array, Array]:
    """Queries W_q x + b_q, keys W_k x' + b_k and values W_v x'' + b_v, cut into heads.

    Args:
        layer: a MultiHeadAttention of either back end, for its parameters.
        queries: x, of shape (..., m, e).
        keys: x', of shape (..., n, e).
        values: x'', of shape (..., n, e).

    Returns:
        q of shape (..., heads, m, d), k and v of shape (..., heads, n, d).
    """
    q = split_heads(linear(layer.query, queries), layer.num_heads)
    k = split_heads(linear(layer.key, keys), layer.num_kv_heads)
    v = split_heads(linear(layer.value, values), layer.num_kv_heads)
    times = layer.num_heads // layer.num_kv_heads
    return q, _shared(k, times), _shared(v, times)


def _dropped(
    q: Array, k: Array, v: Array, mask: Array | None, causal: bool, score: Score, drop: Drop | None
) -> tuple[Array, Array]:
    """Attend with some of its weights left out, and all of its weights."""
    mask = with_causal(mask, causal, q)
    if drop is None:
        averages, weights = attend(q, k, v, score=score, mask=mask, return_weights=True)
        return averages, weights
    xp = array_namespace(q)
    found = answers.of_score(score(*widen(xp, q, k)), q, k, v)
    weights = softmax(found, mask)
    answers.of_weights(weights, q, k)
    averages = drop(weights) @ widen(xp, v)[0]
    return xp.astype(averages, q.dtype), xp.astype(weights, q.dtype)


def _shared(x: Float[Array, "... kv n d"], times: int) -> Float[Array, "... heads n d"]:
    """Every key or value head for as many query heads as share it."""
    return x if times == 1 else array_namespace(x).repeat(x, times, axis=-3)
