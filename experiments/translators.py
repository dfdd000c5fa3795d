"""The translators of chapters 4 and 8, each at its own learning rate, over the same steps.

German number words. Both kinds are given the same rates and the same batches; three seeds each, 0,
1 and 2, and none is left out. A kind's rate is the one whose training loss is lowest at the end, in
the mean over the seeds, so that the held-out numbers choose nothing. Takes half an hour of two
cores.
"""

import itertools
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import torch

from experiments.harness import Experiment, rounded
from experiments.transformers import translation

KINDS, SEEDS = ("transformer", "GRU"), (0, 1, 2)
RATES = {300: (2e-3, 4e-3, 8e-3, 16e-3), 600: (4e-3, 8e-3)}  # of each number of steps
Case = tuple[str, int, float, int]


def one(case: Case) -> dict[str, Any]:
    """A training of one kind, with so many steps, a rate and a seed."""
    kind, steps, peak, seed = case
    torch.set_num_threads(1)
    return translation("de", seed, kind=kind, steps=steps, peak=peak)


def main(experiment: Experiment) -> None:
    if experiment.quick:
        print(one(("GRU", 60, 8e-3, 0)))
        return
    cases: list[Case] = [
        (kind, steps, peak, seed)
        for steps in sorted(RATES, reverse=True)  # the longest first
        for kind, peak, seed in itertools.product(KINDS, RATES[steps], SEEDS)
    ]
    processes = min(len(cases), os.cpu_count() or 1)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        runs = dict(zip(cases, pool.map(one, cases), strict=True))
    found: dict[str, Any] = {}
    for (kind, steps, peak, seed), run in runs.items():
        print(kind, steps, peak, seed, run, flush=True)
        of_kind = found.setdefault(str(steps), {}).setdefault(kind, {})
        of_kind.setdefault(str(peak), []).append(rounded(run))
    experiment.store(found=found)
