"""What attention costs: each score beside the dot product, and attend beside its rivals.

    python -m experiments.attention            all; stores the results (about three minutes)
    python -m experiments.attention --quick    one round; stores nothing

Single precision, 1024 queries and keys of width 64 and, for the additive score, 64 hidden values.
The ways take turns; a ratio is formed within a round, and the median over the rounds is stored.
"""

import functools
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from attnbook import attend, causal_mask, scores
from experiments.storing import asked_quick, store, summary

N, D = 1024, 64
rng = np.random.default_rng(0)
Q, K, V = (rng.normal(size=(N, D)).astype(np.float32) for _ in range(3))
W, W_Q, W_K = (rng.normal(size=(D, D)).astype(np.float32) / math.sqrt(D) for _ in range(3))
LAST = rng.normal(size=D).astype(np.float32)


def in_turns(ways: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds of every way in every round, after a call that warms up and compiles."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.perf_counter()
            for _ in range(5):
                way()
            seconds[name].append((time.perf_counter() - start) / 5)
    return seconds


def ratios(seconds: dict[str, list[float]], to: str, title: str) -> dict[str, dict[str, float]]:
    """Each way's time over that of `to`."""
    table = {
        name: summary([a / b for a, b in zip(taken, seconds[to], strict=True)])
        for name, taken in seconds.items()
    }
    for name, row in table.items():
        print(f"{title} {name:14s} {row['median']:7.2f} ({row['low']:.2f} … {row['high']:.2f})")
    return table


def score_ways(array: Callable[[np.ndarray], Any], finish: Callable[[Any], Any], jit: Any) -> dict:
    q, k, w, w_q, w_k, last = map(array, (Q, K, W, W_Q, W_K, LAST))
    chosen = {
        "dot": scores.dot,
        "scaled dot": scores.scaled_dot,
        "cosine": scores.cosine,
        "general": functools.partial(scores.general, weight=w),
        "Gaussian": scores.gaussian_score,
        "additive": functools.partial(scores.additive, w_q=w_q, w_k=w_k, v=last),
    }
    compiled = {name: jit(score) for name, score in chosen.items()}
    return {name: lambda f=f: finish(f(q, k)) for name, f in compiled.items()}


def torch_rivals(masked: bool) -> dict[str, Callable[[], Any]]:
    q, k, v = map(torch.from_numpy, (Q, K, V))
    mask = causal_mask(N, like=q) if masked else None

    def plain(q: Any, k: Any, v: Any) -> Any:
        s = q @ k.mT / math.sqrt(D)
        return (s if mask is None else torch.where(mask, s, -math.inf)).softmax(-1) @ v

    compiled = torch.compile(plain)
    q4, k4, v4 = (a[None, None] for a in (q, k, v))
    return {
        "attend": lambda: attend(q, k, v, mask=mask),
        "plain": lambda: plain(q, k, v),
        "compiled": lambda: compiled(q, k, v),
        "fused": lambda: scaled_dot_product_attention(q4, k4, v4, attn_mask=mask),
    }


def jax_rivals(masked: bool) -> dict[str, Callable[[], Any]]:
    q, k, v = map(jnp.asarray, (Q, K, V))
    mask = causal_mask(N, like=q) if masked else None

    def plain(q: Any, k: Any, v: Any) -> Any:
        s = q @ k.mT / math.sqrt(D)
        return jax.nn.softmax(s if mask is None else jnp.where(mask, s, -jnp.inf)) @ v

    def fused(q: Any, k: Any, v: Any) -> Any:
        axes = (a[None, :, None] for a in (q, k, v))
        return jax.nn.dot_product_attention(*axes, mask=None if mask is None else mask[None, None])

    def waited(f: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: jax.block_until_ready(f(q, k, v))

    return {
        "attend": waited(lambda q, k, v: attend(q, k, v, mask=mask)),
        "plain": waited(plain),
        "compiled": waited(jax.jit(plain)),
        "fused": waited(jax.jit(fused)),
    }


def main() -> None:
    quick = asked_quick(__doc__)
    rounds = 1 if quick else 21
    found: dict[str, Any] = {}
    ways = {
        "torch": score_ways(torch.from_numpy, lambda a: a, lambda f: f),
        "JAX": score_ways(jnp.asarray, jax.block_until_ready, jax.jit),
    }
    found["scores"] = {
        name: ratios(in_turns(way, rounds), "dot", f"{name}, score,") for name, way in ways.items()
    }
    for masked in (False, True):
        name = "causal" if masked else "all keys"
        found[name] = {
            library: ratios(in_turns(rivals(masked), rounds), "attend", f"{library}, {name},")
            for library, rivals in (("torch", torch_rivals), ("JAX", jax_rivals))
        }
    if not quick:
        store("attention", **found)


if __name__ == "__main__":
    main()
