"""Heads again, one at a time and a token at a time: no array is split, merged or broadcast."""

from __future__ import annotations

import cmath
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import reference

Parameters = Mapping[str, np.ndarray]
Score = Callable[[int, int, int, reference.Row, reference.Row], float]  # of head, i, j, q and k


def plain(h: int, i: int, j: int, q: reference.Row, k: reference.Row) -> float:
    return reference.scaled_dot(q, k)


def of_each(mask: np.ndarray | None, b: int) -> np.ndarray | None:
    """The mask of one sequence of a batch."""
    return mask if mask is None or mask.ndim == 2 else mask[b]


def turned(base: float) -> Score:
    """Of queries and keys with rotary positions, each pair turned by its angle."""

    def score(h: int, i: int, j: int, q: reference.Row, k: reference.Row) -> float:
        return reference.scaled_dot(rotary(i, q, base), rotary(j, k, base))

    return score


def rotary(p: float, x: reference.Row, base: float) -> list[float]:
    """A row at position p: the pair (a, b) as a + bi, times e^(i p θ)."""
    turns = [cmath.exp(1j * p / base ** (pair / len(x))) for pair in range(0, len(x), 2)]
    pairs = [complex(a, b) * t for a, b, t in zip(x[::2], x[1::2], turns, strict=True)]
    return [part for pair in pairs for part in (pair.real, pair.imag)]


def projected(
    parameters: Parameters, name: str, x: np.ndarray, start: int = 0, end: int | None = None
) -> list[list[float]]:
    """Every token's W x + b, of the outputs from start to end."""
    weight = parameters[f"{name}.weight"][start:end]
    bias = parameters.get(f"{name}.bias", np.zeros(len(parameters[f"{name}.weight"])))[start:end]
    return [reference.linear(weight, bias, token) for token in x.tolist()]


def one_head(
    q: list[list[float]],
    k: list[list[float]],
    v: list[list[float]],
    mask: np.ndarray,
    score: Callable[[int, int, reference.Row, reference.Row], float],
) -> tuple[np.ndarray, np.ndarray]:
    """Averages (m, p) and weights (m, n) of one sequence."""
    weights = [
        reference.softmax([score(i, j, q[i], k[j]) for j in range(len(k))], mask[i].tolist())
        for i in range(len(q))
    ]
    return np.array([reference.average(w, np.array(v)) for w in weights]), np.array(weights)


def self_attention(
    parameters: Parameters, x: np.ndarray, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Of one sequence (n, e)."""
    n = len(x)
    mask = np.broadcast_to(True if mask is None else mask, (n, n))
    q, k, v = (projected(parameters, name, x) for name in ("query", "key", "value"))
    return one_head(q, k, v, mask, lambda i, j, q, k: plain(0, i, j, q, k))


def multi_head_attention(
    parameters: Parameters,
    owners: Sequence[int],
    queries: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    mask: np.ndarray | None = None,
    score: Score = plain,
) -> tuple[np.ndarray, np.ndarray]:
    """Of one sequence; owners[h] is the key and value head that query head h asks."""
    (m, e), n = queries.shape, len(keys)
    d = e // len(owners)
    mask = np.broadcast_to(True if mask is None else mask, (m, n))
    output = np.zeros((m, e)) + parameters.get("output.bias", np.zeros(e))
    kept = []
    for h, owner in enumerate(owners):
        q = projected(parameters, "query", queries, h * d, h * d + d)
        k = projected(parameters, "key", keys, owner * d, owner * d + d)
        v = projected(parameters, "value", values, owner * d, owner * d + d)
        average, weights = one_head(q, k, v, mask, lambda *given, h=h: score(h, *given))
        output += average @ parameters["output.weight"][:, h * d : h * d + d].T
        kept.append(weights)
    return output, np.array(kept)


def attention_only(
    parameters: Parameters, owners: Sequence[int], num_layers: int, tokens: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Logits and each layer's weights, of one sequence of tokens."""
    embedding, position = parameters["embedding.weight"], parameters["position"]
    x = np.array([embedding[token] + position[i] for i, token in enumerate(tokens.tolist())])
    earlier = np.array([[j <= i for j in range(len(x))] for i in range(len(x))])
    kept = []
    for number in range(num_layers):
        start = f"layers.{number}."
        own = {n.removeprefix(start): p for n, p in parameters.items() if n.startswith(start)}
        change, weights = multi_head_attention(own, owners, x, x, x, earlier)
        x = x + change
        kept.append(weights)
    return np.array(projected(parameters, "readout", x)), kept
