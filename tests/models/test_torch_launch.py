"""What run and the ring say before anything starts, and which pairs each rank computes."""

from __future__ import annotations

import linecache
import re

import pytest

torch = pytest.importorskip("torch")

from attnbook._validation.sources import source_of  # noqa: E402
from attnbook.torch import distributed  # noqa: E402
from attnbook.torch.distributed import (  # noqa: E402
    deal,
    ring_attention,
    run,
    shared,
    split_attention,
    summed,
)


def worker(rank, world):
    return rank


def test_the_source_of_a_cell():
    """As IPython leaves it: text in linecache, indented or not, with whatever stands around it."""
    cell = "import math\nif True:\n    def in_a_cell(rank, world):\n        return rank\n"
    linecache.cache["<cell 3>"] = (len(cell), None, cell.splitlines(keepends=True), "<cell 3>")
    names: dict = {}
    exec(compile(cell, "<cell 3>", "exec"), names)
    assert source_of(names["in_a_cell"]) == "def in_a_cell(rank, world):\n    return rank\n"
    assert source_of(worker) == "def worker(rank, world):\n    return rank\n"


def without_a_source():
    names: dict = {}
    exec("def unseen(rank, world):\n    return 1\n", names)
    return names["unseen"]


def within_another(seed):
    def inner(rank, world):
        return seed

    return inner


tensor = torch.zeros(2, 4, 3)
array = tensor.numpy()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: run(worker, 0), ValueError, "processes: got 0, expected an integer, 1 or more"),
        (lambda: run(worker, 2, time_limit=0), ValueError, "time_limit: got 0, expected a number above 0"),
        (lambda: run(worker, 2, given=lambda: 1), ValueError, "arguments: got given, expected what pickle takes"),
        (lambda: run(3, 2), ValueError, "function: got 3, expected a function such as def worker(rank, world)"),
        (lambda: run(len, 2), TypeError, "function: got <built-in function len>, expected one made with def"),
        (lambda: run(lambda rank, world: rank, 2), TypeError, "function: got <lambda>, expected one made with def"),
        (lambda: run(without_a_source(), 2), TypeError, "function: got unseen, whose source is in no file or cell, expected one that is"),
        (lambda: run(within_another(1), 2), TypeError, "function: got inner, which uses seed of the function around it"),
        (lambda: ring_attention(tensor, tensor, tensor), RuntimeError, "torch.distributed: got no process group, expected one"),
        (lambda: split_attention(tensor, tensor, tensor), RuntimeError, "torch.distributed: got no process group, expected one"),
        (lambda: ring_attention(tensor, tensor[:, :2], tensor[:, :2]), ValueError, "k: got shape (2, 2, 3), expected (2, 4, ...) as in q"),
        (lambda: ring_attention(tensor, tensor, tensor[:1]), ValueError, "v: got shape (1, 4, 3), expected (2, 4, ...) as in q"),
        (lambda: ring_attention(tensor[:, :3], tensor[:, :3], tensor[:, :3], zigzag=True), ValueError, "zigzag: got 3 tokens on a rank, expected an even number"),
        (lambda: ring_attention(tensor, tensor, tensor, causal=1), ValueError, "causal: got 1, expected True or False"),
        (lambda: ring_attention(tensor, tensor.double(), tensor), ValueError, "k: got dtype torch.float64, expected torch.float32 as in q"),
        (lambda: deal(torch.zeros(10, 1), 0, 2, zigzag=True), ValueError, "x: got 10 tokens, expected a multiple of 4, the pieces"),
        (lambda: deal(array, 0, 2), TypeError, "x: got a ndarray, expected a torch.Tensor"),
        (lambda: shared(array), TypeError, "x: got a ndarray, expected a torch.Tensor"),
        (lambda: summed(array), TypeError, "x: got a ndarray, expected a torch.Tensor"),
        (lambda: deal(torch.zeros(8, 1), 2, 2), ValueError, "rank: got 2, expected 0 to 1"),
    ],
)  # fmt: skip
def test_wrong_calls(call, error, words):
    with pytest.raises(error, match=re.escape(words)):
        call()


@pytest.mark.parametrize("world", [1, 2, 4])
@pytest.mark.parametrize("zigzag", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_every_pair_is_computed_once(world, zigzag, causal):
    """And no pair that is not allowed; with zigzag all ranks compute equally many."""
    m = 4
    n = m * world
    how = distributed._How(causal, zigzag, None)
    places = torch.arange(float(n))[:, None]
    rows = [deal(places, rank, world, zigzag=zigzag)[:, 0].long() for rank in range(world)]
    assert torch.equal(torch.cat(rows).sort().values, torch.arange(n))
    times, work = torch.zeros(n, n), []
    for rank in range(world):
        computed = 0
        for owner in range(world):
            for _, down, across, mask in distributed._seen(
                how, (rank, owner), world, torch.zeros(m, 3)
            ):
                i, j = rows[rank][down], rows[owner][across]
                times[i[:, None], j] += torch.ones(len(i), len(j)) if mask is None else mask.float()
                computed += len(i) * len(j)
        work.append(computed)
    assert torch.equal(times, torch.ones(n, n).tril() if causal else torch.ones(n, n))
    if causal and not zigzag:
        assert max(work) / (sum(work) / world) == pytest.approx(2 * world / (world + 1))
    else:
        assert len(set(work)) == 1
