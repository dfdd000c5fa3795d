"""Attention pooling: a learned query asks a sequence one question."""

from typing import Any

from jaxtyping import Bool, Int

from attnbook.attention import attend
from attnbook.linear import embed, linear, perceptron

Array = Any  # a PyTorch or JAX array


def pool(
    layer: Any, tokens: Int[Array, "... n"], mask: Bool[Array, "..."] | None = None
) -> tuple[Array, Array, Array]:
    """Attention pooling, logit = head(Σ_j w_j v_j) with w = softmax_j(q · k_j / √d).

    The query q is a parameter; the key k_j and the value v_j, a number, come from token j alone.

    Args:
        layer: an AttentionPooling of either back end, for its parameters.
        tokens: integers of shape (..., n).
        mask: boolean, broadcastable to (..., 1, n), True = may be attended to.

    Returns:
        The logits of shape (...), the weights and the values, both of shape (..., n).

    Source: the learned query is that of Lee et al. (2019), section 3.2, with one seed vector.
    """
    embedded = embed(layer.embedding, tokens)  # (..., n, embed_dim)
    keys = linear(layer.key, embedded)
    values = perceptron(layer.value_hidden, layer.value_out, embedded)  # (..., n, 1)
    pooled, weights = attend(layer.query, keys, values, mask=mask, return_weights=True)
    logits = perceptron(layer.head_hidden, layer.head_out, pooled)  # (..., 1, 1)
    return logits[..., 0, 0], weights[..., 0, :], values[..., 0]
