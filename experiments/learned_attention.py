"""Attention with learned queries and keys: names in circles, the running data, five inputs.

On names and on five inputs every method that learns has its learning rate, and on five inputs its
width and number of steps, chosen from the same grid on draws of their own (seeds 100, 101, …), by
the error on new rows or points; the choice is stored. On both a distance and a dot product come
after one matrix and after two ("two matrices" is the dot product's). Takes some five minutes of one
processor.
"""

import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnbook import attend, datasets, nadaraya_watson
from attnbook import torch as torch_layers
from attnbook.attention.scores import scaled_dot
from experiments.harness import Experiment, over
from experiments.learned_kernels import draw

RATES = 0.01, 0.03, 0.1
Network = dict[str, np.ndarray]


def layers(model: Any, side: str, at: Tensor) -> Tensor:
    """The query or key of a point: one matrix and a shift, or an MLP with one hidden layer."""
    inside = at @ model[f"{side}_1"] + model[f"{side}_shift_1"]
    if f"{side}_2" not in model:
        return inside
    return torch.tanh(inside) @ model[f"{side}_2"] + model[f"{side}_shift_2"]


def parameters(**arrays: np.ndarray) -> nn.ParameterDict:
    return nn.ParameterDict({name: torch.from_numpy(array) for name, array in arrays.items()})


# Names in circles


def pointed_to(names: np.ndarray) -> np.ndarray:
    """To whom each of the 24 names points: 0 to 1, 1 to 2, 2 to 0; 3 to 4, and so on."""
    return names // 3 * 3 + (names + 1) % 3


def rows_of_names(n: int, seed: int) -> tuple[np.ndarray, ...]:
    """Three of the eight circles in any order, (n, 9), their numbers, and those to be said."""
    rng = np.random.default_rng(seed)
    some = np.argsort(rng.random(size=(n, 8)), axis=1)[:, :3]
    in_order = (3 * some[:, :, None] + np.arange(3)).reshape(n, 9)
    names = rng.permuted(in_order, axis=1)
    values = rng.normal(size=(n, 9, 1))
    place = (names[:, None, :] == pointed_to(names)[:, :, None]).argmax(axis=2)
    return names, values, np.take_along_axis(values, place[:, :, None], axis=1)


def scores_of_names(kind: str, model: Any) -> Tensor:
    """The scores of all pairs of 24 names, (24, 24)."""
    if kind == "two matrices":
        return model["query"] @ model["key"].mT / math.sqrt(8)
    if kind == "a distance after two matrices":
        return minus_distance(model["query"], model["key"])
    if kind == "any symmetric table":
        return model["table"] + model["table"].mT
    product = model["map"] @ model["map"].mT
    if kind == "one matrix for both":
        return product / math.sqrt(24)
    squares = torch.diagonal(product)
    return product - (squares[:, None] + squares[None]) / 2  # minus half a squared distance


SHAPES = {
    "a distance after one matrix": {"map": (24, 24)},
    "one matrix for both": {"map": (24, 24)},
    "any symmetric table": {"table": (24, 24)},
    "a distance after two matrices": {"query": (24, 8), "key": (24, 8)},
    "two matrices": {"query": (24, 8), "key": (24, 8)},
}


def shares(scores: Tensor, names: Tensor) -> Tensor:
    """The weights of rows of names (..., 9), each of which asks the others: (..., 9, 9)."""
    of_row = scores[names[..., :, None], names[..., None, :]]
    hidden = torch.eye(9, dtype=torch.bool)
    return torch.softmax(of_row.masked_fill(hidden, -torch.inf), dim=-1)


def error_and_right(weights: Tensor, rows: tuple[np.ndarray, ...]) -> list[float]:
    """Squared error, and how often the right key has the largest weight; a tie counts its share."""
    names, values, wanted = map(torch.from_numpy, rows)
    error = ((weights @ values - wanted) ** 2).mean()
    right = names[:, None, :] == torch.from_numpy(pointed_to(rows[0]))[:, :, None]
    largest = weights > weights.amax(dim=-1, keepdim=True) - 1e-9
    won = (largest & right).sum(dim=-1) / largest.sum(dim=-1)
    return [float(error), float(won.mean())]


