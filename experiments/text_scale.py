"""Bits per character of transformers and tuned n-grams, on 0.3 to 30 MB of docstrings.

The corpus is that of attnbook.datasets.docstrings, which needs what `make env-test` installs. Sizes
are first parts of its train.txt. validation.txt chooses, with seed 0; held_out.txt, files of the
same libraries, and unseen.txt, libraries of which nothing was learned, judge.

- N-grams of characters and of byte pairs: at every size the best order and discount.
- Transformers of the same byte pairs: rate, dropout, decay and steps are chosen at 0.3 MB, the rate
  at every size. Larger texts have larger models and more steps, which nobody chose: a text of 10 MB
  is read three times, and from 3 MB on nothing is dropped.
- A law: models of seven sizes see 3 million tokens of the largest text, each at its best rate.

Takes nine hours; what is stored is not measured again. The stored runs that name a machine of their
own were those of a GPU, in TF32.
"""

import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from attnbook import devices
from attnbook import torch as torch_layers
from attnbook.datasets.docstrings import write_docstrings
from attnbook.datasets.python_reference import CHARACTERS
from attnbook.generate import ngrams
from attnbook.train import training
from attnbook.train.byte_pairs import BytePairs, learn_pairs
from attnbook_course.live import models
from experiments.harness import Experiment
from experiments.transformers import learn_with_decay

SIZES = (300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000)  # characters
JUDGES = ("validation", "held_out", "unseen")
JUDGED = 300_000  # characters of each, at most
VOCABULARY, WINDOW, ROWS, SEEDS = 1024, 128, 16, 3
ORDERS, DISCOUNTS = (8, 12, 16, 24, 32, 48), (0.8, 0.9, 0.95)
RATES = (1e-3, 1.5e-3, 2e-3, 3e-3, 4e-3, 6e-3, 8e-3, 12e-3, 16e-3, 24e-3, 32e-3)
WRITES = "10000000 writes"  # this run's model is stored, and writes on a page


@dataclass(frozen=True)
class Recipe:
    """A model and how it learns."""

    width: int
    heads: int
    layers: int
    steps: int
    rate: float = 3e-3
    dropout: float = 0.0
    decay: float = 0.1
    seed: int = 0


TRIED = {
    "rate": (1.5e-3, 3e-3, 6e-3),
    "dropout": (0.0, 0.1, 0.2, 0.3),
    "decay": (0.0, 0.1, 0.3),
    "steps": (500, 1000, 2000),
}
SMALLEST = Recipe(128, 4, 2, 1000, dropout=0.1)
LARGER = {
    1_000_000: Recipe(128, 4, 2, 1500, dropout=0.1),
    3_000_000: Recipe(192, 6, 3, 3000),
    10_000_000: Recipe(256, 8, 4, 6000, rate=2e-3),
    30_000_000: Recipe(256, 8, 4, 15_000, rate=2e-3),
}
LAW = [
    Recipe(width, heads, layers, 1500, rate=rate)
    for width, heads, layers, rate in (
        (32, 2, 2, 6e-3), (64, 4, 2, 4e-3), (96, 4, 3, 3e-3), (128, 4, 4, 3e-3), (192, 6, 4, 2e-3),
        (256, 8, 4, 2e-3), (384, 8, 6, 1.5e-3),
    )
]  # fmt: skip


class Corpus:
    """The texts of a folder, written where it has none."""

    def __init__(self, folder: Path, size: int) -> None:
        if not (folder / "sources.json").exists():
            write_docstrings(folder, size)
        self.folder = folder
        sources = json.loads((folder / "sources.json").read_text(encoding="utf-8"))["libraries"]
        self.libraries = {name: (one["version"], one["licence"]) for name, one in sources.items()}
        self.judges = {name: self.read(name, JUDGED) for name in JUDGES}
        self.in_pairs = cache(self._in_pairs)

    def read(self, name: str, most: int) -> str:
        """A first part of a text."""
        return (self.folder / f"{name}.txt").read_text(encoding="ascii")[:most]

    def _in_pairs(self, size: int) -> tuple[BytePairs, np.ndarray]:
        """The byte pairs of a first part of the training text, and the part in them."""
        text = self.read("train", size)
        pairs = learn_pairs(text, VOCABULARY)
        return pairs, np.array(pairs.encode(text), dtype=np.int64)


