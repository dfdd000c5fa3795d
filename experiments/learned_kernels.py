"""What learned kernels gain on points that they have not seen, over many draws of the running data.

Every draw has 150 given points and is judged on 1000 new ones. Medians are stored, and the range in
which eight of ten draws lie. Takes about fifteen minutes.
"""

import itertools

import numpy as np
import torch
from scipy.interpolate import make_smoothing_spline
from torch import Tensor, nn

from attnbook import datasets, leave_one_out, nadaraya_watson
from attnbook.torch import KernelRegression, MultiHeadKernelRegression, train
from experiments.harness import Experiment, over

Draw = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

BANDWIDTHS = np.geomspace(0.03, 1, 71)
HEADS = (1, 2, 4, 8)
HELD_OUT = (1, 10, 75, 120)


def draw(seed: int, n: int = 150) -> Draw:
    """Given points, and new ones; seed 0 with n = 150 has the book's given points."""
    given = datasets.heteroskedastic(n, seed=seed)
    return *given, *datasets.heteroskedastic(1000, seed=10_000 + seed, spacing="random")


def of_points(model: nn.Module, x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    return ((y - model(x, x, y, mask=mask)) ** 2).mean()


def learn(model: nn.Module, x: np.ndarray, y: np.ndarray, steps: int, rate: float) -> float:
    """Train on the exact leave-one-out error, and give the error reached."""
    batch = (x, y, ~np.eye(len(x), dtype=bool))
    batches = itertools.repeat(batch, steps)
    train(model.double(), of_points, batches, learning_rate=rate)
    with torch.no_grad():
        return float(of_points(model, *map(torch.from_numpy, batch)))


def error(model: nn.Module, data: Draw) -> float:
    x, y, new_x, new_y = map(torch.from_numpy, data)
    with torch.no_grad():
        return float(((new_y - model(new_x, x, y)) ** 2).mean())


def held_out_size(seed: int, steps: int = 200) -> dict[str, list[float]]:
    """The bandwidth after steps that each hold out k of the book's points at random."""
    x, y = datasets.heteroskedastic(seed=0)
    data: Draw = (x, y, *datasets.heteroskedastic(1000, seed=1, spacing="random"))
    rows = {}
    for size in HELD_OUT:
        rng = np.random.default_rng(seed)
        model = KernelRegression(1.0).double()

        def batch(rng: np.random.Generator = rng, size: int = size) -> tuple[np.ndarray, ...]:
            order = rng.permutation(150)
            held, kept = order[:size], order[size:]
            return x[held], y[held], x[kept], y[kept]

        def loss(model: nn.Module, q: Tensor, value: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return ((value - model(q, k, v)) ** 2).mean()

        train(model, loss, (batch() for _ in range(steps)), learning_rate=0.05)
        rows[str(size)] = [float(model.bandwidth), error(model, data)]
    return rows


def held_out_size_600(seed: int) -> dict[str, list[float]]:
    """The same picks, and as many again twice over: whether 200 steps were enough to arrive."""
    return held_out_size(seed, 600)


class WarpedHeads(nn.Module):
    """Heads that each see φ_h(x), a network of their own with 8 hidden values, in place of x."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.maps = nn.ModuleList(
            nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 2)) for _ in range(heads)
        )
        self.log_bandwidths = nn.Parameter(torch.as_tensor(np.log(starts(heads))))
        self.combination = nn.Parameter(torch.full((heads,), 1 / heads))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        heads = zip(self.maps, self.log_bandwidths.exp(), self.combination, strict=True)
        return sum(
            a * nadaraya_watson(phi(q), phi(k), v, bandwidth=h, mask=mask) for phi, h, a in heads
        )


def starts(heads: int) -> np.ndarray:
    """Bandwidths to start from: ℓ = √2 h evenly from 0.1 to 3."""
    return np.linspace(0.1, 3, heads) / np.sqrt(2)


def heads(seed: int) -> dict[str, list[float]]:
    """Leave-one-out and held-out error of several heads, with and without networks.

    Each held-out error also as a ratio to that of kernel regression on the same draw.
    """
    data, rows = draw(seed), {}
    alone = held_out(data, kernel_regression(data))
    for n in HEADS:
        plain = MultiHeadKernelRegression(starts(n))
        reached = learn(plain, *data[:2], 1000, 0.05)
        rows[f"{n}"] = [reached, error(plain, data), error(plain, data) / alone]
        torch.manual_seed(seed)
        warped = WarpedHeads(n)
        reached = learn(warped, *data[:2], 1000, 0.01)
        rows[f"{n}, networks"] = [reached, error(warped, data), error(warped, data) / alone]
    return rows


def held_out(data: Draw, prediction: np.ndarray) -> float:
    return float(np.mean((data[3] - prediction) ** 2))


def kernel_regression(data: Draw) -> np.ndarray:
    """Predictions at the new points with the bandwidth of least leave-one-out error."""
    x, y, new_x, _ = data
    return nadaraya_watson(new_x, x, y, bandwidth=left_out_best(x, y))


def left_out_best(x: np.ndarray, y: np.ndarray) -> float:
    left = [np.mean((y - leave_one_out(x, y, bandwidth=h)) ** 2) for h in BANDWIDTHS]
    return float(BANDWIDTHS[np.argmin(left)])


def choice(seed: int) -> dict[str, list[float]]:
    """What choosing h by hidden points costs on new ones, and whether its h is the smaller one."""
    data = draw(seed)
    x, y, new_x, _ = data
    errors = [held_out(data, nadaraya_watson(new_x, x, y, bandwidth=h)) for h in BANDWIDTHS]
    chosen = left_out_best(x, y)
    price = held_out(data, kernel_regression(data)) / min(errors)
    return {"error / least": [price], "h / best h": [chosen / BANDWIDTHS[np.argmin(errors)]]}


def scores(seed: int) -> dict[str, list[float]]:
    """Held-out error of the book's estimators and a rival; also beside that of the true curve."""
    data = draw(seed)
    x, y, new_x, _ = data
    two_heads = MultiHeadKernelRegression([0.07, 2.1])
    learn(two_heads, x, y, 600, 0.05)
    predictions = {
        "the mean of y": y.mean(),
        "the nearest point": y[np.abs(new_x - x.T).argmin(1)],
        "kernel regression": kernel_regression(data),
        "smoothing spline": make_smoothing_spline(x[:, 0], y[:, 0])(new_x),
        "the true curve": datasets.curve(new_x),
    }
    errors = {name: held_out(data, prediction) for name, prediction in predictions.items()}
    errors["two heads"] = error(two_heads, data)
    return {name: [e, e / errors["the true curve"]] for name, e in errors.items()}


def likelihood(seed: int, n: int = 150) -> dict[str, list[float]]:
    """Negative log-likelihood of new points above the truth's, nats a point, by estimate of σ."""
    x, y, new_x, new_y = draw(seed, n)

    def bandwidth(noise: np.ndarray | float) -> float:
        """Of least leave-one-out error, each residual in units of its noise."""
        left = [np.mean(((y - leave_one_out(x, y, bandwidth=h)) / noise) ** 2) for h in BANDWIDTHS]
        return float(BANDWIDTHS[np.argmin(left)])

    def nats(residuals: np.ndarray, noise: np.ndarray | float) -> float:
        return float(
            np.mean(0.5 * (residuals / noise) ** 2 + np.log(noise) + 0.5 * np.log(2 * np.pi))
        )

    def noise_at(squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """σ at the given and at the new points; its own bandwidth of best left-out likelihood."""
        wide = np.geomspace(0.2, 20, 31)
        curves = [np.sqrt(leave_one_out(x, squares, bandwidth=h)) for h in wide]
        best = np.argmin([nats(np.sqrt(squares), one) for one in curves])
        new = np.sqrt(nadaraya_watson(new_x, x, squares, bandwidth=wide[best]))
        return np.sqrt(nadaraya_watson(x, x, squares, bandwidth=wide[best])), new

    h = bandwidth(1.0)
    squares = (y - leave_one_out(x, y, bandwidth=h)) ** 2
    residuals = new_y - nadaraya_watson(new_x, x, y, bandwidth=h)
    at_given, at_new = noise_at(squares)
    again = bandwidth(at_given)
    squares_again = (y - leave_one_out(x, y, bandwidth=again)) ** 2
    residuals_again = new_y - nadaraya_watson(new_x, x, y, bandwidth=again)
    truth = nats(new_y - datasets.curve(new_x), datasets.noise_level(new_x))
    one, curve = nats(residuals, np.sqrt(squares.mean())), nats(residuals, at_new)
    reweighted = nats(residuals_again, noise_at(squares_again)[1])
    return {
        "one σ": [one - truth],
        "σ(x)": [curve - truth],
        "σ(x), reweighted": [reweighted - truth],
        "gain of σ(x)": [one - curve],
        "gain of reweighting": [curve - reweighted],
    }


def likelihood_1500(seed: int) -> dict[str, list[float]]:
    return likelihood(seed, 1500)


def main(experiment: Experiment) -> None:
    seeds = {
        scores: 40,
        choice: 40,
        likelihood: 100,
        likelihood_1500: 20,
        held_out_size: 20,
        held_out_size_600: 20,
        heads: 12,
    }
    found = {of.__name__: over(of, 2 if experiment.quick else n) for of, n in seeds.items()}
    experiment.store(**found)
