"""The kernel in Pallas, in its interpreter, and lowered for a GPU and a TPU, which is no run."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from kernel_cases import CASES, HALF, arrays, assert_within_rounding, bounds, expected

from attnbook.jax.pallas_flash import flash

PATTERNS = [(case, False) for case in CASES if case != "two whole blocks"]
PATTERNS += [("broken blocks", True), ("two whole blocks", True)]


@pytest.mark.parametrize(("case", "causal"), PATTERNS)
def test_averages_and_log_sum_exps(case, causal):
    given = arrays(case)
    found = flash(*map(jnp.asarray, given), causal=causal)
    assert {a.dtype for a in found} == {jnp.dtype("float32")}
    assert_within_rounding(found, *given, causal)


@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_with_sums_in_single(dtype):
    given = [jnp.asarray(a).astype(dtype) for a in arrays("other lengths")]
    output, logs = flash(*given)
    assert output.dtype == dtype and logs.dtype == jnp.float32
    given = [np.asarray(a.astype("float32")) for a in given]
    (right, right_logs), (_, bound) = expected(*given), bounds(*given)
    np.testing.assert_allclose(np.asarray(output, "float64"), right, atol=HALF[dtype])
    assert (np.abs(np.asarray(logs) - right_logs) <= bound).all()


def test_keys_shared_by_heads_broadcast():
    q, k, v = arrays("other lengths")
    found = flash(jnp.asarray(q), jnp.asarray(k[0]), jnp.asarray(v[0]))
    assert_within_rounding(found, q, k[0], v[0])


def test_no_keys_and_no_queries():
    q = jnp.ones((2, 3, 4), dtype=jnp.float32)
    output, logs = flash(q, q[:, :0], q[:, :0])
    assert output.shape == (2, 3, 4) and not output.any()
    assert logs.shape == (2, 3) and bool((logs == -jnp.inf).all())
    output, logs = flash(q[:, :0], q, q)
    assert output.shape == (2, 0, 4) and logs.shape == (2, 0)


@pytest.mark.parametrize(
    ("platform", "causal"), [("cuda", False), ("cuda", True), ("rocm", True), ("tpu", True)]
)
def test_is_lowered_for_a_device_that_is_not_here(platform, causal):
    """What Pallas can refuse before a device compiles it: tiles, transposes, products of a dtype."""
    unsafe = [export.DisabledSafetyCheck.custom_call("__gpu$xla.gpu.triton")]
    q = jax.ShapeDtypeStruct((2, 200, 20), "bfloat16")
    run = jax.jit(functools.partial(flash, causal=causal))
    lowered = export.export(run, platforms=[platform], disabled_checks=unsafe)(q, q, q)
    kernel = "tpu_custom_call" if platform == "tpu" else "xla.gpu.triton"
    assert kernel in lowered.mlir_module()


GOOD = np.ones((5, 4), "float32")
GOOD_JAX = jnp.ones((5, 4), "float32")
REFUSED = {
    "half the keys": ((GOOD, GOOD, GOOD[:3]), {}, ValueError, "v: got 3 rows, expected 5"),
    "too wide": ((np.ones((5, 300), "f4"),) * 2 + (GOOD,), {}, ValueError, "q: got width 300"),
    "causal": ((GOOD[:3], GOOD, GOOD), {"causal": True}, ValueError, "causal: got 3 queries"),
    "integers": ((GOOD.astype("i4"),) * 3, {}, ValueError, "q: got dtype int32"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case):
    given, how, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        flash(*map(jnp.asarray, given), **how)


def test_refuses_other_libraries_and_double_precision():
    with pytest.raises(TypeError, match="q: got a ndarray, expected a JAX array"):
        flash(GOOD, GOOD, GOOD)
    with jax.enable_x64(True):
        double = jnp.ones((5, 4), "float64")
        with pytest.raises(ValueError, match="q: got dtype float64, expected float32"):
            flash(double, double, double)


def test_refuses_a_gradient():
    with pytest.raises(ValueError, match="one wants a gradient, which this kernel has not"):
        jax.grad(lambda q: flash(q, GOOD_JAX, GOOD_JAX)[0].sum())(GOOD_JAX)
