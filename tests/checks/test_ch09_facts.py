"""Facts behind chapter 9's exercises and their solutions."""

from __future__ import annotations

import numpy as np
import pytest
from checks.ch09 import error, gauss, layer, least, left, masked, unit, weights

from attnbook import nadaraya_watson
from attnbook.kernel import gaussian_process

SCALES = np.geomspace(0.1, 1, 25)


def test_the_weights_of_eleven_keys():
    keys = np.linspace(-1, 1, 11)
    middle, beyond = weights(np.asarray([0, 1.5]), keys, 0.3, 0.2)
    np.testing.assert_allclose(middle[5:8], [0.62, 0.27, -0.09], atol=0.006)
    np.testing.assert_allclose(beyond[-2:], [-0.52, 0.56], atol=0.006)
    np.testing.assert_allclose([middle.sum(), beyond.sum()], [0.99, 0.22], atol=0.006)


def test_with_large_noise_the_weights_in_proportion_are_nadaraya_watsons():
    queries, keys = np.linspace(-1, 1, 3), np.linspace(-1, 1, 5)
    _, expected = nadaraya_watson(
        queries[:, None], keys[:, None], keys[:, None], bandwidth=0.3, return_weights=True
    )
    np.testing.assert_allclose(unit(weights(queries, keys, 0.3, 1e4)), expected, atol=1e-7)


def test_the_best_bandwidths_and_their_distance_from_the_optimum():
    rng = np.random.default_rng(0)
    for n, bandwidth, ratio in ((4, 0.17, 1.6), (16, 0.09, 1.9), (64, 0.06, 2.0)):
        found, best = np.zeros(3), 0.0
        for _ in range(200):
            keys, queries = rng.uniform(-1, 1, n), rng.uniform(-1, 1, 20)
            for i, h in enumerate(bandwidth * np.asarray([0.8, 1, 1.25])):
                score = -0.5 * ((queries[:, None] - keys) / h) ** 2
                w = unit(np.exp(score - score.max(1, keepdims=True)))
                found[i] += error(w, queries, keys, 0.3, 0.2).mean()
            best += least(None, queries, keys, 0.3, 0.2).mean()
        assert found.argmin() == 1
        assert abs(found[1] / best - ratio) < 0.1


def test_left_out_by_the_weight_of_its_own_value():
    rng = np.random.default_rng(1)
    keys, values = rng.uniform(-1, 1, 7), rng.normal(size=7)
    w = weights(keys, keys, 0.4, 0.3)
    mean, _ = left(keys, values, 0.4, 0.3)
    residual = (values - w @ values) / (1 - np.diag(w))
    np.testing.assert_allclose(values - mean, residual, rtol=1e-8)


def test_what_leaks_through_two_layers():
    n = 5
    for pairs, leaks in ((np.tri, False), (lambda n: np.ones((n, n)), True)):
        mask = masked(n, pairs).astype(int)
        one_layer, two_layers = mask[n:, :n], (mask @ mask)[n:, :n]
        late = np.triu(np.ones((n, n), dtype=bool))
        assert not one_layer[late].any()
        assert two_layers[late].any() == leaks


def test_layers_are_steps_of_gradient_descent():
    rng = np.random.default_rng(2)
    p, n, rate = 3, 7, 0.3
    tokens = rng.normal(size=(n + 2, p + 1))
    tokens[n:, p] = 0
    x, y, e, beta = tokens[:n, :p], tokens[:n, p].copy(), tokens.copy(), np.zeros(p)
    w_q, w_k, w_v = layer(p, n, rate)
    for _ in range(4):
        e = e + (e @ w_q.T) @ (e[:n] @ w_k.T).T @ (e[:n] @ w_v.T)
        beta = beta - rate / n * x.T @ (x @ beta - y)
        np.testing.assert_allclose(e[n:, p], -tokens[n:, :p] @ beta, rtol=1e-10)


def test_many_layers_with_a_covariance_are_the_posterior_without_noise():
    rng = np.random.default_rng(3)
    keys, queries, values = np.linspace(-1, 1, 5), rng.uniform(-1, 1, 3), rng.normal(size=5)
    k, among = gauss(queries, keys, 0.3), gauss(keys, keys, 0.3)
    left_over, prediction = values.copy(), np.zeros(3)
    for _ in range(2000):
        prediction = prediction + 0.5 * k @ left_over
        left_over = left_over - 0.5 * among @ left_over
    expected, _ = gaussian_process.posterior(queries, keys, values, length_scale=0.3, noise=0)
    np.testing.assert_allclose(prediction, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (2, [1.12, 1.31, 1.16]),
        (4, [1.15, 1.27, 1.29]),
        (8, [1.10, 1.15, 1.41]),
        (16, [1.11, 1.12, 1.41]),
        (32, [1.04, 1.06, 1.79]),
    ],
)
def test_the_errors_when_nobody_tells_the_length_scale(n, expected):
    rng, count = np.random.default_rng(1), 2000
    true = np.exp(rng.uniform(np.log(0.1), 0, count))
    x = rng.uniform(-1, 1, (count, n + 1))
    f = gaussian_process.draw(x, true, rng)
    y = (f + 0.2 * rng.standard_normal(f.shape))[:, 1:]

    def posterior(scale):
        mean, _ = gaussian_process.posterior(x[:, :1], x[:, 1:], y, length_scale=scale, noise=0.2)
        return mean[:, 0]

    def score(scale):
        a = gaussian_process.covariance(x[:, 1:], x[:, 1:], scale) + 0.04 * np.eye(n)
        fit = np.sum(y * np.linalg.solve(a, y[..., None])[..., 0], axis=1)
        return -0.5 * (fit + np.linalg.slogdet(a)[1])

    each, s = (np.stack([g(scale) for scale in SCALES]) for g in (posterior, score))
    w = np.exp(s - s.max(0))
    average = (w / w.sum(0) * each).sum(0)
    likeliest = each[s.argmax(0), np.arange(count)]
    single = np.mean((each - f[:, 0]) ** 2, axis=1).min()
    told = np.mean((posterior(true) - f[:, 0]) ** 2)
    errors = [np.mean((g - f[:, 0]) ** 2) for g in (average, likeliest)]
    np.testing.assert_allclose(np.asarray([*errors, single]) / told, expected, atol=0.006)
