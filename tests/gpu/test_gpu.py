"""The parity cases and the fast paths on a GPU, against NumPy on the CPU.

Tolerances: float64 1e-10 as on the CPU; float32 1e-5 with full-precision products (no TF32), and
2e-4 where the fused kernel expands the square (REACH² × eps, and sums in another order).
"""

import numpy as np
import pytest
from test_parity import CASES

from attnbook import devices, kernels, leave_one_out, nadaraya_watson, streaming

pytestmark = pytest.mark.gpu
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
FUSED = 2e-4


class TorchGpu:
    def __init__(self):
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("torch sees no CUDA device")
        torch.set_float32_matmul_precision("highest")
        self.xp, self.device = torch, devices.torch_device()

    def array(self, a):
        return self.xp.from_numpy(np.array(a)).to(self.device)

    def numpy(self, a):
        assert a.device.type == self.device.type, "the result left the GPU"
        return a.detach().cpu().numpy()

    def gradient(self, loss, *args):
        leaves = [self.array(a).requires_grad_() for a in args]
        return [self.numpy(g) for g in self.xp.autograd.grad(loss(*leaves), leaves)]


class JaxGpu:
    def __init__(self):
        jax = pytest.importorskip("jax")
        if devices.jax_device().platform == "cpu":
            pytest.skip("JAX sees no GPU")
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_default_matmul_precision", "highest")
        self.jax, self.xp, self.device = jax, jax.numpy, devices.jax_device()

    def array(self, a):
        return self.jax.device_put(np.array(a), self.device)

    def numpy(self, a):
        assert a.devices() == {self.device}, "the result left the GPU"
        return np.asarray(a)

    def gradient(self, loss, *args):
        grad = self.jax.jit(self.jax.grad(loss, argnums=tuple(range(len(args)))))
        return [self.numpy(g) for g in grad(*map(self.array, args))]


@pytest.fixture(scope="module", params=[TorchGpu, JaxGpu], ids=["torch", "jax"])
def gpu(request):
    return request.param()


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES)
def test_forward(gpu, case, dtype):
    function, *arrays = CASES[case]
    arrays = [a.astype(dtype) for a in arrays]
    out = gpu.numpy(function(*map(gpu.array, arrays)))
    expected = function(*(a.astype("float64") for a in arrays))
    assert out.dtype == (bool if expected.dtype == bool else dtype)
    np.testing.assert_allclose(out, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def large(rng, d=2):
    return [
        rng.uniform(-3, 3, size=shape).astype("float32")
        for shape in ((2003, d), (1009, d), (1009, 3))
    ]


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("bandwidth", [0.5, 0.05])
def test_large_predictions(gpu, rng, d, bandwidth):
    """Several blocks; with h = 0.5 torch's fused kernel, with h = 0.05 the data are out of its reach."""
    q, k, v = large(rng, d)
    out = gpu.numpy(nadaraya_watson(*map(gpu.array, (q, k, v)), bandwidth=bandwidth))
    expected = nadaraya_watson(*(a.astype("float64") for a in (q, k, v)), bandwidth=bandwidth)
    np.testing.assert_allclose(out, expected, rtol=FUSED, atol=FUSED)


def test_blocks_equal_one_block(gpu, rng, monkeypatch):
    _, k, v = large(rng)
    for kernel in (kernels.gaussian, kernels.epanechnikov):
        outs = []
        for size in (2**40, 2**16):
            monkeypatch.setattr(streaming, "BLOCK_BYTES", size)
            arrays = map(gpu.array, (k, v))
            outs.append(gpu.numpy(leave_one_out(*arrays, kernel=kernel, bandwidth=0.7)))
        np.testing.assert_allclose(outs[0], outs[1], rtol=1e-5, atol=1e-5)


def test_gradients(gpu, rng, monkeypatch):
    """In every argument, through blocks, against finite differences of the float64 loss on the CPU."""
    monkeypatch.setattr(streaming, "BLOCK_BYTES", 2**12)
    k, v = (a[:101].astype("float64") for a in large(rng)[1:])
    h = np.array([0.7, 1.3])

    def loss(k, v, h):
        return (leave_one_out(k, v, bandwidth=h) ** 2).sum()

    grads = gpu.gradient(loss, k, v, h)
    for i, grad in enumerate(grads):
        direction = rng.normal(size=grad.shape)
        step = 1e-5
        ahead, behind = [k, v, h], [k, v, h]
        ahead[i], behind[i] = ahead[i] + step * direction, behind[i] - step * direction
        slope = (loss(*ahead) - loss(*behind)) / (2 * step)
        np.testing.assert_allclose((grad * direction).sum(), slope, rtol=1e-6)
