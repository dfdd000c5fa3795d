"""A plan for many devices: what each one holds, how long a step takes, and what binds.

A model, a batch and a cluster are given, and a layout says how they are divided. Bytes sent are
those of distributed.traffic, seconds those of its Link. Nothing here is measured: processors
compute at the speed that the cluster is given, and what can hide behind computing hides.
"""

from dataclasses import dataclass
from typing import Any

from attnbook._validation import one_of, positive_int
from attnbook.distributed import traffic
from attnbook.distributed.communication_time import ITEMSIZE, OPERATIONS, Link
from attnbook.distributed.layout import RECOMPUTE, Cluster, Layout, Model

KINDS = {"weights": 2, "gradients": 2, "optimizer": 12}  # bytes per parameter, as traffic.zero


@dataclass(frozen=True)
class Plan:
    """What a step costs each device.

    Args:
        copies: of the model, that share the batch.
        rows: in a micro-batch.
        memory: bytes by what they hold: weights, gradients, optimizer, activations.
        seconds: of the step, by what they go to: compute, heads, ring, stages (sending between
            them), bubble, copies; what hides behind computing is in none of them.
        sending: seconds that each kind of sending takes, hidden or not.
        available: bytes of a device.
        tokens_per_second: of the whole cluster.
        utilisation: the share of the devices' flops that goes into the model's own operations,
            without what is computed anew (model-FLOPs utilisation).
    """

    copies: int
    rows: int
    memory: dict[str, float]
    seconds: dict[str, float]
    sending: dict[str, float]
    available: float
    tokens_per_second: float
    utilisation: float

    @property
    def held(self) -> float:
        """Bytes that a device must have."""
        return sum(self.memory.values())

    @property
    def step(self) -> float:
        """Seconds of a step."""
        return sum(self.seconds.values())

    @property
    def binds(self) -> str:
        """What binds: "memory" where it is too small, or else where most of the time goes."""
        if self.held > self.available:
            return "memory"
        return max(self.seconds, key=self.seconds.__getitem__)


def operations(model: Model) -> float:
    """Operations per token of a training step, 6 P + 12 · layers · sequence · width.

    P are the parameters. Scores and weighted sums of a block take 4 operations per query, key and
    column of the width, once forward and twice backward. What a causal mask hides is counted, as
    model-FLOPs utilisation counts it.

    Args:
        model: a Model.

    Returns:
        Operations, without any that are made anew.

    Source: Kaplan et al. (2020), section 2.1; Chowdhery et al. (2022), appendix B.
    """
    return OPERATIONS * model.parameters + _of_attention(model)


def _of_attention(model: Model) -> float:
    return 12 * model.layers * model.sequence * model.width


def activations(model: Model, recompute: str = "none") -> float:
    """Bytes per token that a block keeps for the way back: 34 width + 5 heads · sequence.

    Of the 34, 11 are attention's, 19 the MLP's and 4 those of two norms, in 2 bytes per number and
    with a dropout mask of 1; the MLP is four times as wide and its activation keeps its input. The
    second part are scores, weights and their dropout mask. Where a kernel computes the scores anew,
    it is gone; where the block is, its input alone is kept, 2 width.

    Args:
        model: a Model.
        recompute: "none", "attention" or "all".

    Returns:
        Bytes on a single device.

    Raises:
        ValueError: another recompute.

    Source: Korthikanti et al. (2022), equations 1 and 6 and section 5.
    """
    kind = one_of(RECOMPUTE, recompute=recompute)
    if kind == "all":
        return 2.0 * model.width
    return 34.0 * model.width + (5 * model.heads * model.sequence if kind == "none" else 0)


