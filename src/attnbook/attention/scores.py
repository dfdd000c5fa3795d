"""Scores: how well a key answers a query. The softmax of a row of scores is a row of weights."""

import math
from typing import Any

from array_api_compat import array_namespace
from jaxtyping import Float

from attnbook._types import Array
from attnbook._validation import (
    broadcast_leading_axes,
    cast_parameter,
    check_bandwidth,
    check_floating,
    check_qkv,
)
from attnbook.attention.distances import unchecked_squared_distance


def gaussian_score(
    q: Float[Array, "... m d"], k: Float[Array, "... n d"], bandwidth: Any = 1.0
) -> Float[Array, "... m n"]:
    """Gaussian score, s_ij = −‖q_i − k_j‖² / (2h²): the logarithm of the Gaussian kernel.

    Args:
        q: queries of shape (..., m, d).
        k: keys of shape (..., n, d); leading axes broadcast.
        bandwidth: h, a number, or an array of shape () or (d,), one h per coordinate.

    Returns:
        Scores of shape (..., m, n), at most 0.
    """
    xp = check_qkv(q=q, k=k)
    return unchecked_gaussian_score(q, k, check_bandwidth(xp, bandwidth, k))


def unchecked_gaussian_score(q: Array, k: Array, h: Any) -> Array:
    """The formula of gaussian_score, for what was checked before."""
    return -0.5 * unchecked_squared_distance(q, k, h)


def dot(q: Float[Array, "... m d"], k: Float[Array, "... n d"]) -> Float[Array, "... m n"]:
    """Dot product, s_ij = q_i · k_j.

    Args:
        q: queries of shape (..., m, d).
        k: keys of shape (..., n, d); leading axes broadcast.

    Returns:
        Scores of shape (..., m, n).

    Source: Luong, Pham and Manning (2015), section 3.1, "dot".
    """
    check_qkv(q=q, k=k)
    return q @ k.mT


def scaled_dot(q: Float[Array, "... m d"], k: Float[Array, "... n d"]) -> Float[Array, "... m n"]:
    """Scaled dot product, s_ij = q_i · k_j / √d: the variance of a score does not grow with d.

    Args:
        q: queries of shape (..., m, d).
        k: keys of shape (..., n, d); leading axes broadcast.

    Returns:
        Scores of shape (..., m, n).

    Source: Vaswani et al. (2017), equation 1.
    """
    check_qkv(q=q, k=k)
    return unchecked_scaled_dot(q, k)


def unchecked_scaled_dot(q: Array, k: Array) -> Array:
    """The formula of scaled_dot, for what was checked before."""
    return q @ k.mT / math.sqrt(q.shape[-1])


def general(
    q: Float[Array, "... m d_q"], k: Float[Array, "... n d_k"], weight: Float[Array, "d_q d_k"]
) -> Float[Array, "... m n"]:
    """General (bilinear) score, s_ij = q_iᵀ W k_j: what a query looks for is learned.

    Args:
        q: queries of shape (..., m, d_q).
        k: keys of shape (..., n, d_k); leading axes broadcast.
        weight: W, of shape (d_q, d_k).

    Returns:
        Scores of shape (..., m, n).

    Raises:
        ValueError: shapes that do not fit.

    Source: Luong, Pham and Manning (2015), section 3.1, "general".
    """
    _two_widths(q, k)
    weight = cast_parameter(q, (q.shape[-1], k.shape[-1]), weight=weight)
    return q @ weight @ k.mT


def cosine(q: Float[Array, "... m d"], k: Float[Array, "... n d"]) -> Float[Array, "... m n"]:
    """Cosine of the angle, s_ij = q_i · k_j / (‖q_i‖ ‖k_j‖), between −1 and 1.

    A vector of zeros has no angle; its scores are 0, as if it stood at a right angle to all others.

    Args:
        q: queries of shape (..., m, d).
        k: keys of shape (..., n, d); leading axes broadcast.

    Returns:
        Scores of shape (..., m, n).

    Source: Graves, Wayne and Danihelka (2014), equation 6.
    """
    check_qkv(q=q, k=k)
    return _unit(q) @ _unit(k).mT


def _unit(x: Array) -> Array:
    """Unit vectors x / ‖x‖, whose squares neither overflow nor underflow; 0 where x is 0."""
    xp = array_namespace(x)
    largest = xp.max(xp.abs(x), axis=-1, keepdims=True)
    x = x / xp.where(largest > 0, largest, xp.ones_like(largest))
    squares = xp.sum(x * x, axis=-1, keepdims=True)
    return x / xp.sqrt(xp.where(squares > 0, squares, xp.ones_like(squares)))


def additive(
    q: Float[Array, "... m d_q"],
    k: Float[Array, "... n d_k"],
    w_q: Float[Array, "r d_q"],
    w_k: Float[Array, "r d_k"] | None,
    v: Float[Array, " r"],
) -> Float[Array, "... m n"]:
    """Additive score, s_ij = vᵀ tanh(W_q q_i + W_k k_j): a small network with one hidden layer.

    Args:
        q: queries of shape (..., m, d_q).
        k: keys of shape (..., n, d_k); leading axes broadcast.
        w_q: W_q, of shape (r, d_q).
        w_k: W_k, of shape (r, d_k), or None where k is W_k k already: a decoder asks the same keys
            again and again, and multiplies them once.
        v: of shape (r,).

    Returns:
        Scores of shape (..., m, n). On the way the (..., m, n, r) hidden values are in memory.

    Raises:
        ValueError: shapes that do not fit.

    Source: Bahdanau, Cho and Bengio (2015), section A.1.2.
    """
    _two_widths(q, k)
    w_q = cast_parameter(q, ("r", q.shape[-1]), w_q=w_q)
    r = w_q.shape[0]
    v = cast_parameter(q, (r,), v=v)
    if w_k is not None:
        k = k @ cast_parameter(q, (r, k.shape[-1]), w_k=w_k).mT
    elif k.shape[-1] != r:
        raise ValueError(f"k: got {k.shape[-1]} coordinates, expected {r} as w_q's rows: no w_k")
    return additive_of_projected(q @ w_q.mT, k, v)


def additive_of_projected(
    q: Float[Array, "... m r"], k: Float[Array, "... n r"], v: Float[Array, " r"]
) -> Float[Array, "... m n"]:
    """Additive score, s_ij = vᵀ tanh(q_i + k_j), of queries and keys that are multiplied already.

    Args:
        q: W_q q, of shape (..., m, r).
        k: W_k k, of shape (..., n, r); leading axes broadcast.
        v: of shape (r,).

    Returns:
        Scores of shape (..., m, n).

    Source: Bahdanau, Cho and Bengio (2015), section A.1.2.
    """
    xp = check_qkv(q=q, k=k)
    v = cast_parameter(q, (q.shape[-1],), v=v)
    hidden = q[..., :, None, :] + k[..., None, :, :]  # (..., m, n, r)
    return xp.tanh(hidden) @ v


def _two_widths(q: Array, k: Array) -> Any:
    """Check queries and keys that need not have the same number of coordinates."""
    xp = check_floating(q=q, k=k)
    check_qkv(q=q)
    check_qkv(k=k)
    broadcast_leading_axes(q=q, k=k)
    return xp
