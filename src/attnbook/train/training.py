"""The training loop that both back ends share: a step for every batch, and what is kept of it."""

import math
import time
from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from tqdm import tqdm

from attnbook._validation import int_between, nonnegative_int, positive, positive_int
from attnbook.train.batches import check_all_used, check_batch, check_rates

Batch = tuple[np.ndarray, ...]

SHOWN = 20  # steps between two looks at the loss: to look at it waits for the device


class TrainingFailed(RuntimeError):
    """A training that need not be waited for: its loss is no number, or is not coming down."""


@dataclass(frozen=True)
class History:
    """What a training leaves beside the model.

    Args:
        losses: the loss of every step, before that step's change of the parameters.
        cpu_seconds: processor time of all threads, compilation included.
        first_seconds: of it, the first step, in which JAX compiles.
    """

    losses: Float[np.ndarray, " steps"]
    cpu_seconds: float
    first_seconds: float


def minibatches(
    arrays: Sequence[np.ndarray], *, size: int, steps: int, seed: int
) -> Iterator[Batch]:
    """Rows drawn anew for every step, the same for both back ends: without repeats in a batch.

    Args:
        arrays: a list or tuple of arrays of n rows each, such as inputs and labels.
        size: rows a batch, at most n.
        steps: the number of batches.
        seed: of NumPy's default generator.

    Raises:
        ValueError: arrays of different length, a size that is not from 1 to n.
        TypeError: what is no list of arrays; of a single one write [X].
    """
    if not isinstance(arrays, list | tuple):
        raise TypeError(f"arrays: got a {type(arrays).__name__}, expected a list such as [X]")
    rows = {len(a) for a in arrays}
    if len(rows) != 1:
        raise ValueError(f"arrays: got {sorted(rows)} rows, expected the same number in each")
    (n,) = rows
    int_between(1, n, size=size)
    rng = np.random.default_rng(seed)
    drawn = (rng.choice(n, size, replace=False) for _ in range(nonnegative_int(steps=steps)))
    return (tuple(a[batch] for a in arrays) for batch in drawn)


def step_batch(
    tokens: Int[np.ndarray, " n"], step: int, *, rows: int, window: int, seed: int
) -> Int[np.ndarray, "rows {window}+1"]:
    """The windows of a step, which depend on its number and the seed alone.

    Row i is tokens[f_i], …, tokens[f_i + window], where f_i is drawn evenly by a generator that
    (seed, step) starts. No step needs the one before it, so a training that was stopped goes on
    with the batches that it would have seen, and any number of workers shares them out.

    Args:
        tokens: a text as numbers, of shape (n,).
        step: the number of the step.
        rows: windows a batch.
        window: tokens that are read; one more follows them, so that each has a next one.
        seed: of the run.

    Returns:
        Integers of shape (rows, window + 1).

    Raises:
        ValueError: a text that is no row of more than window tokens, a number or a token that is no
            integer.
    """
    positive_int(rows=rows)
    if not isinstance(tokens, np.ndarray) or tokens.dtype.kind not in "iu":
        got = getattr(tokens, "dtype", type(tokens).__name__)
        raise ValueError(f"tokens: got {got}, expected a NumPy array of integers")
    if np.ndim(tokens) != 1 or len(tokens) <= positive_int(window=window):
        got = np.shape(tokens)
        raise ValueError(
            f"tokens: got shape {got}, expected (n,) with n above {window}, the window"
        )
    start = [nonnegative_int(seed=seed), nonnegative_int(step=step)]
    first = np.random.default_rng(start).integers(0, len(tokens) - window, size=(rows, 1))
    return tokens[first + np.arange(window + 1)]


def warm_cosine(peak: float, steps: int, *, warmup: int = 0) -> Float[np.ndarray, " steps"]:
    """Learning rates, peak · min(1, (t + 1) / warmup) · (1 + cos(π t / steps)) / 2 at step t.

    Args:
        peak: the largest rate, were there no fall.
        steps: of the training.
        warmup: steps of the rise; 0 for none.

    Raises:
        ValueError: a peak that is not above 0, a number of steps below 1, a longer rise.

    Source: the fall is Loshchilov and Hutter's (2017), equation 5; the rise Goyal et al.'s (2017).
    """
    positive(peak=peak)
    int_between(0, positive_int(steps=steps), warmup=warmup)
    t = np.arange(steps)
    rise = np.minimum(1, (t + 1) / max(1, warmup))
    return peak * rise * (1 + np.cos(np.pi * t / steps)) / 2


def run(
    step: Callable[[Batch, float], Any],
    batches: Sequence[Batch] | Iterator[Batch],
    learning_rate: float | Sequence[float],
    gate: tuple[int, float] | None,
    name: str,
) -> History:
    """Call step(batch, rate) for every batch, with a progress bar.

    Args:
        step: changes the parameters and gives the loss, an array of any library.
        batches: tuples of NumPy arrays.
        learning_rate: one for all steps, or one per step.
        gate: (steps, loss): after so many steps the loss, averaged over the last SHOWN of them,
            must not be above this.
        name: what the progress bar says.

    Raises:
        ValueError: no batch, more or fewer learning rates than batches, one below 0; a gate that
            the run does not reach.
        TypeError: batches that are no tuples of arrays.
        TrainingFailed: a loss that is not finite; a gate that is not met.
    """
    rates = check_rates(learning_rate)
    if isinstance(batches, Sized) and len(batches) > 0:
        check_all_used(len(batches), rates, gate)
    losses: list[Any] = []
    start = time.process_time()
    first_seconds = 0.0
    with tqdm(batches, desc=name, unit="step") as bar:
        for number, batch in enumerate(bar):
            if len(rates) > 1 and number >= len(rates):
                raise ValueError(f"learning_rate: got {len(rates)} numbers, expected one a batch")
            check_batch(batch)
            losses.append(step(batch, float(rates[min(number, len(rates) - 1)])))
            if number % SHOWN == 0:
                bar.set_postfix(loss=f"{_known(losses[-1:], number):.4g}")
            if number == 0:
                first_seconds = time.process_time() - start
            if gate is not None and number + 1 == gate[0]:
                loss = _known(losses[-SHOWN:], number)
                if loss > gate[1]:
                    what = f"{loss:.4g} after {gate[0]} steps, expected {gate[1]:.4g} or less"
                    raise TrainingFailed(f"the loss is {what}")
    if not losses:
        raise ValueError("batches: got none, expected at least one")
    _known(losses, len(losses))
    check_all_used(len(losses), rates, gate)  # an iterator's length is known now
    found = np.array([float(loss) for loss in losses])
    return History(found, time.process_time() - start, first_seconds)


def _known(losses: list[Any], number: int) -> float:
    """The mean of losses that are numbers."""
    mean = math.fsum(float(loss) for loss in losses) / len(losses)
    if not math.isfinite(mean):
        raise TrainingFailed(f"the loss is {mean} by step {number}: try a lower learning rate")
    return mean
