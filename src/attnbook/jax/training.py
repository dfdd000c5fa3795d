"""Training in JAX."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import optax
from jax import Array
from jaxtyping import PRNGKeyArray

from attnbook._validation import check_function, positive_or_none
from attnbook.jax.dropout import check_key_or_none
from attnbook.train import training
from attnbook.train.batches import check_loss
from attnbook.train.training import Batch, History

Model = TypeVar("Model")  # an Equinox module, or any other tree of arrays


def train(
    model: Model,
    loss: Callable[..., Array],
    batches: Sequence[Batch] | Iterator[Batch],
    *,
    learning_rate: float | Sequence[float],
    clip: float | None = None,
    gate: tuple[int, float] | None = None,
    name: str = "JAX",
    key: PRNGKeyArray | None = None,
) -> tuple[Model, History]:
    """Minimise a loss with Adam, one step a batch; attnbook.torch.train is the twin.

    Args:
        model: a layer, or any other tree of arrays; left as it is.
        loss: of the model and a batch's arrays, a scalar.
        batches: tuples of NumPy arrays; a new shape among them compiles anew.
        learning_rate: one for all steps, or one per step.
        clip: a gradient whose norm, over all parameters, is larger is scaled down to this.
        gate: (steps, loss): a training whose loss, averaged over the 20 steps before, is larger
            than this after so many steps ends at once.
        name: what the progress bar says.
        key: a random key, for dropout: the loss is then called with key=, a new one every step, to
            hand on to the layers. Without it nothing is left out.

    Returns:
        The trained model and the history of its losses.

    Raises:
        ValueError: no batch, learning rates that do not fit, a clip that is not above 0; a gate
            that the run does not reach; a loss that is no number; a model with nothing to learn.
        TypeError: a loss that is no function, batches that are no tuples of arrays.
        TrainingFailed: a loss that is not finite; a gate that is not met.

    Source: Kingma and Ba (2015), algorithm 1; clip: Pascanu, Mikolov and Bengio (2013).
    """
    check_function("the mean squared error", loss=loss)
    optimiser = adam(positive_or_none(clip=clip))
    check_key_or_none(key)
    learned, fixed = eqx.partition(model, eqx.is_inexact_array)
    if not jax.tree.leaves(learned):
        raise ValueError("model: got no parameter that learns, expected at least one")
    state = optimiser.init(learned)

    @jax.jit
    def change(learned: Any, state: Any, batch: Any, rate: float, now: Any) -> Any:
        def of_learned(learned: Any) -> Array:
            random = {} if now is None else {"key": now}
            return check_loss(loss(eqx.combine(learned, fixed), *batch, **random))

        return descend(of_learned, optimiser, learned, state, rate)

    def step(batch: Batch, rate: float) -> Array:
        nonlocal learned, state, key
        now = None
        if key is not None:
            key, now = jax.random.split(key)
        learned, state, value = change(learned, state, batch, rate, now)
        return value

    history = training.run(step, batches, learning_rate, gate, name)
    return eqx.combine(learned, fixed), history


def adam(limit: float | None) -> optax.GradientTransformation:
    """Adam's direction, of gradients that are scaled down to a norm of at most limit."""
    clipped = [] if limit is None else [optax.clip_by_global_norm(limit)]
    return optax.chain(*clipped, optax.scale_by_adam())


def descend(
    loss: Callable[[Any], Array],
    optimiser: Any,
    learned: Any,
    state: Any,
    rate: Any,
    weight_decay: float = 0.0,
) -> tuple[Any, Any, Array]:
    """One step: parameters and the optimiser's state after it, and the loss before it.

    A matrix, a table of vectors too, loses rate × weight_decay of itself (Loshchilov and Hutter,
    2019).
    """
    value, gradient = jax.value_and_grad(loss)(learned)
    direction, state = optimiser.update(gradient, state)

    def change(p: Array, d: Array) -> Array:
        return p - rate * (d if weight_decay == 0 or p.ndim < 2 else d + weight_decay * p)

    return jax.tree.map(change, learned, direction), state, value
