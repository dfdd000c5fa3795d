"""The MLP and the two blocks: parameters and initialisation."""

from typing import Any

import equinox as eqx
import jax
from jax import Array
from jaxtyping import Bool, Float, PRNGKeyArray

from attnbook._validation.numbers import positive_int, probability
from attnbook._validation.options import flag, one_of
from attnbook.jax.attention import MultiHeadAttention
from attnbook.jax.dropout import check_key, make_dropout
from attnbook.jax.linear_attention import GatedDelta, LinearAttention
from attnbook.layers.activations import ACTIVATIONS
from attnbook.layers.mlp import call_mlp
from attnbook.models import blocks
from attnbook.models.config import GATES, BlockConfig, Configured

ATTENTION_LAYERS: dict[str, Any] = {
    "softmax": MultiHeadAttention,
    "linear": LinearAttention,
    **dict.fromkeys(GATES, GatedDelta),
}


class ConfiguredModule(Configured, eqx.Module):
    """A block, or a model of blocks, that was made from a config."""

    config: BlockConfig = eqx.field(static=True)


def make_norm(config: BlockConfig) -> eqx.nn.LayerNorm | eqx.nn.RMSNorm:
    """A block's layer norm or RMS norm."""
    if config.rms_norm:
        return eqx.nn.RMSNorm(config.embed_dim, eps=config.eps, use_bias=False)
    return eqx.nn.LayerNorm(config.embed_dim, eps=config.eps, use_bias=config.bias)


class MLP(eqx.Module):
    """Two matrices with an activation between; its formula is attnbook.models.blocks.mlp.

    Args:
        embed_dim: the width of a token.
        mlp_dim: the width between.
        activation: "gelu", "gelu_tanh", "relu", or "swiglu", which has a third matrix.
        dropout: the share of the hidden entries left out when it is called with a random key, from
            0 to below 1.
        bias: whether the matrices have one.
        key: the random key of the initial parameters.

    Raises:
        ValueError: a size that is not an integer of at least 1, another activation, a dropout
            outside [0, 1), a bias that is not True or False.
    """

    hidden: eqx.nn.Linear
    gate: eqx.nn.Linear | None
    output: eqx.nn.Linear
    embed_dim: int = eqx.field(static=True)
    mlp_dim: int = eqx.field(static=True)
    activation: str = eqx.field(static=True)
    dropout: float = eqx.field(static=True)
    bias: bool = eqx.field(static=True)

    def __init__(
        self,
        embed_dim: int,
        mlp_dim: int,
        activation: str = "gelu",
        dropout: float = 0.0,
        bias: bool = True,
        *,
        key: PRNGKeyArray,
    ) -> None:
        self.embed_dim = positive_int(embed_dim=embed_dim)
        self.mlp_dim = positive_int(mlp_dim=mlp_dim)
        self.activation = one_of(tuple(ACTIVATIONS), activation=activation)
        self.dropout = probability(dropout=dropout)
        self.bias = flag(bias=bias)
        keys = jax.random.split(check_key(key), 3)
        e, hidden = self.embed_dim, self.mlp_dim
        gated = activation == "swiglu"
        self.hidden = eqx.nn.Linear(e, hidden, use_bias=bias, key=keys[0])
        self.gate = eqx.nn.Linear(e, hidden, use_bias=bias, key=keys[1]) if gated else None
        self.output = eqx.nn.Linear(hidden, e, use_bias=bias, key=keys[2])

    def __call__(self, x: Float[Array, "... n e"], *, key: PRNGKeyArray | None = None) -> Array:
        """Of the shape of x."""
        out: Array = call_mlp(self, x, make_dropout(self, key))
        return out


