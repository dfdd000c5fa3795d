"""Weights left out at random while a layer learns: how many, how large the others, and never else."""

import numpy as np
import pytest


@pytest.mark.parametrize("rate", [0.2, 0.7])
def test_a_weight_is_left_out_or_grows(library, rng, rate):
    """With one key the weight is 1: head by head the output has 0, or the value over 1 − rate."""
    layer, draws = library.scaled_up("MultiHeadAttention", 6, 2, dropout=rate), 2003
    x = rng.normal(size=(1, 1, 6))
    own = library.parameters(layer)
    value = x[0, 0] @ own["value.weight"].T + own["value.bias"]
    out = library.call(layer, np.tile(x, (draws, 1, 1)), seed=3)[:, 0]
    merged = np.linalg.solve(own["output.weight"], (out - own["output.bias"]).T).T
    kept = np.abs(merged[:, [0, 3]]) > 1e-9  # head 0 has columns 0 to 2, head 1 the others
    grown = np.repeat(kept, 3, axis=1) * value / (1 - rate)
    np.testing.assert_allclose(merged, grown, rtol=1e-9, atol=1e-11)
    four_errors = 4 * np.sqrt(rate * (1 - rate) / draws)
    for head in range(2):
        assert abs(kept[:, head].mean() - (1 - rate)) < four_errors
    both = (kept[:, 0] & kept[:, 1]).mean()  # the heads are drawn apart
    assert abs(both - (1 - rate) ** 2) < four_errors


def test_the_mean_of_many_draws_is_the_output_without(library, rng):
    """Queries and keys of one sequence are drawn apart too: the variance of a sum of 7 weights."""
    layer = library.scaled_up("MultiHeadAttention", 12, 4, num_kv_heads=2, dropout=0.3)
    x, draws = rng.normal(size=(1, 7, 12)), 4001
    mask = np.tril(np.ones((7, 7), bool))
    mask[3] = False
    expected, weights = library.call(layer, x, mask=mask, return_weights=True)
    out = library.call(layer, np.tile(x, (draws, 1, 1)), mask=mask, seed=3)
    spread = out.std(0)
    assert np.all(np.abs(out.mean(0) - expected[0]) <= 4.5 * spread / np.sqrt(draws) + 1e-12)
    assert np.all(np.ptp(out[:, 3], axis=0) == 0)  # a row that may attend to nothing
    own = library.parameters(layer)
    values = x[0] @ own["value.weight"].T + own["value.bias"]
    for i in (0, 1, 6):
        variance = np.zeros(12)  # Σ over heads and keys of w² rate / (1 − rate) (W_o v)²
        for h in range(4):
            part = slice(3 * (h // 2), 3 * (h // 2) + 3)
            sent = values[:, part] @ own["output.weight"][:, 3 * h : 3 * h + 3].T
            variance += 0.3 / 0.7 * weights[0, h, i] ** 2 @ sent**2
        np.testing.assert_allclose(spread[i] ** 2, variance, rtol=0.15)


def test_a_seed_settles_what_is_left_out(library, rng):
    """Another seed leaves out others; every row, head and sequence its own."""
    layer = library.scaled_up("MultiHeadAttention", 12, 4, dropout=0.3)
    queries = np.tile(rng.normal(size=12), (2, 5, 1))  # alike: what differs was drawn
    keys = rng.normal(size=(7, 12))
    one, again, other = (library.call(layer, queries, keys, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, again)
    assert np.all(np.abs(one - other).max(-1) > 1e-6)
    assert len(np.unique(one.round(9).reshape(10, 12), axis=0)) == 10
    assert len(np.unique(library.call(layer, queries, keys).round(9).reshape(10, 12), axis=0)) == 1


def test_rate_0_and_rest_leave_nothing_out(library, rng):
    """The layer at rest, a layer of rate 0 at rest and while training: the same numbers."""
    x = rng.normal(size=(2, 7, 12))
    mask = np.tril(np.ones((7, 7), bool))
    with_dropout, without = (
        library.scaled_up("MultiHeadAttention", 12, 4, dropout=rate) for rate in (0.3, 0.0)
    )
    expected = library.call(without, x, mask=mask)
    np.testing.assert_array_equal(library.call(with_dropout, x, mask=mask), expected)
    np.testing.assert_array_equal(library.call(without, x, mask=mask, seed=3), expected)
    assert np.abs(library.call(with_dropout, x, mask=mask, seed=3) - expected).max() > 0.1


def test_returned_weights_are_those_before_any_is_left_out(library, rng):
    """The output is that of the call without weights, by PyTorch's kernel, at the same seed."""
    layer = library.scaled_up("MultiHeadAttention", 12, 4, dropout=0.3)
    x = rng.normal(size=(2, 7, 12))
    for mask in (None, np.tril(np.ones((7, 7), bool))):
        _, shares = library.call(layer, x, mask=mask, return_weights=True)
        out, weights = library.call(layer, x, mask=mask, return_weights=True, seed=3)
        without = library.call(layer, x, mask=mask, seed=3)
        np.testing.assert_allclose(weights, shares, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(out, without, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-12)


def test_a_score_while_training(library, rng):
    """All scores alike: half of 2 weights of 1/2 are left out, whatever queries and keys."""
    layer = library.scaled_up("MultiHeadAttention", 2, 1, dropout=0.5)
    x = np.tile(rng.normal(size=(1, 2, 2)), (101, 1, 1))
    own = library.parameters(layer)
    values = x[0] @ own["value.weight"].T + own["value.bias"]
    how = {"score": lambda q, k: 0 * (q @ k.mT), "seed": 3}
    out = library.call(layer, x, **how)
    merged = np.linalg.solve(own["output.weight"], (out - own["output.bias"]).reshape(-1, 2).T).T
    found = np.linalg.solve(values.T, merged.T).round(9)  # the two weights of every query
    assert set(found.ravel()) == {0.0, 1.0}
    assert {tuple(pair) for pair in found.T} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    np.testing.assert_array_equal(out, library.call(layer, x, **how))
