"""PyTorch's fused attention kernel, which never holds the (m, n) weights, where it is faster.

Its arrays are PyTorch's, which is imported inside the functions: their annotation is Any.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

from attnbook._validation.arrays import broadcast_shapes, is_hidden, is_transforming

# Weights from which on the fused kernel repays its call where a gradient is wanted. Where none is,
# or the kernel is causal by itself, it always does: experiments.fused_kernel measures both borders.
MIN_WEIGHTS, MIN_MASKED_WEIGHTS = 2**18, 2**12


def is_applicable(queries: Any, keys: Any, values: Any) -> bool:
    """Whether the fused kernel can compute these torch arrays.

    Not those that torch.func or forward-mode differentiation looks into: the kernel has neither a
    forward-mode nor a second derivative.
    """
    import torch

    if not torch.compiler.is_compiling():
        duals = map(torch.autograd.forward_ad.unpack_dual, (queries, keys, values))
        if any(dual.tangent is not None for dual in duals):
            return False
        if is_transforming():
            return False
    if queries.is_cuda and queries.dtype == torch.float64:
        return False  # CUDA has no fused kernel for it
    return is_exporting() or (queries.numel() > 0 and keys.numel() > 0)


def is_exporting() -> bool:
    """Whether torch writes down a program, which is for all sizes."""
    import torch

    found: bool = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)()  # 2.7 on
    return found


def average(
    queries: Any,
    keys: Any,
    values: Any,
    mask: Any | None,
    causal: bool,
    plain: Callable[..., Any],
) -> Any:
    """Scaled dot-product attention; plain, the formula itself, gives the second derivatives."""
    import torch

    arrays = (queries, keys, values)
    wanted = torch.is_grad_enabled() and any(a.requires_grad for a in arrays)
    if wanted and not torch.compiler.is_compiling():
        return _differentiable()(*arrays, mask, causal, plain)
    return fused(*arrays, mask, causal)


def fused(
    queries: Any,
    keys: Any,
    values: Any,
    mask: Any | None,
    causal: bool,
    dropout: float = 0.0,
) -> Any:
    """Through the kernel's four axes (batch, head, row, column) and equal widths, and back.

    The share dropout of the weights is left out, drawn by PyTorch's own generator.

    On a GPU it computes half precision with float32 sums; on the CPU float32 takes its place. The
    kernel is causal by itself, or has a mask, but not both: then the mask hides what comes after.
    """
    from torch.nn.functional import scaled_dot_product_attention

    dtype = queries.dtype
    if dtype.itemsize < 4 and not queries.is_cuda:
        queries, keys, values = queries.float(), keys.float(), values.float()

    if mask is not None and is_hidden(queries):  # is_settled will not see a NaN
        seen = mask.any(-2) if mask.ndim > 1 else mask
        keys = keys.where(seen[..., None], 0)
    m, n, d, p = queries.shape[-2], keys.shape[-2], keys.shape[-1], values.shape[-1]
    arrays = (queries, keys, values)
    shapes = [tuple(a.shape[:-2]) for a in (*arrays, mask) if a is not None]
    lead, width = broadcast_shapes(*shapes), max(d, p)
    q, k, v = (four_axes(a, lead, width) for a in arrays)
    if mask is not None:
        mask, causal = (mask & mask.new_ones(m, n).tril() if causal else mask), False
        mask = mask.expand(m, n) if mask.ndim <= 2 else _four(mask.expand(*lead, m, n))
    output = scaled_dot_product_attention(
        q, k, v, attn_mask=mask, dropout_p=dropout, is_causal=causal, scale=1 / math.sqrt(d)
    )
    output = restore_axes(output, lead)
    output = output if p == width else output[..., :p]
    return output if output.dtype == dtype else output.to(dtype)


def is_settled(output: Any, queries: Any) -> bool:
    """Whether what the kernel gave under a mask, or causal, is what the formula gives.

    The kernel adds −∞ to the scores of masked keys: NaN stays NaN, and a row that does not see the
    key is NaN too. If causal, it leaves out later keys by the block, and with them 0 times the NaN
    of a value. Either way the sum of the output is no finite number. Where every query is NaN, as
    in a training that went astray, so is the formula: no need for all its weights.
    """
    import torch

    if is_hidden(output):
        return True
    output = output.detach()
    total = output.sum(dtype=torch.float32) if output.dtype.itemsize < 4 else output.sum()
    return math.isfinite(total) or not queries.isfinite().any()


def four_axes(array: Any, lead: tuple[int, ...], width: int) -> Any:
    """The array with these leading axes as two, batch and head, and columns of 0 up to a width."""
    from torch.nn.functional import pad

    missing = width - array.shape[-1]
    array = pad(array, (0, missing)) if missing else array  # to pad with nothing is a copy
    return _four(array if array.shape[:-2] == lead else array.expand(*lead, -1, -1))


def _four(array: Any) -> Any:
    """No step more than needed: each takes a microsecond, and the smallest kernel five."""
    if array.ndim == 4:
        return array
    return array.unsqueeze(1) if array.ndim == 3 else array.reshape(-1, 1, *array.shape[-2:])


def restore_axes(output: Any, lead: tuple[int, ...]) -> Any:
    """What the kernel gave for arrays of four_axes, with their own leading axes."""
    if len(lead) == 2:
        return output
    return output.squeeze(1) if len(lead) == 1 else output.reshape(*lead, *output.shape[-2:])


@functools.cache
def _differentiable() -> Callable[..., Any]:
    """The fused kernel with its own first derivative, and those of plain beyond."""
    import torch

    class Fused(torch.autograd.Function):
        @staticmethod
        def forward(
            ctx: Any, queries: Any, keys: Any, values: Any, mask: Any, causal: bool, plain: Any
        ) -> Any:
            ctx.save_for_backward(queries, keys, values, mask)
            ctx.causal, ctx.plain = causal, plain
            with torch.enable_grad():
                ctx.inner = [
                    a.detach().requires_grad_(need)
                    for a, need in zip((queries, keys, values), ctx.needs_input_grad, strict=False)
                ]
                ctx.output = fused(ctx.inner[0], ctx.inner[1], ctx.inner[2], mask, causal)
            return ctx.output.detach()

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            needed, higher = ctx.needs_input_grad[:3], torch.is_grad_enabled()
            if higher:  # a view for each place: self-attention has one tensor in all three
                *saved, mask = ctx.saved_tensors
                inner = [a.view_as(a) for a in saved]
                output = ctx.plain(*inner, mask, ctx.causal)
            else:
                inner, output = ctx.inner, ctx.output
            wanted = [a for a, need in zip(inner, needed, strict=True) if need]
            found = iter(
                torch.autograd.grad(
                    output, wanted, gradient, retain_graph=True, create_graph=higher
                )
            )
            return (*(next(found) if need else None for need in needed), None, None, None)

    return Fused.apply
