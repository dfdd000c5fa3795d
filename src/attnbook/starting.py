"""What a layer may be made with: numbers to start from, and sizes."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnbook import arguments


def bandwidth(h: float | Sequence[float]) -> np.ndarray:
    """One bandwidth, or one a coordinate: a NumPy array of shape () or (d,)."""
    return _above_0("bandwidth", h, (0, 1), "a number above 0, or one a coordinate")


def bandwidths(h: Sequence[float] | Sequence[Sequence[float]]) -> np.ndarray:
    """The bandwidths of several heads, of shape (heads,) or (heads, d)."""
    expected = "numbers above 0, one a head, or one a head and coordinate"
    return _above_0("bandwidths", h, (1, 2), expected)


def metric(metric: Sequence[Sequence[float]]) -> np.ndarray:
    """A matrix of shape (r, d)."""
    array = _numbers(metric)
    if array.ndim != 2 or array.size == 0 or not np.all(np.isfinite(array)):
        raise ValueError(f"metric: got {metric!r}, expected a matrix (r, d) of finite numbers")
    return array


def size(**argument: Any) -> int:
    """A width or a number of things, as a Python integer of at least 1."""
    ((name, number),) = argument.items()
    integer = arguments.count(**argument)
    if integer < 1:
        raise ValueError(f"{name}: got {number!r}, expected an integer, 1 or more")
    return integer


def limit(**argument: float | None) -> float | None:
    """A number above 0, or None for no limit."""
    ((name, number),) = argument.items()
    if number is not None and not number > 0:
        raise ValueError(f"{name}: got {number!r}, expected a number above 0, or None")
    return number


def pairs(**argument: Any) -> int:
    """A width of pairs, as an even Python integer of at least 2."""
    ((name, number),) = argument.items()
    if arguments.count(**argument) < 2 or number % 2:
        raise ValueError(f"{name}: got a width of {number}, expected an even one, 2 or more")
    return int(number)


def halves(**argument: Any) -> int:
    """A width that two halves share: an even integer of at least 2."""
    ((name, number),) = argument.items()
    if size(**argument) % 2:
        raise ValueError(f"{name}: got {number}, expected an even number, half for each direction")
    return int(number)


def parts(width: int, **argument: Any) -> int:
    """The width of one of so many parts of a width."""
    ((name, number),) = argument.items()
    if width % size(**argument):
        raise ValueError(f"{name}: got {number}, expected a divisor of {width}, the width")
    return width // int(number)


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
    model.activation = choice(("gelu", "relu", "swiglu"), activation=activation)


def choice(names: tuple[str, ...], **argument: str) -> str:
    """One of some names."""
    ((argument_name, name),) = argument.items()
    if name not in names:
        expected = " or ".join([", ".join(map(repr, names[:-1])), repr(names[-1])])
        raise ValueError(f"{argument_name}: got {name!r}, expected {expected}")
    return name


def share(**argument: float) -> float:
    """A share of at least 0 and below 1."""
    ((name, number),) = argument.items()
    if not 0 <= number < 1:
        raise ValueError(f"{name}: got {number!r}, expected a share from 0 to below 1")
    return float(number)


def decoder_score(score: str | None) -> str | None:
    """The name of the score of a decoder, or None for a decoder without attention."""
    if score not in ("additive", "general", "dot", None):
        raise ValueError(f"score: got {score!r}, expected 'additive', 'general', 'dot' or None")
    return score


def _above_0(name: str, h: Any, axes: tuple[int, int], expected: str) -> np.ndarray:
    array = _numbers(h)
    if array.ndim not in axes or array.size == 0 or not np.all((array > 0) & np.isfinite(array)):
        raise ValueError(f"{name}: got {h!r}, expected {expected}")
    return array


def _numbers(given: Any) -> np.ndarray:
    """Given numbers as a float64 NumPy array; what is none as a NaN."""
    try:
        return np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        return np.asarray(math.nan)
