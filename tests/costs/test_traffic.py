"""Bytes and work of many devices against loops that pass messages, count pairs and take turns."""

import dataclasses
from functools import partial

import numpy as np
import pytest

from attnbook.distributed import traffic

WORLDS = (1, 2, 3, 8)
WHOLE = 48  # numbers, which all of the worlds divide
ITEM = 8  # bytes of a float64


def ring_reduced(arrays):
    """Each rank's sum of its own piece, after W − 1 steps round the ring; and the bytes it sent."""
    world = len(arrays)
    pieces = [np.split(a.copy(), world) for a in arrays]
    sent = [0] * world
    for step in range(world - 1):
        messages = [pieces[r][(r - step - 1) % world].copy() for r in range(world)]
        for r, message in enumerate(messages):
            sent[r] += message.nbytes
            pieces[(r + 1) % world][(r - step - 1) % world] += message
    return [pieces[r][r] for r in range(world)], sent


def ring_gathered(pieces):
    """Every rank's copy of all pieces, each of which went round the ring; and the bytes it sent."""
    world = len(pieces)
    held = [{r: piece} for r, piece in enumerate(pieces)]
    sent = [0] * world
    for step in range(world - 1):
        for r in range(world):
            message = held[r][(r - step) % world]
            sent[r] += message.nbytes
            held[(r + 1) % world][(r - step) % world] = message
    return [np.concatenate([have[r] for r in range(world)]) for have in held], sent


@pytest.mark.parametrize("world", WORLDS)
def test_collectives_message_by_message(rng, world):
    arrays = rng.normal(size=(world, WHOLE))
    pieces, scattered = ring_reduced(arrays)
    wholes, gathered = ring_gathered(pieces)
    for whole in wholes:
        np.testing.assert_allclose(whole, arrays.sum(axis=0), atol=1e-14)
    size = WHOLE * ITEM
    assert set(scattered) == {traffic.reduce_scatter(size, world)}
    assert set(gathered) == {traffic.all_gather(size, world)}
    both = {a + b for a, b in zip(scattered, gathered, strict=True)}
    assert both == {traffic.all_reduce(size, world)}
    assert both == {traffic.zero_traffic(size, world, stage) for stage in (0, 1, 2)}
    twice = {a + 2 * b for a, b in zip(scattered, gathered, strict=True)}
    assert twice == {traffic.zero_traffic(size, world, 3)}


@pytest.mark.parametrize("world", WORLDS)
def test_ring_step_by_step(world):
    """Every block is seen by every rank, and every gradient has all its terms when it is home."""
    block = 7
    here, seen, sent = list(range(world)), [set() for _ in range(world)], 0
    terms = [[] for _ in range(world)]  # of the gradient that travels with the block of a rank
    forward = 0
    for step in range(world):
        for rank in range(world):
            seen[rank].add(here[rank])
            terms[here[rank]].append(rank)
        if step + 1 < world:
            here = [here[rank - 1] for rank in range(world)]
            forward += 2 * block  # keys and values, from each rank
            sent += 4 * block  # and their gradients
    assert all(one == set(range(world)) for one in seen)
    assert all(sorted(ranks) == list(range(world)) for ranks in terms)
    while here != list(range(world)):  # gradients alone go on
        here = [here[rank - 1] for rank in range(world)]
        sent += 2 * block
    assert traffic.ring(block, world) == forward
    assert traffic.ring_backward(block, world) == sent


def test_heads_split_by_its_arrays():
    stream = np.zeros((3, 5, 12), np.float32)
    assert traffic.heads_split(3, 5, 12, 4) == sum(a.nbytes for a in (stream, stream))


@pytest.mark.parametrize("world", WORLDS)
def test_zero_by_its_arrays(world):
    """What a rank holds: bfloat16 twice, as 16 bits, and three float32, each whole or a slice."""
    kinds = [(np.uint16,), (np.uint16,), (np.float32,) * 3]  # weights, gradients, Adam
    for stage in range(4):
        held = 0
        for kind, dtypes in enumerate(kinds):
            for dtype in dtypes:
                array = np.zeros(WHOLE, dtype)
                divided = stage >= 3 - kind
                held += (np.split(array, world)[0] if divided else array).nbytes
        assert traffic.zero(WHOLE, world, stage) == held
    in_float32 = traffic.zero(WHOLE, world, 2, weights=4, gradients=4, optimizer=8)
    assert in_float32 == 4 * WHOLE + 12 * WHOLE / world


@pytest.mark.parametrize("shape", [(), (1,), (5, 3), (8, 2, 2), (0, 4)])
def test_padded_row_by_row(shape):
    for world in WORLDS:
        rows, *rest = shape or (1,)
        dealt = np.zeros(world, int)
        for row in range(rows):
            dealt[row % world] += 1
        assert traffic.padded(shape, world) == world * dealt.max() * np.prod(rest, dtype=int)


