"""The transformer's block: norms, the MLP, and the two sums that hold them together."""

import sys
from functools import partial
from typing import Any

from array_api_compat import array_namespace, is_torch_array
from jaxtyping import Bool, Float

from attnbook._typing import (
    Array,
    Block,
    CrossBlock,
    Drop,
    MultiHead,
    Norm,
    Perceptron,
    Sublayer,
)
from attnbook._validation.arrays import (
    cast_parameter,
    check_floating,
    check_memory,
    check_widths,
    promote_autocast,
    upcast_half,
)
from attnbook._validation.numbers import positive
from attnbook._validation.options import flag, one_of
from attnbook.activations import ACTIVATIONS
from attnbook.heads import multi_head_attention
from attnbook.linear import call_module, is_module, linear

# of a model that every block of it has too; a Transformer has the first two alone
BLOCK_OPTIONS = (
    "norm", "activation", "dropout", "num_kv_heads", "bias", "rms_norm", "eps", "rotary_base",
    "attention",
)  # fmt: skip
GATES = {  # of a GatedDelta, by the name that a block has for its attention
    "delta": {"gate": False, "delta": True},
    "decay": {"gate": True, "delta": False},
    "gated_delta": {"gate": True, "delta": True},
}
ATTENTION = ("softmax", "linear", *GATES)


def layer_norm(
    x: Float[Array, "... e"],
    weight: Float[Array, " e"] | None = None,
    bias: Float[Array, " e"] | None = None,
    *,
    eps: float = 1e-5,
) -> Float[Array, "... e"]:
    """Layer norm, g ⊙ (x − mean(x)) / √(var(x) + ε) + b, over the last axis of every token alone.

    Args:
        x: of shape (..., e).
        weight: g, of shape (e,); 1 without it.
        bias: b, of shape (e,); 0 without it.
        eps: ε, above 0: what keeps a token of equal entries from 0/0.

    Returns:
        Of the shape and dtype of x; half precision is computed in float32.

    Raises:
        ValueError: shapes or dtypes that do not fit, an eps that is not above 0.
        TypeError: arrays of different libraries.

    Source: Ba, Kiros and Hinton (2016), equation 4; the variance divides by e.
    """
    xp, wide = _to_norm(x, eps)
    centred = wide - xp.mean(wide, axis=-1, keepdims=True)
    variance = xp.mean(centred * centred, axis=-1, keepdims=True)
    return _scaled(x, centred / xp.sqrt(variance + eps), weight, bias)


def rms_norm(
    x: Float[Array, "... e"], weight: Float[Array, " e"] | None = None, *, eps: float = 1e-5
) -> Float[Array, "... e"]:
    """RMS norm, g ⊙ x / √(mean(x²) + ε), over the last axis: layer norm that leaves the mean in.

    Args:
        x: of shape (..., e).
        weight: g, of shape (e,); 1 without it.
        eps: ε, above 0.

    Returns:
        Of the shape and dtype of x; half precision is computed in float32.

    Raises:
        ValueError: shapes or dtypes that do not fit, an eps that is not above 0.
        TypeError: arrays of different libraries.

    Source: Zhang and Sennrich (2019), equation 4, with ε added.
    """
    xp, wide = _to_norm(x, eps)
    square = xp.mean(wide * wide, axis=-1, keepdims=True)
    return _scaled(x, wide / xp.sqrt(square + eps), weight, None)


def _to_norm(x: Array, eps: float) -> tuple[Any, Array]:
    xp = check_floating(x=x)
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"x: got shape {tuple(x.shape)}, expected (..., e) with e of 1 or more")
    positive(eps=eps)
    return xp, upcast_half(xp, x)[0]


def _scaled(x: Array, normed: Array, weight: Array | None, bias: Array | None) -> Array:
    e = x.shape[-1]
    if weight is not None:
        normed = normed * cast_parameter(normed, (e,), of="x", weight=weight)
    if bias is not None:
        normed = normed + cast_parameter(normed, (e,), of="x", bias=bias)
    return array_namespace(x).astype(normed, x.dtype)


