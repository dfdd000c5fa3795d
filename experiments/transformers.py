"""The translator and the language model of chapter 8: seeds, both libraries, and their rivals.

    python -m experiments.transformers            all; stores results and two models (about an hour)
    python -m experiments.transformers --quick    twenty steps of one seed; stores nothing

Seeds are 0, 1, 2, … throughout and none is left out; first parameters and batches come from them.
The data are the same for all.
"""

import itertools
import sys
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch

from attnbook import convert, datasets
from attnbook import jax as jax_layers
from attnbook import torch as torch_layers
from attnbook.datasets import END, PAD, START
from attnbook.generate import decoding, ngrams
from attnbook.models.losses import cross_entropy
from attnbook.train import training
from attnbook_course.live import models
from experiments.storing import asked_quick, store
from experiments.translation import loss, task

STEPS, PEAK, WARMUP, SIZE = 600, 4e-3, 50, 64
TEXT_STEPS, WINDOW, ROWS = 2000, 64, 16


def in_library(model: Any, library: str) -> tuple[Any, Any, Any]:
    """A model, the layers and the array of a library."""
    if library == "torch":
        return model, torch_layers, torch.tensor
    return convert.torch_to_jax(model), jax_layers, jnp.asarray


def translation(
    language: str,
    seed: int,
    *,
    kind: str = "transformer",
    library: str = "torch",
    steps: int = STEPS,
    warmup: int = WARMUP,
    norm: str = "pre",
    peak: float = PEAK,
    keep: bool = False,
) -> dict[str, Any]:
    """Train once, translate what was held out: exact match and CPU seconds."""
    words = task(language)
    torch.manual_seed(seed)
    sizes = len(words.source_vocabulary), len(words.target_vocabulary)
    longest = words.train.target.shape[1]
    model: Any = (
        torch_layers.Transformer(*sizes, longest, norm=norm)
        if kind == "transformer"
        else torch_layers.EncoderDecoder(*sizes)
    )
    parameters = sum(p.numel() for p in model.parameters())
    model, layers, to_array = in_library(model, library)
    pairs = [words.train.source, words.train.target]
    batches = training.minibatches(pairs, size=SIZE, steps=steps, seed=seed)
    rates = training.warm_cosine(peak, steps, warmup=warmup)
    model, history = layers.train(model, loss, batches, learning_rate=rates, clip=1.0)
    if keep:
        models.store("translator", model)
    held_out = words.held_out
    source = to_array(held_out.source)
    with torch.no_grad():
        written, _ = decoding.greedy(
            model, source, source != PAD, start=START, end=END, limit=held_out.target.shape[1] - 1
        )
    return {
        "exact": float(np.mean(words.is_correct(written, held_out.target))),
        "loss": float(np.mean(history.losses[-20:])),
        "cpu_seconds": history.cpu_seconds,
        "parameters": parameters,
    }


def windows(text: np.ndarray, steps: int, seed: int) -> Iterator[tuple[np.ndarray]]:
    """Batches of windows of WINDOW + 1 characters, each from anywhere."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        start = rng.integers(0, len(text) - WINDOW, size=(ROWS, 1))
        yield (text[start + np.arange(WINDOW + 1)],)


def bits(model: Any, text: np.ndarray, to_array: Any) -> float:
    """Bits per character: windows that overlap by half, of each the second half counts."""
    half = WINDOW // 2
    rows = np.lib.stride_tricks.sliding_window_view(text, WINDOW + 1)[::half]
    total = 0.0
    with torch.no_grad():
        for at in range(0, len(rows), 64):
            part = to_array(rows[at : at + 64].copy())
            logits = model(part[:, :-1])[:, half:]
            total += float(cross_entropy(logits, part[:, 1:][:, half:])) * len(part)
    return total / len(rows) / np.log(2)


def text_loss(model: Any, tokens: Any) -> Any:
    return cross_entropy(model(tokens[:, :-1]), tokens[:, 1:])


def language_model(seed: int, library: str, steps: int, *, keep: bool = False) -> dict[str, float]:
    """Train once; bits per character of the training batches at the end, and held out."""
    text = datasets.python_reference()
    torch.manual_seed(seed)
    model: Any = torch_layers.DecoderOnly(len(text.vocabulary), WINDOW)
    parameters = sum(p.numel() for p in model.parameters())
    model, layers, to_array = in_library(model, library)
    batches = windows(text.train, steps, seed)
    rates = training.warm_cosine(PEAK, steps, warmup=WARMUP)
    model, history = layers.train(model, text_loss, batches, learning_rate=rates, clip=1.0)
    if keep:
        models.store("writer", model)
    return {
        "train": float(np.mean(history.losses[-100:]) / np.log(2)),
        "held_out": bits(model, text.held_out, to_array),
        "cpu_seconds": history.cpu_seconds,
        "parameters": parameters,
    }


def by_order(whole_topics: bool) -> dict[str, float]:
    """Held-out bits per character of n-grams."""
    text = datasets.python_reference(whole_topics=whole_topics)
    size = len(text.vocabulary)
    return {
        str(n): float(ngrams.bits(text.train, text.held_out, n, vocab_size=size).mean())
        for n in range(1, 11)
    }


def chosen() -> dict[str, float]:
    """The n-gram whose order and discount are best on the last tenth of the training text."""
    text = datasets.python_reference()
    size, cut = len(text.vocabulary), 9 * len(text.train) // 10

    def needed(n: int, discount: float, fit: np.ndarray, judged: np.ndarray) -> float:
        found = ngrams.bits(fit, judged, n, vocab_size=size, discount=discount)
        return float(found.mean())

    pairs = itertools.product(range(5, 12), (0.7, 0.8, 0.9))
    n, discount = min(pairs, key=lambda pair: needed(*pair, text.train[:cut], text.train[cut:]))
    bits = needed(n, discount, text.train, text.held_out)
    return {"order": n, "discount": discount, "bits": bits}


def main() -> None:
    quick = asked_quick(__doc__)
    torch.set_num_threads(1)
    seeds = range(1 if quick else 3)
    found: dict[str, Any] = {}

    def note(name: str, results: Any) -> None:
        found[name] = results
        print(name, results, flush=True)
        if not quick:
            store("transformers", python=sys.version.split()[0], found=found)

    full, text_steps = (20, 20) if quick else (STEPS, TEXT_STEPS)
    note("n-grams", by_order(False))
    note("n-grams, whole topics", by_order(True))
    note("n-grams, chosen", chosen())
    note("de torch", [translation("de", s, steps=full, keep=s == 0 and not quick) for s in seeds])
    runs = [language_model(s, "torch", text_steps, keep=s == 0 and not quick) for s in seeds]
    note("text torch", runs)
    note("text JAX", [language_model(s, "JAX", text_steps) for s in seeds])
    note("de JAX", [translation("de", s, library="JAX", steps=full) for s in seeds])
    note("fr torch", [translation("fr", s, steps=full) for s in seeds])
    note("fr JAX", [translation("fr", s, library="JAX", steps=full) for s in seeds])
    half = full // 2
    note("de torch, half", [translation("de", s, steps=half) for s in seeds])
    note("de GRU, half", [translation("de", s, kind="GRU", steps=half) for s in seeds])
    for warmup in (0, WARMUP):
        runs = [translation("de", s, steps=half, norm="post", warmup=warmup) for s in seeds]
        note(f"de post-norm, warm-up {warmup}, half", runs)


if __name__ == "__main__":
    main()
