"""The translators of chapters 4 and 8, each at its own learning rate, over the same 300 steps.

German number words below a million, in JAX. Both kinds are given the same rates and the same
batches; three seeds each. A kind's rate is the one whose training loss is lowest at the end, in the
mean over the seeds, so that the held-out numbers choose nothing. Takes a quarter of an hour of one
core.
"""

from typing import Any

from experiments.harness import Experiment, rounded
from experiments.transformers import translation

KINDS, SEEDS, RATES = ("transformer", "GRU"), (0, 1, 2), (2e-3, 4e-3, 8e-3, 16e-3)


def main(experiment: Experiment) -> None:
    if experiment.quick:
        print(translation("de", 0, kind="GRU", steps=60, peak=8e-3))
        return
    how = {"library": "JAX", "steps": 300}
    found: dict[str, Any] = {kind: {} for kind in KINDS}
    for kind in KINDS:
        for peak in RATES:
            runs = [translation("de", seed, kind=kind, peak=peak, **how) for seed in SEEDS]
            found[kind][str(peak)] = [rounded(run) for run in runs]
            experiment.store(found=found)
