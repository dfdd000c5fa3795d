"""Attention pooling: a learned query asks a sequence one question."""

from typing import Any

from jaxtyping import Bool, Int

from attnbook._types import Array, Layer
from attnbook._validation import check_layers_mask, check_same_library, check_tokens, widen_tokens
from attnbook.attention import attend
from attnbook.layers.linear import embed, linear, perceptron


def pool(
    layer: Layer,
    tokens: Int[Array, "... n"],
    mask: Bool[Array, "..."] | None = None,
    return_weights: bool = False,
) -> Any:
    """Attention pooling, logit = head(Σ_j w_j v_j) with w = softmax_j(q · k_j / √d).

    The query q is a parameter; the key k_j and the value v_j, a number, come from token j alone.

    Args:
        layer: an AttentionPooling of either back end, for its parameters.
        tokens: integers of shape (..., n).
        mask: boolean, broadcastable to (..., 1, n), True = may be attended to.
        return_weights: give the weights and the values too.

    Returns:
        Logits of shape (...), or the triple (logits, weights, values), the latter (..., n).

    Source: the learned query is that of Lee et al. (2019), section 3.2, with one seed vector.
    """
    check_same_library(layer.embedding, tokens=tokens)
    check_tokens(layer.vocab_size, tokens=tokens)
    check_layers_mask(mask, (*tokens.shape[:-1], 1, tokens.shape[-1]), tokens=tokens)
    embedded = embed(layer.embedding, widen_tokens(tokens))  # (..., n, embed_dim)
    keys = linear(layer.key, embedded)
    values = perceptron(layer.value_hidden, layer.value_out, embedded)  # (..., n, 1)
    pooled, weights = attend(layer.query, keys, values, mask=mask, return_weights=True)
    logits = perceptron(layer.head_hidden, layer.head_out, pooled)[..., 0, 0]
    return (logits, weights[..., 0, :], values[..., 0]) if return_weights else logits
