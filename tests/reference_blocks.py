"""Norms, the MLP and both blocks again, a token and a number at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import reference
import reference_heads
from reference_heads import Parameters


def relu(x: float) -> float:
    return x if x > 0 else 0.0


def gelu(x: float) -> float:
    return x * math.erfc(-x / math.sqrt(2)) / 2


def gelu_tanh(x: float) -> float:
    """By the logistic sigmoid: 1/2 + tanh(a)/2 is σ(2a)."""
    return x / (1 + math.exp(-math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)))


def silu(x: float) -> float:
    return x / (1 + math.exp(-x))


ACTIVATIONS = {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "swiglu": silu}


def layer_norm(
    x: reference.Row, weight: reference.Row, bias: reference.Row, eps: float = 1e-5
) -> list[float]:
    mean = math.fsum(x) / len(x)
    variance = math.fsum((a - mean) ** 2 for a in x) / len(x)
    root = math.sqrt(variance + eps)
    return [g * (a - mean) / root + b for a, g, b in zip(x, weight, bias, strict=True)]


def rms_norm(x: reference.Row, weight: reference.Row, eps: float = 1e-5) -> list[float]:
    root = math.sqrt(math.fsum(a * a for a in x) / len(x) + eps)
    return [g * a / root for a, g in zip(x, weight, strict=True)]


def rows(function: Callable[[reference.Row], list[float]], x: np.ndarray) -> np.ndarray:
    """function of every row of an array of any number of axes."""
    flat = x.reshape(-1, x.shape[-1])
    return np.array([function(row) for row in flat.tolist()]).reshape(*x.shape[:-1], -1)


def mlp(parameters: Parameters, activation: str, x: reference.Row) -> list[float]:
    def layer(name: str, x: reference.Row) -> list[float]:
        weight = parameters[f"{name}.weight"]
        return reference.linear(weight, parameters.get(f"{name}.bias", np.zeros(len(weight))), x)

    phi, hidden = ACTIVATIONS[activation], layer("hidden", x)
    if activation == "swiglu":
        hidden = [phi(g) * h for g, h in zip(layer("gate", x), hidden, strict=True)]
    else:
        hidden = [phi(h) for h in hidden]
    return layer("output", hidden)


def own(parameters: Parameters, name: str) -> dict[str, np.ndarray]:
    """The parameters of one part, under the names that it gives them."""
    start = f"{name}."
    return {n.removeprefix(start): p for n, p in parameters.items() if n.startswith(start)}


Part = Callable[[np.ndarray], np.ndarray]


def normed(
    parameters: Parameters, name: str, x: np.ndarray, rms: bool = False, eps: float = 1e-5
) -> np.ndarray:
    """Every row after a norm, which may have no bias."""
    weight = parameters[f"{name}.weight"].tolist()
    bias = parameters.get(f"{name}.bias", np.zeros(len(weight))).tolist()
    if rms:
        return rows(lambda row: rms_norm(row, weight, eps), x)
    return rows(lambda row: layer_norm(row, weight, bias, eps), x)


def added(
    parameters: Parameters, name: str, placement: str, part: Part, x: np.ndarray, **how: Any
) -> np.ndarray:
    if placement == "pre":
        return x + part(normed(parameters, name, x, **how))
    return normed(parameters, name, x + part(x), **how)


def block(
    parameters: Parameters,
    owners: Sequence[int],
    placement: str,
    activation: str,
    x: np.ndarray,
    mask: np.ndarray | None = None,
    memory: np.ndarray | None = None,
    memory_mask: np.ndarray | None = None,
    score: reference_heads.Score = reference_heads.plain,
    **norm: Any,
) -> tuple[np.ndarray, ...]:
    """Of one sequence: the stream, the weights, and with a memory the weights of that too."""
    kept = []

    def attention(name: str, memory: np.ndarray | None, mask: np.ndarray | None) -> Part:
        def part(x: np.ndarray) -> np.ndarray:
            read = x if memory is None else memory
            change, weights = reference_heads.multi_head_attention(
                own(parameters, name), owners, x, read, read, mask, score
            )
            kept.append(weights)
            return change

        return part

    x = added(
        parameters, "attention_norm", placement, attention("attention", None, mask), x, **norm
    )
    if memory is not None:
        cross = attention("cross_attention", memory, memory_mask)
        x = added(parameters, "cross_norm", placement, cross, x, **norm)
    inner = own(parameters, "mlp")
    x = added(
        parameters,
        "mlp_norm",
        placement,
        lambda x: rows(lambda row: mlp(inner, activation, row), x),
        x,
        **norm,
    )
    return x, *kept
