"""The cross-entropy: by hand, against PyTorch's own, and what is masked does not count."""

import math

import backends
import numpy as np
import pytest

from attnbook.models.losses import cross_entropy, log_softmax


@pytest.fixture
def sample(rng):
    """Logits of shape (2, 3, 5, 7), labels, and a mask that leaves about half."""
    labels = rng.integers(0, 7, size=(2, 3, 5))
    return 3 * rng.normal(size=(2, 3, 5, 7)), labels, rng.random((2, 3, 5)) < 0.5


def entropy(*args):
    """As an array of one number, which NumPy does not turn into a scalar."""
    out = cross_entropy(*args)
    assert tuple(out.shape) == ()
    return out[None]


def loop(logits, labels, mask):
    """The mean of log Σ exp(logits) − the label's, over what counts."""
    counted = [
        math.log(math.fsum(map(math.exp, row))) - row[label]
        for row, label, counts in zip(
            logits.reshape(-1, logits.shape[-1]).tolist(), labels.ravel(), mask.ravel(), strict=True
        )
        if counts
    ]
    return math.fsum(counted) / len(counted)


def test_by_hand(backend):
    """Probabilities ½, ¼, ¼: −log p is log 2, then 2 log 2; twice a shift of the logits."""
    logits = np.log([[2.0, 1.0, 1.0], [0.5, 0.25, 0.25], [6.0, 3.0, 3.0]])
    for labels, mask, expected in (
        ([0, 0, 0], None, 1),
        ([0, 1, 2], None, 5 / 3),
        ([0, 1, 2], [True, True, False], 3 / 2),
        ([0, 1, 2], [False, False, True], 2),
    ):
        mask = None if mask is None else np.array(mask)
        out = backend.call(entropy, logits, np.array(labels), mask)
        np.testing.assert_allclose(out, expected * math.log(2), rtol=1e-14)


def test_equal_logits_cost_the_logarithm_of_the_vocabulary(backend):
    logits, labels = np.full((3, 5, 7), 2.5), np.arange(15).reshape(3, 5) % 7
    np.testing.assert_allclose(backend.call(entropy, logits, labels), math.log(7), rtol=1e-14)


def test_equals_the_loop(backend, sample):
    """A mean over all that counts, not over the means of the rows; without a mask all counts."""
    logits, labels, mask = sample
    assert len(set(mask.sum(-1).ravel())) > 2
    out = backend.call(entropy, logits, labels, mask)
    np.testing.assert_allclose(out, loop(logits, labels, mask), rtol=1e-13)
    every = np.ones_like(mask)
    for all_of_it in (None, every):
        out = backend.call(entropy, logits, labels, all_of_it)
        np.testing.assert_allclose(out, loop(logits, labels, every), rtol=1e-13)
    one_row = backend.call(entropy, logits[0, 0], labels[0, 0])
    np.testing.assert_allclose(one_row, loop(logits[0, 0], labels[0, 0], every[0, 0]), rtol=1e-13)


@pytest.mark.parametrize("planted", [0.0, -1e300, 1e300, np.inf, -np.inf, np.nan])
def test_what_is_masked_does_not_count(backend, sample, planted):
    """Any logits and any labels there, PyTorch's −100 among them: the same bits."""
    logits, labels, mask = sample
    before = backend.call(entropy, logits, labels, mask)
    other = np.where(mask[..., None], logits, planted)
    other[~mask, ::2] = 0.0
    for label in (6 - labels, -100, -1, 7, 99):
        for dtype in ("int8", "int64"):
            given = np.where(mask, labels, label).astype(dtype)
            after = backend.call(entropy, other, given, mask)
            np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("planted", [1e300, np.inf, -np.inf, np.nan])
def test_what_is_masked_has_no_gradient(differentiable, sample, planted):
    """0 there, and elsewhere (p − one-hot label) / count, whatever is planted."""
    logits, labels, mask = sample
    seen = differentiable.array(labels), differentiable.array(mask)
    planted = np.where(mask[..., None], logits, planted)
    (slope,) = differentiable.gradient(lambda logits: cross_entropy(logits, *seen), planted)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = np.where(mask[..., None], p - np.eye(7)[labels], 0) / mask.sum()
    np.testing.assert_allclose(slope, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(slope[~mask], 0)


def test_large_logits(backend):
    """±1000 and ±1e300: no overflow, and a sure mistake costs the difference."""
    for size in (1000.0, 1e300):
        logits = size * np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])
        out = backend.call(entropy, logits, np.array([0, 1]))
        assert out == 0
        out = backend.call(entropy, logits[:1], np.array([2]))
        np.testing.assert_allclose(out, 2 * size, rtol=1e-15)
    side_by_side = np.array([[1000.0, 0.0], [-1000.0, -1000.0]])  # each row by its own largest
    out = backend.call(entropy, side_by_side, np.array([0, 1]))
    np.testing.assert_allclose(out, math.log(2) / 2, rtol=1e-14)


def test_a_word_that_cannot_be(backend):
    """A logit of −∞ is a probability of 0: no part of the sum, and no NaN."""
    logits = np.array([[-np.inf, 0.0, 0.0], [0.0, -np.inf, 1.0]])
    out = backend.call(entropy, logits, np.array([1, 0]))
    np.testing.assert_allclose(out, (math.log(2) + math.log1p(math.e)) / 2, rtol=1e-14)


