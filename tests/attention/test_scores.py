"""Scores one can compute by hand, and the loop."""

import functools
import math

import backends
import numpy as np
import pytest
import reference

from attnbook import attend, kernels, scores


def test_dot_by_hand(backend):
    q, k = np.array([[1.0, 2.0]]), np.array([[3.0, 5.0], [-2.0, 1.0], [0.5, 0.25]])
    np.testing.assert_array_equal(backend.call(scores.dot, q, k), [[13.0, 0.0, 1.0]])


def test_scaled_dot_by_hand(backend):
    """Query (0, √2) and the unit vectors: scores 0 and 1; in four dimensions the scale is 2."""
    q = np.array([[0.0, math.sqrt(2)]])
    np.testing.assert_allclose(backend.call(scores.scaled_dot, q, np.eye(2)), [[0.0, 1.0]])
    q, k = np.array([[1.0, 2.0, 3.0, 4.0]]), np.ones((1, 4))
    np.testing.assert_array_equal(backend.call(scores.scaled_dot, q, k), [[5.0]])


@pytest.mark.parametrize(
    ("bandwidth", "expected"),
    [(1.0, -12.5), (5.0, -0.5), ([3.0, 4.0], -1.0), (np.array([3.0, 4.0]), -1.0)],
)
def test_gaussian_score_by_hand(backend, bandwidth, expected):
    q, k = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])
    out = backend.call(scores.gaussian_score, q, k, bandwidth)
    np.testing.assert_allclose(out, [[expected]], rtol=1e-15)


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "gaussian_score"])
@pytest.mark.parametrize("d", [2, 5])
def test_equals_the_loop(backend, rng, name, d):
    q, k = rng.normal(size=(11, 1, 3, d)), rng.normal(size=(13, 7, d))
    out = backend.call(getattr(scores, name), q, k)
    assert out.shape == (11, 13, 3, 7)
    expected = reference.pairs(getattr(reference, name), q, k)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-14)


def test_gaussian_score_is_the_logarithm_of_the_gaussian_kernel(backend, rng):
    q, k, h = rng.normal(size=(3, 5)), rng.normal(size=(7, 5)), rng.uniform(0.5, 2, size=5)
    kernel = backend.call(lambda q, k, h: kernels.gaussian(kernels.distance(q, k, h)), q, k, h)
    score = backend.call(scores.gaussian_score, q, k, h)
    np.testing.assert_allclose(np.exp(score), kernel, rtol=1e-12)


@pytest.mark.parametrize("bandwidth", [np.float64(0.5), np.float32(0.5), np.int64(2), 2, 0.5])
def test_numpy_scalars_do_not_widen_float32(backend, rng, bandwidth):
    q, k = (rng.normal(size=(n, 2)).astype(np.float32) for n in (3, 7))
    out = backend.call(scores.gaussian_score, q, k, bandwidth)
    assert out.dtype == np.float32
    score = lambda a, b: reference.gaussian_score(a, b, float(bandwidth))  # noqa: E731
    np.testing.assert_allclose(out, reference.pairs(score, q, k), rtol=1e-5)


WIDTHS = {"general": 5, "cosine": 2, "additive": 5}  # of keys; queries have 2


def learned(rng, name, r=13):
    """The parameters of a score."""
    shapes = {"general": [(2, 5)], "cosine": [], "additive": [(r, 2), (r, 5), (r,)]}
    return [rng.normal(size=shape) for shape in shapes[name]]


def test_general_by_hand(backend):
    """(1, 2) W = (−2, 1), where Wᵀ would give (2, −1); and a weight that is no square."""
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    q, k = np.array([[1.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 5.0]])
    np.testing.assert_array_equal(backend.call(scores.general, q, k, turn), [[-2, 1, -1]])
    weight = np.array([[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]])
    out = backend.call(scores.general, q, np.array([[1.0, 2.0, 3.0]]), weight)
    np.testing.assert_array_equal(out, [[5 + 100 + 1500]])


def test_general_with_the_identity_is_the_dot_product(backend, rng):
    q, k = rng.normal(size=(3, 2)), rng.normal(size=(7, 2))
    expected = backend.call(scores.dot, q, k)
    out = backend.call(scores.general, q, k, np.eye(2))
    np.testing.assert_allclose(out, expected, rtol=1e-14)


