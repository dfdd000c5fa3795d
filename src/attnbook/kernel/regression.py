"""Kernel regression: the prediction at a query is an average of values, weighted by a kernel."""

import math
from typing import Any

from array_api_compat import array_namespace, device, is_torch_array
from jaxtyping import Bool, Float

from attnbook._types import Array
from attnbook._validation import (
    cast_parameter,
    check_attention,
    check_bandwidth,
    check_finite,
    check_function,
    check_qkv,
    common_namespace,
    is_concretely_true,
    promote_autocast,
    upcast_half,
)
from attnbook.attention.distances import unchecked_distance
from attnbook.attention.scores import unchecked_gaussian_score
from attnbook.attention.weighted_average import fused, masked_softmax
from attnbook.kernel import kernels
from attnbook.kernel.chunked import map_query_chunks


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
    taken in chunks, and memory grows with m + n, not with m × n. On a CPU, where no
    gradient is wanted, PyTorch's fused attention kernel takes its arrays, in float64.

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
        the prediction is the nearest key's value, the mean if rounding makes several as near, as
        long as u² does not overflow.

    Raises:
        ValueError: a bandwidth that is not above 0, data that are empty, not finite or of shapes
            that do not fit, a kernel that is no function, or gives what is below 0 or not finite.
        TypeError: arrays of different libraries.

    Source: Nadaraya (1964), Watson (1964).
    """
    queries, keys, values = promote_autocast(queries, keys, values)
    xp, dtype = check_attention(queries, keys, values, mask), queries.dtype
    check_finite(xp, queries=queries, keys=keys, values=values)
    check_function("attnbook.kernels.gaussian", kernel=kernel)
    queries, keys, values = upcast_half(xp, queries, keys, values)
    h = check_bandwidth(xp, bandwidth, keys)
    if not return_weights:
        if kernel is kernels.gaussian and mask is None and _fuses(queries, keys, values, h):
            return xp.astype(_fused(queries, keys, values, h), dtype)
        output = map_query_chunks(_average, (queries, mask), (keys, values, h), kernel)
        return xp.astype(output, dtype)
    weights, some = kernel_weights(queries, keys, kernel, h, mask)
    output = xp.where(some, weights @ values, math.nan)
    return xp.astype(output, dtype), xp.astype(xp.where(some, weights, math.nan), dtype)


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
    check_finite(xp, keys=keys, values=values)
    check_function("attnbook.kernels.gaussian", kernel=kernel)
    keys, values = upcast_half(xp, keys, values)
    h = check_bandwidth(xp, bandwidth, keys)
    rows = xp.arange(keys.shape[-2], device=device(keys))[:, None]
    output = map_query_chunks(_average_of_others, (keys, rows), (keys, values, h), kernel)
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

    Queries, keys, values and mask are those of nadaraya_watson, h an array of shape (heads,) or
    (heads, d), and a one of shape (heads,). Predictions, of shape (..., m, p), are NaN where a
    query has no neighbour.

    Raises:
        ValueError, TypeError: as nadaraya_watson.
    """
    check_attention(queries, keys, values, mask)
    combination = cast_parameter(queries, ("heads",), of="queries", combination=combination)
    common_namespace(queries=queries, bandwidths=bandwidths)
    count, d = combination.shape[0], queries.shape[-1]
    if tuple(bandwidths.shape) not in ((count,), (count, d)) or count == 0:
        raise ValueError(
            f"bandwidths: got shape {tuple(bandwidths.shape)}, expected ({count},) or ({count}, "
            f"{d}), one per head and at least one, as in combination"
        )
    outputs = (
        nadaraya_watson(queries, keys, values, bandwidth=bandwidths[h, ...], mask=mask)
        for h in range(count)
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

    Queries, keys, values and mask are those of nadaraya_watson, and the metric W is an array of
    shape (r, d); the identity over h is one bandwidth h. Predictions, of shape (..., m, p), are NaN
    where a query has no neighbour.

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
    if kernel is kernels.gaussian:  # a softmax subtracts the least distance: no 0/0 far from data
        weights = masked_softmax(xp, unchecked_gaussian_score(queries, keys, h), mask)
        if mask is None:
            return weights, xp.ones_like(weights[..., :1], dtype=xp.bool)
        return weights, xp.any(mask, axis=-1, keepdims=True)
    distance = unchecked_distance(queries, keys, h)
    similarity = _checked_kernel(kernel(distance), distance, mask)
    total = xp.sum(similarity, axis=-1, keepdims=True)
    some = total > 0
    return similarity / xp.where(some, total, xp.ones_like(total)), some


def _checked_kernel(found: Array, distance: Array, mask: Array | None) -> Array:
    """What a kernel gave for every distance, 0 or more, in its dtype; 0 where the mask says no."""
    xp = common_namespace(distance=distance, kernel=found)
    if tuple(found.shape) != tuple(distance.shape):
        got, expected = tuple(found.shape), tuple(distance.shape)
        raise ValueError(f"kernel: gave shape {got}, expected {expected}, one a distance")
    found = xp.astype(found, distance.dtype)
    if mask is not None:
        found = xp.where(mask, found, xp.zeros_like(found))
    wrong = ~((found >= 0) & xp.isfinite(found))
    if is_concretely_true(xp.any(wrong)):
        at = xp.argmax(xp.astype(xp.reshape(wrong, (-1,)), xp.int64))
        number, u = (float(xp.reshape(a, (-1,))[at]) for a in (found, distance))
        raise ValueError(f"kernel: gave {number} at u = {u}, expected finite numbers, 0 or more")
    return found


def _average(queries: Array, mask: Any, keys: Array, values: Array, h: Any, kernel: Any) -> Array:
    weights, some = kernel_weights(queries, keys, kernel, h, mask)
    return array_namespace(queries).where(some, weights @ values, math.nan)


def _fuses(queries: Any, keys: Any, values: Any, h: Any) -> bool:
    """Whether PyTorch's fused kernel is the way: on a CPU, where no gradient is wanted.

    The expanded square loses digits far from the keys' mean: at a thousand bandwidths log K is
    wrong by some 10⁻¹⁰ in float64, and beyond the formula is the way.
    """
    if not is_torch_array(queries) or queries.device.type != "cpu":
        return False
    if queries.numel() == 0 or values.numel() == 0:
        return False
    import torch

    arrays = [a for a in (queries, keys, values, h) if is_torch_array(a)]
    if torch.is_grad_enabled() and any(a.requires_grad for a in arrays):
        return False
    centre = keys.mean(-2, keepdim=True)
    far = sum(((a - centre) / h).square().sum(-1).max() for a in (queries, keys))
    return is_concretely_true(far <= 1e6)


def _fused(queries: Any, keys: Any, values: Any, h: Any) -> Any:
    """nadaraya_watson by attention with one more coordinate, as ‖q‖² is the same for every key.

    softmax_j(−‖q − k_j‖²/2) = softmax_j(q·k_j − ‖k_j‖²/2), from the keys' mean, in float64.
    """
    import torch

    centre = keys.double().mean(-2, keepdim=True)
    q, k = ((a.double() - centre) / h for a in (queries, keys))
    q = torch.cat([q, torch.ones_like(q[..., :1])], dim=-1)
    k = torch.cat([k, -0.5 * (k * k).sum(-1, keepdim=True)], dim=-1)
    output = fused(math.sqrt(q.shape[-1]) * q, k, values.double(), None, False)
    return output.to(queries.dtype)


def _average_of_others(
    queries: Array, rows: Array, keys: Array, values: Array, h: Any, kernel: Any
) -> Array:
    position = array_namespace(keys).arange(keys.shape[-2], device=device(keys))
    return _average(queries, rows != position, keys, values, h, kernel)
