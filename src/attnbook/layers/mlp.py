"""The multilayer perceptron of a transformer's block."""

from typing import Any

from jaxtyping import Float

from attnbook._types import Array, Layer
from attnbook._validation import check_widths
from attnbook.layers.activations import ACTIVATIONS
from attnbook.layers.dropout import dropout as leave_out
from attnbook.layers.linear import linear


def mlp(layer: Layer, x: Float[Array, "... e"], dropout: float = 0.0, key: Any = None) -> Array:
    """Multilayer perceptron of every token alone, W₂ φ(W₁ x + b₁) + b₂.

    With "swiglu" a second matrix gates the hidden layer, W₂ (silu(W_g x + b_g) ⊙ (W₁ x + b₁)) + b₂.

    Args:
        layer: an MLP of either back end.
        x: of shape (..., e).
        dropout: the share of hidden entries that is left out, while a model learns.
        key: what JAX and NumPy draw them from, as in layers.dropout.dropout.

    Returns:
        Of the shape of x.

    Source: Vaswani et al. (2017), equation 2; SwiGLU: Shazeer (2020), equation 6.
    """
    activation = ACTIVATIONS[layer.activation]
    if layer.activation == "swiglu":
        hidden = activation(linear(layer.gate, x)) * linear(layer.hidden, x)
    else:
        hidden = activation(linear(layer.hidden, x))
    return linear(layer.output, leave_out(hidden, dropout, key))


def call_mlp(layer: Layer, x: Any, dropout: float, key: Any = None) -> Any:
    """What calling an MLP of either back end gives."""
    check_widths(layer.embed_dim, x=x)
    return mlp(layer, x, dropout, key)
