"""Many devices: one long sequence on all of them, and what places a model there.

An array is whole for whoever writes the program, and every device holds its part of it. What
travels between devices the functions here say themselves, in jax.shard_map, for which JAX has to be
0.6.1 or newer; for a model placed by shard, jax.jit inserts it.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from jaxtyping import Float

from attnbook import linear_attention as states
from attnbook._validation import upcast_half
from attnbook.attention import scores
from attnbook.exact import online_softmax
from attnbook.exact.inputs import check_inputs
from attnbook.jax.sharding import axis_and_size, collectives, make_mesh, shard
from attnbook.linear_attention.inputs import check_state_inputs

__all__ = [
    "collectives",
    "linear_attention",
    "make_mesh",
    "ring_attention",
    "shard",
]


def ring_attention(
    q: Float[Array, "... m d"],
    k: Float[Array, "... n d"],
    v: Float[Array, "... n p"],
    *,
    causal: bool = False,
    mesh: Mesh | None = None,
) -> Float[Array, "... m p"]:
    """Attention of tokens split over devices; blocks of keys and values travel round a ring.

    The ring of attnbook.torch.distributed.ring_attention, of whole arrays that the devices divide:
    W − 1 blocks of keys and W − 1 of values are sent. The gradient is JAX's own: it keeps the
    blocks that came by, and computes their scores again.

    Args:
        q: queries of shape (..., m, d); the devices divide m.
        k: keys of shape (..., n, d); the devices divide n.
        v: values of shape (..., n, p); leading axes broadcast.
        causal: query i may attend to the keys j ≤ i alone; for as many queries as keys.
        mesh: of one axis; all devices without it.

    Returns:
        The averages, of shape (..., m, p), split along the tokens.

    Raises:
        ValueError: shapes or dtypes that do not fit, tokens that the devices do not divide, causal
            with other numbers of queries and keys.
        TypeError: arrays of another library.

    Source: Liu, Zaharia and Abbeel (2023), section 3; what is combined, Milakov and Gimelshein's
        (2018).
    """
    mesh = mesh or make_mesh()
    axis, world = axis_and_size(mesh)
    check_inputs(q, k, v, causal)
    _check_divided(world, q=q, k=k, v=v)
    turn = functools.partial(_ring, axis=axis, world=world, causal=causal)
    placed = tuple(_tokens(a.ndim, axis) for a in (q, k, v))
    result = _tokens(max(a.ndim for a in (q, k, v)), axis)
    return jax.shard_map(turn, mesh=mesh, in_specs=placed, out_specs=result)(q, k, v)


def _ring(q: Array, k: Array, v: Array, *, axis: str, world: int, causal: bool) -> Array:
    """What one device does: of its blocks (..., m / W, d), (..., n / W, d) and (..., n / W, p)."""
    wide, keys, values = upcast_half(jnp, q, k, v)
    mine = lax.axis_index(axis)
    neighbours = [(rank, (rank + 1) % world) for rank in range(world)]

    @jax.checkpoint  # of a block's scores nothing is kept for the gradient
    def part_of(keys: Array, values: Array, mask: Array | None) -> online_softmax.Partial:
        return online_softmax.unchecked_partial(
            scores.unchecked_scaled_dot(wide, keys), values, mask
        )

    def turn(carried: Any, step: Array) -> tuple[Any, None]:
        found, keys, values = carried
        keys, values = (lax.ppermute(a, axis, neighbours) for a in (keys, values))

        def combined() -> online_softmax.Partial:
            return online_softmax.unchecked_combine(found, part_of(keys, values, None))

        # the block of rank mine − step is here; where that is below 0, one of later tokens
        skipped = lambda: found  # noqa: E731
        found = lax.cond(step <= mine, combined, skipped) if causal else combined()
        return (found, keys, values), None

    rows = q.shape[-2]
    own = part_of(keys, values, jnp.tri(rows, dtype=bool) if causal else None)
    (found, _, _), _ = lax.scan(turn, (own, keys, values), jnp.arange(1, world))
    return online_softmax.unchecked_finish(found)[0].astype(v.dtype)


def linear_attention(
    q: Float[Array, "... n d"],
    k: Float[Array, "... n d"],
    v: Float[Array, "... n p"],
    *,
    decay: Float[Array, "... n"] | None = None,
    beta: Float[Array, "... n"] | None = None,
    chunk: int = 64,
    mesh: Mesh | None = None,
) -> tuple[Float[Array, "... n p"], Float[Array, "... d p"]]:
    """The numbers of attnbook.linear_attention.recurrent; devices hand over states, not tokens.

    Every device reads its own tokens once, from an empty state. To the state that came before they
    are one map, S ↦ A S + B. The maps are gathered; each device applies those before its own,
    which gives S, and adds Rᵀ S to its outputs, where column t of R is what S means for token t.
    Without beta A is a number, so that d p + 1 numbers travel, whatever the number of tokens; with
    beta, d (d + p).

    Args:
        q: of shape (..., n, d); the devices divide n.
        k: of shape (..., n, d).
        v: of shape (..., n, p); leading axes broadcast.
        decay: of shape (..., n), as in recurrent.
        beta: of shape (..., n), as in recurrent.
        chunk: tokens that a device computes at once, as in attnbook.linear_attention.chunked.
        mesh: of one axis; all devices without it.

    Returns:
        The outputs, of shape (..., n, p), split along the tokens, and the last state, of shape
        (..., d, p), whole on every device.

    Raises:
        ValueError: shapes or dtypes that do not fit, tokens that the devices do not divide, a chunk
            that is no integer of 1 or more.
        TypeError: arrays of another library.

    Source: Sun et al. (2024), section 3, for states that travel; gathered, Sun et al. (2025); maps
        of states, Martin and Cundy (2018), section 2.
    """
    mesh = mesh or make_mesh()
    axis, world = axis_and_size(mesh)
    _, tokens, (decay, beta, _), lead = check_state_inputs(
        {"q": q, "k": k, "v": v}, {"decay": decay, "beta": beta}
    )
    _check_divided(world, q=q)
    given = [jnp.broadcast_to(a, (*lead, *a.shape[-2:])) for a in tokens]
    rates = {
        name: jnp.broadcast_to(a, (*lead, a.shape[-1]))
        for name, a in (("decay", decay), ("beta", beta))
        if a is not None
    }
    hand_over: Any = functools.partial(_hand_over, chunk=chunk, axis=axis, world=world)
    token = _tokens(len(lead) + 2, axis)
    outputs, last = jax.shard_map(
        hand_over, mesh=mesh, in_specs=token, out_specs=(token, P()), check_vma=False
    )(*given, rates)
    return outputs.astype(q.dtype), last


def _hand_over(
    q: Array, k: Array, v: Array, rates: dict[str, Array], *, chunk: int, axis: str, world: int
) -> tuple[Array, Array]:
    """What one device does: of its blocks of q, k and v, and of its numbers per token."""
    outputs, answers, mine = _map_of_tokens(q, k, v, chunk, **rates)
    maps, writes = lax.all_gather(mine, axis)
    state = before = jnp.zeros_like(mine[1])
    for rank in range(world):
        before = jnp.where(rank == lax.axis_index(axis), state, before)
        state = _apply(maps[rank], state) + writes[rank]
    return outputs + answers @ before, state


def _map_of_tokens(
    q: Array, k: Array, v: Array, chunk: int, decay: Array | None = None, beta: Array | None = None
) -> tuple[Any, Array, tuple[Array, Any]]:
    """Tokens from an empty state: outputs, what a state before them adds, and their map (A, B)."""
    p, d = v.shape[-1], k.shape[-1]
    if beta is None:
        kept = jnp.ones_like(q[..., 0]) if decay is None else jnp.cumprod(decay, axis=-1)
        outputs, write = states.chunked(q, k, v, decay=decay, chunk=chunk)
        return outputs, kept[..., None] * q, (kept[..., -1:, None], write)
    # d more columns of values, all 0, from a state I: what becomes of I is A
    columns = jnp.concatenate([v, jnp.zeros_like(k)], axis=-1)
    start = jnp.concatenate([jnp.zeros((d, p), v.dtype), jnp.eye(d, dtype=v.dtype)], axis=-1)
    outputs, state = states.chunked(q, k, columns, decay=decay, beta=beta, chunk=chunk, state=start)
    return outputs[..., :p], outputs[..., p:], (state[..., p:], state[..., :p])


def _apply(linear_map: Array, state: Array) -> Array:
    """A S, where A may be a number."""
    return linear_map * state if linear_map.shape[-2:] == (1, 1) else linear_map @ state


def _tokens(axes: int, axis: str) -> P:
    """Split along the tokens, the last of so many axes but one."""
    return P(*[None] * (axes - 2), axis)


def _check_divided(world: int, **arrays: Array) -> None:
    """Check that the devices divide the tokens, and that there are some."""
    for name, array in arrays.items():
        if not isinstance(array, Array):
            raise TypeError(f"{name}: got a {type(array).__name__}, expected an array of JAX")
        n = array.shape[-2]
        if n == 0 or n % world:
            raise ValueError(f"{name}: got {n} rows, expected a multiple of {world}, the devices")
