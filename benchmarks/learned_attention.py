"""Attention with learned queries and keys, on the running data.

    python -m benchmarks.learned_attention            all; stores the results (some minutes)
    python -m benchmarks.learned_attention --quick    two seeds; stores nothing

Seeds are 0, 1, 2, … throughout and none is left out; data, first parameters and batches come from
them.
"""

import itertools
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnbook import attend
from attnbook import torch as torch_layers
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


def main() -> None:
    quick = asked_quick(__doc__)
    torch.set_num_threads(1)
    found = {"towers": over(towers, 2 if quick else 40)}
    if not quick:
        store("learned_attention", **found)


if __name__ == "__main__":
    main()