def apply_norm(norm: Any, x: Float[Array, "... e"]) -> Float[Array, "... e"]:
    """Layer norm or RMS norm with the parameters of a library's layer, or x itself without one.

    A PyTorch module is called.
    """
    if norm is None:
        return x
    if is_module(norm) and is_torch_array(x):
        return call_module(norm, x)
    if _is_rms_norm(norm):
        return rms_norm(x, norm.weight, eps=norm.eps)
    return layer_norm(x, norm.weight, norm.bias, eps=norm.eps)


def _is_rms_norm(norm: Any) -> bool:
    """Whether a norm leaves the mean in: one of a library's own class, or one without a bias.

    Equinox's has a bias too, which is None. A norm of its class exists only where it is imported.
    """
    equinox = sys.modules.get("equinox")
    if equinox is not None and isinstance(norm, equinox.nn.RMSNorm):
        return True
    return not hasattr(norm, "bias")


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
        if not is_module(layer) and attention_name(layer) == "softmax":
            self.attention = partial(multi_head_attention, layer, drop=drop)
        self.how = {"mask": mask, "return_weights": return_weights, "causal": causal}
        self.weights: Array | None = None

    def __call__(self, x: Float[Array, "... n e"]) -> Float[Array, "... n e"]:
        """Multi-head attention of x to the memory, or to itself."""
        found = self.attention(x, self.memory, **self.how)
        if not self.return_weights:
            return found
        output, self.weights = found
        return output


def call_mlp(layer: Any, x: Array, drop: Drop | None) -> Array:
    """What calling an MLP of either back end gives."""
    check_widths(layer.embed_dim, x=x)
    return mlp(layer, x, drop)


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


def set_block_config(layer: Any, norm: str, rms_norm: bool, eps: float) -> None:
    """A block's sizes and options as attributes: its twin is made from them.

    What attention and MLP have been made with stands in them already.
    """
    attention, perceptron = layer.attention, layer.mlp
    layer.embed_dim, layer.num_heads = attention.embed_dim, attention.num_heads
    layer.num_kv_heads, layer.bias = attention.num_kv_heads, attention.bias
    layer.mlp_dim, layer.activation = perceptron.mlp_dim, perceptron.activation
    layer.dropout = perceptron.dropout
    layer.norm = one_of(("pre", "post"), norm=norm)
    layer.rms_norm, layer.eps = flag(rms_norm=rms_norm), positive(eps=eps)


def attention_name(layer: Any) -> str:
    """The name that a block has for a layer of attention: "softmax", "linear", "delta", …."""
    found: str = getattr(layer, "attention_name", "softmax")  # a layer of one's own may say none
    return found


def gates_name(gate: bool, delta: bool) -> str:
    """The name that a block has for a GatedDelta: "delta", "decay", …; "sum" is in no block.

    Args:
        gate: whether its state decays.
        delta: whether a token writes what the state lacks.
    """
    given = {"gate": gate, "delta": delta}
    return next((name for name, gates in GATES.items() if gates == given), "sum")


def check_attention_options(
    attention: str, num_heads: int, num_kv_heads: int | None, rotary_base: float | None
) -> None:
    """Check the name of a block's attention, and that it has the options that are given."""
    if one_of(ATTENTION, attention=attention) == "softmax":
        return
    for name, given, plain in (
        ("num_kv_heads", num_kv_heads, num_heads),
        ("rotary_base", rotary_base, None),
    ):
        if given is not None and given != plain:
            raise ValueError(
                f"{name}: got {given!r} with attention={attention!r}, expected {plain}, or "
                "attention='softmax'"
            )


def block_options(model: Any) -> dict[str, Any]:
    """The options of a model's blocks that the model has as attributes."""
    return {name: getattr(model, name) for name in BLOCK_OPTIONS if hasattr(model, name)}
