"""Bits per character against the size of the training text: a transformer and the best n-gram.

    python -m benchmarks.text_size            all; stores the results (about half an hour)
    python -m benchmarks.text_size --quick    twenty steps of one seed; stores nothing

The last tenth of chapter 8's training text is set aside, to choose on. From the rest seed s draws a
stretch of so many characters, and both models learn from that stretch alone. What chapter 8 holds
out judges and chooses nothing. The transformer takes 16 passes through its stretch, but at least
300 and at most 2000 steps. On the text set aside, seed 0 was worse with 30 passes at 30,000
characters and with 160 steps at 10,000. Seeds are 0, 1, 2, … throughout and none is left out.
"""

import time
from typing import Any

import numpy as np
import torch

from attnbook import datasets, ngrams, training
from attnbook import torch as torch_layers
from benchmarks.storing import asked_quick, store
from benchmarks.transformers import PEAK, WARMUP, WINDOW, bits, text_loss, windows

STEPS = {10_000: 300, 30_000: 480, 100_000: 1600, 300_000: 2000}  # fixed on the text set aside
SEEDS = 3

Text = np.ndarray


def best_gram(train: Text, choose: Text, judged: Text, vocab: int) -> dict[str, float]:
    """The n-gram whose order and then discount are best on the text set aside."""

    def needed(order: int, discount: float, text: Text) -> float:
        found = ngrams.bits(train, text, order, vocab_size=vocab, discount=discount)
        return float(found[WINDOW // 2 + 1 :].mean())

    order, least = 1, np.inf
    while (longer := needed(order + 1, 0.8, choose)) < least:
        order, least = order + 1, longer
    discount = min((0.6, 0.7, 0.8, 0.9), key=lambda d: needed(order, d, choose))
    return {"order": order, "discount": discount, "bits": needed(order, discount, judged)}


def stopped_early(
    train: Text, choose: Text, judged: Text, vocab: int, *, steps: int, seed: int
) -> dict[str, float]:
    """Train, look twenty times at the text set aside, and keep the best model seen."""
    torch.manual_seed(seed)
    model = torch_layers.DecoderOnly(vocab, WINDOW)
    rates = training.warm_cosine(PEAK, steps, warmup=min(WARMUP, steps))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.0)
    least, best, at, seconds = np.inf, model.state_dict(), 0, time.process_time()
    for step, (rate, batch) in enumerate(zip(rates, windows(train, steps, seed), strict=True), 1):
        optimiser.param_groups[0]["lr"] = float(rate)
        optimiser.zero_grad()
        torch.autograd.backward(text_loss(model, torch.tensor(batch[0])))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % max(1, steps // 20) == 0:
            now = bits(model, choose, torch.tensor)
            if now < least:
                least, at = now, step
                best = {name: value.clone() for name, value in model.state_dict().items()}
            elif step - at >= steps // 4:
                break
    seconds = time.process_time() - seconds
    model.load_state_dict(best)
    return {
        "bits": bits(model, judged, torch.tensor),
        "set_aside": least,
        "step": at,
        "cpu_seconds": seconds,
    }


def texts_of(size: int, seed: int) -> tuple[Text, Text, Text, int]:
    """A stretch to learn from, the text set aside, the text that judges, and the vocabulary."""
    text = datasets.python_reference()
    cut = 9 * len(text.train) // 10
    start = int(np.random.default_rng(seed).integers(0, max(1, cut - size)))
    stretch = text.train[start : min(start + size, cut)]
    return stretch, text.train[cut:], text.held_out, len(text.vocabulary)


def main() -> None:
    quick = asked_quick(__doc__)
    torch.set_num_threads(1)
    found: dict[str, dict[str, list[Any]]] = {"n-gram": {}, "transformer": {}}
    for size, steps in STEPS.items():
        for seed in range(1 if quick else SEEDS):
            texts = texts_of(size, seed)
            runs = {
                "n-gram": best_gram(*texts),
                "transformer": stopped_early(*texts, steps=20 if quick else steps, seed=seed),
            }
            for name, run in runs.items():
                found[name].setdefault(str(size), []).append(run)
                print(name, size, run, flush=True)
        if quick:
            return
        store("text_size", steps=STEPS, found=found)


if __name__ == "__main__":
    main()
