"""Associative recall by a GRU that is tuned at each length, and what it takes to get further.

Rows, batches and loss are those of experiments/recall.py. Learning rates, and widths where there
are two, are chosen with seed 100 at the number of pairs at which the GRU is then judged. "same
size" has as many parameters and steps as two layers of attention; "wider" has more of both; "wider,
constant rate" has the rate that "wider" found best at two pairs. Takes about half an hour.
"""

from functools import partial
from typing import Any

from experiments.harness import Experiment, columns
from experiments.recall import GRU, PAIRS, STEPS, trained

RATES = (0.001, 0.003, 0.01, 0.03)
SEEDS = 3
WIDE = 256
WIDER = {2: ((80, WIDE), 2000), 4: ((WIDE,), 3000)}  # pairs: widths tried, steps
CONSTANT = {2: 2000, 4: 4000}  # pairs: steps


def run(pairs: int, width: int, *how: Any, cooled: bool = True) -> dict[str, float]:
    """Train one GRU with a rate, a seed and a number of steps, as experiments/recall.py does."""
    return trained(partial(GRU, hidden_dim=width), pairs, *how, cooled=cooled)


def search(
    pairs: int, widths: tuple[int, ...], rates: tuple[float, ...], steps: int, seeds: int
) -> dict[str, Any]:
    """Every width with every rate once, then the best of them with seeds 0, 1, 2, …."""
    tried = [
        {"width": width, "rate": rate, **run(pairs, width, rate, 100, steps)}
        for width in widths
        for rate in rates
    ]
    best = max(tried, key=lambda trial: trial["right"])
    width, rate = int(best["width"]), best["rate"]
    runs = [run(pairs, width, rate, seed, steps) for seed in range(seeds)]
    return {"tried": tried, "width": width, "rate": rate, "steps": steps, **columns(runs)}


def main(experiment: Experiment) -> None:
    quick, seeds = experiment.quick, 1 if experiment.quick else SEEDS
    found: dict[str, dict[str, Any]] = {}

    def note(name: str, pairs: int, results: dict[str, Any]) -> None:
        found.setdefault(name, {})[str(pairs)] = results
        experiment.note(name, found[name])

    for pairs in PAIRS[:1] if quick else PAIRS:
        note("same size", pairs, search(pairs, (80,), RATES, 20 if quick else STEPS, seeds))
    for pairs, (widths, steps) in WIDER.items():
        note("wider", pairs, search(pairs, widths, RATES[:3], 20 if quick else steps, seeds))
    rate = found["wider"]["2"]["rate"]
    for pairs, steps in CONSTANT.items():
        steps = 20 if quick else steps
        runs = [run(pairs, WIDE, rate, seed, steps, cooled=False) for seed in range(seeds)]
        results = {"width": WIDE, "rate": rate, "steps": steps, **columns(runs)}
        note("wider, constant rate", pairs, results)
