"""The activations: answers by hand, loops, slopes, and numbers far out."""

import math

import backends
import numpy as np
import pytest
import reference_blocks

from attnbook.layers import activations

LOOPS = {n: getattr(reference_blocks, n) for n in ("relu", "gelu", "gelu_tanh", "silu")}
every = pytest.mark.parametrize("name", LOOPS)
ROOT, LOG3 = math.sqrt(2), math.log(3)
BY_HAND = {  # x, and f(x): Φ(1) = 0.8413…, σ(ln 3) = 3/4
    "relu": ([-2.0, -0.5, 0.0, 0.5, 3.0], [0.0, 0.0, 0.0, 0.5, 3.0]),
    "gelu": ([-1.0, 0.0, 1.0], [-0.15865525393145707, 0.0, 0.8413447460685429]),
    "gelu, far": ([2.0], [2 * 0.9772498680518208]),
    "gelu_tanh": ([-1.0, 0.0, 1.0], [-0.15880800939172324, 0.0, 0.8411919906082768]),
    "gelu_tanh, far": ([2.0], [1.954597694087775]),
    "silu": ([-LOG3, 0.0, LOG3, 2 * LOG3], [-LOG3 / 4, 0.0, 0.75 * LOG3, 1.8 * LOG3]),
}


def slope(name, x):
    """By hand: 1 above 0; Φ + x φ; σ(2a) + 2 x a' σ (1 − σ); σ + x σ (1 − σ)."""
    if name == "relu":
        return float(x > 0)
    if name == "gelu":
        return math.erfc(-x / ROOT) / 2 + x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    if name == "gelu_tanh":
        root = math.sqrt(8 / math.pi)
        share = 1 / (1 + math.exp(-root * (x + 0.044715 * x**3)))
        return share + x * root * (1 + 3 * 0.044715 * x * x) * share * (1 - share)
    share = 1 / (1 + math.exp(-x))
    return share + x * share * (1 - share)


@pytest.mark.parametrize("case", BY_HAND)
def test_by_hand(backend, case):
    x, expected = map(np.array, BY_HAND[case])
    out = backend.call(getattr(activations, case.split(",")[0]), x)
    np.testing.assert_allclose(out, expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("shape", [(0,), (7,), (2, 3, 5)])
@every
def test_equals_the_loop(backend, rng, name, shape):
    x = 3 * rng.normal(size=shape)
    out = backend.call(getattr(activations, name), x)
    assert out.shape == shape
    assert out.dtype == np.float64
    expected = np.array([LOOPS[name](a) for a in x.ravel()]).reshape(shape)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-14)


@every
def test_far_from_0_it_is_the_line_or_0(backend, name):
    x = np.array([-1e300, -1e4, -50.0, 50.0, 1e4, 1e300])
    out = backend.call(getattr(activations, name), x)
    np.testing.assert_array_equal(out, np.maximum(x, 0))


@every
def test_what_is_no_number_stays_none(backend, name):
    out = backend.call(getattr(activations, name), np.array([math.nan, 1.0]))
    assert math.isnan(out[0]) and not math.isnan(out[1])


@every
def test_both_sides_make_the_line(backend, rng, name):
    """f(x) − f(−x) = x: of all kinds, each is x times a share and its complement."""
    x = np.concatenate([3 * rng.normal(size=101), [1e-300, 1e-9]])
    right, left = (backend.call(getattr(activations, name), a) for a in (x, -x))
    np.testing.assert_allclose(right - left, x, rtol=1e-14, atol=1e-14)


@every
def test_slopes(differentiable, rng, name):
    x = np.append(2 * rng.normal(size=101), 0.0)
    (gradient,) = differentiable.gradient(lambda x: getattr(activations, name)(x).sum(), x)
    np.testing.assert_allclose(gradient, [slope(name, a) for a in x], rtol=0, atol=1e-13)


@every
def test_keeps_its_precision(backend, name):
    """As near to the exact numbers as the dtype lets it: 2 units of the place of the largest."""
    x = np.linspace(-8, 8, 1001)
    for dtype in ("float32", *backend.half):
        given = backend.cast(backend.array(x), dtype)
        out = getattr(activations, name)(given)
        assert backend.dtype(out) == dtype
        out, exact = (backend.numpy(backend.cast(a, "float64")) for a in (out, given))
        unit = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
        expected = np.array([LOOPS[name](a) for a in exact])
        room = 0 if name == "relu" else 8 * 2 * unit
        np.testing.assert_allclose(out, expected, rtol=0, atol=room)
        assert np.abs(out - expected)[np.abs(x) < 1].max() < 2 * unit


@every
def test_equals_torch_and_jax(rng, name):
    """Each in its own library; gelu and its approximation are different functions."""
    x = 3 * rng.normal(size=(7, 11))
    for library in {"torch", "jax"} & set(backends.chosen()):
        made = pytest.importorskip(library) and backends.load(library)
        theirs = made.xp.nn.functional if library == "torch" else made.jax.nn
        exact, approximate = ("none", "tanh") if library == "torch" else (False, True)
        ways = {"gelu": {"approximate": exact}, "gelu_tanh": {"approximate": approximate}}
        how = ways.get(name, {})
        out = getattr(activations, name)(made.array(x))
        expected = getattr(theirs, name.removesuffix("_tanh"))(made.array(x), **how)
        np.testing.assert_allclose(made.numpy(out), made.numpy(expected), rtol=0, atol=1e-14)
        if how:
            other = activations.gelu if name == "gelu_tanh" else activations.gelu_tanh
            assert 1e-4 < np.abs(made.numpy(other(made.array(x)) - out)).max() < 5e-4


@every
def test_bad_input(backend, name):
    function = getattr(activations, name)
    with pytest.raises(ValueError, match=r"x: got dtype .*int64, expected a floating one"):
        backend.call(function, np.arange(3))
    with pytest.raises(ValueError, match=r"x: got dtype .*bool, expected a floating one"):
        backend.call(function, np.ones(3, bool))
    for stranger in ([1.0, 2.0], 3.0, None):
        kind = type(stranger).__name__
        with pytest.raises(TypeError, match=f"x: got a {kind}, expected a NumPy, PyTorch or JAX"):
            function(stranger)


def test_sigmoid_equals_scipys(backend, rng):
    """From 0 to 1, and at most 1 far out, where exp(−x) overflows."""
    special = pytest.importorskip("scipy.special")
    x = np.concatenate([3 * rng.normal(size=11), [-1e4, -50.0, 0.0, 50.0, 1e4]])
    out = backend.call(activations.sigmoid, x)
    np.testing.assert_allclose(out, special.expit(x), rtol=1e-9, atol=1e-15)
