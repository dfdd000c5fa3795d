"""The transformer's block: norms, the MLP, and the two sums that hold them together."""

from functools import partial
from typing import Any

from jaxtyping import Bool, Float

from attnbook._validation.arrays import (
    check_memory,
    check_widths,
    promote_autocast,
)
from attnbook._validation.types import (
    Array,
    Block,
    CrossBlock,
    Drop,
    MultiHead,
    Norm,
    Sublayer,
)
from attnbook.attention.heads import multi_head_attention
from attnbook.layers.linear import is_module
from attnbook.layers.mlp import mlp
from attnbook.layers.norms import apply_norm


def residual(
    norm: Norm, placement: str, part: Sublayer, x: Array, drop: Drop | None = None
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


def encoder_block(layer: Block, x: Array, attention: Sublayer, drop: Drop | None = None) -> Array:
    """Attention between tokens, then the MLP in every token, each added to the stream.

    Args:
        layer: an EncoderBlock of either back end.
        x: the stream, of shape (..., n, e).
        attention: of the tokens to each other, with whatever mask or memory it has.
        drop: leaves entries out at random while a model learns.

    Returns:
        The stream after it, of the shape of x.

    Source: Vaswani et al. (2017), section 3.1.
    """
    x = residual(layer.attention_norm, layer.norm, attention, x, drop)
    return residual(layer.mlp_norm, layer.norm, _mlp_sublayer(layer.mlp, drop), x, drop)


def decoder_block(
    layer: CrossBlock,
    x: Array,
    attention: Sublayer,
    cross_attention: Sublayer,
    drop: Drop | None = None,
) -> Array:
    """Attention between tokens, attention to a memory, then the MLP, each added to the stream.

    Args:
        layer: a DecoderBlock of either back end.
        x: the stream, of shape (..., m, e).
        attention: of the tokens to each other.
        cross_attention: of the tokens to the memory.
        drop: leaves entries out at random while a model learns.

    Returns:
        The stream after it, of the shape of x.

    Source: Vaswani et al. (2017), section 3.1.
    """
    x = residual(layer.attention_norm, layer.norm, attention, x, drop)
    x = residual(layer.cross_norm, layer.norm, cross_attention, x, drop)
    return residual(layer.mlp_norm, layer.norm, _mlp_sublayer(layer.mlp, drop), x, drop)


def _mlp_sublayer(layer: Any, drop: Drop | None) -> Sublayer:
    """The MLP as a part of a block; a PyTorch module is called, and knows itself when to drop."""
    return layer if is_module(layer) else partial(mlp, layer, drop=drop)


class AttentionSublayer:
    """Attention of one stream as a part of a block, which can keep its weights.

    Args:
        layer: a MultiHeadAttention of either back end, or a LinearAttention or GatedDelta, which
            is called.
        memory: keys and values come from here; from the stream itself without it.
        mask: boolean, True = may attend.
        return_weights: whether to keep the weights, as the attribute weights.
        drop: leaves weights out at random while a model learns; a PyTorch module, which is called,
            knows that itself.
        causal: whether a token may attend to no later one.
    """

    def __init__(
        self,
        layer: MultiHead,
        memory: Array | None = None,
        mask: Bool[Array, "..."] | None = None,
        return_weights: bool = False,
        drop: Drop | None = None,
        causal: bool = False,
    ) -> None:
        self.memory, self.return_weights = memory, return_weights
        self.attention: Any = layer
        softmax = getattr(layer, "attention_name", "softmax") == "softmax"
        if softmax and not is_module(layer):
            self.attention = partial(multi_head_attention, layer, drop=drop)
        self.how = {"mask": mask, "return_weights": return_weights, "causal": causal}
        self.weights: Any = None

    def __call__(self, x: Float[Array, "... n e"]) -> Float[Array, "... n e"]:
        """Multi-head attention of x to the memory, or to itself."""
        found = self.attention(x, self.memory, **self.how)
        if not self.return_weights:
            return found
        output, self.weights = found
        return output


def call_encoder_block(
    layer: Any, x: Array, mask: Array | None, return_weights: bool, causal: bool, drop: Drop | None
) -> Any:
    """What calling an EncoderBlock of either back end gives: the stream, and weights if asked."""
    check_widths(layer.embed_dim, x=x)
    attention = AttentionSublayer(layer.attention, None, mask, return_weights, drop, causal)
    x = encoder_block(layer, x, attention, drop)
    return (x, attention.weights) if return_weights else x


def call_decoder_block(
    layer: Any,
    x: Array,
    memory: Array,
    mask: Array | None,
    memory_mask: Array | None,
    return_weights: bool,
    causal: bool,
    drop: Drop | None,
) -> Any:
    """What calling a DecoderBlock of either back end gives: the stream, and weights if asked."""
    alike_x, alike_memory = promote_autocast(x, memory)
    check_widths(layer.embed_dim, x=alike_x, memory=alike_memory)
    check_memory(x, memory, memory_mask)
    own = AttentionSublayer(layer.attention, None, mask, return_weights, drop, causal)
    cross = AttentionSublayer(layer.cross_attention, memory, memory_mask, return_weights, drop)
    x = decoder_block(layer, x, own, cross, drop)
    return (x, own.weights, cross.weights) if return_weights else x
