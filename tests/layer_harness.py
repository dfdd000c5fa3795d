"""A layer of either back end as a function of NumPy arrays, and its parameters by name."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

import backends
import numpy as np
import pytest


class Library:
    """attnbook.torch or attnbook.jax, in float64."""

    def __init__(self, name: str) -> None:
        self.name, self.backend = name, backends.load_or_skip(name)
        try:
            self.module = importlib.import_module(f"attnbook.{name}")
        except ModuleNotFoundError as missing:
            pytest.skip(f"{missing.name} is not installed")

    def make(self, layer: str, *args: Any, seed: int = 5, **how: Any) -> Any:
        if self.name == "jax":
            key = self.backend.jax.random.key(seed)
            return getattr(self.module, layer)(*args, **how, key=key)
        self.backend.xp.manual_seed(seed)
        return getattr(self.module, layer)(*args, **how).double().eval()

    def scaled_up(self, layer: str, *args: Any, **how: Any) -> Any:
        """Of parameters twice as large, so that weights are far from even."""
        made = self.make(layer, *args, **how)
        if self.name == "jax":
            return self.backend.jax.tree.map(lambda x: 2 * x, made)
        with self.backend.xp.no_grad():
            for parameter in made.parameters():
                parameter.mul_(2)
        return made

    def parameters(self, layer: Any) -> dict[str, np.ndarray]:
        if self.name == "torch":
            return {n: p.detach().numpy() for n, p in layer.named_parameters()}
        leaves = self.backend.jax.tree_util.tree_leaves_with_path(layer)
        simple = partial(self.backend.jax.tree_util.keystr, simple=True, separator=".")
        return {simple(path): np.asarray(a) for path, a in leaves}

    def call(self, layer: Any, *args: Any, seed: int | None = None, **how: Any) -> Any:
        """What a layer gives; with a seed as while training, with its random draws."""
        args = tuple(self.moved(a) for a in args)
        how = {name: self.moved(a) for name, a in how.items()}
        if self.name == "jax":
            random = {} if seed is None else {"key": self.backend.jax.random.key(seed)}
            return self.returned(layer(*args, **how, **random))
        if seed is not None:
            self.backend.xp.manual_seed(seed)
        layer.train(seed is not None)
        return self.returned(layer(*args, **how))

    def moved(self, a: Any) -> Any:
        return self.backend.array(a) if isinstance(a, np.ndarray) else a

    def returned(self, a: Any) -> Any:
        if isinstance(a, tuple | list):
            return type(a)(map(self.returned, a))
        return self.backend.numpy(a)


def part(layer: Any, name: str) -> Any:
    """What layers.0.query.weight means."""
    for step in name.split("."):
        layer = layer[int(step)] if step.isdecimal() else getattr(layer, step)
    return layer


def with_parameters(library: Library, layer: Any, parameters: dict[str, np.ndarray]) -> Any:
    """The layer with these numbers, in place in torch, a new one in JAX."""
    if library.name == "jax":
        import equinox as eqx

        for path, a in parameters.items():
            layer = eqx.tree_at(partial(part, name=path), layer, library.moved(np.array(a)))
        return layer
    with library.backend.xp.no_grad():
        for path, a in parameters.items():
            layer.get_parameter(path).copy_(library.moved(np.array(a)))
    return layer


def randomized(library: Library, name: str, *args: Any, **how: Any) -> Any:
    """A layer whose norms are not what they start as, and whose weights are far from even."""
    layer, draws = library.make(name, *args, **how), np.random.default_rng(3)
    known = library.parameters(layer).items()
    drawn = {n: 2 * p + draws.normal(size=p.shape) / 3 for n, p in known}
    return with_parameters(library, layer, drawn)


def distinct_starts(
    library: Library, name: str, *args: Any, share: float = 1.0, **how: Any
) -> dict[str, np.ndarray]:
    """What a layer starts from: by the seed, another for another seed; norms aside, none twice.

    At least that share of the numbers: torch draws in float32, which has the same one now and then.
    """
    one, same, other = (
        library.parameters(library.make(name, *args, **how, seed=seed)) for seed in (0, 0, 1)
    )
    learned = {path: drawn for path, drawn in one.items() if "norm" not in path}
    for path, drawn in learned.items():
        np.testing.assert_array_equal(drawn, same[path])
        assert np.mean(drawn != other[path]) >= share, path
    together = np.concatenate([drawn.ravel() for drawn in learned.values()])
    assert len(np.unique(together)) >= share * len(together)
    return one
