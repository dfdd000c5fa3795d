"""Prompts and their masks, by hand and against one prompt a question."""

import numpy as np
import pytest

from attnbook.datasets import regression_prompts

RNG = np.random.default_rng(7)


def test_a_prompt_by_hand():
    found = regression_prompts.prompt(np.array([1.0, 2.0]), np.array([5.0, 7.0]), np.array([3.0]))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[1, 5, 0], [2, 7, 0], [3, 0, 1]])


def test_leading_axes_are_kept_apart():
    keys, values, queries = (RNG.normal(size=(2, 3, n)) for n in (5, 5, 7))
    found = regression_prompts.prompt(keys, values, queries)
    assert found.shape == (2, 3, 12, 3)
    for at in np.ndindex(2, 3):
        one = regression_prompts.prompt(keys[at], values[at], queries[at])
        np.testing.assert_array_equal(found[at], one)


@pytest.mark.parametrize(
    ("keys", "values", "queries", "message"),
    [
        ((5,), (7,), (3,), r"keys, values: got shapes \(5,\) and \(7,\), expected the same"),
        ((), (), (3,), r"keys, values: got shapes \(\) and \(\), expected the same"),
        ((2, 5), (2, 5), (3,), r"queries: got shape \(3,\), expected \(2, m\)"),
        ((5,), (5,), (), r"queries: got shape \(\), expected \(m\)"),
    ],
)
def test_a_prompt_that_does_not_fit(keys, values, queries, message):
    with pytest.raises(ValueError, match=message):
        regression_prompts.prompt(np.zeros(keys), np.zeros(values), np.zeros(queries))


def test_a_mask_by_hand():
    expected = [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 0, 0],  # a query that sees no pair
        [1, 1, 0, 0, 1, 0],
        [1, 1, 1, 0, 0, 1],
    ]
    found = regression_prompts.mask(3, np.array([0, 2, 3]))
    assert found.dtype == bool
    np.testing.assert_array_equal(found, np.array(expected, dtype=bool))


def test_no_pairs_and_no_queries():
    np.testing.assert_array_equal(
        regression_prompts.mask(0, np.array([0, 0])), np.eye(2, dtype=bool)
    )
    np.testing.assert_array_equal(regression_prompts.mask(3, np.array([], dtype=int)), np.tri(3))


@pytest.mark.parametrize("seen", [[4], [-1], [1.5], [[1]], 2])
def test_a_query_cannot_see_other_numbers_of_pairs(seen):
    with pytest.raises(ValueError, match=r"seen: got .*, expected integers from 0 to 3"):
        regression_prompts.mask(3, np.array(seen))


def test_one_pass_answers_as_a_prompt_for_each_question_does():
    """Through two layers of averages, so that a leak by way of a pair would show."""
    x, y = RNG.normal(size=7), RNG.normal(size=7)

    def two_layers(tokens, mask):
        for _ in range(2):
            scores = np.where(mask, tokens @ tokens.T, -np.inf)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            tokens = np.tanh(tokens + weights / weights.sum(axis=1, keepdims=True) @ tokens)
        return tokens[:, 1]

    seen = np.arange(1, 7)
    tokens, mask = (
        regression_prompts.prompt(x[:-1], y[:-1], x[1:]),
        regression_prompts.mask(6, seen),
    )
    at_once = two_layers(tokens, mask)[6:]
    for n in seen:
        tokens = regression_prompts.prompt(x[:n], y[:n], x[n : n + 1])
        one = two_layers(tokens, regression_prompts.mask(n, np.array([n])))[-1]
        np.testing.assert_allclose(at_once[n - 1], one, rtol=1e-5)


@pytest.mark.parametrize("name", ["keys", "values", "queries"])
def test_a_prompt_is_of_finite_real_numbers(name):
    given = dict.fromkeys(("keys", "values", "queries"), np.zeros(3))
    with pytest.raises(TypeError, match=f"^{name}: got a list, expected a NumPy array$"):
        regression_prompts.prompt(**(given | {name: [1.0, 2.0, 3.0]}))
    for wrong in (np.nan, np.inf, 1j):
        numbers = np.array([0, wrong, 1])
        with pytest.raises(
            ValueError, match=r"^keys, values, queries: got NaN, infinity or no real"
        ):
            regression_prompts.prompt(**(given | {name: numbers}))
