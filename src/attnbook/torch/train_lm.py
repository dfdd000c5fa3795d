"""The trainer's half in PyTorch: one process, or those that torchrun starts.

With several workers each computes the loss of its rows, an equal share. Copies (DDP) average the
gradients; shares (FSDP2) keep 1/W of every parameter, gradient and state of Adam, and gather a
block's parameters when it is its turn.

Source: Li et al. (2020) for copies; Rajbhandari, Rasley, Ruwase and He (2020) and Zhao et al.
(2023) for shares.
"""

import os
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import PrefixStore, rendezvous  # type: ignore[attr-defined]
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

from attnbook import devices
from attnbook.torch.transformer import DecoderOnly
from attnbook.train.language_model.options import Options, Refused
from attnbook.train.language_model.text import share, text_loss

CLIP = 1.0  # a longer gradient is shortened to this


@contextmanager
def workers(options: Options) -> Iterator[None]:
    """Meet the other workers of torchrun, if it has started any, and part from them at the end.

    Raises:
        Refused: several workers are asked for, and one was started.
    """
    launched = "LOCAL_RANK" in os.environ
    if launched:
        backend = "nccl" if _device(options).type == "cuda" else "gloo"
        store, rank, world = next(rendezvous("env://"))
        # torchrun's store outlives a restart, and the addresses in it are of workers that are gone.
        # Each of several launchers counts its own restarts: start those with --max-restarts 0.
        store = PrefixStore(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"), store)
        dist.init_process_group(backend, store=store, rank=rank, world_size=world)
    elif options.mode not in (None, "none"):
        started = "torchrun --nproc-per-node N -m attnbook.train_lm"
        raise Refused(
            f"--mode: got {options.mode} in one process, expected to start with {started}"
        )
    with warnings.catch_warnings():  # one process alone saves; nobody writes into the logits
        for said in (".*single process", ".*is deprecated", "FSDP2-wrapped module .* a view"):
            warnings.filterwarnings("ignore", message=said)
        yield
    if launched:
        dist.barrier()  # DDP's last collectives must be over everywhere
        dist.destroy_process_group()


class Run:
    """A model and its optimiser, as copies or in shares.

    Args:
        options: of the run; the seed decides the parameters, the same for any number of workers.
        vocab_size: tokens of the text.
    """

    def __init__(self, options: Options, vocab_size: int) -> None:
        self.options, self.device = options, _device(options)
        together = dist.is_initialized()
        self.rank, self.world = (dist.get_rank(), dist.get_world_size()) if together else (0, 1)
        self.mode = options.mode_of(self.world, self.world)
        width = options.embed_dim
        torch.manual_seed(options.seed)
        sizes = vocab_size, options.window, width, options.heads, 4 * width, options.layers
        self.model = DecoderOnly(*sizes, dropout=options.dropout).to(self.device)
        if self.mode == "fsdp":
            self._shard()
        self.optimiser = adamw(self.model, options.weight_decay)
        self.wrapped: nn.Module = self.model
        if self.mode == "ddp":
            own = [self.device.index] if self.device.type == "cuda" else None
            self.wrapped = DistributedDataParallel(self.model, device_ids=own)

    def step(self, batch: np.ndarray, rate: float, step: int) -> float:
        """One step of Adam; gives the mean loss over all workers, in nats a token."""
        if self.options.dropout > 0:  # what is left out depends on seed, step and rank alone
            entropy = np.random.SeedSequence([self.options.seed, step, self.rank])
            torch.manual_seed(int(entropy.generate_state(1)[0]))
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad()
        loss = self._loss(batch)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimiser.step()
        return self._mean(loss)

    @torch.no_grad()
    def measure(self, batch: np.ndarray) -> float:
        """The mean loss of a batch over all workers, in nats a token; nothing is left out."""
        self.wrapped.eval()
        loss = self._mean(self._loss(batch))
        self.wrapped.train()
        return loss

    @torch.no_grad()
    def logits(self, tokens: np.ndarray) -> np.ndarray:
        """What the model gives for tokens (rows, window), of shape (rows, window, vocab)."""
        found: Tensor = self.model.eval()(torch.as_tensor(tokens, device=self.device))
        return found.cpu().numpy()

    def save(self, folder: Path) -> None:
        """Write this worker's share of parameters and state; returns when all workers have."""
        model, optimiser = get_state_dict(self.model, self.optimiser)
        with _readable_failures():
            save({"model": model, "optimiser": optimiser}, checkpoint_id=folder)

    def load(self, folder: Path) -> None:
        """Take parameters and state from a checkpoint, of any number of workers."""
        model, optimiser = get_state_dict(self.model, self.optimiser)
        with _readable_failures():  # load changes the tensors where they are
            load({"model": model, "optimiser": optimiser}, checkpoint_id=folder)
        set_state_dict(
            self.model, self.optimiser, model_state_dict=model, optim_state_dict=optimiser
        )

    def _loss(self, batch: np.ndarray) -> Tensor:
        """The loss of this worker's rows."""
        rows = torch.tensor(share(batch, self.rank, self.world), device=self.device)
        half: AbstractContextManager[Any] = nullcontext()
        if self.options.precision == "bfloat16" and self.mode != "fsdp":  # which sees to it itself
            half = torch.autocast(self.device.type, dtype=torch.bfloat16)
        with half:
            return text_loss(self.wrapped, rows)

    def _mean(self, loss: Tensor) -> float:
        """The mean of a number over the workers."""
        loss = loss.detach()
        if self.world > 1:
            loss = loss.double()
            dist.all_reduce(loss)
        return float(loss) / self.world

    def _shard(self) -> None:
        """Leave 1/W of every parameter here: each block is gathered alone, then what is left."""
        half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        policy = half if self.options.precision == "bfloat16" else MixedPrecisionPolicy()
        mesh = init_device_mesh(self.device.type, (self.world,))
        for part in (*self.model.decoder, self.model):
            fully_shard(part, mesh=mesh, mp_policy=policy)


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


def _device(options: Options) -> torch.device:
    """This worker's own GPU, or the CPU where there is none."""
    if "LOCAL_RANK" not in os.environ and options.device == "auto":
        found: torch.device = devices.torch_device()
        return found
    if options.device == "cpu" or not torch.cuda.is_available():
        return torch.device("cpu")
    own = int(os.environ["LOCAL_RANK"])
    if own >= torch.cuda.device_count():
        got = f"got no GPU for worker {own} of this machine"
        raise Refused(f"--device: {got}, expected one each, or --device cpu")
    torch.cuda.set_device(own)
    return torch.device("cuda", own)


@contextmanager
def _readable_failures() -> Iterator[None]:
    """PyTorch's exception, which is no Exception, as an error with the first worker's reason."""
    try:
        yield
    except CheckpointException as failed:
        rank, (error, _) = min(failed.failures.items())
        raise OSError(f"rank {rank}: {error}") from failed
