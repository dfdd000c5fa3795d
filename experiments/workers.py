"""Two workers beside one: the same training, as copies and in shares, in pairs of runs.

    python -m experiments.workers            all; stores the results (some minutes)
    python -m experiments.workers --quick    one pair of each; stores nothing

Chapter 8's writer, seed 0, 16 rows a step of all workers together, one thread each, on the CPU. A
pair is a run of one worker and a run of two, one after the other; the ratio of their seconds a
step is the result. Both processes share this machine: on two cores that says what averaging and
gathering cost, and nothing of how a cluster scales.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from experiments.storing import asked_quick, store, summary

STEPS, WARM, PAIRS = 60, 20, 5
ONE = [sys.executable, "-m", "attnbook.train_lm"]
TWO = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def seconds_a_step(launcher: list[str], mode: str, steps: int, folder: Path) -> float:
    """The median of what a step takes after the first ones, by the clock; its loss is logged."""
    metrics = folder / "metrics"
    metrics.unlink(missing_ok=True)
    options = ["--mode", mode, "--steps", str(steps), "--metrics", str(metrics)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([*launcher, *options, "--device", "cpu"], env=environment, **nowhere)
    seen = []
    while process.poll() is None:
        lines = metrics.read_text().count("\n") if metrics.exists() else 0
        seen += [time.perf_counter()] * (lines - len(seen))
        time.sleep(0.0005)
    if process.returncode != 0 or len(seen) < steps - 1:
        raise RuntimeError(f"{mode}: status {process.returncode}, {len(seen)} of {steps} steps")
    losses = [json.loads(line)["loss"] for line in metrics.read_text().splitlines()]
    if losses[-1] >= losses[0]:
        raise RuntimeError(f"{mode}: the loss went from {losses[0]} to {losses[-1]}")
    return float(np.median(np.diff(seen[WARM : steps - 1])))


def main() -> None:
    quick = asked_quick(__doc__)
    loads = []  # of the machine, by others too: beside a busy one the ratio says little
    found: dict[str, list[tuple[float, float]]] = {"ddp": [], "fsdp": []}
    with tempfile.TemporaryDirectory() as name:
        for pair in range(1 if quick else PAIRS):
            for mode, pairs in found.items():
                runs = [(ONE, "none"), ([*TWO, "-m", "attnbook.train_lm"], mode)]
                loads.append(os.getloadavg()[0])
                order = (0, 1) if pair % 2 else (1, 0)
                taken = {i: seconds_a_step(*runs[i], STEPS, Path(name)) for i in order}
                pairs.append((taken[0], taken[1]))
                print(mode, *(f"{taken[i]:.4f}" for i in (0, 1)), flush=True)
    results = {
        mode: {
            "ratio": summary([two / one for one, two in pairs]),
            "seconds a step, one worker": summary([one for one, _ in pairs]),
            "seconds a step, two workers": summary([two for _, two in pairs]),
        }
        for mode, pairs in found.items()
    }
    print(results)
    if not quick:
        store(
            "workers",
            steps=STEPS,
            first_left_out=WARM,
            pairs=PAIRS,
            load=summary(loads),
            found=results,
        )


if __name__ == "__main__":
    main()
