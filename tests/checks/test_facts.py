"""Numbers that the solutions of exercises state, and no cell of a page computes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mending import softmax, solutions

from attnbook.distributed import traffic
from attnbook.kernel import gaussian_process


def test_how_low_the_other_scores_of_the_counting_exercise_must_be():
    n, c = np.mgrid[:61, :61]
    for s, low_enough in ((-7.5, True), (-7.4, False)):
        error = np.max(np.abs(c - c / (1 + (n - c) * np.exp(s))), where=c <= n, initial=0)
        assert (error < 0.5) == low_enough
    assert round(30 / (1 + 30 * np.exp(-1)), 1) == 2.5


def test_how_sharp_the_heads_of_the_convolution_exercise_must_be():
    kernel, alternating = np.asarray([-1.0, 2.0, -1.0]), (-1.0) ** np.arange(40)
    heads = solutions(5).convolution_by_heads

    def worst(x, sharpness):
        y = np.convolve(x, kernel[::-1], mode="same")
        return (np.abs(heads(x, kernel, sharpness) - y) / np.abs(y).max()).max()

    for sharpness in (1.0, 4.0, 9.0):
        assert worst(alternating, sharpness) > worst(np.ones(40), sharpness)
        assert worst(alternating, sharpness) > worst(np.arange(40.0), sharpness)
    assert worst(alternating, 6.0) < 0.01 < worst(alternating, 5.9)


def test_the_bytes_of_the_cache_exercise():
    for heads, gigabytes in ((64, 10.7), (8, 1.3)):
        assert round(solutions(6).cache_bytes(4096, 80, heads, 128, 2) / 1e9, 1) == gigabytes


def test_what_one_induction_head_predicts_where_tokens_repeat():
    rng, right, induction = np.random.default_rng(0), [], solutions(6).induction_by_hand
    for _ in range(200):
        tokens, i = np.tile(rng.integers(0, 16, 32), 2), np.arange(32, 63)
        answer = induction(tokens, 16)[i].argmax(1)
        right.append(np.mean(answer == tokens[i + 1]))
    assert abs(np.mean(right) - 0.34) < 0.02


def test_the_shares_of_the_stream():
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(50, 256)), rng.normal(size=(12, 256, 256)) / 16
    halved = np.append(0.5**12, 0.5 ** np.arange(12, 0, -1))
    for placement, expected in (("pre", np.full(13, 1 / 13)), ("post", halved)):
        parts = solutions(7).stream_parts(x, weights, placement)
        shares = np.mean(parts**2, axis=(1, 2)) / np.mean(parts.sum(0) ** 2)
        np.testing.assert_allclose(shares, expected, rtol=0.15)


def test_the_weights_of_eleven_keys():
    weights = solutions(9).posterior_weights
    middle, beyond = weights(np.asarray([0, 1.5]), np.linspace(-1, 1, 11), 0.3, 0.2)
    np.testing.assert_allclose(middle[5:8], [0.62, 0.27, -0.09], atol=0.006)
    np.testing.assert_allclose(beyond[-2:], [-0.52, 0.56], atol=0.006)
    np.testing.assert_allclose([middle.sum(), beyond.sum()], [0.99, 0.22], atol=0.006)


def test_the_best_bandwidths_and_their_distance_from_the_optimum():
    solved, rng = solutions(9), np.random.default_rng(0)
    for n, bandwidth, ratio in ((4, 0.17, 1.6), (16, 0.09, 1.9), (64, 0.06, 2.0)):
        found, best = np.zeros(3), 0.0
        for _ in range(200):
            keys, queries = rng.uniform(-1, 1, n), rng.uniform(-1, 1, 20)
            for i, h in enumerate(bandwidth * np.asarray([0.8, 1, 1.25])):
                w = softmax(-0.5 * ((queries[:, None] - keys) / h) ** 2)
                found[i] += solved.weights_error(w, queries, keys, 0.3, 0.2).mean()
            w = solved.posterior_weights(queries, keys, 0.3, 0.2)
            best += solved.weights_error(w, queries, keys, 0.3, 0.2).mean()
        assert found.argmin() == 1
        assert abs(found[1] / best - ratio) < 0.1


@pytest.mark.parametrize(
    ("n", "expected"),
    [(2, [1.12, 1.31, 1.16]), (8, [1.10, 1.15, 1.41]), (32, [1.04, 1.06, 1.79])],
)
def test_the_errors_when_nobody_tells_the_length_scale(n, expected):
    rng, count, scales = np.random.default_rng(1), 2000, np.geomspace(0.1, 1, 25)
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

    each, s = (np.stack([g(scale) for scale in scales]) for g in (posterior, score))
    average = (softmax(s, axis=0) * each).sum(0)
    likeliest = each[s.argmax(0), np.arange(count)]
    single = np.mean((each - f[:, 0]) ** 2, axis=1).min()
    told = np.mean((posterior(true) - f[:, 0]) ** 2)
    errors = [np.mean((g - f[:, 0]) ** 2) for g in (average, likeliest)]
    np.testing.assert_allclose(np.asarray([*errors, single]) / told, expected, atol=0.006)


def test_the_sizes_of_smollm2_and_an_even_head():
    solved = solutions(10)
    assert solved.model_parameters(49_152, 576, 30, 9, 3, 1536) == 134_515_008
    assert solved.cache_per_token(576, 30, 9, 3, 4) == (46_080, 3)
    weights = np.tri(80) / np.arange(1, 81)[:, None]
    assert abs(solved.weight_on_followed(weights, np.tile(np.arange(40), 2)) - 0.017) < 5e-4


def test_eight_landmarks_are_within_a_hundredth():
    x, worst = np.linspace(-1, 1, 401), {}
    for r in (7, 8):
        f = solutions(11).landmark_features(x, np.linspace(-1, 1, r), 0.3)
        worst[r] = np.abs(f @ f.T - np.exp(-0.5 * ((x[:, None] - x) / 0.3) ** 2)).max()
    assert worst[8] < 0.01 < worst[7]


@pytest.mark.parametrize(("n", "best", "least"), [(16, 0.73, 0.47), (64, 0.48, 0.125)])
def test_the_best_learning_rates_of_the_delta_rule(n, best, least):
    d, noise, error = 16, 0.5, 1.0
    rates = np.arange(1, 200) / 100
    for _ in range(n):
        error = (1 - rates * (2 - rates) / d) * error + rates**2 * noise**2 / d
    assert rates[error.argmin()] == best
    assert abs(error.min() - least) < 0.005


def test_traffic_of_a_memory_of_228_kib_and_of_a_quarter():
    for memory, width, megabytes in ((58_368, 145, 62.9), (14_592, 48, 182.5)):
        b, moved = solutions(12).least_traffic(4096, 64, memory)
        assert (b, round(moved / 1e6, 1)) == (width, megabytes)


def test_micro_batches_and_memory_of_the_large_model():
    solved = solutions(13)
    for stages, enough in ((4, 27), (64, 567)):
        assert solved.bubble(stages, enough) <= 0.1 + 1e-12 < solved.bubble(stages, enough - 1)
    sizes = [solved.zero_bytes(6_456_747_008, 8, stage) / 1e9 for stage in range(4)]
    assert [round(size) for size in sizes] == [103, 36, 24, 13]


def test_the_least_blocks_of_the_solution():
    for rate, width, block in ((450e9, 4096, 2445), (50e9, 4096, 19811), (450e9, 128, 5630)):
        assert solutions(13).least_block(989e12, rate, 1e-5, width, 2) == block


def test_seconds_of_a_step_on_320_processors_and_on_1024():
    parameters, network = 6_456_747_008, traffic.Link(1e-5, 50e9)
    for world, whole, in_turn in ((320, 0.52, 1.03), (1024, 0.54, 0.70)):
        sent = traffic.all_reduce(2 * parameters, world)
        compute = 6 * parameters * 2**22 / world / 989e12
        send = traffic.seconds(2 * (world - 1), sent, network)
        assert (round(max(compute, send), 2), round(compute + send, 2)) == (whole, in_turn)
    assert math.isclose(compute, 0.16, abs_tol=0.005)
