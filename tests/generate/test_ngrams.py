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


def probability(context, y, order, train=TRAIN, **how):
    """Of a token after a context, by the package."""
    text = np.array([*context, y])
    return 2 ** -bits(np.array(train), text, order, **({"vocab_size": VOCAB} | how))[-1]


@pytest.mark.parametrize("discount", [0.0, 0.3, 0.75, 0.999])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_equals_the_recursion_and_sums_to_1(order, discount):
    """After every context, those that never occur too."""
    for context in itertools.product(range(VOCAB), repeat=order - 1):
        found = [probability(context, y, order, discount=discount) for y in range(VOCAB)]
        p = [reference(TRAIN, context, y, order, discount=discount) for y in range(VOCAB)]
        np.testing.assert_allclose(found, p, rtol=1e-12)
        assert math.fsum(found) == pytest.approx(1, rel=1e-12)
        assert (min(found) > 0) == (discount > 0)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_a_text(order, rng):
    """Every token of a longer one; the first ones have shorter contexts, of lower orders."""
    train, text = rng.integers(0, 5, size=211).tolist(), rng.integers(0, 6, size=31).tolist()
    found = bits(np.array(train), np.array(text), order, vocab_size=6)
    assert found.shape == (31,)
    for t, y in enumerate(text):
        context = tuple(text[max(0, t - order + 1) : t])
        p = reference(train, context, y, order, vocab_size=6)
        assert found[t] == pytest.approx(-math.log2(p), rel=1e-11)


def test_order_1_by_hand():
    """0 0 1: counts 2 and 1 of 3, two kinds; D = 3/4 leaves 5/4 and 1/4, and 3/2 to share out."""
    train, text = np.array([0, 0, 1]), np.array([0, 1, 2])
    out = bits(train, text, 1, vocab_size=3)
    p = [(5 / 4 + 3 / 2 / 3) / 3, (1 / 4 + 3 / 2 / 3) / 3, (3 / 2 / 3) / 3]
    np.testing.assert_allclose(out, -np.log2(p), rtol=1e-12)
    out = bits(train, text, 1, vocab_size=3, discount=0.5)
    p = [(3 / 2 + 1 / 3) / 3, (1 / 2 + 1 / 3) / 3, (1 / 3) / 3]
    np.testing.assert_allclose(out, -np.log2(p), rtol=1e-12)


def test_order_2_by_hand():
    """0 1 0 1 1: after 0 always 1; different tokens before: of 0 one, of 1 two."""
    train = np.array([0, 1, 0, 1, 1])
    lower = [(1 / 4 + 3 / 2 / 2) / 3, (5 / 4 + 3 / 2 / 2) / 3]
    after_0 = [(3 / 4) * lower[0] / 2, (5 / 4 + 3 / 4 * lower[1]) / 2]
    after_1 = [(1 / 4 + 3 / 2 * lower[0]) / 2, (1 / 4 + 3 / 2 * lower[1]) / 2]
    for first, after in enumerate((after_0, after_1)):
        for second, expected in enumerate(after):
            out = bits(train, np.array([first, second]), 2, vocab_size=2)
            np.testing.assert_allclose(out, -np.log2([lower[first], expected]), rtol=1e-12)


def test_what_is_unseen():
    """A context that never occurs says what the shorter one says; without any text all is even."""
    for y in range(VOCAB):
        seen = probability((0, 1), y, 4)
        assert probability((3, 0, 1), y, 4) == pytest.approx(seen, rel=1e-12)
    np.testing.assert_allclose(bits(np.array([], int), np.array([0, 1]), 3, vocab_size=8), [3, 3])
    assert bits(np.array(TRAIN), np.array([], int), 3, vocab_size=VOCAB).shape == (0,)


def test_a_longer_context_helps_where_there_is_one():
    """A text that repeats: less than a tenth of a bit, of 3; an order of 1 cannot know."""
    train, text = np.arange(800) % 8, np.arange(80) % 8
    assert bits(train, text, 1, vocab_size=8).mean() == pytest.approx(3, abs=0.01)
    assert bits(train, text, 2, vocab_size=8)[1:].mean() < 0.1


GIVEN = {"train": np.array(TRAIN), "held_out": np.array(TRAIN), "order": 2, "vocab_size": VOCAB}
WRONG = {  # of each argument, and what is expected
    "order": ([0, -1, 2.5], "an integer"),
    "vocab_size": ([2.5, 0, -1, None, "4", True], "an integer, 1"),
    "discount": ([-0.1, 1.0, math.nan, None, "0.5", True], "a share from 0 to"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_numbers(name):
    given, expected = WRONG[name]
    for wrong in given:
        with pytest.raises(ValueError, match=f"^{name}: got {wrong!r}, expected {expected}"):
            bits(**(GIVEN | {name: wrong}))


@pytest.mark.parametrize("name", ["train", "held_out"])
def test_wrong_texts(name):
    for wrong, got in ((GIVEN[name] + 2, "2 to 4"), (GIVEN[name] - 1, "-1 to 1")):
        with pytest.raises(ValueError, match=f"{name}: got {got}, expected 0 to {VOCAB - 1}"):
            bits(**(GIVEN | {name: wrong}))
    with pytest.raises(TypeError, match=f"^{name}: got a list, expected a NumPy array$"):
        bits(**(GIVEN | {name: [0, 1, 2]}))
    message = rf"^{name}: got shape \(2, 3\), expected \(n,\), one text$"
    with pytest.raises(ValueError, match=message):
        bits(**(GIVEN | {name: np.zeros((2, 3), int)}))
