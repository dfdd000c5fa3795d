"""What a layer may be made with: numbers to start from, and what its parts have in common."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnbook.activations import ACTIVATIONS
from attnbook.sizes import choice, parts, size

SCALE = 0.3  # of first embeddings and positions; 0.02, as in GPT-2, learns more slowly here


def bandwidth(h: float | Sequence[float]) -> np.ndarray:
    """One bandwidth, or one a coordinate: a NumPy array of shape () or (d,)."""
    return _above_0("bandwidth", h, (0, 1), "a number above 0, or one a coordinate")


def bandwidths(h: Sequence[float] | Sequence[Sequence[float]]) -> np.ndarray:
    """The bandwidths of several heads, of shape (heads,) or (heads, d)."""
    expected = "numbers above 0, one a head, or one a head and coordinate"
    return _above_0("bandwidths", h, (1, 2), expected)


def metric(metric: Sequence[Sequence[float]]) -> np.ndarray:
    """A matrix of shape (r, d)."""
    array = numbers(metric)
    if array.ndim != 2 or array.size == 0 or not np.all(np.isfinite(array)):
        raise ValueError(f"metric: got {metric!r}, expected a matrix (r, d) of finite numbers")
    return array


def head_shape(
    embed_dim: int, num_heads: int, num_kv_heads: int | None
) -> tuple[int, int, int, int]:
    """A width, heads of queries, heads of keys and values, the width of a head."""
    width = size(embed_dim=embed_dim)
    head_dim = parts(width, num_heads=num_heads)
    shared = num_heads if num_kv_heads is None else num_kv_heads
    if num_heads % size(num_kv_heads=shared):
        raise ValueError(
            f"num_kv_heads: got {shared}, expected a divisor of {num_heads}, the heads"
        )
    return width, int(num_heads), int(shared), head_dim


def keep_sizes(
    model: Any,
    embed_dim: int,
    num_heads: int,
    mlp_dim: int,
    num_layers: int,
    norm: str,
    activation: str,
) -> None:
    """A transformer's sizes as attributes: its twin is made from them."""
    model.embed_dim, model.num_heads, _, _ = head_shape(embed_dim, num_heads, None)
    model.mlp_dim, model.num_layers = size(mlp_dim=mlp_dim), size(num_layers=num_layers)
    model.norm = choice(("pre", "post"), norm=norm)
    model.activation = known_activation(activation)


def known_activation(activation: str) -> str:
    """The name of an activation."""
    return choice(tuple(ACTIVATIONS), activation=activation)


def decoder_score(score: str | None) -> str | None:
    """The name of the score of a decoder, or None for a decoder without attention."""
    if not isinstance(score, str | None) or score not in ("additive", "general", "dot", None):
        raise ValueError(f"score: got {score!r}, expected 'additive', 'general', 'dot' or None")
    return score


def _above_0(name: str, h: Any, axes: tuple[int, int], expected: str) -> np.ndarray:
    array = numbers(h)
    if array.ndim not in axes or array.size == 0 or not np.all((array > 0) & np.isfinite(array)):
        raise ValueError(f"{name}: got {h!r}, expected {expected}")
    return array


def numbers(given: Any) -> np.ndarray:
    """Given numbers as a float64 NumPy array; what is none as a NaN."""
    try:
        array = np.asarray(given)
    except (TypeError, ValueError):
        return np.asarray(math.nan)
    return array.astype(float) if array.dtype.kind in "iuf" else np.asarray(math.nan)
