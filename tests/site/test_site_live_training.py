"""The live figure of chapter 9's layer learns as the chapter's layer does: in Node against PyTorch, and in a page."""

from __future__ import annotations

import json
import subprocess
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import torch
from attnbook_site.maths import node_program
from live_visits import FIND, choose, figure, numbers, read, text
from numpy.testing import assert_allclose
from playwright.sync_api import Page

from attnbook import datasets, nadaraya_watson
from attnbook import torch as torch_layers
from attnbook.kernel import gaussian_process
from attnbook.train import training
from attnbook_course.live.figure import read_scripts
from attnbook_course.live.regressor_training import NAME, SCRIPTS

PROCESS = {"length_scale": 0.3, "noise": 0.2}
STATE = f"window.attnbookTraining['{NAME}'].training"
LABEL = f"{FIND}('run').label"
Parameters = dict[str, list[float]]
shown = partial(figure, "regressor_training")


def in_node(code: str, **given: Any) -> Any:
    """What the body of a function returns, beside the figure's functions and what is given."""
    harness = f"""{read_scripts(*SCRIPTS[:3])}
      const given = JSON.parse(require("fs").readFileSync(0)), process_of = {json.dumps(PROCESS)};
      const plain = (_, one) => (ArrayBuffer.isView(one) ? [...one] : one);
      console.log(JSON.stringify((() => {{ {code} }})(), plain));"""
    command = [node_program(), "-e", harness]
    return json.loads(subprocess.check_output(command, input=json.dumps(given), encoding="utf-8"))


def parts(layer: Any) -> dict[str, torch.Tensor]:
    """The parameters that the answer depends on, by the script's names, as views of the layer's."""
    query, key, value, output = layer.query, layer.key, layer.value, layer.output
    found = {
        "query": query.weight[:, :3],
        "query_bias": query.bias,
        "key": key.weight[:, :3],
        "key_bias": key.bias,
        "value": value.weight[:, 3],
        "value_bias": value.bias,
    }
    return found | {"output": output.weight[3], "output_bias": output.bias[3:]}


def layer_of(parameters: Parameters) -> Any:
    """The chapter's layer with them, in float64."""
    layer = torch_layers.MultiHeadAttention(4, 1).double()
    with torch.no_grad():
        for name, part in parts(layer).items():
            part.copy_(torch.tensor(parameters[name], dtype=torch.float64).reshape(part.shape))
    return layer


