"""A matrix and a bias: what every layer is made of."""

from typing import Any

from attnbook.activations import relu

Array = Any  # a NumPy, PyTorch or JAX array


def linear(layer: Any, x: Array) -> Array:
    """A linear layer, x Wᵀ + b, with W of shape (out, in), and b if it has one."""
    product = x @ layer.weight.mT
    return product if layer.bias is None else product + layer.bias


def perceptron(hidden: Any, out: Any, x: Array) -> Array:
    """One hidden layer with max(0, ·)."""
    return linear(out, relu(linear(hidden, x)))
