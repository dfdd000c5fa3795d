"""What the libraries do to averages: second derivatives."""

import functools

import numpy as np
import pytest
from reference import sample

from attnbook import attend, kernels, leave_one_out, nadaraya_watson

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