def test_cosine_by_hand(backend):
    """Angles of 0°, 45°, 90°, 180°; lengths do not count, and a vector of zeros scores 0."""
    q = np.array([[3.0, 0.0], [0.0, 0.0]])
    k = np.array([[7.0, 0.0], [5.0, 5.0], [0.0, 2.0], [-1.0, 0.0], [0.0, 0.0], [3.0, -4.0]])
    expected = [[1, math.sqrt(0.5), 0, -1, 0, 0.6], [0] * 6]
    np.testing.assert_allclose(backend.call(scores.cosine, q, k), expected, rtol=1e-14)


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e30, 1e300])
def test_cosine_at_any_length(backend, rng, size):
    """The squares of 1e300 overflow, those of 1e-300 underflow; the angle is that of small ones."""
    q, k = rng.normal(size=(3, 5)), rng.normal(size=(7, 5))
    expected = reference.pairs(reference.cosine, q, k)
    side_by_side = np.array([[1e-300], [1.0], [1e300]]), 10.0 ** np.linspace(-300, 300, 7)[:, None]
    for of_q, of_k in ((size, 1), (1, size), (size, size), side_by_side):
        out = backend.call(scores.cosine, of_q * q, of_k * k)
        np.testing.assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize("size", [1e-30, 1e18, 1e37])
def test_cosine_at_any_length_in_float32(backend, rng, size):
    q, k = (rng.normal(size=(n, 5)) for n in (3, 7))
    expected = reference.pairs(reference.cosine, q, k)
    out = backend.call(scores.cosine, (size * q).astype(np.float32), k.astype(np.float32))
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


def test_cosine_of_entries_of_very_different_size(backend):
    """The largest entry is the measure: the others add nothing to the length."""
    q, k = np.array([[1e200, 1.0], [3e200, 4e200]]), np.array([[1.0, 1e-200], [0.0, 1e-200]])
    expected = [[1, 0], [0.6, 0.8]]
    np.testing.assert_allclose(backend.call(scores.cosine, q, k), expected, rtol=1e-14, atol=1e-99)


def test_additive_by_hand(backend):
    """tanh(log 2 + log 3) = (36 − 1) / (36 + 1); the second hidden unit sees 0 and counts nothing."""
    q, k = np.array([[math.log(2)], [0.0]]), np.array([[math.log(3), 5.0]])
    w_q, w_k = np.array([[1.0], [0.0]]), np.array([[1.0, 0.0], [0.0, 0.0]])
    out = backend.call(scores.additive, q, k, w_q, w_k, np.array([37.0, 11.0]))
    np.testing.assert_allclose(out, [[35], [37 * 8 / 10]], rtol=1e-14)


def test_additive_of_keys_that_were_multiplied_before(backend, rng):
    """Without w_k the keys are W_k k already; they must be as wide as the hidden layer."""
    q, k = rng.normal(size=(11, 1, 3, 2)), rng.normal(size=(13, 7, 5))
    w_q, w_k, v = learned(rng, "additive")
    expected = backend.call(scores.additive, q, k, w_q, w_k, v)
    out = backend.call(scores.additive, q, k @ w_k.T, w_q, None, v)
    both = backend.call(scores.additive_of_projected, q @ w_q.T, k @ w_k.T, v)
    np.testing.assert_allclose(both, expected, rtol=1e-12)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-13)
    message = "k: got 5 coordinates, expected 13 as w_q's rows: no w_k"
    with pytest.raises(ValueError, match=message):
        backend.call(scores.additive, q, k, w_q, None, v)


def test_additive_of_large_inputs_is_bounded(backend, rng):
    """tanh saturates: ±1e30 gives ± the sum of |v|."""
    w = np.ones((3, 1))
    q, k = np.array([[1e30], [-1e30]]), np.array([[1e3], [-1e3]])
    out = backend.call(scores.additive, q, k, w, w, np.array([1.0, 2.0, 4.0]))
    np.testing.assert_array_equal(out, [[7, 7], [-7, -7]])


