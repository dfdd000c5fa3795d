"""attend beside PyTorch's fused kernel called bare, and from how many weights on that kernel pays.

Single precision, width 64. First at lengths from 128 to 4096, eight heads and one, one thread and
two: with every key, with a causal mask, with causal=True. Then, for short sequences whose gradient
is wanted, the fused way beside the formula: attend has its FUSED_FROM from there. The ways take
turns of 4 ms or more, and the least time of each counts. Takes about four minutes.
"""

import functools
import itertools
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from attnbook import attend, causal_mask
from attnbook.attention import weighted_average
from experiments.harness import Experiment, least_seconds, rounded

D = 64
LENGTHS = [128, 256, 512, 1024, 2048, 4096]
KINDS = ("all keys", "mask", "causal")


def least_ratio(way: Callable[[], Any], other: Callable[[], Any], rounds: int) -> float:
    """The least time of one way over that of another."""
    way()
    start = time.perf_counter()
    way()
    calls = max(1, int(0.004 / (time.perf_counter() - start)))
    least = least_seconds({"way": way, "other": other}, rounds, calls)
    return rounded(least["way"] / least["other"], 3)


def beside_the_bare_kernel(lengths: list[int], rounds: int) -> dict[str, dict[str, list[float]]]:
    """The kernel's time over attend's: 1 where attend costs nothing beside it."""
    found: dict[str, dict[str, list[float]]] = {}
    for threads, heads in itertools.product((1, 2), (8, 1)):
        torch.set_num_threads(threads)
        row: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for n in lengths:
            q, k, v = torch.randn(3, 1, heads, n, D)
            mask = causal_mask(n, like=q)
            ours: tuple[dict[str, Any], ...] = ({}, {"mask": mask}, {"causal": True})
            theirs: tuple[dict[str, Any], ...] = ({}, {"attn_mask": mask}, {"is_causal": True})
            for kind, here, there in zip(KINDS, ours, theirs, strict=True):
                bare = functools.partial(scaled_dot_product_attention, q, k, v, **there)
                checked = functools.partial(attend, q, k, v, **here)
                row[kind].append(least_ratio(bare, checked, rounds))
        name = f"{heads} head{'s' * (heads > 1)}, {threads} thread{'s' * (threads > 1)}"
        print(name, row, flush=True)
        found[name] = row
    return found


def learned(average: Callable[[], Any], border: int) -> None:
    """An average and its gradients, fused from so many weights on."""
    weighted_average.FUSED_FROM = border
    average().sum().backward()


def borders(rounds: int) -> dict[str, dict[str, float]]:
    """The fused way's time over the formula's, with gradients: below 1 it pays."""
    found: dict[str, dict[str, float]] = {}
    for threads, sequences, n in itertools.product((1, 2), (1, 4, 16), (16, 64, 128, 256, 512)):
        if sequences * n * n > 2**20:
            continue
        torch.set_num_threads(threads)
        q, k, v = (torch.randn(sequences, n, D, requires_grad=True) for _ in range(3))
        mask, row = causal_mask(n, like=q), {}
        for kind, how in zip(KINDS, ({}, {"mask": mask}, {"causal": True}), strict=True):
            average = functools.partial(attend, q, k, v, **how)
            ways = (functools.partial(learned, average, border) for border in (0, 2**62))
            row[f"{kind}, learning"] = least_ratio(*ways, rounds)
        name = f"{threads} threads, {sequences} x {n} x {n}"
        print(name, row, flush=True)
        found[name] = row
    return found


def main(experiment: Experiment) -> None:
    torch.manual_seed(0)
    lengths, rounds = (LENGTHS[:2], 2) if experiment.quick else (LENGTHS, 9)
    bare = beside_the_bare_kernel(lengths, rounds)
    of_weights = borders(2 if experiment.quick else 15)
    experiment.store(lengths=lengths, **{"bare kernel": bare, "borders": of_weights})
