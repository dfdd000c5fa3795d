"""Exact attention in blocks beside the plain one and PyTorch's fused kernel, and a roofline.

    python -m experiments.exact_and_fast            all; stores the results (about five minutes)
    python -m experiments.exact_and_fast --quick    short ones, once; stores nothing
    python -m experiments.exact_and_fast --kept     adds the table in arrays that stay, to what
                                                   is stored (a quarter of a minute)

Single precision, one head of width 64, one thread, seed 0. The ways take turns, and the least time
of each counts. Peak memory is what the process grows by during a call (Linux); of NumPy's arrays,
in double precision and of width 32, what tracemalloc sees. The roofline has the machine's fastest
product, its fastest copy, and a matrix of 4096 × 4096 times more and more vectors.
"""

import ctypes
import functools
import gc
import json
import math
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from attnbook import attend
from attnbook.exact import flash
from experiments.storing import FOLDER, option, store

D, BLOCK = 64, 256
LENGTHS = [256, 512, 1024, 2048, 4096, 8192]
BLOCKS = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256]
MEGABYTE = 2**20
Ways = dict[str, Callable[[], Any]]


def rounded(number: float) -> float:
    return float(f"{number:.3g}")


def least_seconds(ways: Ways, rounds: int, calls: int = 1) -> dict[str, float]:
    """The least time of each way, in turns of some calls, after a turn that warms up."""
    least = dict.fromkeys(ways, math.inf)
    for warm_up in (True, *[False] * rounds):
        for name, way in ways.items():
            for _ in range(calls):
                start = time.perf_counter()
                way()
                taken = time.perf_counter() - start
                least[name] = least[name] if warm_up else min(least[name], taken)
    return {name: rounded(taken) for name, taken in least.items()}


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


def in_kept_arrays(n: int) -> Callable[[], Any]:
    """The table of weights, whose scores, weights and averages go into arrays that are there."""
    q, k, v = torch.randn(3, n, D, generator=torch.Generator().manual_seed(0))
    scores, weights, output = torch.empty(n, n), torch.empty(n, n), torch.empty(n, D)

    def way() -> Any:
        torch.matmul(q, k.mT, out=scores).div_(math.sqrt(D))
        torch.softmax(scores, -1, out=weights)
        return torch.matmul(weights, v, out=output)

    return way


def kept_arrays(n: int, rounds: int) -> dict[str, float]:
    """Seconds of the table, the same in arrays that stay, and ours in two sizes, in turns."""
    q, k, v = torch.randn(3, n, D, generator=torch.Generator().manual_seed(0))
    ways: Ways = {"plain": functools.partial(plain, q, k, v), "kept": in_kept_arrays(n)}
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
    return rounded(max(0, status("VmHWM") - before) / 1024)


def traced_megabytes(way: Callable[[], Any]) -> float:
    """The largest sum of NumPy's arrays that a way holds at a time, beside its arguments."""
    tracemalloc.start()
    way()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return rounded(peak / MEGABYTE)


def memory_in_numpy(lengths: list[int], d: int = 32) -> dict[str, list[float]]:
    rng = np.random.default_rng(0)
    found: dict[str, list[float]] = {"plain": [], "ours": [], "ours, backward": []}
    for n in lengths:
        q, k, v, g = (rng.normal(size=(n, d)) for _ in range(4))
        output, logs = flash.forward(q, k, v)
        found["plain"].append(traced_megabytes(functools.partial(attend, q, k, v)))
        found["ours"].append(traced_megabytes(functools.partial(flash.forward, q, k, v)))
        back = functools.partial(flash.backward, g, q, k, v, output, logs)
        found["ours, backward"].append(traced_megabytes(back))
    return found


def roofline(rounds: int) -> dict[str, Any]:
    """Operations and bytes per second: of a large product, a copy, and products of some rows."""
    a, weights = torch.randn(2048, 2048), torch.randn(4096, 4096)
    source = torch.randn(2**26)  # 256 megabytes
    target = torch.empty_like(source)
    rows = {b: torch.randn(b, 4096) for b in BATCHES}
    ways: Ways = {"product": lambda: a @ a, "copy": lambda: target.copy_(source)}
    ways |= {f"batch {b}": lambda x=x: x @ weights.mT for b, x in rows.items()}
    taken = least_seconds(ways, rounds)
    return {
        "product, GF/s": rounded(2 * 2048**3 / taken["product"] / 1e9),
        "copy, GB/s": rounded(2 * 4 * 2**26 / taken["copy"] / 1e9),
        "batch": BATCHES,
        "batch, GF/s": [rounded(2 * b * 4096**2 / taken[f"batch {b}"] / 1e9) for b in BATCHES],
        "batch, operations per byte": [
            rounded(2 * b * 4096**2 / (4 * (4096**2 + 2 * b * 4096))) for b in BATCHES
        ],
    }


def main() -> None:
    asked = option(__doc__, "quick", "kept")
    quick = asked == "quick"
    torch.set_num_threads(1)
    if asked == "kept":
        stored = json.loads((FOLDER / "exact_and_fast.json").read_text(encoding="utf-8"))
        stored["kept arrays"] = kept_arrays(4096, 15)
        print(stored["kept arrays"])
        store("exact_and_fast", **stored)
        return
    lengths = LENGTHS[:3] if quick else LENGTHS
    of_blocks, blocks = (512, BLOCKS[2:6]) if quick else (4096, BLOCKS)
    rounds = 1 if quick else 7
    seconds = [least_seconds(ways_of(n), rounds) for n in lengths]
    print("seconds", seconds, flush=True)
    memory = [
        {name: peak_megabytes(way) for name, way in reversed(ways_of(n).items())} for n in lengths
    ]
    print("megabytes", memory, flush=True)
    q, k, v = torch.randn(3, of_blocks, D, generator=torch.Generator().manual_seed(0))
    ways: Ways = {str(b): functools.partial(flash.forward, q, k, v, block=b) for b in blocks} | {
        name: way for name, way in ways_of(of_blocks).items() if name != "ours"
    }
    by_block = least_seconds(ways, 1 if quick else 3)
    print("by block", by_block, flush=True)
    found = {
        "width": D,
        "block": BLOCK,
        "lengths": lengths,
        "seconds": {name: [row[name] for row in seconds] for name in seconds[0]},
        "megabytes": {name: [row[name] for row in memory] for name in ("plain", "ours", "fused")},
        "megabytes in NumPy": {"width": 32, "block": 64} | memory_in_numpy(lengths),
        "blocks": {
            "n": of_blocks,
            "block": blocks,
            "seconds": [by_block[str(b)] for b in blocks],
            "plain": by_block["plain"],
            "fused": by_block["fused"],
        },
        "kept arrays": kept_arrays(of_blocks, rounds),
        "roofline": roofline(rounds),
    }
    print(found, flush=True)
    if not quick:
        store("exact_and_fast", **found)


if __name__ == "__main__":
    main()
