"""Writing with a cache of keys and values, and without: time and operations as ratios.

python -m experiments.cache            all; stores the results (about a minute)
python -m experiments.cache --quick    short texts; stores nothing
"""

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from attnbook import torch as torch_layers
from experiments.storing import asked_quick, store, summary


def seconds(write: Callable[[], Any]) -> float:
    start = time.process_time()
    write()
    return time.process_time() - start


def ratios(length: int, rounds: int) -> dict[str, Any]:
    """Full passes over everything written so far, as a multiple of steps with a cache."""
    torch.manual_seed(0)
    model = torch_layers.DecoderOnly(96, length)
    tokens = torch.randint(0, 96, (1, length))

    def cached() -> None:
        cache = model.empty(1)
        for at in range(length):
            cache, _ = model.step(cache, tokens[:, at])

    def full() -> None:
        for at in range(length):
            model(tokens[:, : at + 1], return_weights=True)  # the plain way, which is counted

    def fast() -> None:
        for at in range(length):
            model(tokens[:, : at + 1])

    counts = []
    with torch.no_grad():
        for write in (cached, full):
            with FlopCounterMode(display=False) as counter:
                write()
            counts.append(counter.get_total_flops())
        times = [seconds(fast) / seconds(cached) for _ in range(rounds)]
    return {"time": summary(times), "operations": counts[1] / counts[0]}


def main() -> None:
    quick = asked_quick(__doc__)
    torch.set_num_threads(1)
    found = {}
    for length in (16,) if quick else (64, 256, 512):
        found[str(length)] = ratios(length, 1 if quick else 5)
        print(length, found[str(length)], flush=True)
    if not quick:
        store("cache", found=found)


if __name__ == "__main__":
    main()
