"""The multilayer perceptron of a transformer's block."""

from typing import Any

from jaxtyping import Float

from attnbook._validation.arrays import check_widths
from attnbook._validation.types import Array, Drop, Perceptron
from attnbook.layers.activations import ACTIVATIONS
from attnbook.layers.linear import linear


def mlp(layer: Perceptron, x: Float[Array, "... e"], drop: Drop | None = None) -> Array:
    """Multilayer perceptron of every token alone, W₂ φ(W₁ x + b₁) + b₂.

    With "swiglu" a second matrix gates the hidden layer, W₂ (silu(W_g x + b_g) ⊙ (W₁ x + b₁)) + b₂.

    Args:
        layer: an MLP of either back end.
        x: of shape (..., e).
        drop: leaves hidden entries out at random while a model learns.

    Returns:
        Of the shape of x.

    Source: Vaswani et al. (2017), equation 2; SwiGLU: Shazeer (2020), equation 6.
    """
    activation = ACTIVATIONS[layer.activation]
    if layer.activation == "swiglu":
        hidden = activation(linear(layer.gate, x)) * linear(layer.hidden, x)
    else:
        hidden = activation(linear(layer.hidden, x))
    return linear(layer.output, hidden if drop is None else drop(hidden))


def call_mlp(layer: Any, x: Any, drop: Drop | None) -> Any:
    """What calling an MLP of either back end gives."""
    check_widths(layer.embed_dim, x=x)
    return mlp(layer, x, drop)
