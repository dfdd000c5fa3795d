"""A weighted average in blocks of queries, so that the (m, n) weights never exist at once.

The formula is the caller's; here it is only mapped over blocks. Gradients compute each block's
weights again instead of keeping them.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_jax_array, is_torch_array

Array = Any

BLOCK_BYTES = 2**21  # of weights at a time: about what a processor's cache holds


def over_queries(
    average: Callable[..., Array],
    per_query: tuple[Array | None, ...],
    shared: tuple[Any, ...],
    kernel: Callable[[Array], Array],
) -> Array:
    """average(*per_query, *shared, kernel), a block of queries at a time.

    Args:
        average: gives the (..., rows, p) averages of a block.
        per_query: arrays with a row a query at axis −2, the queries first; None, and arrays with
            one row there, go to every block as they are.
        shared: what every block sees: keys of shape (..., n, d) first.
        kernel: passed on; for JAX, part of what a compiled block is known by.

    Returns:
        The averages of all queries, of shape (..., m, p).
    """
    queries, keys = per_query[0], shared[0]
    m = queries.shape[-2]
    batch = math.prod(np.broadcast_shapes(tuple(queries.shape[:-2]), tuple(keys.shape[:-2])))
    rows = BLOCK_BYTES // max(1, batch * keys.shape[-2] * queries.dtype.itemsize)
    rows = max(1, rows)
    if rows >= m or (is_torch_array(queries) and _torch_transforms()):
        return average(*per_query, *shared, kernel)
    cut = [a is not None and a.ndim >= 2 and a.shape[-2] == m for a in per_query]
    if is_jax_array(queries):
        return _jax_blocks()(average, kernel, rows, tuple(cut), per_query, shared)
    block = _torch_checkpoint(average) if is_torch_array(queries) else average
    blocks = [
        block(
            *(a[..., i : i + rows, :] if c else a for a, c in zip(per_query, cut, strict=True)),
            *shared,
            kernel,
        )
        for i in range(0, m, rows)
    ]
    return array_namespace(queries).concat(blocks, axis=-2)


def _torch_transforms() -> bool:
    """Whether torch.compile (which fuses better than blocks do) or torch.func is at work."""
    import torch

    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


def _torch_checkpoint(average: Callable[..., Array]) -> Callable[..., Array]:
    """The block's weights are computed again for its gradient, in place of being kept."""
    import torch
    from torch.utils.checkpoint import checkpoint

    if not torch.is_grad_enabled():
        return average
    return functools.partial(checkpoint, average, use_reentrant=False, preserve_rng_state=False)


@functools.cache
def _jax_blocks() -> Callable[..., Array]:
    import jax
    import jax.numpy as jnp

    @functools.partial(jax.jit, static_argnames=("average", "kernel", "rows", "cut"))
    def run(average: Any, kernel: Any, rows: int, cut: Any, per_query: Any, shared: Any) -> Array:
        """lax.map takes one query at a time and runs `rows` of them together."""

        def one(moving: Any) -> Array:
            parts = iter(moving)
            block = [next(parts)[..., None, :] if c else a for a, c in zip(per_query, cut)]
            return average(*block, *shared, kernel)[..., 0, :]

        moving = [jnp.moveaxis(a, -2, 0) for a, c in zip(per_query, cut, strict=True) if c]
        return jnp.moveaxis(jax.lax.map(jax.checkpoint(one), moving, batch_size=rows), 0, -2)

    return run
