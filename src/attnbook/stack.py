"""Layers of attention and nothing else: the smallest transformer that learns to copy."""

from typing import Any

from jaxtyping import Float, Int

from attnbook.linear import embed, linear

Array = Any  # a PyTorch or JAX array


def attention_only(
    model: Any, tokens: Int[Array, "... n"], return_weights: bool = False
) -> tuple[Float[Array, "... n vocab"], list[Float[Array, "... heads n n"]]]:
    """Logits U x_i of the token after i, with x ← x + attention(x), layer by layer.

    The first x is E[token] + P[position], with learned E and P. All attention is causal.

    Args:
        model: an AttentionOnly of either back end.
        tokens: integers of shape (..., n).
        return_weights: give the weights of every layer too.

    Returns:
        The logits, and the weights of the layers, an empty list if nobody asks for them.

    Source: Elhage et al. (2021), "attention-only transformers".
    """
    n = tokens.shape[-1]
    x = embed(model.embedding, tokens) + model.position[:n]
    kept = []
    for layer in model.layers:
        if return_weights:
            change, weights = layer(x, causal=True, return_weights=True)
            kept.append(weights)
        else:
            change = layer(x, causal=True)
        x = x + change
    return linear(model.readout, x), kept
