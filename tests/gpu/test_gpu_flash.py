"""Attention in blocks on a GPU: our own, the kernels in Triton and in Pallas, the fused one."""

import numpy as np
import pytest
from kernel_cases import HALF, PATTERNS, arrays, expected

from attnbook import devices
from attnbook.exact import flash

pytestmark = pytest.mark.gpu
TOLERANCE = HALF | {"float32": 2e-5}


@pytest.fixture(scope="module")
def torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    torch.set_float32_matmul_precision("highest")
    return torch


@pytest.fixture(scope="module")
def jax():
    jax = pytest.importorskip("jax")
    if devices.jax_device().platform == "cpu":
        pytest.skip("JAX sees no GPU")
    jax.config.update("jax_default_matmul_precision", "highest")
    return jax


def close(found, right, dtype):
    for ours, exact in zip(found, right, strict=True):
        np.testing.assert_allclose(ours, exact, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def tensors(torch, case, dtype):
    """q, k and v on the GPU, and what they are on the CPU."""
    found = [torch.from_numpy(a).to("cuda", getattr(torch, dtype)) for a in arrays(case)]
    return found, [a.float().cpu().numpy() for a in found]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("case", "causal"), PATTERNS)
def test_triton(torch, case, causal, dtype):
    pytest.importorskip("triton")
    from attnbook.torch import triton_flash

    given, exact = tensors(torch, case, dtype)
    output, logs = triton_flash.flash(*given, causal=causal)
    assert output.is_cuda and output.dtype == given[2].dtype and logs.dtype == torch.float32
    right, right_logs = expected(*exact, causal)
    close([output.float().cpu()], [right], dtype)
    close([logs.cpu()], [right_logs], "float32")


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("causal", [False, True])
def test_ours_and_the_fused_kernel(torch, causal, dtype):
    given, exact = tensors(torch, "broken blocks", dtype)
    right = expected(*exact, causal)
    output, logs = flash.forward(*given, block=64, causal=causal)
    assert output.is_cuda and output.dtype == given[0].dtype
    close([output.float().cpu(), logs.cpu()], right, dtype)
    fused = torch.nn.functional.scaled_dot_product_attention(*given, is_causal=causal)
    close([fused.float().cpu()], right[:1], dtype)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_from_what_triton_gave(torch, causal):
    """The way back takes the kernel's outputs, and agrees with PyTorch's own in float64."""
    pytest.importorskip("triton")
    from attnbook.torch import triton_flash

    given, exact = tensors(torch, "two whole blocks", "float32")
    g = torch.ones_like(given[2])
    found = flash.backward(
        g, *given, *triton_flash.flash(*given, causal=causal), block=64, causal=causal
    )
    leaves = [torch.from_numpy(a).double().requires_grad_() for a in exact]
    torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal).sum().backward()
    for ours, leaf in zip(found, leaves, strict=True):
        scale = leaf.grad.abs().max().item()
        np.testing.assert_allclose(ours.cpu(), leaf.grad, rtol=1e-4, atol=1e-4 * scale)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("case", "causal"), PATTERNS)
def test_pallas(jax, case, causal, dtype):
    from attnbook.jax import pallas_flash

    given = [jax.device_put(a).astype(dtype) for a in arrays(case)]
    output, logs = pallas_flash.flash(*given, causal=causal)
    assert output.devices() == {devices.jax_device()} and output.dtype == dtype
    right, right_logs = expected(*(np.asarray(a.astype("float32")) for a in given), causal)
    close([np.asarray(output.astype("float32"))], [right], dtype)
    close([logs], [right_logs], "float32")
