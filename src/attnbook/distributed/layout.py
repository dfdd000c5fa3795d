"""What a plan is made for: the shapes of a model, a cluster of devices, and a layout."""

from dataclasses import dataclass
from typing import Any

from attnbook._validation import int_between, one_of, positive, positive_int
from attnbook.distributed.communication_time import Link

RECOMPUTE = ("none", "attention", "all")


@dataclass(frozen=True)
class Model:
    """The shapes of a transformer that decodes.

    Args:
        parameters: how many numbers it has.
        layers: blocks.
        width: of the stream.
        heads: of queries, per block.
        sequence: tokens in a row.
        key_heads: heads of keys and values; None for as many as of queries.
    """

    parameters: float
    layers: int
    width: int
    heads: int
    sequence: int
    key_heads: int | None = None

    def __post_init__(self) -> None:
        positive(parameters=self.parameters)
        for name in ("layers", "width", "heads", "sequence"):
            positive_int(**{name: getattr(self, name)})
        if self.key_heads is not None:
            int_between(1, self.heads, key_heads=self.key_heads)

    @property
    def key_width(self) -> float:
        """Numbers of a key, of all heads together."""
        return self.width * (self.key_heads or self.heads) / self.heads


@dataclass(frozen=True)
class Cluster:
    """Equal devices in equal machines.

    Args:
        devices: how many there are, a multiple of per_machine unless they all fit into one.
        memory: bytes of each.
        flops: operations per second of each, as on its data sheet.
        inside: a Link from each device of a machine to the next.
        between: a Link from one device's network card to a device of another machine.
        per_machine: devices of one machine.
        reached: the share of flops that the products reach, above 0 up to 1.
    """

    devices: int
    memory: float
    flops: float
    inside: Link
    between: Link
    per_machine: int = 8
    reached: float = 1.0

    def __post_init__(self) -> None:
        positive_int(devices=self.devices)
        positive_int(per_machine=self.per_machine)
        for name in ("memory", "flops", "reached"):
            positive(**{name: getattr(self, name)})
        if self.devices > self.per_machine and self.devices % self.per_machine:
            got = f"{self.devices} in machines of {self.per_machine}"
            raise ValueError(f"devices: got {got}, expected whole machines")


@dataclass(frozen=True)
class Layout:
    """How a model and its batch are divided. The devices that are left take copies of it all.

    Neighbours in a machine are first those of the heads, then those of the ring, then the copies;
    stages are furthest apart.

    Args:
        zero: stage 0 to 3 of ZeRO among the copies.
        heads: ways in which heads and hidden units are divided, the norms' tokens too.
        ring: ways in which the tokens of a row are divided.
        stages: of a pipeline.
        micro_batches: into which the rows of a copy are cut in each step.
        recompute: what the way back computes anew: "none", "attention" (its scores, by a kernel
            that keeps no weights) or "all" of a block, with such a kernel.
        overlap: whether what can hide behind computing hides.
    """

    zero: int = 0
    heads: int = 1
    ring: int = 1
    stages: int = 1
    micro_batches: int = 1
    recompute: str = "attention"
    overlap: bool = True

    def __post_init__(self) -> None:
        int_between(0, 3, zero=self.zero)
        for name in ("heads", "ring", "stages", "micro_batches"):
            positive_int(**{name: getattr(self, name)})
        one_of(RECOMPUTE, recompute=self.recompute)


# Grattafiori et al. (2024), table 3
MODELS = {
    "Llama 3 8B": Model(8_030_261_248, 32, 4096, 32, 8192, 8),
    "Llama 3 70B": Model(70_553_706_496, 80, 8192, 64, 8192, 8),
    "Llama 3 405B": Model(405_853_388_800, 126, 16384, 128, 8192, 8),
}
# of Cluster: the data sheets' bfloat16 and links in one direction; the latency is assumed
DEVICES: dict[str, Any] = {
    "H100": dict(memory=80e9, flops=989e12, inside=Link(1e-5, 450e9), between=Link(1e-5, 50e9)),
    "A100": dict(memory=80e9, flops=312e12, inside=Link(1e-5, 300e9), between=Link(1e-5, 25e9)),
}
