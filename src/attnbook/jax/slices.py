"""A share of a layer, as one of several devices would hold it: some heads, or some hidden units."""

import operator
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from attnbook._validation import int_between, positive_int
from attnbook.distributed.shares import sizes_per_device
from attnbook.jax.attention import MultiHeadAttention
from attnbook.jax.blocks import MLP
from attnbook.models.config import arguments

Layer = TypeVar("Layer", MultiHeadAttention, MLP)


def slice_of(layer: Layer, rank: int, world: int) -> Layer:
    """What a rank holds of a layer: 1 / W of its heads, or of its hidden units.

    Σ_r slice_of(layer, r, W)(x) = layer(x), as attnbook.torch.distributed.slice_of, whose arguments
    and errors these are, of layers of attnbook.jax.

    Source: Shoeybi et al. (2019), section 3.
    """
    if not isinstance(layer, MultiHeadAttention | MLP):
        got = type(layer).__name__
        raise TypeError(f"layer: got a {got}, expected a MultiHeadAttention or an MLP")
    world = positive_int(world=world)
    rank = int_between(0, world - 1, rank=rank)
    options = arguments(type(layer), layer) | sizes_per_device(layer, world)
    # its arrays are shapes alone, which are to be replaced
    part = eqx.filter_eval_shape(type(layer), **options, key=jax.random.key(0))
    for name in ("query", "key", "value", "hidden", "gate", "output"):
        whole = getattr(layer, name, None)
        if whole is not None:  # an MLP may have no gate, and has no keys
            linear = _cut(whole, name == "output", rank, world)
            part = eqx.tree_at(operator.attrgetter(name), part, linear)
    return part


def _cut(linear: eqx.nn.Linear, out: bool, rank: int, world: int) -> eqx.nn.Linear:
    """Rows of a matrix that leads into heads, columns of the one that leads out of them."""
    weight = jnp.split(linear.weight, world, axis=1 if out else 0)[rank]
    bias = linear.bias
    if bias is not None and not out:
        bias = jnp.split(bias, world)[rank]
    elif rank > 0:
        bias = None
    rows, columns = weight.shape
    made = eqx.filter_eval_shape(
        eqx.nn.Linear, columns, rows, use_bias=bias is not None, key=jax.random.key(0)
    )
    arrays = (weight,) if bias is None else (weight, bias)
    return eqx.tree_at(lambda linear: (linear.weight, linear.bias)[: len(arrays)], made, arrays)
