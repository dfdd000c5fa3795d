"""Attention with learned queries and keys: on the running data, and on rows of digits.

    python -m benchmarks.learned_attention            all; stores the results (about five minutes)
    python -m benchmarks.learned_attention --quick    two seeds; stores nothing

Seeds are 0, 1, 2, … throughout and none is left out; data, first parameters and batches come from
them.
"""

import itertools
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from attnbook import attend, convert, datasets
from attnbook import jax as jax_layers
from attnbook import torch as torch_layers
from attnbook.training import minibatches
from benchmarks.learned_kernels import draw, over
from benchmarks.storing import asked_quick, store


def towers(seed: int) -> dict[str, list[float]]:
    """Leave-one-out and held-out error of attention whose queries and keys are networks of x."""
    x, y, new_x, new_y = draw(seed)
    rng = np.random.default_rng(seed)
    sizes = {"hidden": (1, 16), "bias": (16,), "out": (16, 8)}
    scales = {"hidden": 1.0, "bias": 1.0, "out": 0.25}
    model = torch.nn.ParameterDict(
        {
            f"{side}_{name}": torch.from_numpy(scales[name] * rng.normal(size=shape))
            for side in ("query", "key")
            for name, shape in sizes.items()
        }
    )

    def features(model: Any, side: str, at: Tensor) -> Tensor:
        hidden = torch.tanh(at @ model[f"{side}_hidden"] + model[f"{side}_bias"])
        return hidden @ model[f"{side}_out"]

    def predict(model: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        return attend(features(model, "query", q), features(model, "key", k), v, mask=mask)

    def loss(model: Any, x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        return ((y - predict(model, x, x, y, mask)) ** 2).mean()

    batches = itertools.repeat((x, y, ~np.eye(150, dtype=bool)), 600)
    model, history = torch_layers.train(model, loss, batches, learning_rate=0.01)
    with torch.no_grad():
        prediction = predict(model, *map(torch.from_numpy, (new_x, x, y))).numpy()
    return {"learned": [float(history.losses[-1]), float(np.mean((new_y - prediction) ** 2))]}


def digits(seed: int) -> dict[str, list[float]]:
    """Accuracy on 4000 new rows and CPU seconds, of both back ends from the same parameters."""
    import jax
    import jax.numpy as jnp
    import optax

    rows = datasets.digit_comparisons(4000, seed=2 * seed)
    new_rows, new_labels = datasets.digit_comparisons(4000, seed=2 * seed + 1)
    torch.manual_seed(seed)
    model = torch_layers.AttentionPooling(10)
    twin = convert.torch_to_jax(model)

    def torch_loss(model: Any, tokens: Tensor, labels: Tensor) -> Tensor:
        return binary_cross_entropy_with_logits(model(tokens), labels)

    def jax_loss(model: Any, tokens: jax.Array, labels: jax.Array) -> jax.Array:
        return optax.sigmoid_binary_cross_entropy(model(tokens), labels).mean()

    found = {}
    for name, library, start, loss in (
        ("torch", torch_layers, model, torch_loss),
        ("JAX", jax_layers, twin, jax_loss),
    ):
        batches = minibatches(rows, size=128, steps=300, seed=seed)
        trained, history = library.train(start, loss, batches, learning_rate=0.003)
        tokens = torch.from_numpy(new_rows) if name == "torch" else jnp.asarray(new_rows)
        said = np.asarray(trained(tokens).detach() if name == "torch" else trained(tokens)) > 0
        found[name] = [float(np.mean(said == new_labels)), history.cpu_seconds]
    return found


def main() -> None:
    quick = asked_quick(__doc__)
    torch.set_num_threads(1)
    found = {
        "digits": over(digits, 2 if quick else 10),
        "towers": over(towers, 2 if quick else 40),
    }
    if not quick:
        store("learned_attention", **found)


if __name__ == "__main__":
    main()