def inputs(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Queries, keys and values of a batch, and the values that are asked for."""
    features = np.stack([np.ones_like(x), x, x**2, np.zeros_like(x)], axis=-1)
    values = np.pad(y[:, :-1, None], [(0, 0), (0, 0), (3, 0)])
    return features[:, 1:], features[:, :-1], values, y[:, 1:]


def answers(layer: Any, queries: Any, keys: Any, values: Any) -> Any:
    mask = torch.tensor(np.tri(queries.shape[1], dtype=bool))
    return layer(queries, keys, values, mask)[..., 3]


def loss(layer: Any, queries: Any, keys: Any, values: Any, y: Any) -> Any:
    return ((answers(layer, queries, keys, values) - y) ** 2).mean()


GRADIENT = """
  const arrays = Object.entries(given.parameters).map(([name, part]) => [name, Float64Array.from(part)]);
  return loss_and_gradient(Object.fromEntries(arrays), given.functions);"""


@pytest.mark.parametrize(("pairs", "spread"), [(1, 1.0), (2, 1.0), (32, 1.0), (32, 6.0)])
def test_the_gradient_is_autograds(pairs: int, spread: float) -> None:
    """Up to rounding, also with large scores, where the softmax is nearly a choice."""
    rng = np.random.default_rng(pairs)
    f = datasets.smooth_functions(5, pairs + 1, seed=rng)
    layer = torch_layers.MultiHeadAttention(4, 1).double()
    given = {
        name: rng.normal(0, spread if name in ("query", "key") else 1, part.numel()).tolist()
        for name, part in parts(layer).items()
    }
    functions = [{"x": list(x), "y": list(y)} for x, y in zip(f.x, f.y, strict=True)]
    found = in_node(GRADIENT, parameters=given, functions=functions)
    layer = layer_of(given)
    value = loss(layer, *map(torch.tensor, inputs(f.x, f.y)))
    value.backward()
    assert found["loss"] == pytest.approx(value.item(), rel=1e-10)
    for part in (layer.query, layer.key, layer.value, layer.output):
        part.weight.data, part.bias.data = part.weight.grad, part.bias.grad
    expected = {name: part.detach().numpy().ravel() for name, part in parts(layer).items()}
    largest = max(np.abs(part).max() for part in expected.values())
    assert largest > 1e-3
    for name, part in expected.items():
        assert_allclose(found["gradient"][name], part, rtol=1e-8, atol=1e-10 * largest)


TRAIN = """
  const training = begin_training(given.seed), first = structuredClone(training.parameters);
  const losses = [], drawn = [], half = [], draw = draw_function;
  draw_function = (...given) => { // the step calls it by its name
    const one = draw(...given);
    if (losses.length < 50) drawn.push([one.x, one.y]);
    return one;
  };
  for (let t = 0; t < given.steps; t++) {
    losses.push(train_step(training, 0.1, given.pairs, process_of));
    if (t + 1 === 500) half.push(structuredClone(training.parameters));
  }
  return { first, losses, half, drawn, last: training.parameters, ...read_off(training.parameters) };"""


@cache
def trained(seed: int, steps: int, pairs: int = 32) -> dict[str, Any]:
    """A training in Node: the first parameters, its functions, losses and last parameters."""
    return in_node(TRAIN, seed=seed, steps=steps, pairs=pairs)


@pytest.mark.parametrize("pairs", [2, 32])
def test_fifty_steps_are_pytorchs(pairs: int) -> None:
    """The same functions, rates, clip and Adam from the same parameters."""
    found = trained(1, 50, pairs)
    drawn = np.array(found["drawn"]).reshape(50, 32, 2, pairs + 1)
    batches = [inputs(*np.moveaxis(batch, 1, 0)) for batch in drawn]
    rates = training.warm_cosine(0.1, 2000, warmup=20)[:50].tolist()
    layer, history = torch_layers.train(
        layer_of(found["first"]), loss, batches, learning_rate=rates, clip=1.0
    )
    assert_allclose(found["losses"], history.losses, rtol=1e-6)
    for name, part in parts(layer).items():
        expected = part.detach().numpy().ravel()
        assert_allclose(found["last"][name], expected, rtol=1e-6, atol=1e-7, err_msg=name)
        assert not np.allclose(found["first"][name], expected, atol=1e-3) or name == "key_bias"


@pytest.mark.parametrize("seed", range(3))
def test_it_comes_as_far_as_the_chapters_layer(seed: int) -> None:
    """After a quarter of the steps within 5 % of the error that the chapter stores, then 1 %."""
    found = trained(seed, 2000)
    (run, *_) = datasets.results("in_context")["found"]["one layer, torch"]
    new = datasets.smooth_functions(2000, 33, seed=1_000_000, **PROCESS)
    given = tuple(map(torch.tensor, inputs(new.x, new.y)[:3]))
    for parameters, margin in ((found["half"][0], 0.05), (found["last"], 0.01)):
        with torch.no_grad():
            said = answers(layer_of(parameters), *given).numpy()
        assert np.mean((said - new.true[:, 1:]) ** 2) < (1 + margin) * run["error"]
    form = np.array(found["A"])
    assert_allclose(form[1, 1] ** -0.5, run["bandwidth_product"], rtol=0.04)
    assert_allclose((-2 * form[0, 2]) ** -0.5, run["bandwidth_square"], rtol=0.04)
    assert_allclose(found["gain"], run["gain"], rtol=0.02)


def sfc32(seed: int, count: int) -> list[float]:
    """Doty-Humphrey's generator in Python's integers."""
    a, b, c, d, found = seed, 0, 0, 1, []
    for _ in range(count + 12):
        total = (a + b + d) % 2**32
        d = (d + 1) % 2**32
        a = b ^ (b >> 9)
        b = (c + (c << 3)) % 2**32
        c = (((c << 21) | (c >> 11)) + total) % 2**32
        found.append(total / 2**32)
    return found[12:]


def test_the_generator_is_sfc32() -> None:
    for seed in (0, 1, 99, 1_000_000):
        drawn = in_node(
            "const random = generator(given.seed); return Array.from({ length: 1000 }, random.even);",
            seed=seed,
        )
        assert drawn == sfc32(seed, 1000)


def test_functions_are_the_processs() -> None:
    """Whitened by the process's own matrix, values and noise are standard normal, the points even."""
    drawn = in_node(
        "const random = generator(5);"
        "return Array.from({ length: 3000 }, () => draw_function(random, 9, process_of));"
    )
    x, f, y = (np.array([one[name] for one in drawn]) for name in "xfy")
    matrix = gaussian_process.covariance(x, x, 0.3) + 1e-9 * np.eye(9)
    white = np.linalg.solve(np.linalg.cholesky(matrix), f[..., None])[..., 0]
    for z in (white, (y - f) / 0.2):
        assert abs(z.mean()) < 4 / np.sqrt(z.size)
        assert abs((z**2).mean() - 1) < 4 * np.sqrt(2 / z.size)
        assert abs((z**4).mean() - 3) < 4 * np.sqrt(96 / z.size)
        among = z.T @ z / len(z) - np.eye(9)
        assert np.abs(among).max() < 5 * np.sqrt(2 / len(z))
    assert_allclose(np.histogram(x, bins=8, range=(-1, 1))[0], x.size / 8, rtol=0.08)


def oracle(x: np.ndarray, y: np.ndarray, f: np.ndarray, bandwidth: float, penalty: float) -> Any:
    """Errors of the three rivals after each number of pairs."""
    mask = np.tri(x.shape[1] - 1, dtype=bool)
    kernel = nadaraya_watson(
        x[:, 1:, None], x[:, :-1, None], y[:, :-1, None], bandwidth=bandwidth, mask=mask
    )[..., 0]
    phi = np.stack([np.ones_like(x), x, x**2], axis=-1)
    ridge, posterior = np.zeros_like(kernel), np.zeros_like(kernel)
    for n in range(1, x.shape[1]):
        keys = phi[:, :n]
        gram = np.swapaxes(keys, 1, 2) @ keys + penalty * np.eye(3)
        found = np.linalg.solve(gram, np.swapaxes(keys, 1, 2) @ y[:, :n, None])
        ridge[:, n - 1] = (phi[:, n, None] @ found)[:, 0, 0]
        posterior[:, n - 1] = gaussian_process.posterior(
            x[:, n : n + 1], x[:, :n], y[:, :n], **PROCESS
        )[0][:, 0]
    return [np.mean((said - f[:, 1:]) ** 2, axis=0) for said in (kernel, ridge, posterior)]


def test_the_rivals_are_the_packages() -> None:
    """And the best of each has the least error over all numbers of pairs up to the chosen one."""
    found = in_node(
        """const random = generator(7), functions = Array.from({ length: 40 }, () => draw_function(random, 17, process_of));
        const all = rivals(functions, process_of);
        return { functions, ...all, best: [4, 16].map((n) => [best(all.kernel, all.bandwidths, n), best(all.ridge, all.penalties, n)]) };"""
    )
    x, y, f = (np.array([one[name] for one in found["functions"]]) for name in "xyf")
    expected = [
        oracle(x, y, f, h, p)
        for h in found["bandwidths"]
        for p in (found["penalties"] if h == found["bandwidths"][0] else found["penalties"][:1])
    ]
    penalties = len(found["penalties"])
    kernel = [expected[0][0], *(one[0] for one in expected[penalties:])]
    ridge = [one[1] for one in expected[:penalties]]
    assert_allclose(found["kernel"], kernel, rtol=1e-7)
    assert_allclose(found["ridge"], ridge, rtol=1e-7)
    assert_allclose(found["posterior"], [expected[0][2]], rtol=1e-6)
    for n, bests in zip((4, 16), found["best"], strict=True):
        for rows, choices, one in (
            (kernel, found["bandwidths"], bests[0]),
            (ridge, found["penalties"], bests[1]),
        ):
            means = np.array(rows)[:, :n].mean(axis=1)
            assert one["error"] == pytest.approx(means.min(), rel=1e-7)
            assert one["choice"] == choices[means.argmin()]


def begin(page: Page, **values: float) -> None:
    """Nothing runs, with these controls."""
    choose(page, **{"seed": 0, "rate": -1.0, "pairs": 32, **values})
    page.get_by_role("button", name="reset").click()


def step(page: Page, count: int) -> None:
    button = page.get_by_role("button", name="one step")
    for _ in range(count):
        button.press("Enter")


def steps(page: Page) -> int:
    return page.evaluate(f"{STATE}.step")


def parameters(page: Page) -> Parameters:
    return page.evaluate(
        f"Object.fromEntries(Object.entries({STATE}.parameters).map(([name, part]) => [name, [...part]]))"
    )


def test_the_page_takes_nodes_steps_and_draws_what_it_has(page: Page) -> None:
    begin(page, seed=2, pairs=8)
    step(page, 30)
    expected = trained(2, 30, 8)["last"]
    found = parameters(page)
    for name, part in expected.items():
        assert_allclose(found[name], part, rtol=1e-6, atol=1e-8)  # two engines, two exp

    functions = page.evaluate(
        f"window.attnbookTraining['{NAME}'].functions.map(({{ x, y, f }}) => [[...x], [...y], [...f]])"
    )
    x, y, f = np.moveaxis(np.array(functions)[..., :9], 1, 0)
    layer = layer_of(found)
    with torch.no_grad():
        said = answers(layer, *map(torch.tensor, inputs(x, y)[:3])).numpy()
    error = np.mean((said - f[:, 1:]) ** 2)
    trail = {name: column[-1] for name, column in read(page, "trail").items()}
    assert trail["step"] == 30 and trail["error"] == pytest.approx(error, rel=1e-9)
    told = numbers(text(page))
    assert text(page).startswith("Step 30 of 2000; the next has the rate ")
    rate = training.warm_cosine(0.1, 2000, warmup=20)[30]
    best_h = told[6]
    kernel, _, posterior = oracle(x, y, f, best_h, 1.0)
    assert_allclose(told[:5], [rate, trail["product"], trail["square"], told[3], error], rtol=5e-3)
    assert told[5] == pytest.approx(kernel.mean(), rel=0.02)  # h is rounded in the text
    assert told[8] == pytest.approx(posterior.mean(), rel=5e-3)

    keys, values = x[2, :8], y[2, :8]
    assert read(page, "points")["x"] == list(keys) and read(page, "points")["y"] == list(values)
    curve = {name: np.array(column) for name, column in read(page, "curve").items()}
    queries, given, valued, _ = inputs(np.concatenate([keys, curve["x"]])[None], np.zeros((1, 109)))
    valued = np.pad(values[None, :, None], [(0, 0), (0, 0), (3, 0)])
    with torch.no_grad():
        drawn, weights = layer(
            *map(torch.tensor, (queries[:, 7:], given[:, :8], valued)), return_weights=True
        )
    assert_allclose(curve["layer"], drawn[0, :, 3].numpy(), rtol=1e-9, atol=1e-12)
    middle = weights[0, 0, 50].numpy()
    assert curve["x"][50] == pytest.approx(0, abs=1e-12)
    assert_allclose(read(page, "points")["size"], 4 + 20 * np.sqrt(middle), rtol=1e-9)
    mean, _ = gaussian_process.posterior(curve["x"], keys, values, **PROCESS)
    assert_allclose(curve["posterior"], mean, atol=1e-7)
    smooth = nadaraya_watson(curve["x"][:, None], keys[:, None], values[:, None], bandwidth=best_h)
    assert_allclose(curve["kernel"], smooth[:, 0], atol=0.05)
    assert np.abs(np.diff(curve["ridge"], 3)).max() < 1e-9  # a polynomial of degree 2


def test_it_ends_after_two_thousand_steps_and_begins_again(page: Page) -> None:
    begin(page, pairs=2)
    page.evaluate(f"{STATE}.step = 1992")
    page.get_by_role("button", name="start", exact=True).click()
    page.wait_for_function(f"{LABEL} === 'start'")
    assert steps(page) == 2000 and text(page).startswith("Step 2000 of 2000, the last. ")
    step(page, 1)
    assert steps(page) == 2000
    page.get_by_role("button", name="start", exact=True).click()
    page.get_by_role("button", name="stop", exact=True).click()
    assert steps(page) < 1000 and read(page, "trail")["step"][0] == 0


def test_a_wrong_sign_is_said(page: Page) -> None:
    """Seed 0 begins with a form that no bandwidth has: NaN in the trail, words in the text."""
    begin(page)
    form = np.array(in_node("return read_off(begin_training(0).parameters).A;"))
    assert form[1, 1] < 0 or form[0, 2] > 0
    assert "A is no Gaussian kernel yet" in text(page)
    assert page.evaluate(
        f"['product', 'square'].some((name) => Number.isNaN({FIND}('trail').data[name][0]))"
    )
