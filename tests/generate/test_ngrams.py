"""Character n-grams against their formula, counted again with lists."""

import itertools
import math

import numpy as np
import pytest

from attnbook.generate.ngrams import bits

VOCAB = 4
TRAIN = [0, 1, 2, 0, 1, 0, 2, 2, 0, 1, 1, 0, 1, 2]  # 3 never occurs


def counts(train, context, highest):
    """Of each token after a context: how often, or after how many different tokens before it."""
    n, found = len(context), {}
    for t in range(n, len(train)):
        if train[t - n : t] == list(context):
            before = t if highest else (train[t - n - 1] if t > n else None)
            found.setdefault(train[t], set()).add(before)
    return {y: len(b - {None}) for y, b in found.items() if b - {None}}


def reference(train, context, y, order, vocab_size=VOCAB, discount=0.75):
    """p(y | context), by the recursion of the docstring."""
    n = len(context) + 1
    shorter = 1 / vocab_size
    if context:
        shorter = reference(train, context[1:], y, order, vocab_size, discount)
    after = counts(train, context, highest=n == order)
    total = sum(after.values())
    if total == 0:
        return shorter
    kept = max(after.get(y, 0) - discount, 0)
    return kept / total + discount * len(after) / total * shorter


def probability(context, y, order, **how):
    """Of a token after a context, by the package."""
    text = np.array([*context, y])
    return 2 ** -bits(np.array(TRAIN), text, order, vocab_size=VOCAB, **how)[-1]


@pytest.mark.parametrize("discount", [0.0, 0.3, 0.75])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_equals_the_recursion_and_sums_to_1(order, discount):
    """After every context, those that never occur too."""
    for context in itertools.product(range(VOCAB), repeat=order - 1):
        found = [probability(context, y, order, discount=discount) for y in range(VOCAB)]
        p = [reference(TRAIN, context, y, order, discount=discount) for y in range(VOCAB)]
        np.testing.assert_allclose(found, p, rtol=1e-12)
        assert math.fsum(found) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("order", [1, 2, 5])
def test_a_text(order, rng):
    """Every token of a longer one; the first ones have shorter contexts, of lower orders."""
    train, text = rng.integers(0, 5, size=211).tolist(), rng.integers(0, 6, size=31).tolist()
    found = bits(np.array(train), np.array(text), order, vocab_size=6)
    for t, y in enumerate(text):
        p = reference(train, tuple(text[max(0, t - order + 1) : t]), y, order, vocab_size=6)
        assert found[t] == pytest.approx(-math.log2(p), rel=1e-11)


def test_without_any_text_all_is_even():
    nothing = np.array([], int)
    np.testing.assert_allclose(bits(nothing, np.array([0, 1]), 3, vocab_size=8), [3, 3])
    assert bits(np.array(TRAIN), nothing, 3, vocab_size=VOCAB).shape == (0,)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"order": 0}, "order: got 0, expected an integer"),
        ({"vocab_size": 0}, "vocab_size: got 0, expected an integer"),
        ({"discount": 1.0}, "discount: got 1.0, expected a share from 0 to"),
        ({"train": np.array([2, 4])}, "train: got 2 to 4, expected 0 to 3"),
        ({"held_out": np.array([-1, 1])}, "held_out: got -1 to 1, expected 0 to 3"),
        ({"held_out": np.zeros((2, 3), int)}, r"held_out: got shape \(2, 3\), expected \(n,\)"),
    ],
)
def test_wrong_arguments(wrong, message):
    given = {"train": np.array(TRAIN), "held_out": np.array(TRAIN), "order": 2, "vocab_size": VOCAB}
    with pytest.raises(ValueError, match=f"^{message}"):
        bits(**given | wrong)
