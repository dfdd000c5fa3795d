"""Heads without the softmax: parameters and initialisation."""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, PRNGKeyArray

from attnbook.attention import heads
from attnbook.jax.dropout import check_key
from attnbook.linear_attention import linear_heads
from attnbook.models.config import NAMES_OF_GATES


class _Projections(eqx.Module):
    """The sizes and the four matrices that every layer of several heads has, and its call."""

    formula: ClassVar[Callable[..., Any]]

    query: eqx.nn.Linear
    key: eqx.nn.Linear
    value: eqx.nn.Linear
    output: eqx.nn.Linear
    embed_dim: int = eqx.field(static=True)
    num_heads: int = eqx.field(static=True)
    num_kv_heads: int = eqx.field(static=True)
    bias: bool = eqx.field(static=True)

    def __init__(self, embed_dim: int, num_heads: int, bias: bool, key: PRNGKeyArray) -> None:
        shape = heads.head_shape(embed_dim, num_heads, None)
        self.embed_dim, self.num_heads, self.num_kv_heads, _ = shape
        self.bias = bias
        self.query, self.key, self.value, self.output = (
            eqx.nn.Linear(self.embed_dim, self.embed_dim, use_bias=bias, key=one)
            for one in jax.random.split(key, 4)
        )

    def __call__(
        self,
        queries: Float[Array, "... n e"],
        keys: Array | None = None,
        values: Array | None = None,
        mask: Bool[Array, "..."] | None = None,
        return_weights: bool = False,
        *,
        causal: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> Any:
        """Output (..., n, e), or the pair (output, weights (..., heads, n, n)).

        A GatedDelta is there for causal=True alone. Nothing is left out, with a key or without.
        """
        return self.formula(
            self, queries, keys, values, mask=mask, return_weights=return_weights, causal=causal
        )


class LinearAttention(_Projections):
    """The JAX twin of attnbook.torch.LinearAttention; the key draws the parameters."""

    attention_name: ClassVar[str] = "linear"  # of a block that has it
    formula = staticmethod(linear_heads.linear_heads)

    def __init__(
        self, embed_dim: int, num_heads: int, *, bias: bool = True, key: PRNGKeyArray
    ) -> None:
        super().__init__(embed_dim, num_heads, bias, check_key(key))


class GatedDelta(_Projections):
    """The JAX twin of attnbook.torch.GatedDelta; the key draws the parameters."""

    formula = staticmethod(linear_heads.delta_heads)

    decay: eqx.nn.Linear | None
    beta: eqx.nn.Linear | None
    head_norm: eqx.nn.RMSNorm
    gate: bool = eqx.field(static=True)
    delta: bool = eqx.field(static=True)

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        *,
        gate: bool = True,
        delta: bool = True,
        bias: bool = True,
        key: PRNGKeyArray,
    ) -> None:
        keys = jax.random.split(check_key(key), 3)
        super().__init__(embed_dim, num_heads, bias, keys[0])
        self.gate, self.delta = gate, delta
        self.decay = self.beta = None
        if self.gate:
            decay = eqx.nn.Linear(self.embed_dim, self.num_heads, key=keys[1])
            start = jnp.full((self.num_heads,), linear_heads.DECAY_START)
            self.decay = eqx.tree_at(lambda linear: linear.bias, decay, start)
        if self.delta:
            self.beta = eqx.nn.Linear(self.embed_dim, self.num_heads, key=keys[2])
        head_dim = self.embed_dim // self.num_heads
        self.head_norm = eqx.nn.RMSNorm(head_dim, eps=1e-5, use_bias=False)

    @property
    def attention_name(self) -> str:
        """The name that a block has for it."""
        return NAMES_OF_GATES.get((self.gate, self.delta), "sum")  # of no block
