"""Milliseconds of one layer of self-attention, a GRU and a convolution, by length of the sequence.

One sequence of width 64, float32, forward alone and forward with backward. On one core by processor
time; on two by the clock, which other work on the machine makes late, so there the least of the
rounds counts. All layers and lengths take turns. "with weights" asks for the table of weights, and
"same memory" computes it in arrays that are there already. A page fault is a page of memory that
the system hands out at its first use. Takes a few minutes.
"""

import math
import resource
import time
from collections.abc import Callable

import torch
from torch import Tensor

from attnbook import attend
from attnbook import torch as torch_layers
from experiments.harness import Experiment, in_turns, summary

LENGTHS, WIDTH = [512, 1024, 2048, 4096, 8192], 64
Layer = Callable[[Tensor], Tensor]


def page_faults(call: Callable[[], object]) -> int:
    """Of one run, after another one."""
    call()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    call()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def main(experiment: Experiment) -> None:
    torch.manual_seed(0)
    convolution, gru = torch.nn.Conv1d(WIDTH, WIDTH, 5, padding=2), torch.nn.GRU(WIDTH, WIDTH)
    inputs = [torch.randn(n, WIDTH) for n in LENGTHS]
    tables = {n: (torch.empty(n, n), torch.empty(n, WIDTH)) for n in LENGTHS}

    def in_the_same_memory(x: Tensor) -> Tensor:
        scores, output = tables[len(x)]
        torch.matmul(x, x.mT, out=scores).mul_(1 / math.sqrt(WIDTH))
        torch.softmax(scores, dim=-1, out=scores)
        return torch.matmul(scores, x, out=output)

    layers: dict[str, Layer] = {
        "self-attention": torch_layers.SelfAttention(WIDTH),
        "GRU": lambda x: gru(x)[0],
        "convolution": lambda x: convolution(x.mT[None]),
    }
    stored: dict[str, Layer] = {
        "with weights": lambda x: attend(x, x, x, return_weights=True)[0],
        "same memory": in_the_same_memory,
    }
    torch.testing.assert_close(in_the_same_memory(inputs[0]), stored["with weights"](inputs[0]))

    def measured(some: dict[str, Layer], cores: int, backward: bool = False) -> dict[str, list]:
        """Of each layer, the summary for each length."""
        torch.set_num_threads(cores)
        clock = time.process_time if cores == 1 else time.perf_counter
        run = (lambda f, x: f(x).sum().backward()) if backward else torch.no_grad()(lambda f, x: f(x))
        ways = {
            f"{name} {i}": lambda f=f, x=x: run(f, x)
            for name, f in some.items()
            for i, x in enumerate(inputs)
        }
        seconds = in_turns(ways, 2 if experiment.quick else 9, clock=clock)
        columns = {key: summary([1000 * s for s in taken]) for key, taken in seconds.items()}
        return {name: [columns[f"{name} {i}"] for i in range(len(inputs))] for name in some}

    found = {
        "forward": measured(layers | stored, 1),
        "forward, two cores": measured(layers, 2),
        "both ways": measured(layers, 1, backward=True),
        "both ways, two cores": measured(layers, 2, backward=True),
    }
    torch.set_num_threads(1)
    with torch.no_grad():
        faults = {
            name: [page_faults(lambda f=f, x=x: f(x)) for x in inputs]
            for name, f in (layers | stored).items()
        }
    for name, table in found.items():
        for layer, row in table.items():
            print(f"{name:22s} {layer:15s}", *(f"{c['median']:9.4g}" for c in row), flush=True)
    experiment.store(lengths=LENGTHS, width=WIDTH, milliseconds=found, page_faults=faults)
