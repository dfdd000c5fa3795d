"""Gaussian kernel regression through PyTorch's fused attention kernel.

In ‖q − k‖² the term ‖q‖² is the same for every key, so a softmax does not see it:

    softmax_j(−‖q − k_j‖²/2h²) = softmax_j(q·k_j/h² − ‖k_j‖²/2h²),

a dot-product attention with one more coordinate, −‖k_j‖²/2h², which the query meets with a 1. The
expanded square cancels: where the data lie within r bandwidths of their centre, the scores' error
is about r² × eps. float32 data that are spread wider are computed in float64; on a line, where
sorting tells which keys are near, most of them go in float32 all the same.

Its arrays are PyTorch's, and their annotation is Any, as in sdpa.
"""

import math
from typing import Any

from array_api_compat import is_torch_array

from attnbook._fast import chunked
from attnbook._fast.sdpa import four_axes, restore_axes
from attnbook._validation.arrays import broadcast_shapes, is_concretely_true, is_transforming

ERROR = {4: 2e-5, 8: 1e-9}  # of a score, allowed where the data's numbers have so many bytes
WIDTH = 16  # columns are padded to multiples of it, where the fused kernels are fastest
NEAR = 6.0  # bandwidths beyond the nearest key's distance: exp(−18) of its weight
ROWS = 1024  # queries on a line that are neighbours and are computed together


def max_radius(data: Any, computed: Any) -> float:
    """Bandwidths from the centre that data of one dtype may lie, computed in another."""
    import torch

    return math.sqrt(ERROR[data.itemsize] / torch.finfo(computed).eps)


def precision(queries: Any, keys: Any, values: Any, bandwidth: Any) -> Any:
    """The dtype that average can compute these arrays in; None where it should not.

    It is for large torch arrays whose derivatives nobody asks for: the CPU kernel has no second
    one. The narrowest dtype is given in whose reach all data lie.
    """
    if not is_torch_array(queries) or is_transforming():
        return None
    import torch

    arrays = [a for a in (queries, keys, values, bandwidth) if is_torch_array(a)]
    weights_bytes = queries.shape[-2] * keys.shape[-2] * queries.dtype.itemsize
    columns = max(keys.shape[-1] + 1, values.shape[-1])
    if weights_bytes <= chunked.CHUNK_BYTES or columns > 4 * WIDTH or 0 in queries.shape[:-2]:
        return None
    if torch.is_grad_enabled() and any(a.requires_grad for a in arrays):
        return None
    if chunked.in_forward_mode(*arrays):
        return None
    for wide in (queries.dtype, torch.float64):
        if queries.device.type != "cpu" and wide == torch.float64:
            return None  # CUDA has no fused kernel for it, and MPS no float64 at all
        q, k = _centred(queries.to(wide), keys.to(wide), bandwidth)
        farthest = torch.maximum((q * q).sum(-1).max(), (k * k).sum(-1).max())
        if is_concretely_true(farthest <= max_radius(queries.dtype, wide) ** 2):
            return wide
    return None


def average(queries: Any, keys: Any, values: Any, bandwidth: Any, wide: Any) -> Any:
    """nadaraya_watson with the Gaussian kernel, shapes as there; wide is what precision gave."""
    flat = queries.ndim == keys.ndim == values.ndim == 2
    if flat and keys.shape[-1] == 1 and wide.itemsize == 8:
        return _on_a_line(queries, keys, values, bandwidth)
    q, k = _centred(queries.to(wide), keys.to(wide), bandwidth)
    return _attend(q, k, values.to(wide)).to(queries.dtype)


def _centred(queries: Any, keys: Any, bandwidth: Any) -> tuple[Any, Any]:
    """Queries and keys in bandwidths from the keys' mean."""
    centre = keys.mean(-2, keepdim=True)
    return (queries - centre) / bandwidth, (keys - centre) / bandwidth


def _attend(q: Any, k: Any, values: Any) -> Any:
    """The averages with weights softmax(−‖q − k‖²/2), for points that are centred."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    q = torch.cat([q, torch.ones_like(q[..., :1])], dim=-1)
    k = torch.cat([k, -0.5 * (k * k).sum(-1, keepdim=True)], dim=-1)
    width = WIDTH * math.ceil(max(k.shape[-1], values.shape[-1]) / WIDTH)
    lead = broadcast_shapes(*(tuple(a.shape[:-2]) for a in (q, k, values)))
    columns = values.shape[-1]
    q, k, v = (four_axes(a, lead, width) for a in (q, k, values))
    output = scaled_dot_product_attention(q, k, v, scale=1.0)
    return restore_axes(output, lead)[..., :columns]


def _on_a_line(queries: Any, keys: Any, values: Any, bandwidth: Any) -> Any:
    """In order, where a few neighbouring queries need only the keys near them.

    If the nearest key is u₀ bandwidths away, one at u weighs exp((u₀² − u²)/2) times as much: less
    than the least number of the dtype from u² = u₀² − 2 log(tiny) on. What weighs anything is so
    near that float32 can do, counted from the middle of these queries.
    """
    import torch

    dtype = queries.dtype
    h = bandwidth.item() if is_torch_array(bandwidth) else bandwidth
    near = -2 * math.log(torch.finfo(dtype).tiny) * h * h
    asked, places = queries[:, 0].double().sort()
    line, order = keys[:, 0].double().sort()
    values = values[order]
    after = torch.searchsorted(line, asked).clamp(max=len(line) - 1)
    before = (after - 1).clamp(min=0)
    nearest = torch.minimum((line[after] - asked).abs(), (asked - line[before]).abs())
    output = values.new_empty((len(asked), values.shape[-1]))
    for start in range(0, len(asked), ROWS):
        part, its_places = asked[start : start + ROWS], places[start : start + ROWS]
        low, high = float(part[0]), float(part[-1])
        gap = float(nearest[start : start + ROWS].max())
        window = math.sqrt(gap * gap + near)
        ends = torch.searchsorted(line, line.new_tensor([low - window, high + window]), right=True)
        first, last = ends.tolist()
        half = (high - low) / 2
        close = half + gap <= h * (max_radius(dtype, dtype) - NEAR)
        wide = dtype if close else torch.float64
        middle = low + half
        q = ((part[:, None] - middle) / h).to(wide)
        k = ((line[first:last, None] - middle) / h).to(wide)
        output[its_places] = _attend(q, k, values[first:last].to(wide)).to(dtype)
    return output
