"""The α–β model of a link, and what it says of many devices: from where on sending costs more time.

A message of n bytes takes α + n / β seconds. Speeds of processors are in operations per second.
Numbers are Python's or NumPy arrays, which broadcast.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnbook._validation import nonnegative, positive
from attnbook.distributed.amounts import amounts, counts

Amount = Any  # a number, or a NumPy array of numbers

OPERATIONS = 6  # per parameter and token: a product and a sum, once forward and twice backward
BACKWARD = 2 / 3  # the share of them on the way back, where gradients come to be
ITEMSIZE = 2  # bytes of a number that is sent


@dataclass(frozen=True)
class Link:
    """A way between two devices, of the α–β model: a message of n bytes takes α + n / β.

    Args:
        latency: α, seconds before the first byte of a message is there, 0 or more.
        bandwidth: β, bytes per second in one direction, above 0.

    Source: Hockney (1994).
    """

    latency: float
    bandwidth: float

    def __post_init__(self) -> None:
        nonnegative(latency=self.latency)
        positive(bandwidth=self.bandwidth)


def seconds(messages: Amount, size: Amount, link: Link) -> Amount:
    """How long messages take that follow one another, α · messages + size / β.

    Args:
        messages: how many there are; an all-reduce of a ring sends 2 (W − 1).
        size: bytes of all of them together.
        link: a Link.

    Returns:
        Seconds.

    Raises:
        ValueError: numbers below 0.

    Source: Hockney (1994); Thakur, Rabenseifner and Gropp (2005).
    """
    messages, size = amounts(messages=messages, size=size)
    return messages * link.latency + size / link.bandwidth


def data_parallel_efficiency(
    parameters: Amount,
    tokens: Amount,
    world: Amount,
    *,
    flops: float,
    link: Link,
    overlap: bool = False,
) -> Amount:
    """The share of a step in which a rank computes, where W copies reduce their gradients.

    The computation takes 6 · parameters · tokens operations, a third of them forward, and the
    all-reduce 2 (W − 1) messages of 2 parameters / W bytes. A rank may be a machine of
    several processors: then tokens, flops and the bandwidth are those of the machine.

    Args:
        parameters: how many numbers the model has.
        tokens: per rank and step.
        world: W, how many ranks take part.
        flops: operations per second that a rank reaches.
        link: from each rank to the next.
        overlap: whether gradients are sent during the way back, all of it, which no program quite
            reaches: the last gradient is there only at its end. Forward there is none to send.

    Returns:
        compute / (compute + send), or with overlap
        compute / (compute / 3 + max(2 compute / 3, send)).

    Raises:
        ValueError: a number below 0, a speed that is 0, a world that is no integer of at least 1.

    Source: Kaplan et al. (2020), section 2.1, for the 6.
    """
    parameters, tokens = amounts(parameters=parameters, tokens=tokens)
    (world,) = counts(world=world)
    compute = OPERATIONS * parameters * tokens / positive(flops=flops)
    piece = ITEMSIZE * parameters / world
    send = seconds(2 * (world - 1), 2 * (world - 1) * piece, link)
    forward, backward = (1 - BACKWARD) * compute, BACKWARD * compute
    return compute / (forward + _together(backward, send, overlap))


def least_tokens(flops: float, link: Link) -> float:
    """Tokens per rank and step for which the way back takes as long as the gradients' all-reduce.

    From 4 P n / F = 2 · 2 P / β, for many ranks and without latency. The model's size P does
    not matter. FSDP needs as many: it gathers P numbers on the way forward, of 2 P n operations,
    and gathers and reduces 2 P on the way back, of 4 P n.

    Args:
        flops: F, operations per second that a rank reaches.
        link: from each rank to the next; β is the bandwidth with which one copy of the model sends.

    Returns:
        n = F / β.

    Source: Austin et al. (2025), part 12.
    """
    return 2 * ITEMSIZE * positive(flops=flops) / link.bandwidth / (BACKWARD * OPERATIONS)


def ring_efficiency(
    tokens: Amount,
    width: Amount,
    world: Amount,
    *,
    flops: float,
    link: Link,
    overlap: bool = True,
) -> Amount:
    """The share of time in which a rank computes, forward in ring attention without a mask.

    W times c queries meet c keys, 4 c² d operations; W − 1 times in between 2 c d numbers of 2
    bytes travel as one message, meanwhile or afterwards.

    Args:
        tokens: c, in the block of a rank.
        width: d, of all heads together.
        world: W, how many ranks take part.
        flops: operations per second that a rank reaches.
        link: from each rank to the next.
        overlap: whether a block travels on while it is computed with.

    Returns:
        W compute / ((W − 1) max(compute, send) + compute), with the sum in place of the maximum
        without overlap. Errors are those of data_parallel_efficiency.

    Source: Liu, Zaharia and Abbeel (2023), section 3.
    """
    tokens, width = amounts(tokens=tokens, width=width)
    (world,) = counts(world=world)
    compute = 4 * tokens**2 * width / positive(flops=flops)
    send = seconds(1, 2 * ITEMSIZE * tokens * width, link)
    return world * compute / ((world - 1) * _together(compute, send, overlap) + compute)


def least_block(flops: float, link: Link, *, width: float | None = None) -> float:
    """Tokens per rank from which a ring's sending hides behind its computing.

    The c with 4 c² d / F = α + 4 c d / β, of 2 bytes per number. Without α it is F / β, whatever
    the width d.

    Args:
        flops: F, operations per second that a rank reaches.
        link: from each rank to the next.
        width: d, of all heads together; None leaves the latency α out.

    Returns:
        c, a number of tokens.

    Source: Liu, Zaharia and Abbeel (2023), section 3: c ≥ F / β.
    """
    half = ITEMSIZE * positive(flops=flops) / (4 * link.bandwidth)
    waiting = 0 if width is None else link.latency * flops / (4 * positive(width=width))
    return half + math.sqrt(half**2 + waiting)


def _together(compute: Amount, send: Amount, overlap: bool) -> Amount:
    if overlap:
        longer = np.maximum(compute, send)
        return longer if np.ndim(longer) else float(longer)
    return compute + send
