"""A step of attnbook.train_lm beside a plain PyTorch loop over the same model, on one core.

    python -m experiments.trainer            all; stores the results (about two minutes)
    python -m experiments.trainer --quick    one round; stores nothing

The plain loop is what one would write in an afternoon: PyTorch's cross-entropy, AdamW, clipping.
Both learn from the same batches. They take turns, and each round gives a ratio of processor times;
above 1 the trainer is quicker.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn

from attnbook import train_lm
from attnbook.torch.train_lm import CLIP, Run, workers
from attnbook.train.training import step_batch
from experiments.storing import asked_quick, store

ROUNDS, STEPS = 15, 4
CASES = {  # width, heads, layers, dropout
    "small": (64, 4, 2, 0.0),
    "medium": (128, 4, 2, 0.0),
    "medium, dropout": (128, 4, 2, 0.1),
    "large": (256, 8, 4, 0.0),
}
ROWS, WINDOW = 16, 128


def plain_loop(run: Run, tokens: np.ndarray) -> Callable[[int], float]:
    """One step, written plainly, over a copy of the model."""
    options, rates = run.options, run.options.rates()
    vocab, width = run.model.readout.out_features, options.embed_dim
    sizes = vocab, options.window, width, options.heads, 4 * width, options.layers
    model = type(run.model)(*sizes, dropout=options.dropout)
    model.load_state_dict(run.model.state_dict())
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=options.weight_decay)

    def step(number: int) -> float:
        batch = step_batch(tokens, number, rows=ROWS, window=WINDOW, seed=options.seed)
        windows = torch.tensor(batch)
        for group in optimiser.param_groups:
            group["lr"] = float(rates[number - 1])
        optimiser.zero_grad()
        logits = model(windows[:, :-1])
        value = nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        torch.autograd.backward(value)
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        return value.item()

    return step


def trainer_step(run: Run, tokens: np.ndarray) -> Callable[[int], float]:
    """One step of the trainer."""
    options, rates = run.options, run.options.rates()

    def step(number: int) -> float:
        batch = step_batch(tokens, number, rows=ROWS, window=WINDOW, seed=options.seed)
        return run.step(batch, float(rates[number - 1]), number)

    return step


def ratios(case: tuple[int, int, int, float], file: Path, rounds: int) -> list[float]:
    """Processor seconds of the plain loop over those of the trainer, round by round."""
    width, heads, layers, dropout = case
    said = {
        "text": file,
        "embed-dim": width,
        "heads": heads,
        "layers": layers,
        "dropout": dropout,
        "weight-decay": 0.1,
        "rows": ROWS,
        "window": WINDOW,
        "steps": 2 * ROUNDS * STEPS,
        "device": "cpu",
    }
    options = train_lm.parse([f"--{name}={value}" for name, value in said.items()])
    text = train_lm.read_text(options)
    found = []
    with workers(options):
        run = Run(options, len(text.vocabulary.tokens))
        plain, trained = plain_loop(run, text.train), trainer_step(run, text.train)
        plain(1)
        trained(1)
        for turn in range(rounds):
            numbers = range(1 + turn * STEPS, 1 + (turn + 1) * STEPS)
            start = time.process_time()
            for number in numbers:
                plain(number)
            between = time.process_time()
            for number in numbers:
                trained(number)
            found.append((between - start) / (time.process_time() - between))
    return found


def main() -> None:
    quick = asked_quick(__doc__)
    torch.set_num_threads(1)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "text.txt"
        letters = [chr(code) for code in range(0x4E00, 0x4E00 + 1024)]
        file.write_text("".join(np.random.default_rng(0).choice(letters, 60_000)), "utf-8")
        for name, case in CASES.items():
            found[name] = ratios(case, file, 1 if quick else ROUNDS)
            low, middle, high = np.quantile(found[name], [0.25, 0.5, 0.75])
            print(f"{name:16s} {middle:.2f} ({low:.2f} to {high:.2f})", flush=True)
    if not quick:
        store("trainer", rows=ROWS, window=WINDOW, vocab=1024, cases=CASES, found=found)


if __name__ == "__main__":
    main()