def of_circles(kind: str, seed: int, rate: float) -> list[float]:
    """Train on 4000 rows for 600 steps of 32, and judge on 1000 new rows."""
    rows = rows_of_names(4000, seed=2 * seed)
    new = rows_of_names(1000, seed=2 * seed + 1)
    rng = np.random.default_rng(seed)
    model = parameters(**{n: rng.normal(size=shape) for n, shape in SHAPES[kind].items()})

    def loss(model: Any, names: Tensor, values: Tensor, wanted: Tensor) -> Tensor:
        average = shares(scores_of_names(kind, model), names) @ values
        return ((average - wanted) ** 2).mean()

    picks = (rng.integers(0, 4000, size=32) for _ in range(600))
    batches = (tuple(array[pick] for array in rows) for pick in picks)
    model, _ = torch_layers.train(model, loss, batches, learning_rate=rate)
    with torch.no_grad():
        weights = shares(scores_of_names(kind, model), torch.from_numpy(new[0]))
    return error_and_right(weights, new)


def circles(seed: int, chosen: dict[str, Any]) -> dict[str, list[float]]:
    """Squared error and share of right keys."""
    new = rows_of_names(1000, seed=2 * seed + 1)
    names = torch.from_numpy(new[0])
    apart = torch.zeros(24, 24, dtype=torch.float64)  # names are equally far from each other
    wanted = pointed_to(np.arange(24))
    known = torch.full((24, 24), -1e3, dtype=torch.float64)
    known[np.arange(24), wanted] = 0
    found = {"one bandwidth": error_and_right(shares(apart, names), new)}
    for kind, choice in chosen.items():
        found[kind] = of_circles(kind, seed, choice["rate"])
    return {**found, "the answer known": error_and_right(shares(known, names), new)}


# Points: a model asks the others, or answers by itself


def network(rng: np.random.Generator, side: str, sizes: Sequence[int]) -> Network:
    """First numbers of one layer (in, out) or of two (in, hidden, out)."""
    first = {
        f"{side}_1": rng.normal(size=sizes[:2]) / math.sqrt(sizes[0]),
        f"{side}_shift_1": rng.normal(size=sizes[1]),
    }
    if len(sizes) == 2:
        return first
    second = rng.normal(size=sizes[1:]) / math.sqrt(sizes[1])
    return {**first, f"{side}_2": second, f"{side}_shift_2": np.zeros(sizes[2])}


def start_of(kind: str, rng: np.random.Generator, inputs: int, hidden: int) -> nn.Module:
    if kind == "one bandwidth per input":
        return torch_layers.KernelRegression([1.0] * inputs).double()
    if kind == "a distance after one matrix":
        return torch_layers.MetricKernelRegression(np.eye(inputs)).double()
    if kind == "an MLP alone":
        return parameters(**network(rng, "query", (inputs, hidden, 1)))
    sizes = (inputs, hidden, 8) if "MLP" in kind else (inputs, 8)
    of_query = network(rng, "query", sizes)
    if "after one" in kind:
        return parameters(**of_query)
    return parameters(**of_query, **network(rng, "key", sizes))


def minus_distance(q: Tensor, k: Tensor) -> Tensor:
    """Minus half the squared distance, but for the query's term, which no weight sees."""
    return q @ k.mT - (k**2).sum(dim=-1) / 2


def predict(
    kind: str, model: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
) -> Tensor:
    if kind in ("one bandwidth per input", "a distance after one matrix"):
        return model(q, k, v, mask=mask)
    asked = layers(model, "query", q)
    if kind == "an MLP alone":
        return asked
    given = layers(model, "query" if "after one" in kind else "key", k)
    score = minus_distance if "distance" in kind else scaled_dot
    return attend(asked, given, v, score=score, mask=mask)


