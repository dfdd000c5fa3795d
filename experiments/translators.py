"""The translators of chapters 4 and 8, each at its own learning rate, over the same steps.

German number words below a million. Both kinds are given the same rates and the same batches; three
seeds each. A kind's rate is the one whose training loss is lowest at the end, in the mean over the
seeds, so that the held-out numbers choose nothing. Takes an hour of one core.
"""

from typing import Any

from experiments.harness import Experiment, rounded
from experiments.transformers import translation

KINDS, SEEDS = ("transformer", "GRU"), (0, 1, 2)
RATES = {300: (2e-3, 4e-3, 8e-3, 16e-3), 600: (4e-3, 8e-3)}  # of each number of steps


def main(experiment: Experiment) -> None:
    if experiment.quick:
        print(translation("de", 0, kind="GRU", steps=60, peak=8e-3))
        return
    found: dict[str, Any] = {}
    for steps, rates in RATES.items():
        found[str(steps)] = {
            kind: {
                str(peak): [
                    rounded(translation("de", seed, kind=kind, steps=steps, peak=peak))
                    for seed in SEEDS
                ]
                for peak in rates
            }
            for kind in KINDS
        }
        experiment.store(found=found)
