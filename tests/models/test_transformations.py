"""What the libraries do to averages: second derivatives, batching, compilation."""

import functools

import numpy as np
import pytest
from layer_harness import Library
from reference import sample

from attnbook import attend, causal_mask, kernels, leave_one_out, nadaraya_watson

FUNCTIONS = {
    "attend": attend,
    "attend, causal": lambda q, k, v: attend(
        k[..., :3, :], k[..., :3, :], v[..., :3, :], causal=True
    ),
    "nadaraya_watson": functools.partial(nadaraya_watson, bandwidth=0.8),
    "nadaraya_watson, Epanechnikov": functools.partial(
        nadaraya_watson, kernel=kernels.epanechnikov, bandwidth=4.0
    ),
}
each = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)


@pytest.fixture
def torch():
    return Library("torch").backend.xp


@pytest.fixture
def jax():
    return Library("jax").backend.jax


@each
def test_gradcheck_to_the_second_derivative(torch, rng, function):
    arrays = [torch.from_numpy(a[..., :2, :][..., :2]).requires_grad_() for a in sample(rng)]
    assert torch.autograd.gradcheck(function, arrays)
    assert torch.autograd.gradgradcheck(function, arrays)


def test_gradcheck_where_queries_are_keys(torch, rng, small_blocks):
    """leave_one_out has the same tensor in two places, and its gradient is the sum of both."""
    x, y = (torch.from_numpy(a[:3]).requires_grad_() for a in sample(rng)[1:])
    h = torch.tensor([0.7, 1.3], dtype=torch.float64, requires_grad=True)

    def function(x, y, h):
        return leave_one_out(x, y, bandwidth=h)

    assert torch.autograd.gradcheck(function, [x, y, h])
    assert torch.autograd.gradgradcheck(function, [x, y, h])


def test_a_kernel_that_learns(differentiable, rng, small_blocks):
    """d/da of a prediction with K(u) = exp(−a u²) is −h / 2a times that in h: a u² = a r² / h²."""
    q, k, v = map(differentiable.array, sample(rng))
    xp = differentiable.xp

    def loss(a, h):
        return nadaraya_watson(q, k, v, kernel=lambda u: xp.exp(-a * u * u), bandwidth=h).sum()

    in_a, in_h = differentiable.gradient(loss, np.array(0.5), np.array(1.1))
    step = 1e-5
    ahead, behind = (
        float(loss(differentiable.array(np.array(a)), differentiable.array(np.array(1.1))))
        for a in (0.5 + step, 0.5 - step)
    )
    np.testing.assert_allclose(in_a, (ahead - behind) / (2 * step), rtol=1e-6)
    np.testing.assert_allclose(1.1 * in_h, -2 * 0.5 * in_a, rtol=1e-10)


@each
def test_vmap_is_the_batch_axis(jax, rng, function):
    q, k, v = (jax.numpy.asarray(a) for a in sample(rng, 11))
    mapped = jax.jit(jax.vmap(function))(q, k, v)
    np.testing.assert_allclose(mapped, jax.jit(function)(q, k, v), rtol=1e-10)


def test_a_hessian_in_the_bandwidths(jax, torch, rng):
    """The curvature of the leave-one-out error: JAX's is PyTorch's."""
    k, v = sample(rng)[1:]

    def loss(log_h, k, v, exp):
        return ((v - leave_one_out(k, v, bandwidth=exp(log_h))) ** 2).mean()

    start = np.array([0.1, -0.4])
    arrays = [jax.numpy.asarray(a) for a in (start, k, v)]
    ours = jax.jit(jax.hessian(lambda *a: loss(*a, jax.numpy.exp)))(*arrays)
    start, k, v = (torch.from_numpy(a) for a in (start, k, v))
    theirs = torch.autograd.functional.hessian(lambda h: loss(h, k, v, torch.exp), start)
    assert theirs.abs().min() > 1e-4
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*lru_cache:UserWarning")
def test_torch_compile(torch, rng):
    """With masks and a bandwidth, forward and backward; without a C++ compiler."""

    def several(k, v, h):
        mask = causal_mask(7, like=k)
        averages = nadaraya_watson(k, k, v, bandwidth=h, mask=mask), attend(k, k, v, mask=mask)
        return (*averages, leave_one_out(k, v, bandwidth=h))

    k, v, h = (
        torch.from_numpy(a).requires_grad_() for a in (*sample(rng)[1:], np.array([0.7, 1.3]))
    )
    compiled = torch.compile(several, backend="aot_eager")
    outs = compiled(k, v, h), several(k, v, h)
    torch.testing.assert_close(*outs, rtol=1e-10, atol=1e-10)
    slopes = [torch.autograd.grad(sum(a.sum() for a in out), [k, v, h]) for out in outs]
    torch.testing.assert_close(*slopes, rtol=1e-10, atol=1e-10)
