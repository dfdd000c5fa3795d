"""What the libraries do to functions: derivatives, batching, compilation."""

import functools
import warnings

import numpy as np
import pytest
from layer_harness import Library
from reference import sample

from attnbook import attend, causal_mask, kernels, leave_one_out, nadaraya_watson, scores
from attnbook.kernel import chunked

FUNCTIONS = {
    "attend": attend,
    "attend, Gaussian": functools.partial(attend, score=scores.gaussian_score),
    "nadaraya_watson": functools.partial(nadaraya_watson, bandwidth=0.8),
    "nadaraya_watson, Epanechnikov": functools.partial(
        nadaraya_watson, kernel=kernels.epanechnikov, bandwidth=4.0
    ),
}
# torch's own forward-mode rules are written with torch.jit.script, which it deprecates
forward_mode = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
IN_BLOCKS = " in blocks"
NAMES = [*FUNCTIONS, *(name + IN_BLOCKS for name in FUNCTIONS if "nadaraya" in name)]


@pytest.fixture(params=NAMES)
def function(request, monkeypatch):
    """Each average; those that go in blocks also with one query a block."""
    if request.param.endswith(IN_BLOCKS):
        monkeypatch.setattr(chunked, "CHUNK_BYTES", 1)
    return FUNCTIONS[request.param.removesuffix(IN_BLOCKS)]


@pytest.fixture
def torch():
    return Library("torch").backend.xp


@pytest.fixture
def jax():
    return Library("jax").backend.jax


