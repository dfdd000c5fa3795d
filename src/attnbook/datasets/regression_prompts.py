"""Regression as reading: known pairs and open questions are tokens of one sequence."""

import numpy as np
from jaxtyping import Bool, Float, Int

from attnbook._validation import check_numpy, nonnegative_int

Array = np.ndarray


def prompt(
    keys: Float[Array, "... n"], values: Float[Array, "... n"], queries: Float[Array, "... m"]
) -> Float[Array, "... n_and_m 3"]:
    """Tokens (x, y, 0) of the pairs, then tokens (x, 0, 1) of the queries, as float32.

    Args:
        keys: x of the pairs, of shape (..., n).
        values: y of the pairs, of the same shape.
        queries: x whose y is asked for, of shape (..., m).

    Returns:
        Of shape (..., n + m, 3).

    Raises:
        ValueError: shapes that do not fit.
        TypeError: what is no NumPy array.
    """
    check_numpy(keys=keys, values=values, queries=queries)
    if keys.shape != values.shape or keys.ndim == 0:
        got = f"{keys.shape} and {values.shape}"
        raise ValueError(f"keys, values: got shapes {got}, expected the same (..., n)")
    if queries.ndim == 0 or queries.shape[:-1] != keys.shape[:-1]:
        expected = ", ".join([*map(str, keys.shape[:-1]), "m"])
        raise ValueError(f"queries: got shape {queries.shape}, expected ({expected})")
    pairs = np.stack([keys, values, np.zeros_like(keys)], axis=-1)
    asked = np.stack([queries, np.zeros_like(queries), np.ones_like(queries)], axis=-1)
    every = np.concatenate([pairs, asked], axis=-2)
    return every.astype(np.float32)


def mask(n: int, seen: Int[Array, " m"]) -> Bool[Array, "n_and_m n_and_m"]:
    """Who may attend to whom in a prompt of n pairs and m queries.

    A pair attends to itself and the pairs before it, a query to the first pairs, as many as it may
    see, and to itself. So one pass answers queries about contexts of many sizes.

    Args:
        n: the number of pairs.
        seen: how many pairs each query may see, 0 to n, of shape (m,).

    Returns:
        Boolean, of shape (n + m, n + m), True = may attend.

    Raises:
        ValueError: numbers of pairs that are not from 0 to n.
    """
    seen = np.asarray(seen)
    if seen.ndim != 1 or np.any((seen < 0) | (seen > nonnegative_int(n=n))):
        raise ValueError(f"seen: got {seen!r}, expected integers from 0 to {n}, one per query")
    m = len(seen)
    before = np.arange(n) < seen[:, None]
    return np.block(
        [
            [np.tri(n, dtype=bool), np.zeros((n, m), dtype=bool)],
            [before, np.eye(m, dtype=bool)],
        ]
    )
