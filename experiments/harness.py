"""What the experiments share: storing, training, timing, summaries over seeds."""

import json
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch

from attnbook import convert, devices
from attnbook import jax as jax_layers
from attnbook import torch as torch_layers
from attnbook.train import training

FOLDER = Path(__file__).parents[1] / "src/attnbook/datasets/results"
Ways = dict[str, Callable[[], Any]]


class Experiment:
    """What is measured: a module of this folder, whose main is given this.

    Seeds are 0, 1, 2, … where nothing else is said, and none is left out; data, first parameters
    and batches come from them, and all rivals see the same.

    Args:
        name: of the module, and of results/name.json, which datasets.results reads.
        quick: a trial of few steps and one seed, which stores nothing.
    """

    def __init__(self, name: str, quick: bool) -> None:
        self.name, self.quick = name, quick
        self.found: dict[str, Any] = {}
        torch.set_num_threads(1)

    def stored(self) -> dict[str, Any]:
        """What an earlier run found, to go on from there; nothing in a trial."""
        file = FOLDER / f"{self.name}.json"
        if self.quick or not file.exists():
            return {}
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["found"]
        return found

    def note(self, name: str, value: Any, **others: Any) -> None:
        """Print one of the things found, and store all so far, beside the others."""
        self.found[name] = value
        print(name, value, flush=True)
        self.store(found=self.found, **others)

    def store(self, **results: Any) -> None:
        """Write the file."""
        said = {"date": date.today().isoformat(), "machine": devices.describe(), **results}
        if not self.quick:
            text = json.dumps(said, indent=1) + "\n"
            FOLDER.joinpath(f"{self.name}.json").write_text(text, encoding="utf-8")


def in_library(model: Any, library: str) -> tuple[Any, Any, Any]:
    """A model of PyTorch in a library, its layers, and what makes its arrays."""
    if library == "torch":
        return model, torch_layers, torch.tensor
    return convert.torch_to_jax(model), jax_layers, jnp.asarray


def learn(
    layers: Any,
    model: Any,
    loss: Any,
    batches: Any,
    peak: float,
    steps: int,
    warmup: int = 50,
    clip: float | None = 1.0,
) -> tuple[Any, training.History]:
    """Train with Adam; the rate rises, then falls as half a cosine, and gradients are clipped."""
    rates = training.warm_cosine(peak, steps, warmup=min(warmup, steps))
    model, history = layers.train(model, loss, batches, learning_rate=rates, clip=clip)
    return model, history


def in_order(arrays: Sequence[np.ndarray], size: int) -> list[tuple[np.ndarray, ...]]:
    """Arrays of rows as batches, one after the other."""
    return [tuple(a[at : at + size] for a in arrays) for at in range(0, len(arrays[0]), size)]


def in_turns(
    ways: Ways, rounds: int, calls: int = 1, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds of every way in every round, the mean of some calls, after one that warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        way()
    for _ in range(rounds):
        for name, way in ways.items():
            start = clock()
            for _ in range(calls):
                way()
            seconds[name].append((clock() - start) / calls)
    return seconds


def least_seconds(ways: Ways, rounds: int, calls: int = 1) -> dict[str, float]:
    """The least of them, three digits."""
    return {name: rounded(min(taken), 3) for name, taken in in_turns(ways, rounds, calls).items()}


def ratios(seconds: dict[str, list[float]], to: str) -> dict[str, dict[str, float]]:
    """Every way's time over that of one of them, formed within a round."""
    return {
        name: summary([a / b for a, b in zip(taken, seconds[to], strict=True)])
        for name, taken in seconds.items()
    }


def summary(numbers: Sequence[float]) -> dict[str, float]:
    """Median, the range in which eight of ten lie, least and most."""
    names = ("median", "low", "high", "least", "most")
    quantiles = np.quantile(numbers, [0.5, 0.1, 0.9, 0.0, 1.0])
    return {name: rounded(v) for name, v in zip(names, quantiles, strict=True)}


def over(experiment: Callable[[int], dict[str, list[float]]], seeds: int) -> dict[str, list[Any]]:
    """An experiment over seeds 0, 1, 2, …: of each of its rows, the summaries of its columns."""
    runs = [experiment(seed) for seed in range(seeds)]
    table = {name: summaries([run[name] for run in runs]) for name in runs[0]}
    for name, row in table.items():
        words = "   ".join(f"{c['median']:.4g} ({c['low']:.4g} … {c['high']:.4g})" for c in row)
        print(f"{name:28s} {words}", flush=True)
    return table


def summaries(runs: Sequence[Sequence[float]]) -> list[dict[str, float]]:
    """The summary of each column over the runs."""
    return [summary(column) for column in zip(*runs, strict=True)]


def columns(runs: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """A list over the runs for every name."""
    return {name: [run[name] for run in runs] for name in runs[0]}


def rounded(value: Any, digits: int = 4) -> Any:
    """Every number to so many digits, in whatever holds them; no number at all becomes None."""
    if isinstance(value, dict):
        return {name: rounded(part, digits) for name, part in value.items()}
    if isinstance(value, list | tuple) or np.shape(value):
        return [rounded(part, digits) for part in value]
    return None if value is None or value != value else float(f"{value:.{digits}g}")
