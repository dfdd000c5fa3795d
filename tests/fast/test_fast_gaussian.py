"""PyTorch's fused kernel gives what the plain path gives, and is taken only where that is so."""

import numpy as np
import pytest
import reference
from fused_calls import noted

from attnbook import kernels, nadaraya_watson
from attnbook._fast import chunked, gaussian

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch):
    monkeypatch.setattr(chunked, "CHUNK_BYTES", 1)


@pytest.fixture
def calls(monkeypatch):
    """Each call of the fused kernel: the dtype, how many queries and how many keys."""
    return noted(monkeypatch, lambda q, k, *_, **how: (q.dtype, q.shape[-2], k.shape[-2]))


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


FLOAT32, FLOAT64 = torch.float32, torch.float64
NARROW, WIDE = (gaussian.max_radius(FLOAT32, dtype) for dtype in (FLOAT32, FLOAT64))
DOUBLE = gaussian.max_radius(FLOAT64, FLOAT64)


def test_reach_by_hand():
    """r² × eps is 2e-5 for data in float32, 1e-9 for data in float64; eps is 2^−23 and 2^−52."""
    np.testing.assert_allclose([NARROW, WIDE, DOUBLE], [12.95, 300_120, 2122.2], rtol=1e-3)


@pytest.mark.parametrize("d", [1, 2])
def test_float32_error_at_the_edge_of_reach(rng, calls, d):
    """The expanded square cancels; within reach the error stays below 1e-4."""
    q, k = torch.linspace(-1, 1, 101)[:, None], torch.linspace(-1, 1, 211)[:, None]
    q, k = (torch.cat([a, torch.zeros(len(a), d - 1)], dim=1) for a in (q, k))
    v = torch.from_numpy(rng.normal(size=(211, 1))).float()
    h = 1.0001 / NARROW
    out = nadaraya_watson(q, k, v, bandwidth=h)
    assert [dtype for dtype, *_ in calls] == [FLOAT32]
    exact = nadaraya_watson(q.double(), k.double(), v.double(), bandwidth=h, return_weights=True)[0]
    assert (out.double() - exact).abs().max() < 1e-4


EDGES = [  # the data's dtype, the edge, the dtype within it, and beyond it; None: blocks
    (FLOAT32, NARROW, FLOAT32, FLOAT64),
    (FLOAT32, WIDE, FLOAT64, None),
    (FLOAT64, DOUBLE, FLOAT64, None),
]


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("which", ["a query", "a key"])
@pytest.mark.parametrize(("dtype", "edge", "within", "beyond"), EDGES)
def test_the_way_at_an_edge_of_reach(calls, d, which, dtype, edge, within, beyond):
    """Keys centred at 0; one point just within or just beyond the edge."""
    for factor, way in ((0.9999, within), (1.0001, beyond)):
        calls.clear()
        far = 2.0 * edge * factor
        points = ([[far], [0.0], [1.0]], [[-2.0], [2.0]])
        if which == "a key":
            points = ([[0.0], [1.0], [2.0]], [[-far], [far]])
        q, k = (torch.tensor(a).to(dtype) @ torch.eye(1, d, dtype=dtype) for a in points)
        v = torch.tensor([[3.0], [5.0]], dtype=dtype)
        out = nadaraya_watson(q, k, v, bandwidth=2.0)
        if way != FLOAT64 or d > 1:  # on a line float32 does where float64 had to
            assert {noted for noted, *_ in calls} == ({way} if way else set())
        assert len(calls) == (1 if way else 0)
        assert out.dtype == dtype
        expected = exact(q, k, v, 2.0)
        error = gaussian.ERROR[dtype.itemsize]
        np.testing.assert_allclose(out.double().numpy(), expected, rtol=0, atol=4 * error)


def exact(q, k, v, h):
    """The estimator in extended precision, all weights at once."""
    q, k, v = (a.numpy().astype(np.longdouble) for a in (q, k, v))
    scores = -0.5 * (((q[:, None] - k) / np.longdouble(h)) ** 2).sum(-1)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return (weights @ v / weights.sum(1, keepdims=True)).astype(float)


@pytest.mark.parametrize("offset", [0.0, 1e3, -1e6])
@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
def test_every_bandwidth_and_any_origin(rng, monkeypatch, dtype, d, offset):
    """From 0.001 to 100 standard deviations, in several columns, and in several parts on a line.

    A score is a sum of d + 1 products: its error is at most (d + 4) × r² × eps, and a weight's
    share is off by twice that, of the distance between the least and the largest value.
    """
    monkeypatch.setattr(gaussian, "ROWS", 17)
    q, k, v = (a.to(dtype) for a in tensors(rng, (60, d), (300, d), (300, 3)))
    q[-1], k[-1] = 30.0, -40.0  # and two that are far from all others
    q, k = q + offset, k + offset
    tolerance = 2 * (d + 4) * gaussian.ERROR[dtype.itemsize] * float(v.max() - v.min())
    for h in np.geomspace(0.001, 100, 16):
        out = nadaraya_watson(q, k, v, bandwidth=float(h))
        assert out.dtype == dtype
        np.testing.assert_allclose(out.double().numpy(), exact(q, k, v, h), rtol=0, atol=tolerance)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
