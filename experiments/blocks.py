"""Repeated sequences again: blocks with the norm before and after the sum, and attention alone.

    python -m experiments.blocks            all; stores the results (about ten minutes)
    python -m experiments.blocks --quick    twenty steps of one seed; stores nothing

Seeds are 0, 1, 2, … throughout and none is left out; data, first parameters and batches come from
them.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch

from attnbook import convert, datasets
from attnbook import jax as jax_layers
from attnbook import torch as torch_layers
from attnbook.train import training
from experiments.induction import loss
from experiments.storing import asked_quick, store, summary

STEPS, SIZE = 300, 64


def experiment(
    seed: int, make: Callable[[], Any], library: str, peak: float, steps: int
) -> list[float]:
    """Accuracy and loss on 1000 new rows, CPU seconds."""
    torch.manual_seed(seed)
    model = make()
    tokens, repeats = datasets.repeated_sequences(steps * SIZE, seed=seed)
    batches = [
        (tokens[at : at + SIZE], repeats[at : at + SIZE]) for at in range(0, steps * SIZE, SIZE)
    ]
    model, layers, to_array = (
        (model, torch_layers, torch.tensor)
        if library == "torch"
        else (convert.torch_to_jax(model), jax_layers, jnp.asarray)
    )
    rates = training.warm_cosine(peak, steps, warmup=50)
    model, history = layers.train(model, loss, batches, learning_rate=rates, clip=1.0)
    tokens, repeats = datasets.repeated_sequences(1000, seed=1_000_000 + seed)
    with torch.no_grad():
        logits = model(to_array(tokens[:, :-1]))
        held_out = float(loss(model, to_array(tokens), to_array(repeats)))
    right = np.asarray(logits).argmax(axis=-1) == tokens[:, 1:]
    return [float(np.mean(right[repeats[:, 1:]])), held_out, history.cpu_seconds]


def main() -> None:
    quick = asked_quick(__doc__)
    torch.set_num_threads(1)

    def blocks(norm: str = "pre") -> Any:
        return torch_layers.DecoderOnly(64, 48, 64, 4, 128, 2, norm=norm)

    cases: dict[str, tuple[Callable[[], Any], str, float]] = {
        "blocks": (blocks, "torch", 0.01),
        "blocks, JAX": (blocks, "JAX", 0.01),
        "blocks, rate 0.004": (blocks, "torch", 0.004),
        "post-norm": (lambda: blocks("post"), "torch", 0.01),
        "post-norm, rate 0.004": (lambda: blocks("post"), "torch", 0.004),
        "attention alone": (lambda: torch_layers.AttentionOnly(64, 48), "torch", 0.01),
    }
    found = {}
    for name, (make, library, peak) in cases.items():
        steps = 20 if quick else STEPS
        runs = [experiment(seed, make, library, peak, steps) for seed in range(1 if quick else 5)]
        found[name] = [summary(column) for column in zip(*runs, strict=True)]
        print(name, [[float(f"{x:.4g}") for x in run] for run in runs], flush=True)
    if not quick:
        store("blocks", copying=found)


if __name__ == "__main__":
    main()
