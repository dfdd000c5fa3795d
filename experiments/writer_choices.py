"""What chapter 8's writer begins with, and what keeps it from overfitting; n-grams tuned as well.

The protocol is that of experiments/pieces.py, without wider rates. Weight decay is the trainer's,
on matrices and tables alone. The n-gram's order and discount are chosen on the same tenth. At the
end the page's own setting and the one with dropout train three times as long, with the rates that
they have. Takes two hours; a setting that is stored is not run again.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from attnbook import datasets
from attnbook import torch as torch_layers
from attnbook.train import training
from experiments.harness import Experiment
from experiments.transformers import (
    TEXT_STEPS,
    WARMUP,
    WINDOW,
    best_gram,
    bits,
    learn_with_decay,
    windows,
)

PAGE, DROPOUT, SEEDS, LONGER = "page", "dropout 0.1, decay 0.1", 3, 3
RATES = (2e-3, 4e-3, 8e-3)
PLAIN = {"std": 0.3, "dropout": 0.0, "decay": 0.0}
SETTINGS = {
    PAGE: PLAIN,
    DROPOUT: PLAIN | {"dropout": 0.1, "decay": 0.1},
    "std 0.02": PLAIN | {"std": 0.02},
    "std 1": PLAIN | {"std": 1.0},
}
ORDERS, DISCOUNTS = range(5, 12), (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)

Found = dict[str, Any]


def trained(train: Any, judged: Any, setting: Found, rate: float, seed: int, steps: int) -> Found:
    """Train once; bits of the last batches and of the text that judges, processor seconds."""
    torch.manual_seed(seed)
    vocab = len(datasets.python_reference().vocabulary)
    model = torch_layers.DecoderOnly(vocab, WINDOW, dropout=setting["dropout"])
    for table in (model.embedding.weight, model.position):
        nn.init.normal_(table, std=setting["std"])
    rates = training.warm_cosine(rate, steps, warmup=min(WARMUP, steps))
    seconds = time.process_time()
    losses = learn_with_decay(model, windows(train, steps, seed), rates, setting["decay"])
    seconds = time.process_time() - seconds
    return {
        "bits": float(bits(model.eval(), judged)),
        "train": float(np.mean(losses[-100:])) / math.log(2),  # with dropout, where there is any
        "rate": rate,
        "seed": seed,
        "steps": steps,
        "cpu_seconds": seconds,
    }


def main(experiment: Experiment) -> None:
    quick, experiment.found = experiment.quick, experiment.stored()
    text = datasets.python_reference()
    cut = 9 * len(text.train) // 10
    steps, rates = (20, RATES[:1]) if quick else (TEXT_STEPS, RATES)

    def once(name: str, measure: Callable[[], Found]) -> None:
        if name not in experiment.found:
            experiment.note(name, measure(), steps=steps, rates=RATES)

    def of_seeds(setting: Found, rate: float, steps: int) -> list[Found]:
        parts = text.train, text.held_out, setting, rate
        return [trained(*parts, seed, steps) for seed in range(1 if quick else SEEDS)]

    def at_the_best_rate(setting: Found) -> Found:
        apart = text.train[:cut], text.train[cut:], setting
        tried = [trained(*apart, rate, 0, steps) for rate in rates]
        best = min(tried, key=lambda run: float(run["bits"]))
        runs = of_seeds(setting, best["rate"], steps)
        return {"setting": setting, "tried": tried, "set_aside": best["bits"], "runs": runs}

    def longer(name: str) -> Found:
        setting, rate = SETTINGS[name], experiment.found[name]["runs"][0]["rate"]
        return {"setting": setting, "runs": of_seeds(setting, rate, LONGER * steps)}

    judged_by_windows = WINDOW // 2 + 1  # the first character that they judge
    once("n-gram", lambda: best_gram(text, ORDERS, DISCOUNTS, judged_by_windows))
    for name, setting in SETTINGS.items():
        once(name, lambda setting=setting: at_the_best_rate(setting))
    for name in (PAGE, DROPOUT):
        once(f"{name}, longer", lambda name=name: longer(name))
