"""The contract and the fast paths on a GPU, against NumPy on the CPU.

Tolerances: float64 1e-10 as on the CPU; float32 1e-5 with full-precision products (no TF32), and
2e-4 where the fused kernel expands the square (reach² × eps, and sums in another order).
"""

import numpy as np
import pytest
from contracts.table import ROWS

from attnbook import attend, devices, leave_one_out, nadaraya_watson
from attnbook.kernel import chunked

pytestmark = pytest.mark.gpu
TOLERANCE = {"float64": 1e-10, "float32": 1e-5}
FUSED = 2e-4


class TorchGpu:
    torch = True

    def __init__(self):
        torch = pytest.importorskip("torch")
        self.xp, self.device = torch, devices.torch_device()
        if self.device.type == "cpu":
            pytest.skip("torch sees neither CUDA nor Apple's GPU")
        self.dtypes = ["float32"] if self.device.type == "mps" else ["float32", "float64"]
        torch.set_float32_matmul_precision("highest")

    def array(self, a):
        return self.xp.from_numpy(np.array(a)).to(self.device)

    def numpy(self, a):
        assert a.device.type == self.device.type, "the result left the GPU"
        return a.detach().cpu().numpy()

    def gradient(self, loss, *args):
        leaves = [self.array(a).requires_grad_() for a in args]
        return [self.numpy(g) for g in self.xp.autograd.grad(loss(*leaves), leaves)]


class JaxGpu:
    torch = False
    dtypes = ("float32", "float64")

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


def needs(gpu, dtype):
    """Apple's GPU has no float64."""
    if dtype not in gpu.dtypes:
        pytest.skip(f"{gpu.device.type} has no {dtype}")


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if "torch" in row.libraries])
def test_forward(gpu, name, dtype):
    needs(gpu, dtype)
    row = ROWS[name]
    arrays = {n: a.astype(dtype) if a.dtype == float else a for n, a in row.arrays().items()}
    found = row.call(**{n: gpu.array(a) for n, a in arrays.items()}, **row.fixed)
    wide = {n: a.astype("float64") if a.dtype == dtype else a for n, a in arrays.items()}
    expected = row.oracle(**wide)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for ours, right in pairs:
        out = gpu.numpy(ours)
        assert out.dtype == (bool if np.asarray(right).dtype == bool else dtype)
        size = max(1.0, np.max(np.abs(right), where=np.isfinite(right), initial=0.0))
        np.testing.assert_allclose(out, right, rtol=0, atol=TOLERANCE[dtype] * size)


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


def test_gradients(gpu, rng, monkeypatch):
    """In every argument, through blocks, against finite differences of the float64 loss on the CPU."""
    needs(gpu, "float64")
    monkeypatch.setattr(chunked, "CHUNK_BYTES", 2**12)
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


HALF = {"float32": FUSED, "float16": 4e-3, "bfloat16": 3e-2}  # about 4 × eps of the rounded inputs


def attention_sample(gpu, rng, dtype):
    """Queries, keys and values in a dtype on the GPU, and what they are in float64 on the CPU."""
    shapes = (5, 131, 13), (5, 257, 13), (257, 29)
    arrays = [gpu.array(rng.normal(size=shape).astype("float32")) for shape in shapes]
    on_gpu = [a.to(getattr(gpu.xp, dtype)) if gpu.torch else a.astype(dtype) for a in arrays]
    return on_gpu, [wide(gpu, a) for a in on_gpu]


def wide(gpu, a):
    return gpu.numpy(a.float() if gpu.torch else a.astype("float32")).astype("float64")


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", HALF)
def test_attend(gpu, rng, dtype, masked):
    """torch's fused kernel and JAX's compiled formula: half precision is kept, an empty row is 0."""
    arrays, exact = attention_sample(gpu, rng, dtype)
    mask = rng.random((5, 131, 257)) < 0.3 if masked else None
    if masked:
        mask[:, 7] = False
    out = attend(*arrays, mask=None if mask is None else gpu.array(mask))
    assert str(out.dtype).endswith(dtype)
    expected = attend(*exact, mask=mask)
    np.testing.assert_allclose(wide(gpu, out), expected, rtol=HALF[dtype], atol=HALF[dtype])
    if masked:
        assert not wide(gpu, out)[:, 7].any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_attend_does_not_overflow(gpu, dtype):
    """300 · 300 is beyond float16, with as many keys as the fused kernel wants."""
    keys = np.where(np.arange(5003) == 11, 300.0, 200.0)[:, None]
    q, k, v = (gpu.array(a.astype("float32")) for a in (np.full((3, 1), 300.0), keys, keys / 100))
    q, k, v = (a.to(getattr(gpu.xp, dtype)) if gpu.torch else a.astype(dtype) for a in (q, k, v))
    np.testing.assert_array_equal(wide(gpu, attend(q, k, v)), np.full((3, 1), 3.0))


def test_gradients_of_attend(gpu, rng):
    """float32, in every argument, against float64 on the CPU: first and, in torch, second."""
    arrays, exact = attention_sample(gpu, rng, "float32")
    arrays = [gpu.numpy(a) for a in arrays]

    def loss(q, k, v):
        return (attend(q, k, v) ** 2).sum()

    torch = pytest.importorskip("torch")
    leaves = [torch.from_numpy(a).requires_grad_() for a in exact]
    expected = torch.autograd.grad(loss(*leaves), leaves)
    for ours, right in zip(gpu.gradient(loss, *arrays), expected, strict=True):
        scale = right.abs().max().item()
        np.testing.assert_allclose(ours, right.numpy(), rtol=1e-3, atol=1e-4 * scale)
