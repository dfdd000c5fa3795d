"""Many devices in numbers: the bytes that they send and hold, and the seconds that this takes.

Sizes are in bytes. What comes is a number or a NumPy array of numbers, which broadcast, and so is
the result. Bytes sent are those of one rank; in a ring every rank sends as many. The seconds, from
a model of the link between two devices, are in communication_time and have their names here too.
"""

import math

from attnbook._validation import int_between, positive_int
from attnbook.distributed.amounts import amounts, counts
from attnbook.distributed.communication_time import Amount
from attnbook.distributed.communication_time import Link as Link
from attnbook.distributed.communication_time import (
    data_parallel_efficiency as data_parallel_efficiency,
)
from attnbook.distributed.communication_time import least_block as least_block
from attnbook.distributed.communication_time import least_tokens as least_tokens
from attnbook.distributed.communication_time import ring_efficiency as ring_efficiency
from attnbook.distributed.communication_time import seconds as seconds


def all_reduce(size: Amount, world: Amount) -> Amount:
    """Bytes sent until every rank has the sum, 2 size (W − 1) / W: reduce-scatter, all-gather.

    Args:
        size: bytes of the array that each rank holds, 0 or more.
        world: W, how many ranks take part, 1 or more.

    Returns:
        Bytes that one rank sends, with the algorithm of the ring; none can do with fewer.

    Raises:
        ValueError: a size below 0, a world that is no integer of at least 1.

    Source: Thakur, Rabenseifner and Gropp (2005); Patarasuk and Yuan (2009).
    """
    return 2 * _share_of_others(size, world)


def all_gather(size: Amount, world: Amount) -> Amount:
    """Bytes sent until every rank has the whole, of this size, of which it held 1/W.

    A rank sends its own part and then those that came by, but for the last: size (W − 1) / W.
    Errors are all_reduce's.
    """
    return _share_of_others(size, world)


def reduce_scatter(size: Amount, world: Amount) -> Amount:
    """Bytes sent until every rank has 1/W of the sum of arrays of this size: size (W − 1) / W.

    Errors are all_reduce's.
    """
    return _share_of_others(size, world)


def _share_of_others(size: Amount, world: Amount) -> Amount:
    (size,), (world,) = amounts(size=size), counts(world=world)
    return size * (world - 1) / world


def ring(block: Amount, world: Amount) -> Amount:
    """Bytes sent in ring attention, forward: keys and values, passed on W − 1 times.

    Args:
        block: bytes of a rank's keys, as many as those of its values.
        world: W, how many ranks take part.

    Returns:
        2 (W − 1) blocks, an integer where the block is one.

    Source: Liu, Zaharia and Abbeel (2023), section 3.
    """
    (block,), (world,) = amounts(block=block), counts(world=world)
    return 2 * (world - 1) * block


def ring_backward(block: Amount, world: Amount) -> Amount:
    """Bytes sent in ring attention, backward: keys and values travel with their gradients.

    After W − 1 steps of four arrays the gradients stand one rank before their home, and take one
    step more: 4 (W − 1) + 2 blocks. A single rank is at home already, and sends 0. Arguments and
    errors are those of ring.
    """
    (block,), (world,) = amounts(block=block), counts(world=world)
    return (4 * (world - 1) + 2 * (world > 1)) * block


def heads_split(rows: Amount, tokens: Amount, embed_dim: Amount, itemsize: Amount) -> Amount:
    """Bytes of the streams that a block with split heads sums over the ranks, per direction.

    Forward they are what attention and MLP add to the stream, backward the gradients of what the
    two read. Each of both is one all-reduce; all_reduce says what a rank sends for that.

    Args:
        rows: of the batch.
        tokens: in each row.
        embed_dim: the width of the stream.
        itemsize: bytes of one number.

    Returns:
        2 · rows · tokens · embed_dim · itemsize.

    Raises:
        ValueError: what is no integer, or below 1.

    Source: Shoeybi et al. (2019), section 3.
    """
    return 2 * math.prod(counts(rows=rows, tokens=tokens, embed_dim=embed_dim, itemsize=itemsize))


