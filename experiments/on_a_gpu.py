"""What attention costs on a GPU: dropout, whole rows and blocks, softmax and a sum in chunks.

Milliseconds by CUDA events, ways in turns: the median over the rounds, and the range in which eight
of ten lie. Causal, 16 heads of width 64 but for dropout, whose layers have 8 heads and are timed
forward and backward. The kernel in Triton multiplies float32 in full precision. Takes half a
minute; needs CUDA.
"""

import sys
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from attnbook import devices, linear_attention
from attnbook import torch as torch_layers
from attnbook.exact import flash
from attnbook.torch import triton_flash
from experiments.harness import Experiment, Ways

HEADS, WIDTH = 16, 64
LAYERS = (
    (4, 128, 64, "float32"),
    (4, 512, 256, "float32"),
    (8, 1024, 512, "bfloat16"),
    (2, 4096, 512, "bfloat16"),
)
LENGTHS, LONG, MOST_IN_BLOCKS = (512, 2048, 8192), (1024, 4096, 16384), 2048

Times = dict[str, list[float]]


def milliseconds(ways: Ways, rounds: int, calls: int = 5) -> Times:
    """Median, and where eight of ten rounds lie, after two calls that warm up."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for way in [*ways.values(), *ways.values()]:
        way()
    for _ in range(rounds):
        for name, way in ways.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            begin.record()
            for _ in range(calls):
                way()
            end.record()
            torch.cuda.synchronize()
            taken[name].append(begin.elapsed_time(end) / calls)
    return {
        name: [float(q) for q in np.quantile(some, [0.5, 0.1, 0.9])] for name, some in taken.items()
    }


def dropout(batch: int, n: int, width: int, dtype: str, rounds: int) -> Times:
    """The fused kernel with dropout, and the table of weights, which return_weights asks for."""
    layer = torch_layers.MultiHeadAttention(width, 8, dropout=0.1).cuda().to(getattr(torch, dtype))
    kind = {"device": "cuda", "dtype": getattr(torch, dtype)}
    x = torch.randn(batch, n, width, requires_grad=True, **kind)
    g = torch.randn(batch, n, width, **kind)

    def fused() -> None:
        layer(x, causal=True).backward(g)

    def table() -> None:
        layer(x, causal=True, return_weights=True)[0].backward(g)

    return milliseconds({"fused": fused, "weights in memory": table}, rounds)


def heads(n: int, dtype: str) -> Tensor:
    """Queries, keys and values of one text."""
    return torch.randn(3, 1, HEADS, n, WIDTH, device="cuda").to(getattr(torch, dtype))


def forward(n: int, dtype: str, rounds: int) -> Times:
    """PyTorch's kernel, the one in Triton, and the loop over blocks."""
    qkv = heads(n, dtype)
    ways: Ways = {
        "fused": partial(scaled_dot_product_attention, *qkv, is_causal=True),
        "Triton": partial(triton_flash.flash, *qkv, causal=True),
    }
    if n <= MOST_IN_BLOCKS:
        ways["blocks"] = partial(flash.forward, *qkv, block=128, causal=True)
    return milliseconds(ways, rounds)


def linear(n: int, rounds: int) -> Times:
    """The fused softmax, and a sum without one, in chunks; float32."""
    qkv = heads(n, "float32")
    softmax = partial(scaled_dot_product_attention, *qkv, is_causal=True)
    in_chunks = partial(linear_attention.chunked, *qkv)
    return milliseconds({"softmax": softmax, "sum": in_chunks}, rounds)


def main(experiment: Experiment) -> None:
    rounds = 1 if experiment.quick else 11
    if not torch.cuda.is_available():
        sys.exit("torch sees no CUDA device: nothing was timed")
    torch.manual_seed(0)
    found: dict[str, dict[str, Times]] = {"dropout": {}, "forward": {}}
    for b, n, e, dtype in LAYERS:
        found["dropout"][f"{b} x {n} x {e} {dtype}"] = dropout(b, n, e, dtype, rounds)
    for dtype in ("float16", "float32"):
        found["forward"] |= {f"{n} {dtype}": forward(n, dtype, rounds) for n in LENGTHS}
    found["linear"] = {f"{n}": linear(n, rounds) for n in LONG}
    print(devices.describe(), found, sep="\n")
    experiment.store(**found)
