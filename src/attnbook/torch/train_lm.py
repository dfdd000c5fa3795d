"""The trainer's half in PyTorch: one process, or those that torchrun starts.

With several workers each computes the loss of its rows, an equal share. Copies (DDP) average the
gradients; shares (FSDP2) keep 1/W of every parameter, gradient and state of Adam, and gather a
block's parameters when it is its turn.

Source: Li et al. (2020) for copies; Rajbhandari, Rasley, Ruwase and He (2020) and Zhao et al.
(2023) for shares.
"""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import HashStore, PrefixStore, Store, TCPStore  # type: ignore[attr-defined]
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

from attnbook import devices
from attnbook.distributed.meeting import MEETING, agreed_word
from attnbook.torch.checkpoint_reader import read_checkpoint
from attnbook.torch.transformer import DecoderOnly
from attnbook.train.language_model.loop import train_loop
from attnbook.train.language_model.options import Options
from attnbook.train.language_model.text import TrainingText, held_out_windows, text_loss
from attnbook.train.language_model.workers import Refused, Workers, leave_if_lost, share
from attnbook.train.training import step_batch

CLIP = 1.0  # a longer gradient is shortened to this
HELD_OUT_ROWS = 4  # times the rows of a step: nothing is kept for gradients


class Group:
    """The processes of a launcher, or this one alone.

    Args:
        device: on which this one computes.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        there = dist.is_initialized()
        self.rank, self.world = (dist.get_rank(), dist.get_world_size()) if there else (0, 1)

    def gather(self, message: str) -> list[str]:
        """What every worker has to say, by rank; waits for all of them."""
        said: list[Any] = [message] * self.world
        if self.world > 1:
            dist.all_gather_object(said, message)
        return said

    def total(self, number: Tensor) -> Tensor:
        """The sum of a number over the workers."""
        if self.world > 1:
            dist.all_reduce(number)
        return number


@contextmanager
def workers(options: Options) -> Iterator[Group]:
    """Meet the other workers, and part from them at the end.

    Where a worker is lost the others cannot go on: each says so in a line and ends.

    Args:
        options: with mode ddp or fsdp and no launcher there is a group of one.
    """
    launched = "RANK" in os.environ and "WORLD_SIZE" in os.environ
    device = _device(options)
    if launched:
        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        dist.init_process_group(_backend(device), store=_store(), rank=rank, world_size=world)
    elif options.mode in ("ddp", "fsdp"):
        dist.init_process_group(_backend(device), store=HashStore(), rank=0, world_size=1)
    group = Group(device)
    try:
        with _quiet():
            yield group
        if launched:
            dist.barrier()  # DDP's last collectives must be over everywhere
    except RuntimeError as error:
        leave_if_lost(group, error)
        raise
    if dist.is_initialized():
        dist.destroy_process_group()


def train(options: Options, text: TrainingText, workers: Workers) -> list[float]:
    """Train from the newest checkpoint, or from the beginning.

    Args:
        options: of the run.
        text: as tokens.
        workers: what `workers` gave.

    Returns:
        The losses of the logged steps that this process took, in nats a token.

    Raises:
        Refused: a folder or a checkpoint that does not fit, no room for one, a loss that is none.
    """
    group = workers if isinstance(workers, Group) else Group(_device(options))
    return train_loop(options, text, group, lambda: Run(options, len(text.vocabulary), group))


class Run:
    """A model and its optimiser, as copies or in shares.

    Args:
        options: of the run; the seed decides the parameters, the same for any number of workers.
        vocab_size: tokens of the text.
        group: of the workers.
    """

    def __init__(self, options: Options, vocab_size: int, group: Group) -> None:
        self.options, self.group = options, group
        self.rates = options.rates()
        self.mode = options.mode_of(group.world)
        self.model = _model(options, vocab_size).to(group.device)
        if self.mode == "fsdp":
            _shard(self.model, options, group)
        self.optimiser = adamw(self.model, options.weight_decay)
        self.wrapped: nn.Module = self.model
        if self.mode == "ddp":
            own = [group.device.index] if group.device.type == "cuda" else None
            self.wrapped = DistributedDataParallel(self.model, device_ids=own)

    def step(self, text: TrainingText, step: int) -> Tensor:
        """One step of Adam; gives the loss of this worker's rows, a float64."""
        options = self.options
        batch = step_batch(
            text.train, step, rows=options.rows, window=options.window, seed=options.seed
        )
        if options.dropout > 0:  # what is left out depends on seed, step and rank alone
            torch.manual_seed(_seed(options.seed, step, self.group.rank))
        for group in self.optimiser.param_groups:
            group["lr"] = float(self.rates[step - 1])
        self.optimiser.zero_grad()
        value = self._loss(share(batch, self.group.rank, self.group.world))
        torch.autograd.backward(value)
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimiser.step()
        return _wide(value)

    def loss(self, found: Tensor) -> float:
        """The mean loss of a step over all workers, in nats a token."""
        return float(self.group.total(found)) / self.group.world

    @torch.no_grad()
    def held_out(self, text: TrainingText) -> float:
        """The mean loss on windows of the held-out text, in nats a token.

        Every worker reads as many windows, for with FSDP2 each takes part in each gathering.
        """
        windows, counts = held_out_windows(text, self.options.window, self.group.world)
        rows = int(counts.sum())
        windows, counts = (share(a, self.group.rank, self.group.world) for a in (windows, counts))
        each = HELD_OUT_ROWS * max(1, self.options.rows // self.group.world)
        total = _wide(torch.zeros((), device=self.group.device))
        self.wrapped.eval()
        for first in range(0, len(windows), each):
            part = slice(first, first + each)
            total += _wide(self._loss(windows[part], counts[part])) * int(counts[part].sum())
        self.wrapped.train()
        return float(self.group.total(total)) / rows

    def save(self, folder: Path) -> None:
        """Put this worker's share of parameters and state into a folder.

        Raises:
            OSError: no room, no permission.
        """
        model, optimiser = get_state_dict(self.model, self.optimiser)
        try:
            save({"model": model, "optimiser": optimiser}, checkpoint_id=folder)
        except CheckpointException as failed:
            raise _reason(failed) from failed

    def load(self, folder: Path) -> None:
        """Take parameters and state from a checkpoint, of any number of workers.

        Raises:
            Refused: it cannot be read, or holds something else.
        """
        model, optimiser = get_state_dict(self.model, self.optimiser)
        state: dict[str, Any] = {"model": model, "optimiser": optimiser}
        try:
            read_checkpoint(folder, state)
        except ValueError as error:
            raise Refused(f"--resume: {error}") from None
        set_state_dict(
            self.model,
            self.optimiser,
            model_state_dict=state["model"],
            optim_state_dict=state["optimiser"],
        )

    def _loss(self, windows: np.ndarray, counts: np.ndarray | None = None) -> Tensor:
        """The mean cross-entropy of each token's next one, over the windows that count."""
        tokens = torch.tensor(windows, device=self.group.device)
        mask = None
        if counts is not None:
            mask = torch.as_tensor(counts, device=tokens.device)[:, None].expand(
                tokens[:, 1:].shape
            )
        with self._precision():
            return text_loss(self.wrapped, tokens, mask)

    def _precision(self) -> AbstractContextManager[Any]:
        """Products in bfloat16 where that was asked for; FSDP2 sees to it itself."""
        if self.options.precision != "bfloat16" or self.mode == "fsdp":
            return nullcontext()
        return torch.autocast(self.group.device.type, dtype=torch.bfloat16)


def _model(options: Options, vocab_size: int) -> DecoderOnly:
    """The writer of chapter 8, in the sizes of the options."""
    width = options.embed_dim
    torch.manual_seed(options.seed)
    sizes = vocab_size, options.window, width, options.heads, 4 * width, options.layers
    model = DecoderOnly(*sizes, dropout=options.dropout)
    return model.double() if options.precision == "float64" else model


def adamw(model: nn.Module, weight_decay: float) -> torch.optim.AdamW:
    """AdamW; a matrix, a table of vectors too, loses rate × weight_decay of itself in a step.

    Args:
        model: whose parameters learn.
        weight_decay: of matrices; vectors, such as biases and the gains of norms, have none.
    """
    learned = list(model.parameters())
    matrices = {"params": [p for p in learned if p.ndim > 1], "weight_decay": weight_decay}
    vectors = {"params": [p for p in learned if p.ndim < 2], "weight_decay": 0.0}
    return torch.optim.AdamW([matrices, vectors], lr=0.0)


def _wide(number: Tensor) -> Tensor:
    """In float64; Apple's GPUs have none, so there it comes to the CPU."""
    number = number.detach()
    return (number.cpu() if number.device.type == "mps" else number).double()


def _seed(*parts: int) -> int:
    """One seed from several numbers; neighbours have nothing in common."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> 1)


def _shard(model: DecoderOnly, options: Options, group: Group) -> None:
    """Leave 1/W of every parameter here: each block is gathered by itself, then what is left."""
    half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    policy = half if options.precision == "bfloat16" else MixedPrecisionPolicy()
    mesh = init_device_mesh(group.device.type, (group.world,))
    for block in model.decoder:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)


def _device(options: Options) -> torch.device:
    """This worker's own GPU, or the CPU where there are fewer GPUs than workers."""
    if options.device == "cpu":
        return torch.device("cpu")
    if "RANK" not in os.environ and options.mode not in ("ddp", "fsdp"):
        found: torch.device = devices.torch_device(double=options.precision == "float64")
        return found
    local = int(os.environ.get("LOCAL_RANK", 0))
    beside = int(os.environ.get("LOCAL_WORLD_SIZE", local + 1))
    cards = torch.cuda.device_count()
    if beside > cards:
        if cards and local == 0:  # else nobody would know why it is slow
            said = f"{beside} workers and {cards} GPU here: all workers compute on the CPU"
            print(said, file=sys.stderr, flush=True)
        return torch.device("cpu")
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def _backend(device: torch.device) -> str:
    return "nccl" if device.type == "cuda" else "gloo"


def _store() -> Store:
    """Where the workers find each other, with nothing in it of workers that are gone.

    torchrun's own store outlives a restart, and gloo would connect to the addresses that are left
    in it. So the workers of each start agree on a word, which comes before all their keys.
    """
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != str(True):
        return TCPStore(address, port, is_master=rank == 0, timeout=MEETING, multi_tenant=True)
    store = TCPStore(address, port, is_master=False, timeout=MEETING)
    return PrefixStore(agreed_word(store, rank, world), store)


def _reason(failed: CheckpointException) -> OSError:
    """Why a checkpoint could not be written, of the first worker that failed."""
    rank, (error, _) = min(failed.failures.items())
    if isinstance(error, OSError):
        return error
    return OSError(f"a file of rank {rank} cut short")  # PyTorch's writer says where, not why


@contextmanager
def _quiet() -> Iterator[None]:
    """Without words on what is meant: one process alone saves; nobody writes into the logits."""
    with warnings.catch_warnings():
        for said in (".*single process", ".*is deprecated", "FSDP2-wrapped module .* a view"):
            warnings.filterwarnings("ignore", message=said)
        yield
