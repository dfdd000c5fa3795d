"""Regression in context that predicts a distribution: near the optimum, and is a scale inferred?

The transformer of experiments/in_context.py gives a mean and the logarithm of a variance for every
query, and is trained on the logarithm of a Gaussian density. Takes about two hours.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnbook import datasets
from attnbook import torch as torch_layers
from attnbook.datasets import regression_prompts
from attnbook.kernel import gaussian_process
from attnbook.train import training
from attnbook_course.live import models
from experiments.harness import Experiment, learn, rounded
from experiments.in_context import MASK, NOISE, PAIRS, PEAK, functions, judged, prompts

SCALE = 0.3
STEPS = {"fixed": 3000, "random": 2000}
LONG = 20_000  # what do ten times as many steps do where the length scale has to be inferred?
GRID = np.geomspace(0.15, 0.6, 25)
WIDTH_90 = 1.6449  # standard deviations to each side that hold 90 % of a normal distribution
HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


def gaussian_loss(answers: Tensor, y: Tensor) -> Tensor:
    """Mean of −log of a normal density, without its constant; answers are (mean, log variance)."""
    mean, log_variance = answers[..., 0], answers[..., 1]
    return ((y - mean) ** 2 / log_variance.exp() + log_variance).mean() / 2


def in_turn(
    f: datasets.Functions, scale: float | np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, standard deviation and log density of every noisy value, given those before it."""
    among = gaussian_process.covariance(f.x, f.x, scale) + NOISE**2 * np.eye(f.x.shape[1])
    factor = np.linalg.cholesky(among)
    deviation = np.diagonal(factor, axis1=1, axis2=2)
    z = np.linalg.solve(factor, f.y[..., None])[..., 0]
    log_density = -0.5 * z**2 - np.log(deviation) - HALF_LOG_2_PI
    return f.y - deviation * z, deviation, log_density


def averaged(f: datasets.Functions) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same over the grid of length scales, each weighted by what it gave the values before."""
    mean, deviation, log_density = map(
        np.stack, zip(*(in_turn(f, float(scale)) for scale in GRID), strict=True)
    )
    evidence = np.cumsum(log_density, axis=2) - log_density
    weights = np.exp(evidence - evidence.max(axis=0))
    weights /= weights.sum(axis=0)
    middle = np.sum(weights * mean, axis=0)
    square = np.sum(weights * (deviation**2 + mean**2), axis=0)
    density = np.log(np.sum(weights * np.exp(log_density), axis=0))
    return middle, np.sqrt(square - middle**2), density


def train(seed: int, scale: str, steps: int) -> tuple[Any, training.History]:
    """The transformer of experiments/in_context.py with two outputs and the Gaussian loss."""
    torch.manual_seed(seed)
    mask, model = torch.tensor(MASK), torch_layers.EncoderOnly(3, 2)

    def loss(model: Any, tokens: Tensor, y: Tensor) -> Tensor:
        return gaussian_loss(model(tokens, mask)[:, PAIRS:], y)

    batches = ((prompts(f), f.y[:, 1:].astype(np.float32)) for f in functions(seed, steps, scale))
    return learn(torch_layers, model, loss, batches, PEAK, steps, warmup=100)


def judge(model: Any, scale: str) -> dict[str, np.ndarray]:
    """Against the best predictive distribution, at every number of pairs."""
    f, _ = judged(scale)
    with torch.no_grad():
        said = model(torch.tensor(prompts(f)), torch.tensor(MASK))[:, PAIRS:].double().numpy()
    mean, deviation = said[..., 0], np.exp(said[..., 1] / 2)
    true, y = f.true[:, 1:], f.y[:, 1:]
    z = (y - mean) / deviation
    score = -0.5 * z**2 - np.log(deviation) - HALF_LOG_2_PI
    best = averaged(f) if scale == "random" else in_turn(f, f.length_scale)
    errors = np.mean((mean - true) ** 2, axis=0)
    found = {
        "errors": errors,
        "to_best": errors / np.mean((best[0][:, 1:] - true) ** 2, axis=0),
        "nats_below_best": np.mean(best[2][:, 1:] - score, axis=0),
        "inside_90": np.mean(np.abs(z) < WIDTH_90, axis=0),
    }
    if scale == "random":
        ends = np.quantile(f.length_scale, (1 / 3, 2 / 3))
        thirds = {"rough": f.length_scale <= ends[0], "smooth": f.length_scale >= ends[1]}
        for name, rows in thirds.items():
            found[f"deviation_{name}"] = deviation[rows].mean(axis=0)
    return found


def beyond(model: Any) -> dict[str, np.ndarray]:
    """Where no training was: functions twice as rough, 32 pairs; and x = 3, far outside."""
    rough = datasets.smooth_functions(
        1000, PAIRS + 1, seed=2_000_000, length_scale=SCALE / 2, noise=NOISE
    )
    mask = torch.tensor(regression_prompts.mask(PAIRS, np.full(2, PAIRS)))
    asked = np.stack([rough.x[:, -1], np.full(1000, 3.0)], axis=1)
    with torch.no_grad():
        tokens = torch.tensor(regression_prompts.prompt(rough.x[:, :-1], rough.y[:, :-1], asked))
        said = model(tokens, mask)[:, PAIRS:].double().numpy()
    deviation = np.exp(said[..., 1] / 2)
    inside = np.abs(rough.y[:, -1] - said[:, 0, 0]) < WIDTH_90 * deviation[:, 0]
    far = np.quantile(deviation[:, 1], (0, 0.5, 1))
    return {"inside_90_rough": np.atleast_1d(inside.mean()), "deviation_at_3": far}


def run(seed: int, scale: str, steps: int, keep: bool = False) -> dict[str, Any]:
    """Train once, and judge; every loss is a mean over a fortieth of the steps."""
    model, history = train(seed, scale, steps)
    if keep:
        models.store(f"regressor-{seed}" if seed else "regressor", model)
    found = judge(model, scale) | (beyond(model) if scale == "fixed" else {})
    found["loss"] = history.losses.reshape(-1, max(1, steps // 40)).mean(axis=1)
    return {**rounded(found), "steps": steps, "cpu_seconds": history.cpu_seconds}


def main(experiment: Experiment) -> None:
    quick = experiment.quick
    for scale, steps in STEPS.items():
        runs = []
        for seed in range(1 if quick else 3):
            runs.append(run(seed, scale, 20 if quick else steps, not quick and scale == "fixed"))
        experiment.note(scale, runs)
    shorter = run(0, "fixed", 20 if quick else 2000)  # what do steps do alone?
    experiment.note("fixed, 2000 steps", [shorter])
    experiment.note(f"random, {LONG} steps", [run(0, "random", 20 if quick else LONG)])
