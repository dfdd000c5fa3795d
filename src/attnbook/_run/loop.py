"""The loop of the trainer, the same for every back end: steps, what is logged, what is saved."""

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from tqdm import tqdm

from attnbook._run.folder import Folder, Metrics, check_loss, own_folder
from attnbook._run.options import Options
from attnbook._run.text import TrainingText
from attnbook._run.workers import Workers, agreed


class Run(Protocol):
    """A model and its optimiser in a back end, on one device or on many."""

    def step(self, text: TrainingText, step: int) -> Any:
        """One step of Adam; gives what `loss` reads."""
        ...

    def loss(self, found: Any) -> float:
        """The mean loss of a step over all workers, in nats a token; waits for the devices."""
        ...

    def held_out(self, text: TrainingText) -> float:
        """The mean loss on windows of the held-out text, in nats a token."""
        ...

    def save(self, folder: Path) -> None:
        """Put this worker's share of parameters and state into a folder."""
        ...

    def load(self, folder: Path) -> None:
        """Take parameters and state from a checkpoint, of any number of workers."""
        ...


def follow(
    options: Options, text: TrainingText, workers: Workers, make: Callable[[], Run]
) -> list[float]:
    """Take the steps that are left after the newest checkpoint, or all of them.

    Args:
        options: of the run.
        text: as tokens.
        workers: of whom rank 0 writes metrics and shows how far it is.
        make: the back end's model and optimiser, once nothing is refused any more.

    Returns:
        The losses of the logged steps that this process took, in nats a token.

    Raises:
        Refused: a folder or a checkpoint that does not fit, no room for one, a loss that is none.
    """
    with own_folder(options, workers):
        return _follow(options, text, workers, make)


def _follow(
    options: Options, text: TrainingText, workers: Workers, make: Callable[[], Run]
) -> list[float]:
    folder = Folder(options, text, workers)
    run, newest = make(), folder.newest
    if newest is not None:
        agreed(workers, lambda: run.load(newest))
    metrics = agreed(workers, lambda: Metrics(options.metrics, folder.step, workers.rank))
    logged: list[float] = []
    held_out: float | None = None
    with _bar(options.steps, folder.step, workers.rank) as bar:
        for step in range(folder.step + 1, options.steps + 1):
            found = run.step(text, step)
            saving = step % options.every == 0 or step == options.steps
            if saving or step % options.log_every == 0:
                logged.append(check_loss(run.loss(found), step))
                held_out = run.held_out(text) if saving else None
                metrics.write(step, logged[-1], held_out)
                bar.set_postfix(loss=f"{logged[-1]:.4f}", refresh=False)
            bar.update()
            if saving:
                agreed(workers, metrics.check)
                folder.save(step, run.save)
    if workers.rank == 0:
        print(_summary(options, folder.step, logged, held_out), flush=True)
    return logged


def _bar(steps: int, begun: int, rank: int) -> Any:
    """Progress on stderr, of rank 0; rarely a line where nobody watches."""
    often = 0.1 if sys.stderr.isatty() else 10.0
    return tqdm(
        total=steps,
        initial=begun,
        desc="train_lm",
        unit="step",
        disable=rank > 0 or begun >= steps,
        mininterval=often,
    )


def _summary(options: Options, begun: int, logged: list[float], held_out: float | None) -> str:
    """What a person wants to know at the end."""
    if not logged or held_out is None:
        return f"step {begun} of {options.steps}: nothing left to do"
    bits = held_out / math.log(2)
    loss = f"loss {logged[-1]:.4f}, held out {held_out:.4f} nats ({bits:.3f} bits) a token"
    return f"step {options.steps}: {loss}"
