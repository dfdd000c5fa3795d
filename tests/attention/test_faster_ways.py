"""PyTorch's kernel, JAX's compilation, heads of a layer: the faster way gives what the formula gives."""

import functools

import backends
import numpy as np
import pytest

from attnbook import attend, causal_mask

load = backends.load_or_skip


def formula(*arrays, **how):
    """The plain way, which the weights always take."""
    return attend(*arrays, **how, return_weights=True)[0]


@pytest.mark.parametrize("way", ["all", "masked", "causal", "causal and masked"])
@pytest.mark.parametrize("n", [3, 97, 600])
def test_pytorchs_kernel(rng, n, way):
    """Output and gradients, of sizes below and above those where the kernel repays; small ones twice."""
    torch = load("torch").xp
    shapes = [(2, 1, n, 4), (3, n, 4), (n, 5)] if n < 600 else [(n, 4), (n, 4), (n, 2)]
    leaves = [torch.tensor(rng.normal(size=s), requires_grad=True) for s in shapes]
    how = {"causal": True} if "causal" in way else {}
    if "masked" in way:
        mask = torch.tensor(rng.random((n, n)) < 0.6)
        mask[0] = False  # an empty row
        how["mask"] = mask
    found = []
    for function in (attend, formula):
        output = function(*leaves, **how)
        first = torch.autograd.grad(output.square().sum(), leaves, create_graph=True)
        second = []
        if n == 3:
            second = torch.autograd.grad(sum(g.square().sum() for g in first), leaves)
        with torch.no_grad():
            found.append([output, *first, *second, function(*leaves, **how)])
    for ours, right in zip(*found, strict=True):
        room = 1e-10 * max(
            1.0, float(right.detach().abs().max())
        )  # sums of 600 terms, twice differentiated
        torch.testing.assert_close(ours, right, rtol=0, atol=room)


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 2)])
def test_gradients_of_some_only(rng, wanted):
    """Each argument's gradient is its own, whichever others want one; one tensor in three places."""
    torch = load("torch").xp
    arrays = [torch.tensor(rng.normal(size=(70, 4))) for _ in range(3)]
    for i in wanted:
        arrays[i].requires_grad_()
    chosen = [arrays[i] for i in wanted]
    for given in (arrays, [chosen[0]] * 3):
        seen = chosen if given is arrays else chosen[:1]
        slopes = [torch.autograd.grad(f(*given).square().sum(), seen) for f in (attend, formula)]
        for ours, right in zip(*slopes, strict=True):
            torch.testing.assert_close(ours, right, rtol=0, atol=1e-10)


@pytest.mark.parametrize("learning", [False, True])
def test_causal_makes_nothing_as_large_as_a_mask(learning):
    torch = load("torch").xp
    from largest_tensor import LargestTensor  # where there is PyTorch

    n, d = 512, 4
    q, k, v = (torch.randn(n, d, requires_grad=learning) for _ in range(3))
    with LargestTensor() as seen:
        out = attend(q, k, v, causal=True)
        if learning:
            out.sum().backward()
    assert seen.entries <= 4 * n * d
    with LargestTensor() as seen:
        attend(q, k, v, mask=causal_mask(n, q))
    assert seen.entries >= n * n  # the measure sees a mask


def test_jax_compiled_and_mapped(rng):
    """Eager, under jit and vmap, and the second derivative."""
    jax = load("jax").jax
    q, k, v = (rng.normal(size=(5, *shape)) for shape in ((3, 2), (7, 2), (7, 5)))
    mask = rng.random((5, 3, 7)) < 0.5
    call = lambda q, k, v, mask: attend(q, k, v, mask=mask)  # noqa: E731
    expected = formula(q, k, v, mask=mask)
    for function in (call, jax.jit(call), jax.vmap(call)):
        found = function(*map(jax.numpy.asarray, (q, k, v, mask)))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)

    def slope(function, *arrays):
        loss = functools.partial(lambda f, *a: (f(*a) ** 2).sum(), function)
        return sum((g**2).sum() for g in jax.grad(loss, argnums=(0, 1, 2))(*arrays))

    arrays = [jax.numpy.asarray(a[0]) for a in (q, k, v)]
    second = [jax.jit(jax.grad(functools.partial(slope, f)))(*arrays) for f in (attend, formula)]
    np.testing.assert_allclose(*second, rtol=0, atol=1e-9)
    assert np.abs(second[0]).max() > 1e-3
