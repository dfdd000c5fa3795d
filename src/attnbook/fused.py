"""PyTorch's fused attention kernel, which never holds the (m, n) weights, where it is faster.

Gaussian kernel regression goes through it too. In ‖q − k‖² the term ‖q‖² is the same for every key,
so a softmax does not see it:

    softmax_j(−‖q − k_j‖²/2h²) = softmax_j(q·k_j/h² − ‖k_j‖²/2h²),

a dot-product attention with one more coordinate, −‖k_j‖²/2h², which the query meets with a 1. The
expanded square cancels, so that way is open only while the data lie within REACH bandwidths of
their centre.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from attnbook import streaming
from attnbook.arguments import known_true

Array = Any

FEWEST = 2**12  # weights, from which on the fused kernel repays the cost of its call
REACH = 13.0  # bandwidths; the scores' error is at most about REACH² × eps, 2e-5 in float32
WIDTH = 16  # columns are padded to multiples of it, where the fused kernels are fastest


def takes(queries: Array, keys: Array, values: Array) -> bool:
    """Whether scaled dot-product attention of these arrays goes through the fused kernel.

    Small ones do not, nor those that torch.func or forward-mode differentiation looks into: the
    kernel has neither a forward-mode nor a second derivative.
    """
    if not is_torch_array(queries) or queries.numel() == 0 or keys.numel() == 0:
        return False
    import torch

    if not torch.compiler.is_compiling():
        duals = map(torch.autograd.forward_ad.unpack_dual, (queries, keys, values))
        if any(dual.tangent is not None for dual in duals):
            return False
        if torch._C._are_functorch_transforms_active():
            return False
    if queries.is_cuda and queries.dtype == torch.float64:
        return False  # CUDA has no fused kernel for it
    batch = math.prod(np.broadcast_shapes(tuple(queries.shape[:-2]), tuple(keys.shape[:-2])))
    return batch * queries.shape[-2] * keys.shape[-2] >= FEWEST


def scaled_dot_average(
    queries: Array, keys: Array, values: Array, mask: Array | None, plain: Callable[..., Array]
) -> Array:
    """Scaled dot-product attention; plain, the formula itself, gives the second derivatives."""
    import torch

    arrays = (queries, keys, values)
    wanted = torch.is_grad_enabled() and any(a.requires_grad for a in arrays)
    if wanted and not torch.compiler.is_compiling():
        return _differentiable()(*arrays, mask, plain)
    return _fused(*arrays, mask)


def _fused(queries: Array, keys: Array, values: Array, mask: Array | None) -> Array:
    """Through the kernel's four axes (batch, head, row, column) and equal widths, and back.

    On a GPU it computes half precision with float32 sums; on the CPU float32 takes its place.
    """
    from torch.nn.functional import scaled_dot_product_attention

    dtype = queries.dtype
    if dtype.itemsize < 4 and not queries.is_cuda:
        queries, keys, values = queries.float(), keys.float(), values.float()

    m, n, d, p = queries.shape[-2], keys.shape[-2], keys.shape[-1], values.shape[-1]
    arrays = (queries, keys, values)
    shapes = [tuple(a.shape[:-2]) for a in (*arrays, mask) if a is not None]
    lead, width = np.broadcast_shapes(*shapes), max(d, p)
    q, k, v = (_four_axes(a, lead, width) for a in arrays)
    if mask is not None:
        mask = mask.expand(m, n) if mask.ndim <= 2 else mask.expand(*lead, m, n)
        mask = mask if mask.ndim == 2 else mask.reshape(-1, 1, m, n)
    output = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1 / math.sqrt(d))
    return output.reshape(*lead, m, width)[..., :p].to(dtype)


def _four_axes(array: Array, lead: tuple[int, ...], width: int) -> Array:
    """The leading axes as one, an axis of one head, and the columns filled up with zeros."""
    from torch.nn.functional import pad

    missing = width - array.shape[-1]
    array = pad(array, (0, missing)) if missing else array  # to pad with nothing is a copy
    return array.expand(*lead, -1, -1).reshape(-1, 1, array.shape[-2], width)


@functools.cache
def _differentiable() -> Callable[..., Array]:
    """The fused kernel with its own first derivative, and those of plain beyond."""
    import torch

    class Fused(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, queries: Any, keys: Any, values: Any, mask: Any, plain: Any) -> Any:
            ctx.save_for_backward(queries, keys, values, mask)
            ctx.plain = plain
            with torch.enable_grad():
                ctx.inner = [
                    a.detach().requires_grad_(need)
                    for a, need in zip((queries, keys, values), ctx.needs_input_grad, strict=False)
                ]
                ctx.output = _fused(ctx.inner[0], ctx.inner[1], ctx.inner[2], mask)
            return ctx.output.detach()

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            needed, higher = ctx.needs_input_grad[:3], torch.is_grad_enabled()
            if higher:  # a view for each place: self-attention has one tensor in all three
                *saved, mask = ctx.saved_tensors
                inner = [a.view_as(a) for a in saved]
                output = ctx.plain(*inner, mask)
            else:
                inner, output = ctx.inner, ctx.output
            wanted = [a for a, need in zip(inner, needed, strict=True) if need]
            found = iter(
                torch.autograd.grad(
                    output, wanted, gradient, retain_graph=True, create_graph=higher
                )
            )
            return (*(next(found) if need else None for need in needed), None, None)

    return Fused.apply


def fits(queries: Array, keys: Array, values: Array, bandwidth: Any) -> bool:
    """Whether the fused way is open: large torch arrays, no gradient asked for, no cancellation."""
    if not is_torch_array(queries):
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


def gaussian_average(queries: Array, keys: Array, values: Array, bandwidth: Any) -> Array:
    """nadaraya_watson with the Gaussian kernel, for arrays that fit. Shapes as there."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    q, k = _centred(queries, keys, bandwidth)
    q = torch.cat([q, torch.ones_like(q[..., :1])], dim=-1)
    k = torch.cat([k, -0.5 * (k * k).sum(-1, keepdim=True)], dim=-1)
    width = WIDTH * math.ceil(max(k.shape[-1], values.shape[-1]) / WIDTH)
    lead = np.broadcast_shapes(*(tuple(a.shape[:-2]) for a in (q, k, values)))
    q, k, v = (_four_axes(a, lead, width) for a in (q, k, values))
    output = scaled_dot_product_attention(q, k, v, scale=1.0)
    return output.reshape(*lead, queries.shape[-2], width)[..., : values.shape[-1]]


def _centred(queries: Array, keys: Array, bandwidth: Any) -> tuple[Array, Array]:
    """Queries and keys in bandwidths from the keys' mean."""
    centre = keys.mean(-2, keepdim=True)
    return (queries - centre) / bandwidth, (keys - centre) / bandwidth
