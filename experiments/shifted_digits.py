"""Digits, in their place and shifted: a transformer over their rows and kernel regression.

Five splits, whose numbers are also the seeds. Takes about half an hour.
"""

from functools import partial
from typing import Any

import numpy as np
import torch

from attnbook import datasets, nadaraya_watson
from attnbook import torch as torch_layers
from attnbook.models.losses import cross_entropy
from experiments.harness import Experiment, in_library, learn

BANDWIDTHS = (3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0)
SIZE, PEAK = 64, 2e-3


class Task:
    """Digits of a split in their place on 8 × 8 pixels, or shifted on 12 × 12."""

    def __init__(self, split: int, shifts: bool) -> None:
        digits = datasets.digits(seed=split)
        self.rng = np.random.default_rng(split)
        self.reach, self.size = (2, 12) if shifts else (1, 8)
        self.images, self.labels = digits.train_images, digits.train_labels
        self.new_labels = digits.test_labels
        at_random = 1 if shifts else 0
        self.train, self.new = (
            datasets.shifted(images, at_random * self.offsets(len(images)), self.size)
            for images in (self.images, digits.test_images)
        )

    def offsets(self, n: int) -> np.ndarray:
        return self.rng.integers(-self.reach, self.reach + 1, size=(n, 2))

    def copies(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Training images of some rows, shifted in every way, and their labels."""
        steps = range(-self.reach, self.reach + 1)
        every = [np.tile([down, right], (len(rows), 1)) for down in steps for right in steps]
        images = [datasets.shifted(self.images[rows], offsets, self.size) for offsets in every]
        return np.concatenate(images), np.tile(self.labels[rows], len(every))


def kernel(task: Task, copies: bool) -> float:
    """Kernel regression on one-hot labels; a quarter of the training images chooses h."""

    def accuracy(keys: np.ndarray, labels: np.ndarray, new: Any, true: Any, h: float) -> float:
        votes = nadaraya_watson(new, keys, np.eye(10)[labels], bandwidth=h)
        return float(np.mean(votes.argmax(axis=1) == true))

    def known(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return task.copies(rows) if copies else (task.train[rows], task.labels[rows])

    order = np.random.default_rng(0).permutation(len(task.labels))
    quarter, rest = order[: len(order) // 4], order[len(order) // 4 :]
    keys, labels = known(rest)
    judges = task.train[quarter], task.labels[quarter]
    scores = [accuracy(keys, labels, *judges, h) for h in BANDWIDTHS]
    best = BANDWIDTHS[int(np.argmax(scores))]
    return accuracy(*known(order), task.new, task.new_labels, best)


def transformer(
    task: Task,
    seed: int,
    steps: int,
    *,
    copies: bool,
    attention: bool = True,
    library: str = "torch",
) -> list[float]:
    """Accuracy and CPU seconds of an encoder over the rows of an image."""
    torch.manual_seed(seed)
    model = torch_layers.EncoderOnly(task.size, 10, task.size)
    model, layers, to_array = in_library(model, library)
    alone = None if attention else to_array(np.eye(task.size, dtype=bool))  # rows see themselves

    def tokens(images: np.ndarray) -> np.ndarray:
        return (images.reshape(-1, task.size, task.size) / 8 - 1).astype(np.float32)

    def batches() -> Any:
        for _ in range(steps):
            rows = task.rng.choice(len(task.labels), SIZE, replace=False)
            drawn = task.images[rows], task.offsets(SIZE), task.size
            yield (
                tokens(datasets.shifted(*drawn) if copies else task.train[rows]),
                task.labels[rows],
            )

    def loss(model: Any, images: Any, labels: Any) -> Any:
        return cross_entropy(model(images, alone).mean(-2)[:, None], labels[:, None])

    model, history = learn(layers, model, loss, batches(), PEAK, steps)
    with torch.no_grad():
        said = np.asarray(model(to_array(tokens(task.new)), alone).mean(-2)).argmax(axis=1)
    return [float(np.mean(said == task.new_labels)), history.cpu_seconds]


def main(experiment: Experiment) -> None:
    found: dict[str, dict[str, list[Any]]] = {"in place": {}, "shifted": {}}
    for split in range(1 if experiment.quick else 5):
        for place, steps in (("in place", 1000), ("shifted", 1500)):
            steps = 20 if experiment.quick else steps
            task = partial(Task, split, place == "shifted")
            made: dict[str, Any] = {}
            for copies, word in ((False, ""), (True, ", copies")):
                made[f"kernel{word}"] = kernel(task(), copies)
                made[f"transformer{word}"] = transformer(task(), split, steps, copies=copies)
            if split < 3:
                how: dict[str, Any] = {"seed": split, "steps": steps, "copies": True}
                made["no attention, copies"] = transformer(task(), attention=False, **how)
                made["transformer, copies, JAX"] = transformer(task(), library="JAX", **how)
            print(place, split, made, flush=True)
            for name, result in made.items():
                found[place].setdefault(name, []).append(result)
        experiment.store(found=found)
