"""How the time of self-attention, a GRU and a convolution grows with the length of a sequence.

    python -m benchmarks.self_attention            stores the results (a few minutes, one core)
    python -m benchmarks.self_attention --quick    two rounds; stores nothing

Every number is a time beside that of the same layer at the first length, in the same round.
"""

import time
from collections.abc import Callable

import torch

from attnbook import attend
from attnbook import torch as torch_layers
from benchmarks.storing import asked_quick, store, summary

LENGTHS, WIDTH = [512, 1024, 2048, 4096, 8192], 64


def seconds(call: Callable[[], object]) -> float:
    """The shorter of two runs."""
    times = []
    for _ in range(2):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    quick = asked_quick(__doc__)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layer = torch_layers.SelfAttention(WIDTH)
    gru = torch.nn.GRU(WIDTH, WIDTH)
    convolution = torch.nn.Conv1d(WIDTH, WIDTH, 5, padding=2)
    calls: dict[str, Callable[[torch.Tensor], object]] = {
        "self-attention": layer,
        "with weights": lambda x: attend(x, x, x, return_weights=True),
        "GRU": gru,
        "convolution": lambda x: convolution(x.mT[None]),
    }
    inputs = [torch.randn(n, WIDTH) for n in LENGTHS]
    ratios: dict[str, list[list[float]]] = {name: [] for name in calls}
    with torch.no_grad():
        for _ in range(2 if quick else 15):
            for name, call in calls.items():
                times = [seconds(lambda x=x, call=call: call(x)) for x in inputs]
                ratios[name].append([t / times[0] for t in times])
    growth = {
        name: [summary(column) for column in zip(*rounds, strict=True)]
        for name, rounds in ratios.items()
    }
    for name, row in growth.items():
        print(name, [column["median"] for column in row], flush=True)
    if not quick:
        store("self_attention", lengths=LENGTHS, width=WIDTH, growth=growth)


if __name__ == "__main__":
    main()
