"""Bits per character of transformers and tuned n-grams, on 0.3 to 30 MB of docstrings.

    python -m experiments.text_scale            all that is missing; stores after each (9 hours)
    python -m experiments.text_scale --quick    a small corpus and ten steps; stores nothing

Start it again after an interruption: the trainer resumes from its checkpoints, and what is stored
is not measured again. The corpus is that of attnbook.datasets.docstrings, which needs what
`make env-test` installs. Sizes are first parts of its train.txt, each a sample of all libraries.

- N-grams of characters and of byte pairs: at every size order and discount are chosen on
  validation.txt, in turns until neither changes.
- Transformers of the same byte pairs, by attnbook.train_lm: rate, dropout, decay and steps are
  chosen on validation.txt at 0.3 MB. Larger texts have larger models and more steps, which nobody
  chose: a text of 10 MB is read three times, and from 3 MB on nothing is dropped. The rate is
  chosen on validation.txt at every size; where the best is at an edge the next one is tried too.
- A law: models of seven sizes see 3 million tokens of the largest text, each at its best rate. It
  is fitted on four.

held_out.txt, files of the same libraries, and unseen.txt, libraries of which nothing was learned,
judge and choose nothing. The rate is chosen with seed 0; seeds 0, 1 and 2 are judged.
"""

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from attnbook import train_lm
from attnbook.datasets.docstrings import write_docstrings
from attnbook.datasets.python_reference import CHARACTERS
from attnbook.generate import ngrams
from attnbook.torch.train_lm import Run, workers
from attnbook.train.byte_pairs import BytePairs, learn_pairs
from attnbook.train.language_model.checkpoints import complete
from attnbook_course.live import models
from experiments.storing import FOLDER, asked_quick, store

SIZES = (300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000)  # characters
JUDGES = ("validation", "held_out", "unseen")
JUDGED = 300_000  # characters of each, at most
VOCABULARY, WINDOW, ROWS, SEEDS = 1024, 128, 16, 3
ORDERS, DISCOUNTS = (8, 12, 16, 24, 32, 48), (0.8, 0.9, 0.95)
RATES = (1e-3, 1.5e-3, 2e-3, 3e-3, 4e-3, 6e-3, 8e-3, 12e-3, 16e-3, 24e-3, 32e-3)
NAME, WRITES = "text_scale", "10000000 writes"  # this run's model is stored, and writes on a page


@dataclass(frozen=True)
class Training:
    """A model and how it learns."""

    width: int
    heads: int
    layers: int
    steps: int
    rate: float = 3e-3
    dropout: float = 0.0
    decay: float = 0.1
    seed: int = 0

    def options(self, size: int, corpus: Path, folder: Path | None) -> list[str]:
        """The words of the command."""
        said = {
            "text": corpus / f"train-{size}.txt",
            "held-out": corpus / "validation.txt",
            "tokens": "pairs",
            "vocabulary": VOCABULARY,
            "window": WINDOW,
            "rows": ROWS,
            "embed-dim": self.width,
            "heads": self.heads,
            "layers": self.layers,
            "steps": self.steps,
            "learning-rate": self.rate,
            "dropout": self.dropout,
            "weight-decay": self.decay,
            "seed": self.seed,
            "warmup": self.steps // 20,
            "every": 250,
        }
        if folder is not None:
            said |= {"checkpoint": folder, "metrics": f"{folder}.jsonl"}
        return [f"--{name}={value}" for name, value in said.items()]


TRIED = {
    "rate": (1.5e-3, 3e-3, 6e-3),
    "dropout": (0.0, 0.1, 0.2, 0.3),
    "decay": (0.0, 0.1, 0.3),
    "steps": (500, 1000, 2000),
}
SMALLEST = Training(128, 4, 2, 1000, dropout=0.1)
LARGER = {
    1_000_000: Training(128, 4, 2, 1500),
    3_000_000: Training(192, 6, 3, 3000),
    10_000_000: Training(256, 8, 4, 6000, rate=2e-3),
    30_000_000: Training(256, 8, 4, 15_000, rate=2e-3),
}
LAW = [
    Training(width, heads, layers, 1500, rate=rate)
    for width, heads, layers, rate in (
        (32, 2, 2, 6e-3), (64, 4, 2, 4e-3), (96, 4, 3, 3e-3), (128, 4, 4, 3e-3), (192, 6, 4, 2e-3),
        (256, 8, 4, 2e-3), (384, 8, 6, 1.5e-3),
    )
]  # fmt: skip