def best_grams(corpus: Corpus, size: int, tokens: str) -> dict[str, Any]:
    """The n-gram whose order and discount are best on the validation text; bits a character."""
    if tokens == "pairs":
        pairs, learned = corpus.in_pairs(size)
        judged, vocab = [pairs.encode(text) for text in corpus.judges.values()], len(pairs.tokens)
    else:
        text = corpus.read("train", size)
        learned, *judged = (
            np.array([CHARACTERS.index(c) for c in part])
            for part in (text, *corpus.judges.values())
        )
        vocab = len(CHARACTERS)
    ends = np.cumsum([len(part) for part in judged])
    seconds = time.process_time()

    @cache
    def needed(order: int, discount: float) -> dict[str, float]:
        every = np.concatenate(judged)
        found = ngrams.bits(learned, every, order, vocab_size=vocab, discount=discount)
        parts = zip(np.split(found, ends[:-1]), corpus.judges.items(), strict=True)
        return {name: float(part.sum() / len(text)) for part, (name, text) in parts}

    def validation(order: int, discount: float) -> float:
        return needed(order, discount)["validation"]

    longer = list(ORDERS)
    order, discount, best = longer.pop(0), 0.9, (0, 0.0)
    while (order, discount) != best:
        best = (order, discount)
        while longer and validation(longer[0], discount) < validation(order, discount):
            order = longer.pop(0)
        discount = min(DISCOUNTS, key=lambda d: validation(order, d))
    seconds = time.process_time() - seconds
    return {"order": order, "discount": discount, "cpu_seconds": seconds} | needed(*best)


