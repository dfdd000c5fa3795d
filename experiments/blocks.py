"""Repeated sequences again: blocks with the norm before and after the sum, and attention alone.

Data and loss are those of experiments/induction.py. Takes about ten minutes.
"""

from typing import Any

import torch

from attnbook import torch as torch_layers
from experiments.harness import Experiment, summaries
from experiments.induction import copying

STEPS = 300


def blocks(norm: str = "pre") -> Any:
    return torch_layers.DecoderOnly(64, 48, 64, 4, 128, 2, norm=norm)


CASES: dict[str, tuple[Any, str, float]] = {
    "blocks": (blocks, "torch", 0.01),
    "blocks, JAX": (blocks, "JAX", 0.01),
    "blocks, rate 0.004": (blocks, "torch", 0.004),
    "post-norm": (lambda: blocks("post"), "torch", 0.01),
    "post-norm, rate 0.004": (lambda: blocks("post"), "torch", 0.004),
    "attention alone": (lambda: torch_layers.AttentionOnly(64, 48), "torch", 0.01),
}


def main(experiment: Experiment) -> None:
    found = {}
    for name, (make, library, peak) in CASES.items():
        runs = []
        for seed in range(1 if experiment.quick else 5):
            torch.manual_seed(seed)
            steps = 20 if experiment.quick else STEPS
            runs.append(copying(make(), library, seed, steps, peak))
        found[name] = summaries(runs)
        print(name, found[name], flush=True)
    experiment.store(copying=found)
