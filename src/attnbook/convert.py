"""The same layer in the other library: parameters are carried over bit for bit, by name."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from attnbook._validation import to_numpy as to_numpy
from attnbook.models.config import arguments


def torch_to_jax(layer: Any) -> Any:
    """The attnbook.jax twin of an attnbook.torch layer, on JAX's default device.

    What torch says of a parameter beside its numbers, requires_grad, JAX has no place for: in what
    comes back from it all parameters learn.

    Args:
        layer: a layer of attnbook.torch.

    Raises:
        TypeError: something else.
        ValueError: parameters of other names or shapes than the layer is made with, such as those
            of an adapter; a readout that is no longer tied to the embedding; float64 parameters
            while JAX has jax_enable_x64 off and would round them.
    """
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import torch

    import attnbook.jax
    import attnbook.torch

    if not isinstance(layer, torch.nn.Module):
        raise TypeError(f"layer: got {type(layer).__name__}, expected a layer of attnbook.torch")
    named = dict(layer.named_parameters(remove_duplicate=False))
    # its shapes alone: drawing numbers that are replaced would compile a program for each shape
    twin = eqx.filter_eval_shape(_twin(layer, attnbook.torch, attnbook.jax), key=jax.random.key(0))
    if getattr(layer, "tied", False) and named.pop("readout.weight") is not named.get(
        "embedding.weight"
    ):
        raise ValueError("layer: got a readout.weight of its own, expected the embedding's: tied")
    _same({name: tuple(parameter.shape) for name, parameter in named.items()}, _shapes(twin))
    copied = {}
    for name, parameter in named.items():
        dtype = str(parameter.dtype).removeprefix("torch.")
        array = jnp.array(to_numpy(parameter))  # a copy: the layer may learn on
        if dtype == "bfloat16":  # which NumPy does not have
            array = array.astype(dtype)
        if str(array.dtype) != dtype:
            raise ValueError(
                f"layer: {name} is {dtype}, which JAX would round to {array.dtype}: "
                'set jax.config.update("jax_enable_x64", True) first, or convert the layer'
            )
        copied[name] = array
    return jax.tree_util.tree_map_with_path(lambda path, leaf: copied.get(_name(path), leaf), twin)


def jax_to_torch(layer: Any) -> Any:
    """The attnbook.torch twin of an attnbook.jax layer, on the CPU and in evaluation mode.

    In that mode it gives what the JAX layer gives without a random key, dropout or not; .train()
    lets the dropout act. All its parameters learn.

    Args:
        layer: a layer of attnbook.jax.

    Raises:
        TypeError: something else.
        ValueError: parameters of other names or shapes than the layer is made with.
    """
    import equinox as eqx
    import torch

    import attnbook.jax
    import attnbook.torch

    if not isinstance(layer, eqx.Module):
        raise TypeError(f"layer: got {type(layer).__name__}, expected a layer of attnbook.jax")
    twin = _twin(layer, attnbook.jax, attnbook.torch)()
    named = dict(twin.named_parameters())
    _same(_shapes(layer), {name: tuple(parameter.shape) for name, parameter in named.items()})
    for name, parameter in named.items():
        array = _part(layer, name)
        half = str(array.dtype) == "bfloat16"
        copied = torch.from_numpy(np.array(to_numpy(array)))
        parameter.data = copied.bfloat16() if half else copied  # a tied one in both its places
    return twin.eval()


def _part(layer: Any, name: str) -> Any:
    """The parameter of a name such as layers.0.query.weight; a number is a place in a tuple."""
    for part in name.split("."):
        layer = layer[int(part)] if part.isdigit() else getattr(layer, part)
    return layer


def _name(path: Any) -> str:
    """The name that torch gives to the parameter at a path of JAX's."""
    import jax

    return jax.tree_util.keystr(path, simple=True, separator=".")


def _shapes(layer: Any) -> dict[str, tuple[int, ...]]:
    """The shapes of an attnbook.jax layer's parameters, by the names that torch gives them."""
    import jax
    import jax.numpy as jnp

    return {
        _name(path): tuple(leaf.shape)
        for path, leaf in jax.tree_util.tree_leaves_with_path(layer)
        if isinstance(leaf, jax.Array | jax.ShapeDtypeStruct)
        and jnp.issubdtype(leaf.dtype, jnp.inexact)
    }


def _same(got: dict[str, tuple[int, ...]], expected: dict[str, tuple[int, ...]]) -> None:
    """Check that a layer has the parameters of its twin, and no other."""
    for name in sorted(got.keys() | expected.keys()):
        if got.get(name) != expected.get(name):
            shapes = f"{got.get(name, 'none')}, expected {expected.get(name, 'none')}"
            raise ValueError(f"layer: got {name} of shape {shapes}")


def _twin(layer: Any, ours: Any, theirs: Any) -> Callable[..., Any]:
    """What makes the layer of one library that another library's has as its twin."""
    twins = {getattr(ours, n): getattr(theirs, n) for n in ours.__all__ if n[0].isupper()}
    kind = type(layer)
    if kind not in twins:
        names = ", ".join(known.__name__ for known in twins)
        raise TypeError(f"layer: got {kind.__name__}, expected one of {names}")
    given = arguments(kind, layer)
    return partial(twins[kind], **{name: _plain(value) for name, value in given.items()})


def _plain(value: Any) -> Any:
    """An argument as the other back end takes it."""
    if hasattr(value, "detach"):  # a tensor
        return value.detach().cpu().double().numpy()
    return np.asarray(value, dtype=np.float64) if hasattr(value, "shape") else value