@pytest.mark.parametrize("world", WORLDS)
def test_causal_imbalance_pair_by_pair(world):
    """A block of pairs is work if one of its pairs is allowed; in the zigzag pairs agree as well."""
    size = 4 * world  # tokens
    token = np.arange(size)
    allowed = token[:, None] >= token
    contiguous = token // 4
    pieces = token // 2
    zigzag = np.minimum(pieces, 2 * world - 1 - pieces)
    tiles = allowed.reshape(world, 4, world, 4).any(axis=(1, 3)).sum(axis=1)
    assert traffic.causal_imbalance(world) == pytest.approx(tiles.max() / tiles.mean(), rel=1e-14)
    pairs = np.bincount(zigzag, weights=allowed.sum(axis=1))
    assert len(pairs) == world
    assert traffic.causal_imbalance(world, zigzag=True) == pairs.max() / pairs.mean()
    in_order = np.bincount(contiguous, weights=allowed.sum(axis=1))
    assert in_order.max() / in_order.mean() >= traffic.causal_imbalance(world)


LINK = traffic.Link(latency=3e-6, bandwidth=4e9)
COPIES = partial(traffic.data_parallel_efficiency, flops=1e12, link=LINK)
RING = partial(traffic.ring_efficiency, flops=1e12, link=LINK)


def clock(sizes):
    """The time at which the last of messages is there that follow one another."""
    time = 0.0
    for size in sizes:
        time += LINK.latency
        time += size / LINK.bandwidth
    return time


@pytest.mark.parametrize("world", WORLDS)
def test_data_parallel_efficiency_message_by_message(world):
    parameters, tokens, flops = 10**6, 50, 1e12
    forward = 2 * tokens * parameters / flops
    backward = 2 * forward  # gradients of the inputs and of the weights
    compute = forward + backward
    send = clock([parameters * 2 / world] * (world - 1) * 2)
    found = COPIES(parameters, tokens, world)
    assert found == pytest.approx(compute / (compute + send), rel=1e-12)
    found = COPIES(parameters, tokens, world, overlap=True)
    assert found == pytest.approx(compute / (forward + max(backward, send)), rel=1e-12)


@pytest.mark.parametrize("tokens", [20, 2000])  # sending is longer, computing is longer
@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("world", WORLDS)
def test_ring_efficiency_step_by_step(world, overlap, tokens):
    """Two clocks: a block is computed with when it is there, and travels on meanwhile or after."""
    width, flops = 64, 1e12
    compute = 2 * 2 * tokens * tokens * width / flops  # Q Kᵀ and W V, a product and a sum each
    send = clock([2 * 2 * tokens * width])
    there = time = 0.0
    for step in range(world):
        begin = max(time, there)
        time = begin + compute
        if step + 1 < world:
            there = (begin if overlap else time) + send
    found = RING(tokens, width, world, overlap=overlap)
    assert found == pytest.approx(world * compute / time, rel=1e-12)


def test_least_block_and_least_tokens_are_where_the_times_meet():
    """Found by halving, without latency and with it."""
    flops, width = 3e13, 256
    still = dataclasses.replace(LINK, latency=0.0)

    def meet(later):
        low, high = 1.0, 1e9
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (low, middle) if later(middle) else (middle, high)
        return high

    for link, given in ((still, None), (still, width), (LINK, width)):

        def later(c, link=link):
            return 4 * c * c * width / flops >= traffic.seconds(1, 4 * c * width, link)

        expected = meet(later)
        found = traffic.least_block(flops, link, width=given)
        assert found == pytest.approx(expected, rel=1e-9)
    assert traffic.least_block(flops, LINK) == traffic.least_block(flops, still)
    expected = meet(lambda n: 4 * 10**6 * n / flops >= traffic.seconds(0, 4 * 10**6, still))
    assert traffic.least_tokens(flops, LINK) == pytest.approx(expected, rel=1e-9)


def test_arrays_broadcast_and_integers_are_wide():
    worlds, sizes = np.array(WORLDS), np.array([[8], [80]])
    for function in (traffic.all_reduce, traffic.ring, traffic.ring_backward, traffic.all_gather):
        expected = [[function(size, world) for world in WORLDS] for size in (8, 80)]
        np.testing.assert_allclose(function(sizes, worlds), expected, rtol=1e-14)
    assert traffic.ring(np.int32(2**30), 8) == 14 * 2**30


WRONG = [
    (traffic.all_reduce, (-1, 2), "size: got -1, expected numbers, 0 "),
    (traffic.ring, (1, 0), "world: got 0, expected integers, 1 or more"),
    (traffic.zero, (1, 2, 4), "stage: got 4, expected 0 to 3"),
    (traffic.heads_split, (1, 2, 0.5, 2), "embed_dim: got 0.5, expected integers"),
    (traffic.Link, (0.0, 0.0), "bandwidth: got 0.0"),
]


@pytest.mark.parametrize(("function", "arguments", "message"), WRONG)
def test_wrong_arguments(function, arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        function(*arguments)
