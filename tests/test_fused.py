"""PyTorch's fused kernel gives what the plain path gives, and is taken only where that is so."""

import numpy as np
import pytest
import reference

from attnbook import fused_gaussian, kernels, nadaraya_watson, streaming

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch):
    monkeypatch.setattr(streaming, "BLOCK_BYTES", 1)


@pytest.fixture
def calls(monkeypatch):
    """How often the fused kernel was called."""
    noted = []
    kernel = torch.nn.functional.scaled_dot_product_attention

    def noting(*args, **kwargs):
        noted.append(args[0].shape)
        return kernel(*args, **kwargs)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", noting)
    return noted


def tensors(rng, *shapes, dtype=torch.float64):
    return [torch.from_numpy(rng.normal(size=shape)).to(dtype) for shape in shapes]


SHAPES = {
    "one column": ((3, 1), (7, 1), (7, 1)),
    "values wider than keys": ((3, 2), (7, 2), (7, 19)),
    "keys wider than values": ((3, 17), (7, 17), (7, 2)),
    "as wide as the padding": ((3, 15), (7, 15), (7, 16)),
    "leading axes": ((11, 1, 3, 2), (13, 7, 2), (7, 5)),
    "leading axes of values": ((3, 2), (7, 2), (11, 7, 5)),
}


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("far", [0.0, 1000.0])
def test_equals_the_loop(rng, calls, shapes, far):
    """Also a thousand bandwidths from the origin: the data are centred first."""
    q, k, v = tensors(rng, *shapes)
    q, k = q + far, k + far
    out = nadaraya_watson(q, k, v, bandwidth=0.9)
    assert len(calls) == 1
    expected, _ = reference.nadaraya_watson(q.numpy(), k.numpy(), v.numpy(), bandwidth=0.9)
    assert out.shape == expected.shape
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-10 if far else 1e-12)


@pytest.mark.parametrize("bandwidth", [0.9, [0.6, 1.9], torch.tensor([0.6, 1.9]), torch.tensor(1)])
def test_every_kind_of_bandwidth(rng, calls, bandwidth):
    q, k, v = tensors(rng, (3, 2), (7, 2), (7, 5))
    out = nadaraya_watson(q, k, v, bandwidth=bandwidth)
    assert len(calls) == 1
    h = np.asarray(bandwidth, dtype=float)
    expected, _ = reference.nadaraya_watson(q.numpy(), k.numpy(), v.numpy(), bandwidth=h)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)  # 0.6 was float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_keeps_the_dtype(rng, calls, dtype):
    q, k, v = tensors(rng, (3, 2), (7, 2), (7, 5), dtype=dtype)
    out = nadaraya_watson(q, k, v)
    assert calls
    assert out.dtype == dtype
    expected, _ = reference.nadaraya_watson(*(a.double().numpy() for a in (q, k, v)))
    tolerance = max(1e-5, 2 * torch.finfo(dtype).eps)
    np.testing.assert_allclose(out.double().numpy(), expected, rtol=tolerance, atol=tolerance)


def test_float32_error_at_the_edge_of_reach(rng, calls):
    """The expanded square cancels; within REACH bandwidths the error stays below 1e-4."""
    q = torch.linspace(-1, 1, 101)[:, None]
    k, v = torch.linspace(-1, 1, 211)[:, None], torch.from_numpy(rng.normal(size=(211, 1))).float()
    h = 1.0001 / fused_gaussian.REACH
    out = nadaraya_watson(q, k, v, bandwidth=h)
    assert calls
    exact = nadaraya_watson(q.double(), k.double(), v.double(), bandwidth=h, return_weights=True)[0]
    assert (out.double() - exact).abs().max() < 1e-4


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("which", ["a query", "a key"])
def test_beyond_reach_the_way_is_closed(calls, inside, which):
    """Keys centred at 0; one point at REACH bandwidths, just within or just beyond."""
    edge = 2 * (fused_gaussian.REACH - 0.001 if inside else fused_gaussian.REACH + 0.001)
    points = [[-edge], [edge]] if which == "a key" else [[-2.0], [2.0]]
    k = torch.tensor(points, dtype=torch.float64)
    q = torch.tensor([[edge], [0.0], [1.0]] if which == "a query" else [[0.0], [1.0], [2.0]])
    q = q.to(torch.float64)
    v = torch.tensor([[3.0], [5.0]], dtype=torch.float64)
    out = nadaraya_watson(q, k, v, bandwidth=2.0)
    assert len(calls) == (1 if inside else 0)
    expected, _ = reference.nadaraya_watson(q.numpy(), k.numpy(), v.numpy(), bandwidth=2.0)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12)


def test_far_query_gives_the_nearest_value(calls):
    q = torch.tensor([[1e6], [-1e6], [0.5]])
    k, v = torch.tensor([[0.0], [1.0]]), torch.tensor([[3.0], [5.0]])
    out = nadaraya_watson(q, k, v, bandwidth=0.1)
    assert not calls
    np.testing.assert_array_equal(out.numpy(), [[5], [3], [4]])


def test_closed_for_small_masked_wide_other_kernels_and_gradients(rng, calls, monkeypatch):
    q, k, v = tensors(rng, (3, 2), (7, 2), (7, 5))
    nadaraya_watson(q, k, v, mask=torch.ones(7, dtype=torch.bool))
    nadaraya_watson(q, k, v, kernel=kernels.boxcar, bandwidth=9.0)
    nadaraya_watson(q, k, v, return_weights=True)
    nadaraya_watson(q, k, torch.zeros(7, 4 * fused_gaussian.WIDTH + 1, dtype=torch.float64))
    nadaraya_watson(q, k, v, bandwidth=torch.tensor(1.0, requires_grad=True))
    nadaraya_watson(q, k.clone().requires_grad_(), v)
    nadaraya_watson(q[:0], k, v)
    nadaraya_watson(q.expand(0, -1, -1), k, v)
    assert not calls
    with torch.no_grad():
        nadaraya_watson(q, k.clone().requires_grad_(), v)
    assert len(calls) == 1
    monkeypatch.setattr(streaming, "BLOCK_BYTES", 3 * 7 * 8)
    nadaraya_watson(q, k, v)
    assert len(calls) == 1
