"""The translator and the language model of chapter 8: seeds, both libraries, and their rivals.

Takes about an hour, and stores two models too.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch

from attnbook import datasets
from attnbook import torch as torch_layers
from attnbook.generate import ngrams
from attnbook.models.losses import cross_entropy
from attnbook.torch.train_lm import adamw
from attnbook_course.live import models
from experiments.harness import Experiment, in_library, learn
from experiments.translation import task, train

STEPS, PEAK, WARMUP, SIZE = 600, 4e-3, 50, 64
TEXT_STEPS, WINDOW, ROWS = 2000, 64, 16


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
    how = {"library": library, "size": SIZE, "steps": steps, "peak": peak, "warmup": warmup}
    run = train(words, model, seed, **how)
    if keep:
        models.store("translator", run.model)
    return run.measured


def windows(text: np.ndarray, steps: int, seed: int) -> Iterator[tuple[np.ndarray]]:
    """Batches of windows of WINDOW + 1 characters, each from anywhere."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        start = rng.integers(0, len(text) - WINDOW, size=(ROWS, 1))
        yield (text[start + np.arange(WINDOW + 1)],)


def bits(model: Any, text: np.ndarray) -> float:
    """Bits per character: windows that overlap by half, of each the second half counts."""
    half = WINDOW // 2
    to_array = torch.tensor if isinstance(model, torch.nn.Module) else jnp.asarray
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


def learn_with_decay(model: Any, batches: Any, rates: Any, decay: float) -> list[float]:
    """Train a language model with AdamW, as attnbook.train_lm does; the loss of every step."""
    optimiser, losses = adamw(model, decay), []
    device = model.position.device
    for (batch,), rate in zip(batches, rates, strict=True):
        for group in optimiser.param_groups:
            group["lr"] = float(rate)
        optimiser.zero_grad()
        loss = text_loss(model, torch.tensor(batch, device=device))
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(float(loss.detach()))
    return losses


def trained_writer(model: Any, library: str, text: np.ndarray, steps: int, seed: int) -> Any:
    """A model trained as chapter 8's writer is, and the history of its training."""
    model, layers, _ = in_library(model, library)
    return learn(layers, model, text_loss, windows(text, steps, seed), PEAK, steps)


def language_model(
    seed: int, library: str, steps: int, *, make: Any = None, keep: bool = False
) -> dict[str, float]:
    """Train once; bits per character of the training batches at the end, and held out."""
    text = datasets.python_reference()
    torch.manual_seed(seed)
    model = (make or torch_layers.DecoderOnly)(len(text.vocabulary), WINDOW)
    parameters = sum(p.numel() for p in model.parameters())
    model, history = trained_writer(model, library, text.train, steps, seed)
    if keep:
        models.store("writer", model)
    return {
        "train": float(np.mean(history.losses[-100:]) / np.log(2)),
        "held_out": float(bits(model, text.held_out)),
        "cpu_seconds": history.cpu_seconds,
        "parameters": parameters,
    }


def by_order(text: Any) -> dict[str, float]:
    """Held-out bits per character of n-grams."""
    size = len(text.vocabulary)
    return {
        str(n): float(ngrams.bits(text.train, text.held_out, n, vocab_size=size).mean())
        for n in range(1, 11)
    }


def best_gram(text: Any, orders: Any, discounts: Any, first: int = 0) -> dict[str, float]:
    """The n-gram whose order and discount are best on the last tenth of the training text.

    Of a text that judges the characters from the first on count.
    """
    cut = 9 * len(text.train) // 10

    def needed(fit: np.ndarray, judged: np.ndarray, n: int, discount: float) -> float:
        how = {"vocab_size": len(text.vocabulary), "discount": discount}
        return float(ngrams.bits(fit, judged, n, **how)[first:].mean())

    tried = {
        pair: needed(text.train[:cut], text.train[cut:], *pair)
        for pair in itertools.product(orders, discounts)
    }
    n, discount = min(tried, key=lambda pair: tried[pair])
    of_all = needed(text.train, text.held_out, n, discount)
    return {"order": n, "discount": discount, "set_aside": tried[n, discount], "bits": of_all}


def main(experiment: Experiment) -> None:
    quick, note = experiment.quick, experiment.note
    seeds = range(1 if quick else 3)
    full, text_steps = (20, 20) if quick else (STEPS, TEXT_STEPS)

    def translated(name: str, language: str, **how: Any) -> None:
        note(name, [translation(language, s, **{"steps": full, **how}) for s in seeds])

    text = datasets.python_reference()
    note("n-grams", by_order(text))
    note("n-grams, chosen", best_gram(text, range(5, 12), (0.7, 0.8, 0.9)))
    note("de torch", [translation("de", s, steps=full, keep=s == 0 and not quick) for s in seeds])
    runs = [language_model(s, "torch", text_steps, keep=s == 0 and not quick) for s in seeds]
    note("text torch", runs)
    note("text JAX", [language_model(s, "JAX", text_steps) for s in seeds])
    translated("de JAX", "de", library="JAX")
    translated("fr torch", "fr")
    translated("fr JAX", "fr", library="JAX")
    translated("de torch, half", "de", steps=full // 2)
    for warmup in (0, WARMUP):
        how = {"steps": full // 2, "norm": "post", "warmup": warmup}
        translated(f"de post-norm, warm-up {warmup}, half", "de", **how)
