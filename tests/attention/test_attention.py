"""Softmax, attention and its masks."""

import functools
import math

import numpy as np
import pytest
import reference
from reference import MASK_SHAPES, sample

from attnbook import attend, causal_mask, padding_mask, scores, softmax


def test_softmax_by_hand(backend):
    """exp 0 : exp log 3 = 1 : 3, whatever is added to both."""
    for shift in (0.0, 1000.0, -1000.0, 1e5):
        row = np.array([0.0, math.log(3)]) + shift
        np.testing.assert_allclose(backend.call(softmax, row), [0.25, 0.75], rtol=1e-10)


def test_softmax_of_large_scores_does_not_overflow(backend):
    rows = np.array([[1e30, 1e30, -1e30], [0.0, 800.0, 1600.0]])
    np.testing.assert_array_equal(backend.call(softmax, rows), [[0.5, 0.5, 0], [0, 0, 1]])


@pytest.mark.parametrize("shape", [None, (7,), (1, 7), (3, 7), (2, 1, 7), (2, 3, 7), (3, 1)])
def test_softmax_is_over_the_last_axis(backend, rng, shape):
    """Row by row, with a mask and without one."""
    rows, mask = rng.normal(size=(2, 3, 7)), None if shape is None else rng.random(shape) < 0.6
    allowed = np.broadcast_to(True if mask is None else mask, rows.shape)
    expected = [
        [reference.softmax(r, a) for r, a in zip(*page, strict=True)]
        for page in zip(rows.tolist(), allowed.tolist(), strict=True)
    ]
    np.testing.assert_allclose(backend.call(softmax, rows, mask), expected, rtol=1e-13)


def test_softmax_counts_only_what_the_mask_allows(backend):
    """A score of 1000 behind the mask leaves 1 : 3 as it is, and a NaN does too."""
    mask = np.array([True, False, True])
    for hidden in (1000.0, -1000.0, math.inf, math.nan):
        row = np.array([0.0, hidden, math.log(3)])
        out = backend.call(softmax, row, mask)
        np.testing.assert_allclose(out, [0.25, 0, 0.75], rtol=1e-14)
        low = row - 2.0**20  # no score that is only rather low can stand for a closed one
        np.testing.assert_allclose(backend.call(softmax, low, mask), [0.25, 0, 0.75], rtol=1e-9)


def test_softmax_of_an_empty_row_is_0(backend):
    mask = np.array([[True, True], [False, False]])
    out = backend.call(softmax, np.array([[2.0, 2.0], [5.0, 7.0]]), mask)
    np.testing.assert_array_equal(out, [[0.5, 0.5], [0.0, 0.0]])


def test_softmax_without_entries(backend):
    assert backend.call(softmax, np.empty((3, 0))).shape == (3, 0)
    assert backend.call(softmax, np.empty((0, 3))).shape == (0, 3)


def test_attend_by_hand(backend):
    """Query (0, √2), unit vectors as keys: scores 0 and 1, so weights 1 : e."""
    query, values = np.array([[0.0, math.sqrt(2)]]), np.array([[10.0], [20.0]])
    second = math.e / (1 + math.e)
    output, weights = backend.call(attend, query, np.eye(2), values, return_weights=True)
    np.testing.assert_allclose(weights, [[1 - second, second]], rtol=1e-14)
    np.testing.assert_allclose(output, [[10 + 10 * second]], rtol=1e-14)


def test_a_masked_key_is_not_read_however_low_the_other_scores_are(backend):
    """At h = 1e-6 the allowed key's score is −5e11."""
    q, k, v = np.zeros((1, 1)), np.array([[1.0], [0.0]]), np.array([[3.0], [5.0]])
    score = functools.partial(scores.gaussian_score, bandwidth=1e-6)
    how = {"score": score, "mask": np.array([[True, False]]), "return_weights": True}
    out, weights = backend.call(attend, q, k, v, **how)
    np.testing.assert_array_equal(weights, [[1, 0]])
    np.testing.assert_array_equal(out, [[3]])


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("hidden", ["from all", "from some", "causal"])
def test_a_masked_key_may_be_nan_and_a_masked_value_may_not(backend, rng, hidden, weights):
    """Key 613 moves no row that does not see it; 0 · NaN of its value is NaN in all, by column.

    PyTorch's kernel leaves out blocks of 512 causal keys.
    """
    q, k, v = sample(rng, m=617, n=617, p=2)
    blind = np.arange(617) < {"from all": 617, "from some": 409, "causal": 613}[hidden]
    if hidden == "causal":
        how = {"causal": True}
    else:
        mask = np.ones((617, 617), dtype=bool)
        mask[blind, 613] = False
        how = {"mask": mask}

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


@pytest.mark.parametrize("name", ["scaled_dot", "dot", "gaussian_score"])
@pytest.mark.parametrize("d", [2, 5])
def test_attend_equals_the_loop(backend, rng, name, d):
    q, k, v = sample(rng, d=d)
    out = backend.call(attend, q, k, v, score=getattr(scores, name))
    expected, _ = reference.attend(q, k, v, getattr(reference, name))
    np.testing.assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize("shape", MASK_SHAPES.values(), ids=MASK_SHAPES)
