"""Collectives counted on one machine: ranks that are imagined, and what one of them would send.

PyTorch's "fake" process group answers every collective at once and moves nothing. A model can be
sharded over a thousand ranks of it, of which this process is rank 0, and a step says which
collectives it needs. The numbers that come out mean nothing; names, order and sizes do.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import distributed
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attnbook.distributed import traffic

NAMES = {  # as PyTorch's operators begin, and as everyone says
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reducescatter": "reduce-scatter",
    "broadcast": "broadcast",
    "alltoall": "all-to-all",
    "send": "send",
}
BYTES = {
    "all-reduce": traffic.all_reduce,
    "all-gather": traffic.all_gather,
    "reduce-scatter": traffic.reduce_scatter,
}


class Collective(NamedTuple):
    """One collective that was called.

    Args:
        name: "all-reduce", "all-gather", "reduce-scatter", "broadcast", "all-to-all" or "send".
        size: bytes of the whole array; of an all-gather what comes out, of a reduce-scatter what
            goes in.
    """

    name: str
    size: int


@contextmanager
def imagined_ranks(world: int) -> Iterator[DeviceMesh]:
    """A process group of W ranks, of which this process is rank 0 and the others do not exist.

    It is torn down at the end, so that another group, or a real one, can follow.

    Args:
        world: W, how many ranks there would be.

    Yields:
        A mesh of CPUs with one axis, for fully_shard and its like.
    """
    import torch.testing._internal.distributed.fake_pg  # noqa: F401  # where "fake" is registered

    distributed.init_process_group("fake", rank=0, world_size=world)
    try:
        yield init_device_mesh("cpu", (world,))
    finally:
        distributed.destroy_process_group()


class Collectives(TorchDispatchMode):  # type: ignore[no-untyped-call, unused-ignore]
    """Under it every collective of this process is noted in calls, in order.

    Args:
        shapes_only: nothing is computed and no memory is taken for what is: tensors know their
            shapes alone. A model whose layers would not fit can take a step so.
    """

    def __init__(self, *, shapes_only: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self.calls: list[Collective] = []
        fake = FakeTensorMode(allow_non_fake_inputs=True)
        self._shapes: Any = fake if shapes_only else nullcontext()

    def __enter__(self) -> "Collectives":
        self._shapes.__enter__()
        super().__enter__()  # type: ignore[no-untyped-call, unused-ignore]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call, unused-ignore]
        self._shapes.__exit__(*error)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call an operator, and note it if it is a collective; of a DTensor those it is made of."""
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented
        result = func(*args, **(kwargs or {}))
        name = _name(func)
        if name is not None:
            self.calls.append(Collective(name, max(map(_bytes, (*args, result)))))
        return result

    def sent(self, world: int) -> float:
        """Bytes that one of W ranks sends for all that was noted, as distributed.traffic has it.

        Raises:
            KeyError: a collective without a formula there.
        """
        return float(sum(BYTES[name](size, world) for name, size in self.calls))


def _name(operator: Any) -> str | None:
    if operator.namespace not in ("c10d", "_c10d_functional"):
        return None
    spelt = operator._opname.replace("_", "")
    return next((name for begin, name in NAMES.items() if spelt.startswith(begin)), None)


def _bytes(tree: Any) -> int:
    tensors = (leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor))
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
