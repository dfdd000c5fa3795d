"""Number words from English to German and French: seeds, and what goes without attention.

``found`` has the trainings, ``looks`` what the chapter shows of single models, ``rates`` what other
learning rates give in as few steps as the page trains, and ``best`` what the best of them gives in
more. Takes ninety minutes, on one core.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from num2words import num2words

from attnbook import datasets
from attnbook import torch as torch_layers
from attnbook.datasets import END, PAD, START
from attnbook.generate import decoding
from attnbook.models.losses import cross_entropy
from attnbook.train import training
from experiments.harness import Experiment, in_library, learn

STEPS = 800
SHORT = 300  # of the chapter's page
SHOWN = (346, 347_366, 594_596)  # held out
RATES = (4e-3, 8e-3, 16e-3, 32e-3)
BEST = 16e-3  # of these for either model, by the median of three seeds
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
    look: Callable[..., dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Train once, translate what was held out: exact match, CPU seconds, exact match by length.

    With ``look`` also what it finds in the model, the texts written and their weights.
    """
    words = task(language)
    torch.manual_seed(seed)
    vocabularies = len(words.source_vocabulary), len(words.target_vocabulary)
    model: Any = torch_layers.EncoderDecoder(*vocabularies, hidden_dim=hidden_dim, score=score)
    parameters = sum(p.numel() for p in model.parameters())
    model, layers, to_array = in_library(model, library)
    pairs = [words.train.source, words.train.target]
    batches = training.minibatches(pairs, size=size, steps=steps, seed=seed)
    model, history = learn(layers, model, loss, batches, peak, steps)
    held_out = words.held_out
    source = to_array(held_out.source)
    with torch.no_grad():
        written, weights = decoding.greedy(
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
        "parameters": parameters,
    }
    print(language, library, score, hidden_dim, size, peak, seed, found, flush=True)
    if look:
        found["look"] = look(model, words, written, weights, right)
    return found


def texts(model: Any, words: Any, written: Any, weights: Any, right: Any) -> dict[str, Any]:
    """What was written for the numbers that the chapter's opening shows."""
    at = {number: int(np.flatnonzero(words.held_out.numbers == number)[0]) for number in SHOWN}
    return {"texts": {number: words.decode(written[row]) for number, row in at.items()}}


def alignment(model: Any, words: Any, written: Any, weights: Any, right: Any) -> dict[str, Any]:
    """The same, with the weights of the first number, and what a beam of four would change."""
    row = int(np.flatnonzero(words.held_out.numbers == SHOWN[0])[0])
    text, read = words.decode(written[row]), words.read(words.held_out.source[row])
    return {
        **texts(model, words, written, weights, right),
        "read": read,
        "weights": np.round(weights[row, : len(text), : len(read)], 3).tolist(),
        "beam": beams(model, words, written, right) if np.mean(right) > 0.9 else None,
    }


def mean_place(rows: np.ndarray) -> float:
    """The mean number of the source word that a part's letters read."""
    return float((rows @ np.arange(rows.shape[1])).mean())


def french_gaps(model: Any, words: Any, written: Any, weights: Any, right: Any) -> dict[str, Any]:
    """Where the ten is read, less where the unit is, for endings from 22 to 69 that are right."""
    numbers, gaps = words.held_out.numbers, []
    ending = numbers % 100
    for row in np.flatnonzero((ending > 20) & (ending < 70) & (ending % 10 > 1) & right):
        text = words.decode(written[row])
        word = num2words(int(ending[row]), lang="fr")
        at, middle = len(text) - len(word), word.index("-")
        w = weights[row, : len(text), : (words.held_out.source[row] != PAD).sum()]
        first, second = w[at : at + middle], w[at + middle + 1 :]
        gaps.append(round(mean_place(first) - mean_place(second), 2))
    return {"gaps": gaps}


def beams(model: Any, words: Any, written: Any, right: Any) -> dict[str, Any]:
    """A beam of four against greedy decoding: the first hundred wrong and sixty right numbers."""
    some = np.concatenate([np.flatnonzero(~right)[:100], np.flatnonzero(right)[:60]])
    source = torch.tensor(words.held_out.source[some])
    said = torch.tensor(written[some])
    begun = torch.cat([torch.full_like(said[:, :1], START), said[:, :-1]], dim=1)
    with torch.no_grad():  # log p of all greedy texts at once, up to their first END
        log_p = torch.log_softmax(model(source, source != PAD, begun), dim=-1)
    each = log_p.gather(-1, said[..., None])[..., 0].numpy()
    greedy_p = np.where(begun.numpy() != END, each, 0).sum(axis=1)
    mended = spoiled = kept = 0
    least, best = np.inf, []
    for row, tokens_of, p in zip(some, source, greedy_p, strict=True):
        with torch.no_grad():
            tokens, log_probability = decoding.beam(
                model, tokens_of, tokens_of != PAD, start=START, end=END, limit=80, width=4
            )[0]
        text, true = words.decode(tokens), words.decode(words.held_out.target[row])
        kept += text == words.decode(written[row])
        mended += bool(text == true and not right[row])
        spoiled += bool(text != true and right[row])
        least = min(least, log_probability - p)
        best.append(round(float(np.exp(log_probability)), 3))
    counts = {
        "wrong": min(100, int((~right).sum())),
        "right": 60,
        "mended": mended,
        "spoiled": spoiled,
        "kept": kept,
    }
    return {**counts, "least_gain": float(least), "best": best}


def single_models() -> dict[str, Any]:
    """What the chapter shows of single models.

    The first two are the first seeds of "de half" and "de none, half" again.
    """
    half = STEPS // 2
    return {
        "with": experiment("de", 0, steps=half, look=alignment)["look"],
        "without": experiment("de", 0, steps=half, score=None, look=texts)["look"],
        "French": experiment("fr", 0, steps=SHORT, peak=8e-3, look=french_gaps)["look"],
    }


def exact(score: str | None, seeds: int, **how: Any) -> list[float]:
    """Exact match in German."""
    return [experiment("de", seed, score=score, **how)["exact"] for seed in range(seeds)]


SCORES = {"with": "additive", "without": None}
CASES: dict[str, tuple[int, dict[str, Any]]] = {  # seeds, and how they train
    "fr torch": (3, {}),
    "de torch": (3, {}),
    "fr JAX": (3, {"library": "JAX"}),
    "de JAX": (3, {"library": "JAX"}),
    "de none": (3, {"score": None}),
    "de half": (3, {"steps": STEPS // 2}),
    "de none, half": (3, {"score": None, "steps": STEPS // 2}),
    "fr narrow": (4, {"hidden_dim": 96, "size": 128, "steps": 400}),
}


def main(asked: Experiment) -> None:
    if asked.quick:
        experiment("de", 0, steps=20)
        return
    found = {}
    for name, (seeds, how) in CASES.items():
        found[name] = [experiment(name[:2], seed, **how) for seed in range(seeds)]
        asked.store(found=found)
    rates = {
        name: {str(peak): exact(score, 3, steps=SHORT, peak=peak) for peak in RATES}
        for name, score in SCORES.items()
    }
    best = {
        f"{name}, {part}": exact(score, 5, steps=steps, peak=BEST)
        for part, steps in (("half", STEPS // 2), ("all", STEPS))
        for name, score in SCORES.items()
    }
    asked.store(found=found, looks=single_models(), rates=rates, best=best)