@pytest.mark.parametrize("h", [1e-3, 1e-5, 1e-9])
def test_the_nearest_key_wins_outright(rng, monkeypatch, dtype, d, h):
    """With a narrow bandwidth the answer is its value, to the last digit."""
    monkeypatch.setattr(gaussian, "ROWS", 17)
    k = torch.from_numpy(rng.permutation(200)[:, None].repeat(d, 1)).to(dtype)
    chosen = torch.from_numpy(rng.integers(0, 200, size=60))
    q = k[chosen] + torch.from_numpy(rng.uniform(-0.4, 0.4, size=(60, d))).to(dtype)
    v = torch.from_numpy(rng.normal(size=(200, 3))).to(dtype)
    out = nadaraya_watson(q, k, v, bandwidth=h)
    np.testing.assert_array_equal(out.numpy(), v[chosen].numpy())


def test_on_a_line_only_near_keys_are_met(rng, calls, monkeypatch):
    """2,000 points over 1,000 bandwidths: in float32 for all, and few of the four million pairs."""
    monkeypatch.setattr(gaussian, "ROWS", 10)
    q, k, v = (a.float() for a in tensors(rng, (2000, 1), (2000, 1), (2000, 2)))
    q, k = 500 * torch.special.erf(q), 500 * torch.special.erf(k)  # even
    out = nadaraya_watson(q, k, v)
    np.testing.assert_allclose(out.numpy(), exact(q, k, v, 1.0), atol=1e-4, rtol=0)
    assert len(calls) == 200
    assert sum(m * n for _, m, n in calls) < 0.05 * 2000 * 2000
    assert np.mean([dtype == FLOAT32 for dtype, *_ in calls]) > 0.9


def test_on_a_line_a_key_counts_while_its_weight_is_a_number(calls):
    """exp(−12.6²/2) is 3.4e-35: times a value of 1e34 it is a third."""
    k = torch.tensor([[0.0], [12.6], [500.0]])
    v = torch.tensor([[0.0], [1e34], [0.0]])
    out = nadaraya_watson(torch.tensor([[0.0]]), k, v)
    assert calls == [(FLOAT32, 1, 2)]  # the third key's weight is 0 in float32
    np.testing.assert_allclose(out.numpy(), [[1e34 * np.exp(-(12.6**2) / 2)]], rtol=1e-3)


def test_on_a_line_a_query_between_distant_keys(calls):
    """The nearest is 400 bandwidths away: its like on the other side counts as much."""
    k, v = torch.tensor([[-400.0], [400.0], [900.0]]), torch.tensor([[3.0], [5.0], [100.0]])
    out = nadaraya_watson(torch.tensor([[0.0], [0.001], [10.0]]), k, v)
    assert [dtype for dtype, *_ in calls] == [FLOAT64]
    near = 1 / (1 + np.exp(-0.8))  # the scores differ by 2 × 400 × 0.001
    np.testing.assert_allclose(out[:, 0].numpy(), [4, 3 + 2 * near, 5], rtol=1e-6)


def test_far_query_gives_the_nearest_value(calls):
    q = torch.tensor([[1e6], [-1e6], [0.5]])
    k, v = torch.tensor([[0.0], [1.0]]), torch.tensor([[3.0], [5.0]])
    out = nadaraya_watson(q, k, v, bandwidth=0.1)
    assert not calls
    np.testing.assert_array_equal(out.numpy(), [[5], [3], [4]])


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own forward mode
def test_closed_for_small_masked_wide_other_kernels_and_gradients(rng, calls, monkeypatch):
    q, k, v = tensors(rng, (3, 2), (7, 2), (7, 5))
    nadaraya_watson(q, k, v, mask=torch.ones(7, dtype=torch.bool))
    nadaraya_watson(q, k, v, kernel=kernels.boxcar, bandwidth=9.0)
    nadaraya_watson(q, k, v, return_weights=True)
    nadaraya_watson(q, k, torch.zeros(7, 4 * gaussian.WIDTH + 1, dtype=torch.float64))
    nadaraya_watson(q, k, v, bandwidth=torch.tensor(1.0, requires_grad=True))
    nadaraya_watson(q, k.clone().requires_grad_(), v)
    nadaraya_watson(q[:0], k, v)
    nadaraya_watson(q.expand(0, -1, -1), k, v)
    assert not calls
    with torch.autograd.forward_ad.dual_level():  # nor has it a forward-mode derivative
        nadaraya_watson(torch.autograd.forward_ad.make_dual(q, torch.ones_like(q)), k, v)
    assert not calls
    with torch.no_grad():
        nadaraya_watson(q, k.clone().requires_grad_(), v)
    assert len(calls) == 1
    monkeypatch.setattr(chunked, "CHUNK_BYTES", 3 * 7 * 8)
    nadaraya_watson(q, k, v)
    assert len(calls) == 1
