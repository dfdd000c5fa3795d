"""A weighted average in parts: cut anywhere, combined in any order, it stays the same average."""

import functools

import backends
import numpy as np
import pytest

from attnbook import attend, scores, softmax
from attnbook.exact.online_softmax import Partial, combine, empty, finish, partial

N, P = 257, 3


def pairwise(parts):
    """Neighbours combined, until one part is left."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [combine(a, b) for a, b in pairs] + (parts[-1:] if len(parts) % 2 else [])
    return parts[0]


def chain(parts):
    return functools.reduce(combine, parts)


def in_parts(row_scores, values, mask=None, cuts=(2, 2, 5)):
    """Average and log-sum-exp of keys cut at these places, one part of which may be empty."""
    ends = zip((0, *cuts), (*cuts, row_scores.shape[-1]), strict=True)
    return finish(
        chain(
            [
                partial(
                    row_scores[..., a:b],
                    values[..., a:b, :],
                    None if mask is None else mask[..., a:b],
                )
                for a, b in ends
            ]
        )
    )


def by_loop(row_scores, values, mask):
    """Average and log-sum-exp of one row, in Python's numbers."""
    kept = [j for j in range(len(values)) if mask[j]]
    if not kept:
        return np.zeros(values.shape[-1]), -np.inf
    exponentials = [np.exp(np.longdouble(row_scores[j])) for j in kept]
    total = sum(exponentials)
    average = sum(e * values[j] for e, j in zip(exponentials, kept, strict=True)) / total
    return average.astype(float), float(np.log(total))


def test_by_hand():
    part = partial(np.array([[0.0, np.log(3.0)]]), np.array([[4.0], [8.0]]))
    np.testing.assert_allclose(part.top, [np.log(3)], rtol=1e-15)
    np.testing.assert_allclose(part.total, [4 / 3], rtol=1e-15)
    np.testing.assert_allclose(part.weighted, [[4 / 3 + 8]], rtol=1e-15)
    average, log_sum_exp = finish(part)
    np.testing.assert_allclose(average, [[7.0]], rtol=1e-15)
    np.testing.assert_allclose(log_sum_exp, [np.log(4)], rtol=1e-15)


