"""Gaussian kernel regression through PyTorch's fused attention kernel.

In ‖q − k‖² the term ‖q‖² is the same for every key, so a softmax does not see it:

    softmax_j(−‖q − k_j‖²/2h²) = softmax_j(q·k_j/h² − ‖k_j‖²/2h²),

a dot-product attention with one more coordinate, −‖k_j‖²/2h², which the query meets with a 1. The
expanded square cancels, so that way is open only while the data lie within REACH bandwidths of
their centre.
"""

import math
from typing import Any

from array_api_compat import is_torch_array

from attnbook import streaming
from attnbook.arguments import broadcast_shapes, known_true, transforming
from attnbook.fused import four_axes

Array = Any

REACH = 13.0  # bandwidths; the scores' error is at most about REACH² × eps, 2e-5 in float32
WIDTH = 16  # columns are padded to multiples of it, where the fused kernels are fastest


def takes(queries: Array, keys: Array, values: Array, bandwidth: Any) -> bool:
    """Whether the fused way is open: large torch arrays, no gradient asked for, no cancellation."""
    if not is_torch_array(queries) or transforming():
        return False
    import torch

    arrays = [a for a in (queries, keys, values, bandwidth) if is_torch_array(a)]
    weights_bytes = queries.shape[-2] * keys.shape[-2] * queries.dtype.itemsize
    columns = max(keys.shape[-1] + 1, values.shape[-1])
    if weights_bytes <= streaming.BLOCK_BYTES or columns > 4 * WIDTH or 0 in queries.shape[:-2]:
        return False
    if queries.is_cuda and queries.dtype == torch.float64:
        return False  # CUDA has no fused kernel for it, and would hold all weights
    if torch.is_grad_enabled() and any(a.requires_grad for a in arrays):
        return False  # its CPU kernel has no second derivative
    scaled_queries, scaled_keys = _centred(queries, keys, bandwidth)
    farthest = torch.maximum((scaled_queries**2).sum(-1).max(), (scaled_keys**2).sum(-1).max())
    return known_true(farthest <= REACH**2)


def average(queries: Array, keys: Array, values: Array, bandwidth: Any) -> Array:
    """nadaraya_watson with the Gaussian kernel, for arrays that fit. Shapes as there."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    q, k = _centred(queries, keys, bandwidth)
    q = torch.cat([q, torch.ones_like(q[..., :1])], dim=-1)
    k = torch.cat([k, -0.5 * (k * k).sum(-1, keepdim=True)], dim=-1)
    width = WIDTH * math.ceil(max(k.shape[-1], values.shape[-1]) / WIDTH)
    lead = broadcast_shapes(*(tuple(a.shape[:-2]) for a in (q, k, values)))
    q, k, v = (four_axes(a, lead, width) for a in (q, k, values))
    output = scaled_dot_product_attention(q, k, v, scale=1.0)
    return output.reshape(*lead, queries.shape[-2], width)[..., : values.shape[-1]]


def _centred(queries: Array, keys: Array, bandwidth: Any) -> tuple[Array, Array]:
    """Queries and keys in bandwidths from the keys' mean."""
    centre = keys.mean(-2, keepdim=True)
    return (queries - centre) / bandwidth, (keys - centre) / bandwidth
