"""What a score or a kernel that somebody hands in may give."""

import math

import numpy as np
import pytest
from array_api_compat import array_namespace
from layer_harness import Library

from attnbook import attend, kernels, leave_one_out, nadaraya_watson, scores

Q, K, V = np.ones((3, 2)), np.ones((7, 2)), np.arange(14.0).reshape(7, 2)


def scores_like(change):
    return lambda q, k: change(q @ k.mT)


ONE_ROW = r"score: gave shape \(1, 7\), expected \(\.\.\., 3, 7\)"
BAD_SCORES = {
    "a row for all queries": (lambda s: s[:1, :], ONE_ROW),
    "transposed": (lambda s: s.mT, r"score: gave shape \(7, 3\), expected \(\.\.\., 3, 7\)"),
    "one per query": (lambda s: s[:, 0], r"score: gave shape \(3,\), expected \(\.\.\., 3, 7\)"),
    "truths": (lambda s: s > 0, r"score: gave dtype .*bool, expected a floating one"),
}


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", BAD_SCORES)
def test_bad_scores(backend, name, weights):
    change, message = BAD_SCORES[name]
    with pytest.raises(ValueError, match=message):
        backend.call(attend, Q, K, V, score=scores_like(change), return_weights=weights)


@pytest.mark.parametrize("given", [0.5, [[1.0] * 7] * 3, None])
def test_a_score_that_gives_no_array(backend, given):
    message = f"score: got a {type(given).__name__}, expected a NumPy, PyTorch or JAX array"
    with pytest.raises(TypeError, match=message):
        backend.call(attend, Q, K, V, score=lambda q, k: given)


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_a_score_of_another_library(name):
    backend = Library(name).backend
    with pytest.raises(TypeError, match=r"queries, score: got arrays of .*, expected one library"):
        backend.call(attend, Q, K, V, score=lambda q, k: np.ones((3, 7)))


def test_a_score_of_other_axes_is_let_in(backend):
    """Leading axes that only the scores have, such as a bias a head."""
    bias = np.arange(5 * 3 * 7.0).reshape(5, 3, 7)
    out = backend.call(
        lambda q, k, v, b: attend(q, k, v, score=lambda q, k: q @ k.mT + b), Q, K, V, bias
    )
    assert out.shape == (5, 3, 2)


def test_bad_scores_beside_dropout():
    library = Library("torch")
    layer, x = library.make("MultiHeadAttention", 6, 2, dropout=0.5), np.ones((5, 6))
    message = r"score: gave shape \(2, 1, 5\), expected \(\.\.\., 5, 5\)"
    with pytest.raises(ValueError, match=message):
        library.call(layer, x, score=scores_like(lambda s: s[..., :1, :]), seed=1)


BAD_KERNELS = {
    "a number for all": (lambda u: u.sum(), r"kernel: gave shape \(\), expected \(3, 7\)"),
    "a row for all": (lambda u: u[:1, :], r"kernel: gave shape \(1, 7\), expected \(3, 7\)"),
    "one per query": (lambda u: u[:, :1], r"kernel: gave shape \(3, 1\), expected \(3, 7\)"),
}


@pytest.mark.parametrize("name", BAD_KERNELS)
def test_bad_kernels(backend, name):
    kernel, message = BAD_KERNELS[name]
    if backend.name == "strict" and name == "a number for all":
        pytest.skip("its arrays have no sum")
    with pytest.raises(ValueError, match=message):
        backend.call(nadaraya_watson, Q, K, V, kernel=kernel)


def test_a_kernel_that_gives_no_array(backend):
    with pytest.raises(TypeError, match="kernel: got a float, expected a NumPy, PyTorch or JAX"):
        backend.call(leave_one_out, K, V, kernel=lambda u: 1.0)