def test_nothing_that_counts_costs_nothing(backend, sample):
    logits, labels, mask = sample
    assert backend.call(entropy, logits, labels, np.zeros_like(mask)) == 0
    assert backend.call(entropy, logits[:, :, :0], labels[:, :, :0]) == 0


def test_nothing_that_counts_has_no_gradient(differentiable, sample):
    logits, labels, mask = sample
    seen = differentiable.array(labels), differentiable.array(np.zeros_like(mask))
    (slope,) = differentiable.gradient(lambda logits: cross_entropy(logits, *seen), logits)
    np.testing.assert_array_equal(slope, 0)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_float32_stays_and_labels_are_any_integers(backend, sample, dtype):
    logits, labels, mask = sample
    out = backend.call(entropy, logits.astype(np.float32), labels.astype(dtype), mask)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, loop(logits, labels, mask), rtol=1e-6)


def test_half_precision_counts_in_float32(backend):
    """More labels than float16's largest number, 65,504: the mean is log 3 to half precision."""
    labels = np.arange(70_001) % 3

    def mean(dtype):
        def of(logits, labels, mask):
            out = cross_entropy(backend.cast(logits, dtype), labels, mask)
            assert backend.dtype(out) == dtype
            return backend.cast(out[None], "float32")

        logits = np.zeros((70_001, 3), dtype=np.float32)
        return backend.call(of, logits, labels, np.arange(70_001) < 66_000)

    for dtype in backend.half:
        precision = {"float16": 2**-11, "bfloat16": 2**-8}[dtype]
        np.testing.assert_allclose(mean(dtype), math.log(3), rtol=precision)


def torchs(logits, labels, mask, torch):
    """torch.nn.functional.cross_entropy, which leaves out one label."""
    targets = torch.where(mask, labels, -100)
    return torch.nn.functional.cross_entropy(
        logits.reshape(-1, 7), targets.reshape(-1), ignore_index=-100
    )


def test_equals_pytorchs(differentiable, sample):
    """Loss and gradient of PyTorch and of JAX."""
    torch, (logits, labels, mask) = backends.load_or_skip("torch").xp, sample
    leaf = torch.from_numpy(logits).requires_grad_()
    expected = torchs(leaf, torch.from_numpy(labels), torch.from_numpy(mask), torch)
    (slope,) = torch.autograd.grad(expected, [leaf])
    out = differentiable.call(entropy, logits, labels, mask)
    np.testing.assert_allclose(out, expected.item(), rtol=1e-14)
    seen = differentiable.array(labels), differentiable.array(mask)
    (ours,) = differentiable.gradient(lambda logits: cross_entropy(logits, *seen), logits)
    np.testing.assert_allclose(ours, slope, rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("logits", [np.zeros((3, 7), dtype=np.int64), np.zeros((3, 7), dtype=bool)])
def test_logits_are_floating(backend, logits):
    labels = np.zeros(3, dtype=np.int64)
    with pytest.raises(ValueError, match=r"logits: got dtype .*, expected a floating one"):
        backend.call(entropy, logits, labels)


def test_labels_that_do_not_fit(backend, sample):
    """Under jit too; what else is wrong with labels is test_validation_tokens.py's matter."""
    logits, labels, mask = sample
    with pytest.raises(ValueError, match=r"labels: got shape \(3, 5\), expected \(2, 3, 5\)"):
        backend.call(entropy, logits, labels[0])
    with pytest.raises(ValueError, match=r"mask: got .* shape \(3, 5\), expected bool of shape"):
        backend.call(entropy, logits, labels, mask[0])


def test_arrays_of_different_libraries(backend):
    if backend.name == "numpy":
        pytest.skip("NumPy is the other library here")
    logits, labels = backend.array(np.zeros((3, 7))), np.zeros(3, dtype=np.int64)
    with pytest.raises(TypeError, match=r"logits, labels: got arrays of .*, expected one library"):
        cross_entropy(logits, labels)
    with pytest.raises(TypeError, match="logits: got a list, expected a NumPy, PyTorch or JAX"):
        cross_entropy([[0.0]], labels)


def test_small_labels_of_a_large_vocabulary(backend):
    """256 and 300 classes, labels of one byte."""
    for vocab, dtype in ((256, "uint8"), (300, "uint8"), (300, "int8")):
        logits, labels = np.zeros((3, vocab)), np.array([0, 37, 127], dtype)
        out = backend.call(entropy, logits, labels)
        np.testing.assert_allclose(out, math.log(vocab), rtol=1e-12)


def test_log_softmax_equals_scipys(backend, rng):
    """Also where the exponential of a logit, or of a difference of two, is beyond float64."""
    special = pytest.importorskip("scipy.special")
    logits = np.concatenate([rng.normal(size=(3, 7)), 1e3 * rng.normal(size=(2, 7))])
    out = backend.call(log_softmax, logits)
    np.testing.assert_allclose(out, special.log_softmax(logits, axis=-1), rtol=1e-12, atol=1e-12)
    for wrong, words in ((logits.astype(int), "dtype"), (logits[:, :0], "shape")):
        with pytest.raises(ValueError, match=f"logits: got {words}"):
            backend.call(log_softmax, wrong)
