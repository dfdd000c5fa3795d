"""A matrix and a bias: what every layer is made of."""

from typing import Any

import numpy as np

from attnbook.activations import relu
from attnbook.arguments import parameter

Array = Any  # a NumPy, PyTorch or JAX array


def linear(layer: Any, x: Array) -> Array:
    """A linear layer, x Wᵀ + b, with W of shape (out, in), and b if it has one.

    It computes in the dtype of x, in which the parameters are taken.
    """
    weight, bias = layer.weight, layer.bias
    if weight.dtype != x.dtype or isinstance(x, np.ndarray):  # to look closer takes time
        weight = parameter(x, ("out", x.shape[-1]), of="x", weight=weight)
        bias = None if bias is None else parameter(x, (weight.shape[0],), of="x", bias=bias)
    product = x @ weight.mT
    return product if bias is None else product + bias


def perceptron(hidden: Any, out: Any, x: Array) -> Array:
    """One hidden layer with max(0, ·)."""
    return linear(out, relu(linear(hidden, x)))
