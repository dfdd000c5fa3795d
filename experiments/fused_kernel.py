"""attend beside PyTorch's fused kernel called bare, and where that kernel pays.

    python -m experiments.fused_kernel            all; stores the results (about five minutes)
    python -m experiments.fused_kernel --quick    few rounds; stores nothing

Single precision, width 64. First at lengths from 128 to 4096, eight heads and one, one thread and
two: with every key, with a causal mask, with causal=True; in JAX, causal=True beside its rivals.
Then, for short sequences, the fused way beside the formula, with a gradient and without:
attnbook has its borders from there. The ways take turns, and the least time of each counts.
"""

import functools
import itertools
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from attnbook import attend, causal_mask
from attnbook.attention import weighted_average
from experiments.storing import asked_quick, store

D = 64
LENGTHS = [128, 256, 512, 1024, 2048, 4096]
rng = np.random.default_rng(0)


def least_ratio(way: Callable[[], Any], other: Callable[[], Any], rounds: int) -> float:
    """The least time of one way over that of another, in turns of 4 ms or more."""
    ways, least = (way, other), [math.inf, math.inf]
    for f in ways:
        f()
    start = time.perf_counter()
    way()
    calls = max(1, int(0.004 / (time.perf_counter() - start)))
    for _ in range(rounds):
        for number, f in enumerate(ways):
            start = time.perf_counter()
            for _ in range(calls):
                f()
            least[number] = min(least[number], (time.perf_counter() - start) / calls)
    return float(f"{least[0] / least[1]:.3g}")


def beside_the_bare_kernel(rounds: int) -> dict[str, dict[str, list[float]]]:
    """The kernel's time over attend's: 1 where attend costs nothing beside it."""
    found: dict[str, dict[str, list[float]]] = {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for heads in (8, 1):
            row: dict[str, list[float]] = {"all keys": [], "mask": [], "causal": []}
            for n in LENGTHS:
                q, k, v = torch.randn(3, 1, heads, n, D)
                mask = causal_mask(n, like=q)
                for name, ours, theirs in (
                    ("all keys", {}, {}),
                    ("mask", {"mask": mask}, {"attn_mask": mask}),
                    ("causal", {"causal": True}, {"is_causal": True}),
                ):
                    bare = functools.partial(scaled_dot_product_attention, q, k, v, **theirs)
                    here = functools.partial(attend, q, k, v, **ours)
                    row[name].append(least_ratio(bare, here, rounds))
            name = f"{heads} head{'s' * (heads > 1)}, {threads} thread{'s' * (threads > 1)}"
            print(name, row)
            found[name] = row
    return found


def causal_in_jax(rounds: int) -> dict[str, list[float]]:
    """Rivals' times over that of attend(..., causal=True), a head of each length."""
    found: dict[str, list[float]] = {"mask": [], "fused": []}
    for n in LENGTHS[:4]:
        q, k, v = (jnp.asarray(rng.normal(size=(1, n, D)), jnp.float32) for _ in range(3))
        mask = causal_mask(n, like=q)
        kernel = jax.jit(functools.partial(jax.nn.dot_product_attention, is_causal=True))
        ways = {
            "mask": lambda q=q, k=k, v=v, mask=mask: attend(q, k, v, mask=mask),
            "fused": lambda q=q, k=k, v=v, f=kernel: f(*(a[:, :, None] for a in (q, k, v))),
        }
        for name, way in ways.items():
            here = functools.partial(attend, q, k, v, causal=True)
            waited = (lambda f=f: jax.block_until_ready(f()) for f in (way, here))
            found[name].append(least_ratio(*waited, rounds))
    print("JAX, causal", found)
    return found


def learned(way: Callable[..., Any], *given: Any) -> None:
    """An average, and its gradients where they are wanted."""
    out = way(*given)
    if out.requires_grad:
        out.sum().backward()


def borders(rounds: int) -> dict[str, dict[str, float]]:
    """The fused way's time over the formula's, as attend chooses: below 1 it pays."""
    found: dict[str, dict[str, float]] = {}

    def plain(q: Any, k: Any, v: Any, mask: Any, causal: bool) -> Any:
        return weighted_average.attention_weights(q, k, mask, causal) @ v

    for threads, sequences, n in itertools.product((1, 2), (1, 4, 16), (16, 64, 128, 256, 512)):
        if sequences * n * n > 2**20:
            continue
        torch.set_num_threads(threads)
        given = torch.randn(3, sequences, n, D)
        mask, row = causal_mask(n, like=given), {}
        for learning in (False, True):
            q, k, v = (a.clone().requires_grad_(learning) for a in given)
            for name, how in (
                ("all keys", (None, False)),
                ("mask", (mask, False)),
                ("causal", (None, True)),
            ):
                ways = (weighted_average.fused, plain)
                kernel, formula = (functools.partial(learned, way, q, k, v, *how) for way in ways)
                ratio = least_ratio(kernel, formula, rounds)
                row[name + ", learning" * learning] = ratio
        print(f"{threads} threads, {sequences} sequences of {n}", row)
        found[f"{threads} threads, {sequences} x {n} x {n}"] = row
    return found


def main() -> None:
    quick = asked_quick(__doc__)
    torch.manual_seed(0)
    found = {
        "lengths": LENGTHS,
        "bare kernel": beside_the_bare_kernel(2 if quick else 9),
        "causal in JAX": causal_in_jax(2 if quick else 9),
        "borders": borders(2 if quick else 15),
    }
    if not quick:
        store("fused_kernel", **found)


if __name__ == "__main__":
    main()
