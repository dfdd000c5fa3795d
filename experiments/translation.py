"""Number words of 1 to 9 digits, from English to German and French, with attention and without.

``tried`` has the learning rates, on other data and seeds than ``found``, which has the trainings at
the best of them. ``looks`` has what each of these models writes for two numbers, the weights of the
first, and how many of its wrong texts are German; of French models, where they read. Takes forty
minutes, on one core.
"""

from functools import cache
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import torch
from num2words import num2words

from attnbook import datasets
from attnbook import torch as torch_layers
from attnbook.datasets import END, PAD, START
from attnbook.generate import decoding
from attnbook.models import recurrent
from attnbook.models.losses import cross_entropy
from attnbook.train import training
from experiments.harness import Experiment, in_library, learn, rounded

SCORES = {"with": "additive", "without": None}
SHOWN = (846, 823_421_359)  # held out
RATES = (4e-3, 8e-3, 16e-3, 32e-3, 64e-3)
task = cache(datasets.number_words)


class Case(NamedTuple):
    """A kind, how it trains, its rates and the seeds that try them, and how many seeds count.

    Without rates it trains at the best of its kind.
    """

    kind: str
    how: dict[str, Any]
    rates: tuple[float, ...] = ()
    tried_with: tuple[int, ...] = (100,)
    seeds: int = 3


CASES = {
    "with": Case("with", {}, RATES, (100, 101), 5),
    "without": Case("without", {}, RATES, (100, 101), 5),
    "with, bias 0": Case("with", {"bias": 0.0}, RATES[2:], (100, 101)),
    "without, long": Case("without", {"steps": 2000}, RATES[:4]),
    "without, wide": Case("without", {"steps": 1500, "width": 128}, RATES[:3], seeds=2),
    "with, unclipped": Case("with", {"clip": None}),
    "with, PyTorch": Case("with", {"library": "torch"}, seeds=1),
    "without, PyTorch": Case("without", {"library": "torch"}, seeds=1),
    "with, French": Case("with", {"language": "fr", "steps": 1000}, RATES[1:4]),
}


class Trained(NamedTuple):
    """A model, what it writes for the numbers held out, and what is measured."""

    model: Any
    written: np.ndarray
    weights: np.ndarray
    right: np.ndarray
    measured: dict[str, Any]


def loss(model: Any, source: Any, target: Any) -> Any:
    """Cross-entropy of every next character, without padding."""
    labels = target[:, 1:]
    return cross_entropy(model(source, source != PAD, target[:, :-1]), labels, labels != PAD)


def train(words: Any, model: Any, seed: int, *, library: str, size: int, **how: Any) -> Trained:
    """Train once, and translate what was held out."""
    parameters = sum(p.numel() for p in model.parameters())
    model, layers, to_array = in_library(model, library)
    pairs = [words.train.source, words.train.target]
    batches = training.minibatches(pairs, size=size, steps=how["steps"], seed=seed)
    model, history = learn(layers, model, loss, batches, **how)
    source, target = to_array(words.held_out.source), words.held_out.target
    with torch.no_grad():
        written, weights = decoding.greedy(
            model, source, source != PAD, start=START, end=END, limit=target.shape[1] - 1
        )
    right = words.is_correct(written, target)
    measured = {
        "exact": float(np.mean(right)),
        "loss": float(np.mean(history.losses[-20:])),
        "cpu_seconds": history.cpu_seconds,
        "parameters": parameters,
    }
    return Trained(model, written, weights, right, measured)


