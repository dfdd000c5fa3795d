"""The contract of the layers: one row for each that attnbook.torch and attnbook.jax have.

Layers are in both libraries under one name, with the same arguments, parameters and formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import reference
import reference_heads
from contracts.table import Domain, state_loop

Parameters = dict[str, np.ndarray]


@dataclass(frozen=True)
class Layer:
    """A layer.

    Args:
        name: the class, and after a comma what is special.
        sizes: its arguments.
        domains: of the arrays that it is called with, by name.
        oracle: the output, or the pair with the weights, from the parameters and those arrays.
        how: its arguments by name.
        fixed: what else it is called with.
        holds: "tokens" (their order is that of the outputs), "causal" (no later token counts).
    """

    name: str
    sizes: tuple[Any, ...]
    domains: Mapping[str, str]
    oracle: Callable[..., Any]
    how: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    holds: str = ""

    def arrays(self, seed: int = 7) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(seed)
        return {name: Domain.of(words).drawn(rng) for name, words in self.domains.items()}


def together(each: Any) -> Any:
    """Pairs (output, weights) of every sequence, stacked."""
    return tuple(np.array(part) for part in zip(*each, strict=True))


def self_attention(parameters: Parameters, x: np.ndarray, mask: np.ndarray) -> Any:
    return together(
        reference_heads.self_attention(parameters, *one) for one in zip(x, mask, strict=True)
    )


def torchs(parameters: Parameters, queries: Any, keys: Any, values: Any, mask: Any) -> Any:
    """torch.nn.MultiheadAttention with these parameters."""
    import torch

    peer = torch.nn.MultiheadAttention(12, 4, batch_first=True, dtype=torch.float64)
    inner = [f"{part}.{{}}" for part in ("query", "key", "value")]
    with torch.no_grad():
        for kind in ("weight", "bias"):
            own = f"output.{kind}"
            first = parameters.get("query.bias", np.zeros(12)) if kind == "bias" else None
            rows: Any = [parameters.get(name.format(kind), first) for name in inner]
            getattr(peer, f"in_proj_{kind}").copy_(torch.tensor(np.concatenate(rows)))
            if own in parameters:
                getattr(peer.out_proj, kind).copy_(torch.tensor(parameters[own]))
    given = map(torch.tensor, (queries, keys, values))
    shut = torch.tensor(~mask).repeat_interleave(4, 0)  # True = may not attend
    found = peer(*given, attn_mask=shut, average_attn_weights=False)
    return tuple(a.detach().numpy() for a in found)


def several_heads(
    owners: list[int], base: float | None, parameters: Parameters, queries: Any, mask: Any
) -> Any:
    score = reference_heads.plain if base is None else reference_heads.turned(base)
    return together(
        reference_heads.multi_head_attention(parameters, owners, x, x, x, own, score)
        for x, own in zip(queries, mask, strict=True)
    )


def pooled(parameters: Parameters, tokens: np.ndarray, mask: np.ndarray) -> Any:
    """The logit, the weights and the values of every sequence."""
    each = zip(tokens.tolist(), mask[:, 0].tolist(), strict=True)
    return together(reference.attention_pooling(parameters, *one) for one in each)


def kernel_regression(parameters: Parameters, **given: Any) -> Any:
    h = np.exp(parameters["log_bandwidth"])
    return reference.nadaraya_watson(bandwidth=h, **given)[0]


def several_bandwidths(parameters: Parameters, **given: Any) -> Any:
    h, shares = np.exp(parameters["log_bandwidths"]), parameters["combination"].tolist()
    return reference.multi_head(bandwidths=h, combination=shares, **given)


def metric_regression(parameters: Parameters, queries: Any, keys: Any, **given: Any) -> Any:
    moved = [a @ parameters["metric"].T for a in (queries, keys)]
    return reference.nadaraya_watson(*moved, **given)[0]


def projected(parameters: Parameters, name: str, x: np.ndarray) -> Any:
    return x @ parameters[f"{name}.weight"].T + parameters[f"{name}.bias"]


def in_heads(parameters: Parameters, name: str, x: np.ndarray) -> Any:
    return np.stack(np.split(projected(parameters, name, x), 2, axis=-1), axis=1)


def sigmoid(x: np.ndarray) -> Any:
    return 1 / (1 + np.exp(-x))


def linear_attention(parameters: Parameters, queries: Any, mask: Any, causal: bool) -> Any:
    """Products of positive features over their sum."""
    q, k, v = (in_heads(parameters, name, queries) for name in ("query", "key", "value"))
    q, k = (np.where(a > 0, a + 1, np.exp(np.minimum(a, 0))) for a in (q, k))
    products = q @ k.swapaxes(-1, -2) * mask[:, None]
    products = np.tril(products) if causal else products
    total = products.sum(-1, keepdims=True)
    shares = np.divide(products, total, out=np.zeros_like(products), where=total > 0)
    return joined(parameters, shares @ v), shares


def joined(parameters: Parameters, heads: np.ndarray) -> Any:
    return projected(parameters, "output", np.concatenate([heads[:, 0], heads[:, 1]], axis=-1))


def gated_delta(parameters: Parameters, queries: np.ndarray) -> Any:
    """A state with decay and the delta rule, of keys of length 1, and an RMS norm of what is read."""
    q, k, v = (in_heads(parameters, name, queries) for name in ("query", "key", "value"))
    silu = (a * sigmoid(a) for a in (q, k))
    q, k = (a / np.sqrt(np.square(a).sum(-1, keepdims=True) + 1e-6) for a in silu)
    known = [name for name in ("decay", "beta") if f"{name}.weight" in parameters]
    rates = {n: sigmoid(projected(parameters, n, queries)).swapaxes(-1, -2) for n in known}
    read = state_loop(q=q, k=k, v=v, **rates)[0]
    size = np.sqrt(np.mean(np.square(read), axis=-1, keepdims=True) + 1e-5)
    return joined(parameters, read / size * parameters["head_norm.weight"])


MASK = {"mask": "bool: 2 n n"}
TOKENS = {"queries": "2 n e"}
SEEN = {"mask": "bool: 2 1 n"}
CROSS = {"queries": "2 m e", "keys": "2 n e", "values": "2 n e", "mask": "bool: 2 m n"}
POINTS = {"queries": "2 1 m d", "keys": "3 n d", "values": "n p", "mask": "bool: m n"}
WEIGHTS = {"return_weights": True}
POOLING = {"embed_dim": 3, "key_dim": 4, "hidden_dim": 5}
LAYERS = [
    Layer("SelfAttention", (12, 5), {"x": "2 n e"} | MASK, self_attention, {}, WEIGHTS),
    Layer(
        "SelfAttention, causal",
        (12, 5),
        {"x": "2 n e"},
        lambda parameters, x: self_attention(
            parameters, x, np.tile(np.tri(7, dtype=bool), (2, 1, 1))
        )[0],
        fixed={"causal": True},
        holds="causal",
    ),
    Layer("MultiHeadAttention", (12, 4), CROSS, torchs, {}, WEIGHTS),
    Layer(
        "MultiHeadAttention, shared keys",
        (12, 4),
        TOKENS | MASK,
        partial(several_heads, [0, 0, 1, 1], None),
        {"num_kv_heads": 2, "bias": False, "dropout": 0.3},
        WEIGHTS,
    ),
    Layer(
        "MultiHeadAttention, turned",
        (12, 2),
        TOKENS | MASK,
        partial(several_heads, [0, 0], 50.0),
        {"num_kv_heads": 1, "rotary_base": 50.0},
        WEIGHTS,
    ),
    Layer(
        "MultiHeadAttention, causal",
        (12, 4),
        TOKENS,
        lambda parameters, queries: several_heads(
            [0, 1, 2, 3], None, parameters, queries, np.tile(np.tri(7, dtype=bool), (2, 1, 1))
        )[0],
        fixed={"causal": True},
        holds="causal",
    ),
    Layer(
        "MultiHeadAttention, of all",
        (12, 4),
        TOKENS,
        lambda parameters, queries: several_heads(
            [0, 1, 2, 3], None, parameters, queries, np.ones((2, 7, 7), bool)
        )[0],
        holds="tokens",
    ),
    Layer("AttentionPooling", (12,), {"tokens": "labels: 2 n"} | SEEN, pooled, POOLING, WEIGHTS),
    Layer("KernelRegression", ([0.7, 1.1, 1.3, 2.0],), POINTS, kernel_regression),
    Layer("MultiHeadKernelRegression", ([0.7, 1.9],), POINTS, several_bandwidths),
    Layer("MetricKernelRegression", (np.eye(2, 4).tolist(),), POINTS, metric_regression),
    *(
        Layer(
            f"LinearAttention, {'causal' if causal else 'both ways'}",
            (12, 2),
            TOKENS | SEEN,
            partial(linear_attention, causal=causal),
            fixed=WEIGHTS | {"causal": causal},
        )
        for causal in (True, False)
    ),
    *(
        Layer(
            f"GatedDelta, gate={gate}, delta={delta}",
            (12, 2),
            TOKENS,
            gated_delta,
            {"gate": gate, "delta": delta},
            {"causal": True},
            holds="causal",
        )
        for gate, delta in ((True, True), (True, False), (False, True))
    ),
]
IN_MODELS = {  # layers whose oracles stand in tests/models
    *("MLP", "EncoderBlock", "DecoderBlock", "EncoderOnly", "DecoderOnly", "AttentionOnly"),
    *("Transformer", "EncoderDecoder", "GRUCell", "train"),
}
