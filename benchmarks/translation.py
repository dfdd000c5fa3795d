"""Number words from English to German and French: seeds, and what goes without attention.

    python -m benchmarks.translation            all; stores the results (about an hour, one core)
    python -m benchmarks.translation --quick    twenty steps of one seed; stores nothing

Seeds are 0, 1, 2, … throughout and none is left out; first parameters and batches come from them.
The data are the same for all.
"""

from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch

from attnbook import convert, datasets, decoding, training
from attnbook import jax as jax_layers
from attnbook import torch as torch_layers
from attnbook.datasets import END, PAD, START
from attnbook.losses import cross_entropy
from benchmarks.storing import asked_quick, store

STEPS = 800
task = cache(datasets.number_words)


def loss(model: Any, source: Any, target: Any) -> Any:
    """Cross-entropy of every next character, without padding."""
    labels = target[:, 1:]
    return cross_entropy(model(source, source != PAD, target[:, :-1]), labels, labels != PAD)


def twins(numbers: np.ndarray) -> np.ndarray:
    """Whether the thousands and the rest have the same ten, from 20 on, as 594,596 has."""
    tens = numbers // 10_000 % 10
    return (tens >= 2) & (tens == numbers // 10 % 10)


def experiment(
    language: str,
    seed: int,
    *,
    library: str = "torch",
    score: str | None = "additive",
    hidden_dim: int = 128,
    size: int = 64,
    steps: int = STEPS,
    peak: float = 4e-3,
    warmup: int = 50,
) -> dict[str, Any]:
    """Train once, translate what was held out: exact match, CPU seconds, exact match by length."""
    words = task(language)
    torch.manual_seed(seed)
    vocabularies = len(words.source_vocabulary), len(words.target_vocabulary)
    model: Any = torch_layers.EncoderDecoder(*vocabularies, hidden_dim=hidden_dim, score=score)
    parameters = sum(p.numel() for p in model.parameters())
    model, layers, to_array = (
        (model, torch_layers, torch.tensor)
        if library == "torch"
        else (convert.torch_to_jax(model), jax_layers, jnp.asarray)
    )
    pairs = [words.train.source, words.train.target]
    model, history = layers.train(
        model, loss, training.minibatches(pairs, size=size, steps=steps, seed=seed),
        learning_rate=training.warm_cosine(peak, steps, warmup=warmup), clip=1.0,
    )  # fmt: skip
    held_out = words.held_out
    source = to_array(held_out.source)
    with torch.no_grad():
        written, _ = decoding.greedy(
            model, source, source != PAD, start=START, end=END, limit=held_out.target.shape[1]
        )
    right = words.is_correct(written, held_out.target)
    read = np.sum(held_out.source != PAD, axis=1)
    found = {
        "exact": float(np.mean(right)),
        "twin_halves": float(np.mean(right[twins(held_out.numbers)])),
        "other_halves": float(np.mean(right[~twins(held_out.numbers)])),
        "by_words": {int(n): float(np.mean(right[read == n])) for n in np.unique(read)},
        "loss": float(np.mean(history.losses[-20:])),
        "cpu_seconds": history.cpu_seconds,
        "first_seconds": history.first_seconds,
        "parameters": parameters,
    }
    print(language, library, score, hidden_dim, size, peak, warmup, seed, found, flush=True)
    return found


def main() -> None:
    quick = asked_quick(__doc__)
    torch.set_num_threads(1)
    if quick:
        experiment("de", 0, steps=20)
        return
    narrow = {"hidden_dim": 96, "size": 128, "steps": 400}
    cases: dict[str, tuple[int, dict[str, Any]]] = {
        "fr torch": (3, {}),
        "de torch": (3, {}),
        "fr JAX": (3, {"library": "JAX"}),
        "de JAX": (3, {"library": "JAX"}),
        "de none": (3, {"score": None}),
        "de half": (3, {"steps": STEPS // 2}),
        "de none, half": (3, {"score": None, "steps": STEPS // 2}),
        "fr narrow": (4, narrow),
    }
    found = {}
    for name, (seeds, how) in cases.items():
        found[name] = [experiment(name[:2], seed, **how) for seed in range(seeds)]
        store("translation", found=found)


if __name__ == "__main__":
    main()
