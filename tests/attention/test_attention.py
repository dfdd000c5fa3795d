"""Attention where the contract's random numbers do not reach: empty rows, NaN, large scores, scores of one's own."""

import math

import numpy as np
import pytest
from reference import sample

from attnbook import attend, padding_mask, scores, softmax

BACKENDS = ("numpy", "strict", "torch", "jax-jit")


def test_softmax_whatever_is_added(backend):
    """exp 0 : exp log 3 = 1 : 3; no exponential overflows, and rows are each by themselves."""
    for shift in (0.0, 1000.0, -1000.0, 1e5):
        row = np.array([0.0, math.log(3)]) + shift
        np.testing.assert_allclose(backend.call(softmax, row), [0.25, 0.75], rtol=1e-10)
    rows = np.array([[1e30, 1e30, -1e30], [0.0, 800.0, 1600.0]])
    np.testing.assert_array_equal(backend.call(softmax, rows), [[0.5, 0.5, 0], [0, 0, 1]])


@pytest.mark.parametrize("hidden", [1000.0, math.inf, math.nan])
def test_softmax_counts_only_what_the_mask_allows(backend, hidden):
    """However low the others are: no number that is only rather low can stand for a closed one."""
    mask = np.array([[True, False, True], [False, False, False]])
    row = np.array([0.0, hidden, math.log(3)])
    for shift in (0.0, -(2.0**20)):
        out = backend.call(softmax, np.stack([row + shift] * 2), mask)
        np.testing.assert_allclose(out, [[0.25, 0, 0.75], [0, 0, 0]], rtol=1e-9)