def of_points(
    kind: str, data: Sequence[np.ndarray], seed: int, rate: float, hidden: int, stops: Sequence[int]
) -> list[tuple[float, float]]:
    """The loss (leave-one-out) and the error on new points at each number of steps."""
    x, y, new_x, new_y = data
    model = start_of(kind, np.random.default_rng(seed), x.shape[1], hidden)

    def loss(model: Any, x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        return ((y - predict(kind, model, x, x, y, mask)) ** 2).mean()

    def at(step: int) -> float:
        with torch.no_grad():
            said = predict(kind, model, *map(torch.from_numpy, (new_x, x, y))).numpy()
        seen[step] = float(np.mean((new_y - said) ** 2))

    seen: dict[int, float] = {}
    mask = ~np.eye(len(x), dtype=bool)

    def batches():  # looks at the new points on its way, and learns nothing from them
        for step in range(max(stops)):
            if step in stops:
                at(step)
            yield x, y, mask

    _, history = torch_layers.train(model, loss, batches(), learning_rate=rate)
    at(max(stops))
    return [(float(history.losses[stop - 1]), seen[stop]) for stop in stops]


RIVALS = {  # and the widths of a hidden layer among which each may choose
    "one bandwidth per input": (0,),
    "a distance after one matrix": (0,),
    "a dot product after one matrix": (0,),
    "a distance after two matrices": (0,),
    "two matrices": (0,),
    "a distance after one MLP": (8, 16, 32),
    "two MLPs": (8, 16, 32),
    "an MLP alone": (8, 16, 32),
}
STOPS = 50, 100, 200, 400, 600
DIRECTION = np.array([2, -1, 2, 0, 1]) / math.sqrt(10)


def five_inputs(seed: int) -> list[np.ndarray]:
    """Chapter 2's 300 points with five inputs and a hidden direction, and 1000 new ones."""
    data = []
    for seed_of_part, n in ((2 * seed + 2, 300), (2 * seed + 3, 1000)):
        rng = np.random.default_rng(seed_of_part)
        inputs = 1.5 * rng.normal(size=(n, 5))
        noise = 0.3 * rng.normal(size=(n, 1))
        data += [inputs, datasets.curve(inputs @ DIRECTION[:, None]) + noise]
    return data


def five(seed: int, chosen: dict[str, Any]) -> dict[str, list[float]]:
    """Error on new points; seed 0 has the page's points."""
    x, y, new_x, new_y = data = five_inputs(seed)
    along, new_along = x @ DIRECTION[:, None], new_x @ DIRECTION[:, None]
    known = nadaraya_watson(new_along, along, y, bandwidth=0.1)
    found = {"the mean of y": [float(np.mean((new_y - y.mean()) ** 2))]}
    for kind, choice in chosen.items():
        rate, hidden, steps = choice["rate"], choice["hidden"], choice["steps"]
        ((_, error),) = of_points(kind, data, seed, rate, hidden, [steps])
        found[kind] = [error]
    return {**found, "the direction known": [float(np.mean((new_y - known) ** 2))]}


def line(seed: int) -> dict[str, list[float]]:
    """Leave-one-out and held-out error on the running data; "learned" is chapter 3's model.

    All have chapter 3's width and steps, and the MLP alone a higher rate as well.
    """
    kinds = {
        "learned": ("two MLPs", 0.01),
        "two matrices": ("two matrices", 0.01),
        "MLP alone": ("an MLP alone", 0.01),
        "MLP alone, rate 0.03": ("an MLP alone", 0.03),
    }
    return {
        name: list(of_points(kind, draw(seed), seed, rate, 16, [600])[0])
        for name, (kind, rate) in kinds.items()
    }


def choose_for_circles(seeds: Sequence[int]) -> dict[str, Any]:
    """The learning rate of each kind that has the least median error on new rows."""
    chosen = {}
    for kind in SHAPES:
        errors = {r: np.median([of_circles(kind, s, r)[0] for s in seeds]) for r in RATES}
        chosen[kind] = {"rate": min(errors, key=lambda rate: errors[rate])}
        print(kind, chosen[kind], {rate: f"{e:.4f}" for rate, e in errors.items()}, flush=True)
    return chosen


def choose_for_points(seeds: Sequence[int]) -> dict[str, Any]:
    """Rate, width and steps of each rival, by the median error on new points."""
    chosen = {}
    for kind, widths in RIVALS.items():
        errors = {}
        for rate, hidden in itertools.product(RATES, widths):
            runs = [of_points(kind, five_inputs(s), s, rate, hidden, STOPS) for s in seeds]
            for steps, *of_draws in zip(STOPS, *runs, strict=True):
                errors[rate, hidden, steps] = float(np.median([new for _, new in of_draws]))
        best = min(errors, key=lambda choice: errors[choice])
        chosen[kind] = dict(zip(("rate", "hidden", "steps"), best, strict=True))
        print(kind, chosen[kind], f"{errors[best]:.3f}", flush=True)
    return chosen


def main(experiment: Experiment) -> None:
    quick = experiment.quick
    tuning = range(100, 101 if quick else 103)
    for_circles, for_five = choose_for_circles(tuning), choose_for_points(tuning)
    experiment.store(
        circles=over(partial(circles, chosen=for_circles), 2 if quick else 5),
        five=over(partial(five, chosen=for_five), 2 if quick else 10),
        towers=over(line, 2 if quick else 40),
        chosen={"circles": for_circles, "five": for_five},
    )