class EncoderBlock(ConfiguredModule):
    """Attention and an MLP in a residual stream; its formula is models.blocks.encoder_block.

    Args:
        embed_dim: the width of the stream.
        num_heads: of the attention, a divisor of embed_dim.
        mlp_dim: the width inside the MLP.
        norm: "pre", before attention and MLP, or "post", after the sums.
        activation: of the MLP: "gelu", "gelu_tanh", "relu" or "swiglu".
        dropout: the share left out when it is called with a random key, from 0 to below 1: of
            attention weights, of hidden entries, and of what is added to the stream.
        num_kv_heads: heads of keys and values, as in MultiHeadAttention.
        bias: whether projections, MLP and norms have one.
        rms_norm: norms by the root mean square, without a bias, in place of layer norms.
        eps: ε of the norms, above 0.
        rotary_base: of rotary positions within the attention, as in MultiHeadAttention.
        attention: "softmax", a MultiHeadAttention; "linear", a LinearAttention; "delta", "decay" or
            "gated_delta", a GatedDelta with the one, the other or both, for causal blocks. Only the
            softmax has weights to drop, shared heads and rotary positions.
        key: the random key of the initial parameters.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide,
            another norm, activation or attention, a dropout outside [0, 1), an eps or a rotary_base
            that is not above 0, a rotary_base for heads of an odd width, an option that only the
            softmax has with another attention.
    """

    attention: MultiHeadAttention | LinearAttention | GatedDelta
    mlp: MLP
    attention_norm: eqx.nn.LayerNorm | eqx.nn.RMSNorm
    mlp_norm: eqx.nn.LayerNorm | eqx.nn.RMSNorm

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        mlp_dim: int,
        *,
        norm: str = "pre",
        activation: str = "gelu",
        dropout: float = 0.0,
        num_kv_heads: int | None = None,
        bias: bool = True,
        rms_norm: bool = False,
        eps: float = 1e-5,
        rotary_base: float | None = None,
        attention: str = "softmax",
        key: PRNGKeyArray,
    ) -> None:
        keys = jax.random.split(check_key(key))
        self.config = config = BlockConfig.of(locals())
        self.attention = config.make(ATTENTION_LAYERS[config.attention], key=keys[0])
        self.mlp = config.make(MLP, key=keys[1])
        self.attention_norm = make_norm(config)
        self.mlp_norm = make_norm(config)

    def __call__(
        self,
        x: Float[Array, "... n e"],
        mask: Bool[Array, "..."] | None = None,
        *,
        return_weights: bool = False,
        causal: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> Any:
        """The stream (..., n, e) after it, or the pair (stream, weights (..., heads, n, n))."""
        drop = make_dropout(self, key)
        return blocks.call_encoder_block(
            self, x, mask=mask, return_weights=return_weights, causal=causal, drop=drop
        )


class DecoderBlock(ConfiguredModule):
    """A block that also reads a memory; its formula is attnbook.models.blocks.decoder_block.

    Args:
        embed_dim: the width of the stream and of the memory.
        num_heads: of both attentions, a divisor of embed_dim.
        mlp_dim: the width inside the MLP.
        norm: "pre", before attentions and MLP, or "post", after the sums.
        activation: of the MLP: "gelu", "gelu_tanh", "relu" or "swiglu".
        dropout: the share left out when it is called with a random key, as in EncoderBlock.
        num_kv_heads: heads of keys and values, as in MultiHeadAttention.
        bias: whether projections, MLP and norms have one.
        rms_norm: norms by the root mean square, without a bias, in place of layer norms.
        eps: ε of the norms, above 0.
        key: the random key of the initial parameters.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide,
            another norm or activation, a dropout outside [0, 1), an eps that is not above 0.
    """

    attention: MultiHeadAttention
    cross_attention: MultiHeadAttention
    mlp: MLP
    attention_norm: eqx.nn.LayerNorm | eqx.nn.RMSNorm
    cross_norm: eqx.nn.LayerNorm | eqx.nn.RMSNorm
    mlp_norm: eqx.nn.LayerNorm | eqx.nn.RMSNorm

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        mlp_dim: int,
        *,
        norm: str = "pre",
        activation: str = "gelu",
        dropout: float = 0.0,
        num_kv_heads: int | None = None,
        bias: bool = True,
        rms_norm: bool = False,
        eps: float = 1e-5,
        key: PRNGKeyArray,
    ) -> None:
        keys = jax.random.split(check_key(key), 3)
        self.config = config = BlockConfig.of(locals())
        self.attention = config.make(MultiHeadAttention, key=keys[0])
        self.cross_attention = config.make(MultiHeadAttention, key=keys[1])
        self.mlp = config.make(MLP, key=keys[2])
        self.attention_norm = make_norm(config)
        self.cross_norm = make_norm(config)
        self.mlp_norm = make_norm(config)

    def __call__(
        self,
        x: Float[Array, "... m e"],
        memory: Float[Array, "... n e"],
        mask: Bool[Array, "..."] | None = None,
        memory_mask: Bool[Array, "..."] | None = None,
        *,
        return_weights: bool = False,
        causal: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> Any:
        """The stream (..., m, e) after it, or the triple with both attentions' weights."""
        drop = make_dropout(self, key)
        return blocks.call_decoder_block(
            self,
            x,
            memory,
            mask=mask,
            memory_mask=memory_mask,
            return_weights=return_weights,
            causal=causal,
            drop=drop,
        )
