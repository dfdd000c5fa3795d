"""Attention: a weighted average whose weights are the softmax of scores."""

import functools
from collections.abc import Callable
from typing import Any

from array_api_compat import array_namespace, device, is_jax_array, is_torch_array
from jaxtyping import Bool, Float, Int

from attnbook import answers, arguments, fused, scores, sizes
from attnbook.arguments import widen

Array = Any  # a NumPy, PyTorch or JAX array
Score = Callable[[Array, Array], Array]


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
    xp = arguments.floating(scores=scores)
    if scores.ndim == 0:
        raise ValueError("scores: got shape (), expected (..., n)")
    arguments.fitting_mask(mask, tuple(scores.shape), scores=scores)
    if mask is None:
        return _softmax(xp, scores)
    some = xp.any(mask, axis=-1, keepdims=True)
    shut = xp.where(some, -xp.inf, xp.zeros_like(scores))  # an empty row: any finite score will do
    return xp.where(some, _softmax(xp, xp.where(mask, scores, shut)), xp.zeros_like(scores))


def _softmax(xp: Any, scores: Array) -> Array:
    """Softmax over the last axis, by the library's own where it has one."""
    if is_torch_array(scores):
        return scores.softmax(-1)
    (wide,) = widen(xp, scores)
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

    Raises:
        ValueError: shapes or dtypes that do not fit, a score that is no function, gives no
            floating number a query and key, or NaN or −∞ alone to a query that may attend, causal
            with other numbers of queries and keys; causal or return_weights that are not True or
            False.
        TypeError: arrays of different libraries.

    Source: Bahdanau, Cho and Bengio (2015), equations 5 and 6; Vaswani et al. (2017), equation 1.
    """
    sizes.flags(causal=causal, return_weights=return_weights)
    answers.function("attnbook.scores.dot", score=score)
    queries, keys, values = arguments.alike(queries, keys, values)
    one_width = score is scores.scaled_dot  # other scores say themselves which widths they take
    arguments.attention(queries, keys, values, mask, one_width=one_width)
    if causal:
        arguments.as_many(queries, keys)
    if score is not scores.scaled_dot or return_weights:
        mask = with_causal(mask, causal, queries)
        output, weights = _average(queries, keys, values, mask, score)
        return (output, weights) if return_weights else output
    if fused.takes(queries, keys, values, mask, causal):
        return fused.average(queries, keys, values, mask, causal, _scaled_dot_average)
    average = _compiled() if is_jax_array(queries) else _scaled_dot_average
    return average(queries, keys, values, mask, causal)


def with_causal(mask: Array | None, causal: bool, queries: Array) -> Array | None:
    """A mask that also hides what comes after each of the queries (..., m, d), if causal."""
    if not causal:
        return mask
    earlier = _earlier(array_namespace(queries), queries.shape[-2], queries)
    return earlier if mask is None else mask & earlier


def _average(
    queries: Array, keys: Array, values: Array, mask: Array | None, score: Score
) -> tuple[Array, Array]:
    """The formula: averages and weights."""
    xp, dtype = array_namespace(queries), queries.dtype
    queries, keys, values = widen(xp, queries, keys, values)
    found = score(queries, keys)
    if score is not scores.scaled_dot:
        answers.of_score(found, queries, keys, values)
    weights = softmax(found, mask)
    if score is not scores.scaled_dot:
        answers.of_weights(weights, queries, keys)
    return xp.astype(weights @ values, dtype), xp.astype(weights, dtype)


def _scaled_dot_average(
    queries: Array, keys: Array, values: Array, mask: Array | None, causal: bool
) -> Array:
    mask = with_causal(mask, causal, queries)
    return _average(queries, keys, values, mask, scores.scaled_dot)[0]


@functools.cache
def _compiled() -> Callable[..., Array]:
    import jax

    return jax.jit(_scaled_dot_average, static_argnames="causal")


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
    xp = arguments.one_library(like=like)
    return _earlier(xp, sizes.count(n=n), like)


def _earlier(xp: Any, n: int, like: Array) -> Array:
    position = xp.arange(n, device=device(like))
    return position[None, :] <= position[:, None]


def padding_mask(lengths: Int[Array, "..."], n: int) -> Bool[Array, "... 1 n"]:
    """Padding mask, True for the first lengths[b] of n keys.

    Args:
        lengths: integers of shape (...), one a sequence, from 0 to n.
        n: the padded length.

    Returns:
        Boolean, of shape (..., 1, n), the same for every query.

    Raises:
        ValueError: lengths that are no integers from 0 to n.
        TypeError: lengths that are no array.
    """
    xp = arguments.one_library(lengths=lengths)
    position = xp.arange(sizes.count(n=n), device=device(lengths))
    if not xp.isdtype(lengths.dtype, "integral"):
        raise ValueError(f"lengths: got dtype {lengths.dtype}, expected integers")
    ends = xp.astype(lengths, position.dtype)
    if arguments.known_true(xp.any((ends < 0) | (ends > n))):
        raise ValueError(f"lengths: got {lengths}, expected integers from 0 to n = {n}")
    return (position < ends[..., None])[..., None, :]