@pytest.mark.parametrize("shape", [(7,), (1, 7), (3, 1), (2, 1, 7), (5, 2, 3, 7)])
def test_masks_of_every_shape(backend, rng, shape):
    """Few may attend: rows that may not are 0, with the weights and without them."""
    q, k, v = sample(rng, 2)
    mask = rng.random(shape) < 0.2
    every = np.broadcast_to(mask, (*shape[:-3], 2, 3, 7))
    output, weights = backend.call(attend, q, k, v, mask=mask, return_weights=True)
    assert output.shape == (*every.shape[:-1], 5)
    assert not weights[~every].any()
    np.testing.assert_allclose(weights.sum(-1), every.any(-1), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(output[~every.any(-1)], 0)
    alone = backend.call(attend, q, k, v, mask=mask)
    np.testing.assert_allclose(alone, output, rtol=0, atol=1e-13)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("hidden", ["from all", "from some", "causal"])
def test_a_masked_key_may_be_nan_and_a_masked_value_may_not(backend, rng, hidden, weights):
    """Key 613 moves no row that does not see it; 0 · NaN of its value is NaN in all, by column.

    PyTorch's kernel leaves out blocks of 512 causal keys.
    """
    q, k, v = sample(rng, m=617, n=617, p=2)
    blind = np.arange(617) < {"from all": 617, "from some": 409, "causal": 613}[hidden]
    mask = np.ones((617, 617), dtype=bool)
    mask[blind, 613] = False
    how = {"causal": True} if hidden == "causal" else {"mask": mask}

    def called():
        out = backend.call(attend, q, k, v, return_weights=weights, **how)
        return out[0] if weights else out

    before, key = called(), k[613].copy()
    k[613] = np.nan
    after = called()
    np.testing.assert_allclose(after[blind], before[blind], rtol=1e-10, atol=1e-12)
    assert np.isnan(after[~blind]).all()
    k[613], v[613, 1] = key, np.nan
    after = called()
    np.testing.assert_allclose(after[:, 0], before[:, 0], rtol=1e-10, atol=1e-12)
    assert np.isnan(after[:, 1]).all()


def test_nothing_to_attend_to_gives_0_and_nothing_asked_gives_nothing(backend, rng):
    q, k, v = sample(rng, n=0)
    output, weights = backend.call(attend, q, k, v, return_weights=True)
    np.testing.assert_array_equal(output, np.zeros((3, 5)))
    assert weights.shape == (3, 0)
    for how, shape in (({"m": 0}, (0, 5)), ({"p": 0}, (3, 0))):
        assert backend.call(attend, *sample(rng, **how)).shape == shape
    assert backend.call(attend, *sample(rng, 0)).shape == (0, 3, 5)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_neither_overflows_nor_stalls(backend, half):
    """300 · 300 is beyond float16; a mean of 4097 ones stops at 256 or 2048 where sums are half."""
    if half not in backend.half:
        pytest.skip(f"{backend.name} has no {half}")
    cast = lambda a: backend.cast(backend.array(np.array(a)), half)  # noqa: E731
    large = map(cast, ([[300.0]], [[300.0], [200.0]], [[3.0], [5.0]]))
    long = (cast(np.ones(shape)) for shape in ((1, 2), (4097, 2), (4097, 1)))
    for given, expected in ((large, 3), (long, 1)):
        output = attend(*given)
        assert backend.dtype(output) == half
        assert backend.numpy(backend.cast(output, "float32")).item() == expected
    weights = softmax(cast(np.zeros(70_000)))  # its exponentials add up to more than 65,504
    np.testing.assert_allclose(
        backend.numpy(backend.cast(weights, "float64")), 1 / 70_000, rtol=5e-3
    )


def test_empty_rows_have_finite_gradients(differentiable, rng):
    q, k, v = sample(rng)
    queries = np.arange(3)[:, None]
    mask = differentiable.array((np.arange(7) <= queries) & (queries != 0))
    for score in (scores.scaled_dot, scores.gaussian_score):
        loss = lambda q, k, v, s=score: (attend(q, k, v, score=s, mask=mask) ** 2).sum()  # noqa: E731
        dq, dk, dv = differentiable.gradient(loss, q, k, v)
        np.testing.assert_array_equal(dq[0], 0)  # it attends to nothing
        np.testing.assert_array_equal(dk[3:], 0)  # nothing attends to them
        np.testing.assert_array_equal(dv[3:], 0)
        assert np.isfinite(dq).all()
        assert dq[2].all() and dk[:3].all() and dv[:3].all()


def test_padding_of_a_single_sequence_and_of_small_integers(backend):
    np.testing.assert_array_equal(backend.call(padding_mask, np.array(2), 3), [[True, True, False]])
    out = backend.call(padding_mask, np.array([200], dtype=np.uint8), 300)
    assert out.shape == (1, 1, 300)
    assert out.sum() == 200


@pytest.mark.parametrize("lengths", [[1, 5], [-1, 0]])
def test_lengths_beyond_the_padding(lengths):
    with pytest.raises(ValueError, match=r"lengths: got .*, expected integers from 0 to n = 3"):
        padding_mask(np.array(lengths), 3)


def test_causal_is_of_as_many_queries_as_keys(backend):
    with pytest.raises(ValueError, match="causal: got 3 queries and 7 keys, expected as many"):
        backend.call(attend, np.ones((3, 2)), np.ones((7, 2)), np.ones((7, 2)), causal=True)


def test_causal_beside_a_mask(backend, rng):
    q, k, v = sample(rng, 2, m=7)
    padding, tri = np.arange(7) < 5, np.tri(7, dtype=bool)
    out = backend.call(attend, q, k, v, causal=True, mask=padding)
    both = backend.call(attend, q, k, v, mask=tri & padding, return_weights=True)[0]
    np.testing.assert_allclose(out, both, rtol=0, atol=1e-13)


# scores of one's own

Q, K, V = np.ones((3, 2)), np.ones((7, 2)), np.arange(14.0).reshape(7, 2)
BAD_SCORES = {
    "a row for all queries": (
        lambda s: s[:1, :],
        r"score: gave shape \(1, 7\), expected \(\.\.\., 3",
    ),
    "transposed": (lambda s: s.mT, r"score: gave shape \(7, 3\), expected \(\.\.\., 3, 7\)"),
    "truths": (lambda s: s > 0, r"score: gave dtype .*bool, expected a floating one"),
    "no array": (lambda s: None, "score: got a NoneType, expected a NumPy, PyTorch or JAX array"),
}


@pytest.mark.parametrize("name", BAD_SCORES)
def test_bad_scores(backend, name):
    change, message = BAD_SCORES[name]
    with pytest.raises((ValueError, TypeError), match=message):
        backend.call(attend, Q, K, V, score=lambda q, k: change(q @ k.mT))


def test_a_score_is_a_function():
    with pytest.raises(ValueError, match="score: got 'dot', expected a function such as"):
        attend(Q, K, V, score="dot")


def test_a_score_may_take_other_widths_and_give_more_axes(backend, rng):
    """A bias a head, and keys of another width; with one width the scaled product asks for it."""
    bias, weight = rng.normal(size=(5, 3, 7)), rng.normal(size=(2, 4))
    keys = rng.normal(size=(7, 4))
    score = lambda w, b: lambda q, k: scores.general(q, k, w) + b  # noqa: E731
    out = backend.call(
        lambda q, k, v, w, b: attend(q, k, v, score=score(w, b)), Q, keys, V, weight, bias
    )
    for h in range(5):
        one = softmax(Q @ weight @ keys.T + bias[h]) @ V
        np.testing.assert_allclose(out[h], one, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="keys: got 4 coordinates, expected 2 as in queries"):
        backend.call(attend, Q, keys, V)


def test_minus_infinity_for_some_keys_is_a_mask(backend):
    """And a row that the mask leaves empty is 0, whatever the score gave."""
    mask = np.array([[True] * 7, [True] * 7, [False] * 7])
    bias = np.where(np.arange(7) < 3, 0.0, -np.inf)
    out = backend.call(
        lambda q, k, v, b, m: attend(q, k, v, score=lambda q, k: q @ k.mT + b, mask=m),
        *(Q, K, V, bias, mask),
    )
    np.testing.assert_allclose(out, [[2, 3], [2, 3], [0, 0]], rtol=1e-14)


@pytest.mark.parametrize("wrong", [-math.inf, math.nan])
def test_scores_that_leave_no_softmax(wrong):
    """A row of −∞, or NaN, of inputs that are none."""
    with (
        np.errstate(all="ignore"),
        pytest.raises(ValueError, match=r"score: gave .*rows .*that have NaN"),
    ):
        attend(Q, K, V, score=lambda q, k: q @ k.mT + wrong)


# single scores


def test_cosine_at_any_length(backend, rng):
    """Squares of 1e300 overflow, those of 1e-300 underflow; a vector of zeros scores 0."""
    q, k = rng.normal(size=(3, 5)), rng.normal(size=(7, 5))
    expected = backend.call(scores.cosine, q, k)
    for size in (1e-300, 1e300):
        out = backend.call(scores.cosine, size * q, size * k)
        np.testing.assert_allclose(out, expected, rtol=0, atol=1e-14)
    q[1] = 0
    assert not backend.call(scores.cosine, q, k)[1].any()


def test_cosine_has_finite_gradients_at_zero(differentiable, rng):
    """A zero vector among others: the others' gradients as without it."""
    q, k = rng.normal(size=(3, 2)), rng.normal(size=(7, 2))
    q[1] = 0
    loss = lambda q, k: (scores.cosine(q, k) ** 3).sum()  # noqa: E731
    dq, dk = differentiable.gradient(loss, q, k)
    clean_q, clean_k = differentiable.gradient(loss, q[[0, 2]], k)
    np.testing.assert_allclose(dq[[0, 2]], clean_q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(dk, clean_k, rtol=0, atol=1e-13)
    assert np.isfinite(dq).all()


def test_additive_of_keys_that_were_multiplied_before(backend, rng):
    """Without w_k the keys are W_k k already; they must be as wide as the hidden layer."""
    q, k = rng.normal(size=(3, 2)), rng.normal(size=(7, 5))
    w_q, w_k, v = (rng.normal(size=shape) for shape in ((13, 2), (13, 5), (13,)))
    expected = backend.call(scores.additive, q, k, w_q, w_k, v)
    out = backend.call(scores.additive, q, k @ w_k.T, w_q, None, v)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="k: got 5 coordinates, expected 13 as w_q's rows: no w_k"):
        backend.call(scores.additive, q, k, w_q, None, v)


@pytest.mark.parametrize("bandwidth", [np.float64(0.5), np.int64(2), 2, [0.5, 2.0]])
def test_a_bandwidth_does_not_widen_float32(backend, rng, bandwidth):
    q, k = (rng.normal(size=(n, 2)).astype(np.float32) for n in (3, 7))
    out = backend.call(scores.gaussian_score, q, k, bandwidth)
    assert out.dtype == np.float32
    exact = -0.5 * np.square((q[:, None] - k).astype(float) / np.array(bandwidth)).sum(-1)
    np.testing.assert_allclose(out, exact, rtol=16 * np.finfo("f4").eps)


@pytest.mark.parametrize("wrong", [0, -0.5, np.nan, np.inf, None, "0.5"])
def test_wrong_bandwidths(wrong):
    with pytest.raises(ValueError, match=r"bandwidth: got .*, expected a number above 0, or 2 of"):
        scores.gaussian_score(Q, K, wrong)
    with pytest.raises(ValueError, match=r"bandwidth: got shape \(3,\), expected a number above 0"):
        scores.gaussian_score(Q, K, [1.0, 1.0, 1.0])
