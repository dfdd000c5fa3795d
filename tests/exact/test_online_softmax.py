"""A weighted average in parts: cut anywhere, combined in any order, it stays the same average."""

import functools

import numpy as np
import pytest

from attnbook import attend, scores, softmax
from attnbook.exact.online_softmax import Partial, combine, empty, finish, partial

BACKENDS = ("numpy", "strict", "torch", "jax-jit")
N, P = 257, 3


def pairwise(parts):
    """Neighbours combined, until one part is left."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [combine(a, b) for a, b in pairs] + (parts[-1:] if len(parts) % 2 else [])
    return parts[0]


def chain(parts):
    return functools.reduce(combine, parts)


def in_parts(row_scores, values, mask, cuts=(2, 2, 5)):
    """Average and log-sum-exp of keys cut at these places, one part of which is empty."""
    ends = zip((0, *cuts), (*cuts, row_scores.shape[-1]), strict=True)
    parts = (partial(row_scores[..., a:b], values[..., a:b, :], mask[..., a:b]) for a, b in ends)
    return finish(chain(parts))


def test_two_hundred_cuts_as_chain_as_tree_and_shuffled(rng):
    row_scores, values = 8 * rng.normal(size=(5, N)), rng.normal(size=(N, P))
    expected = softmax(row_scores) @ values
    worst = 0.0
    # sums of N terms, of which each part is rescaled at most 30 times: roundings × unit × size
    bound = (N + 3 * 30) * np.finfo(float).eps / 2 * np.abs(values).max()
    for _ in range(200):
        cuts = np.sort(rng.choice(np.arange(1, N), size=rng.integers(1, 30), replace=False))
        parts = [partial(row_scores[:, g], values[g]) for g in np.split(np.arange(N), cuts)]
        shuffled = [parts[i] for i in rng.permutation(len(parts))]
        for one in (chain(parts), pairwise(parts), pairwise(shuffled), chain(shuffled)):
            worst = max(worst, np.abs(finish(one)[0] - expected).max())
    assert worst <= 2 * bound


def test_empty_changes_nothing_exactly(backend, rng):
    row_scores, values = rng.normal(size=(2, 5, 7)), rng.normal(size=(7, P))

    def both_ways(row_scores, values):
        part, nothing = partial(row_scores, values), empty(5, P, row_scores)
        without = partial(row_scores[..., :0], values[:0, :])
        return (*part, *combine(nothing, part), *combine(part, nothing), *nothing, *without)

    found = backend.call(both_ways, row_scores, values)
    for field in range(3):
        np.testing.assert_array_equal(found[field], found[3 + field])
        np.testing.assert_array_equal(found[field], found[6 + field])
        np.testing.assert_array_equal(found[9 + field], found[12 + field])
    assert [a.shape for a in found[9:12]] == [(2, 5), (2, 5), (2, 5, P)]
    np.testing.assert_array_equal(found[9], np.full((2, 5), -np.inf))
    assert not found[10].any()
    assert not found[11].any()


def test_large_scores_do_not_overflow_and_a_row_may_be_empty(backend, rng):
    row_scores, values = 800 * rng.normal(size=(5, 7)), rng.normal(size=(7, P))
    mask = np.arange(7) < np.array([7, 0, 1, 4, 6])[:, None]
    average, log_sum_exp = backend.call(in_parts, row_scores, values, mask)
    np.testing.assert_allclose(average, softmax(row_scores, mask) @ values, rtol=0, atol=1e-13)
    assert log_sum_exp[1] == -np.inf
    some = mask.any(axis=-1)
    top = np.where(mask, row_scores, -np.inf).max(axis=-1)
    assert (np.abs(log_sum_exp[some] - top[some]) < 2).all()


def test_it_is_attention_over_the_parts(rng):
    """One query over the parts' log-sum-exps, whose values are the parts' averages."""
    q, k, v = (rng.normal(size=shape) for shape in ((1, 16), (1000, 16), (1000, 4)))
    split = zip(np.array_split(k, 7), np.array_split(v, 7), strict=True)
    found = [finish(partial(scores.scaled_dot(q, keys), values)) for keys, values in split]
    averages = np.concatenate([average for average, _ in found])
    logs = np.stack([log_sum_exp for _, log_sum_exp in found])
    again = attend(np.ones((1, 1)), logs, averages, score=scores.dot)
    np.testing.assert_allclose(again, attend(q, k, v), rtol=1e-12, atol=1e-15)


def test_prefixes_by_an_associative_scan(rng):
    """JAX may combine in whichever order it likes: the averages of all prefixes are causal."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    row_scores, values = 3 * rng.normal(size=7), rng.normal(size=(7, P))
    parts = Partial(*map(jax.numpy.asarray, (row_scores, np.ones(7), values)))
    scan = jax.jit(lambda parts: jax.lax.associative_scan(combine, parts))
    found, _ = finish(scan(parts))
    for i, average in enumerate(found):
        expected = softmax(row_scores[: i + 1]) @ values[: i + 1]
        np.testing.assert_allclose(average, expected, rtol=1e-12, atol=1e-14)