def quietly(compiled, *args, **how):
    """Dynamo looks through a function that the interpreter caches, and says so: not here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*lru_cache", category=UserWarning)
        return compiled(*args, **how)


def close(found, expected):
    import torch

    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


# PyTorch


def test_gradcheck_to_the_second_derivative(torch, rng, function):
    arrays = [torch.from_numpy(a[..., :2, :]).requires_grad_() for a in sample(rng)]
    assert torch.autograd.gradcheck(function, arrays)
    assert torch.autograd.gradgradcheck(function, arrays)


@pytest.mark.parametrize("size", [1, 2**20])
def test_gradcheck_where_queries_are_keys(torch, rng, monkeypatch, size):
    """leave_one_out has the same tensor in two places, and its gradient is the sum of both."""
    monkeypatch.setattr(chunked, "CHUNK_BYTES", size)
    arrays = [torch.from_numpy(a[:3]).requires_grad_() for a in sample(rng)[1:]]
    assert torch.autograd.gradcheck(leave_one_out, arrays)
    assert torch.autograd.gradgradcheck(leave_one_out, arrays)
    assert torch.autograd.gradcheck(lambda x, y: nadaraya_watson(x, x, y), arrays)


def test_gradcheck_in_the_bandwidth(torch, rng, small_blocks):
    k, v = (torch.from_numpy(a) for a in sample(rng)[1:])
    h = torch.tensor([0.7, 1.3], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda h: leave_one_out(k, v, bandwidth=h), [h])
    assert torch.autograd.gradgradcheck(lambda h: leave_one_out(k, v, bandwidth=h), [h])
    function = functools.partial(nadaraya_watson, kernel=kernels.triangular)
    assert torch.autograd.gradcheck(lambda h: function(k, k, v, bandwidth=5 * h), [h])


@forward_mode
def test_torch_func(torch, rng, function):
    """grad equals autograd, jacrev equals jacfwd, vmap equals the batch axis."""
    q, k, v = map(torch.from_numpy, sample(rng, 11))
    loss = lambda q, k, v: (function(q, k, v) ** 2).sum()  # noqa: E731
    leaf = q.clone().requires_grad_()
    (expected,) = torch.autograd.grad(loss(leaf, k, v), [leaf])
    close(torch.func.grad(loss)(q, k, v), expected)
    batch = torch.func.vmap(function)(q, k, v)
    close(batch, function(q, k, v))
    shared = torch.func.vmap(function, in_dims=(0, None, None))(q, k[0], v[0])
    close(shared, function(q, k[0], v[0]))
    back = torch.func.jacrev(function, 2)(q[0], k[0], v[0])
    forward = torch.func.jacfwd(function, 2)(q[0], k[0], v[0])
    assert back.shape == (3, 5, 7, 5)
    close(back, forward)
    assert back.abs().max() > 0.1


@forward_mode
def test_dual_numbers(torch, rng, function):
    """Forward mode, one direction in all arguments: the same as jvp of one block at once."""
    arrays = [torch.from_numpy(a) for a in sample(rng)]
    along = [torch.from_numpy(rng.normal(size=a.shape)) for a in arrays]
    with torch.autograd.forward_ad.dual_level():
        out = function(*map(torch.autograd.forward_ad.make_dual, arrays, along))
        tangent = torch.autograd.forward_ad.unpack_dual(out).tangent
    leaves = [a.clone().requires_grad_() for a in arrays]
    rows = function(*leaves)
    for i in range(3):  # and what the backward pass says, a number of the output at a time
        for c in range(5):
            grads = torch.autograd.grad(rows[i, c], leaves, retain_graph=True)
            slope = sum((g * a).sum() for g, a in zip(grads, along, strict=True))
            close(tangent[i, c], slope)


@forward_mode
def test_dual_numbers_in_the_bandwidth_and_the_kernel(torch, rng, small_blocks):
    """d/da of a prediction with K(u) = exp(−a u²), where only the kernel, or only h, moves."""
    q, k, v = (torch.from_numpy(a) for a in sample(rng))
    one = torch.tensor(1.0, dtype=torch.float64)

    def slope(function, at):
        with torch.autograd.forward_ad.dual_level():
            out = function(torch.autograd.forward_ad.make_dual(at, one))
            return torch.autograd.forward_ad.unpack_dual(out).tangent

    def predict(a, h):
        return nadaraya_watson(q, k, v, kernel=lambda u: torch.exp(-a * u * u), bandwidth=h)

    in_a = slope(lambda a: predict(a, 1.1), torch.tensor(0.5, dtype=torch.float64))
    in_h = slope(lambda h: predict(0.5, h), torch.tensor(1.1, dtype=torch.float64))
    gaussian = slope(lambda h: nadaraya_watson(q, k, v, bandwidth=h), 1.1 * one)
    step = 1e-5
    expected = (predict(0.5 + step, 1.1) - predict(0.5 - step, 1.1)) / (2 * step)
    torch.testing.assert_close(in_a, expected, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(1.1 * in_h, -2 * 0.5 * in_a, rtol=1e-10, atol=1e-12)  # a r² / h²
    torch.testing.assert_close(gaussian, in_h, rtol=1e-10, atol=1e-12)


def test_many_gradients_at_once(torch, rng, function):
    """is_grads_batched, and the vectorised Jacobian that is built on it."""
    arrays = [torch.from_numpy(a).requires_grad_() for a in sample(rng)]
    out = function(*arrays)
    directions = torch.from_numpy(rng.normal(size=(4, *out.shape)))
    batch = torch.autograd.grad(out, arrays, directions, is_grads_batched=True, retain_graph=True)
    for i, direction in enumerate(directions):
        single = torch.autograd.grad(out, arrays, direction, retain_graph=True)
        for a, b in zip(batch, single, strict=True):
            close(a[i], b)
    assert batch[0].abs().max() > 0.01


@pytest.mark.slow
def test_torch_compile_without_a_graph_break(torch, rng, function):
    """aot_eager: Dynamo's capture and the backward graph, without a C++ compiler."""
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    arrays = [torch.from_numpy(a).requires_grad_() for a in sample(rng)]
    out = quietly(compiled, *arrays)
    grads = quietly(torch.autograd.grad, out.sum(), arrays)
    expected = function(*arrays)
    close(out, expected)
    close(grads, torch.autograd.grad(expected.sum(), arrays))


@pytest.mark.slow
def test_torch_compile_while_the_bandwidth_changes(torch, rng):
    """A number that differs from call to call becomes a symbol in the graph."""
    compiled = torch.compile(nadaraya_watson, fullgraph=True, backend="aot_eager")
    q, k, v = map(torch.from_numpy, sample(rng))
    for bandwidth in (0.5, 0.75, 1.5, 2.0):
        for kernel in (kernels.gaussian, kernels.triangular):
            how = {"bandwidth": 3 * bandwidth, "kernel": kernel}
            close(quietly(compiled, q, k, v, **how), nadaraya_watson(q, k, v, **how))


@pytest.mark.slow
def test_torch_compile_with_masks_and_bandwidth(torch, rng):
    def several(k, v, h):
        mask = causal_mask(7, like=k)
        return (
            nadaraya_watson(k, k, v, bandwidth=h, mask=mask),
            attend(k, k, v, mask=mask),
            leave_one_out(k, v, bandwidth=h),
        )

    k, v = (torch.from_numpy(a) for a in sample(rng)[1:])
    h = torch.tensor([0.7, 1.3], dtype=torch.float64)
    compiled = torch.compile(several, fullgraph=True, backend="aot_eager")
    close(quietly(compiled, k, v, h), several(k, v, h))


