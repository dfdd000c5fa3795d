"""The gated delta rule, right and as readers get it wrong, for the checks of chapter 11."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Arrays = list[np.ndarray]
Error = Callable[[np.ndarray, np.ndarray, float, float], np.ndarray]


def tokens(seed: int, n: int, d: int, p: int) -> Arrays:
    """Queries and keys of length 1 (n, d), values (n, p), decays (n,) and β (n,)."""
    rng = np.random.default_rng(seed)
    q, k = rng.normal(size=(2, n, d))
    q, k = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (q, k))
    return [q, k, rng.normal(size=(n, p)), rng.uniform(0.3, 0.9, n), rng.uniform(0.3, 1, n)]


def recurrent(arrays: Arrays, error: Error, fade: Callable[[float], float] = float) -> np.ndarray:
    """Outputs (n, p) where error(v, answer, a, b) is written, and fade(a) of the state is left."""
    state, outputs = np.zeros((arrays[1].shape[1], arrays[2].shape[1])), []
    for q, k, v, a, b in zip(*arrays, strict=True):
        state, u = fade(a) * state, error(v, k @ state, a, b)
        state = state + np.outer(k, u)
        outputs.append(q @ state)
    return np.asarray(outputs)


def misplaced(arrays: Arrays) -> list[tuple[np.ndarray, str]]:
    """Outputs of a gate at a wrong place, each with its cause."""
    return [
        (recurrent(arrays, error, fade), cause)
        for error, fade, cause in (
            (lambda v, s, a, b: b * (v - s), float, "The error is still that before the gate."),
            (lambda v, s, a, b: b * (v - s), lambda a: 1, "The gate is gone."),
            (lambda v, s, a, b: b * a * (v - s), float, "The new value does not fade."),
            (lambda v, s, a, b: b * (a * v - s), float, "The old answer fades, not the value."),
            (lambda v, s, a, b: b * (v - a * a * s), float, "The old answer fades once."),
            (lambda v, s, a, b: b * (v - a * s), lambda a: a * a, "The state fades twice now."),
            (lambda v, s, a, b: b * (v - s / a), float, "The old answer is smaller by then."),
            (lambda v, s, a, b: b * (v - (1 - a) * s), float, "a is what is left, not lost."),
            (lambda v, s, a, b: b * (v + a * s), float, "The old answer is subtracted."),
            (lambda v, s, a, b: b * v, float, "Nothing is subtracted: that is a gated sum."),
            (lambda v, s, a, b: b * (v - b * a * s), float, "β is in the next line already."),
            (lambda v, s, a, b: b * (v - b * s), float, "β does not say how much is left."),
        )
    ]


def chunked(arrays: Arrays, chunk: int, **wrong: Any) -> np.ndarray:
    """Outputs (n, p) by chunks; ``wrong`` names what is done in another way.

    Args:
        arrays: as tokens() gives them.
        chunk: how many tokens at a time.
        wrong: ``carried`` 0 for no state from chunk to chunk; ``g_read``, ``g_error`` and
            ``g_state`` 0 for no decay of it in outputs, errors and the next state; ``end`` 0 for
            no decay of what the chunk writes up to its end; ``known`` 0 for errors that do not
            know the state; ``own`` 1 for decays that count the written token's own; ``below`` 0
            for a system with the diagonal; ``beta`` 0 for one without β; ``solve`` 0 for errors
            that do not know one another; ``inside`` 0 for outputs without what the chunk writes,
            −1 without the token's own.
    """
    on: dict[str, float] = dict.fromkeys(
        ("carried", "g_read", "g_error", "g_state", "end", "known", "beta", "solve", "inside"), 1.0
    )
    on |= {"own": 0, "below": -1} | wrong
    state, outputs = np.zeros((arrays[1].shape[1], arrays[2].shape[1])), []
    for start in range(0, len(arrays[0]), chunk):
        q, k, v, a, b = (x[start : start + chunk] for x in arrays)
        m, g = len(a), np.cumprod(a)[:, None]
        later = np.tri(m, k=-1, dtype=bool)
        d = np.tril(np.cumprod(np.where(later, a[:, None], 1), axis=0))
        d = d * (a if on["own"] else 1)
        errors = v - on["known"] * g ** on["g_error"] * (k @ state)
        system = np.tril(k @ k.T * d, int(on["below"])) * b[:, None] ** on["beta"]
        u = np.linalg.solve(np.eye(m) + on["solve"] * system, b[:, None] * errors)
        seen = np.tril(q @ k.T * d, min(0, int(on["inside"])))
        outputs.append(g ** on["g_read"] * (q @ state) + abs(on["inside"]) * seen @ u)
        written = (k * d[-1][:, None] ** on["end"]).T @ u
        state = on["carried"] * (g[-1] ** on["g_state"] * state + written)
    return np.concatenate(outputs)


MISTAKES = (
    ({"carried": 0}, "Every chunk begins with an empty state: carry it on."),
    ({"g_read": 0}, "In the outputs, what stands in the state has faded too: g_t."),
    ({"g_error": 0}, "In the errors, what stands in the state has faded too: g_t."),
    ({"g_read": 0, "g_error": 0}, "The state at the start of a chunk fades inside it: g_t."),
    ({"g_state": 0}, "The next state keeps only g of the last token of the old one."),
    ({"end": 0}, "What a chunk writes fades until its end: the last row of D."),
    ({"known": 0}, "The errors leave out what the state at the start answers."),
    ({"own": 1}, "D counts the decays after token s: D_tt is 1."),
    ({"below": 0}, "The system has the diagonal twice: a token does not correct itself."),
    ({"beta": 0}, "β multiplies the whole error, so it stands in the system too."),
    ({"solve": 0}, "Inside a chunk, errors subtract what earlier tokens wrote: solve for u."),
    ({"known": 0, "solve": 0}, "Nothing is subtracted: that is a gated sum, without the delta."),
    ({"inside": 0}, "The outputs leave out what the chunk itself writes."),
    ({"inside": -1}, "A token is read after it is written: s = t counts in the outputs."),
)  # fmt: skip
