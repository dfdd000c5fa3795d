"""Regression in context: against kernel regression and the exact posterior, over seeds.

The functions to judge on are the same for all. Takes over an hour.
"""

from functools import cache
from typing import Any

import numpy as np
import torch

from attnbook import datasets, nadaraya_watson, softmax
from attnbook import torch as torch_layers
from attnbook.datasets import regression_prompts
from attnbook.kernel import gaussian_process
from experiments.harness import Experiment, in_library, learn, rounded, summary
from experiments.learned_kernels import draw

PAIRS, SIZE, STEPS, PEAK, NOISE = 32, 32, 2000, 3e-3, 0.2
ONE_PEAK = 0.1  # of one layer
WIDE = {"num_layers": 1, "embed_dim": 112, "mlp_dim": 224}  # the parameters of three blocks in one
BANDWIDTHS = np.geomspace(0.03, 1.0, 60)
SCALES = {"fixed": 0.3, "random": (0.15, 0.6)}
MASK = regression_prompts.mask(PAIRS, np.arange(1, PAIRS + 1))


def functions(seed: int, steps: int, scale: str) -> Any:
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        yield datasets.smooth_functions(
            SIZE, PAIRS + 1, seed=rng, length_scale=SCALES[scale], noise=NOISE
        )


def prompts(f: datasets.Functions) -> np.ndarray:
    """Pairs without the last, then every x but the first as a query."""
    return regression_prompts.prompt(f.x[:, :-1], f.y[:, :-1], f.x[:, 1:])


@cache
def judged(scale: str) -> tuple[datasets.Functions, dict[str, np.ndarray]]:
    """Functions to judge on, and the errors of the two classical methods by context size."""
    f = datasets.smooth_functions(
        2000, PAIRS + 1, seed=1_000_000, length_scale=SCALES[scale], noise=NOISE
    )
    true = f.true[:, 1:]
    pairs = f.x[:, 1:, None], f.x[:, :-1, None], f.y[:, :-1, None]
    mask, options = np.tri(PAIRS, dtype=bool), {"length_scale": f.length_scale, "noise": NOISE}
    kernel = []
    for h in BANDWIDTHS:
        said = nadaraya_watson(*pairs, bandwidth=float(h), mask=mask)[..., 0]
        kernel.append(np.mean((said - true) ** 2, axis=0))
    exact = []
    for n in range(1, PAIRS + 1):
        given = f.x[:, n : n + 1], f.x[:, :n], f.y[:, :n]
        said = gaussian_process.posterior(*given, **options)[0][:, 0]
        exact.append(np.mean((said - f.true[:, n]) ** 2))
    return f, {"kernel": np.array(kernel).min(axis=0), "posterior": np.array(exact)}


def regressor(seed: int, scale: str, library: str, steps: int, **sizes: Any) -> dict[str, Any]:
    """Train once; mean squared error at every context size, against the two."""
    torch.manual_seed(seed)
    model = torch_layers.EncoderOnly(3, 1, **sizes)
    parameters = sum(p.numel() for p in model.parameters())
    model, layers, to_array = in_library(model, library)
    mask = to_array(MASK)

    def answers(model: Any, tokens: Any) -> Any:
        return model(tokens, mask)[:, PAIRS:, 0]

    def loss(model: Any, tokens: Any, y: Any) -> Any:
        return ((answers(model, tokens) - y) ** 2).mean()

    batches = ((prompts(f), f.y[:, 1:].astype(np.float32)) for f in functions(seed, steps, scale))
    model, history = learn(layers, model, loss, batches, PEAK, steps, warmup=100)
    f, classical = judged(scale)
    with torch.no_grad():
        said = np.asarray(answers(model, to_array(prompts(f))))
    errors = np.mean((said - f.true[:, 1:]) ** 2, axis=0)
    return {
        "errors": rounded(errors),
        "to_kernel": rounded(errors / classical["kernel"]),
        "to_posterior": rounded(errors / classical["posterior"]),
        "cpu_seconds": history.cpu_seconds,
        "parameters": parameters,
    }


def features(x: np.ndarray) -> np.ndarray:
    """(1, x, x², 0): what queries and keys see."""
    return np.stack([np.ones_like(x), x, x**2, np.zeros_like(x)], axis=-1).astype(np.float32)


def last(y: np.ndarray) -> np.ndarray:
    """(0, 0, 0, y): what values see."""
    return np.pad(y[..., None], [(0, 0)] * y.ndim + [(3, 0)]).astype(np.float32)


