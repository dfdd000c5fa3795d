"""A learned question about a row of digits: learned weights beside equal ones.

    python -m benchmarks.one_question            all; stores the results (about five minutes)
    python -m benchmarks.one_question --quick    one seed; stores nothing

Two tasks: the mean of a row's even digits, and whether a row has more 4s than 2s. Every model is
trained on rows of ten and asked on new rows of five lengths, the same rows for all. In the first
task a model with equal weights has 2000 steps, one with learned weights 600. Seeds are 0 to 4, and
none is left out; rows, first parameters and batches come from them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from attnbook import convert, datasets
from attnbook import jax as jax_layers
from attnbook import torch as torch_layers
from attnbook.training import minibatches
from benchmarks.learned_kernels import over
from benchmarks.storing import asked_quick, store

LENGTHS = [5, 10, 20, 40, 80]


def equal_weights(model: Any, tokens: Tensor) -> Tensor:
    """The model with equal weights in place of a softmax: a plain mean of the values."""
    values = model.value_out(model.value_hidden(model.embedding(tokens)).relu())
    answer: Tensor = model.head_out(model.head_hidden(values.mean(dim=-2)).relu())[..., 0]
    return answer


def wider(seed: int) -> nn.Module:
    """The layer with values of two numbers."""
    torch.manual_seed(seed)
    model = torch_layers.AttentionPooling(10)
    model.value_out, model.head_hidden = nn.Linear(32, 2), nn.Linear(2, 32)
    return model


def layer(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return torch_layers.AttentionPooling(10)


def even(seed: int) -> dict[str, list[float]]:
    """Root mean squared error on 4000 new rows of every length."""
    import jax.numpy as jnp

    rows = datasets.means_of_even(4000, seed=2 * seed)
    tests = [datasets.means_of_even(4000, seed=2 * seed + 1, length=n) for n in LENGTHS]

    def trained(
        start: Any, answer: Callable[..., Any], steps: int, library: Any = torch_layers
    ) -> list[float]:
        def loss(model: Any, tokens: Any, means: Any) -> Any:
            return ((answer(model, tokens) - means) ** 2).mean()

        batches = minibatches(rows, size=128, steps=steps, seed=seed)
        model, _ = library.train(start, loss, batches, learning_rate=0.003)
        array = torch.from_numpy if library is torch_layers else jnp.asarray
        with torch.no_grad():
            said = [np.asarray(answer(model, array(tokens))) for tokens, _ in tests]
        return [
            float(np.sqrt(np.mean((s - means) ** 2)))
            for s, (_, means) in zip(said, tests, strict=True)
        ]

    def attention(model: Any, tokens: Any) -> Any:
        return model(tokens)

    twin = convert.torch_to_jax(layer(seed))
    return {
        "learned weights": trained(layer(seed), attention, 600),
        "learned weights, JAX": trained(twin, attention, 600, jax_layers),
        "equal weights": trained(layer(seed), equal_weights, 2000),
        "equal weights, two values": trained(wider(seed), equal_weights, 2000),
        "always 4": [float(np.sqrt(np.mean((means - 4) ** 2))) for _, means in tests],
    }


def more(seed: int) -> dict[str, list[float]]:
    """More 4s than 2s: the share of right answers on 4000 new rows of every length."""
    rows = datasets.digit_comparisons(4000, seed=2 * seed)
    tests = [datasets.digit_comparisons(4000, seed=2 * seed + 1, length=n) for n in LENGTHS]
    answers: dict[str, Callable[[Any, Tensor], Tensor]] = {
        "learned weights": lambda model, tokens: model(tokens),
        "equal weights": equal_weights,
    }
    found = {}
    for name, answer in answers.items():

        def loss(model: Any, tokens: Tensor, labels: Tensor, answer: Any = answer) -> Tensor:
            return binary_cross_entropy_with_logits(answer(model, tokens), labels)

        batches = minibatches(rows, size=128, steps=300, seed=seed)
        model, _ = torch_layers.train(layer(seed), loss, batches, learning_rate=0.003)
        with torch.no_grad():
            said = [answer(model, torch.from_numpy(tokens)).numpy() > 0 for tokens, _ in tests]
        found[name] = [
            float(np.mean(s == labels)) for s, (_, labels) in zip(said, tests, strict=True)
        ]
    return found


def main() -> None:
    quick = asked_quick(__doc__)
    torch.set_num_threads(1)
    seeds = 1 if quick else 5
    found = {"even": over(even, seeds), "more": over(more, seeds)}
    if not quick:
        store("one_question", lengths=LENGTHS, **found)


if __name__ == "__main__":
    main()
