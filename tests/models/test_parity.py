"""NumPy, torch and JAX agree, forward and backward, for every public name: no name without a case."""

import inspect

import backends
import numpy as np
import pytest
from parity_cases import CASES

import attnbook
from attnbook import kernels, scores
from attnbook.attention import distances, heads, positions
from attnbook.layers import activations, mlp, norms
from attnbook.models import blocks

SIZES_IN = {"heads.head_shape", "heads.rotary_base_or_none"}
NUMBERS_IN = {"positions.alibi", "positions.sinusoidal"}  # and NumPy's arrays out


def public_names():
    modules = (activations, blocks, distances, heads, kernels, mlp, norms, positions, scores)
    return {n for n in attnbook.__all__ if not inspect.ismodule(getattr(attnbook, n))} | {
        f"{module.__name__.split('.')[-1]}.{n}"
        for module in modules
        for n, f in inspect.getmembers(module, inspect.isfunction)
        if f.__module__ == module.__name__ and not n.startswith(("_", "unchecked_", "call_"))
    }


def test_every_public_name_has_a_case():
    assert {case.split(",")[0] for case in CASES} == public_names() - NUMBERS_IN - SIZES_IN


@pytest.mark.parametrize("case", CASES)
def test_forward(backend, case):
    """The libraries against NumPy: 1e-10 in float64, 1e-5 in float32."""
    function, *arrays = CASES[case]
    expected = function(*arrays)  # on NumPy itself only the single-precision part says something
    out = backend.call(function, *arrays)
    assert out.dtype == expected.dtype
    np.testing.assert_allclose(out, expected, rtol=1e-10, atol=1e-10)
    single = [a.astype(np.float32) for a in arrays]
    out = backend.call(function, *single)
    assert out.dtype == (bool if expected.dtype == bool else np.float32)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", [c for c in CASES if "mask" not in c.split(",")[0]])
def test_gradients(case):
    """torch and JAX under jit: 1e-9 in float64, in every argument, the bandwidth too."""
    function, *arrays = CASES[case]
    weights = np.random.default_rng(3).normal(size=function(*arrays).shape)
    grads = []
    for name in ("torch", "jax-jit"):
        backend = backends.load_or_skip(name)
        cotangent = backend.array(weights)

        def loss(*args, cotangent=cotangent):
            return (function(*args) * cotangent).sum()

        grads.append(backend.gradient(loss, *arrays))
    for a, b, array in zip(*grads, arrays, strict=True):
        assert a.shape == array.shape
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    assert any(np.any(g != 0) for g in grads[0]) or "boxcar" in case
