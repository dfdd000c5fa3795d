"""What workers send to each other, counted: a message to the next, an array that all sum."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed

Group = distributed.ProcessGroup


@dataclass
class Count:
    """What one rank has sent and computed.

    Args:
        messages: arrays sent to another rank.
        message_bytes: the bytes of those.
        all_reduces: arrays that all ranks summed, or took the maximum of.
        all_reduce_bytes: the sizes of those arrays; of each a ring sends 2 (W − 1) / W times that.
        scores: pairs of a query and a key whose score was computed for a ring.
    """

    messages: int = 0
    message_bytes: int = 0
    all_reduces: int = 0
    all_reduce_bytes: int = 0
    scores: int = 0


COUNTS: list[Count] = []  # those that count now, in whatever thread a backward pass runs


@contextlib.contextmanager
def count() -> Iterator[Count]:
    """Count what this rank sends within the block, backward passes included, in a Count."""
    found = Count()
    COUNTS.append(found)
    try:
        yield found
    finally:
        COUNTS[:] = [other for other in COUNTS if other is not found]


def add_scores(scores: int) -> None:
    """Count scores that were computed."""
    for counted in COUNTS:
        counted.scores += scores


def rank_and_world(group: Group | None) -> tuple[int, int]:
    """This rank within the group, and how many there are; a RuntimeError where there is none."""
    if not (distributed.is_available() and distributed.is_initialized()):
        raise RuntimeError(
            "torch.distributed: got no process group, expected one: call this within "
            "attnbook.torch.distributed.run, or after torch.distributed.init_process_group"
        )
    return distributed.get_rank(group), distributed.get_world_size(group)


def pass_on(tensors: tuple[Tensor, ...], group: Group | None) -> Callable[[], tuple[Tensor, ...]]:
    """Begin to send each tensor to the next rank; the function waits for those of the one before.

    Args:
        tensors: of the same shapes and dtypes on all ranks.
        group: the ranks of a ring; all without it.
    """
    rank, world = rank_and_world(group)
    peers = ((rank + 1) % world, (rank - 1) % world)
    after, before = (
        peer if group is None else distributed.get_global_rank(group, peer) for peer in peers
    )
    received = tuple(torch.empty_like(t, memory_format=torch.contiguous_format) for t in tensors)
    sent = tuple(t.contiguous() for t in tensors)
    operations = []
    for mine, theirs in zip(sent, received, strict=True):
        operations.append(distributed.P2POp(distributed.isend, mine, after, group))
        operations.append(distributed.P2POp(distributed.irecv, theirs, before, group))
        for counted in COUNTS:
            counted.messages += 1
            counted.message_bytes += mine.numel() * mine.element_size()
    works = distributed.batch_isend_irecv(operations)

    def wait() -> tuple[Tensor, ...]:
        for work in works:
            work.wait()
        return received if sent else ()  # sent: kept until all has arrived

    return wait


def all_reduce(tensor: Tensor, group: Group | None, *, largest: bool = False) -> Tensor:
    """The sum over ranks, or the largest, as a new tensor."""
    rank_and_world(group)
    total = tensor.detach().clone(memory_format=torch.contiguous_format)
    kind = distributed.ReduceOp.MAX if largest else distributed.ReduceOp.SUM
    distributed.all_reduce(total, kind, group)
    for counted in COUNTS:
        counted.all_reduces += 1
        counted.all_reduce_bytes += total.numel() * total.element_size()
    return total


class _Shared(torch.autograd.Function):
    """What all ranks have alike and each uses in its own way: gradients are summed over ranks."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group | None) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return all_reduce(gradients[0], ctx.group), None


class _Summed(torch.autograd.Function):
    """The sum over ranks, which all use alike: each has the gradient of its part already."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group | None) -> Tensor:
        return all_reduce(x, group)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0], None


def shared(x: Tensor, group: Group | None = None) -> Tensor:
    """Give x itself; backward, the sum over ranks of their gradients with respect to it.

    Source: Shoeybi et al. (2019), section 3, the operator f.
    """
    return _Shared.apply(x, group)  # type: ignore[no-untyped-call]


def summed(x: Tensor, group: Group | None = None) -> Tensor:
    """Σ_r x_r over ranks; backward, the gradient itself, which is the same on all ranks.

    Source: Shoeybi et al. (2019), section 3, the operator g.
    """
    return _Summed.apply(x, group)  # type: ignore[no-untyped-call]
