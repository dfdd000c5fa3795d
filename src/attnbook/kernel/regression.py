"""Kernel regression: the prediction at a query is an average of values, weighted by a kernel."""

import math
from contextlib import nullcontext
from typing import Any, Literal, overload

import numpy as np
from array_api_compat import array_namespace, device, is_jax_array, is_torch_array
from jaxtyping import Bool, Float

from attnbook._fast import gaussian
from attnbook._fast.chunked import map_query_chunks
from attnbook._validation.arrays import (
    cast_parameter,
    check_attention,
    check_bandwidth,
    check_finite,
    check_heads,
    check_qkv,
    is_concretely_true,
    promote_autocast,
    upcast_half,
)
from attnbook._validation.callables import check_kernel
from attnbook._validation.options import check_function, flags
from attnbook._validation.types import Array
from attnbook.attention.distances import unchecked_distance
from attnbook.attention.scores import from_nearest, unchecked_gaussian_score
from attnbook.attention.weighted_average import masked_softmax
from attnbook.kernel import kernels


@overload
def nadaraya_watson(
    queries: Float[Array, "... m d"],
    keys: Float[Array, "... n d"],
    values: Float[Array, "... n p"],
    *,
    kernel: kernels.Kernel = kernels.gaussian,
    bandwidth: Any = 1.0,
    mask: Bool[Array, "..."] | None = None,
    return_weights: Literal[False] = False,
) -> Array: ...
@overload
def nadaraya_watson(
    queries: Float[Array, "... m d"],
    keys: Float[Array, "... n d"],
    values: Float[Array, "... n p"],
    *,
    kernel: kernels.Kernel = kernels.gaussian,
    bandwidth: Any = 1.0,
    mask: Bool[Array, "..."] | None = None,
    return_weights: Literal[True],
) -> tuple[Array, Array]: ...
@overload
def nadaraya_watson(
    queries: Float[Array, "... m d"],
    keys: Float[Array, "... n d"],
    values: Float[Array, "... n p"],
    *,
    kernel: kernels.Kernel = kernels.gaussian,
    bandwidth: Any = 1.0,
    mask: Bool[Array, "..."] | None = None,
    return_weights: bool,
) -> Array | tuple[Array, Array]: ...
def nadaraya_watson(
    queries: Float[Array, "... m d"],
    keys: Float[Array, "... n d"],
    values: Float[Array, "... n p"],
    *,
    kernel: kernels.Kernel = kernels.gaussian,
    bandwidth: Any = 1.0,
    mask: Bool[Array, "..."] | None = None,
    return_weights: bool = False,
) -> Any:
    """Nadaraya–Watson estimator, f̂(q_i) = Σ_j w_ij v_j with w_ij = K(u_ij) / Σ_l K(u_il).

    u_ij = ‖(q_i − k_j) / h‖ is the distance in bandwidths. Without return_weights the queries are
    taken in chunks, and memory grows with m + n, not with m × n. Large arrays of PyTorch go through
    its fused attention kernel, which adds an error to log K of 2e-5 in float32, 1e-9 in float64.

    Args:
        queries: points to predict at, of shape (..., m, d).
        keys: points with known values, of shape (..., n, d).
        values: of shape (..., n, p); leading axes broadcast.
        kernel: a function of u ≥ 0, such as kernels.gaussian.
        bandwidth: h > 0, a number, or (d,) numbers, one per coordinate; in the units of the keys.
        mask: boolean, of shape (..., m, n) or one that broadcasts with it, True = counts as a
            neighbour. Leading axes that only the mask has become axes of the output.
        return_weights: give the (..., m, n) weights too.

    Returns:
        Predictions of shape (..., m, p), or the pair (predictions, weights). A query with no
        neighbour, all K(u_ij) = 0, is NaN. The Gaussian kernel never underflows: far from all data
        the prediction is the nearest key's value, the mean if rounding makes several as near. Where
        jax.jit or torch.compile hides the values, u² must not overflow.

    Raises:
        ValueError: a bandwidth that is not above 0, data that are empty, not finite or of shapes
            that do not fit, a kernel that is no function, or gives what is below 0 or not finite.
        TypeError: arrays of different libraries.

    Source: Nadaraya (1964), Watson (1964).
    """
    queries, keys, values = promote_autocast(queries, keys, values)
    flags(return_weights=return_weights)
    xp, dtype = check_attention(queries, keys, values, mask), queries.dtype
    queries, keys, values, h = _checked(xp, kernel, bandwidth, queries, keys, values)
    if not return_weights:
        return xp.astype(_fast_average(queries, keys, values, kernel, h, mask), dtype)
    weights, some = kernel_weights(queries, keys, kernel, h, mask)
    output = xp.where(some, weights @ values, math.nan)
    return xp.astype(output, dtype), xp.astype(xp.where(some, weights, math.nan), dtype)