@pytest.mark.parametrize("name", WIDTHS)
def test_learned_scores_equal_the_loop(backend, rng, name):
    """Leading axes broadcast; queries and keys of different width, but for the cosine."""
    q, k = rng.normal(size=(11, 1, 3, 2)), rng.normal(size=(13, 7, WIDTHS[name]))
    parameters = learned(rng, name)
    out = backend.call(getattr(scores, name), q, k, *parameters)
    assert out.shape == (11, 13, 3, 7)
    score = lambda a, b: getattr(reference, name)(a, b, *parameters)  # noqa: E731
    np.testing.assert_allclose(out, reference.pairs(score, q, k), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", ["general", "additive"])
def test_large_inputs(backend, name):
    """Products of 2^100, about 1e30, are 2^200 and no infinity."""
    large = 2.0**100
    q, k = large * np.array([[1.0, -1.0]]), large * np.array([[1.0, 1.0], [0.0, 1.0]])
    parameters = [np.eye(2)] if name == "general" else [np.eye(2), -np.eye(2), np.ones(2)]
    out = backend.call(getattr(scores, name), q, k, *parameters)
    expected = [[0, -(large**2)]] if name == "general" else [[-1, 0]]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("name", ["general", "additive"])
def test_a_float64_parameter_does_not_widen_float32(backend, rng, name):
    q, k = (rng.normal(size=s).astype(np.float32) for s in ((3, 2), (7, 5)))
    parameters = learned(rng, name)
    out = backend.call(getattr(scores, name), q, k, *parameters)
    assert out.dtype == np.float32
    score = lambda a, b: getattr(reference, name)(a, b, *parameters)  # noqa: E731
    np.testing.assert_allclose(out, reference.pairs(score, q, k), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["general", "cosine", "additive"])
def test_half_precision_in_attend(backend, rng, half, name):
    """A half-precision parameter in functools.partial: float32 inside, where 500 · 400 fits."""
    if half not in backend.half:
        pytest.skip(f"{backend.name} has no {half}")
    q, k, v = [[500.0, 0.0], [0.0, 3.0]], [[400.0, 0.0], [0.0, 400.0]], [[3.0], [5.0]]
    w = np.diag([0.5, 0.25])
    given = {"general": {"weight": w}, "cosine": {}, "additive": {"w_q": w, "w_k": w, "v": w[0]}}
    cast = lambda a: backend.cast(backend.array(np.array(a)), half)  # noqa: E731
    parameters = {n: cast(a) for n, a in given[name].items()}
    score = functools.partial(getattr(scores, name), **parameters)
    output, weights = attend(*map(cast, (q, k, v)), score=score, return_weights=True)
    assert backend.dtype(output) == backend.dtype(weights) == half
    plain = functools.partial(getattr(reference, name), **given[name])
    arrays = (np.array(a) for a in (q, k, v))
    expected, expected_weights = reference.attend(*arrays, plain)
    for out, right in ((output, expected), (weights, expected_weights)):
        out = backend.numpy(backend.cast(out, "float32"))
        np.testing.assert_allclose(out, right, rtol=0.01, atol=1e-3)


@pytest.mark.parametrize("name", WIDTHS)
def test_gradients_are_slopes(differentiable, rng, name):
    """In every argument: finite differences along random directions."""
    arrays = [rng.normal(size=(3, 2)), rng.normal(size=(7, WIDTHS[name])), *learned(rng, name)]
    cotangent = rng.normal(size=(3, 7))
    seen = differentiable.array(cotangent)
    function = getattr(scores, name)
    grads = differentiable.gradient(lambda *a: (function(*a) * seen).sum(), *arrays)
    for i, grad in enumerate(grads):
        step = 1e-6 * rng.normal(size=grad.shape)
        ahead, behind = (
            function(*(a + sign * step if j == i else a for j, a in enumerate(arrays)))
            for sign in (1, -1)
        )
        slope = (cotangent * (ahead - behind)).sum() / 2
        assert abs(slope) > 1e-9
        np.testing.assert_allclose((grad * step).sum(), slope, rtol=1e-5)


def test_cosine_has_finite_gradients_at_zero(differentiable, rng):
    """A zero vector among others: finite everywhere, and the others' gradients as without it."""
    q, k = rng.normal(size=(3, 2)), rng.normal(size=(7, 2))
    q[1] = k[2] = 0
    loss = lambda q, k: (scores.cosine(q, k) ** 3).sum()  # noqa: E731
    dq, dk = differentiable.gradient(loss, q, k)
    clean_q, clean_k = differentiable.gradient(loss, q[[0, 2]], np.delete(k, 2, axis=0))
    np.testing.assert_allclose(dq[[0, 2]], clean_q, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(np.delete(dk, 2, axis=0), clean_k, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(dq[1], 0)  # the slope of 0 cubed
    np.testing.assert_array_equal(dk[2], 0)
    linear = lambda q, k: scores.cosine(q, k).sum()  # noqa: E731
    for gradient in differentiable.gradient(linear, q, k):
        assert np.isfinite(gradient).all()
    along = (q * dq).sum(-1)
    np.testing.assert_allclose(along, 0, atol=1e-14)  # a longer vector has the same cosine


def test_gradcheck_of_the_scores(rng):
    """PyTorch's own check, to the second derivative."""
    torch = backends.load_or_skip("torch").xp
    for name, width in WIDTHS.items():
        arrays = rng.normal(size=(2, 2)), rng.normal(size=(1, width)), *learned(rng, name, r=2)
        leaves = [torch.from_numpy(a).requires_grad_() for a in arrays]
        assert torch.autograd.gradcheck(getattr(scores, name), leaves)
        assert torch.autograd.gradgradcheck(getattr(scores, name), leaves)


def test_what_is_projected_has_one_width(backend):
    with pytest.raises(ValueError, match="k: got 4 coordinates, expected 3 as in q"):
        backend.call(scores.additive_of_projected, np.ones((2, 3)), np.ones((5, 4)), np.ones(3))
