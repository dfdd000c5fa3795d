"""A matrix and a bias: what every layer is made of."""

from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from attnbook._validation.arrays import cast_parameter
from attnbook._validation.types import Array, Embedding, Linear
from attnbook.layers.activations import relu


def linear(layer: Linear, x: Array) -> Array:
    """A linear layer, x Wᵀ + b, with W of shape (out, in), and b if it has one.

    A PyTorch module is called, so that whatever acts on calls acts here too: hooks, adapters,
    quantisation, sharding. The result has the dtype of x.
    """
    if is_torch_array(x) and callable(layer):
        weight = getattr(layer, "weight", None)  # of a quantised layer it is no tensor
        alike = not is_torch_array(weight) or weight.dtype == x.dtype
        return layer(x) if alike else call_module(layer, x)
    weight, bias = layer.weight, layer.bias
    if weight.dtype != x.dtype or isinstance(x, np.ndarray):  # to look closer takes time
        weight = cast_parameter(x, ("out", x.shape[-1]), of="x", weight=weight)
        bias = None if bias is None else cast_parameter(x, (weight.shape[0],), of="x", bias=bias)
    product = x @ weight.mT
    return product if bias is None else product + bias


def embed(layer: Embedding, tokens: Array) -> Array:
    """The rows of an embedding that tokens (...) name, of shape (..., width)."""
    if is_torch_array(tokens) and callable(layer):
        return layer(tokens)
    return layer.weight[tokens]


def perceptron(hidden: Linear, out: Linear, x: Array) -> Array:
    """One hidden layer with max(0, ·)."""
    return linear(out, relu(linear(hidden, x)))


def is_module(layer: Any) -> bool:
    """Whether a layer is a PyTorch module, for which a call is more than its formula."""
    return hasattr(layer, "register_forward_hook")


def call_module(module: Any, x: Any) -> Any:
    """A PyTorch module of a tensor, in the wider of their dtypes, and back to that of x."""
    weight: Any = getattr(module, "weight", None)
    if not is_torch_array(weight) or weight.dtype == x.dtype:
        return module(x)
    import torch

    if torch.is_autocast_enabled(x.device.type):
        return module(x)
    wide = torch.promote_types(x.dtype, weight.dtype)
    parameters = {name: a.to(wide) for name, a in module.named_parameters()}
    return torch.func.functional_call(module, parameters, (x.to(wide),)).to(x.dtype)
