"""Milliseconds of one layer of self-attention, a GRU and a convolution, by length of the sequence.

One sequence of width 64, float32, one core; processor time, which other work on the machine hardly
changes. All layers and lengths take turns. "with weights" asks for the table of weights, and "same
memory" computes it in arrays that are there already. A page fault is a page of memory that the
system hands out at its first use. Takes a minute or two.
"""

import math
import resource
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from attnbook import attend
from attnbook import torch as torch_layers
from experiments.harness import Experiment, Ways, in_turns, summary

LENGTHS, WIDTH = [512, 1024, 2048, 4096, 8192], 64


def page_faults(call: Callable[[Tensor], object], x: Tensor) -> int:
    """Of one run, after another one."""
    call(x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    call(x)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def forth_and_back(call: Callable[[Tensor], Tensor], x: Tensor) -> None:
    torch.autograd.backward(call(x).sum())


def main(experiment: Experiment) -> None:
    torch.manual_seed(0)
    convolution, gru = torch.nn.Conv1d(WIDTH, WIDTH, 5, padding=2), torch.nn.GRU(WIDTH, WIDTH)
    tables = {n: (torch.empty(n, n), torch.empty(n, WIDTH)) for n in LENGTHS}

    def in_the_same_memory(x: Tensor) -> Tensor:
        scores, output = tables[len(x)]
        torch.matmul(x, x.mT, out=scores).mul_(1 / math.sqrt(WIDTH))
        torch.softmax(scores, dim=-1, out=scores)
        return torch.matmul(scores, x, out=output)

    layers: dict[str, Callable[[Tensor], Tensor]] = {
        "self-attention": torch_layers.SelfAttention(WIDTH),
        "GRU": lambda x: gru(x)[0],
        "convolution": lambda x: convolution(x.mT[None]),
    }
    stored: dict[str, Callable[[Tensor], Tensor]] = {
        "with weights": lambda x: attend(x, x, x, return_weights=True)[0],
        "same memory": in_the_same_memory,
    }
    inputs = {n: torch.randn(n, WIDTH) for n in LENGTHS}
    x = inputs[LENGTHS[0]]
    torch.testing.assert_close(in_the_same_memory(x), stored["with weights"](x))

    def milliseconds(ways: Ways) -> dict[str, dict[str, float]]:
        seconds = in_turns(ways, 2 if experiment.quick else 7, clock=time.process_time)
        found = {name: summary([1000 * s for s in taken]) for name, taken in seconds.items()}
        print({name: times["median"] for name, times in found.items()}, flush=True)
        return found

    of_all = [(name, f, n) for name, f in (layers | stored).items() for n in LENGTHS]
    both = milliseconds(
        {
            f"{name} {n}": partial(forth_and_back, f, inputs[n])
            for name, f, n in of_all
            if name in layers
        }
    )
    with torch.no_grad():
        forward = milliseconds({f"{name} {n}": partial(f, inputs[n]) for name, f, n in of_all})
        faults = {f"{name} {n}": page_faults(f, inputs[n]) for name, f, n in of_all}
    experiment.store(
        lengths=LENGTHS, width=WIDTH, forward=forward, forward_and_backward=both, page_faults=faults
    )
