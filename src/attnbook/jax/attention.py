"""Self-attention and multi-head attention: parameters and initialisation."""

from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
from jax import Array
from jaxtyping import Bool, Float, PRNGKeyArray

from attnbook._validation.numbers import positive_int, probability
from attnbook._validation.options import flag
from attnbook._validation.types import Score
from attnbook.attention import heads, scores
from attnbook.jax.dropout import check_key, check_key_or_none, dropout


class SelfAttention(eqx.Module):
    """One head of self-attention; its formula is attnbook.attention.heads.self_attention.

    Args:
        embed_dim: the width of a token.
        head_dim: the width of queries, keys, values and output; embed_dim if it is not given.
        key: the random key of the initial parameters.

    Raises:
        ValueError: a size that is not an integer of at least 1.
    """

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
    """Several heads side by side; its formula is attnbook.attention.heads.multi_head_attention.

    Args:
        embed_dim: the width of a token.
        num_heads: of queries, a divisor of embed_dim.
        num_kv_heads: of keys and values, a divisor of num_heads; as many as num_heads if it is not
            given. One is multi-query attention, a number between is grouped-query attention.
        bias: whether the four projections have one.
        dropout: the share of the weights that is left out when the layer is called with a random
            key, from 0 to below 1; the others grow by 1 / (1 − dropout).
        rotary_base: turns queries and keys by their positions, as attention.positions.rotary with
            that base; None leaves them as they are.
        key: the random key of the initial parameters.

    Raises:
        ValueError: a size that is not an integer of at least 1, a number that does not divide, a
            dropout outside [0, 1), a rotary_base that is not above 0 or heads of an odd width.
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
        self.bias = flag(bias=bias)
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
        drop = None if key is None or self.dropout == 0 else partial(dropout, key, self.dropout)
        return heads.multi_head_attention(
            self,
            queries,
            keys,
            values,
            mask=mask,
            return_weights=return_weights,
            score=score,
            drop=drop,
            causal=causal,
        )
