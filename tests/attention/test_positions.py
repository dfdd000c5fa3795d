"""Positions: sines and cosines, turned pairs, and biases that grow with the distance."""

import math

import numpy as np
import pytest
import reference_heads
from array_api_compat import array_namespace

from attnbook import attend, scores
from attnbook.attention import positions

PLACES = {
    "in order": np.arange(7),
    "as they come": np.array([11, 0, -3, 5, 5, 101, 2]),
    "real": np.array([0.5, -1.25, 3.0, 17.7, 0.0, 2.5, 1e3]),
}
places = pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)


def theta(i, d):
    return 1 / 10_000 ** (2 * i / d)


def test_sinusoidal_known_answers():
    """Of width 4 the pairs turn by 1 and by 1/100 a position."""
    expected = [
        [0, 1, 0, 1],
        [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)],
        [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)],
    ]
    np.testing.assert_allclose(positions.sinusoidal(3, 4), expected, rtol=1e-14)


def test_sinusoidal_equals_the_loop():
    out = positions.sinusoidal(13, 10)
    assert out.shape == (13, 10)
    assert out.dtype == np.float64
    for p, i in np.ndindex(13, 5):
        assert out[p, 2 * i] == pytest.approx(math.sin(p * theta(i, 10)), abs=1e-14)
        assert out[p, 2 * i + 1] == pytest.approx(math.cos(p * theta(i, 10)), abs=1e-14)
    assert positions.sinusoidal(0, 2).shape == (0, 2)
    # a processor may compute the last entries of an array by another sine: a few units of roundoff
    few = 4 * np.finfo(float).eps
    np.testing.assert_allclose(positions.sinusoidal(5, 10), out[:5], rtol=0, atol=few)


def test_sinusoidal_shift_is_a_rotation():
    """P[p + k] = R_k P[p] with one matrix R_k, whatever p; so P[p] · P[p + k] depends on k alone."""
    table = positions.sinusoidal(29, 6)
    for k in (1, 5):
        rotation = np.zeros((6, 6))
        for i in range(3):
            cos, sin = math.cos(k * theta(i, 6)), math.sin(k * theta(i, 6))
            rotation[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[cos, sin], [-sin, cos]]
        np.testing.assert_allclose(table[:-k] @ rotation.T, table[k:], rtol=0, atol=1e-13)
        similar = np.sum(table[:-k] * table[k:], axis=-1)
        np.testing.assert_allclose(similar, similar[0], rtol=1e-13)
        assert similar[0] < 3 - 0.1  # which is P[p] · P[p]


@pytest.mark.parametrize("d", [0, 1, 7])
def test_odd_widths(backend, d):
    message = f"got a width of {d}, expected an even one, 2 or more"
    with pytest.raises(ValueError, match=f"d: {message}"):
        positions.sinusoidal(5, d)
    with pytest.raises(ValueError, match=f"x: {message}"):
        backend.call(positions.rotary, np.ones((5, d)), np.arange(5))


@places
def test_rotary_is_complex_multiplication(backend, rng, place):
    """The pair as a + bi, times e^(i p θ); leading axes are turned alike."""
    x = rng.normal(size=(2, 3, 7, 10))
    pairs = x[..., 0::2] + 1j * x[..., 1::2]
    turned = pairs * np.exp(1j * place[:, None] * np.array([theta(i, 10) for i in range(5)]))
    expected = np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)
    out = backend.call(positions.rotary, x, place)
    assert out.dtype == np.float64
    np.testing.assert_allclose(out, expected, rtol=1e-11, atol=1e-11)
    alone = backend.call(positions.rotary, x[1, 2], place)
    np.testing.assert_allclose(alone, expected[1, 2], rtol=1e-11, atol=1e-11)


def test_rotary_known_turns(backend):
    """By p = π/2 the first pair makes a quarter turn to the left; the second, at 1/100, a hundredth of it."""
    x = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [3.0, 5.0, 7.0, 11.0]])
    out = backend.call(positions.rotary, x, np.array([np.pi / 2, np.pi / 2, 50 * np.pi]))
    cos, sin = math.cos(np.pi / 200), math.sin(np.pi / 200)
    expected = [[0, 1, cos, sin], [-1, 0, -sin, cos], [3, 5, -11, 7]]
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-12)


