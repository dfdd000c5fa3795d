"""What the functions accept. Anything else is a ValueError in one line: the argument, what came, what was expected.

Values can be looked at only where they are known: under jax.jit, torch.compile and vmap the shapes
are checked and the values are not.
"""

import math
import sys
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_jax_array, is_torch_array

Array = Any


def attention(queries: Array, keys: Array, values: Array, mask: Array | None) -> Any:
    """Check the four arrays that every weighted average takes; return their namespace."""
    xp = array_namespace(queries, keys, values)
    for name, array, shape in (
        ("queries", queries, "(..., m, d)"),
        ("keys", keys, "(..., n, d)"),
        ("values", values, "(..., n, p)"),
    ):
        if array.ndim < 2:
            hint = f": write {name}[:, None] for a single column" if array.ndim == 1 else ""
            raise ValueError(f"{name}: got shape {tuple(array.shape)}, expected {shape}{hint}")
        if not xp.isdtype(array.dtype, "real floating"):
            raise ValueError(f"{name}: got dtype {array.dtype}, expected a floating one")
        if array.dtype != queries.dtype:
            raise ValueError(
                f"{name}: got dtype {array.dtype}, expected {queries.dtype} as the queries have"
            )
    if keys.shape[-1] != queries.shape[-1]:
        raise ValueError(
            f"keys: got {keys.shape[-1]} coordinates, expected {queries.shape[-1]} as the queries have"
        )
    if values.shape[-2] != keys.shape[-2]:
        raise ValueError(
            f"values: got {values.shape[-2]} rows, expected {keys.shape[-2]}, one a key"
        )
    lead = leading_axes(queries=queries, keys=keys, values=values)
    if mask is not None:
        array_namespace(queries, mask)  # a TypeError where the kinds are mixed
        if not xp.isdtype(mask.dtype, "bool"):
            raise ValueError(f"mask: got dtype {mask.dtype}, expected bool, True = may attend")
        target = (*lead, queries.shape[-2], keys.shape[-2])
        if not broadcasts(tuple(mask.shape), target):
            raise ValueError(
                f"mask: got shape {tuple(mask.shape)}, expected one that fits {target}"
            )
    return xp


def leading_axes(**arrays: Array) -> tuple[int, ...]:
    """The common shape of all axes but the last two."""
    try:
        return np.broadcast_shapes(*(tuple(a.shape[:-2]) for a in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {tuple(a.shape)}" for name, a in arrays.items())
        raise ValueError(f"{', '.join(arrays)}: leading axes do not broadcast: {shapes}") from None


def broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether an array of this shape broadcasts against target, leading axes included."""
    try:
        return np.broadcast_shapes(shape, target)[-2:] == target[-2:]
    except ValueError:
        return False


def data(xp: Any, **arrays: Array) -> None:
    """Refuse data without a row or a coordinate, and data with NaN or infinity in it."""
    for name, array in arrays.items():
        if name == "keys" and array.shape[-2] == 0:
            raise ValueError("keys: got no rows, expected at least one")
        if name == "keys" and array.shape[-1] == 0:
            raise ValueError("keys: got no coordinates, expected at least one")
        bad = ~xp.isfinite(array)
        if known_true(xp.any(bad)):
            count = int(xp.sum(xp.astype(bad, xp.int64)))
            raise ValueError(
                f"{name}: got {count} entries of {math.prod(bad.shape)} that are NaN or infinite, "
                "expected finite numbers"
            )


def bandwidth(xp: Any, h: Any, like: Array) -> Any:
    """The bandwidth as a Python number or an array of shape () or (d,) of the data's kind."""
    d = like.shape[-1]
    if isinstance(h, Real):  # NumPy's scalars too: they would promote float32 arrays
        h = float(h)
        if not 0 < h < float("inf"):
            raise ValueError(f"bandwidth: got {h}, expected a number above 0")
        return h
    if isinstance(h, Sequence):
        h = xp.asarray(h, dtype=like.dtype, device=like.device)
    array_namespace(like, h)  # a TypeError where the kinds are mixed
    if tuple(h.shape) not in ((), (d,)):
        raise ValueError(
            f"bandwidth: got shape {tuple(h.shape)}, expected () or ({d},), one a coordinate"
        )
    if known_true(~xp.all((h > 0) & xp.isfinite(h))):
        raise ValueError(f"bandwidth: got {h}, expected numbers above 0")
    return xp.astype(h, like.dtype)


def starting_bandwidth(h: float | Sequence[float]) -> np.ndarray:
    """The bandwidth that a layer starts with, as a NumPy array of shape () or (d,)."""
    array = np.asarray(h, dtype=float)
    if array.ndim > 1 or array.size == 0 or not np.all((array > 0) & np.isfinite(array)):
        raise ValueError(f"bandwidth: got {h}, expected a number above 0, or one a coordinate")
    return array


def kernel(function: Any) -> None:
    """Refuse what is not a function of u."""
    if not callable(function):
        raise ValueError(
            f"kernel: got {function!r}, expected a function of u such as attnbook.kernels.gaussian"
        )


def known_true(condition: Array) -> bool:
    """Whether a condition is known to hold; False while a transformation hides the values."""
    if is_jax_array(condition):
        return not isinstance(condition, sys.modules["jax"].core.Tracer) and bool(condition)
    if is_torch_array(condition):
        torch = sys.modules["torch"]
        if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
            return False
    return bool(condition)
