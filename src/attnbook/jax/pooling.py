"""Attention pooling with a learned query."""

from typing import Any

import equinox as eqx
import jax
from jax import Array
from jaxtyping import Int, PRNGKeyArray

from attnbook._validation import positive_int
from attnbook.attention.pooling import pool
from attnbook.jax.dropout import check_key


class AttentionPooling(eqx.Module):
    """The JAX twin of attnbook.torch.AttentionPooling; the key draws the parameters."""

    embedding: eqx.nn.Embedding
    query: Array
    key: eqx.nn.Linear
    value_hidden: eqx.nn.Linear
    value_out: eqx.nn.Linear
    head_hidden: eqx.nn.Linear
    head_out: eqx.nn.Linear
    vocab_size: int = eqx.field(static=True)
    embed_dim: int = eqx.field(static=True)
    key_dim: int = eqx.field(static=True)
    hidden_dim: int = eqx.field(static=True)

    def __init__(
        self,
        vocab_size: int,
        embed_dim: int = 16,
        key_dim: int = 32,
        hidden_dim: int = 32,
        *,
        key: PRNGKeyArray,
    ) -> None:
        self.vocab_size = positive_int(vocab_size=vocab_size)
        self.embed_dim = positive_int(embed_dim=embed_dim)
        self.key_dim = positive_int(key_dim=key_dim)
        self.hidden_dim = positive_int(hidden_dim=hidden_dim)
        keys = jax.random.split(check_key(key), 7)
        self.embedding = eqx.nn.Embedding(self.vocab_size, self.embed_dim, key=keys[0])
        self.query = jax.random.normal(keys[1], (1, self.key_dim))
        self.key = eqx.nn.Linear(self.embed_dim, self.key_dim, key=keys[2])
        self.value_hidden = eqx.nn.Linear(self.embed_dim, self.hidden_dim, key=keys[3])
        self.value_out = eqx.nn.Linear(self.hidden_dim, 1, key=keys[4])
        self.head_hidden = eqx.nn.Linear(1, self.hidden_dim, key=keys[5])
        self.head_out = eqx.nn.Linear(self.hidden_dim, 1, key=keys[6])

    def __call__(
        self, tokens: Int[Array, "... n"], mask: Array | None = None, return_weights: bool = False
    ) -> Any:
        """Logits of shape (...), or the triple (logits, weights, values), the latter (..., n)."""
        return pool(self, tokens, mask, return_weights)
