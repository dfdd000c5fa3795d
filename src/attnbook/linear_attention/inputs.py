"""What a layer with a state of fixed size is given: tokens, decays, shares written, a state."""

from typing import Any

import numpy as np

from attnbook._types import Array
from attnbook._validation import (
    check_floating,
    check_qkv,
    common_namespace,
    promote_autocast,
    upcast_half,
)


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
    xp = check_qkv(**arrays)
    n, d = arrays["q"].shape[-2:]
    for name, array in arrays.items():
        if array.shape[-2] != n:
            rows = array.shape[-2]
            raise ValueError(f"{name}: got {rows} rows, expected {n} as in q, one per token")
    others = {name: a for name, a in (per_token | {"state": state}).items() if a is not None}
    common_namespace(**arrays, **others)
    wide = list(upcast_half(xp, *arrays.values()))
    leads = [tuple(a.shape[:-2]) for a in arrays.values()]
    for name, array in others.items():
        end: tuple[int, ...] = (d, arrays["v"].shape[-1]) if name == "state" else (n,)
        shape = tuple(array.shape)
        if shape[-len(end) :] != end:
            expected = "(..., " + ", ".join(map(str, end)) + ")"
            raise ValueError(f"{name}: got shape {shape}, expected {expected}")
        if array.dtype not in (arrays["q"].dtype, wide[0].dtype):
            check_floating(**{"q": arrays["q"], name: array})
        leads.append(shape[: -len(end)])
    try:
        lead = np.broadcast_shapes(*leads)
    except ValueError:
        given = arrays | others
        got = ", ".join(f"{name} {tuple(a.shape)}" for name, a in given.items())
        raise ValueError(
            f"{', '.join(given)}: got shapes {got}, expected leading axes that broadcast"
        ) from None
    cast = [
        None if a is None else xp.astype(a, wide[0].dtype) for a in (*per_token.values(), state)
    ]
    return xp, wide, cast, lead