def trained(recipe: Recipe, corpus: Corpus, size: int) -> tuple[Any, BytePairs]:
    """A model of a first part of the text, as attnbook.train_lm trains it, and its byte pairs."""
    pairs, tokens = corpus.in_pairs(size)
    torch.manual_seed(recipe.seed)
    sizes = recipe.width, recipe.heads, 4 * recipe.width, recipe.layers
    model = torch_layers.DecoderOnly(len(pairs.tokens), WINDOW, *sizes, dropout=recipe.dropout)
    model.to(devices.torch_device())

    def batches() -> Iterator[tuple[np.ndarray]]:
        for step in range(1, recipe.steps + 1):
            if recipe.dropout > 0:  # what is left out depends on seed and step alone
                entropy = np.random.SeedSequence([recipe.seed, step, 0])
                torch.manual_seed(int(entropy.generate_state(1)[0]))
            how = {"rows": ROWS, "window": WINDOW, "seed": recipe.seed}
            yield (training.step_batch(tokens, step, **how),)

    rates = training.warm_cosine(recipe.rate, recipe.steps, warmup=recipe.steps // 20)
    learn_with_decay(model, batches(), rates, recipe.decay)
    return model.eval(), pairs


@torch.no_grad()
def bits(model: Any, tokens: list[int]) -> float:
    """Bits of a text together; every token but the first window's has half a window before it."""
    numbers, half = torch.tensor(tokens, device=model.position.device), WINDOW // 2
    count = max(0, (len(numbers) - 1 - WINDOW) // half) + 1
    end = (count - 1) * half + WINDOW + 1  # of the last whole window
    windows = numbers[:end].unfold(0, WINDOW + 1, half)
    nats = [_nats(model, part, half) for part in windows.split(64)]
    nats.insert(0, _nats(model, windows[:1, : half + 1], 0))
    if end < len(numbers):
        nats.append(_nats(model, numbers[None, end - half - 1 :], half))
    return float(torch.cat(nats).double().sum()) / math.log(2)


def _nats(model: Any, windows: Tensor, known: int) -> Tensor:
    """Of each token of windows, but the first and the known ones after it."""
    logits = model(windows[:, :-1])[:, known:]
    return F.cross_entropy(
        logits.flatten(0, 1), windows[:, 1 + known :].flatten(), reduction="none"
    )


def choose_rate(recipe: Recipe, validation: Callable[[Recipe], float]) -> Recipe:
    """The same with the best rate of those tried: three at first, then on beyond an edge."""
    place = RATES.index(recipe.rate)
    three = (place - 1, place, place + 1)
    tried = {i: validation(replace(recipe, rate=RATES[i])) for i in three}
    while True:
        best = min(tried, key=lambda i: tried[i])
        coming = best - 1 if best == min(tried) else best + 1
        if coming in tried or not 0 <= coming < len(RATES):
            return replace(recipe, rate=RATES[best])
        tried[coming] = validation(replace(recipe, rate=RATES[coming]))


def measure_all(experiment: Experiment, corpus: Corpus) -> None:
    """Whatever is missing; what takes longest comes last."""
    quick, experiment.found = experiment.quick, experiment.stored()

    def once(key: str, measure: Callable[[], Any]) -> Any:
        if key not in experiment.found:
            about = {"sizes": SIZES, "judged": JUDGED, "libraries": corpus.libraries}
            experiment.note(key, measure(), **about)
        return experiment.found[key]

    def run(key: str, recipe: Recipe, size: int, *judges: str, keep: bool = False) -> Any:
        """Train, and give the bits a character of the texts that judge."""

        def measure() -> dict[str, Any]:
            model, pairs = trained(recipe, corpus, size)
            if keep:
                models.store("docstrings", model, pairs)
            texts = {name: corpus.judges[name] for name in judges or JUDGES}
            return {
                **asdict(recipe),
                "parameters": sum(parameter.numel() for parameter in model.parameters()),
                "tokens": recipe.steps * ROWS * WINDOW,
                **{
                    name: bits(model, pairs.encode(text)) / len(text)
                    for name, text in texts.items()
                },
            }

        return once(key, measure)

    def grams(*sizes: int) -> None:
        for size in sizes:
            for tokens in ("characters", "pairs"):
                once(f"{size} {tokens}", lambda s=size, t=tokens: best_grams(corpus, s, t))

    grams(*SIZES[: 1 if quick else -1])
    best = replace(SMALLEST, steps=10) if quick else SMALLEST
    for name, values in () if quick else TRIED.items():  # one after the other
        tried: dict[Any, float] = {}
        for value in values:
            one = replace(best, **{name: value})
            key = f"{SIZES[0]} {one.rate:g} {one.dropout:g} {one.decay:g} {one.steps}"
            tried[value] = run(key, one, SIZES[0], "validation")["validation"]
        best = replace(best, **{name: min(tried, key=lambda value: tried[value])})
    *larger, largest = ((str(size), size, recipe) for size, recipe in LARGER.items())
    law = [(f"law {recipe.width} {recipe.layers}", SIZES[-1], recipe) for recipe in LAW]
    todo = [(str(SIZES[0]), SIZES[0], best), *larger, *law, largest]
    for name, size, recipe in todo[: 1 if quick else None]:

        def validation(one: Recipe, name: str = name, size: int = size) -> float:
            bits_of: float = run(f"{name} rate {one.rate:g}", one, size, "validation")["validation"]
            return bits_of

        chosen = choose_rate(recipe, validation) if size > SIZES[0] else recipe
        for seed in range(1 if quick else SEEDS):
            run(f"{name} seed {seed}", replace(chosen, seed=seed), size)
    if not quick:
        run(WRITES, LARGER[10_000_000], 10_000_000, keep=True)
        grams(SIZES[-1])  # half an hour by itself


def main(experiment: Experiment) -> None:
    if experiment.quick:
        with tempfile.TemporaryDirectory() as folder:
            measure_all(experiment, Corpus(Path(folder), 2 * SIZES[0]))
    else:
        measure_all(experiment, Corpus(Path("_build") / "text_scale" / "corpus", SIZES[-1]))
