"""The MLP and the two blocks: parameters and initialisation."""

from typing import Any

import equinox as eqx
import jax
from jax import Array
from jaxtyping import Bool, Float, PRNGKeyArray

from attnbook._validation import one_of, positive_int, probability
from attnbook.jax.attention import MultiHeadAttention
from attnbook.jax.dropout import check_key, check_key_or_none, make_drop, split_or_none
from attnbook.jax.linear_attention import GatedDelta, LinearAttention
from attnbook.layers.activations import ACTIVATIONS
from attnbook.layers.mlp import call_mlp
from attnbook.models import blocks
from attnbook.models.config import GATES, BlockConfig

Attention = MultiHeadAttention | LinearAttention | GatedDelta
Norm = eqx.nn.LayerNorm | eqx.nn.RMSNorm


def make_attention(config: BlockConfig, key: PRNGKeyArray) -> Attention:
    """A block's attention, by its name."""
    e, heads, bias = config.embed_dim, config.num_heads, config.bias
    if config.attention == "linear":
        return LinearAttention(e, heads, bias=bias, key=key)
    if config.attention in GATES:
        gate, delta = GATES[config.attention]
        return GatedDelta(e, heads, gate=gate, delta=delta, bias=bias, key=key)
    return MultiHeadAttention(
        e,
        heads,
        num_kv_heads=config.num_kv_heads,
        bias=bias,
        dropout=config.dropout,
        rotary_base=config.rotary_base,
        key=key,
    )


def make_mlp(config: BlockConfig, key: PRNGKeyArray) -> "MLP":
    """A block's MLP."""
    sizes = config.embed_dim, config.mlp_dim
    return MLP(*sizes, config.activation, config.dropout, config.bias, key=key)


def make_norm(config: BlockConfig) -> Norm:
    """A block's layer norm or RMS norm."""
    if config.rms_norm:
        return eqx.nn.RMSNorm(config.embed_dim, eps=config.eps, use_bias=False)
    return eqx.nn.LayerNorm(config.embed_dim, eps=config.eps, use_bias=config.bias)


class MLP(eqx.Module):
    """The JAX twin of attnbook.torch.MLP.

    Entries are left out where it is called with a random key. The key here draws the parameters.
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
        self.bias = bias
        keys = jax.random.split(check_key(key), 3)
        e, hidden = self.embed_dim, self.mlp_dim
        gated = activation == "swiglu"
        self.hidden = eqx.nn.Linear(e, hidden, use_bias=bias, key=keys[0])
        self.gate = eqx.nn.Linear(e, hidden, use_bias=bias, key=keys[1]) if gated else None
        self.output = eqx.nn.Linear(hidden, e, use_bias=bias, key=keys[2])

    def __call__(self, x: Float[Array, "... n e"], *, key: PRNGKeyArray | None = None) -> Array:
        """Of the shape of x."""
        check_key_or_none(key)
        out: Array = call_mlp(self, x, 0.0 if key is None else self.dropout, key)
        return out


class EncoderBlock(eqx.Module):
    """The JAX twin of attnbook.torch.EncoderBlock, with the same arguments and formula.

    Entries are left out where it is called with a random key. The key here draws the parameters.
    """

    attention: Attention
    mlp: MLP
    attention_norm: Norm
    mlp_norm: Norm
    config: BlockConfig = eqx.field(static=True)
    embed_dim: int = eqx.field(static=True)
    num_heads: int = eqx.field(static=True)
    norm: str = eqx.field(static=True)
    dropout: float = eqx.field(static=True)

    def __init__(
        self, embed_dim: int, num_heads: int, mlp_dim: int, *, key: PRNGKeyArray, **options: Any
    ) -> None:
        keys = jax.random.split(check_key(key))
        self.config = config = BlockConfig(embed_dim, num_heads, mlp_dim, **options)
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.norm, self.dropout = config.norm, config.dropout
        self.attention = make_attention(config, keys[0])
        self.mlp = make_mlp(config, keys[1])
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
        of_attention, of_mlp, rest = split_or_none(self, key, 3)
        drop, keys = make_drop(self, rest), (of_attention, of_mlp)
        return blocks.call_encoder_block(self, x, mask, return_weights, causal, drop, keys)


class DecoderBlock(eqx.Module):
    """The JAX twin of attnbook.torch.DecoderBlock, with the same arguments and formula.

    Entries are left out where it is called with a random key. The key here draws the parameters.
    """

    attention: Attention
    cross_attention: Attention
    mlp: MLP
    attention_norm: Norm
    cross_norm: Norm
    mlp_norm: Norm
    config: BlockConfig = eqx.field(static=True)
    embed_dim: int = eqx.field(static=True)
    num_heads: int = eqx.field(static=True)
    norm: str = eqx.field(static=True)
    dropout: float = eqx.field(static=True)

    def __init__(
        self, embed_dim: int, num_heads: int, mlp_dim: int, *, key: PRNGKeyArray, **options: Any
    ) -> None:
        keys = jax.random.split(check_key(key), 3)
        config = BlockConfig(embed_dim, num_heads, mlp_dim, **options)
        self.config = config.without("rotary_base", "attention")
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.norm, self.dropout = config.norm, config.dropout
        self.attention = make_attention(config, keys[0])
        self.cross_attention = make_attention(config, keys[1])
        self.mlp = make_mlp(config, keys[2])
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
        *keys, rest = split_or_none(self, key, 4)
        drop = make_drop(self, rest)
        return blocks.call_decoder_block(
            self, x, memory, mask, memory_mask, return_weights, causal, drop, tuple(keys)
        )
