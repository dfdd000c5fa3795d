"""Exact attention in blocks as a kernel in Pallas: one program per block of queries.

Pallas compiles the kernel for a GPU or a TPU. On a CPU its interpreter runs the same lines.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as for_gpu
from jaxtyping import Float

from attnbook.exact.inputs import block_length, check_kernel_inputs, power_of_two


def kernel(q, k, v, output, log_sum_exp, *, n, scale, causal):
    """A block of queries of one head over the blocks of its keys, n of them."""
    queries, rows = q[...], q.shape[0]
    tile = (rows, rows)  # as many keys at a time
    first = pl.program_id(1) * rows
    row = first + jax.lax.broadcasted_iota(jnp.int32, tile, 0)

    def add_block(number, part):
        top, total, weighted = part
        here = pl.ds(number * rows, rows)
        keys, values = k[here, :], v[here, :]
        scores = _product(queries, keys.T) * scale
        key = number * rows + jax.lax.broadcasted_iota(row.dtype, tile, 1)
        seen = (key < n) & (key <= row) if causal else key < n
        scores = jnp.where(seen, scores, -jnp.inf)
        larger = jnp.maximum(top, scores.max(axis=1, keepdims=True))
        weights, kept = jnp.exp(scores - larger), jnp.exp(top - larger)
        total = kept * total + weights.sum(axis=1, keepdims=True)
        found = _product(weights.astype(values.dtype), values)
        return larger, total, kept * weighted + found

    zeros = jnp.zeros((rows, 1), jnp.float32)
    start = zeros - jnp.inf, zeros, jnp.zeros(output.shape, jnp.float32)
    end = pl.program_id(1) + 1 if causal else k.shape[0] // rows
    top, total, weighted = jax.lax.fori_loop(0, end, add_block, start)
    output[...] = (weighted / total).astype(output.dtype)
    log_sum_exp[...] = top + jnp.log(total)


def _product(a: Any, b: Any) -> Any:
    """A product of blocks with sums in float32, of float32 not rounded before."""
    precision = jax.lax.Precision.HIGHEST if a.dtype == jnp.float32 else None
    return jnp.dot(a, b, preferred_element_type=jnp.float32, precision=precision)


def flash(
    q: Float[Array, "... m d"],
    k: Float[Array, "... n d"],
    v: Float[Array, "... n p"],
    *,
    causal: bool = False,
) -> tuple[Float[Array, "... m p"], Float[Array, "... m"]]:
    """Attention and log-sum-exps as attnbook.exact.flash.forward gives them, by a kernel in Pallas.

    Arguments, results and errors are those of attnbook.torch.triton_flash.flash, of arrays of JAX.
    On a TPU the keys and values of a head must fit into its fast memory.

    Source: Dao (2024), algorithm 1; Rabe and Staats (2021), section 2.
    """
    for name, array in (("q", q), ("k", k), ("v", v)):
        if not isinstance(array, jax.Array):
            raise TypeError(f"{name}: got a {type(array).__name__}, expected a JAX array")
    lead = check_kernel_inputs(q, k, v, causal)
    return _flash(q, k, v, lead, causal)


@functools.partial(jax.custom_jvp, nondiff_argnums=(3, 4))
@functools.partial(jax.jit, static_argnums=(3, 4))
def _flash(q: Array, k: Array, v: Array, lead: tuple[int, ...], causal: bool) -> tuple[Any, Any]:
    """The kernel for each head and block of queries, on arrays filled up to whole blocks."""
    (m, d), (n, p), heads = q.shape[-2:], v.shape[-2:], math.prod(lead)
    wide = power_of_two(d), power_of_two(d), power_of_two(p)
    rows = block_length(max(wide), q.dtype.itemsize)
    if not (heads and m and n):
        return jnp.zeros((*lead, m, p), v.dtype), jnp.full((*lead, m), -jnp.inf, jnp.float32)
    arrays = []
    for a, width in zip((q, k, v), wide, strict=True):
        a = jnp.broadcast_to(a, (*lead, *a.shape[-2:])).reshape(heads, *a.shape[-2:])
        arrays.append(jnp.pad(a, ((0, 0), (0, -a.shape[1] % rows), (0, width - a.shape[2]))))
    run = functools.partial(_launch, n=n, scale=1 / math.sqrt(d), causal=causal, rows=rows)
    output, log_sum_exp = jax.lax.platform_dependent(
        *arrays,
        cpu=functools.partial(run, interpret=True),
        cuda=functools.partial(run, compiler_params=for_gpu.CompilerParams(num_stages=2)),
        rocm=functools.partial(run, compiler_params=for_gpu.CompilerParams(num_stages=1)),
        default=run,
    )
    output, log_sum_exp = output[:, :m, :p], log_sum_exp[:, :m, 0]
    return output.reshape(*lead, m, p), log_sum_exp.reshape(*lead, m)


@_flash.defjvp
def _no_gradient(*_: Any) -> Any:
    raise ValueError(
        "q, k, v: one wants a gradient, which this kernel has not: take jax.lax.stop_gradient of it"
    )


def _launch(
    q: Array, k: Array, v: Array, *, n: int, scale: float, causal: bool, rows: int, **how: Any
) -> Any:
    """The kernel for q (heads, m', d), k (heads, n', d) and v (heads, n', p), of whole blocks."""

    def of_rows(width: int) -> pl.BlockSpec:
        return pl.BlockSpec((None, rows, width), lambda head, block: (head, block, 0))

    def of_head(a: Array) -> pl.BlockSpec:
        return pl.BlockSpec((None, *a.shape[1:]), lambda head, block: (head, 0, 0))

    (heads, m, d), p = q.shape, v.shape[-1]
    call = pl.pallas_call(
        functools.partial(kernel, n=n, scale=scale, causal=causal),
        grid=(heads, m // rows),
        in_specs=[of_rows(d), of_head(k), of_head(v)],
        out_specs=[of_rows(p), of_rows(1)],
        out_shape=[
            jax.ShapeDtypeStruct((heads, m, p), v.dtype),
            jax.ShapeDtypeStruct((heads, m, 1), jnp.float32),
        ],
        **how,
    )
    return call(q, k, v)
