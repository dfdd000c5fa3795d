"""Exact attention in blocks beside the plain one and PyTorch's fused kernel, and a roofline.

Single precision, one head of width 64, one thread, seed 0. The ways take turns, and the least time
of each counts. Peak memory is what the process grows by during a call (Linux). The roofline has the
machine's fastest product, its fastest copy, and a matrix of 4096² times more and more vectors.
Takes about five minutes.
"""

import ctypes
import functools
import gc
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from attnbook.exact import flash
from experiments.harness import Experiment, Ways, columns, least_seconds, rounded

D, BLOCK = 64, 256
LENGTHS = [256, 512, 1024, 2048, 4096, 8192]
BLOCKS = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256]


def plain(q: Any, k: Any, v: Any) -> Any:
    return (q @ k.mT / math.sqrt(D)).softmax(-1) @ v


def ways_of(n: int) -> Ways:
    """Plain, ours and fused, on the same queries, keys and values."""
    q, k, v = torch.randn(3, n, D, generator=torch.Generator().manual_seed(0))
    return {
        "plain": functools.partial(plain, q, k, v),
        "ours": functools.partial(flash.forward, q, k, v, block=BLOCK),
        "fused": functools.partial(
            scaled_dot_product_attention, *(a[None, None] for a in (q, k, v))
        ),
    }


def kept_arrays(n: int, rounds: int) -> dict[str, float]:
    """Seconds of the table, the same in arrays that stay, and ours in two sizes, in turns."""
    q, k, v = torch.randn(3, n, D, generator=torch.Generator().manual_seed(0))
    scores, weights, output = torch.empty(n, n), torch.empty(n, n), torch.empty(n, D)

    def kept() -> Any:
        torch.matmul(q, k.mT, out=scores).div_(math.sqrt(D))
        torch.softmax(scores, -1, out=weights)
        return torch.matmul(weights, v, out=output)

    ways: Ways = {"plain": functools.partial(plain, q, k, v), "kept": kept}
    ways |= {f"ours {b}": functools.partial(flash.forward, q, k, v, block=b) for b in (512, 1024)}
    torch.testing.assert_close(ways["kept"](), ways["plain"]())
    return least_seconds(ways, rounds)


def status(field: str) -> int:
    """A number of kilobytes that Linux keeps of this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = (line for line in lines if line.startswith(field + ":"))
    return int(line.split()[1])


def peak_megabytes(way: Callable[[], Any]) -> float:
    """By how much the process grows while a way runs, at its largest."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what was freed goes back, so that it counts when taken again
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew
    before = status("VmRSS")
    way()
    return rounded(max(0, status("VmHWM") - before) / 1024, 3)


def roofline(rounds: int) -> dict[str, Any]:
    """Operations and bytes per second: of a large product, a copy, and products of some rows."""
    a, weights = torch.randn(2048, 2048), torch.randn(4096, 4096)
    source = torch.randn(2**26)  # 256 megabytes
    target = torch.empty_like(source)
    rows = {b: torch.randn(b, 4096) for b in BATCHES}
    ways: Ways = {"product": lambda: a @ a, "copy": lambda: target.copy_(source)}
    ways |= {f"batch {b}": lambda x=x: x @ weights.mT for b, x in rows.items()}
    taken = least_seconds(ways, rounds)
    found = {
        "product, GF/s": 2 * 2048**3 / taken["product"] / 1e9,
        "copy, GB/s": 2 * 4 * 2**26 / taken["copy"] / 1e9,
        "batch, GF/s": [2 * b * 4096**2 / taken[f"batch {b}"] / 1e9 for b in BATCHES],
        "batch, operations per byte": [
            2 * b * 4096**2 / (4 * (4096**2 + 2 * b * 4096)) for b in BATCHES
        ],
    }
    return {"batch": BATCHES, **rounded(found, 3)}


def main(experiment: Experiment) -> None:
    quick = experiment.quick
    lengths = LENGTHS[:3] if quick else LENGTHS
    of_blocks, blocks = (512, BLOCKS[2:6]) if quick else (4096, BLOCKS)
    rounds = 1 if quick else 7
    seconds = columns([least_seconds(ways_of(n), rounds) for n in lengths])
    megabytes = columns(
        [{name: peak_megabytes(way) for name, way in reversed(ways_of(n).items())} for n in lengths]
    )
    ways = ways_of(of_blocks)
    ours = ways.pop("ours")
    ways |= {str(b): functools.partial(ours, block=b) for b in blocks}
    by_block = least_seconds(ways, 1 if quick else 3)
    of_n = {
        "n": of_blocks,
        "block": blocks,
        "seconds": [by_block[str(b)] for b in blocks],
        "plain": by_block["plain"],
        "fused": by_block["fused"],
    }
    kept, roof = kept_arrays(of_blocks, 1 if quick else 15), roofline(rounds)
    print(seconds, megabytes, of_n, kept, roof, sep="\n")
    experiment.store(
        width=D,
        block=BLOCK,
        lengths=lengths,
        seconds=seconds,
        blocks=of_n,
        **{"megabytes": megabytes, "kept arrays": kept, "roofline": roof},
    )
