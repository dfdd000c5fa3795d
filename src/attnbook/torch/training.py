"""Training in PyTorch."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from attnbook._validation import check_function, positive_or_none
from attnbook.train import training
from attnbook.train.batches import check_loss
from attnbook.train.training import Batch, History

Model = TypeVar("Model", bound=nn.Module)


def train(
    model: Model,
    loss: Callable[..., Tensor],
    batches: Sequence[Batch] | Iterator[Batch],
    *,
    learning_rate: float | Sequence[float],
    clip: float | None = None,
    gate: tuple[int, float] | None = None,
    name: str = "PyTorch",
) -> tuple[Model, History]:
    """Minimise a loss with Adam, one step a batch; attnbook.jax.train is the twin.

    Args:
        model: changed in place. In training mode, in which a layer is made, its dropout acts.
        loss: of the model and a batch's tensors, a scalar.
        batches: tuples of NumPy arrays, or of tensors as a DataLoader gives them; they go to the
            model's device.
        learning_rate: one for all steps, or one per step.
        clip: a gradient whose norm, over all parameters, is larger is scaled down to this.
        gate: (steps, loss): a training whose loss, averaged over the 20 steps before, is larger
            than this after so many steps ends at once.
        name: what the progress bar says.

    Returns:
        The model and the history of its losses.

    Raises:
        ValueError: no batch, learning rates that do not fit, a clip that is not above 0; a gate
            that the run does not reach; a loss that is no number; a model with nothing to learn.
        TypeError: a loss that is no function, batches that are no tuples of arrays.
        TrainingFailed: a loss that is not finite; a gate that is not met.

    Source: Kingma and Ba (2015), algorithm 1; clip: Pascanu, Mikolov and Bengio (2013).
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: got a {type(model).__name__}, expected a torch.nn.Module")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("model: got no parameter that learns, expected at least one")
    check_function("the mean squared error", loss=loss)
    limit = positive_or_none(clip=clip)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.0)
    device = next(model.parameters()).device

    def moved(array: Any) -> Tensor:
        if isinstance(array, Tensor):
            return array.to(device)
        return torch.tensor(array, device=device)  # a copy: NumPy's may not be written to

    def step(batch: Batch, rate: float) -> Tensor:
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        value = check_loss(loss(model, *map(moved, batch)))
        if not value.requires_grad:
            raise ValueError("loss: gave a constant, expected a number that depends on the model")
        torch.autograd.backward(value)
        if limit is not None:
            nn.utils.clip_grad_norm_(model.parameters(), limit)
        optimiser.step()
        return value.detach()

    return model, training.run(step, batches, learning_rate, gate, name)
