"""The learned layers: torch = JAX = the function, before and after a conversion, and in learning."""

import backends
import numpy as np
import pytest
import reference

from attnbook import convert, nadaraya_watson

torch = pytest.importorskip("torch")
pytest.importorskip("equinox")

if not {"torch", "jax"} <= set(backends.chosen()):
    pytest.skip(
        "torch and jax are not both among the back ends of this run", allow_module_level=True
    )

jax = backends.load("jax").jax
jnp = jax.numpy

import equinox as eqx  # noqa: E402

import attnbook.jax  # noqa: E402
import attnbook.torch  # noqa: E402

BANDWIDTHS = [0.7, [0.7, 1.3]]
bandwidths = pytest.mark.parametrize("bandwidth", BANDWIDTHS, ids=["one", "one a coordinate"])


@pytest.fixture
def sample(rng):
    return [rng.normal(size=shape) for shape in ((11, 3, 2), (7, 2), (7, 5))]


def test_the_two_libraries_have_the_same_layers():
    assert attnbook.torch.__all__ == attnbook.jax.__all__


@bandwidths
def test_layers_equal_the_function(sample, bandwidth):
    expected, _ = reference.nadaraya_watson(*sample, bandwidth=bandwidth)
    layer = attnbook.torch.KernelRegression(bandwidth).double()
    twin = attnbook.jax.KernelRegression(bandwidth)
    out = layer(*map(torch.from_numpy, sample)).detach().numpy()
    np.testing.assert_allclose(out, expected, rtol=1e-5)  # log h was rounded to float32
    out = twin(*map(jnp.asarray, sample))
    np.testing.assert_allclose(out, expected, rtol=1e-12)
    out = eqx.filter_jit(twin)(*map(jnp.asarray, sample))
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_layers_take_a_mask(sample, rng):
    mask = rng.random((11, 1, 7)) < 0.5
    expected, _ = reference.nadaraya_watson(*sample, mask=mask)
    layer, twin = attnbook.torch.KernelRegression().double(), attnbook.jax.KernelRegression()
    out = layer(*map(torch.from_numpy, sample), mask=torch.from_numpy(mask)).detach().numpy()
    np.testing.assert_allclose(out, expected, rtol=1e-12)
    np.testing.assert_allclose(
        twin(*map(jnp.asarray, sample), mask=jnp.asarray(mask)), expected, rtol=1e-12
    )


@bandwidths
def test_gradients_agree(sample, bandwidth):
    """In the data and in log h; in log h also with the function's slope, h times df/dh."""
    twin = attnbook.jax.KernelRegression(bandwidth)
    layer = convert.jax_to_torch(twin)
    arrays = [torch.from_numpy(a).requires_grad_() for a in sample]
    leaves = [layer.log_bandwidth, *arrays]
    ours = torch.autograd.grad((layer(*arrays) ** 2).sum(), leaves)

    def loss(twin, arrays):
        return (twin(*arrays) ** 2).sum()

    grads = jax.jit(jax.grad(loss, argnums=(0, 1)))(twin, [jnp.asarray(a) for a in sample])
    theirs = [grads[0].log_bandwidth, *grads[1]]
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-9, atol=1e-9)
    h = torch.tensor(bandwidth, dtype=torch.float64, requires_grad=True)
    tensors = map(torch.from_numpy, sample)
    (slope,) = torch.autograd.grad((nadaraya_watson(*tensors, bandwidth=h) ** 2).sum(), [h])
    np.testing.assert_allclose(ours[0].numpy(), (h * slope).detach().numpy(), rtol=1e-9)
    assert np.all(np.abs(ours[0].numpy()) > 1e-3)


def test_parameter_is_the_logarithm_and_has_its_name():
    layer = attnbook.torch.KernelRegression([1.0, np.e])
    assert list(layer.state_dict()) == ["log_bandwidth"]
    np.testing.assert_allclose(layer.log_bandwidth.detach(), [0, 1], atol=1e-7)
    np.testing.assert_allclose(layer.bandwidth.detach(), [1, np.e], rtol=1e-6)
    assert layer.log_bandwidth.dtype == torch.get_default_dtype()
    twin = attnbook.jax.KernelRegression([1.0, np.e], key=jax.random.key(0))
    np.testing.assert_allclose(twin.log_bandwidth, [0, 1], atol=1e-15)
    np.testing.assert_allclose(twin.bandwidth, [1, np.e], rtol=1e-15)
    assert [f.name for f in twin.__dataclass_fields__.values()] == ["log_bandwidth"]