def plan(model: Model, batch: int, cluster: Cluster, layout: Layout) -> Plan:
    """What a training step costs each device of a cluster, in bytes and seconds, and what binds.

    With T ways of heads, R of the ring, p stages, m micro-batches and D = devices / (T R p) copies,
    each device holds 1 / (T p) of the model. The R of a ring hold the same, so ZeRO divides its
    part by D R, and gradients are summed over as many. It holds activations of min(m, p)
    micro-batches (one forward, one backward in turn), divided by T and R: the ways of heads also
    divide norms and stream, by tokens (sequence parallelism).
    Stage 3 of ZeRO has two blocks whole at a time. Not counted are embedding and logits, the time
    of the optimizer, buffers, and uneven stages.

    A step takes m micro-batches, the pipeline's bubble, and what the copies send beyond computing:
    up to stage 1 of ZeRO once per step, behind the last micro-batch; with stage 2 gradients, with
    stage 3 weights and gradients of each block at every micro-batch. The ring hides behind its
    attention.
    Sums over heads and the stream between stages hide nowhere. A collective whose ranks share a
    machine takes the links inside; with g of its ranks in each of several machines it has g network
    cards, and no more than the link inside. A message to a neighbour has one card.

    Args:
        model: a Model.
        batch: tokens of a step, of all copies.
        cluster: a Cluster.
        layout: a Layout.

    Returns:
        A Plan.

    Raises:
        ValueError: devices, heads, layers or rows that the layout does not divide.

    Source: Narayanan et al. (2021), section 3; Rajbhandari et al. (2020), sections 5 and 7;
        Korthikanti et al. (2022), section 4.
    """
    copies, rows = _divided(model, positive_int(batch=batch), cluster, layout)
    seconds, sending = _times(model, cluster, layout, copies, rows)
    step = sum(seconds.values())
    useful = operations(model) * batch / (cluster.devices * cluster.flops)
    return Plan(
        copies=copies,
        rows=rows,
        memory=_memory(model, layout, copies, rows),
        seconds=seconds,
        sending=sending,
        available=cluster.memory,
        tokens_per_second=batch / step,
        utilisation=useful / step,
    )


