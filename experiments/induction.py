"""Repeated sequences: how many layers copy, and what shared key and value heads cost.

Takes about fifteen minutes.
"""

from typing import Any

import numpy as np
import torch

from attnbook import datasets
from attnbook import torch as torch_layers
from attnbook.models.losses import cross_entropy
from experiments.harness import Experiment, in_library, in_order, learn, summaries

STEPS, SIZE, PEAK = 600, 64, 0.01


def loss(model: Any, tokens: Any, repeats: Any) -> Any:
    """Cross-entropy of the tokens that can be predicted."""
    return cross_entropy(model(tokens[:, :-1]), tokens[:, 1:], repeats[:, 1:])


def copying(model: Any, library: str, seed: int, steps: int, peak: float = PEAK) -> list[float]:
    """Train; accuracy and loss on 1000 new rows, CPU seconds."""
    batches = in_order(datasets.repeated_sequences(steps * SIZE, seed=seed), SIZE)
    model, layers, to_array = in_library(model, library)
    model, history = learn(layers, model, loss, batches, peak, steps)
    tokens, repeats = datasets.repeated_sequences(1000, seed=1_000_000 + seed)
    with torch.no_grad():
        logits = model(to_array(tokens[:, :-1]))
        held_out = float(loss(model, to_array(tokens), to_array(repeats)))
    right = np.asarray(logits).argmax(axis=-1) == tokens[:, 1:]
    return [float(np.mean(right[repeats[:, 1:]])), held_out, history.cpu_seconds]


def main(experiment: Experiment) -> None:
    quick = experiment.quick
    cases: dict[str, dict[str, int]] = {
        "2 layers": {},
        "2 layers, JAX": {},
        "1 layer": {"num_layers": 1},
        "1 layer, twice as wide": {"num_layers": 1, "embed_dim": 128, "num_heads": 8},
        **{f"8 heads, {kv} shared": {"num_heads": 8, "num_kv_heads": kv} for kv in (8, 4, 2, 1)},
    }
    for name, sizes in cases.items():
        runs = []
        for seed in range(1 if quick else 5):
            torch.manual_seed(seed)
            model = torch_layers.AttentionOnly(64, 48, **sizes)
            library = "JAX" if "JAX" in name else "torch"
            runs.append(copying(model, library, seed, 20 if quick else STEPS))
        experiment.note(name, summaries(runs))
