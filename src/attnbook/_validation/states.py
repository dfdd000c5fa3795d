"""What a layer with a state of fixed size is given: tokens, decays, shares written, a state."""

from typing import Any

from attnbook._validation.arrays import (
    broadcast_shapes,
    check_floating,
    common_namespace,
    promote_autocast,
    upcast_half,
)
from attnbook._validation.types import Array


def check_state_inputs(
    arrays: dict[str, Array],
    per_token: dict[str, Array | None],
    state: Array | None = None,
) -> tuple[Any, list[Any], list[Any], tuple[int, ...]]:
    """Check q, k and v (..., n, width), numbers per token (..., n), and a state (..., d, p).

    Returns:
        The namespace; q, k and v; the numbers per token and the state; the common leading axes. All
        arrays are in one dtype, float32 or wider.
    """
    arrays = dict(zip(arrays, promote_autocast(*arrays.values()), strict=True))
    xp = check_floating(**arrays)
    given = arrays | per_token | ({} if state is None else {"state": state})
    present = {name: a for name, a in given.items() if a is not None}
    common_namespace(**present)
    _check_rows(arrays)
    n, d = arrays["q"].shape[-2:]
    ends: dict[str, Any] = dict.fromkeys(per_token, ((n,), "(..., n)"))
    if state is not None:
        ends["state"] = ((d, arrays["v"].shape[-1]), "(..., d, p)")
    for name in present.keys() - arrays.keys():
        end, expected = ends[name]
        shape = tuple(present[name].shape)
        if shape[-len(end) :] != end:
            numbers = ", ".join(map(str, end))
            raise ValueError(f"{name}: got shape {shape}, expected {expected}, so (..., {numbers})")
    shapes = {
        name: tuple(a.shape[:-1] if name in per_token else a.shape[:-2])
        for name, a in present.items()
    }
    try:
        lead = broadcast_shapes(*shapes.values())
    except ValueError:
        got = ", ".join(f"{name} {tuple(a.shape)}" for name, a in present.items())
        raise ValueError(
            f"{', '.join(present)}: got shapes {got}, expected leading axes that broadcast"
        ) from None
    wide = list(upcast_half(xp, *arrays.values()))
    others = [
        None if a is None else _in_dtype(xp, name, a, arrays["q"], wide[0])
        for name, a in (per_token | {"state": state}).items()
    ]
    return xp, wide, others, lead


def _check_rows(arrays: dict[str, Array]) -> None:
    for name, array in arrays.items():
        if array.ndim < 2:
            width = "p" if name == "v" else "d"
            got: Any = tuple(array.shape)
            raise ValueError(f"{name}: got shape {got}, expected (..., n, {width})")
    n, d = arrays["q"].shape[-2:]
    if arrays["k"].shape[-1] != d:
        got = arrays["k"].shape[-1]
        raise ValueError(f"k: got {got} coordinates, expected {d} as in q")
    for name in arrays:
        rows = arrays[name].shape[-2]
        if rows != n:
            raise ValueError(f"{name}: got {rows} rows, expected {n} as in q, one per token")


def _in_dtype(xp: Any, name: str, array: Array, q: Array, wide: Array) -> Array:
    """A number per token, or a state, in the dtype that is computed in."""
    if array.dtype not in (q.dtype, wide.dtype):
        dtypes = " or ".join(dict.fromkeys((str(q.dtype), str(wide.dtype))))
        raise ValueError(f"{name}: got dtype {array.dtype}, expected {dtypes}, as q has it")
    return xp.astype(array, wide.dtype)


def check_only_itself(
    queries: Array, keys: Array | None, values: Array | None, mask: Array | None
) -> None:
    """Check that tokens read themselves, and that a mask is one of keys, the same for all."""
    for name, array in (("keys", keys), ("values", values)):
        if array is not None and array is not queries:
            raise ValueError(
                f"{name}: got other tokens than the queries, expected None: a state is written by "
                "the tokens that read it, and MultiHeadAttention reads a memory"
            )
    if mask is not None and mask.ndim > 1 and mask.shape[-2] != 1:
        raise ValueError(
            f"mask: got shape {tuple(mask.shape)}, expected (..., 1, n): one state serves every "
            "query, so a mask can hide keys from all of them, and not some from each"
        )
