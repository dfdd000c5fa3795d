"""Positions: sines and cosines, turned pairs, and biases that grow with the distance."""

import math

import backends
import numpy as np
import pytest
from array_api_compat import array_namespace

from attnbook import scores
from attnbook.attention import positions

BACKENDS = ("numpy", "torch", "jax-jit")


def theta(i, d):
    return 1 / 10_000 ** (2 * i / d)


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


@pytest.mark.parametrize(
    ("dtype", "near", "far"), [("float32", 2e-5, 1e-2), ("bfloat16", 8e-3, 2e-2)]
)
def test_far_positions_have_angles_in_float32_at_least(rng, dtype, near, far):
    """Half precision would not hold them at all; the angle 60 001 is off by 60 001 · 2⁻²⁴."""
    backend = backends.load_or_skip("torch")
    x, place = rng.uniform(-1, 1, size=(7, 6)), np.array([0, 1, 255, 2049, 4097, 9999, 60_001])
    given = backend.cast(backend.array(x), dtype)
    out = positions.rotary(given, backend.array(place))
    exact = positions.rotary(backend.numpy(backend.cast(given, "float64")), place)
    error = np.abs(backend.numpy(backend.cast(out, "float64")) - exact)
    assert error[:3].max() < near
    assert error.max() < far


EIGHT = [2**-h for h in range(1, 9)]
SLOPES = {
    1: [1 / 256],
    3: [1 / 16, 1 / 256, 1 / 4],
    8: EIGHT,
    12: [*EIGHT, 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5],
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