def experiment(
    kind: str,
    seed: int,
    *,
    peak: float,
    language: str = "de",
    data: int = 0,
    library: str = "JAX",
    width: int = 48,
    bias: float = recurrent.UPDATE_BIAS,
    steps: int = 500,
    clip: float | None = 1.0,
) -> Trained:
    """Train an encoder–decoder, from the same first numbers in either library."""
    words = task(language, digits=9, seed=data)
    torch.manual_seed(seed)
    sizes = len(words.source_vocabulary), len(words.target_vocabulary)
    with mock.patch.object(recurrent, "UPDATE_BIAS", bias):
        model = torch_layers.EncoderDecoder(*sizes, 32, width, SCORES[kind])
    how = {"library": library, "steps": steps, "peak": peak, "clip": clip}
    run = train(words, model, seed, size=32, **how)
    digits = np.array([len(str(number)) for number in words.held_out.numbers])
    run.measured["by_digits"] = [float(run.right[digits == n].mean()) for n in range(1, 10)]
    print(kind, seed, peak, language, data, library, width, bias, steps, clip, flush=True)
    print(rounded(run.measured), flush=True)
    return run


@cache
def pieces() -> dict[str, int]:
    """What German number words are put together from: millions, thousands and the rest."""
    numbers = [unit * n for unit in (1, 1000, 1_000_000) for n in range(1000)]
    return {num2words(number, lang="de"): number for number in numbers}


def number_of(text: str) -> int | None:
    """The number that a German text writes, or None if it is no number's."""
    number, left = 0, text
    while left:
        begun = [left[:k] for k in range(1, len(left) + 1) if left[:k] in pieces()]
        if not begun:
            return None
        number, left = number + pieces()[begun[-1]], left[len(begun[-1]) :].lstrip()
    return number if num2words(number, lang="de") == text else None


def look(words: Any, run: Trained) -> dict[str, Any]:
    """What was written for the numbers shown, the first one's weights, and wrong texts."""
    first, second = (int(np.flatnonzero(words.held_out.numbers == n)[0]) for n in SHOWN)
    text, read = words.decode(run.written[first]), words.read(words.held_out.source[first])
    wrong = [words.decode(tokens) for tokens in run.written[~run.right]]
    return {
        "texts": dict(zip(SHOWN, (text, words.decode(run.written[second])), strict=True)),
        "read": read,
        "weights": rounded(run.weights[first, : len(text), : len(read)], 3),
        "wrong": len(wrong),
        "well_formed": sum(number_of(text) is not None for text in wrong),
    }


def french_gaps(words: Any, run: Trained) -> dict[str, Any]:
    """Where the ten is read, less where the unit is, for endings from 22 to 69 that are right.

    A part is read where its first letter reads in the mean, since the others follow from that one.
    """
    ending, gaps = words.held_out.numbers % 100, []
    for row in np.flatnonzero((ending > 20) & (ending < 70) & (ending % 10 > 1) & run.right):
        text, word = words.decode(run.written[row]), num2words(int(ending[row]), lang="fr")
        places = run.weights[row] @ np.arange(run.weights.shape[2])
        ten = len(text) - len(word)
        gaps.append(places[ten] - places[ten + word.index("-") + 1])
    return {"gaps": rounded(gaps, 3)}


LOOKS = {"with": look, "without": look, "with, French": french_gaps}


def best(tried: dict[str, list[dict[str, Any]]]) -> float:
    """The rate with the largest exact match in the mean."""
    return float(max(tried, key=lambda peak: np.mean([run["exact"] for run in tried[peak]])))


def main(asked: Experiment) -> None:
    if asked.quick:
        experiment("with", 0, peak=RATES[0], steps=20)
        return
    tried, found, looks = (dict[str, Any]() for _ in range(3))
    for name, (kind, how, rates, seeds, count) in CASES.items():
        if rates:
            tried[name] = {
                str(peak): [
                    rounded(experiment(kind, seed, peak=peak, data=1, **how).measured)
                    for seed in seeds
                ]
                for peak in rates
            }
        peak = best(tried[name if rates else kind])
        runs = [experiment(kind, seed, peak=peak, **how) for seed in range(count)]
        found[name] = [rounded({"rate": peak} | run.measured) for run in runs]
        if name in LOOKS:
            words = task(how.get("language", "de"), digits=9, seed=0)
            looks[name] = [LOOKS[name](words, run) for run in runs]
        asked.store(tried=tried, found=found, looks=looks)
