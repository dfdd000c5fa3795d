"""Training in PyTorch."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from attnbook import training
from attnbook.training import Batch, History

Model = TypeVar("Model", bound=nn.Module)


def train(
    model: Model,
    loss: Callable[..., Tensor],
    batches: Sequence[Batch] | Iterator[Batch],
    *,
    learning_rate: float | Sequence[float],
    gate: tuple[int, float] | None = None,
    name: str = "PyTorch",
) -> tuple[Model, History]:
    """Minimise a loss with Adam, one step a batch; attnbook.jax.train is the twin.

    Args:
        model: changed in place.
        loss: of the model and a batch's tensors, a scalar.
        batches: tuples of NumPy arrays, which go to the model's device.
        learning_rate: one for all steps, or one a step.
        gate: (steps, loss): a training whose loss, averaged over the 20 steps before, is larger
            than this after so many steps ends at once.
        name: what the progress bar says.

    Returns:
        The model and the history of its losses.

    Raises:
        ValueError: no batch, learning rates that do not fit.
        TrainingFailed: a loss that is not finite; a gate that is not met.

    Source: Kingma and Ba (2015), algorithm 1.
    """
    optimiser = torch.optim.Adam(model.parameters(), lr=0.0)
    device = next(model.parameters()).device

    def step(batch: Batch, rate: float) -> Tensor:
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        value = loss(model, *(torch.tensor(a, device=device) for a in batch))
        torch.autograd.backward(value)
        optimiser.step()
        return value.detach()

    return model, training.run(step, batches, learning_rate, gate, name)