@pytest.mark.parametrize(
    "start", [0.0, -1.0, np.nan, np.inf, "wide", None, [], [[1.0]], [1.0, 0.0]]
)
def test_a_start_that_is_no_bandwidth(start):
    for layer in (attnbook.torch.KernelRegression, attnbook.jax.KernelRegression):
        with pytest.raises(ValueError, match=r"bandwidth: got .*, expected a number above 0"):
            layer(start)


def test_a_wild_step_leaves_the_bandwidth_above_0(sample):
    """A step of 50 on h itself would land at −49; on log h it lands at e^(−50), and e^(50)."""
    for direction in (-50.0, 50.0):
        layer = attnbook.torch.KernelRegression(1.0).double()
        layer.log_bandwidth.grad = torch.tensor(-direction, dtype=torch.float64)
        torch.optim.SGD(layer.parameters(), lr=1.0).step()
        np.testing.assert_allclose(layer.bandwidth.item(), np.exp(direction), rtol=1e-12)
        twin = attnbook.jax.KernelRegression(1.0)
        twin = jax.tree.map(lambda x, d=direction: x + d, twin)
        np.testing.assert_allclose(twin.bandwidth, np.exp(direction), rtol=1e-12)
        out = layer(*map(torch.from_numpy, sample)).detach().numpy()
        np.testing.assert_allclose(out, twin(*map(jnp.asarray, sample)), rtol=1e-9)
        assert np.isfinite(out).all()


def test_learning_finds_the_bandwidth_of_least_leave_one_out_error(rng):
    """Gradient descent on log h and a grid search over h meet."""
    from attnbook import leave_one_out

    x = torch.from_numpy(rng.uniform(-3, 3, size=(101, 1)))
    y = torch.sin(2 * x) + 0.3 * torch.from_numpy(rng.normal(size=(101, 1)))
    layer = attnbook.torch.KernelRegression(1.0).double()
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.05)

    def error(h):
        return ((y - leave_one_out(x, y, bandwidth=h)) ** 2).mean()

    for _ in range(150):
        optimiser.zero_grad()
        error(layer.bandwidth).backward()
        optimiser.step()
    least = min(error(h).item() for h in np.geomspace(0.05, 1, 101))
    assert error(1.0).item() > 2 * least  # where it began
    assert error(layer.bandwidth).item() < 1.001 * least


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@bandwidths
def test_round_trip_is_exact(sample, bandwidth, dtype):
    layer = attnbook.torch.KernelRegression(bandwidth).to(getattr(torch, dtype))
    twin = convert.torch_to_jax(layer)
    back = convert.jax_to_torch(twin)
    assert isinstance(twin, attnbook.jax.KernelRegression)
    assert isinstance(back, attnbook.torch.KernelRegression)
    assert str(twin.log_bandwidth.dtype) == dtype
    assert back.log_bandwidth.dtype == layer.log_bandwidth.dtype
    assert back.log_bandwidth.requires_grad
    original = layer.log_bandwidth.detach().numpy()
    np.testing.assert_array_equal(np.asarray(twin.log_bandwidth), original, strict=True)
    np.testing.assert_array_equal(back.log_bandwidth.detach().numpy(), original, strict=True)


def test_twins_share_no_memory():
    """What one layer learns in place, its twin does not see."""
    layer = attnbook.torch.KernelRegression(list(np.full(1024, 2.0)))
    twin = convert.torch_to_jax(layer)
    back = convert.jax_to_torch(twin)
    with torch.no_grad():
        layer.log_bandwidth.zero_()
        back.log_bandwidth.add_(1)
    np.testing.assert_allclose(twin.log_bandwidth, np.log(2), rtol=1e-6)


def test_float64_needs_x64():
    layer = attnbook.torch.KernelRegression(0.7).double()
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(ValueError, match=r"layer: log_bandwidth is float64, .* float32"):
            convert.torch_to_jax(layer)
        assert convert.torch_to_jax(layer.float()).log_bandwidth.dtype == np.float32
        back = convert.jax_to_torch(attnbook.jax.KernelRegression(0.7))
        assert back.log_bandwidth.dtype == torch.float32
    finally:
        jax.config.update("jax_enable_x64", True)


@pytest.mark.parametrize("stranger", [None, 3, "layer", torch.nn.Linear(2, 3)])
def test_what_cannot_be_converted(stranger):
    with pytest.raises(TypeError, match=r"layer: got \w+, expected"):
        convert.torch_to_jax(stranger)
    with pytest.raises(TypeError, match=r"layer: got \w+, expected"):
        convert.jax_to_torch(stranger)
    with pytest.raises(TypeError, match="layer: got Linear, expected one of KernelRegression"):
        convert.jax_to_torch(eqx.nn.Linear(2, 3, key=jax.random.key(0)))
