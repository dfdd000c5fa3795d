"""A matrix and a bias: what every layer is made of."""

import numpy as np
from array_api_compat import is_torch_array

from attnbook._types import Array, Layer
from attnbook._validation import cast_parameter
from attnbook.layers.activations import relu


def linear(layer: Layer, x: Array) -> Array:
    """A linear layer, x Wᵀ + b, with W of shape (out, in), and b if it has one.

    A PyTorch module is called, so that whatever acts on calls acts here too, such as hooks and
    sharding; but for an x of another dtype than its own. The result has the dtype of x.
    """
    own = getattr(getattr(layer, "weight", None), "dtype", x.dtype)  # adapters may have none
    if is_torch_array(x) and callable(layer) and own == x.dtype:
        return layer(x)
    weight, bias = layer.weight, layer.bias
    if weight.dtype != x.dtype or isinstance(x, np.ndarray):  # to look closer takes time
        weight = cast_parameter(x, ("out", x.shape[-1]), of="x", weight=weight)
        bias = None if bias is None else cast_parameter(x, (weight.shape[0],), of="x", bias=bias)
    product = x @ weight.mT
    return product if bias is None else product + bias


def embed(layer: Layer, tokens: Array) -> Array:
    """The rows of an embedding that tokens (...) name, of shape (..., width)."""
    if is_torch_array(tokens) and callable(layer):
        return layer(tokens)
    return layer.weight[tokens]


def perceptron(hidden: Layer, out: Layer, x: Array) -> Array:
    """One hidden layer with max(0, ·)."""
    return linear(out, relu(linear(hidden, x)))
