"""How the time of self-attention, a GRU and a convolution grows with the length of a sequence.

Every number is a processor time beside that of the same layer at the first length, in the same
round; of three runs the shortest counts. "same memory" computes stored weights in arrays that are
there already. A page fault is a page of memory that the system hands out at its first use. Takes a
few minutes of one core.
"""

import math
import resource
import time
from collections.abc import Callable

import torch

from attnbook import attend
from attnbook import torch as torch_layers
from experiments.harness import Experiment, in_turns, summaries

LENGTHS, WIDTH = [512, 1024, 2048, 4096, 8192], 64


def page_faults(call: Callable[[], object]) -> int:
    """Of one run, after another one."""
    call()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    call()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@torch.no_grad()
def main(experiment: Experiment) -> None:
    torch.manual_seed(0)
    convolution = torch.nn.Conv1d(WIDTH, WIDTH, 5, padding=2)
    tables = {n: (torch.empty(n, n), torch.empty(n, WIDTH)) for n in LENGTHS}

    def in_the_same_memory(x: torch.Tensor) -> torch.Tensor:
        scores, output = tables[len(x)]
        torch.matmul(x, x.mT, out=scores).mul_(1 / math.sqrt(WIDTH))
        torch.softmax(scores, dim=-1, out=scores)
        return torch.matmul(scores, x, out=output)

    calls: dict[str, Callable[[torch.Tensor], object]] = {
        "self-attention": torch_layers.SelfAttention(WIDTH),
        "with weights": lambda x: attend(x, x, x, return_weights=True),
        "same memory": in_the_same_memory,
        "GRU": torch.nn.GRU(WIDTH, WIDTH),
        "convolution": lambda x: convolution(x.mT[None]),
    }
    inputs = [torch.randn(n, WIDTH) for n in LENGTHS]
    ways = {name: [lambda x=x, f=f: f(x) for x in inputs] for name, f in calls.items()}
    exact, _ = attend(inputs[0], inputs[0], inputs[0], return_weights=True)
    torch.testing.assert_close(in_the_same_memory(inputs[0]), exact)
    faults = {name: [page_faults(way) for way in row] for name, row in ways.items()}
    ratios: dict[str, list[list[float]]] = {name: [] for name in calls}
    for _ in range(2 if experiment.quick else 5):
        for name, row in ways.items():
            runs = [in_turns({"": way}, 3, clock=time.process_time)[""] for way in row]
            times = [min(three) for three in runs]
            ratios[name].append([t / times[0] for t in times])
    growth = {name: summaries(rounds) for name, rounds in ratios.items()}
    for name, of_lengths in growth.items():
        print(name, [column["median"] for column in of_lengths], faults[name], flush=True)
    experiment.store(lengths=LENGTHS, width=WIDTH, growth=growth, page_faults=faults)