def test_boxcar_has_a_gradient_in_the_values_alone(torch, rng, small_blocks):
    """Its weights are constants: 0 in the bandwidth; in the values, what each key weighs."""
    q, k, v = (torch.from_numpy(a) for a in sample(rng))
    h = torch.tensor(4.0, dtype=torch.float64, requires_grad=True)
    v.requires_grad_()
    out = nadaraya_watson(q, k, v, kernel=kernels.boxcar, bandwidth=h)
    dv, dh = torch.autograd.grad(out.sum(), [v, h], allow_unused=True, materialize_grads=True)
    _, weights = nadaraya_watson(q, k, v, kernel=kernels.boxcar, bandwidth=4.0, return_weights=True)
    torch.testing.assert_close(dv, weights.sum(0)[:, None].expand(7, 5), rtol=1e-12, atol=1e-12)
    assert dh == 0


def test_torch_kernel_with_a_parameter_of_its_own(torch, rng, small_blocks):
    """A kernel that learns: d/da of the prediction with K(u) = exp(−a u²)."""
    q, k, v = (torch.from_numpy(a) for a in sample(rng))
    h = torch.tensor(1.1, dtype=torch.float64, requires_grad=True)

    def loss(a):
        return nadaraya_watson(q, k, v, kernel=lambda u: torch.exp(-a * u * u), bandwidth=h).sum()

    a = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    step = 1e-5
    with torch.no_grad():
        slope = (loss(0.5 + step) - loss(0.5 - step)) / (2 * step)
    da, dh = torch.autograd.grad(loss(a), [a, h])
    torch.testing.assert_close(da, slope, rtol=1e-7, atol=0)
    torch.testing.assert_close(1.1 * dh, -2 * 0.5 * da, rtol=1e-10, atol=0)  # a u² = a r² / h²


# JAX


def test_jax_gradients_are_slopes(jax, rng, function):
    """Forward and reverse derivatives against finite differences, to the second order."""
    from jax.test_util import check_grads

    arrays = [jax.numpy.asarray(a) for a in sample(rng)]
    check_grads(function, arrays, order=2, modes=["rev"], rtol=1e-4, atol=1e-4)
    check_grads(function, arrays, order=1, modes=["fwd"], rtol=1e-4, atol=1e-4)


def test_vmap_equals_the_batch_axis(jax, rng, function):
    q, k, v = (jax.numpy.asarray(a) for a in sample(rng, 11))
    np.testing.assert_allclose(jax.vmap(function)(q, k, v), function(q, k, v), rtol=1e-10)
    shared = jax.jit(jax.vmap(function, in_axes=(0, None, None)))(q, k[0], v[0])
    np.testing.assert_allclose(shared, function(q, k[0], v[0]), rtol=1e-10)


@forward_mode
def test_hessian_in_the_bandwidths(jax, torch, rng, small_blocks):
    """The curvature of the leave-one-out error: jax.hessian = torch.func.hessian."""
    k, v = sample(rng)[1:]

    def loss(log_h, k, v, exp):
        return ((v - leave_one_out(k, v, bandwidth=exp(log_h))) ** 2).mean()

    start = np.array([0.1, -0.4])
    arrays = [jax.numpy.asarray(a) for a in (start, k, v)]
    ours = jax.jit(jax.hessian(lambda *a: loss(*a, jax.numpy.exp)))(*arrays)
    tensors = [torch.from_numpy(a) for a in (start, k, v)]
    theirs = torch.func.hessian(lambda *a: loss(*a, torch.exp))(*tensors)
    assert theirs.abs().min() > 1e-4
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-9)


def test_a_kernel_with_a_parameter_of_its_own(jax, rng, small_blocks):
    """A kernel that closes over a traced number: d/da of the prediction with K(u) = exp(−a u²)."""
    q, k, v = (jax.numpy.asarray(a) for a in sample(rng))

    def loss(a):
        kernel = lambda u: jax.numpy.exp(-a * u * u)  # noqa: E731
        return nadaraya_watson(q, k, v, kernel=kernel).sum()

    step = 1e-5
    slope = (loss(0.5 + step) - loss(0.5 - step)) / (2 * step)
    np.testing.assert_allclose(jax.grad(loss)(0.5), slope, rtol=1e-7)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(0.5), slope, rtol=1e-7)
