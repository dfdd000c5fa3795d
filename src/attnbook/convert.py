"""The same layer in the other library: parameters are carried over bit for bit, by name."""

import operator
from typing import Any

import numpy as np


def torch_to_jax(layer: Any) -> Any:
    """The attnbook.jax twin of an attnbook.torch layer, on JAX's default device.

    Args:
        layer: a layer of attnbook.torch.

    Raises:
        TypeError: something else.
        ValueError: float64 parameters while JAX has jax_enable_x64 off and would round them.
    """
    import equinox as eqx
    import jax.numpy as jnp
    import torch

    import attnbook.jax

    if not isinstance(layer, torch.nn.Module):
        raise TypeError(f"layer: got {type(layer).__name__}, expected a layer of attnbook.torch")
    twin = _twin_class(layer, attnbook.jax)()
    for name, parameter in layer.named_parameters():
        array = parameter.detach().cpu().numpy()
        copied = jnp.array(array)  # a copy: the torch layer may go on learning in place
        if copied.dtype != array.dtype:
            raise ValueError(
                f"layer: {name} is {array.dtype}, which JAX would round to {copied.dtype}: "
                'set jax.config.update("jax_enable_x64", True) first, or convert the layer'
            )
        twin = eqx.tree_at(operator.attrgetter(name), twin, copied)
    return twin


def jax_to_torch(layer: Any) -> Any:
    """The attnbook.torch twin of an attnbook.jax layer, on the CPU.

    Args:
        layer: a layer of attnbook.jax.

    Raises:
        TypeError: something else.
    """
    import equinox as eqx
    import torch

    import attnbook.torch

    if not isinstance(layer, eqx.Module):
        raise TypeError(f"layer: got {type(layer).__name__}, expected a layer of attnbook.jax")
    twin = _twin_class(layer, attnbook.torch)()
    for name, _ in list(twin.named_parameters()):
        array = torch.from_numpy(np.array(getattr(layer, name)))
        setattr(twin, name, torch.nn.Parameter(array))
    return twin


def _twin_class(layer: Any, module: Any) -> Any:
    """The class of the same name in the other back end."""
    name = type(layer).__name__
    known = type(layer).__module__.startswith("attnbook.") and name in module.__all__
    if not known:
        raise TypeError(f"layer: got {name}, expected one of {', '.join(module.__all__)}")
    return getattr(module, name)