@places
def test_rotary_keeps_lengths_and_position_0(backend, rng, place):
    x = rng.normal(size=(3, 7, 6))
    out = backend.call(positions.rotary, x, place)
    for i in (0, 2, 4):
        lengths = np.linalg.norm(out[..., i : i + 2], axis=-1)
        np.testing.assert_allclose(lengths, np.linalg.norm(x[..., i : i + 2], axis=-1), rtol=1e-12)
    np.testing.assert_array_equal(out[:, place == 0], x[:, place == 0])
    np.testing.assert_array_equal(backend.call(positions.rotary, x, 0 * place), x)
    back = backend.call(positions.rotary, out, -place)
    np.testing.assert_allclose(back, x, rtol=0, atol=1e-12)


def test_rotary_scores_depend_on_the_difference_alone(backend, rng):
    """All tokens moved by 17: the same scores; the same query and key: one score a difference."""

    def score(q, k, shift):
        xp = array_namespace(q)
        place = xp.arange(7) + shift
        return scores.scaled_dot(positions.rotary(q, place), positions.rotary(k, place))

    q, k = rng.normal(size=(2, 7, 6))
    before, after = (backend.call(score, q, k, shift) for shift in (0, 17))
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-12)
    assert np.ptp(before - backend.call(scores.scaled_dot, q, k)) > 0.1  # positions do matter
    same = backend.call(score, np.tile(q[:1], (7, 1)), np.tile(k[:1], (7, 1)), 0)
    for difference in range(-6, 7):
        assert np.ptp(np.diagonal(same, difference)) < 1e-12
    assert np.ptp(same[0]) > 0.1


