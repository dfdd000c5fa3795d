"""The trainer's half in JAX: the devices of one process, or of all that were started together.

The program is the same for one device and for many. Where the parameters lie is said once: a copy
on each device, or 1/W of each array; a step's rows are split over the devices in either case. The
compiler inserts what has to travel. Initial parameters are drawn by JAX's own generator from the
seed: other numbers than PyTorch draws from it, the same for any number of devices.

Source: Rajbhandari, Rasley, Ruwase and He (2020) for shares; Xu et al. (2021) for placements that
the compiler propagates.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax import Array
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from attnbook.jax.sharding import make_mesh, shard
from attnbook.jax.training import adam, descend
from attnbook.jax.transformer import DecoderOnly
from attnbook.train.language_model.options import Options
from attnbook.train.language_model.text import text_loss

CLIP = 1.0  # a longer gradient is shortened to this
ARRAYS = "arrays"  # Orbax's folder within a checkpoint
GIVEN = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID")


@contextmanager
def workers(options: Options) -> Iterator[None]:
    """Meet the other workers, if Slurm or three variables say that there are some."""
    if options.device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    joined = _join()
    exact = None if options.precision == "bfloat16" else "highest"  # no TF32 in the name of float32
    with jax.default_matmul_precision(exact):
        yield
    if joined:
        jax.distributed.shutdown()


def _join() -> bool:
    """Whether several processes were started; JAX then sees the devices of all of them."""
    if all(name in os.environ for name in GIVEN):
        address, count, process = (os.environ[name] for name in GIVEN)
        jax.distributed.initialize(address, int(count), int(process))
    elif "SLURM_STEP_NODELIST" in os.environ and os.environ.get("SLURM_NTASKS", "1") != "1":
        jax.distributed.initialize()  # JAX knows Slurm's variables
    else:
        return False
    return True


class Run:
    """A model and its optimiser, as copies on the devices or in shares.

    Args:
        options: of the run; the seed decides the parameters, the same for any number of devices.
            Mode none computes on one device, ddp and fsdp on all that JAX has.
        vocab_size: tokens of the text.
    """

    def __init__(self, options: Options, vocab_size: int) -> None:
        self.options, self.rank = options, jax.process_index()
        self.mode = options.mode_of(jax.device_count(), jax.process_count())
        self.mesh = make_mesh(1 if self.mode == "none" else None)
        self.split_rows = NamedSharding(self.mesh, P(self.mesh.axis_names[0]))
        self.optimiser = adam(CLIP)
        model, self.state = self._start(vocab_size)
        self.learned, self.fixed = eqx.partition(model, eqx.is_inexact_array)
        placed = jax.tree.map(lambda array: array.sharding, (self.learned, self.state))
        whole = NamedSharding(self.mesh, P())
        self._change = jax.jit(self._descend, donate_argnums=(0, 1), out_shardings=(*placed, whole))
        self._measure = jax.jit(self._loss, out_shardings=whole)
        self._logits = jax.jit(lambda learned, tokens: eqx.combine(learned, self.fixed)(tokens))

    def step(self, batch: np.ndarray, rate: float, step: int) -> float:
        """One step of Adam; gives the mean loss of the whole batch, in nats a token."""
        rows = self._split_rows(batch)
        self.learned, self.state, loss = self._change(self.learned, self.state, rows, rate, step)
        return float(loss)

    def measure(self, batch: np.ndarray) -> float:
        """The mean loss of a batch, in nats a token; nothing is learned or left out."""
        return float(self._measure(self.learned, self._split_rows(batch)))

    def logits(self, tokens: np.ndarray) -> np.ndarray:
        """What the model gives for tokens (rows, window), of shape (rows, window, vocab)."""
        return np.asarray(self._logits(self.learned, tokens.astype(np.int32)))

    def save(self, folder: Path) -> None:
        """Write this process's pieces of parameters and state; returns when all processes have."""
        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save(folder.resolve() / ARRAYS, self._by_name())

    def load(self, folder: Path) -> None:
        """Take parameters and state from a checkpoint, of any number of devices."""
        arrays = self._by_name()
        like = {name: ocp.utils.to_shape_dtype_struct(array) for name, array in arrays.items()}
        with ocp.StandardCheckpointer() as checkpointer:
            found = checkpointer.restore(folder.resolve() / ARRAYS, like)
        structure = jax.tree.structure((self.learned, self.state))
        self.learned, self.state = jax.tree.unflatten(structure, [found[name] for name in arrays])

    def _by_name(self) -> dict[str, Array]:
        """All arrays, by names such as 0.decoder.0.mlp.hidden.weight."""
        found = jax.tree.leaves_with_path((self.learned, self.state))
        return {jax.tree_util.keystr(path, simple=True, separator="."): a for path, a in found}

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
            return self._loss(now, rows, key)

        return descend(loss, self.optimiser, learned, state, rate, o.weight_decay)

    def _loss(self, learned: Any, rows: Array, key: Array | None = None) -> Array:
        """The mean cross-entropy of each token's next one."""
        if self.options.precision == "bfloat16":  # products in it; the parameters stay as they are
            learned = jax.tree.map(lambda array: array.astype(jnp.bfloat16), learned)

        def model(tokens: Array) -> Array:
            logits: Array = eqx.combine(learned, self.fixed)(tokens, key=key)
            return logits

        loss: Array = text_loss(model, rows)
        return loss

    def _split_rows(self, rows: np.ndarray) -> Array:
        """Rows that every process has whole, split over the devices by their place."""
        rows = rows.astype(np.int32)
        return jax.make_array_from_callback(rows.shape, self.split_rows, lambda part: rows[part])
