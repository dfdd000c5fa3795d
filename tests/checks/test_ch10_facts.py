"""Facts behind chapter 10's exercises and their solutions."""

from __future__ import annotations

import numpy as np
from checks.ch10 import bits, cache, followed, neighbours, size, taken_out, with_sink

from attnbook.attention import positions


def turned_apart(x):
    """Rotary positions of rows (n, d) that pair x[i] with x[i + d/2]."""
    first, second = np.split(x, 2, axis=1)
    angles = np.arange(len(x))[:, None] * positions.BASE ** (
        -np.arange(0, x.shape[1], 2) / x.shape[1]
    )
    cos, sin = np.cos(angles), np.sin(angles)
    return np.hstack([first * cos - second * sin, first * sin + second * cos])  # fmt: skip


def test_the_sizes_of_smollm2():
    assert size(49_152, 576, 30, 9, 3, 1536) == 134_515_008
    assert cache(576, 30, 9, 3, 4) == (46_080, 3)
    assert 2134 * 46_080 < 98_362_432 < 2135 * 46_080


def test_numbers_of_four_bits_are_half_a_step_from_those_kept():
    numbers = np.random.default_rng(0).normal(size=(50, 32))
    least = numbers.min(axis=1)
    scale = (numbers.max(axis=1) - least) / 15
    q = np.round((numbers - least[:, None]) / scale[:, None]).astype(int)
    kept = bits(scale, least, q[:, :16] + 16 * q[:, 16:])
    off = np.abs(kept - numbers) / scale[:, None]
    assert 0.45 < off.max() <= 0.5 + 1e-9


def test_after_the_move_scores_are_those_of_the_other_layout():
    rng, places = np.random.default_rng(0), np.arange(5)
    x, w_q, w_k = rng.normal(size=(5, 7)), *rng.normal(size=(2, 8, 7))
    expected = turned_apart(x @ w_q.T) @ turned_apart(x @ w_k.T).T
    q, k = (positions.rotary(x @ neighbours(w, 1).T, places) for w in (w_q, w_k))
    np.testing.assert_allclose(q @ k.T, expected)
    q, k = (positions.rotary(x @ w.T, places) for w in (w_q, w_k))
    assert np.isclose((q @ k.T)[0, 0], expected[0, 0])  # a single token does not show it
    assert not np.isclose((q @ k.T)[1, 0], expected[1, 0])


def test_an_even_head_on_forty_tokens_shown_twice():
    tokens = np.tile(np.arange(40), 2)
    weights = np.tri(80) / np.arange(1, 81)[:, None]
    assert abs(followed(weights, tokens) - 0.017) < 5e-4


def test_a_sink_is_shrinkage_towards_zero():
    rng = np.random.default_rng(0)
    scores, values = rng.normal(size=(1, 6)), rng.normal(size=(6, 1))
    kernel, penalty = np.exp(scores[0]), np.exp(0.4)
    got = with_sink(scores, values, 0.4)[0, 0]

    def without(scores, values):
        return with_sink(scores, values, -np.inf)

    def loss(c):
        return kernel @ (values[:, 0] - c) ** 2 + penalty * c**2

    assert loss(got) < min(loss(got - 1e-4), loss(got + 1e-4))
    far = with_sink(scores - 50, values, 0.4)
    assert abs(far[0, 0]) < 1e-12
    np.testing.assert_allclose(without(scores - 50, values), without(scores, values))


def test_the_mean_of_a_batch_of_one_takes_nothing_out():
    mixed, w_o = np.random.default_rng(0).normal(size=(2, 6, 6))
    mixed = mixed[None]
    np.testing.assert_allclose(taken_out(mixed, w_o, 1, 3)[1], mixed @ w_o.T)
