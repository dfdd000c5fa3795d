"""The formulas again, as loops over Python numbers: slow, plain, and sharing no line with attnbook."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Row = Sequence[float]


def gaussian(u: float) -> float:
    return math.exp(-(u**2) / 2)


def boxcar(u: float) -> float:
    return 1.0 if u <= 1 else 0.0


def triangular(u: float) -> float:
    return max(0.0, 1 - u)


def epanechnikov(u: float) -> float:
    return 0.75 * max(0.0, 1 - u**2)


KERNELS = {f.__name__: f for f in (gaussian, boxcar, triangular, epanechnikov)}


def distance(q: Row, k: Row, bandwidth: Any = 1.0) -> float:
    h = [float(x) for x in np.broadcast_to(bandwidth, len(q))]
    return math.sqrt(sum(((q[c] - k[c]) / h[c]) ** 2 for c in range(len(q))))


def gaussian_score(q: Row, k: Row, bandwidth: Any = 1.0) -> float:
    return -(distance(q, k, bandwidth) ** 2) / 2


def dot(q: Row, k: Row) -> float:
    return math.fsum(q[c] * k[c] for c in range(len(q)))


def scaled_dot(q: Row, k: Row) -> float:
    return dot(q, k) / len(q) ** 0.5


def general(q: Row, k: Row, weight: Sequence[Row]) -> float:
    return math.fsum(
        q[a] * float(weight[a][b]) * k[b] for a in range(len(q)) for b in range(len(k))
    )


def norm(x: Row) -> float:
    return math.hypot(*x)


def cosine(q: Row, k: Row) -> float:
    if norm(q) == 0 or norm(k) == 0:
        return 0.0
    return math.fsum((a / norm(q)) * (b / norm(k)) for a, b in zip(q, k, strict=True))


def additive(q: Row, k: Row, w_q: Sequence[Row], w_k: Sequence[Row], v: Row) -> float:
    return math.fsum(
        float(v[r]) * math.tanh(dot(q, w_q[r]) + dot(k, w_k[r])) for r in range(len(v))
    )


def softmax(scores: Row, allowed: Sequence[bool]) -> list[float]:
    open_scores = [s for s, a in zip(scores, allowed, strict=True) if a]
    if not open_scores:
        return [0.0] * len(scores)
    top = max(open_scores)
    parts = [math.exp(s - top) if a else 0.0 for s, a in zip(scores, allowed, strict=True)]
    return [part / math.fsum(parts) for part in parts]


def shares(similarities: Row, allowed: Sequence[bool]) -> list[float]:
    kept = [s if a else 0.0 for s, a in zip(similarities, allowed, strict=True)]
    total = math.fsum(kept)
    return [s / total if total > 0 else math.nan for s in kept]


def average(weights: Row, values: np.ndarray) -> list[float]:
    n, p = values.shape
    return [math.fsum(weights[j] * values[j, c] for j in range(n)) for c in range(p)]


def pairs(function: Callable[..., float], queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """function(q_i, k_j) for all i and j, leading axes broadcast."""
    lead = np.broadcast_shapes(queries.shape[:-2], keys.shape[:-2])
    queries, keys = (np.broadcast_to(a, lead + a.shape[-2:]) for a in (queries, keys))
    out = np.empty((*lead, queries.shape[-2], keys.shape[-2]))
    for index in np.ndindex(out.shape):
        *batch, i, j = index
        out[index] = function(queries[(*batch, i)].tolist(), keys[(*batch, j)].tolist())
    return out


def weighted_average(
    weigh: Callable[[Row, Sequence[bool]], list[float]],
    scores: np.ndarray,
    values: np.ndarray,
    mask: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Averages and weights, from scores (..., m, n), row by row."""
    mask = np.asarray(True) if mask is None else mask
    lead = np.broadcast_shapes(
        scores.shape[:-2], values.shape[:-2], mask.shape[:-2] if mask.ndim > 2 else ()
    )
    m, n = scores.shape[-2:]
    scores = np.broadcast_to(scores, (*lead, m, n))
    mask = np.broadcast_to(mask, (*lead, m, n))
    values = np.broadcast_to(values, (*lead, *values.shape[-2:]))
    output, weights = np.empty((*lead, m, values.shape[-1])), np.empty((*lead, m, n))
    for index in np.ndindex((*lead, m)):
        weights[index] = weigh(scores[index].tolist(), mask[index].tolist())
        output[index] = average(weights[index].tolist(), values[index[:-1]])
    return output, weights


def nadaraya_watson(
    queries: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    kernel: str = "gaussian",
    bandwidth: Any = 1.0,
    mask: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    similarity = pairs(lambda q, k: KERNELS[kernel](distance(q, k, bandwidth)), queries, keys)
    return weighted_average(shares, similarity, values, mask)


def attend(
    queries: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    score: Callable[..., float] = scaled_dot,
    mask: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    return weighted_average(softmax, pairs(score, queries, keys), values, mask)


def multi_head(
    queries: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    bandwidths: Any,
    combination: Row,
    mask: np.ndarray | None = None,
) -> np.ndarray:
    total: Any = 0.0
    for h, a in zip(bandwidths, combination, strict=True):
        total = total + float(a) * nadaraya_watson(queries, keys, values, bandwidth=h, mask=mask)[0]
    return total


def linear(weight: np.ndarray, bias: np.ndarray, x: Row) -> list[float]:
    return [dot(row, x) + b for row, b in zip(weight.tolist(), bias.tolist(), strict=True)]


def attention_pooling(
    parameters: dict[str, np.ndarray], tokens: Sequence[int], allowed: Sequence[bool]
) -> tuple[float, list[float], list[float]]:
    """The logit, the weights and the values of one sequence, token by token."""

    def layer(name: str, x: Row) -> list[float]:
        return linear(parameters[f"{name}.weight"], parameters[f"{name}.bias"], x)

    def network(name: str, x: Row) -> float:
        hidden = [max(0.0, a) for a in layer(f"{name}_hidden", x)]
        return layer(f"{name}_out", hidden)[0]

    query, scores, values = parameters["query"][0].tolist(), [], []
    for token in tokens:
        embedded = parameters["embedding.weight"][token].tolist()
        scores.append(scaled_dot(query, layer("key", embedded)))
        values.append(network("value", embedded))
    weights = softmax(scores, allowed)
    pooled = math.fsum(w * v for w, v in zip(weights, values, strict=True))
    return network("head", [pooled]), weights, values


def adam(
    slope: Callable[[float, Any], float], start: float, batches: Sequence[Any], rates: Row
) -> list[float]:
    """One parameter before every step and after the last: Kingma and Ba (2015), algorithm 1."""
    first, second, path = 0.0, 0.0, [start]
    for t, (batch, rate) in enumerate(zip(batches, rates, strict=True), 1):
        g = slope(path[-1], batch)
        first = 0.9 * first + 0.1 * g
        second = 0.999 * second + 0.001 * g * g
        unbiased, spread = first / (1 - 0.9**t), second / (1 - 0.999**t)
        path.append(path[-1] - rate * unbiased / (math.sqrt(spread) + 1e-8))
    return path


def sample(
    rng: np.random.Generator, *lead: int, m: int = 3, n: int = 7, d: int = 2, p: int = 5
) -> list[np.ndarray]:
    """Queries, keys and values."""
    return [rng.normal(size=(*lead, *shape)) for shape in ((m, d), (n, d), (n, p))]
