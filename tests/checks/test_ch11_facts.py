"""Facts behind chapter 11's exercises and their solutions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from checks.ch11 import (
    FAULT,
    RIGHT_GATE,
    chunks,
    error,
    gate,
    gauss,
    landmark,
    one_after_another,
    pairs,
    recurrence,
    tokens,
    written,
)

from attnbook import linear_attention
from attnbook.linear_attention import online_regression


def drawn(n, d, p):
    """Queries, keys of length 1, values, decays and rates of n tokens."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(n, width)) for width in (d, d, p))
    k /= np.linalg.norm(k, axis=1, keepdims=True)
    return q, k, v, rng.uniform(0.3, 0.9, n), rng.uniform(0.3, 1, n)


def step_by_step(beta, n, d, noise):
    error = 1.0
    for _ in range(n):
        error = (1 - beta * (2 - beta) / d) * error + beta**2 * noise**2 / d
    return error


TABLE = {16: (0.73, 0.47, 0.52, 0.47, 0.39), 64: (0.48, 0.125, 0.26, 0.115, 0.074),
         256: (0.18, 0.030, 0.25, 0.020, 0.016), 1024: (0.06, 0.008, 0.25, 0.004, 0.004)}  # fmt: skip


def delta_error(k, y, w, rates):
    state = np.zeros(w.shape)
    for t, rate in enumerate(rates):
        state += rate * (y[:, t] - (k[:, t] * state).sum(-1))[:, None] * k[:, t]
    return ((state - w) ** 2).sum(-1).mean() / w.shape[1]


def test_the_measured_error_of_opposite_frequencies_is_the_derived_one():
    rng = np.random.default_rng(0)
    q, k = np.asarray([0.3, -0.2, 0.1]), np.asarray([0.1, 0.3, 0.2])
    omega = rng.normal(size=(100_000, 4, 3))
    s, scale = omega @ (q + k), np.exp(-(q @ q + k @ k) / 2 - q @ k)
    z = scale * (np.exp(s) + np.exp(-s)).mean(axis=1) / 2
    assert abs(z.mean() - 1) < 0.005
    assert abs(z.std() / error(q, k, 4) - 1) < 0.02
    assert error(q, -q, 1) == 0


def test_a_key_written_again_is_answered_exactly_after_the_mending_alone():
    k, v = np.asarray([[0.6, 0.8]] * 2), np.asarray([[1.0], [3.0]])
    for line, last in ((RIGHT_GATE, 3.0), (f"error = 1.0 * v[t] - {FAULT[15:]}", 2.5)):
        got = gate(line)(k, k, v, np.full(2, 0.5), np.ones(2))
        np.testing.assert_allclose(got[:, 0], [1.0, last])


def test_writing_is_a_projection():
    rng = np.random.default_rng(0)
    state, key, value = rng.normal(size=(4, 2)), rng.normal(size=4), rng.normal(size=2)
    once = written(state, key, value)
    np.testing.assert_allclose(key @ once, value)
    np.testing.assert_allclose(written(once, key, value), once)
    for _ in range(20):  # others that answer the key exactly are farther away
        beside = rng.normal(size=(4, 2))
        beside -= np.outer(key, key @ beside) / (key @ key)
        assert np.sum((once + beside - state) ** 2) > np.sum((once - state) ** 2)


def test_pairs_in_parts_are_the_posterior_in_any_order():
    rng = np.random.default_rng(0)
    features, values, noise = rng.normal(size=(7, 4)), rng.normal(size=7), 0.3
    precision = features.T @ features + noise**2 * np.eye(4)
    for order in (np.arange(7), rng.permutation(7)):
        w, cov = np.zeros(4), np.eye(4)
        for part in (order[:1], order[1:4], order[4:]):
            w, cov = pairs(w, cov, features[part], values[part], noise)
        np.testing.assert_allclose(w, np.linalg.solve(precision, features.T @ values))
        np.testing.assert_allclose(cov, noise**2 * np.linalg.inv(precision), atol=1e-12)
    mean, covariance = online_regression.recursive(features, values[:, None], noise=noise)
    np.testing.assert_allclose(w, mean[:, 0])
    np.testing.assert_allclose(cov, covariance, atol=1e-12)


