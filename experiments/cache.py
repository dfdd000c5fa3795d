"""Writing with a cache of keys and values, and without: time and operations as ratios.

Takes about a minute.
"""

import time
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from attnbook import torch as torch_layers
from experiments.harness import Experiment, in_turns, ratios


@torch.no_grad()
def without_a_cache(length: int, rounds: int) -> dict[str, Any]:
    """Full passes over everything written so far, as a multiple of steps with a cache."""
    torch.manual_seed(0)
    model = torch_layers.DecoderOnly(96, length)
    tokens = torch.randint(0, 96, (1, length))

    def cached() -> None:
        cache = model.empty(1)
        for at in range(length):
            cache, _ = model.step(cache, tokens[:, at])

    def full(*, plain: bool = False) -> None:
        for at in range(length):
            model(tokens[:, : at + 1], return_weights=plain)

    def operations(write: Any, **how: bool) -> int:
        with FlopCounterMode(display=False) as counter:
            write(**how)
        return int(counter.get_total_flops())

    seconds = in_turns({"full": full, "cached": cached}, rounds, clock=time.process_time)
    counted = operations(full, plain=True) / operations(cached)  # the fused kernel is not counted
    return {"time": ratios(seconds, "cached")["full"], "operations": counted}


def main(experiment: Experiment) -> None:
    for length in (16,) if experiment.quick else (64, 256, 512):
        experiment.note(str(length), without_a_cache(length, 1 if experiment.quick else 5))
