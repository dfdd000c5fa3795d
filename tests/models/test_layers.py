"""The layers that learn a kernel: torch = JAX = the function, in gradients and in learning."""

import backends
import numpy as np
import pytest
import reference

from attnbook import convert, nadaraya_watson

torch, jax = backends.load_or_skip("torch").xp, backends.load_or_skip("jax").jax
jnp = jax.numpy
pytest.importorskip("equinox")

import equinox as eqx  # noqa: E402

import attnbook.jax  # noqa: E402
import attnbook.torch  # noqa: E402

BANDWIDTHS = [0.7, [0.7, 1.3]]
bandwidths = pytest.mark.parametrize("bandwidth", BANDWIDTHS, ids=["one", "one per coordinate"])


@pytest.fixture
def sample(rng):
    return [rng.normal(size=shape) for shape in ((11, 3, 2), (7, 2), (7, 5))]


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
    out = twin(*map(jnp.asarray, sample), mask=jnp.asarray(mask))
    np.testing.assert_allclose(out, expected, rtol=1e-12)


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


HEADS = {
    "one per head": [0.7, 1.3, 2.9],
    "one per coordinate": [[0.7, 1.3], [2.9, 0.4], [1.1, 1.7]],
}
METRICS = {
    "square": [[2.0, 0.5], [-0.3, 1.1]],
    "to one": [[0.7, -1.3]],
    "to three": [[1.0, 0.0], [0.5, -2.0], [0.3, 0.3]],
}


def both(layer, *args):
    """A torch layer in float64 and its twin, with the very same parameters."""
    twin = getattr(attnbook.jax, layer)(*args)
    return convert.jax_to_torch(twin), twin


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("start", HEADS.values(), ids=HEADS)
def test_multi_head_layers_equal_the_loop(sample, rng, start, masked):
    """At the start the mean of the heads; then with coefficients of either sign."""
    mask = rng.random((11, 1, 7)) < 0.5 if masked else None
    layer, twin = both("MultiHeadKernelRegression", start)
    own = attnbook.torch.MultiHeadKernelRegression(start).double()
    for made in (own.combination.detach(), twin.combination):
        np.testing.assert_allclose(made, [1 / 3] * 3, rtol=1e-7)
    for combination in ([1 / 3] * 3, [2.0, -1.3, 0.4]):
        with torch.no_grad():
            layer.combination.copy_(torch.tensor(combination, dtype=torch.float64))
        twin = eqx.tree_at(lambda t: t.combination, twin, jnp.asarray(combination))
        expected = reference.multi_head(*sample, start, combination, mask)
        out = layer(
            *map(torch.from_numpy, sample), mask=None if mask is None else torch.from_numpy(mask)
        )
        np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-6, atol=1e-7)
        theirs = twin(*map(jnp.asarray, sample), mask=None if mask is None else jnp.asarray(mask))
        np.testing.assert_allclose(theirs, out.detach().numpy(), rtol=1e-11, atol=1e-13)
    for made in (own, layer, twin):
        found = made.bandwidths if made is twin else made.bandwidths.detach()
        np.testing.assert_allclose(np.asarray(found), start, rtol=1e-6)
    assert sorted(own.state_dict()) == ["combination", "log_bandwidths"]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("start", METRICS.values(), ids=METRICS)
def test_metric_layers_equal_the_loop(sample, rng, start, masked):
    """The loop over W q and W k; W may be wide, square or tall."""
    mask = rng.random((11, 1, 7)) < 0.5 if masked else None
    q, k, v = sample
    expected, _ = reference.nadaraya_watson(
        q @ np.array(start).T, k @ np.array(start).T, v, mask=mask
    )
    layer = attnbook.torch.MetricKernelRegression(start).double()
    twin = attnbook.jax.MetricKernelRegression(start)
    out = layer(
        *map(torch.from_numpy, sample), mask=None if mask is None else torch.from_numpy(mask)
    )
    np.testing.assert_allclose(
        out.detach().numpy(), expected, rtol=1e-5
    )  # W was rounded to float32
    out = twin(*map(jnp.asarray, sample), mask=None if mask is None else jnp.asarray(mask))
    np.testing.assert_allclose(out, expected, rtol=1e-11)
    assert list(layer.state_dict()) == ["metric"]


def test_a_metric_is_a_score_of_distances(sample):
    """The identity over h is KernelRegression(h), and a diagonal one bandwidth per coordinate."""
    for h in ([0.5, 0.5], [0.5, 2.0]):
        metric = attnbook.torch.MetricKernelRegression(np.diag(1 / np.array(h))).double()
        plain = attnbook.torch.KernelRegression(h).double()
        tensors = [torch.from_numpy(a) for a in sample]
        torch.testing.assert_close(metric(*tensors), plain(*tensors), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("library", [attnbook.torch, attnbook.jax], ids=["torch", "jax"])
def test_bad_starts(library):
    """Every layer has these checks."""
    for start in ([0.0, 1.0], [[np.inf]], "wide", []):
        with pytest.raises(ValueError, match=r"bandwidth: got .*, expected a number above 0"):
            library.KernelRegression(start)
        with pytest.raises(ValueError, match=r"bandwidths: got .*, expected numbers above 0"):
            library.MultiHeadKernelRegression(start)
        with pytest.raises(ValueError, match=r"metric: got .*, expected a matrix"):
            library.MetricKernelRegression(start)


def test_what_a_layer_starts_from_does_not_learn():
    """The caller's array is copied, in torch also where the default dtype is float64, as it is here."""
    torch.set_default_dtype(torch.float64)
    try:
        for name in ("MetricKernelRegression", "MultiHeadKernelRegression", "KernelRegression"):
            start = np.full(64, 2.0) if name == "KernelRegression" else np.full((64, 64), 2.0)
            layer, twin = (getattr(m, name)(start) for m in (attnbook.torch, attnbook.jax))
            with torch.no_grad():
                for parameter in layer.parameters():
                    parameter.zero_()
            assert np.all(start == 2)
            kept = [np.array(a) for a in jax.tree.leaves(twin)]
            start += 1
            for a, b in zip(jax.tree.leaves(twin), kept, strict=True):
                np.testing.assert_array_equal(a, b)
    finally:
        torch.set_default_dtype(torch.float32)


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
