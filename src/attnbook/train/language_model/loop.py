"""The loop of the trainer, the same for every back end: steps, what is logged, what is saved."""

import math
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from tqdm import tqdm

from attnbook.train.language_model.folder import Folder, Metrics, check_loss, own_folder
from attnbook.train.language_model.options import Options
from attnbook.train.language_model.text import TrainingText
from attnbook.train.language_model.workers import Refused, Workers, barrier

# PyTorch's words on a CPU and on a GPU, and JAX's
NO_ROOM = re.compile("out of memory|allocate|RESOURCE_EXHAUSTED", re.IGNORECASE)


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


def train_loop(
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
        return _train_loop(options, text, workers, make)


def _train_loop(
    options: Options, text: TrainingText, workers: Workers, make: Callable[[], Run]
) -> list[float]:
    folder = Folder(options, text, workers)
    with _within_memory("--embed-dim", f"{options.embed_dim} with {options.layers} layers"):
        run = make()
    newest = folder.newest
    if newest is not None:
        barrier(workers, lambda: run.load(newest))
    open_metrics = partial(Metrics, options.metrics, folder.step, workers.rank)
    metrics = barrier(workers, partial(open_metrics, resume=options.resume))
    logged: list[float] = []
    held_out: float | None = None
    with _bar(options.steps, folder.step, workers.rank) as bar:
        for step in range(folder.step + 1, options.steps + 1):
            saving = step % options.every == 0 or step == options.steps
            with _within_memory("--rows, --window", f"{options.rows}, {options.window}"):
                found = run.step(text, step)
                if saving or step % options.log_every == 0:  # JAX, which goes ahead, fails here
                    logged.append(check_loss(run.loss(found), step))
                    held_out = run.held_out(text) if saving else None
                    metrics.write(step, logged[-1], held_out)
                    bar.set_postfix(loss=f"{logged[-1]:.4f}", refresh=False)
            bar.update()
            if saving:
                barrier(workers, metrics.check)
                folder.save(step, run.save)
    if workers.rank == 0:
        print(_summary(options, folder.step, logged, held_out), flush=True)
    return logged


@contextmanager
def _within_memory(name: str, got: str) -> Iterator[None]:
    """A word on the option, and on what it got, where the memory does not hold it."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # a back end's own is a RuntimeError
        said = str(error) or type(error).__name__
        if isinstance(error, RuntimeError) and not NO_ROOM.search(said):
            raise
        why = said.splitlines()[0]
        raise Refused(f"{name}: got {got}, expected what the memory holds ({why})") from error


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