@pytest.mark.parametrize("density", [0.5, 0.05])
def test_attend_with_masks(backend, rng, shape, density):
    """At 0.05 most rows are empty: weights 0, output 0; without the weights it is the same."""
    q, k, v = sample(rng, 11)
    mask = rng.random(shape) < density
    output, weights = backend.call(attend, q, k, v, mask=mask, return_weights=True)
    expected_output, expected_weights = reference.attend(q, k, v, mask=mask)
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(output, expected_output, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(output[~expected_weights.any(-1)], 0)
    alone = backend.call(attend, q, k, v, mask=mask)
    np.testing.assert_allclose(alone, output, rtol=1e-13, atol=1e-15)


LEADS = {  # of queries, keys and values
    "each its own": ((11, 1), (13,), ()),
    "values alone": ((), (), (11,)),
}


@pytest.mark.parametrize("lead", LEADS.values(), ids=LEADS)
def test_leading_axes_broadcast(backend, rng, lead):
    sizes = (3, 5), (7, 5), (7, 2)
    q, k, v = (rng.normal(size=(*a, *size)) for a, size in zip(lead, sizes, strict=True))
    out = backend.call(attend, q, k, v)
    assert out.shape == (*np.broadcast_shapes(*lead), 3, 2)
    np.testing.assert_allclose(out, reference.attend(q, k, v)[0], rtol=1e-12)


def test_nothing_to_attend_to_gives_0(backend, rng):
    q, k, v = sample(rng, n=0)
    output, weights = backend.call(attend, q, k, v, return_weights=True)
    np.testing.assert_array_equal(output, np.zeros((3, 5)))
    assert weights.shape == (3, 0)
    mask = np.ones((3, 0), dtype=bool)
    np.testing.assert_array_equal(backend.call(attend, q, k, v, mask=mask), np.zeros((3, 5)))


def test_no_queries_and_no_columns(backend, rng):
    assert backend.call(attend, *sample(rng, m=0)).shape == (0, 5)
    assert backend.call(attend, *sample(rng, p=0)).shape == (3, 0)
    assert backend.call(attend, *sample(rng, 0)).shape == (0, 3, 5)


def test_large_half_precision_scores_do_not_overflow(backend):
    """300 · 300 = 90000 is beyond float16's 65504; the weights are 1 and 0 all the same."""
    for half in backend.half:
        q, k, v = (
            backend.cast(backend.array(np.array(a)), half)
            for a in ([[300.0]], [[300.0], [200.0]], [[3.0], [5.0]])
        )
        output, weights = attend(q, k, v, return_weights=True)
        assert backend.dtype(output) == backend.dtype(weights) == half
        assert backend.numpy(backend.cast(output, "float32")).item() == 3


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_half_precision_sums_do_not_stall(backend, half):
    """The mean of 4097 ones in half precision, where adding one at a time stops at 256 or 2048."""
    if half not in backend.half:
        pytest.skip(f"{backend.name} has no {half}")
    q, k, v = (
        backend.cast(backend.array(np.ones(shape)), half)
        for shape in ((1, 2), (4097, 2), (4097, 1))
    )
    assert backend.numpy(backend.cast(attend(q, k, v), "float32")).item() == 1


def test_keeps_float32(backend, rng):
    q, k, v = (a.astype(np.float32) for a in sample(rng))
    output, weights = backend.call(attend, q, k, v, return_weights=True)
    assert output.dtype == weights.dtype == np.float32
    np.testing.assert_allclose(output, reference.attend(q, k, v)[0], rtol=1e-5)


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
        assert np.all(np.isfinite(dq))
        assert np.all(dq[2] != 0)
        assert np.all(dk[:3] != 0)
        assert np.all(dv[:3] != 0)


def test_causal_mask_by_hand(backend):
    out = backend.call(lambda like: causal_mask(3, like=like), np.ones(2))
    assert out.dtype == bool
    expected = [[True, False, False], [True, True, False], [True, True, True]]
    np.testing.assert_array_equal(out, expected)
    assert backend.call(lambda like: causal_mask(0, like), np.ones(2)).shape == (0, 0)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_padding_mask_by_hand(backend, dtype):
    lengths = np.array([[0, 1], [2, 3]], dtype=dtype)
    out = backend.call(padding_mask, lengths, 3)
    assert out.dtype == bool
    rows = [[False] * 3, [True, False, False], [True, True, False], [True] * 3]
    np.testing.assert_array_equal(out, np.array(rows).reshape(2, 2, 1, 3))


def test_padding_mask_of_one_sequence_and_of_long_ones(backend):
    out = backend.call(padding_mask, np.array(2), 3)
    np.testing.assert_array_equal(out, [[True, True, False]])
    out = backend.call(padding_mask, np.array([200], dtype=np.uint8), 300)
    assert out.shape == (1, 1, 300)
    assert out.sum() == 200


def test_a_score_may_take_keys_of_another_width(backend, rng):
    q, k, v = (rng.normal(size=shape) for shape in ((3, 2), (7, 5), (7, 11)))
    weight = rng.normal(size=(2, 5))

    expected, _ = reference.attend(q, k, v, score=lambda q, k: reference.general(q, k, weight))

    def with_weight(q, k, v, weight):
        return attend(q, k, v, score=lambda q, k: scores.general(q, k, weight))

    np.testing.assert_allclose(backend.call(with_weight, q, k, v, weight), expected, rtol=1e-11)
    with pytest.raises(ValueError, match="keys: got 5 coordinates, expected 2 as in queries"):
        backend.call(attend, q, k, v)
    with pytest.raises(ValueError, match="k: got 5 coordinates, expected 2 as in q"):
        backend.call(lambda q, k, v: attend(q, k, v, score=scores.dot), q, k, v)


def test_a_sum_beyond_half_precision(backend):
    """The 70 000 exponentials of equal scores add up to more than float16 holds, 65 504."""
    for dtype in backend.half:
        weights = softmax(backend.cast(backend.array(np.zeros(70_000)), dtype))
        assert backend.dtype(weights) == dtype
        wide = backend.numpy(backend.cast(weights, "float64"))
        np.testing.assert_allclose(wide, 1 / 70_000, rtol=5e-3)
