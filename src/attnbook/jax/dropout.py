"""Dropout: entries left out at random while a model learns."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import PRNGKeyArray


def left_out(key: PRNGKeyArray, share: float, x: Array) -> Array:
    """A share of the entries set to 0, the others grown by 1 / (1 − share)."""
    kept = jax.random.bernoulli(key, 1 - share, x.shape)
    return jnp.where(kept, x / (1 - share), 0)


def dropping(layer: Any, key: PRNGKeyArray | None) -> Any:
    """What leaves entries out, each call by another part of the key; None without a key."""
    if key is None or layer.dropout == 0:
        return None
    remaining = [key]

    def drop(x: Array) -> Array:
        remaining[0], now = jax.random.split(remaining[0])
        return left_out(now, layer.dropout, x)

    return drop
