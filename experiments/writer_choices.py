"""What chapter 8's writer begins with, and what keeps it from overfitting; n-grams tuned as well.

    python -m experiments.writer_choices            all; stores after each setting (two hours)
    python -m experiments.writer_choices --quick    twenty steps of one seed; stores nothing

What was interrupted goes on where it stopped: a setting that is stored is not run again. The
protocol is that of experiments/pieces.py. Every setting reads chapter 8's text in the same batches
and has the best of its learning rates, chosen with seed 0 on the last tenth of the training text,
which these runs do not read. Then seeds 0, 1, 2 learn from the whole training text, none is left
out, and the held-out text judges. Weight decay is the trainer's, on matrices and tables alone. The
n-gram's order and discount are chosen on the same tenth. At the end the page's own setting and the
one with dropout train three times as long, with the rates that they have.
"""

import itertools
import json
import math
import time
from typing import Any

import numpy as np
import torch
from torch import nn

from attnbook import datasets
from attnbook import torch as torch_layers
from attnbook.generate import ngrams
from attnbook.torch.train_lm import adamw
from attnbook.train import training
from experiments.storing import FOLDER, asked_quick, store
from experiments.transformers import TEXT_STEPS, WARMUP, WINDOW, bits, text_loss, windows

NAME, PAGE, DROPOUT, SEEDS, LONGER = "writer_choices", "page", "dropout 0.1, decay 0.1", 3, 3
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


def trained(
    train: np.ndarray,
    judged: np.ndarray,
    vocab: int,
    *,
    setting: dict[str, float],
    rate: float,
    seed: int,
    steps: int,
) -> Found:
    """Train once; bits of the last batches and of the text that judges, processor seconds."""
    torch.manual_seed(seed)
    model = torch_layers.DecoderOnly(vocab, WINDOW, dropout=setting["dropout"])
    for table in (model.embedding.weight, model.position):
        nn.init.normal_(table, std=setting["std"])
    optimiser = adamw(model, setting["decay"])
    rates = training.warm_cosine(rate, steps, warmup=min(WARMUP, steps))
    losses, seconds = [], time.process_time()
    for now, batch in zip(rates, windows(train, steps, seed), strict=True):
        for group in optimiser.param_groups:
            group["lr"] = float(now)
        optimiser.zero_grad()
        value = text_loss(model, torch.tensor(batch[0]))
        torch.autograd.backward(value)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(float(value.detach()))
    seconds = time.process_time() - seconds
    model.eval()
    return {
        "bits": float(bits(model, judged, torch.tensor)),
        "train": float(np.mean(losses[-100:])) / math.log(2),  # with dropout, where there is any
        "rate": rate,
        "seed": seed,
        "steps": steps,
        "cpu_seconds": seconds,
    }


def best_gram(train: np.ndarray, judged: np.ndarray, vocab: int) -> Found:
    """The n-gram whose order and discount are best on the last tenth of the training text."""
    cut = 9 * len(train) // 10

    def needed(known: np.ndarray, coming: np.ndarray, order: int, discount: float) -> float:
        found = ngrams.bits(known, coming, order, vocab_size=vocab, discount=discount)
        return float(found[WINDOW // 2 + 1 :].mean())  # of the characters that windows judge

    tried = {
        pair: needed(train[:cut], train[cut:], *pair)
        for pair in itertools.product(ORDERS, DISCOUNTS)
    }
    order, discount = best = min(tried, key=lambda pair: tried[pair])
    bits = {"set_aside": tried[best], "bits": needed(train, judged, *best)}
    return {"order": order, "discount": discount, **bits}


def of_seeds(setting: Found, text: Any, rate: float, steps: int, seeds: int) -> list[Found]:
    """Each seed learns from all of the training text, and the held-out text judges."""
    parts = text.train, text.held_out, len(text.vocabulary)
    how = {"setting": setting, "rate": rate, "steps": steps}
    return [trained(*parts, seed=seed, **how) for seed in range(seeds)]


def one_setting(
    setting: Found, text: Any, rates: tuple[float, ...], steps: int, seeds: int
) -> Found:
    """Choose the rate on the text set aside, then train each seed with it."""
    cut = 9 * len(text.train) // 10
    parts = text.train[:cut], text.train[cut:], len(text.vocabulary)
    how = {"setting": setting, "seed": 0, "steps": steps}
    tried = [trained(*parts, rate=rate, **how) for rate in rates]
    best = min(tried, key=lambda run: float(run["bits"]))
    runs = of_seeds(setting, text, best["rate"], steps, seeds)
    return {"setting": setting, "tried": tried, "set_aside": best["bits"], "runs": runs}


def main() -> None:
    quick = asked_quick(__doc__)
    torch.set_num_threads(1)
    text = datasets.python_reference()
    steps, seeds = (20, 1) if quick else (TEXT_STEPS, SEEDS)
    file = FOLDER / f"{NAME}.json"
    found: Found = {}
    if file.is_file() and not quick:
        found = json.loads(file.read_text(encoding="utf-8"))["found"]

    def note(name: str, result: Found) -> None:
        found[name] = result
        shown = [f"{run['bits']:.3f}" for run in result.get("runs", [result])]
        print(name, *shown, {k: v for k, v in result.items() if k == "set_aside"}, flush=True)
        if not quick:
            store(NAME, steps=steps, rates=RATES, found=found)

    if "n-gram" not in found:
        note("n-gram", best_gram(text.train, text.held_out, len(text.vocabulary)))
    for name, setting in SETTINGS.items():
        if name not in found:
            rates = RATES[:1] if quick else RATES
            note(name, one_setting(setting, text, rates, steps, seeds))
    for name in (PAGE, DROPOUT):
        if (longer := f"{name}, longer") not in found:
            setting, rate = SETTINGS[name], found[name]["runs"][0]["rate"]
            runs = of_seeds(setting, text, rate, LONGER * steps, seeds)
            note(longer, {"setting": setting, "runs": runs})


if __name__ == "__main__":
    main()
