"""A model of the book with the parameters of a published one, in either back end.

Its own first parameters are never drawn: a model is made of shapes alone, then filled.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from attnbook._validation import int_between, one_of
from attnbook.pretrained.checkpoint import Config, Recipe, Tensors

BACKENDS = ("torch", "jax")


def build(
    recipe_of: Callable[[Config, Tensors], Recipe],
    config: Config,
    tensors: Tensors,
    backend: str,
    max_length: int | None = None,
) -> Any:
    """The model that an adapter makes of a file's entries and tensors, all of them used.

    Args:
        recipe_of: an adapter.
        config: what the file says.
        tensors: what it holds; taken out as they are used.
        backend: "torch" or "jax".
        max_length: of the texts of a language model, at most its own; its own without it.

    Raises:
        ValueError: what the adapter refuses, a tensor that it has not used, another back end, a
            max_length above the model's own.
    """
    one_of(BACKENDS, backend=backend)
    recipe = recipe_of(config, tensors)
    tensors.check_empty()
    if max_length is not None:
        _shorten(recipe, max_length)
    return (_in_torch if backend == "torch" else _in_jax)(recipe)


def _shorten(recipe: Recipe, max_length: int) -> None:
    """Make a language model for shorter texts."""
    if recipe.kind != "DecoderOnly":
        raise ValueError(f"max_length: got {max_length!r} for an encoder, expected None")
    longest = recipe.options["max_length"]
    recipe.options["max_length"] = int_between(1, longest, max_length=max_length)
    if "position" in recipe.parameters:
        recipe.parameters["position"] = recipe.parameters["position"][:max_length]


def _in_torch(recipe: Recipe) -> Any:
    """A PyTorch module on the CPU, in evaluation mode; its parameters learn."""
    import torch

    import attnbook.torch
    from attnbook.pretrained import torch_encoders

    with torch.device("meta"):
        model = _class(recipe.kind, attnbook.torch, torch_encoders)(**recipe.options)
    named = list(model.named_parameters(remove_duplicate=False))
    filled: dict[int, Any] = {}  # by the parameter that is replaced, so that tied ones stay tied
    for name, empty in named:
        if id(empty) not in filled:
            array = np.require(_taken(recipe, name, empty.shape), np.float32, ["C", "W"])
            filled[id(empty)] = torch.nn.Parameter(torch.from_numpy(array))
        owner, _, last = name.rpartition(".")
        setattr(model.get_submodule(owner), last, filled[id(empty)])
    return model.eval()


def _in_jax(recipe: Recipe) -> Any:
    """An equinox module on JAX's default device."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    import attnbook.jax
    from attnbook.pretrained import jax_encoders

    make = partial(_class(recipe.kind, attnbook.jax, jax_encoders), **recipe.options)
    empty = eqx.filter_eval_shape(make, key=jax.random.key(0))
    name_of = partial(jax.tree_util.keystr, simple=True, separator=".")

    def filled(path: Any, leaf: Any) -> Any:
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        return jnp.array(_taken(recipe, name_of(path), leaf.shape), dtype=jnp.float32)

    return jax.tree_util.tree_map_with_path(filled, empty)


def _taken(recipe: Recipe, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The array of a parameter, which the recipe then no longer holds."""
    array = recipe.parameters.pop(name)
    if array.shape != tuple(shape):
        raise ValueError(f"{name}: got shape {array.shape}, expected {tuple(shape)}")
    return array


def _class(kind: str, *modules: Any) -> Any:
    return next(getattr(module, kind) for module in modules if hasattr(module, kind))
