"""A matrix and a bias: what every layer is made of."""

from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from attnbook.activations import relu
from attnbook.arguments import parameter

Array = Any  # a NumPy, PyTorch or JAX array


def linear(layer: Any, x: Array) -> Array:
    """A linear layer, x Wᵀ + b, with W of shape (out, in), and b if it has one.

    A PyTorch module is called, so that whatever acts on calls acts here too: hooks, adapters,
    quantisation, sharding. The result has the dtype of x.
    """
    if is_module(layer) and is_torch_array(x):
        return call(layer, x)
    weight, bias = layer.weight, layer.bias
    if weight.dtype != x.dtype or isinstance(x, np.ndarray):  # to look closer takes time
        weight = parameter(x, ("out", x.shape[-1]), of="x", weight=weight)
        bias = None if bias is None else parameter(x, (weight.shape[0],), of="x", bias=bias)
    product = x @ weight.mT
    return product if bias is None else product + bias


def embed(layer: Any, tokens: Array) -> Array:
    """The rows of an embedding that tokens (...) name, of shape (..., width)."""
    if is_module(layer) and is_torch_array(tokens):
        return layer(tokens)
    return layer.weight[tokens]


def perceptron(hidden: Any, out: Any, x: Array) -> Array:
    """One hidden layer with max(0, ·)."""
    return linear(out, relu(linear(hidden, x)))


def is_module(layer: Any) -> bool:
    """Whether a layer is a PyTorch module, for which a call is more than its formula."""
    return hasattr(layer, "register_forward_hook")


def call(module: Any, x: Array) -> Array:
    """A PyTorch module of a tensor, in the wider of their dtypes, and back to that of x."""
    import torch

    weight: Any = getattr(module, "weight", None)
    alike = not is_torch_array(weight) or weight.dtype == x.dtype
    if alike or torch.is_autocast_enabled(x.device.type):
        return module(x)
    wide = torch.promote_types(x.dtype, weight.dtype)
    parameters = {name: a.to(wide) for name, a in module.named_parameters()}
    return torch.func.functional_call(module, parameters, (x.to(wide),)).to(x.dtype)