def one_layer(seed: int, library: str, steps: int, peak: float) -> dict[str, Any]:
    """One head whose queries and keys see x alone: its bandwidth, twice, its gain, its error."""
    torch.manual_seed(seed)
    layer, layers, to_array = in_library(torch_layers.MultiHeadAttention(4, 1), library)
    mask = to_array(np.tri(PAIRS, dtype=bool))

    def loss(layer: Any, queries: Any, keys: Any, values: Any, y: Any) -> Any:
        return ((layer(queries, keys, values, mask)[..., 3] - y) ** 2).mean()

    def inputs(f: datasets.Functions) -> tuple[np.ndarray, ...]:
        return features(f.x[:, 1:]), features(f.x[:, :-1]), last(f.y[:, :-1])

    drawn = functions(seed, steps, "fixed")
    batches = ((*inputs(f), f.y[:, 1:].astype(np.float32)) for f in drawn)
    layer, history = learn(layers, layer, loss, batches, peak, steps, warmup=20)
    f, _ = judged("fixed")
    given = map(to_array, inputs(f))
    with torch.no_grad():
        said = np.asarray(layer(*given, mask)[..., 3])
        parts = (layer.query, layer.key, layer.value, layer.output)
        weights = [np.asarray(part.weight).astype(float) for part in parts]
        biases = [np.asarray(part.bias).astype(float) for part in parts[:2]]
    w_q, w_k = (w[:, :3].copy() for w in weights[:2])
    for w, b in zip((w_q, w_k), biases, strict=True):
        w[:, 0] += b
    form = w_q.T @ w_k / 2  # score = (1, x, x²) form (1, x', x'²)
    return {
        "bandwidth_product": float(form[1, 1] ** -0.5),
        "bandwidth_square": float((-2 * form[0, 2]) ** -0.5),
        "gain": float((weights[3] @ weights[2])[3, 3]),
        "error": float(np.mean((said - f.true[:, 1:]) ** 2)),
        "cpu_seconds": history.cpu_seconds,
    }


def running_data(seed: int, steps: int, draws: int) -> dict[str, Any]:
    """A regressor for up to 150 pairs on the book's running data, held-out error of each draw."""
    pairs, size = 150, 4
    torch.manual_seed(seed)
    model = torch_layers.EncoderOnly(3, 1)
    mask = torch.tensor(regression_prompts.mask(pairs, np.arange(1, pairs + 1)))
    rng = np.random.default_rng(seed)

    def batches() -> Any:
        for _ in range(steps):
            noise = float(rng.uniform(0.1, 0.5))
            f = datasets.smooth_functions(
                size, pairs + 1, seed=rng, length_scale=(0.1, 0.6), noise=noise
            )
            yield prompts(f), f.y[:, 1:].astype(np.float32)

    def loss(model: Any, tokens: Any, y: Any) -> Any:
        return ((model(tokens, mask)[:, pairs:, 0] - y) ** 2).mean()

    model, history = learn(torch_layers, model, loss, batches(), PEAK, steps, warmup=100)
    errors = []
    for number in range(draws):
        x, y, new_x, new_y = draw(number)
        order = np.random.default_rng(number).permutation(len(x))  # as in training: no order
        mean, scale = y.mean(), y.std()
        tokens = regression_prompts.prompt(
            x[order, 0] / 3, (y[order, 0] - mean) / scale, new_x[:, 0] / 3
        )
        asked = torch.tensor(regression_prompts.mask(len(x), np.full(len(new_x), len(x))))
        with torch.no_grad():
            said = model(torch.tensor(tokens), asked)[len(x) :, 0].numpy() * scale + mean
        errors.append(float(np.mean((new_y[:, 0] - said) ** 2)))
    return {"held_out": summary(errors), "cpu_seconds": history.cpu_seconds}


def running_process(draws: int) -> dict[str, Any]:
    """The same draws by Bayes' average over the length scales and noises of that training."""
    errors = []
    for number in range(draws):
        x, y, new_x, new_y = (part[:, 0] for part in draw(number))
        mean, unit = y.mean(), y.std()
        z, evidence, answers = (y - mean) / unit, [], []
        for scale in np.geomspace(0.1, 0.6, 12):
            among = gaussian_process.covariance(x / 3, x / 3, float(scale))
            across = gaussian_process.covariance(new_x / 3, x / 3, float(scale))
            for noise in np.linspace(0.1, 0.5, 9):
                noisy = among + noise**2 * np.eye(len(x))
                solved = np.linalg.solve(noisy, z)
                evidence.append(-0.5 * (z @ solved + np.linalg.slogdet(noisy)[1]))
                answers.append(across @ solved)
        said = softmax(np.array(evidence)) @ np.array(answers) * unit + mean
        errors.append(float(np.mean((new_y - said) ** 2)))
    return {"held_out": summary(errors)}


def main(experiment: Experiment) -> None:
    quick = experiment.quick
    seeds, draws = range(1 if quick else 3), 2 if quick else 40
    steps = 20 if quick else STEPS

    def of_seeds(scale: str, library: str = "torch", **sizes: int) -> list[dict[str, Any]]:
        return [regressor(seed, scale, library, steps, **sizes) for seed in seeds]

    note = experiment.note
    for library in ("torch", "JAX"):
        note(f"one layer, {library}", [one_layer(s, library, steps, ONE_PEAK) for s in seeds])
    for library in ("torch", "JAX"):
        note(f"fixed, {library}", of_seeds("fixed", library))
    note("random, torch", of_seeds("random"))
    for layers in (1, 2):
        note(f"fixed, {layers} layers", of_seeds("fixed", num_layers=layers))
    note("fixed, 1 wide layer", of_seeds("fixed", **WIDE))
    note("running data, Bayes", running_process(draws))
    running = [running_data(seed, 20 if quick else 1000, draws) for seed in seeds]
    note("running data", running)
