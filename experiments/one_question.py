"""A learned question about a row of digits: learned weights beside equal ones.

Two tasks: the mean of a row's even digits, and whether a row has more 4s than 2s. Every model is
trained on rows of ten and asked on new rows of five lengths. In the first task every model has 2000
steps, and one with learned weights also 600, as in chapter 3. Takes about a minute.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch

from attnbook import convert, datasets
from attnbook import jax as jax_layers
from attnbook import torch as torch_layers
from attnbook.layers.linear import embed, perceptron
from attnbook.train.training import minibatches
from experiments.harness import Experiment, over

LENGTHS = [5, 10, 20, 40, 80]


def equal_weights(model: Any, tokens: Any) -> Any:
    """The model with equal weights in place of a softmax: a plain mean of the values."""
    embedded = embed(model.embedding, tokens)
    values = perceptron(model.value_hidden, model.value_out, embedded)
    return perceptron(model.head_hidden, model.head_out, values.mean(axis=-2))[..., 0]


def learned_weights(model: Any, tokens: Any) -> Any:
    return model(tokens)


def layer(seed: int, values: int = 1) -> Any:
    """Chapter 3's parameters; with two numbers for a value, those of two layers are new."""
    torch.manual_seed(seed)
    ours = convert.torch_to_jax(torch_layers.AttentionPooling(10))
    if values == 1:
        return ours
    keys = jax.random.split(jax.random.PRNGKey(seed))
    new = eqx.nn.Linear(32, values, key=keys[0]), eqx.nn.Linear(values, 32, key=keys[1])
    return eqx.tree_at(lambda pooling: (pooling.value_out, pooling.head_hidden), ours, new)


def even(seed: int) -> dict[str, list[float]]:
    """Root mean squared error on 4000 new rows of every length."""
    rows = datasets.means_of_even(4000, seed=2 * seed)
    tests = [datasets.means_of_even(4000, seed=2 * seed + 1, length=n) for n in LENGTHS]

    def trained(start: Any, answer: Callable[..., Any], steps: int) -> list[float]:
        def loss(model: Any, tokens: Any, means: Any) -> Any:
            return ((answer(model, tokens) - means) ** 2).mean()

        batches = minibatches(rows, size=128, steps=steps, seed=seed)
        model, _ = jax_layers.train(start, loss, batches, learning_rate=0.003)
        said = [np.asarray(answer(model, jnp.asarray(tokens))) for tokens, _ in tests]
        return [
            float(np.sqrt(np.mean((s - means) ** 2)))
            for s, (_, means) in zip(said, tests, strict=True)
        ]

    return {
        "learned weights, 600 steps": trained(layer(seed), learned_weights, 600),
        "learned weights": trained(layer(seed), learned_weights, 2000),
        "equal weights": trained(layer(seed), equal_weights, 2000),
        "equal weights, two values": trained(layer(seed, values=2), equal_weights, 2000),
        "always 4": [float(np.sqrt(np.mean((means - 4) ** 2))) for _, means in tests],
    }


def more(seed: int) -> dict[str, list[float]]:
    """More 4s than 2s: the share of right answers on 4000 new rows of every length."""
    rows = datasets.digit_comparisons(4000, seed=2 * seed)
    tests = [datasets.digit_comparisons(4000, seed=2 * seed + 1, length=n) for n in LENGTHS]
    answers = {"learned weights": learned_weights, "equal weights": equal_weights}
    found = {}
    for name, answer in answers.items():

        def loss(model: Any, tokens: Any, labels: Any, answer: Any = answer) -> Any:
            return optax.sigmoid_binary_cross_entropy(answer(model, tokens), labels).mean()

        batches = minibatches(rows, size=128, steps=300, seed=seed)
        model, _ = jax_layers.train(layer(seed), loss, batches, learning_rate=0.003)
        said = [np.asarray(answer(model, jnp.asarray(tokens))) > 0 for tokens, _ in tests]
        found[name] = [
            float(np.mean(s == labels)) for s, (_, labels) in zip(said, tests, strict=True)
        ]
    return found


def main(experiment: Experiment) -> None:
    seeds = 1 if experiment.quick else 5
    experiment.store(lengths=LENGTHS, even=over(even, seeds), more=over(more, seeds))
