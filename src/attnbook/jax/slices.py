"""A share of a layer, as one of several devices would hold it: some heads, or some hidden units."""

from typing import Any, TypeVar

import equinox as eqx
import jax

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
    names = [name for name in ("query", "key", "value", "hidden", "gate") if hasattr(layer, name)]
    for name in names:
        whole = getattr(layer, name)
        if whole is not None:  # an MLP may have no gate
            part = _replaced(part, name, _rows(whole, rank, world))
    return _replaced(part, "output", _columns(layer.output, rank, world))


def _replaced(layer: Any, name: str, linear: eqx.nn.Linear) -> Any:
    return eqx.tree_at(lambda layer: getattr(layer, name), layer, linear)


def _rows(linear: eqx.nn.Linear, rank: int, world: int) -> eqx.nn.Linear:
    """Outputs of a linear layer: rows of its matrix, and entries of its bias."""
    size = linear.weight.shape[0] // world
    here = slice(rank * size, (rank + 1) * size)
    return _linear(linear.weight[here], None if linear.bias is None else linear.bias[here])


def _columns(linear: eqx.nn.Linear, rank: int, world: int) -> eqx.nn.Linear:
    """Inputs of a linear layer: columns of its matrix; the bias with rank 0."""
    size = linear.weight.shape[1] // world
    weight = linear.weight[:, rank * size : (rank + 1) * size]
    return _linear(weight, linear.bias if rank == 0 else None)


def _linear(weight: jax.Array, bias: jax.Array | None) -> eqx.nn.Linear:
    """A linear layer of given arrays."""
    rows, columns = weight.shape
    made = eqx.filter_eval_shape(
        eqx.nn.Linear, columns, rows, use_bias=bias is not None, key=jax.random.key(0)
    )
    made = eqx.tree_at(lambda linear: linear.weight, made, weight)
    return made if bias is None else eqx.tree_at(lambda linear: linear.bias, made, bias)
