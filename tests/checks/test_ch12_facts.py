"""Facts behind chapter 12's exercises and their solutions."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from checks.ch12 import merging, reaching, split, taking, traffic, visits, widths
from mending import altered

from attnbook import nadaraya_watson, softmax
from attnbook_course.checks import ch12
from attnbook_course.checks.repair import define


def test_the_broken_average_is_right_where_the_largest_score_comes_first():
    rng = np.random.default_rng(0)
    broken = define(ch12.RUNNING_AVERAGE, "running_average", {"np": np})
    scores, values = np.sort(rng.normal(size=11))[::-1], rng.normal(size=(11, 2))
    np.testing.assert_allclose(broken(scores, values), softmax(scores) @ values)
    assert abs(broken(scores[::-1], values) - softmax(scores[::-1]) @ values).max() > 0.05


def test_shares_of_blocks_at_1024_tokens():
    assert reaching(1024, 64, 1024) == 136
    assert reaching(1024, 64, 128) == 45
    documents = altered(visits, "i - j < w", "i // w == j // w")
    assert documents(1024, 64, 256) == 40


@pytest.mark.parametrize(
    ("memory", "width", "megabytes"), [(58_368, 145, 62.9), (14_592, 48, 182.5)]
)
def test_traffic_of_a_memory_of_228_kib_and_of_a_quarter(memory, width, megabytes):
    b, moved = traffic(4096, 64, memory)
    assert b == width
    assert round(moved / 1e6, 1) == megabytes


def test_a_part_leaves_as_many_digits_as_its_share_does():
    rng = np.random.default_rng(0)
    for zeros in (3, 6, 9):
        rest, part = rng.normal(size=(2, 200, 1))
        r = rng.normal(size=200)
        p = r + zeros * np.log(10)
        whole = merging(rest, r, part, p)
        off = np.median(abs(taking(*whole, part, p)[0] - rest))
        assert 10 ** (zeros - 18) < off < 10 ** (zeros - 15)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("height", "least", "most"), [(0, 0, 1e-12), (20, 1e-10, 1e-5), (40, np.nan, np.nan)]
)
def test_a_window_that_removes_keys_remembers_a_large_score(height, least, most):
    rng = np.random.default_rng(0)
    scores, values = rng.normal(size=(2, 600, 1))
    scores[100] += height
    state = values[:1], scores[0]
    for i in range(1, 600):
        state = merging(*state, values[i : i + 1], scores[i])
        if i >= 64:
            state = taking(*state, values[i - 64 : i - 63], scores[i - 64])
    off = abs(state[0] - softmax(scores[-64:, 0]) @ values[-64:]).item()
    assert np.isnan(off) if np.isnan(least) else least <= off < most


def test_the_bandwidth_s_gradient_is_that_of_the_estimator():
    rng = np.random.default_rng(0)
    x, z, v, g = (rng.normal(size=n) for n in (6, 9, 9, 6))
    by = partial(nadaraya_watson, x[:, None], z[:, None], v[:, None])
    square = (x[:, None] - z) ** 2 / (2 * 0.6**2)
    lse = np.logaddexp.reduce(-square, axis=1)
    got = widths(g, x, z, v, by(bandwidth=0.6)[:, 0], lse, 0.6)
    slope = g @ (by(bandwidth=0.6 + 1e-5) - by(bandwidth=0.6 - 1e-5))[:, 0] / 2e-5
    np.testing.assert_allclose(got, slope, rtol=1e-6)


def test_a_chain_stops_and_a_tree_goes_on():
    rng = np.random.default_rng(0)
    n = 1024
    scores, values = rng.normal(size=n), rng.normal(size=(n, 1)) + np.linspace(0, 2, n)[:, None]
    right = softmax(scores) @ values
    chain, tree = (abs(split(scores, values, 1, on, 8) - right)[0] for on in (False, True))
    assert tree < 0.02 < 0.1 < chain
    assert split(np.zeros(400), np.ones((400, 1)), 1, False, 8) == 1  # both sums stop, at 256
