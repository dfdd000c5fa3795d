"""The cross-entropy beside its row of the contract: what is masked, large logits, wrong labels."""

import math

import numpy as np
import pytest

from attnbook.models.losses import cross_entropy

BACKENDS = ("numpy", "strict", "torch", "jax-jit")


@pytest.fixture
def sample(rng):
    """Logits of shape (2, 3, 5, 7), labels, and a mask that leaves about half."""
    labels = rng.integers(0, 7, size=(2, 3, 5))
    return 3 * rng.normal(size=(2, 3, 5, 7)), labels, rng.random((2, 3, 5)) < 0.5


def entropy(*args):
    """As an array of one number, which NumPy does not turn into a scalar."""
    return cross_entropy(*args)[None]


def test_by_hand(backend):
    """Probabilities ½, ¼, ¼: −log p is log 2, then 2 log 2; the mean is over what counts."""
    logits = np.log([[2.0, 1.0, 1.0], [0.5, 0.25, 0.25], [6.0, 3.0, 3.0]])
    for labels, mask, expected in (
        ([0, 0, 0], None, 1),
        ([0, 1, 2], None, 5 / 3),
        ([0, 1, 2], [True, True, False], 3 / 2),
        ([0, 1, 2], [False, False, True], 2),
        ([0, 1, 2], [False, False, False], 0),
    ):
        mask = None if mask is None else np.array(mask)
        out = backend.call(entropy, logits, np.array(labels), mask)
        np.testing.assert_allclose(out, expected * math.log(2), rtol=1e-14)
    assert backend.call(entropy, logits[:0], np.zeros(0, int), None) == 0


@pytest.mark.parametrize("planted", [1e300, np.inf, -np.inf, np.nan])
def test_what_is_masked_does_not_count(backend, sample, planted):
    """Any logits and any labels there, PyTorch's −100 among them: the same bits."""
    logits, labels, mask = sample
    before = backend.call(entropy, logits, labels, mask)
    other = np.where(mask[..., None], logits, planted)
    for label in (-100, 7):
        given = np.where(mask, labels, label)
        np.testing.assert_array_equal(backend.call(entropy, other, given, mask), before)


def test_what_is_masked_has_no_gradient(differentiable, sample):
    """0 there, whatever stands there, and elsewhere (p − one-hot label) / count."""
    logits, labels, mask = sample
    seen = differentiable.array(labels), differentiable.array(mask)
    planted = np.where(mask[..., None], logits, np.nan)
    (slope,) = differentiable.gradient(lambda logits: cross_entropy(logits, *seen), planted)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = np.where(mask[..., None], p - np.eye(7)[labels], 0) / mask.sum()
    np.testing.assert_allclose(slope, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(slope[~mask], 0)


@pytest.mark.parametrize("size", [1000.0, 1e300])
def test_large_logits(backend, size):
    """No overflow, and a sure mistake costs the difference."""
    logits = size * np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])
    assert backend.call(entropy, logits, np.array([0, 1])) == 0
    out = backend.call(entropy, logits[:1], np.array([2]))
    np.testing.assert_allclose(out, 2 * size, rtol=1e-15)


def test_small_labels_of_a_large_vocabulary(backend):
    """300 classes, labels of one byte."""
    out = backend.call(entropy, np.zeros((3, 300)), np.array([0, 37, 127], "int8"))
    np.testing.assert_allclose(out, math.log(300), rtol=1e-12)


def test_labels_that_do_not_fit(backend, sample):
    """Shapes under jit too; numbers where they are known."""
    logits, labels, mask = sample
    with pytest.raises(ValueError, match=r"labels: got shape \(3, 5\), expected \(2, 3, 5\)"):
        backend.call(entropy, logits, labels[0])
    with pytest.raises(ValueError, match=r"mask: got .* shape \(3, 5\), expected bool of shape"):
        backend.call(entropy, logits, labels, mask[0])
    for label in (-1, 7):
        given = map(backend.array, (logits, np.where(mask, label, labels)))
        with pytest.raises(ValueError, match=r"labels: got .*expected 0 to 6"):
            cross_entropy(*given)
