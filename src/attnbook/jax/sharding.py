"""A model on many devices: where its arrays lie is said once, and jax.jit inserts what travels."""

import re
from typing import Any, TypeVar

import equinox as eqx
import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from attnbook._validation import one_of, positive_int
from attnbook.distributed.shares import sizes_per_device
from attnbook.jax.attention import MultiHeadAttention
from attnbook.jax.blocks import MLP
from attnbook.jax.linear_attention import GatedDelta, LinearAttention

Model = TypeVar("Model")  # an Equinox module, or any other tree of arrays

KINDS = ("ddp", "fsdp", "heads")
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "collective-permute", "all-to-all")
SPLIT_LAYERS = (MultiHeadAttention, LinearAttention, GatedDelta, MLP)
# their rows are heads' or hidden units'
INTO_HEADS = ("query", "key", "value", "decay", "beta", "hidden", "gate")


def make_mesh(devices: int | None = None) -> Mesh:
    """Devices in a row, as one axis along which arrays can be split.

    Args:
        devices: how many, the first of jax.devices(); all of them without it.

    Returns:
        A mesh of shape (devices,), whose axis leaves it to jax.jit how arrays are split within.

    Raises:
        ValueError: a number that is no integer of 1 or more, or of more devices than there are.
    """
    present = jax.devices()
    count = len(present) if devices is None else positive_int(devices=devices)
    if count > len(present):
        raise ValueError(
            f"devices: got {count}, expected at most {len(present)}, as many as JAX has here; "
            f'jax.config.update("jax_num_cpu_devices", {count}) before its first use gives a CPU '
            "as many"
        )
    return jax.make_mesh(
        (count,), ("devices",), axis_types=(AxisType.Auto,), devices=present[:count]
    )


def shard(model: Model, mesh: Mesh, kind: str) -> Model:
    """The same model with its arrays on many devices; nothing else of it changes.

    A function under jax.jit computes with it what it computed before. jax.jit inserts what has to
    travel between the devices.

    Args:
        model: a layer, the state of an optimiser, or any other tree; what is no array stays.
        mesh: of one axis.
        kind: "ddp", a copy of every array on each device; "fsdp", every array split along its
            largest axis that the devices divide, and a copy of the others; "heads", the heads of
            attention layers and the hidden units of MLPs split, and a copy of the rest.

    Returns:
        The tree with other placements, of the same numbers.

    Raises:
        ValueError: another kind; for "heads" a tree without a layer that can be split, heads or
            hidden units that the devices do not divide.

    Source: the split of arrays Rajbhandari et al.'s (2020), stage 3; of heads and hidden units
        Shoeybi et al.'s (2019), section 3; placement by annotation Xu et al.'s (2021).
    """
    axis, world = axis_and_size(mesh)
    if one_of(KINDS, kind=kind) == "heads":
        return _shard_heads(model, mesh, axis, world)

    def place(leaf: Any) -> Any:
        if not eqx.is_array(leaf):
            return leaf
        return _put(leaf, mesh, _largest(leaf.shape, axis, world) if kind == "fsdp" else P())

    return jax.tree.map(place, model)


def _largest(shape: tuple[int, ...], axis: str, world: int) -> P:
    """A split along the largest axis of a shape that the devices divide, if there is one."""
    sizes = [size if size % world == 0 else 0 for size in shape]
    if not any(sizes):
        return P()
    place = sizes.index(max(sizes))
    return P(*(axis if i == place else None for i in range(len(shape))))


def _shard_heads(model: Model, mesh: Mesh, axis: str, world: int) -> Model:
    """The model with rows of what leads into heads split, and columns of what leads out."""
    found = 0

    def place_layer(part: Any) -> Any:
        nonlocal found
        if not isinstance(part, SPLIT_LAYERS):
            return _put(part, mesh, P()) if eqx.is_array(part) else part
        found += 1
        sizes_per_device(part, world)
        return jax.tree_util.tree_map_with_path(place, part)

    def place(path: Any, leaf: Any) -> Any:
        if not eqx.is_array(leaf):
            return leaf
        name = path[0].name
        if name in INTO_HEADS:
            return _put(leaf, mesh, P(axis))
        return _put(leaf, mesh, P(None, axis) if name == "output" and leaf.ndim == 2 else P())

    placed = jax.tree.map(place_layer, model, is_leaf=lambda part: isinstance(part, SPLIT_LAYERS))
    if not found:
        names = ", ".join(kind.__name__ for kind in SPLIT_LAYERS)
        raise ValueError(f"model: got no layer with heads or hidden units, expected one of {names}")
    return placed


def _put(array: Any, mesh: Mesh, spec: P) -> jax.Array:
    """An array where a mesh and a spec say, also if other processes hold parts of it."""
    sharding = NamedSharding(mesh, spec)
    if isinstance(array, jax.core.Tracer):  # within jax.jit, where there are no numbers yet
        return jax.lax.with_sharding_constraint(array, sharding)
    if sharding.is_fully_addressable or not getattr(array, "is_fully_addressable", True):
        return jax.device_put(array, sharding)
    whole = np.asarray(array)
    return jax.make_array_from_callback(whole.shape, sharding, lambda part: whole[part])


def axis_and_size(mesh: Mesh) -> tuple[str, int]:
    """The name of a mesh's only axis, and how many devices it has."""
    if len(mesh.axis_names) != 1:
        got = ", ".join(map(repr, mesh.axis_names))
        raise ValueError(f"mesh: got {len(mesh.axis_names)} axes, {got}, expected one")
    return mesh.axis_names[0], int(mesh.devices.size)


def collectives(compiled: Any) -> dict[str, int]:
    """How often each kind of exchange between devices stands in a compiled program.

    Within a loop it stands once, however often the loop turns.

    Args:
        compiled: what jax.jit(function).lower(...).compile() gives, or its text.

    Returns:
        A number for "all-reduce", "all-gather", "reduce-scatter", "collective-permute" and
        "all-to-all".
    """
    text = compiled if isinstance(compiled, str) else compiled.as_text()
    return {kind: len(re.findall(rf" {kind}(?:-start)?\(", text)) for kind in COLLECTIVES}