def _checked(xp: Any, kernel: Any, bandwidth: Any, *data: Array) -> tuple[Array, ...]:
    """Data of which the last two are keys and values, in float32 or wider, and a bandwidth."""
    names = ("queries", "keys", "values")[-len(data) :]
    check_finite(xp, **dict(zip(names, data, strict=True)))
    check_function("attnbook.kernels.gaussian", kernel=kernel)
    data = upcast_half(xp, *data)
    return (*data, check_bandwidth(xp, bandwidth, data[-2]))


def _fast_average(
    queries: Array, keys: Array, values: Array, kernel: kernels.Kernel, h: Any, mask: Array | None
) -> Array:
    """Predictions without the (m, n) weights: by a fused kernel, or in chunks of queries."""
    if kernel is kernels.gaussian and mask is None:
        wide = gaussian.precision(queries, keys, values, h)
        if wide is not None:
            return gaussian.average(queries, keys, values, h, wide)
    some = True if mask is None else array_namespace(queries).any(mask, axis=-1, keepdims=True)
    return _averages(_average, (queries, mask), (keys, values, h), kernel, some)


def leave_one_out(
    keys: Float[Array, "... n d"],
    values: Float[Array, "... n p"],
    *,
    kernel: kernels.Kernel = kernels.gaussian,
    bandwidth: Any = 1.0,
) -> Float[Array, "... n p"]:
    """Leave-one-out prediction, f̂₋ᵢ(k_i): nadaraya_watson at every key from all the others.

    Setting the weight w_ii to 0 before the weights are normalised equals n refits, in one pass.

    Args:
        keys: of shape (..., n, d).
        values: of shape (..., n, p).
        kernel: a function of u ≥ 0.
        bandwidth: h > 0, a number, or (d,) numbers, one per coordinate.

    Returns:
        Predictions of shape (..., n, p); NaN where a key has no neighbour but itself.

    Raises:
        ValueError, TypeError: as nadaraya_watson.

    Source: Stone (1974) for the criterion; Härdle and Marron (1985) for kernel regression.
    """
    xp, dtype = check_qkv(keys=keys, values=values), keys.dtype
    keys, values, h = _checked(xp, kernel, bandwidth, keys, values)
    rows = xp.arange(keys.shape[-2], device=device(keys))[:, None]
    some = keys.shape[-2] > 1
    output = _averages(_average_of_others, (keys, rows), (keys, values, h), kernel, some)
    return xp.astype(output, dtype)


def multi_head(
    queries: Float[Array, "... m d"],
    keys: Float[Array, "... n d"],
    values: Float[Array, "... n p"],
    *,
    bandwidths: Any,
    combination: Float[Array, " heads"],
    mask: Bool[Array, "..."] | None = None,
) -> Float[Array, "... m p"]:
    """Multi-head kernel regression, f̂(q) = Σ_h a_h f̂_h(q), a Gaussian estimator of each bandwidth.

    The combination is free in sign and sum: the prediction may leave the range of the values.

    Args:
        queries: of shape (..., m, d).
        keys: of shape (..., n, d).
        values: of shape (..., n, p).
        bandwidths: an array of shape (heads,) or (heads, d), each above 0.
        combination: a, an array of shape (heads,).
        mask: boolean, of shape (..., m, n) or one that broadcasts with it, True = counts as a
            neighbour. Leading axes that only the mask has become axes of the output.

    Returns:
        Predictions of shape (..., m, p); NaN where a query has no neighbour.

    Raises:
        ValueError, TypeError: as nadaraya_watson.
    """
    check_attention(queries, keys, values, mask)
    bandwidths, combination = check_heads(queries, bandwidths, combination)
    outputs = (
        nadaraya_watson(queries, keys, values, bandwidth=bandwidths[h, ...], mask=mask)
        for h in range(combination.shape[0])
    )
    return sum(combination[h] * output for h, output in enumerate(outputs))


