"""What run and the ring say before anything starts, and which pairs each rank computes."""

from __future__ import annotations

import functools
import linecache
import re

import pytest

torch = pytest.importorskip("torch")

from attnbook.distributed.sources import source_of  # noqa: E402
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


short, three = tensor[:, :2], tensor[:, :3]
double = tensor.double()


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (3, ValueError, "got 3, expected a function such as def worker(rank, world)"),
        (len, TypeError, "got <built-in function len>, expected one made with def"),
        (lambda rank, world: rank, TypeError, "got <lambda>, expected one made with def"),
        (
            without_a_source(),
            TypeError,
            "got unseen, whose source is in no file or cell, expected one that is",
        ),
        (within_another(1), TypeError, "got inner, which uses seed of the function around it"),
    ],
)
def test_functions_that_cannot_be_sent(function, error, words):
    with pytest.raises(error, match=re.escape(f"function: {words}")):
        run(function, 2)


@pytest.mark.parametrize(
    ("processes", "how", "words"),
    [
        (0, {}, "processes: got 0, expected an integer, 1 or more"),
        (2, {"time_limit": 0}, "time_limit: got 0, expected a number above 0"),
        (2, {"given": lambda: 1}, "arguments: got given, expected what pickle takes"),
    ],
)
def test_wrong_launches(processes, how, words):
    with pytest.raises(ValueError, match=words):
        run(worker, processes, **how)


@pytest.mark.parametrize(
    ("given", "how", "words"),
    [
        ((tensor, short, short), {}, "k: got shape (2, 2, 3), expected (2, 4, ...) as in q"),
        ((tensor, tensor, tensor[:1]), {}, "v: got shape (1, 4, 3), expected (2, 4, ...) as in q"),
        ((three,) * 3, {"zigzag": True}, "zigzag: got 3 tokens on a rank, expected an even number"),
        ((tensor,) * 3, {"causal": 1}, "causal: got 1, expected True or False"),
        (
            (tensor, double, tensor),
            {},
            "k: got dtype torch.float64, expected torch.float32 as in q",
        ),
    ],
)
def test_wrong_rings(given, how, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        ring_attention(*given, **how)


def test_wrong_deals():
    with pytest.raises(ValueError, match="x: got 10 tokens, expected a multiple of 4, the pieces"):
        deal(torch.zeros(10, 1), 0, 2, zigzag=True)
    with pytest.raises(ValueError, match="rank: got 2, expected 0 to 1"):
        deal(torch.zeros(8, 1), 2, 2)


@pytest.mark.parametrize("function", [ring_attention, split_attention])
def test_without_a_process_group(function):
    words = "torch.distributed: got no process group, expected one"
    with pytest.raises(RuntimeError, match=words):
        function(tensor, tensor, tensor)


@pytest.mark.parametrize("function", [shared, summed, functools.partial(deal, rank=0, world=2)])
def test_arrays_that_are_no_tensors(function):
    with pytest.raises(TypeError, match=r"x: got a ndarray, expected a torch\.Tensor"):
        function(tensor.numpy())


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