class Results:
    """What is stored, entry by entry."""

    def __init__(self, corpus: Path, quick: bool) -> None:
        file = FOLDER / f"{NAME}.json"
        self.quick = quick
        sources = json.loads((corpus / "sources.json").read_text(encoding="utf-8"))["libraries"]
        self.libraries = {name: (one["version"], one["licence"]) for name, one in sources.items()}
        self.found: dict[str, Any] = {}
        if not quick and file.exists():
            self.found = json.loads(file.read_text(encoding="utf-8"))["found"]

    def add(self, elsewhere: dict[str, Any]) -> None:
        """Take what another machine measured, which is named beside each."""
        for key, one in elsewhere["found"].items():
            self.found[key] = {**one, "machine": elsewhere["device"]}
        store(NAME, sizes=SIZES, judged=JUDGED, libraries=self.libraries, found=self.found)

    def once(self, key: str, measure: Any) -> Any:
        """Measure what is not there yet, and store it."""
        if key not in self.found:
            self.found[key] = measure()
            print(key, self.found[key], flush=True)
            if not self.quick:
                store(NAME, sizes=SIZES, judged=JUDGED, libraries=self.libraries, found=self.found)
        return self.found[key]


def read(corpus: Path, name: str, most: int | None = None) -> str:
    """A part of the corpus."""
    return (corpus / f"{name}.txt").read_text(encoding="ascii")[:most]


def best_grams(corpus: Path, size: int, tokens: str) -> dict[str, Any]:
    """The n-gram whose order and discount are best on the validation text; bits a character."""
    train = read(corpus, f"train-{size}")
    judges = {name: read(corpus, name, JUDGED) for name in JUDGES}
    if tokens == "pairs":
        pairs = learn_pairs(train, VOCABULARY)
        encode, vocab = pairs.encode, len(pairs.tokens)
    else:
        encode, vocab = (lambda text: [CHARACTERS.index(c) for c in text]), len(CHARACTERS)
    learned, *judged = (np.array(encode(text)) for text in (train, *judges.values()))
    ends = np.cumsum([len(part) for part in judged])
    seconds = time.process_time()

    def needed(order: int, discount: float) -> dict[str, float]:
        every = np.concatenate(judged)
        found = ngrams.bits(learned, every, order, vocab_size=vocab, discount=discount)
        parts = np.split(found, ends[:-1])
        return {
            name: float(part.sum() / len(text))
            for part, (name, text) in zip(parts, judges.items(), strict=True)
        }

    tried: dict[tuple[int, float], dict[str, float]] = {}

    def validation(order: int, discount: float) -> float:
        if (order, discount) not in tried:
            tried[order, discount] = needed(order, discount)
        return tried[order, discount]["validation"]

    longer = list(ORDERS)
    order, discount, best = longer.pop(0), 0.9, (0, 0.0)
    while (order, discount) != best:
        best = (order, discount)
        while longer and validation(longer[0], discount) < validation(order, discount):
            order = longer.pop(0)
        discount = min(DISCOUNTS, key=lambda d: validation(order, d))
    seconds = time.process_time() - seconds
    return {"order": order, "discount": discount, "cpu_seconds": seconds} | tried[best]


def train_and_judge(
    training: Training, size: int, corpus: Path, folder: Path, judges: tuple[str, ...] = JUDGES
) -> dict[str, Any]:
    """Train by the command, from where it stopped; bits a character of the texts that judge."""
    words = training.options(size, corpus, folder)
    subprocess.run([sys.executable, "-m", "attnbook.train_lm", *words, "--resume"], check=True)
    model, pairs = trained(training, size, corpus, folder)
    found = {name: bits(model, pairs.encode(read(corpus, name, JUDGED))) for name in judges}
    lengths = {name: len(read(corpus, name, JUDGED)) for name in judges}
    return {
        **asdict(training),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "tokens": training.steps * ROWS * WINDOW,
        **{name: found[name] / lengths[name] for name in judges},
    }


def trained(training: Training, size: int, corpus: Path, folder: Path) -> tuple[Any, BytePairs]:
    """The model of the newest checkpoint, and its byte pairs."""
    options = train_lm.parse(training.options(size, corpus, folder))
    pairs = learn_pairs(read(corpus, f"train-{size}"), VOCABULARY)
    with workers(options):
        run = Run(options, len(pairs.tokens))
        run.load(complete(folder)[0])
    return run.model.eval(), pairs