VALUES_OF_KERNELS = {
    "negative": (lambda u: u * 0 - 1, "-1.0 at u = 2.0, expected finite numbers, 0 or more"),
    "changes sign": (lambda u: 1 - u * u, "-3.0 at u = 2.0, expected finite"),
    "infinite at 0": (lambda u: 1 / u, "inf at u = 0.0, expected finite"),
    "NaN at 0": (lambda u: u / u, "nan at u = 0.0, expected finite"),
}


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", VALUES_OF_KERNELS)
def test_values_that_no_kernel_has(backend, small_blocks, name, weights):
    if backend.name == "jax-jit":
        pytest.skip("under jax.jit the values are not known")
    if backend.name == "jax" and not weights:
        pytest.skip("JAX compiles blocks of queries")
    kernel, message = VALUES_OF_KERNELS[name]
    q, k, v = np.array([[0.0], [1.0]]), np.array([[0.0], [2.0], [1.0]]), np.ones((3, 1))
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=f"^kernel: gave {message}"):
        backend.call(nadaraya_watson, q, k, v, kernel=kernel, return_weights=weights)


def test_a_kernel_may_give_anything_where_the_mask_says_no(backend):
    """1/u is infinite at a key itself, which leave-one-out leaves out."""
    keys, values = np.array([[0.0], [1.0], [3.0]]), np.array([[1.0], [2.0], [4.0]])
    with np.errstate(all="ignore"):
        out = backend.call(leave_one_out, keys, values, kernel=lambda u: 1 / u)
    np.testing.assert_allclose(out, [[2.5], [2.0], [1.6]], rtol=1e-14)


def test_a_complex_kernel(backend):
    def kernel(u):
        xp = array_namespace(u)
        return xp.astype(u, xp.complex128)

    with pytest.raises(ValueError, match=r"kernel: gave dtype .*complex128, expected a floating"):
        backend.call(nadaraya_watson, Q, K, V, kernel=kernel)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_kernel_of_truths_is_a_boxcar(backend, rng, dtype):
    q, k, v = (rng.normal(size=s).astype(dtype) for s in ((3, 2), (7, 2), (7, 5)))
    out = backend.call(nadaraya_watson, q, k, v, kernel=lambda u: u <= 1)
    expected = backend.call(nadaraya_watson, q, k, v, kernel=kernels.boxcar)
    assert out.dtype == dtype
    # two sums of 7 terms and a quotient in each: 16 roundings of an average of the values
    roundoff = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(out, expected, rtol=0, atol=2 * roundoff * np.abs(v).max())


def filled(number, rows=slice(None)):
    def score(q, k):
        found = q @ k.mT
        keep = (found * 0 + 1) > 0
        lost = keep & (array_namespace(found).arange(3)[:, None] >= rows.start)
        return array_namespace(found).where(lost, number, found)

    return score


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("number", [-math.inf, math.inf, math.nan])
def test_scores_that_leave_no_softmax(backend, number, weights):
    """The last of three rows: all −∞, or NaN. Where inputs are NaN themselves, so is the output."""
    how = {"score": filled(number, slice(2, 3)), "return_weights": weights}
    if backend.name == "jax-jit":
        pytest.skip("under jax.jit the values are not known")
    message = "score: gave 1 rows of 3 that have NaN or \\+∞, or −∞ alone, expected a finite number"
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=message):
        backend.call(attend, Q, K, V, **how)
    lost = np.where(np.arange(3)[:, None] == 1, np.nan, Q)
    out = backend.call(attend, lost, K, V, score=scores.dot)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(lost))


def test_minus_infinity_for_some_keys_is_a_mask(backend):
    """And a row that the mask leaves empty is 0, whatever the score gave."""
    mask = np.array([[True] * 7, [True] * 7, [False] * 7])
    bias = np.where(np.arange(7) < 3, 0.0, -np.inf)
    out = backend.call(
        lambda q, k, v, b, m: attend(q, k, v, score=lambda q, k: q @ k.mT + b, mask=m),
        *(Q, K, V, bias, mask),
    )
    np.testing.assert_allclose(out, [[2, 3], [2, 3], [0, 0]], rtol=1e-14)


def test_a_score_whose_leading_axes_do_not_fit(backend):
    q, k, v = (np.ones((5, *a.shape)) for a in (Q, K, V))
    message = r"queries, keys, values, score: got shapes .*score \(2, 3, 7\), expected leading axes"
    with pytest.raises(ValueError, match=message):
        backend.call(attend, q, k, v, score=lambda q, k: (q @ k.mT)[:2, ...])
