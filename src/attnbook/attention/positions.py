"""Positions: what tells a token where it stands. Attention on its own does not know."""

import math
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from jaxtyping import Float, Real

from attnbook._types import Array
from attnbook._validation import (
    check_floating,
    common_namespace,
    even,
    fits,
    is_concretely_true,
    nonnegative_int,
    positive,
    positive_int,
)

BASE = 10_000.0  # wavelengths go from 2π to 2π · BASE


def sinusoidal(n: int, d: int) -> Float[np.ndarray, "n d"]:
    """Sinusoidal positions, P[p, 2i] = sin(p θ_i) and P[p, 2i + 1] = cos(p θ_i).

    The frequencies are θ_i = 10000^(−2i/d). To move on by k positions is to turn every pair by the
    angle k θ_i, wherever one starts.

    Args:
        n: the number of positions, 0 to n − 1.
        d: the width, even.

    Returns:
        A NumPy array of shape (n, d), float64, to be added to embeddings.

    Raises:
        ValueError: n below 0, d that is odd or below 2.

    Source: Vaswani et al. (2017), section 3.5.
    """
    angles = np.arange(nonnegative_int(n=n))[:, None] * _frequencies(even(d=d))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n, d)


def rotary(
    x: Float[Array, "... n d"], positions: Real[Array, "... n"], base: float = BASE
) -> Float[Array, "... n d"]:
    """Rotary positions: the pair (x[2i], x[2i + 1]) of the token at p is turned by p θ_i.

    With queries and keys turned, q_i · k_j depends on the positions through their difference alone.
    The frequencies are θ_i = base^(−2i/d).

    Args:
        x: queries or keys of shape (..., n, d), d even.
        positions: p of every token, integers or real numbers, of shape (n,), or a row for each
            sequence, of shape (..., n) with leading axes that broadcast with those of x.
        base: above 0; the larger, the slower the last pairs turn.

    Returns:
        Of the shape and dtype of x; lengths are kept.

    Raises:
        ValueError: a width that is odd, positions that do not fit or are no finite real numbers, a
            base that is not above 0.
        TypeError: arrays of different libraries.

    Source: Su et al. (2024), equations 13 to 15. Some libraries pair x[i] with x[i + d/2] instead.
    """
    xp = check_floating(x=x)
    common_namespace(x=x, positions=positions)
    got, shape = tuple(positions.shape), tuple(x.shape)
    if x.ndim < 2 or got[-1:] != shape[-2:-1] or not fits(got, shape[:-1]):
        raise ValueError(
            f"positions: got shape {got}, expected (n,) for x of shape {shape}, or (..., n) with "
            "leading axes that broadcast with those of x"
        )
    if not xp.isdtype(positions.dtype, ("integral", "real floating")):
        raise ValueError(f"positions: got dtype {positions.dtype}, expected real numbers")
    even(x=x.shape[-1])
    positions = xp.astype(positions, _angle_dtype(x))
    if is_concretely_true(~xp.all(xp.isfinite(positions))):
        raise ValueError(f"positions: got {positions}, expected finite numbers")
    return unchecked_rotary(x, positions, positive(base=base))


def unchecked_rotary(x: Array, positions: Array, base: float) -> Array:
    """The formula of rotary, for what was checked before."""
    xp = array_namespace(x)
    wide = _angle_dtype(x)
    theta = xp.asarray(_frequencies(x.shape[-1], base), dtype=wide, device=device(x))
    angles = xp.astype(positions, wide)[..., None] * theta  # (..., n, d/2)
    cos, sin = xp.cos(angles), xp.sin(angles)
    first, second = (xp.astype(x[..., start::2], wide) for start in (0, 1))
    turned = xp.stack([first * cos - second * sin, first * sin + second * cos], axis=-1)
    return xp.astype(xp.reshape(turned, x.shape), x.dtype)


def alibi(num_heads: int, n: int) -> Float[np.ndarray, "heads n n"]:
    """Attention with linear biases, B[h, i, j] = −m_h · abs(i − j), to be added to the scores.

    For a power of two heads the slopes are m_h = 2^(−8h/num_heads), h = 1, 2, …; for another number
    those of the power below come first, then every other one of the power above.

    Args:
        num_heads: 1 or more.
        n: the number of tokens.

    Returns:
        A NumPy array of shape (num_heads, n, n), float64. Under a causal mask only j ≤ i counts.

    Raises:
        ValueError: num_heads below 1, n below 0.

    Source: Press, Smith and Lewis (2022), section 3; their code for other numbers of heads.
    """
    num_heads = positive_int(num_heads=num_heads)
    position = np.arange(nonnegative_int(n=n))
    distance = np.abs(position[:, None] - position[None, :])
    return -_slopes(num_heads)[:, None, None] * distance


def _angle_dtype(x: Array) -> Any:
    """Of angles, at least float32: those of far positions are large."""
    xp = array_namespace(x)
    return xp.float64 if x.dtype == xp.float64 else xp.float32


def _frequencies(d: int, base: float = BASE) -> Float[np.ndarray, " pairs"]:
    return base ** (-np.arange(0, d, 2) / d)


def _slopes(num_heads: int) -> Float[np.ndarray, " heads"]:
    power = 2 ** int(math.log2(num_heads))
    slopes = 2.0 ** (-8 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-8 * np.arange(1, 2 * power + 1, 2) / (2 * power))
    return np.concatenate([slopes, between[: num_heads - power]])
