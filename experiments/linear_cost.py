"""What a state of fixed size costs as a text grows, beside the fused softmax and our own flash.

Single precision, one head of width 64, one thread, seed 0, causal. First all tokens of a text at
once, in several forms, then one token more after a text of that length. The ways take turns, and
the least time of each counts. "linear" adds, "delta" is the gated delta rule. Takes about five
minutes.
"""

import functools
from itertools import pairwise
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from attnbook import linear_attention
from attnbook.exact import flash
from experiments.harness import Experiment, Ways, columns, least_seconds, rounded

D, CHUNK, BLOCK = 64, 64, 256
LENGTHS = [256, 512, 1024, 2048, 4096, 8192, 16384]
NUMBER = 4  # bytes


def sample(n: int) -> tuple[Any, ...]:
    """Queries, keys of length 1, values, decays near 1 and shares written, for one head."""
    made = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, n, D, generator=made)
    decay, beta = torch.rand(2, n, generator=made)
    return q, torch.nn.functional.normalize(k, dim=-1), v, 0.95 + 0.05 * decay, beta


def all_at_once(n: int) -> Ways:
    q, k, v, decay, beta = sample(n)
    gated = {"decay": decay, "beta": beta}
    chunked, recurrent = linear_attention.chunked, linear_attention.recurrent
    four = [a[None, None] for a in (q, k, v)]
    return {
        "linear, chunked": functools.partial(chunked, q, k, v, chunk=CHUNK),
        "delta, chunked": functools.partial(chunked, q, k, v, chunk=CHUNK, **gated),
        "linear, recurrent": functools.partial(recurrent, q, k, v),
        "delta, recurrent": functools.partial(recurrent, q, k, v, **gated),
        "softmax, fused": functools.partial(scaled_dot_product_attention, *four, is_causal=True),
        "softmax, ours": functools.partial(flash.forward, q, k, v, block=BLOCK, causal=True),
    }


def one_more(n: int) -> Ways:
    """The next token: with a state, and with a cache of n keys and values."""
    q, k, v, decay, beta = sample(n)
    *tokens, decay, beta = (a[-1:] for a in (q, k, v, decay, beta))
    state = linear_attention.chunked(q, k, v)[1]
    delta = functools.partial(
        linear_attention.recurrent, *tokens, decay=decay, beta=beta, state=state
    )
    four = [a[None, None] for a in (tokens[0], k, v)]
    return {"delta": delta, "softmax": functools.partial(scaled_dot_product_attention, *four)}


def crossing(lengths: list[int], ours: list[float], theirs: list[float]) -> float | None:
    """From which length on ours takes less time; lines between the logarithms of what was seen."""
    gaps = [a / b for a, b in zip(ours, theirs, strict=True)]
    if gaps[-1] >= 1:
        return None
    for (n, here), (further, there) in reversed(list(pairwise(zip(lengths, gaps, strict=True)))):
        if here >= 1:
            share = torch.tensor(here).log() / torch.tensor(here / there).log()
            return rounded(n * (further / n) ** float(share), 3)
    return lengths[0]


def main(experiment: Experiment) -> None:
    lengths, rounds = (LENGTHS[:3], 1) if experiment.quick else (LENGTHS, 9)
    seconds = columns([least_seconds(all_at_once(n), rounds) for n in lengths])
    steps = columns([least_seconds(one_more(n), 4 * rounds, calls=20) for n in lengths])
    crosses = {
        name: crossing(lengths, taken, seconds["softmax, fused"])
        for name, taken in seconds.items()
        if not name.startswith("softmax")
    }
    print(seconds, steps, crosses, sep="\n", flush=True)
    experiment.store(
        width=D,
        chunk=CHUNK,
        block=BLOCK,
        lengths=lengths,
        seconds=seconds,
        **{"seconds of one more token": steps, "crosses the fused softmax": crosses},
        bytes={"state": D * D * NUMBER, "cache": [2 * n * D * NUMBER for n in lengths]},
    )