def test_the_package_gives_the_same():
    arrays = q, k, v, decay, beta = drawn(9, 4, 3)
    gated_delta, _ = linear_attention.recurrent(q, k, v, decay=decay, beta=beta)
    np.testing.assert_allclose(gate(RIGHT_GATE)(*arrays), gated_delta)
    u = online_regression.one_pass(k @ k.T, v, beta=0.7)
    np.testing.assert_allclose(one_after_another(k @ k.T, v, 0.7), u)
    last, _ = linear_attention.recurrent(q, k, v, beta=np.full(9, 0.7))
    np.testing.assert_allclose(last[-1], q[-1] @ k.T @ u)


def test_eight_landmarks_are_within_a_hundredth():
    x = np.linspace(-1, 1, 401)
    worst = {}
    for r in (7, 8, 12):
        f = landmark(x, np.linspace(-1, 1, r), 0.3)
        worst[r] = np.abs(f @ f.T - gauss(x, x, 0.3)).max()
    assert worst[8] < 0.01 < worst[7]
    assert round(worst[12], 5) == 0.00014


@pytest.mark.parametrize("n", [16, 64, 256])
def test_the_table_of_learning_rates(n):
    d, noise, rng = 16, 0.5, np.random.default_rng(0)
    rates = np.arange(1, 200) / 100
    errors = step_by_step(rates, n, d, noise)
    best, least, one, falling, squares = TABLE[n]
    assert rates[errors.argmin()] == best
    assert abs(errors.min() - least) < 0.005
    assert abs(step_by_step(1.0, n, d, noise) - one) < 0.005
    k = rng.normal(size=(400, n, d))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    w = rng.normal(size=(400, d))
    w *= d**0.5 / np.linalg.norm(w, axis=-1, keepdims=True)
    y = (k @ w[..., None])[..., 0] + noise * rng.normal(size=(400, n))
    assert abs(delta_error(k, y, w, np.full(n, best)) / errors.min() - 1) < 0.06
    left, falls = 1.0, []
    for _ in range(n):
        falls.append(left / (left + noise**2))
        left *= 1 - falls[-1] / d
    assert abs(delta_error(k, y, w, falls) / falling - 1) < 0.06
    gram = k.mT @ k + noise**2 * np.eye(d)
    fit = np.linalg.solve(gram, k.mT @ y[..., None])[..., 0]
    assert abs(((fit - w) ** 2).sum(-1).mean() / d / squares - 1) < 0.08


def test_maps_of_tokens_put_together_are_the_recurrence():
    q, k, v, a, b = arrays = drawn(6, 3, 2)
    maps = [(a[t] * (np.eye(3) - b[t] * np.outer(k[t], k[t])), b[t] * np.outer(k[t], v[t]))
            for t in range(6)]  # fmt: skip
    chain = maps[0]
    for one in maps[1:]:
        chain = tokens(*chain, *one)
    halves = [tokens(*tokens(*maps[i], *maps[i + 1]), *maps[i + 2]) for i in (0, 3)]
    np.testing.assert_allclose(chain[1], tokens(*halves[0], *halves[1])[1])
    np.testing.assert_allclose(q[5] @ chain[1], recurrence(*map(torch.asarray, arrays), 1)[5])


def test_a_chunk_of_any_size_is_the_recurrence():
    arrays = drawn(13, 4, 3)
    right = recurrence(*map(torch.asarray, arrays), 1)
    for size in (1, 2, 5, 13, 40):
        np.testing.assert_allclose(chunks(*arrays, size), right)
