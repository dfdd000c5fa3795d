"""Dropout: entries left out at random while a model learns."""

from typing import Any

from array_api_compat import array_namespace, is_jax_array, is_torch_array
from jaxtyping import Float

from attnbook._types import Array


def dropout(x: Float[Array, "..."], share: float, key: Any = None) -> Float[Array, "..."]:
    """A share of the entries set to 0, the others grown by 1 / (1 − share).

    Args:
        x: of any shape.
        share: from 0 to below 1; at 0 nothing is left out.
        key: what the draws come from: a random key for JAX, a Generator for NumPy. PyTorch has its
            own.

    Returns:
        Of the shape of x.

    Source: Srivastava et al. (2014).
    """
    if share == 0:
        return x
    if is_torch_array(x):
        import torch

        return torch.nn.functional.dropout(x, share)
    if is_jax_array(x):
        import jax

        kept = jax.random.bernoulli(key, 1 - share, x.shape)
    else:
        kept = key.random(x.shape) >= share
    return array_namespace(x).where(kept, x / (1 - share), 0)