def zero(
    parameters: Amount,
    world: Amount,
    stage: int,
    *,
    weights: float = 2,
    gradients: float = 2,
    optimizer: float = 12,
) -> Amount:
    """Bytes of a model's training state that one rank holds, with stage 0 to 3 of ZeRO.

    Stage 1 divides the optimizer's state by W, stage 2 the gradients too, and stage 3 the weights
    too. Without ZeRO, stage 0, every rank has all of them. Activations are not counted.

    Args:
        parameters: how many numbers the model has.
        world: W, how many ranks take part.
        stage: 0, 1, 2 or 3.
        weights: bytes per parameter in which the model computes.
        gradients: bytes per parameter.
        optimizer: bytes per parameter; Adam's 12 are a copy and two moments in float32.

    Returns:
        Bytes, of which none are padding.

    Raises:
        ValueError: a number below 0, a world that is no integer of at least 1, another stage.

    Source: Rajbhandari et al. (2020), section 5.
    """
    (parameters,), (world,) = amounts(parameters=parameters), counts(world=world)
    stage, kinds = int_between(0, 3, stage=stage), (weights, gradients, optimizer)
    whole, divided = sum(kinds[: 3 - stage]), sum(kinds[3 - stage :])
    return parameters * (whole + divided / world)


def zero_traffic(size: Amount, world: Amount, stage: int) -> Amount:
    """Bytes that one rank sends per step with stage 0 to 3 of ZeRO.

    Up to stage 2 gradients are reduced and scattered, and what was updated is gathered: as many as
    an all-reduce. In stage 3 the weights are gathered twice, for the way forward and the way back.

    Args:
        size: bytes of all weights, as many as those of all gradients.
        world: W, how many ranks take part.
        stage: 0, 1, 2 or 3.

    Returns:
        2 size (W − 1) / W, or 3 in place of 2 for stage 3.

    Source: Rajbhandari et al. (2020), section 7.
    """
    passes = 3 if int_between(0, 3, stage=stage) == 3 else 2
    return passes * _share_of_others(size, world)


def padded(shape: tuple[int, ...], world: int) -> int:
    """Numbers of an array whose rows are filled up until W ranks have equally many.

    FSDP2 cuts every parameter along its first axis. With fewer rows than ranks every rank that has
    one has a whole row, and the others are padding.

    Args:
        shape: of the array; () counts as a row of one number.
        world: W, how many ranks take part.

    Returns:
        ⌈rows / W⌉ · W · the numbers of a row.
    """
    rows, *rest = shape or (1,)
    return -(-rows // positive_int(world=world)) * world * math.prod(rest)


def causal_imbalance(world: Amount, *, zigzag: bool = False) -> Amount:
    """The work of the busiest rank over the mean, in causal attention over W blocks of tokens.

    Rank r has block r and attends to r + 1 blocks, the last has W of them, and the mean is
    (W + 1) / 2. In the zigzag a rank has the pieces r and 2W − 1 − r of 2W, one early and one late,
    and all attend to 2W + 1 pieces. A block on the diagonal counts as a whole one.

    Args:
        world: W, how many ranks take part.
        zigzag: whether the pieces lie so.

    Returns:
        2W / (W + 1), which goes to 2; 1 in the zigzag.

    Source: Brandon et al. (2023).
    """
    (world,) = counts(world=world)
    return 1.0 + 0 * world if zigzag else 2 * world / (world + 1)


def pipeline_bubble(stages: Amount, micro_batches: Amount) -> Amount:
    """The share of time in which a stage of a pipeline waits, (p − 1) / (m + p − 1).

    The first of m micro-batches reaches the last of p stages after p − 1 steps, and in the end the
    first stage waits as long for the others. Forward and backward alike.

    Args:
        stages: p, 1 or more.
        micro_batches: m, 1 or more.

    Returns:
        From 0 to below 1.

    Raises:
        ValueError: what is no integer, or below 1.

    Source: Huang et al. (2019), section 2.3.
    """
    p, m = counts(stages=stages, micro_batches=micro_batches)
    return (p - 1) / (m + p - 1)
