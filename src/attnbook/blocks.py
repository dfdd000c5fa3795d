"""The transformer's block: norms, the MLP, and the two sums that hold them together."""

from collections.abc import Callable
from functools import partial
from typing import Any

from array_api_compat import array_namespace, is_torch_array
from jaxtyping import Bool, Float

from attnbook import arguments, sizes
from attnbook.activations import ACTIVATIONS
from attnbook.arguments import widen
from attnbook.heads import Drop, multi_head_attention
from attnbook.linear import call, is_module, linear

Array = Any  # a NumPy, PyTorch or JAX array
Part = Callable[[Array], Array]  # of a block: tokens in, a change of them out


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
    xp = arguments.floating(x=x)
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"x: got shape {tuple(x.shape)}, expected (..., e) with e of 1 or more")
    sizes.above_0(eps=eps)
    return xp, widen(xp, x)[0]


def _scaled(x: Array, normed: Array, weight: Array | None, bias: Array | None) -> Array:
    e = x.shape[-1]
    if weight is not None:
        normed = normed * arguments.parameter(normed, (e,), of="x", weight=weight)
    if bias is not None:
        normed = normed + arguments.parameter(normed, (e,), of="x", bias=bias)
    return array_namespace(x).astype(normed, x.dtype)


def normed(norm: Any, x: Float[Array, "... e"]) -> Float[Array, "... e"]:
    """Layer norm with the parameters of a library's layer; a PyTorch module is called."""
    if is_module(norm) and is_torch_array(x):
        return call(norm, x)
    return layer_norm(x, norm.weight, norm.bias, eps=norm.eps)


def mlp(layer: Any, x: Float[Array, "... e"], drop: Drop | None = None) -> Array:
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


def _mlp_part(layer: Any, drop: Drop | None) -> Part:
    """The MLP as a part of a block; a PyTorch module is called, and knows itself when to drop."""
    return layer if is_module(layer) else partial(mlp, layer, drop=drop)


def residual(norm: Any, placement: str, part: Part, x: Array, drop: Drop | None = None) -> Array:
    """One step of the residual stream, x + part(norm(x)), or norm(x + part(x)) if "post".

    Args:
        norm: a layer norm of either library, for its weight, bias and eps.
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

    return x + change(normed(norm, x)) if placement == "pre" else normed(norm, x + change(x))


def encoder_block(layer: Any, x: Array, attention: Part, drop: Drop | None = None) -> Array:
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
    return residual(layer.mlp_norm, layer.norm, _mlp_part(layer.mlp, drop), x, drop)


def decoder_block(
    layer: Any, x: Array, attention: Part, cross_attention: Part, drop: Drop | None = None
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
    return residual(layer.mlp_norm, layer.norm, _mlp_part(layer.mlp, drop), x, drop)


class Reader:
    """Attention of one stream as a part of a block, which can keep its weights.

    Args:
        layer: a MultiHeadAttention of either back end.
        memory: keys and values come from here; from the stream itself without it.
        mask: boolean, True = may attend.
        keep: whether to keep the weights, as the attribute weights.
        drop: leaves weights out at random while a model learns; a PyTorch module, which is called,
            knows that itself.
        causal: whether a token may attend to no later one.
    """

    def __init__(
        self,
        layer: Any,
        memory: Array | None = None,
        mask: Bool[Array, "..."] | None = None,
        keep: bool = False,
        drop: Drop | None = None,
        causal: bool = False,
    ) -> None:
        self.layer, self.memory, self.mask, self.keep, self.drop = layer, memory, mask, keep, drop
        self.causal = causal
        self.weights: Array | None = None

    def __call__(self, x: Float[Array, "... n e"]) -> Float[Array, "... n e"]:
        """Multi-head attention of x to the memory, or to itself."""
        attention = self.layer
        if not is_module(attention):
            attention = partial(multi_head_attention, attention, drop=self.drop)
        how = {"mask": self.mask, "return_weights": self.keep, "causal": self.causal}
        found = attention(x, self.memory, **how)
        if not self.keep:
            return found
        output, self.weights = found
        return output
