"""Self-attention and multi-head attention: parameters and initialisation."""

from typing import Any, ClassVar

import equinox as eqx
import jax
from jax import Array
from jaxtyping import Bool, Float, PRNGKeyArray

from attnbook._types import Score
from attnbook._validation import positive_int, probability
from attnbook.attention import heads, scores
from attnbook.jax.dropout import check_key, check_key_or_none


class SelfAttention(eqx.Module):
    """The JAX twin of attnbook.torch.SelfAttention; the key draws the parameters."""

    query: eqx.nn.Linear
    key: eqx.nn.Linear
    value: eqx.nn.Linear
    embed_dim: int = eqx.field(static=True)
    head_dim: int = eqx.field(static=True)

    def __init__(self, embed_dim: int, head_dim: int | None = None, *, key: PRNGKeyArray) -> None:
        self.embed_dim = e = positive_int(embed_dim=embed_dim)
        self.head_dim = d = positive_int(head_dim=embed_dim if head_dim is None else head_dim)
        for_query, for_key, for_value = jax.random.split(check_key(key), 3)
        self.query = eqx.nn.Linear(e, d, use_bias=False, key=for_query)
        self.key = eqx.nn.Linear(e, d, use_bias=False, key=for_key)
        self.value = eqx.nn.Linear(e, d, use_bias=False, key=for_value)

    def __call__(
        self,
        x: Float[Array, "... n e"],
        mask: Bool[Array, "..."] | None = None,
        return_weights: bool = False,
        *,
        score: Score = scores.scaled_dot,
        causal: bool = False,
    ) -> Any:
        """Output (..., n, head_dim), or the pair (output, weights (..., n, n))."""
        return heads.single_head(
            self, x, score=score, mask=mask, causal=causal, return_weights=return_weights
        )


class MultiHeadAttention(eqx.Module):
    """The JAX twin of attnbook.torch.MultiHeadAttention, with the same arguments and formula.

    Weights are left out where it is called with a random key. The key here draws the parameters.
    """

    attention_name: ClassVar[str] = "softmax"  # of a block that has it

    query: eqx.nn.Linear
    key: eqx.nn.Linear
    value: eqx.nn.Linear
    output: eqx.nn.Linear
    embed_dim: int = eqx.field(static=True)
    num_heads: int = eqx.field(static=True)
    num_kv_heads: int = eqx.field(static=True)
    bias: bool = eqx.field(static=True)
    dropout: float = eqx.field(static=True)
    rotary_base: float | None = eqx.field(static=True)

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        rotary_base: float | None = None,
        key: PRNGKeyArray,
    ) -> None:
        shape = heads.head_shape(embed_dim, num_heads, num_kv_heads)
        self.embed_dim, self.num_heads, self.num_kv_heads, head_dim = shape
        self.bias = bias
        self.dropout = probability(dropout=dropout)
        self.rotary_base = heads.rotary_base_or_none(head_dim, rotary_base)
        kv_dim = self.num_kv_heads * head_dim
        keys = jax.random.split(check_key(key), 4)
        self.query = eqx.nn.Linear(self.embed_dim, self.embed_dim, use_bias=bias, key=keys[0])
        self.key = eqx.nn.Linear(self.embed_dim, kv_dim, use_bias=bias, key=keys[1])
        self.value = eqx.nn.Linear(self.embed_dim, kv_dim, use_bias=bias, key=keys[2])
        self.output = eqx.nn.Linear(self.embed_dim, self.embed_dim, use_bias=bias, key=keys[3])

    def __call__(
        self,
        queries: Float[Array, "... m e"],
        keys: Float[Array, "... n e"] | None = None,
        values: Float[Array, "... n e"] | None = None,
        mask: Bool[Array, "..."] | None = None,
        return_weights: bool = False,
        *,
        score: Score = scores.scaled_dot,
        causal: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> Any:
        """Output (..., m, e), or the pair (output, weights (..., heads, m, n)).

        With a random key weights are left out, as while training; without one none is.
        """
        check_key_or_none(key)
        return heads.multi_head_attention(
            self,
            queries,
            keys,
            values,
            mask=mask,
            return_weights=return_weights,
            score=score,
            causal=causal,
            dropout=0.0 if key is None else self.dropout,
            key=key,
        )
