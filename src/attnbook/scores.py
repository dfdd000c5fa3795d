"""Scores: how well a key answers a query. The softmax of a row of scores is a row of weights."""

import math
from typing import Any

from jaxtyping import Float

from attnbook import arguments
from attnbook.kernels import squared_distance

Array = Any  # a NumPy, PyTorch or JAX array


def gaussian_score(
    q: Float[Array, "... m d"], k: Float[Array, "... n d"], bandwidth: Any = 1.0
) -> Float[Array, "... m n"]:
    """Gaussian score, s_ij = −‖q_i − k_j‖² / (2h²): the logarithm of the Gaussian kernel.

    Args:
        q: queries of shape (..., m, d).
        k: keys of shape (..., n, d); leading axes broadcast.
        bandwidth: h, a number, or an array of shape () or (d,), one h per coordinate.

    Returns:
        Scores of shape (..., m, n), at most 0.
    """
    arguments.points(q=q, k=k)
    return -0.5 * squared_distance(q, k, bandwidth)


def dot(q: Float[Array, "... m d"], k: Float[Array, "... n d"]) -> Float[Array, "... m n"]:
    """Dot product, s_ij = q_i · k_j.

    Args:
        q: queries of shape (..., m, d).
        k: keys of shape (..., n, d); leading axes broadcast.

    Returns:
        Scores of shape (..., m, n).

    Source: Luong, Pham and Manning (2015), section 3.1, "dot".
    """
    arguments.points(q=q, k=k)
    return q @ k.mT


def scaled_dot(q: Float[Array, "... m d"], k: Float[Array, "... n d"]) -> Float[Array, "... m n"]:
    """Scaled dot product, s_ij = q_i · k_j / √d: the variance of a score does not grow with d.

    Args:
        q: queries of shape (..., m, d).
        k: keys of shape (..., n, d); leading axes broadcast.

    Returns:
        Scores of shape (..., m, n).

    Source: Vaswani et al. (2017), equation 1.
    """
    return dot(q, k) / math.sqrt(q.shape[-1])