def test_gradients_are_those_of_the_softmax(differentiable, rng):
    """With an empty row; that of the log-sum-exp are the weights themselves."""
    row_scores, values, g = (rng.normal(size=shape) for shape in ((5, 7), (7, P), (5, P)))
    mask = np.arange(7) < np.array([7, 0, 1, 4, 6])[:, None]
    seen, cotangent = differentiable.array(mask), differentiable.array(g)

    def loss(average, row_scores, values):
        return (average(row_scores, values, seen) * cotangent).sum()

    def streamed(*arrays):
        average, log_sum_exp = in_parts(*arrays)
        return average + 0 * log_sum_exp.clip(-99, 99)[..., None]

    def whole(row_scores, values, mask):
        return softmax(row_scores, mask) @ values

    found, expected = (
        differentiable.gradient(functools.partial(loss, f), row_scores, values)
        for f in (streamed, whole)
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)
    of_values = differentiable.array(values)
    logs = lambda row_scores: in_parts(row_scores, of_values, seen)[1].sum()  # noqa: E731
    (slope,) = differentiable.gradient(logs, row_scores)
    np.testing.assert_allclose(slope, softmax(row_scores, mask), rtol=0, atol=1e-13)


def test_the_dtype_stays():
    """The sums are in that of what comes: that of 300 ones stops at 256 in bfloat16."""
    torch = pytest.importorskip("torch")
    for dtype, total in ((torch.float32, 300), (torch.bfloat16, 256)):
        ones = torch.ones((300, 1), dtype=dtype)
        part = chain(partial(0 * ones[i : i + 1], ones[i : i + 1]) for i in range(300))
        assert {a.dtype for a in (*part, *finish(part), *empty(1, 1, ones))} == {dtype}
        assert float(part.total[0]) == total


S, V = np.ones((5, 7)), np.ones((7, P))
PART = partial(S, V)
WRONG = {
    r"scores: got shape \(\)": lambda: partial(np.array(1.0), V),
    r"scores: got shape \(7,\) with values of shape": lambda: partial(S[0], np.ones((2, 7, P))),
    "b: got a ndarray, expected a Partial": lambda: combine(PART, S),
    "part: got a tuple, expected a Partial": lambda: finish(tuple(PART)),
    r"b: got sums .*\(1, 3\)": lambda: combine(PART, partial(S[:1], V)),
    r"part: got shapes \(5,\)": lambda: finish(Partial(S[:, 0], S[0], V)),
    "p: got -1": lambda: empty(5, -1, S),
    "like: got a list": lambda: empty(5, P, [1.0]),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_calls(message):
    with pytest.raises((ValueError, TypeError), match=message):
        WRONG[message]()