def test_rotary_of_sines_moves_their_position(backend):
    """(sin a, cos a) turned by −b is (sin(a + b), cos(a + b))."""
    table = positions.sinusoidal(13, 6)
    out = backend.call(positions.rotary, table[:8], np.full(8, -5))
    np.testing.assert_allclose(out, table[5:], rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_rotary_keeps_the_dtype(backend, rng, dtype):
    """Angles of far positions are float32 at least: float16 would not hold them at all."""
    if dtype not in ("float32", *backend.half):
        pytest.skip(f"{backend.name} has no {dtype}")
    x, place = rng.uniform(-1, 1, size=(7, 6)), np.array([0, 1, 255, 2049, 4097, 9999, 60_001])
    given = backend.cast(backend.array(x), dtype)
    out = positions.rotary(given, backend.array(place))
    assert backend.dtype(out) == dtype
    exact = positions.rotary(backend.numpy(backend.cast(given, "float64")), place)
    error = backend.numpy(backend.cast(out, "float64")) - exact
    assert np.abs(error).max() < {"float32": 1e-2, "float16": 1.2e-2, "bfloat16": 2e-2}[dtype]
    assert np.abs(error[:3]).max() < {"float32": 2e-5, "float16": 1e-3, "bfloat16": 8e-3}[dtype]


@pytest.mark.parametrize("base", [20, 1e6])
def test_rotary_of_another_base_and_of_rows(backend, rng, base):
    """Row by row as alone; places of one row for all heads, as a layer has them; the base counts."""
    x, place = rng.normal(size=(2, 3, 7, 6)), rng.integers(0, 50, size=(2, 1, 7))
    out = backend.call(lambda x, p: positions.rotary(x, p, base), x, place)
    for b, h, i in np.ndindex(2, 3, 7):
        right = reference_heads.rotary(place[b, 0, i], x[b, h, i].tolist(), base)
        np.testing.assert_allclose(out[b, h, i], right, rtol=0, atol=1e-12)
    assert np.abs(out - backend.call(positions.rotary, x, place)).max() > 0.1


def test_rotary_in_float64_has_float64_angles(backend, rng):
    x = rng.normal(size=(3, 6))
    out = backend.call(positions.rotary, x, np.array([10_000_019, 999_983, 7]))
    exact = positions.rotary(x, np.array([10_000_019, 999_983, 7]))
    np.testing.assert_allclose(out, exact, rtol=0, atol=1e-8)


@places
def test_rotary_gradient_turns_back(differentiable, rng, place):
    """The gradient of Σ w · R x in x is Rᵀ w, w turned by −p."""
    x, w = rng.normal(size=(2, 3, 7, 6))
    cotangent, where = differentiable.array(w), differentiable.array(place)

    def loss(x):
        return (positions.rotary(x, where) * cotangent).sum()

    (gradient,) = differentiable.gradient(loss, x)
    np.testing.assert_allclose(gradient, positions.rotary(w, -place), rtol=0, atol=1e-12)


def test_rotary_bad_input(backend):
    x, array = np.ones((3, 7, 4)), backend.array
    for shape in ((6,), (8,), (7, 1), (1, 1, 7), (2, 7), (4, 3, 7), ()):
        with pytest.raises(ValueError, match=r"positions: got shape \(.*\), expected \(n,\) for x"):
            backend.call(positions.rotary, x, np.ones(shape))
    with pytest.raises(ValueError, match=r"positions: got shape \(4,\), expected \(n,\) for x of"):
        backend.call(positions.rotary, np.ones(4), np.arange(4))
    for base in (0, -1.0, math.inf, None, "2"):
        with pytest.raises(ValueError, match=f"base: got {base!r}, expected a number above 0"):
            positions.rotary(array(x), array(np.arange(7)), base)
    with pytest.raises(ValueError, match=r"x: got dtype .*int64, expected a floating one"):
        backend.call(positions.rotary, np.ones((7, 4), int), np.arange(7))
    for wrong in (np.ones(7, complex), np.ones(7, bool)):
        with pytest.raises(ValueError, match=r"positions: got dtype .*(complex128|bool), expected"):
            backend.call(positions.rotary, x, wrong)
    with pytest.raises(TypeError, match="positions: got a list, expected a NumPy, PyTorch or JAX"):
        positions.rotary(array(x), list(range(7)))
    with pytest.raises(TypeError, match="x: got a list, expected a NumPy, PyTorch or JAX"):
        positions.rotary(x.tolist(), array(np.arange(7)))
    if backend.name != "numpy":
        message = r"x, positions: got arrays of .*, expected one library"
        with pytest.raises(TypeError, match=message):
            positions.rotary(array(x), np.arange(7))


EIGHT = [2**-h for h in range(1, 9)]
SLOPES = {
    1: [1 / 256],
    2: [1 / 16, 1 / 256],
    3: [1 / 16, 1 / 256, 1 / 4],
    8: EIGHT,
    12: [*EIGHT, 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5],
    16: [2 ** (-h / 2) for h in range(1, 17)],
}


@pytest.mark.parametrize("num_heads", SLOPES)
def test_alibi_known_slopes(num_heads):
    """Those of Press et al.'s paper for powers of two, of their code for 3 and 12."""
    out = positions.alibi(num_heads, 7)
    assert out.shape == (num_heads, 7, 7)
    assert out.dtype == np.float64
    for h, i, j in np.ndindex(out.shape):
        distance = i - j if i > j else j - i
        assert out[h, i, j] == pytest.approx(-SLOPES[num_heads][h] * distance, rel=1e-14)


@pytest.mark.parametrize("num_heads", [5, 6, 7, 13, 17])
def test_alibi_every_head_has_its_own_slope(num_heads):
    """Between those of the power above, all different, and at most 1."""
    slopes = -positions.alibi(num_heads, 2)[:, 0, 1]
    assert len(np.unique(slopes)) == num_heads
    power = 2 ** math.floor(math.log2(num_heads))
    np.testing.assert_allclose(slopes[:power], -positions.alibi(power, 2)[:, 0, 1], rtol=1e-14)
    above = -positions.alibi(2 * power, 2)[:, 0, 1]
    assert all(np.isclose(above, slope, rtol=1e-12).any() for slope in slopes)


def test_alibi_as_a_bias(backend):
    """Keys all alike: the weight falls by e^(−slope) with every step away from the query."""
    bias = positions.alibi(8, 7)

    def run(x, bias):
        def score(q, k):
            return scores.scaled_dot(q, k) + bias

        return attend(x, x, x, score=score, return_weights=True)[1]

    weights = backend.call(run, np.ones((8, 7, 2)), bias)
    for h, slope in enumerate(SLOPES[8]):
        expected = [[math.exp(-slope * abs(i - j)) for j in range(7)] for i in range(7)]
        np.testing.assert_allclose(weights[h] / np.diagonal(weights[h])[:, None], expected)


@pytest.mark.parametrize("wrong", [-1, 2.5, None])
def test_numbers_of_positions_and_heads(wrong):
    assert positions.alibi(3, 0).shape == (3, 0, 0)
    for function in (lambda: positions.sinusoidal(wrong, 4), lambda: positions.alibi(3, wrong)):
        with pytest.raises(ValueError, match=f"n: got {wrong}, expected an integer, 0 or more"):
            function()
    for heads in (0, wrong):
        message = f"num_heads: got {heads}, expected an integer, 1 or more"
        with pytest.raises(ValueError, match=message):
            positions.alibi(heads, 3)
