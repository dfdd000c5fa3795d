"""The transformer's block: norms, the MLP, and the two sums that hold them together."""

from functools import partial
from typing import Any

from jaxtyping import Bool, Float

from attnbook._types import Array, Drop, Layer, Sublayer
from attnbook._validation import (
    broadcast_leading_axes,
    check_layers_mask,
    check_widths,
    promote_autocast,
)
from attnbook.attention.heads import multi_head_attention
from attnbook.layers.mlp import mlp
from attnbook.layers.norms import apply_norm


def residual(
    norm: Layer, placement: str, part: Sublayer, x: Array, drop: Drop | None = None
) -> Array:
    """One step of the residual stream, x + part(norm(x)), or norm(x + part(x)) if "post".

    Args:
        norm: a layer norm or an RMS norm of either library, for its parameters and eps.
        placement: "pre" or "post".
        part: what reads the stream and says how to change it.
        x: the stream, of shape (..., e).
        drop: leaves entries of the change out at random while a model learns.

    Returns:
        The stream after it, of the shape of x.

    Source: He et al. (2016); "post" is Vaswani et al.'s (2017), "pre" Baevski and Auli's (2019).
    """

    def change(x: Array) -> Array:
        return part(x) if drop is None else drop(part(x))

    if placement == "pre":
        return x + change(apply_norm(norm, x))
    return apply_norm(norm, x + change(x))


def encoder_block(
    layer: Layer, x: Array, attention: Sublayer, drop: Drop | None = None, key: Any = None
) -> Array:
    """Attention between tokens, then the MLP in every token, each added to the stream.

    Args:
        layer: an EncoderBlock of either back end.
        x: the stream, of shape (..., n, e).
        attention: of the tokens to each other, with whatever mask or memory it has.
        drop: leaves entries out at random while a model learns.
        key: a random key of JAX's, for the dropout within the MLP.

    Returns:
        The stream after it, of the shape of x.

    Source: Vaswani et al. (2017), section 3.1.
    """
    x = residual(layer.attention_norm, layer.norm, attention, x, drop)
    return residual(layer.mlp_norm, layer.norm, _mlp_sublayer(layer.mlp, key), x, drop)


def decoder_block(
    layer: Layer,
    x: Array,
    attention: Sublayer,
    cross_attention: Sublayer,
    drop: Drop | None = None,
    key: Any = None,
) -> Array:
    """Attention between tokens, attention to a memory, then the MLP, each added to the stream.

    Args:
        layer: a DecoderBlock of either back end.
        x: the stream, of shape (..., m, e).
        attention: of the tokens to each other.
        cross_attention: of the tokens to the memory.
        drop: leaves entries out at random while a model learns.
        key: a random key of JAX's, for the dropout within the MLP.

    Returns:
        The stream after it, of the shape of x.

    Source: Vaswani et al. (2017), section 3.1.
    """
    x = residual(layer.attention_norm, layer.norm, attention, x, drop)
    x = residual(layer.cross_norm, layer.norm, cross_attention, x, drop)
    return residual(layer.mlp_norm, layer.norm, _mlp_sublayer(layer.mlp, key), x, drop)


def _mlp_sublayer(layer: Layer, key: Any) -> Sublayer:
    """The MLP as a part of a block: a layer, which is called, or the formula of its parameters."""
    call = layer if callable(layer) else partial(mlp, layer)
    return call if key is None else partial(call, key=key)


class AttentionSublayer:
    """Attention of one stream as a part of a block, which can keep its weights.

    Args:
        layer: a MultiHeadAttention, LinearAttention or GatedDelta of either back end, which is
            called; or the parameters of a MultiHeadAttention alone.
        memory: keys and values come from here; from the stream itself without it.
        mask: boolean, True = may attend.
        return_weights: whether to keep the weights, as the attribute weights.
        causal: whether a token may attend to no later one.
        key: a random key of JAX's, for the dropout of the layer.
    """

    def __init__(
        self,
        layer: Layer,
        memory: Array | None = None,
        mask: Bool[Array, "..."] | None = None,
        return_weights: bool = False,
        causal: bool = False,
        key: Any = None,
    ) -> None:
        self.memory, self.return_weights = memory, return_weights
        self.weights: Any = None
        self.attention = layer if callable(layer) else partial(multi_head_attention, layer)
        self.how: dict[str, Any] = {
            "mask": mask,
            "return_weights": return_weights,
            "causal": causal,
        }
        if key is not None:
            self.how["key"] = key

    def __call__(self, x: Float[Array, "... n e"]) -> Float[Array, "... n e"]:
        """Multi-head attention of x to the memory, or to itself."""
        found = self.attention(x, self.memory, **self.how)
        if not self.return_weights:
            return found
        output, self.weights = found
        return output


def call_encoder_block(
    layer: Layer,
    x: Array,
    mask: Array | None,
    return_weights: bool,
    causal: bool,
    drop: Drop | None,
    keys: tuple[Any, Any] = (None, None),
) -> Any:
    """What calling an EncoderBlock of either back end gives: the stream, and weights if asked.

    The keys, of JAX, are for the dropout of the attention and of the MLP.
    """
    check_widths(layer.embed_dim, x=x)
    attention = AttentionSublayer(layer.attention, None, mask, return_weights, causal, keys[0])
    x = encoder_block(layer, x, attention, drop, keys[1])
    return (x, attention.weights) if return_weights else x


def call_decoder_block(
    layer: Layer,
    x: Array,
    memory: Array,
    mask: Array | None,
    memory_mask: Array | None,
    return_weights: bool,
    causal: bool,
    drop: Drop | None,
    keys: tuple[Any, Any, Any] = (None, None, None),
) -> Any:
    """What calling a DecoderBlock of either back end gives: the stream, and weights if asked."""
    alike_x, alike_memory = promote_autocast(x, memory)
    check_widths(layer.embed_dim, x=alike_x, memory=alike_memory)
    lead = broadcast_leading_axes(x=x, memory=memory)
    target = (*lead, x.shape[-2], memory.shape[-2])
    check_layers_mask(memory_mask, target, called="memory_mask", x=x)
    own = AttentionSublayer(layer.attention, None, mask, return_weights, causal, keys[0])
    cross = AttentionSublayer(
        layer.cross_attention, memory, memory_mask, return_weights, key=keys[1]
    )
    x = decoder_block(layer, x, own, cross, drop, keys[2])
    return (x, own.weights, cross.weights) if return_weights else x
