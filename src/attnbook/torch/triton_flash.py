"""Exact attention in blocks as a kernel in Triton: one program per block of queries.

Triton compiles the kernel for a GPU. On a machine without one its interpreter runs the same lines
with NumPy, slowly. Triton is not needed for anything else here: pip install triton, on Linux.
"""

from __future__ import annotations

import functools
import math
import os
from typing import Any

import torch
from jaxtyping import Float

from attnbook.exact.inputs import block_length, check_kernel_inputs, power_of_two

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # Triton asks while it is imported
try:
    import triton
    from triton import language as tl
except ImportError:  # flash says what to do
    triton = None


def kernel(
    q, k, v, output, log_sum_exp, m, n, d, p, scale,
    block: tl.constexpr, d_tile: tl.constexpr, p_tile: tl.constexpr,
    causal: tl.constexpr,
):  # fmt: skip
    """A block of queries of one head over the blocks of its keys."""
    head = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1) * block + tl.arange(0, block)[:, None]
    of_d, of_p = tl.arange(0, d_tile)[None, :], tl.arange(0, p_tile)[None, :]
    here = head * m + row  # among the rows of all heads
    queries = tl.load(q + here * d + of_d, (row < m) & (of_d < d), 0.0)
    top = tl.full((block, 1), -float("inf"), tl.float32)
    total = tl.zeros((block, 1), tl.float32)
    weighted = tl.zeros((block, p_tile), tl.float32)
    end = tl.minimum(n, (tl.program_id(1) + 1) * block) if causal else n
    for start in range(0, end, block):
        key = start + tl.arange(0, block)
        there, known = head * n + key[:, None], key[:, None] < n
        keys = tl.load(k + there * d + of_d, known & (of_d < d), 0.0)
        values = tl.load(v + there * p + of_p, known & (of_p < p), 0.0)
        scores = tl.dot(queries, tl.trans(keys), None, "ieee") * scale
        seen = key[None, :] < n
        seen = seen & (key[None, :] <= row) if causal else seen
        scores = tl.where(seen, scores, -float("inf"))
        larger = tl.maximum(top, tl.max(scores, 1, keep_dims=True))
        weights, kept = tl.exp(scores - larger), tl.exp(top - larger)
        total = kept * total + tl.sum(weights, 1, keep_dims=True)
        weights = weights.to(values.dtype)
        weighted = kept * weighted + tl.dot(weights, values, None, "ieee")
        top = larger
    average = weighted / total
    tl.store(output + here * p + of_p, average, (row < m) & (of_p < p))
    tl.store(log_sum_exp + here, top + tl.log(total), row < m)


def flash(
    q: Float[torch.Tensor, "... m d"],
    k: Float[torch.Tensor, "... n d"],
    v: Float[torch.Tensor, "... n p"],
    *,
    causal: bool = False,
) -> tuple[Float[torch.Tensor, "... m p"], Float[torch.Tensor, "... m"]]:
    """Attention and log-sum-exps as attnbook.exact.flash.forward gives them, by a kernel in Triton.

    Products and sums are accumulated in float32. It has no gradient; exact.flash.backward takes
    what it gives.

    Args:
        q: queries of shape (..., m, d), float32, float16 or bfloat16, on a GPU, or on the CPU of a
            machine without one.
        k: keys of shape (..., n, d).
        v: values of shape (..., n, p); leading axes broadcast. The widths d and p are at most 256.
        causal: query i may attend to the keys j ≤ i alone; for as many queries as keys.

    Returns:
        The averages, of shape (..., m, p) and the dtype of v, and the log-sum-exps, of shape (...,
        m) in float32. Where there are no keys they are 0 and −∞.

    Raises:
        ValueError: shapes, dtypes or devices that do not fit, causal with other numbers of queries
            and keys, arrays that want a gradient.
        TypeError: what is no PyTorch tensor.
        ImportError: Triton is not installed.

    Source: Dao (2024), algorithm 1; Tillet, Kung and Cox (2019) for Triton.
    """
    lead, launch = check_kernel_inputs(q, k, v, causal), _compiled()
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name}: got a {type(tensor).__name__}, expected a PyTorch tensor")
        if not tensor.is_cuda and isinstance(launch, triton.JITFunction):
            raise ValueError(
                f"{name}: got device {tensor.device}, expected a GPU. Triton's interpreter takes "
                "other tensors, if TRITON_INTERPRET=1 is set before Triton is imported"
            )
        if tensor.requires_grad and torch.is_grad_enabled():
            raise ValueError(f"{name}: wants a gradient, which this kernel has not: detach it")
    m, n, d, p = q.shape[-2], k.shape[-2], q.shape[-1], v.shape[-1]
    output = v.new_zeros((*lead, m, p))
    log_sum_exp = q.new_full((*lead, m), -math.inf, dtype=torch.float32)
    if output.numel() and n:
        tiles = power_of_two(d), power_of_two(p)
        block = block_length(max(tiles), q.element_size())
        arrays = [a.expand(*lead, -1, -1).contiguous() for a in (q, k, v)]
        if not q.is_cuda and q.dtype is torch.bfloat16:  # which the interpreter's products are not
            arrays = [a.float() for a in arrays]
        sizes = (m, n, d, p, 1 / math.sqrt(d), block, *tiles, causal)
        grid = math.prod(lead), -(-m // block)
        launch[grid](*arrays, output, log_sum_exp, *sizes, num_stages=2)
    return output, log_sum_exp


@functools.cache
def _compiled() -> Any:
    """The kernel as Triton runs it."""
    if triton is None:
        raise ImportError("triton: not installed, and this kernel needs it. Do: pip install triton")
    return triton.jit(kernel)