def _divided(model: Model, batch: int, cluster: Cluster, layout: Layout) -> tuple[int, int]:
    """Copies of the model, and rows of a micro-batch."""
    of_one = layout.heads * layout.ring * layout.stages
    wholes = (
        ("devices", cluster.devices, of_one),
        ("heads", model.heads, layout.heads),
        ("sequence", model.sequence, layout.ring),
        ("batch", batch, cluster.devices // of_one * layout.micro_batches * model.sequence or 1),
    )
    for name, whole, ways in wholes:
        if whole % ways or not whole:
            raise ValueError(f"{name}: got {whole}, expected a multiple of the layout's {ways}")
    if layout.stages > model.layers:
        raise ValueError(f"stages: got {layout.stages}, expected {model.layers} or fewer")
    copies = cluster.devices // of_one
    return copies, batch // (copies * layout.micro_batches * model.sequence)


def _part(model: Model, layout: Layout, copies: int) -> tuple[float, int]:
    """Parameters of a device before ZeRO, and the ranks that hold the same."""
    return model.parameters / (layout.heads * layout.stages), copies * layout.ring


def _memory(model: Model, layout: Layout, copies: int, rows: int) -> dict[str, float]:
    (part, ranks), held = _part(model, layout, copies), {}
    for kind, each in KINDS.items():
        sizes: dict[str, Any] = dict.fromkeys(KINDS, 0) | {kind: each}
        held[kind] = traffic.zero(part, ranks, layout.zero, **sizes)
    blocks = model.layers / layout.stages  # of a stage
    if layout.zero == 3:
        held["weights"] += ITEMSIZE * min(2, blocks) / blocks * part
    tokens = rows * model.sequence / (layout.heads * layout.ring)
    flying = min(layout.micro_batches, layout.stages) * blocks
    held["activations"] = tokens * flying * activations(model, layout.recompute)
    if layout.recompute == "all":  # the block that is computed anew
        held["activations"] += tokens * activations(model, "attention")
    return held


def _times(
    model: Model, cluster: Cluster, layout: Layout, copies: int, rows: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds of a step that are seen, and those of all sending, by what they go to."""
    t, r, p, m = layout.heads, layout.ring, layout.stages, layout.micro_batches
    blocks = m * model.layers / p  # of a stage, each once for every micro-batch
    share = rows * model.sequence * m / (t * r * p * cluster.flops * cluster.reached)
    attention = _of_attention(model) * share
    once = OPERATIONS * model.parameters * share + attention
    scores = attention / 6  # made anew by a kernel: one product of six, four of them backward
    more = {"none": 0, "attention": scores, "all": once / 3 + scores}[layout.recompute]
    forward = 2 if layout.recompute == "all" else 1  # ways forward through a block
    seconds, sending = {"compute": once + more}, {}

    def add(name: str, *parts: tuple[float, float]) -> None:
        """Seconds of sending, each behind so many of computing."""
        sending[name] = sum(send for send, _ in parts)
        if layout.overlap:
            parts = tuple((max(0.0, send - behind), 0.0) for send, behind in parts)
        seconds[name] = sum(send for send, _ in parts)

    stream = traffic.heads_split(rows, model.sequence, model.width, ITEMSIZE) / r  # two arrays
    sums = (forward + 1) * blocks
    summed = sums * traffic.all_reduce(stream, t)
    add("heads", (traffic.seconds(sums * 4 * (t - 1), summed, _shared(cluster, 1, t)), 0))

    keys = ITEMSIZE * rows * model.sequence / r * model.key_width
    keys /= min(t, model.key_heads or model.heads)
    next_one, meanwhile = _message(cluster, t, r), (r - 1) / r * attention / 3
    there = blocks * traffic.seconds(r - 1, traffic.ring(keys, r), next_one)
    back = blocks * traffic.seconds(r * (r > 1), traffic.ring_backward(keys, r), next_one)
    add("ring", *[(there, meanwhile)] * forward, (back, 2 * meanwhile))

    here = ITEMSIZE * rows * model.sequence / (t * r) * model.width  # bytes of a stream
    passed = 2 * m if p > 1 else 0
    link = _message(cluster, t * r * copies, p)
    add("stages", (traffic.seconds(passed, passed * here, link), 0))

    waits = traffic.pipeline_bubble(p, m)
    seconds["bubble"] = sum(seconds.values()) * waits / (1 - waits)
    add("copies", *_of_copies(model, cluster, layout, copies, once / 3, 2 * once / 3 + more))
    return seconds, sending


def _of_copies(
    model: Model, cluster: Cluster, layout: Layout, copies: int, forward: float, backward: float
) -> list[tuple[float, float]]:
    """What copies send on the way forward and on the way back, each behind the computing there."""
    m, found = layout.micro_batches, []
    # passes over the weights, in so many of the micro-batches
    ahead = {0: (0, 0), 1: (1, 1), 2: (1, 1), 3: (1, m)}[layout.zero]
    behind = {0: (2, 1), 1: (1, 1), 2: (1, m), 3: (2, m)}[layout.zero]
    pieces = model.layers / layout.stages if layout.zero == 3 else 1  # each block by itself
    parameters, ranks = _part(model, layout, copies)
    link = _shared(cluster, layout.heads, ranks)
    for (passes, times), compute in ((ahead, forward), (behind, backward)):
        size = passes * traffic.all_gather(ITEMSIZE * parameters, ranks)
        one = traffic.seconds(passes * pieces * (ranks - 1), size, link)
        found.append((times * one, times * compute / m))
    return found


def _shared(cluster: Cluster, within: int, ranks: int) -> Link:
    """The link of a collective: inside a machine, or all network cards that its ranks have."""
    if within * ranks <= cluster.per_machine:
        return cluster.inside
    cards = max(1, cluster.per_machine // within)
    bandwidth = min(cards * cluster.between.bandwidth, cluster.inside.bandwidth)
    return Link(cluster.between.latency, bandwidth)


def _message(cluster: Cluster, within: int, ranks: int) -> Link:
    """The link of a message to one other rank, the slowest of them."""
    return cluster.inside if within * ranks <= cluster.per_machine else cluster.between
