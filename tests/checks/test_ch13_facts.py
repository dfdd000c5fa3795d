"""Facts behind chapter 13's exercises and their solutions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from checks.ch13 import (
    NEW,
    SEED,
    batches,
    by_table,
    dealing,
    each_for_itself,
    held,
    in_a_row,
    reduced,
    ring,
)
from mending import altered

from attnbook import torch as layers
from attnbook.distributed import traffic
from attnbook_course.checks import ch13
from attnbook_course.checks.repair import define

PARAMETERS = 6_456_747_008  # of the chapter's large model
FLOPS, INSIDE, NETWORK = 989e12, traffic.Link(1e-5, 450e9), traffic.Link(1e-5, 50e9)


def by_traffic(flops, bandwidth, latency, width, itemsize):
    link = traffic.Link(latency, bandwidth)
    return math.ceil(traffic.least_block(flops, link, itemsize=itemsize, width=width))


def step_of(batch, world):
    """Seconds of computing and of sending in a step of copies on the network."""
    sent = traffic.all_reduce(2 * PARAMETERS, world)
    compute = 6 * PARAMETERS * batch / world / FLOPS
    return compute, traffic.seconds(2 * (world - 1), sent, NETWORK)


def test_the_broken_ring_is_right_for_one_worker_and_for_equal_values():
    broken = define(ch13.RING_AVERAGE, "ring_average", {"np": np})
    right = ring(NEW)
    q, k, v = np.random.default_rng(0).normal(size=(3, 4, 6, 2))
    np.testing.assert_allclose(broken(q[:1], k[:1], v[:1]), right(q[:1], k[:1], v[:1]))
    np.testing.assert_allclose(broken(q, k, np.ones_like(v)), 1)
    assert abs(broken(q, k, v) - right(q, k, v)).max() > 0.1
    later = v.copy()
    later[3] += 1  # what comes last must not move what comes first
    assert abs(broken(q, k, later) - broken(q, k, v))[0].max() > 0.01
    np.testing.assert_array_equal(right(q, k, later)[0], right(q, k, v)[0])
    seen = np.zeros((24, 24), dtype=bool)  # what moves where a value moves
    for j in range(24):
        moved = v.copy()
        moved.reshape(24, 2)[j] += 1
        seen[:, j] = abs(broken(q, k, moved) - broken(q, k, v)).max(axis=2).ravel() > 1e-9
    place = np.arange(24) % 6
    np.testing.assert_array_equal(seen, place <= place[:, None])
    assert np.flatnonzero(np.diagonal(seen, 1)).tolist() == [5, 11, 17]  # see their own targets


def test_micro_batches_that_keep_a_stage_busy():
    for stages, enough in ((4, 27), (64, 567)):
        assert by_table(stages, enough) <= 0.1 + 1e-12 < by_table(stages, enough - 1)


def test_which_stage_fits_on_which_device():
    with torch.device("meta"):
        large = layers.DecoderOnly(
            1024, 1024, embed_dim=4096, num_heads=32, mlp_dim=4 * 4096, num_layers=32
        )
    assert sum(p.numel() for p in large.parameters()) == PARAMETERS
    sizes = [held(PARAMETERS, 8, stage) / 1e9 for stage in range(4)]
    assert [round(size) for size in sizes] == [103, 36, 24, 13]
    for device, left, stage in ((80, 53, 1), (40, 27, 2), (24, 16, 3)):
        assert round(device * 2 / 3) == left
        assert sizes[stage] < device * 2 / 3 < sizes[stage - 1]
    assert round(2 * PARAMETERS / 1e9) == 13 and round(held(PARAMETERS, 64, 2) / 1e9) == 14
    assert round(4 * PARAMETERS / 1e9) == 26


def test_the_least_blocks_of_the_solution():
    for link, width, block in ((INSIDE, 4096, 2445), (NETWORK, 4096, 19811), (INSIDE, 128, 5630)):
        assert by_traffic(FLOPS, link.bandwidth, link.latency, width, 2) == block
    assert [by_traffic(FLOPS, rate, 0, 4096, 2) for rate in (450e9, 50e9)] == [2198, 19780]
    assert (2445 - 2198, 19811 - 19780) == (247, 31)
    assert (
        by_traffic(0.6 * FLOPS, 50e9, 1e-5, 4096, 2)
        < 19811
        < by_traffic(FLOPS, 40e9, 1e-5, 4096, 2)
    )
    assert round(64 * 19811 / 1e6, 1) == 1.3
    masked = by_traffic(2 * FLOPS, 50e9, 1e-5, 4096, 2)  # half of the operations
    assert 64 * masked / 1e6 == pytest.approx(2.5, abs=0.05)


def test_seconds_of_a_step_on_320_processors_and_on_1024():
    times = [f(step_of(2**22, world)) for world in (320, 1024) for f in (max, sum)]
    assert [round(time, 2) for time in times] == [0.52, 1.03, 0.54, 0.70]
    assert [round(time, 2) for time in step_of(2**22, 1024)] == [0.16, 0.54]
    for batch, corner in ((2**20, 79), (2**22, 316)):
        compute, send = step_of(batch, corner)
        assert compute / send == pytest.approx(1, abs=0.02)
        assert round(batch / corner, -3) == 13_000


def test_a_ring_of_neighbours_takes_nearly_twice_as_long_as_the_zigzag():
    world, b = 8, 50
    n, slowest, even = 2 * world * b, 0, 0
    for t in range(world):
        slowest += max(in_a_row(n, world, rank)[1][t] for rank in range(world))
        even += max(dealing(n, world, rank)[1][t] for rank in range(world))
    assert slowest == (4 * world - 2) * b**2 + b
    assert even == 2 * b**2 * world + b == n * (n + 1) // 2 // world
    assert slowest / even == pytest.approx(2 - 1 / world, abs=0.01)


def test_copies_have_the_same_bits_only_if_a_sum_is_finished_once():
    for world, n, differ in ((8, 20_000, 0.57), (256, 1024, 0.82)):
        arrays = np.random.default_rng(0).normal(size=(world, n)).astype(np.float32)
        exact = arrays.sum(axis=0, dtype=np.float64)
        copied, own = reduced(arrays)[0], each_for_itself(arrays)[0]
        pairs = arrays
        while len(pairs) > 1:
            pairs = pairs[::2] + pairs[1::2]
        assert copied.dtype == own.dtype == np.float32
        assert (copied == copied[0]).all()
        assert np.mean(own[0] != own[1]) == pytest.approx(differ, abs=0.04)
        error = [np.sqrt(np.mean((x - exact) ** 2)) for x in (copied[0], own[0], pairs[0])]
        assert error[0] == pytest.approx(error[1], rel=0.1)
        assert error[2] < (0.95 if world == 8 else 0.4) * error[0]


def test_seed_plus_epoch_shares_epochs_between_runs():
    mixed = altered(batches, SEED, "seed + epoch")
    for place in range(3):
        first, second = (mixed(38, 12, 3 * e + place, 0, 1, seed) for e, seed in ((1, 2), (0, 3)))
        np.testing.assert_array_equal(first, second)


def test_another_number_of_workers_ends_the_epoch_without_a_repetition():
    seen = []
    for step, world in ((6, 4), (7, 2), (8, 3)):  # epoch 2, restarted twice
        seen += [i for rank in range(world) for i in batches(38, 12, step, rank, world, 5)]
    assert len(seen) == len(set(seen)) == 36