def in_metric(
    queries: Float[Array, "... m d"],
    keys: Float[Array, "... n d"],
    values: Float[Array, "... n p"],
    *,
    metric: Float[Array, "r d"],
    mask: Bool[Array, "..."] | None = None,
) -> Float[Array, "... m p"]:
    """Gaussian kernel regression with scores −‖W(q − k)‖²/2: that of the points moved by W.

    Args:
        queries: of shape (..., m, d).
        keys: of shape (..., n, d).
        values: of shape (..., n, p).
        metric: W, an array of shape (r, d); the identity over h is one bandwidth h.
        mask: boolean, of shape (..., m, n) or one that broadcasts with it, True = counts as a
            neighbour. Leading axes that only the mask has become axes of the output.

    Returns:
        Predictions of shape (..., m, p); NaN where a query has no neighbour.

    Raises:
        ValueError, TypeError: as nadaraya_watson.

    Source: Weinberger and Tesauro (2007).
    """
    check_attention(queries, keys, values, mask)
    moved = cast_parameter(queries, ("r", queries.shape[-1]), of="queries", metric=metric).mT
    check_finite(array_namespace(queries), metric=metric)
    return nadaraya_watson(queries @ moved, keys @ moved, values, mask=mask)


def kernel_weights(
    queries: Array, keys: Array, kernel: kernels.Kernel, h: Any, mask: Array | None
) -> tuple[Array, Array]:
    """Weights w_ij = K(u_ij) / Σ_l K(u_il), (..., m, n), and which row has neighbours, (..., m, 1).

    The weights of a row without one are 0 here: NaN must come after the average, or a gradient
    would multiply it by 0, and be NaN for every key.
    """
    xp = array_namespace(queries)
    if kernel in (kernels.gaussian, _far_gaussian):  # a softmax has no 0/0 far from the data
        far = kernel is _far_gaussian
        with _quiet(queries):
            if far:
                score = from_nearest(queries, keys, h, mask)
            else:
                score = unchecked_gaussian_score(queries, keys, h)
            weights = masked_softmax(xp, score, mask)
        if not far and is_concretely_true(xp.any(xp.isnan(weights[..., :1]))):
            return kernel_weights(queries, keys, _far_gaussian, h, mask)
        if mask is None:
            return weights, weights[..., :1] >= 0  # every query has a neighbour
        return weights, xp.any(mask, axis=-1, keepdims=True)
    distance = unchecked_distance(queries, keys, h)
    similarity = check_kernel(kernel(distance), distance, mask)
    total = xp.sum(similarity, axis=-1, keepdims=True)
    some = total > 0
    return similarity / xp.where(some, total, xp.ones_like(total)), some


def _far_gaussian(u: Array) -> Array:
    """The Gaussian kernel, whose weights are to be taken from the nearest key."""
    return kernels.gaussian(u)


def _averages(average: Any, per_query: Any, shared: Any, kernel: Any, some: Any) -> Array:
    """Averages in chunks; again from the nearest key where all scores of a row overflowed in JAX.

    Elsewhere kernel_weights sees that itself; within a chunk JAX hides the values.
    """
    output = map_query_chunks(average, per_query, shared, kernel)
    xp = array_namespace(output)
    if (
        kernel is kernels.gaussian
        and is_jax_array(output)
        and is_concretely_true(xp.any(xp.isnan(output) & some))
    ):
        return map_query_chunks(average, per_query, shared, _far_gaussian)
    return output


def _quiet(like: Array) -> Any:
    """NumPy without its warnings: what overflows is computed again."""
    if is_torch_array(like) or is_jax_array(like):
        return nullcontext()
    return np.errstate(over="ignore", invalid="ignore")


def _average(queries: Array, mask: Any, keys: Array, values: Array, h: Any, kernel: Any) -> Array:
    weights, some = kernel_weights(queries, keys, kernel, h, mask)
    return array_namespace(queries).where(some, weights @ values, math.nan)


def _average_of_others(
    queries: Array, rows: Array, keys: Array, values: Array, h: Any, kernel: Any
) -> Array:
    position = array_namespace(keys).arange(keys.shape[-2], device=device(keys))
    return _average(queries, rows != position, keys, values, h, kernel)
