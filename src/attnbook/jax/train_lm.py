"""The trainer's half in JAX: the devices of one process, or of all that were started together.

The program is the same for one device and for many. Where the parameters lie is said once: a copy
on each device, or 1/W of each array; a step's rows are split over the devices in either case. The
compiler inserts what has to travel. Initial parameters are drawn by JAX's own generator from the
seed: other numbers than PyTorch draws from it, the same for any number of devices.

Source: Rajbhandari, Rasley, Ruwase and He (2020) for shares; Xu et al. (2021) for placements that
the compiler propagates.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from attnbook.jax import pieces, processes
from attnbook.jax.sharding import make_mesh, shard
from attnbook.jax.training import adam, descend
from attnbook.jax.transformer import DecoderOnly
from attnbook.train.language_model.loop import train_loop
from attnbook.train.language_model.options import Options
from attnbook.train.language_model.text import TrainingText, held_out_windows, text_loss
from attnbook.train.language_model.workers import REFUSED, Refused, Workers, barrier, leave_if_lost
from attnbook.train.training import step_batch

CLIP = 1.0  # a longer gradient is shortened to this
MESSAGE = 8192  # bytes of what one worker says to the others, at most


class Group:
    """The processes that jax.distributed has joined, or this one alone."""

    def __init__(self) -> None:
        self.rank, self.world = jax.process_index(), jax.process_count()

    def gather(self, message: str) -> list[str]:
        """What every worker has to say, by rank; waits for all of them."""
        if self.world == 1:
            return [message]
        said = message.encode()[:MESSAGE].ljust(MESSAGE, b"\0")
        rows = multihost_utils.process_allgather(np.frombuffer(said, np.uint8))
        return [row.tobytes().rstrip(b"\0").decode(errors="replace") for row in rows]


@contextmanager
def workers(options: Options) -> Iterator[Group]:
    """Meet the other workers, and part from them at the end.

    Where a worker is lost the others cannot go on: each says so in a line and ends.

    Args:
        options: of the run; who the others are, the environment says.
    """
    if options.device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    try:
        joined = processes.join()
    except ValueError as error:
        print(error, file=sys.stderr, flush=True)
        sys.exit(REFUSED)
    group = Group()
    try:
        yield group
    except RuntimeError as error:
        leave_if_lost(group, error)
        raise
    if joined:
        jax.distributed.shutdown()


def train(options: Options, text: TrainingText, workers: Workers) -> list[float]:
    """Train from the newest checkpoint, or from the beginning.

    Args:
        options: of the run. Mode none computes on one device, ddp and fsdp on all that JAX has.
        text: as tokens.
        workers: what `workers` gave.

    Returns:
        The losses of the logged steps that this process took, in nats a token.

    Raises:
        Refused: rows that the devices cannot share, a folder or a checkpoint that does not fit, no
            room for one, a loss that is none.
    """
    barrier(workers, partial(_check_rows, options))
    exact = None if options.precision == "bfloat16" else "highest"  # no TF32 in the name of float32
    with jax.enable_x64(options.precision == "float64"), jax.default_matmul_precision(exact):
        return train_loop(options, text, workers, partial(Run, options, len(text.vocabulary)))


class Run:
    """A model and its optimiser, as copies on the devices or in shares.

    Args:
        options: of the run; the seed decides the parameters, the same for any number of devices.
        vocab_size: tokens of the text.
    """

    def __init__(self, options: Options, vocab_size: int) -> None:
        self.options, self.rates = options, options.rates()
        self.mode, devices = mode_and_devices(options)
        self.mesh = make_mesh(devices)
        self.split_rows = NamedSharding(self.mesh, P(self.mesh.axis_names[0]))
        self.optimiser = adam(CLIP)
        model, self.state = self._start(vocab_size)
        self.learned, self.fixed = eqx.partition(model, eqx.is_inexact_array)
        placed = jax.tree.map(lambda array: array.sharding, (self.learned, self.state))
        whole = NamedSharding(self.mesh, P())
        self._change = jax.jit(self._descend, donate_argnums=(0, 1), out_shardings=(*placed, whole))
        self._measure = jax.jit(self._loss, out_shardings=whole)

    def step(self, text: TrainingText, step: int) -> Array:
        """One step of Adam; gives the loss of the whole batch, which need not be known yet."""
        o = self.options
        rows = step_batch(text.train, step, rows=o.rows, window=o.window, seed=o.seed)
        self.learned, self.state, value = self._change(
            self.learned, self.state, self._split_rows(rows), float(self.rates[step - 1]), step
        )
        return value

    def loss(self, found: Array) -> float:
        """The mean loss of a step, in nats a token; waits for the devices."""
        return float(found)

    def held_out(self, text: TrainingText) -> float:
        """The mean loss on windows of the held-out text, in nats a token; a batch at a time."""
        rows = self.options.rows
        windows, counts = held_out_windows(text, self.options.window, rows)
        total = 0.0
        for first in range(0, len(windows), rows):
            part = slice(first, first + rows)
            mean = self._measure(
                self.learned, self._split_rows(windows[part]), self._split_rows(counts[part])
            )
            total += float(mean) * int(counts[part].sum())
        return total / int(counts.sum())

    def save(self, folder: Path) -> None:
        """Put this process's pieces of parameters and state into a folder.

        Raises:
            OSError: no room, no permission.
        """
        pieces.save(folder, {"learned": self.learned, "state": self.state})

    def load(self, folder: Path) -> None:
        """Take parameters and state from a checkpoint, of any number of devices.

        Raises:
            Refused: it holds arrays of other names or shapes.
        """
        try:
            found = pieces.load(folder, {"learned": self.learned, "state": self.state})
        except ValueError as error:
            raise Refused(f"--resume: {error}") from None
        self.learned, self.state = found["learned"], found["state"]

    def _start(self, vocab_size: int) -> tuple[DecoderOnly, Any]:
        """The writer of chapter 8 and Adam's state before the first step, drawn where they lie."""
        o, kind = self.options, "fsdp" if self.mode == "fsdp" else "ddp"

        @eqx.filter_jit
        def draw(key: Array) -> Any:
            width = o.embed_dim
            sizes = vocab_size, o.window, width, o.heads, 4 * width, o.layers
            model = DecoderOnly(*sizes, dropout=o.dropout, key=key)
            state = self.optimiser.init(eqx.filter(model, eqx.is_inexact_array))
            return shard((model, state), self.mesh, kind)

        return draw(jax.random.key(o.seed))

    def _descend(self, learned: Any, state: Any, rows: Array, rate: Array, step: Array) -> Any:
        o, key = self.options, None
        if o.dropout > 0:  # what is left out depends on seed and step alone
            key = jax.random.fold_in(jax.random.key(o.seed), step)

        def loss(now: Any) -> Array:
            return self._loss(now, rows, key=key)

        return descend(loss, self.optimiser, learned, state, rate, o.weight_decay)

    def _loss(
        self, learned: Any, rows: Array, counts: Array | None = None, key: Array | None = None
    ) -> Array:
        """The mean cross-entropy of each token's next one, over the rows that count."""
        if self.options.precision == "bfloat16":  # products in it; the parameters stay as they are
            learned = jax.tree.map(lambda array: array.astype(jnp.bfloat16), learned)

        def model(tokens: Array) -> Array:
            logits = eqx.combine(learned, self.fixed)(tokens, key=key)
            return logits.astype(jnp.promote_types(logits.dtype, jnp.float32))

        shape = (rows.shape[0], rows.shape[1] - 1)
        mask = None if counts is None else jnp.broadcast_to(counts[:, None], shape)
        loss: Array = text_loss(model, rows, mask)
        return loss

    def _split_rows(self, rows: np.ndarray) -> Array:
        """Rows that every process has whole, split over the devices by their place."""
        rows = rows.astype(np.int32) if rows.dtype == np.int64 else rows
        return jax.make_array_from_callback(rows.shape, self.split_rows, lambda part: rows[part])


def mode_and_devices(options: Options) -> tuple[str, int]:
    """The mode, and on how many devices it computes: none on one, the others on all.

    Args:
        options: where no mode was asked for, there are copies if JAX has several devices.
    """
    devices = len(jax.devices())
    mode = options.mode_of(devices)
    return mode, 1 if mode == "none" else devices


def _check_rows(options: Options) -> None:
    _, devices = mode_and_devices(options)
    if options.rows % devices:
        got = f"got {options.rows}, expected a multiple of {devices}"
        raise Refused(f"--rows: {got}, the devices; or --mode none, which uses one")
