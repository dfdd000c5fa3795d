"""Random keys, and dropout: entries left out at random while a model learns."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import PRNGKeyArray

from attnbook._validation.types import Drop


def check_key(key: Any) -> PRNGKeyArray:
    """Check that it is one random key, of jax.random.key or the older jax.random.PRNGKey."""
    dtype, shape = getattr(key, "dtype", None), getattr(key, "shape", None)
    typed = dtype is not None and jax.numpy.issubdtype(dtype, jax.dtypes.prng_key)
    if not (shape == () if typed else str(dtype) == "uint32" and len(key.shape) == 1):
        got = type(key).__name__ if shape is None else f"dtype {dtype}, shape {shape}"
        raise TypeError(f"key: got {got}, expected one random key such as jax.random.key(0)")
    return key


def check_key_or_none(key: Any) -> None:
    """Check a random key, or None."""
    if key is not None:
        check_key(key)


def dropout(key: PRNGKeyArray, share: float, x: Array) -> Array:
    """A share of the entries set to 0, the others grown by 1 / (1 − share)."""
    kept = jax.random.bernoulli(key, 1 - share, x.shape)
    return jnp.where(kept, x / (1 - share), 0)


def make_dropout(layer: Any, key: PRNGKeyArray | None) -> Drop | None:
    """What leaves entries out, each call by another part of the key; None without a key."""
    check_key_or_none(key)
    if key is None or layer.dropout == 0:
        return None
    return _Dropout(layer.dropout, key)


class _Dropout:
    """Leaves a share of the entries out, each time by another part of a key."""

    def __init__(self, share: float, key: PRNGKeyArray) -> None:
        self.share, self.remaining = share, key

    def __call__(self, x: Array) -> Array:
        self.remaining, now = jax.random.split(self.remaining)
        return dropout(now, self.share, x)