def test_equals_the_loop(backend, rng):
    """Also where leading axes broadcast, a mask has some of them, and a row allows nothing."""
    row_scores, values = 3 * rng.normal(size=(2, 1, 5, 7)), rng.normal(size=(3, 7, P))
    mask = rng.random((3, 5, 7)) < 0.6
    mask[1, 2] = False
    average, log_sum_exp = backend.call(in_parts, row_scores, values, mask)
    assert average.shape == (2, 3, 5, P)
    assert log_sum_exp.shape == (2, 3, 5)
    for i, j, row in np.ndindex(2, 3, 5):
        expected = by_loop(row_scores[i, 0, row], values[j], mask[j, row])
        np.testing.assert_allclose(average[i, j, row], expected[0], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(log_sum_exp[i, j, row], expected[1], rtol=1e-12)
    assert (average[:, 1, 2] == 0).all()
    assert (log_sum_exp[:, 1, 2] == -np.inf).all()


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
        return (*part, *combine(nothing, part), *combine(part, nothing), *nothing)

    found = backend.call(both_ways, row_scores, values)
    for field in range(3):
        np.testing.assert_array_equal(found[field], found[3 + field])
        np.testing.assert_array_equal(found[field], found[6 + field])
    assert [a.shape for a in found[9:]] == [(2, 5), (2, 5), (2, 5, P)]
    np.testing.assert_array_equal(found[9], np.full((2, 5), -np.inf))
    assert not found[10].any()
    assert not found[11].any()


def test_empty_takes_every_leading_axis(backend):
    found = backend.call(lambda like: empty(5, P, like), np.zeros((2, 3, 4, 7)))
    assert [a.shape for a in found] == [(2, 3, 5), (2, 3, 5), (2, 3, 5, P)]


def test_a_part_without_keys_is_empty(backend):
    found = backend.call(partial, np.zeros((2, 5, 0)), np.zeros((0, P)))
    for one, other in zip(found, empty(5, P, np.zeros((2, 5, 7))), strict=True):
        np.testing.assert_array_equal(one, other)


def test_scores_a_hundred_times_as_large_do_not_overflow(backend, rng):
    backends.skip_op_by_op(backend)
    row_scores, values = 800 * rng.normal(size=(5, 7)), rng.normal(size=(7, P))
    average, log_sum_exp = backend.call(in_parts, row_scores, values)
    np.testing.assert_allclose(average, softmax(row_scores) @ values, atol=1e-14)
    assert (np.abs(log_sum_exp - row_scores.max(axis=-1)) < 2).all()


def test_it_is_attention_over_the_parts(rng):
    """One query over the parts' log-sum-exps, whose values are the parts' averages."""
    q, k, v = (rng.normal(size=shape) for shape in ((1, 16), (1000, 16), (1000, 4)))
    split = zip(np.array_split(k, 7), np.array_split(v, 7), strict=True)
    found = [finish(partial(scores.scaled_dot(q, keys), values)) for keys, values in split]
    averages = np.concatenate([average for average, _ in found])
    logs = np.stack([log_sum_exp for _, log_sum_exp in found])
    again = attend(np.ones((1, 1)), logs, averages, score=scores.dot)
    np.testing.assert_allclose(again, attend(q, k, v), rtol=1e-12, atol=1e-15)


def test_one_row_needs_no_axis(backend, rng):
    backends.skip_op_by_op(backend)
    row_scores, values = rng.normal(size=7), rng.normal(size=(7, P))

    def with_an_axis(*arrays):
        average, log_sum_exp = in_parts(*arrays)
        return average, log_sum_exp[None]

    average, log_sum_exp = backend.call(with_an_axis, row_scores, values)
    np.testing.assert_allclose(average, softmax(row_scores) @ values, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(
        log_sum_exp, [np.log(np.exp(row_scores).sum())], rtol=1e-12, atol=1e-14
    )


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
    """A row that allows nothing has a gradient of 0, and so have the values that nobody sees."""
    backends.skip_op_by_op(differentiable)
    row_scores, values, g = (rng.normal(size=shape) for shape in ((5, 7), (7, P), (5, P)))
    mask = np.arange(7) < np.array([7, 0, 1, 4, 6])[:, None]

    def loss(average, row_scores, values):
        found = average(row_scores, values, differentiable.array(mask))
        return (found * differentiable.array(g)).sum()

    def streamed(*arrays):
        average, log_sum_exp = in_parts(*arrays)
        return average + 0 * log_sum_exp.clip(-99, 99)[..., None]

    def whole(row_scores, values, mask):
        return softmax(row_scores, mask) @ values

    found = differentiable.gradient(functools.partial(loss, streamed), row_scores, values)
    expected = differentiable.gradient(functools.partial(loss, whole), row_scores, values)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    assert not found[0][~mask].any()


def test_gradients_of_the_log_sum_exp_are_weights(differentiable, rng):
    backends.skip_op_by_op(differentiable)
    row_scores, values = rng.normal(size=(5, 7)), rng.normal(size=(7, P))
    mask = np.arange(7) < np.array([7, 0, 1, 4, 6])[:, None]

    def loss(row_scores):
        given = map(differentiable.array, (values, mask))
        return in_parts(row_scores, *given)[1].sum()

    (found,) = differentiable.gradient(loss, row_scores)
    np.testing.assert_allclose(found, softmax(row_scores, mask), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_dtype_stays(backend, dtype):
    if dtype == "bfloat16" and dtype not in backend.half:
        pytest.skip("NumPy has no bfloat16")
    if backend.name == "jax-jit":
        pytest.skip("jax runs the same: nothing is compiled here")
    ones = backend.cast(backend.array(np.ones((300, 1))), dtype)
    single = [partial(0 * ones[i : i + 1, :], ones[i : i + 1, :]) for i in range(300)]
    part = chain(single)
    assert {backend.dtype(a) for a in (*part, *finish(part), *empty(1, 1, ones))} == {dtype}
    assert float(part.total[0]) == (256 if dtype == "bfloat16" else 300)


def test_autocast_rounds_no_sum(rng):
    torch = pytest.importorskip("torch")
    q = torch.from_numpy(rng.normal(size=(300, 4))).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        row_scores = scores.scaled_dot(q, q)
        part = partial(row_scores, q)
    assert {a.dtype for a in part} == {q.dtype}
    for one, other in zip(part, partial(row_scores.float(), q), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


S, V = np.ones((5, 7)), np.ones((7, P))
PART = partial(S, V)
WRONG = {
    "a number": (lambda: partial(1.0, V), TypeError, "scores: got a float"),
    "integers": (lambda: partial(S.astype(int), V), ValueError, "scores: got dtype int64"),
    "no axis": (lambda: partial(np.array(1.0), V), ValueError, r"scores: got shape \(\)"),
    "values of one axis": (lambda: partial(S, V[:, 0]), ValueError, r"values: got shape \(7,\)"),
    "one row, several values": (
        lambda: partial(S[0], np.ones((2, 7, P))),
        ValueError,
        r"scores: got shape \(7,\) with values of shape \(2, 7, 3\), expected \(..., rows, n\)",
    ),
    "a value too few": (lambda: partial(S, V[:6]), ValueError, "values: got 6 rows, expected 7"),
    "leads": (
        lambda: partial(np.ones((2, 5, 7)), np.ones((3, 7, P))),
        ValueError,
        "scores, values: .* broadcast",
    ),
    "mask": (lambda: partial(S, V, np.ones(6, bool)), ValueError, r"mask: got shape \(6,\)"),
    "numbers as mask": (lambda: partial(S, V, S), ValueError, "mask: got dtype float64"),
    "two dtypes": (lambda: partial(S, V.astype("f4")), ValueError, "values: got dtype float32"),
    "no part": (lambda: combine(PART, S), TypeError, "b: got a ndarray, expected a Partial"),
    "a tuple": (lambda: finish(tuple(PART)), TypeError, "part: got a tuple, expected a Partial"),
    "a hole": (lambda: finish(Partial(None, S[0], V)), TypeError, "part.top: got a NoneType"),
    "rows": (lambda: combine(PART, partial(S[:1], V)), ValueError, r"b: got sums .*\(1, 3\)"),
    "widths": (lambda: combine(PART, partial(S, V[:, :1])), ValueError, r"b: got .*\(5, 1\)"),
    "shapes": (lambda: finish(Partial(S[:, 0], S[0], V)), ValueError, r"part: got shapes \(5,\)"),
    "leads of a part": (
        lambda: finish(Partial(np.ones((4, 5)), np.ones((4, 5)), np.ones((3, 5, 2)))),
        ValueError,
        r"part: got leading axes \(4,\) of the largest scores and \(3,\) of the weighted sums",
    ),
    "leads of parts": (
        lambda: combine(*(partial(np.ones((lead, 5, 7)), V) for lead in (2, 3))),
        ValueError,
        "a, b: .* broadcast",
    ),
    "half a key": (lambda: empty(2.5, P, S), ValueError, "rows: got 2.5"),
    "below no width": (lambda: empty(5, -1, S), ValueError, "p: got -1"),
    "like a list": (lambda: empty(5, P, [1.0]), TypeError, "like: got a list"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(name):
    call, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        call()
