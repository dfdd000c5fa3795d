"""Repeated sequences: how many layers copy, and what shared key and value heads cost.

    python -m experiments.induction            all; stores the results (about fifteen minutes)
    python -m experiments.induction --quick    twenty steps of one seed; stores nothing

Seeds are 0, 1, 2, … throughout and none is left out; data, first parameters and batches come from
them.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import torch

from attnbook import convert, datasets
from attnbook import jax as jax_layers
from attnbook import torch as torch_layers
from attnbook.models.losses import cross_entropy
from attnbook.train import training
from experiments.storing import asked_quick, store, summary

STEPS, SIZE = 600, 64


def loss(model: Any, tokens: Any, repeats: Any) -> Any:
    """Cross-entropy of the tokens that can be predicted."""
    return cross_entropy(model(tokens[:, :-1]), tokens[:, 1:], repeats[:, 1:])


def experiment(seed: int, library: str = "torch", **sizes: int) -> list[float]:
    """Accuracy and loss on 1000 new rows, CPU seconds."""
    torch.manual_seed(seed)
    model: Any = torch_layers.AttentionOnly(64, 48, **sizes)
    tokens, repeats = datasets.repeated_sequences(STEPS * SIZE, seed=seed)
    batches = [
        (tokens[at : at + SIZE], repeats[at : at + SIZE]) for at in range(0, STEPS * SIZE, SIZE)
    ]
    model, layers, to_array = (
        (model, torch_layers, torch.tensor)
        if library == "torch"
        else (convert.torch_to_jax(model), jax_layers, jnp.asarray)
    )
    model, history = layers.train(
        model, loss, batches, learning_rate=training.warm_cosine(0.01, STEPS, warmup=50), clip=1.0
    )
    tokens, repeats = datasets.repeated_sequences(1000, seed=1_000_000 + seed)
    with torch.no_grad():
        logits = model(to_array(tokens[:, :-1]))
        held_out = float(loss(model, to_array(tokens), to_array(repeats)))
    right = np.asarray(logits).argmax(axis=-1) == tokens[:, 1:]
    return [float(np.mean(right[repeats[:, 1:]])), held_out, history.cpu_seconds]


def main() -> None:
    quick = asked_quick(__doc__)
    torch.set_num_threads(1)
    cases: dict[str, dict[str, Any]] = {
        "2 layers": {},
        "2 layers, JAX": {"library": "JAX"},
        "1 layer": {"num_layers": 1},
        "1 layer, twice as wide": {"num_layers": 1, "embed_dim": 128, "num_heads": 8},
        **{f"8 heads, {kv} shared": {"num_heads": 8, "num_kv_heads": kv} for kv in (8, 4, 2, 1)},
    }
    found = {}
    for name, how in cases.items():
        runs = [experiment(seed, **how) for seed in range(1 if quick else 5)]
        found[name] = [summary(column) for column in zip(*runs, strict=True)]
        print(name, [[float(f"{x:.4g}") for x in run] for run in runs], flush=True)
        if quick:
            return
    store("induction", found=found)


if __name__ == "__main__":
    main()
