"""A weighted average in chunks of queries, so that the (m, n) weights never exist at once.

The formula is the caller's; here it is only mapped over chunks. Gradients compute each chunk's
weights again instead of keeping them.
"""

import functools
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_jax_array, is_torch_array

from attnbook._types import Array

# Of weights at a time. Up to this size the C library keeps the memory of NumPy's arrays; larger
# ones it asks of the system anew in every step, and pays for every page.
CHUNK_BYTES = 2**17
JAX_CHUNKS = 32  # JAX fuses a chunk's steps into fewer arrays: its chunks may be larger
TORCH_CHUNKS = 32  # its threads meet after every step: the fewer, the less waiting when others run


def map_query_chunks(
    average: Callable[..., Array],
    per_query: tuple[Any, ...],
    shared: tuple[Any, ...],
    kernel: Callable[[Any], Array],
) -> Array:
    """average(*per_query, *shared, kernel), a chunk of queries at a time.

    Args:
        average: gives the (..., rows, p) averages of a chunk.
        per_query: arrays with a row per query at axis −2, the queries first; None, and arrays with
            one row there, go to every chunk as they are.
        shared: what every chunk sees: keys of shape (..., n, d) and values first.
        kernel: passed on; for JAX, part of what a compiled chunk is known by.

    Returns:
        The averages of all queries, of shape (..., m, p).
    """
    queries, keys = per_query[0], shared[0]
    m = queries.shape[-2]
    batch = math.prod(np.broadcast_shapes(tuple(queries.shape[:-2]), tuple(keys.shape[:-2])))
    itemsize = array_namespace(queries).finfo(queries.dtype).bits // 8
    larger = JAX_CHUNKS if is_jax_array(queries) else TORCH_CHUNKS if is_torch_array(queries) else 1
    rows = max(1, CHUNK_BYTES * larger // max(1, batch * keys.shape[-2] * itemsize))
    compiling = is_torch_array(queries) and sys.modules["torch"].compiler.is_compiling()
    if rows >= m or 0 in shared[1].shape or compiling:
        return average(*per_query, *shared, kernel)
    cut = tuple(a is not None and a.ndim >= 2 and a.shape[-2] == m for a in per_query)
    if is_jax_array(queries):
        return _jax_chunks()(average, kernel, rows, cut, per_query, shared)
    if is_torch_array(queries) and not _is_learned(kernel, queries):
        return _torch_chunks()(average, kernel, rows, cut, len(per_query), *per_query, *shared)
    parts = _parts(per_query, cut, rows)
    return array_namespace(queries).concat(
        [average(*part, *shared, kernel) for part in parts], axis=-2
    )


def _parts(per_query: tuple[Any, ...], cut: tuple[bool, ...], rows: int) -> Iterator[list[Any]]:
    """The per-query arrays, a chunk of rows at a time."""
    for start in range(0, per_query[0].shape[-2], rows):
        stop = min(start + rows, per_query[0].shape[-2])
        yield [a[..., start:stop, :] if c else a for a, c in zip(per_query, cut, strict=True)]


def _is_learned(kernel: Callable[[Any], Any], queries: Any) -> bool:
    """Whether the kernel holds numbers whose gradient is wanted: _torch_chunks would not see it."""
    import torch

    return torch.is_grad_enabled() and bool(kernel(queries.new_ones((1, 1))).requires_grad)


@functools.cache
def _torch_chunks() -> Callable[..., Array]:
    """Chunks whose weights are computed again for the gradient, of any order.

    torch.utils.checkpoint would do for a chunk, but it imports the compiler: seconds, and 600 MiB.
    The averages go into one array made beforehand: small ones left between freed large ones would
    keep the allocator from using their place again.
    """
    import torch

    class Chunks(torch.autograd.Function):
        @staticmethod
        def forward(
            ctx: Any, average: Any, kernel: Any, rows: int, cut: Any, split: int, *given: Any
        ) -> Any:
            ctx.save_for_backward(*(a for a in given if is_torch_array(a)))
            ctx.others = [None if is_torch_array(a) else (a,) for a in given]
            ctx.call = average, kernel, rows, cut, split
            per_query, shared = given[:split], given[split:]
            output, done = None, 0
            for part in _parts(per_query, cut, rows):
                chunk = average(*part, *shared, kernel)
                if output is None:
                    m = per_query[0].shape[-2]
                    output = chunk.new_empty((*chunk.shape[:-2], m, chunk.shape[-1]))
                output[..., done : done + chunk.shape[-2], :] = chunk
                done += chunk.shape[-2]
            return output

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            average, kernel, rows, cut, split = ctx.call
            needed = ctx.needs_input_grad[5:]
            higher, done = torch.is_grad_enabled(), 0
            with torch.enable_grad():
                # a view for each place: leave_one_out has one tensor as queries and as keys
                saved = (a.view_as(a) for a in ctx.saved_tensors)
                given = tuple(next(saved) if other is None else other[0] for other in ctx.others)
                wanted = [a for a, need in zip(given, needed, strict=True) if need]
                sums = [torch.zeros_like(a) for a in wanted]
                for part in _parts(given[:split], cut, rows):
                    chunk = average(*part, *given[split:], kernel)
                    here = gradient[..., done : done + chunk.shape[-2], :]
                    done += chunk.shape[-2]
                    if not chunk.requires_grad:  # a boxcar's weights are constants
                        continue
                    found = torch.autograd.grad(
                        chunk,
                        wanted,
                        here,  # not (chunk * here).sum(): autograd may ask with many at once
                        create_graph=higher,
                        allow_unused=True,
                        materialize_grads=True,
                    )
                    sums = [a + b for a, b in zip(sums, found, strict=True)]
            of_given = iter(sums)
            return *(None,) * 5, *(next(of_given) if need else None for need in needed)

    return Chunks.apply


@functools.cache
def _jax_chunks() -> Callable[..., Array]:
    import jax
    import jax.numpy as jnp

    @functools.partial(jax.jit, static_argnames=("average", "kernel", "rows", "cut"))
    def run(average: Any, kernel: Any, rows: int, cut: Any, per_query: Any, shared: Any) -> Array:
        """lax.map takes one query at a time and runs `rows` of them together."""

        def one(moving: Any) -> Array:
            parts = iter(moving)
            chunk = [
                next(parts)[..., None, :] if c else a for a, c in zip(per_query, cut, strict=True)
            ]
            return average(*chunk, *shared, kernel)[..., 0, :]

        moving = [jnp.moveaxis(a, -2, 0) for a, c in zip(per_query, cut, strict=True) if c]
        return jnp.moveaxis(jax.lax.map(jax.checkpoint(one), moving, batch_size=rows), 0, -2)

    return run
