"""The same layer in the other library: parameters are carried over bit for bit, by name."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from attnbook._validation import to_numpy as to_numpy
from attnbook.models.config import arguments

DTYPES = ("float16", "bfloat16", "float32", "float64")  # of parameters that both libraries hold


def torch_to_jax(layer: Any) -> Any:
    """The attnbook.jax twin of an attnbook.torch layer, on JAX's default device.

    What torch says of a parameter beside its numbers, requires_grad, JAX has no place for: in what
    comes back from it all parameters learn.

    Args:
        layer: a layer of attnbook.torch.

    Raises:
        TypeError: something else.
        ValueError: parameters of other names, shapes or dtypes than the layer is made with, such as
            those of an adapter; norms of another eps than it is made with; a readout that is no
            longer tied to the embedding; on the device meta; float64 parameters while JAX has
            jax_enable_x64 off and would round them.
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
    for name, parameter in named.items():
        dtype = str(parameter.dtype).removeprefix("torch.")
        if dtype not in DTYPES or parameter.is_meta:
            got = "on the device meta, without numbers" if parameter.is_meta else dtype
            raise ValueError(f"layer: {name} is {got}, expected {' or '.join(DTYPES)}")
    # its shapes alone: drawing numbers that are replaced would compile a program for each shape
    twin = eqx.filter_eval_shape(_twin(layer, attnbook.torch, attnbook.jax), key=jax.random.key(0))
    if getattr(layer, "tied", False):  # JAX has the matrix once
        _still_tied(named.pop("readout.weight", None), named.get("embedding.weight"))
    _same({name: tuple(parameter.shape) for name, parameter in named.items()}, _shapes(twin))
    _same_eps(_eps(layer), {name: _part(twin, name).eps for name in _eps(layer)})
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
        ValueError: parameters of other names or shapes, or norms of another eps, than the layer is
            made with.
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
    _same_eps({name: _part(layer, name).eps for name in _eps(twin)}, _eps(twin))
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


def _eps(layer: Any) -> dict[str, float | None]:
    """The eps of an attnbook.torch layer's norms, by their names."""
    from torch.nn import LayerNorm, RMSNorm

    norms = (LayerNorm, RMSNorm)
    return {name: part.eps for name, part in layer.named_modules() if isinstance(part, norms)}


def _same_eps(got: dict[str, Any], expected: dict[str, Any]) -> None:
    """Check that the norms of a layer have the eps of its twin's."""
    for name, eps in expected.items():
        if got[name] != eps:
            raise ValueError(f"layer: got {name} of eps {got[name]}, expected {eps}")


def _still_tied(readout: Any, embedding: Any) -> None:
    """Check that a readout made with tied=True has the very matrix of the embedding."""
    if readout is not embedding:
        raise ValueError("layer: got a readout.weight of its own, expected the embedding's: tied")


def _twin(layer: Any, ours: Any, theirs: Any) -> Callable[..., Any]:
    """What makes the layer of one library that another library's has as its twin."""
    twins = {getattr(ours, n): getattr(theirs, n) for n in ours.__all__ if n[0].isupper()}
    kind = type(layer)
    if kind not in twins:
        names, name = [known.__name__ for known in twins], kind.__name__
        hint = f", as attnbook has it, not {kind.__module__}" if name in names else ""
        hint = ": convert the layer before it is compiled" if hasattr(layer, "_orig_mod") else hint
        raise TypeError(f"layer: got {name}, expected one of {', '.join(names)}{hint}")
    given = arguments(kind, layer)
    return partial(twins[kind], **{name: _plain(value) for name, value in given.items()})


def _plain(value: Any) -> Any:
    """An argument as the other back end takes it."""
    if hasattr(value, "detach"):  # a tensor
        return value.detach().cpu().double().numpy()
    return np.asarray(value, dtype=np.float64) if hasattr(value, "shape") else value
