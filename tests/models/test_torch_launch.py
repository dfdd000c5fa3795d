"""What run and the ring say before anything starts."""

from __future__ import annotations

import functools
import re

import pytest

torch = pytest.importorskip("torch")

from attnbook.torch.distributed import (  # noqa: E402
    deal,
    ring_attention,
    run,
    split_attention,
)


def worker(rank, world):
    return rank


def within_another(seed):
    def inner(rank, world):
        return seed

    return inner


tensor = torch.zeros(2, 4, 3)
short, three = tensor[:, :2], tensor[:, :3]


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (
            TypeError,
            "function: got inner, which uses seed of the function around it",
            lambda: run(within_another(1), 2),
        ),
        (ValueError, "processes: got 0, expected an integer, 1 or more", lambda: run(worker, 0)),
        (
            ValueError,
            "k: got shape (2, 2, 3), expected (2, 4, ...) as in q",
            lambda: ring_attention(tensor, short, short),
        ),
        (
            ValueError,
            "zigzag: got 3 tokens on a rank, expected an even number",
            lambda: ring_attention(three, three, three, zigzag=True),
        ),
        (
            ValueError,
            "x: got 10 tokens, expected a multiple of 4, the pieces",
            lambda: deal(torch.zeros(10, 1), 0, 2, zigzag=True),
        ),
        (
            ValueError,
            "rank: got 2, expected 0 to 1",
            lambda: deal(torch.zeros(8, 1), 2, 2),
        ),
        (
            RuntimeError,
            "torch.distributed: got no process group, expected one",
            lambda: split_attention(tensor, tensor, tensor),
        ),
    ],
)
def test_what_cannot_start(error, words, call):
    with pytest.raises(error, match=re.escape(words)):
        call()


@pytest.mark.parametrize("world", [1, 2, 4])
def test_every_token_is_dealt_once(world):
    """In order; or with zigzag a piece from each end, so that every rank has as many pairs."""
    n, dealt = 4 * world, functools.partial(deal, torch.arange(16.0)[: 4 * world, None])
    for zigzag in (False, True):
        rows = [dealt(rank, world, zigzag=zigzag)[:, 0].long() for rank in range(world)]
        assert torch.equal(torch.cat(rows).sort().values, torch.arange(n))
        pairs = {int((row + 1).sum()) for row in rows}  # that a causal token attends to
        assert len(pairs) == (1 if zigzag else world)