@torch.no_grad()
def bits(model: Any, tokens: list[int]) -> float:
    """Bits of a text together; every token but the first window's has half a window before it."""
    numbers, half = torch.tensor(tokens, device=model.position.device), WINDOW // 2
    count = max(0, (len(numbers) - 1 - WINDOW) // half) + 1
    end = (count - 1) * half + WINDOW + 1  # of the last whole window
    windows = numbers[:end].unfold(0, WINDOW + 1, half)
    rows = 1024 if numbers.is_cuda else 64
    nats = [_nats(model, part, half) for part in windows.split(rows)]
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


def changed(training: Training, name: str, value: Any) -> Training:
    """The same with another hyperparameter."""
    return replace(training, **{name: value})


def choose(results: Results, corpus: Path, runs: Path, start: Training) -> Training:
    """One hyperparameter after the other, by the validation text at the smallest size."""
    best = start
    for name, values in () if results.quick else TRIED.items():
        tried: dict[Any, float] = {}
        for value in values:
            one = changed(best, name, value)
            key = f"{SIZES[0]} {one.rate:g} {one.dropout:g} {one.decay:g} {one.steps}"
            found = run_once(results, key, one, SIZES[0], corpus, runs, ("validation",))
            tried[value] = found["validation"]
        best = changed(best, name, min(tried, key=lambda value: tried[value]))
    return best


def choose_rate(training: Training, validation: Callable[[Training], float]) -> Training:
    """The same with the best rate of those tried: three at first, then on beyond an edge."""
    place = RATES.index(training.rate)
    three = (place - 1, place, place + 1)
    tried = {i: validation(replace(training, rate=RATES[i])) for i in three}
    while True:
        best = min(tried, key=lambda i: tried[i])
        coming = best - 1 if best == min(tried) else best + 1
        if coming in tried or not 0 <= coming < len(RATES):
            return replace(training, rate=RATES[best])
        tried[coming] = validation(replace(training, rate=RATES[coming]))


def run_once(
    results: Results,
    key: str,
    training: Training,
    size: int,
    corpus: Path,
    runs: Path,
    judges: tuple[str, ...] = JUDGES,
) -> Any:
    """What is stored under the key, or what the training gives."""
    folder = runs / key.replace(" ", "-")
    return results.once(key, lambda: train_and_judge(training, size, corpus, folder, judges))


def prepared(corpus: Path, quick: bool) -> None:
    """The corpus and its first parts, where they are missing."""
    if not (corpus / "sources.json").exists():
        write_docstrings(corpus, 2 * SIZES[0] if quick else SIZES[-1])
    for size in SIZES:
        (corpus / f"train-{size}.txt").write_text(read(corpus, "train", size), encoding="ascii")


def measure_all(folder: Path, quick: bool) -> None:
    """Whatever is missing; what takes longest comes last."""
    corpus, runs = folder / "corpus", folder / "runs"
    prepared(corpus, quick)
    results = Results(corpus, quick)
    sizes = SIZES[:1] if quick else SIZES

    def count(sizes: tuple[int, ...]) -> None:
        for size in sizes:
            for tokens in ("characters", "pairs"):
                results.once(f"{size} {tokens}", lambda s=size, t=tokens: best_grams(corpus, s, t))

    count(sizes[:-1])
    start = replace(SMALLEST, steps=10) if quick else SMALLEST
    best = choose(results, corpus, runs, start)
    todo = [(str(SIZES[0]), SIZES[0], best)]
    *larger, largest = [
        (str(size), size, replace(one, dropout=best.dropout if size < 3_000_000 else 0.0))
        for size, one in LARGER.items()
    ]
    law = [(f"law {one.width} {one.layers}", SIZES[-1], one) for one in LAW]
    todo += [*larger, *law, largest]
    for name, size, training in todo[: 1 if quick else None]:
        if size > SIZES[0]:
            training = choose_rate(
                training,
                lambda one, name=name, size=size: run_once(
                    results, f"{name} rate {one.rate:g}", one, size, corpus, runs, ("validation",)
                )["validation"],
            )
        for seed in range(1 if quick else SEEDS):
            one = replace(training, seed=seed)
            run_once(results, f"{name} seed {seed}", one, size, corpus, runs)
    if not quick and WRITES not in results.found:
        size, one = 10_000_000, LARGER[10_000_000]
        run_once(results, WRITES, one, size, corpus, runs)
        folder = runs / WRITES.replace(" ", "-")
        models.store("docstrings", *trained(one, size, corpus, folder))
    count(sizes[-1:])  # half an hour by itself


def main() -> None:
    torch.set_num_threads(1)
    if asked_quick(__doc__):
        with tempfile.TemporaryDirectory() as folder:
            measure_all(Path(folder), quick=True)
    else:
        measure_all(Path("_build") / NAME, quick=False)


if __name__ == "__main__":
    main()
