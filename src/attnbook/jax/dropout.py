"""Random keys, and dropout: entries left out at random while a model learns."""

from typing import Any

import jax
from jax import Array
from jaxtyping import PRNGKeyArray

from attnbook._types import Drop
from attnbook.layers.dropout import dropout


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


def split_or_none(layer: Any, key: PRNGKeyArray | None, count: int) -> tuple[Any, ...]:
    """Parts of a random key; or None so often, without a key or where the layer drops nothing."""
    check_key_or_none(key)
    if key is None or layer.dropout == 0:
        return (None,) * count
    return tuple(jax.random.split(key, count))


def make_drop(layer: Any, key: PRNGKeyArray | None) -> Drop | None:
    """What leaves entries out, each call by another part of the key; None without a key."""
    if key is None:
        return None
    remaining = key

    def drop(x: Array) -> Any:
        nonlocal remaining
        remaining, now = jax.random.split(remaining)
        return dropout(x, layer.dropout, now)

    return drop
