"""Derivatives and transformations of attend's fast ways: PyTorch's fused kernel, JAX's compilation."""

import functools

import backends
import numpy as np
import pytest
import reference
from fused_calls import noted
from reference import sample

from attnbook import attend, causal_mask
from attnbook.attention import weighted_average

# torch's own forward-mode rules are written with torch.jit.script, which it deprecates
forward_mode = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")


@pytest.fixture
def torch(monkeypatch):
    """PyTorch, with every size large enough for the fused kernel."""
    return backends.load_or_skip("torch").xp


@pytest.fixture
def jax():
    return backends.load_or_skip("jax").jax


@pytest.fixture
def fused_calls(torch, monkeypatch):
    return noted(monkeypatch, lambda *args, **_: tuple(args[0].shape))


def leaves(torch, arrays):
    return [torch.from_numpy(a).requires_grad_() for a in arrays]


def formula(*arrays, mask=None):
    """The plain way, which the weights always take."""
    return attend(*arrays, mask=mask, return_weights=True)[0]


def close(torch, ours, right):
    for a, b in zip(ours, right, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


# PyTorch


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("widths", [(2, 5), (5, 2)])
def test_gradcheck_to_the_second_derivative(torch, fused_calls, rng, widths, masked):
    """Slopes against finite differences; values wider or narrower than keys; an empty row."""
    arrays = leaves(torch, sample(rng, m=2, n=3, d=widths[0], p=widths[1]))
    mask = torch.tensor([[True, False, True], [False] * 3]) if masked else None
    function = functools.partial(attend, mask=mask)
    assert torch.autograd.gradcheck(function, arrays)
    assert torch.autograd.gradgradcheck(function, arrays)


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 2), (1, 2)])
def test_gradients_of_some_only(torch, fused_calls, rng, wanted):
    """Each argument's gradient is its own, whichever others want one; first and second order."""
    arrays = [torch.from_numpy(a) for a in sample(rng, 5)]
    mask = torch.from_numpy(rng.random((5, 3, 7)) < 0.7)
    for i in wanted:
        arrays[i].requires_grad_()
    chosen = [arrays[i] for i in wanted]
    weights = torch.from_numpy(rng.normal(size=(5, 3, 5)))
    found = []
    for function in (attend, formula):
        loss = (weights * function(*arrays, mask=mask) ** 2).sum()
        first = torch.autograd.grad(loss, chosen, create_graph=True)
        second = torch.autograd.grad(sum((g**2).sum() for g in first), chosen)
        found.append([*first, *second])
    close(torch, *found)
    assert min(g.abs().max() for g in found[0]) > 1e-3


def test_one_tensor_as_queries_keys_and_values(torch, fused_calls, rng):
    """Self-attention without projections: the gradient is the sum of all three places'."""
    (x,) = leaves(torch, [rng.normal(size=(5, 3, 2))])
    mask = causal_mask(3, like=x)
    function = lambda x: attend(x, x, x, mask=mask)  # noqa: E731
    assert torch.autograd.gradcheck(function, [x])
    assert torch.autograd.gradgradcheck(function, [x])
    plain = torch.autograd.grad((formula(x, x, x, mask=mask) ** 2).sum(), [x])
    for higher in (False, True):
        loss = (function(x) ** 2).sum()
        close(torch, torch.autograd.grad(loss, [x], create_graph=higher), plain)
    keys_and_values = torch.autograd.grad((attend(x.detach(), x, x) ** 2).sum(), [x])
    close(torch, keys_and_values, torch.autograd.grad((formula(x.detach(), x, x) ** 2).sum(), [x]))


def test_backward_twice(torch, fused_calls, rng):
    """retain_graph: the same gradient again, and it adds up in .grad; third: create_graph."""
    arrays = leaves(torch, sample(rng, 5))
    loss = (attend(*arrays) ** 2).sum()
    expected = torch.autograd.grad((formula(*arrays) ** 2).sum(), arrays)
    for times in (1, 2, 3):
        loss.backward(retain_graph=True)
        close(torch, [a.grad for a in arrays], [times * g for g in expected])
    close(torch, torch.autograd.grad(loss, arrays, create_graph=True), expected)


def test_an_empty_row_has_finite_gradients(torch, fused_calls, rng):
    arrays = leaves(torch, sample(rng))
    mask = torch.ones(3, 7, dtype=torch.bool)
    mask[1], mask[:, 5:] = False, False
    out = attend(*arrays, mask=mask)
    assert not out[1].any()
    dq, dk, dv = torch.autograd.grad((out**2).sum() + out.sum(), arrays)
    plain = formula(*arrays, mask=mask)
    close(torch, (dq, dk, dv), torch.autograd.grad((plain**2).sum() + plain.sum(), arrays))
    assert not dq[1].any()
    assert not dk[5:].any()
    assert not dv[5:].any()
    assert dq[[0, 2]].all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_gradients_keep_the_dtype(torch, fused_calls, rng, dtype):
    arrays = [torch.from_numpy(a).to(getattr(torch, dtype)) for a in sample(rng, d=5, p=2)]
    for a in arrays:
        a.requires_grad_()
    exact = [a.detach().double().requires_grad_() for a in arrays]
    grads = torch.autograd.grad((attend(*arrays).double() ** 2).sum(), arrays)
    expected = torch.autograd.grad((formula(*exact) ** 2).sum(), exact)
    tolerance = 4 * torch.finfo(grads[0].dtype).eps
    for a, b in zip(grads, expected, strict=True):
        assert str(a.dtype) == f"torch.{dtype}"
        torch.testing.assert_close(a.double(), b, rtol=tolerance, atol=tolerance)


# JAX


def test_jax_ways_agree(jax, rng):
    """Eager, under jit and vmap: the loop's average, which is what comes with the weights."""
    q, k, v = sample(rng, 5)
    mask = rng.random((5, 3, 7)) < 0.5
    arrays = [jax.numpy.asarray(a) for a in (q, k, v, mask)]
    call = lambda q, k, v, mask: attend(q, k, v, mask=mask)  # noqa: E731
    expected, _ = reference.attend(q, k, v, mask=mask)
    for function in (call, jax.jit(call), jax.vmap(call), jax.jit(jax.vmap(call))):
        np.testing.assert_allclose(function(*arrays), expected, rtol=1e-12, atol=1e-14)
    pair = formula(*arrays[:3], mask=arrays[3])
    np.testing.assert_allclose(call(*arrays), pair, rtol=1e-13, atol=1e-15)


def test_jax_derivatives_of_the_compiled_way(jax, rng, monkeypatch):
    """First and second, in every argument, are those of the formula; the compiled way was taken."""
    arrays = [jax.numpy.asarray(a) for a in sample(rng)]
    compiled, taken = weighted_average._compiled(), []
    assert compiled is weighted_average._compiled()  # compiled once
    monkeypatch.setattr(weighted_average, "_compiled", lambda: taken.append(1) or compiled)

    def loss(function, *arrays):
        return (function(*arrays) ** 2).sum()

    def slope(function, *arrays):
        grads = jax.grad(functools.partial(loss, function), argnums=(0, 1, 2))(*arrays)
        return sum((g**2).sum() for g in grads), grads

    for derivative in (
        lambda f: slope(f, *arrays)[1],
        lambda f: jax.jit(jax.grad(lambda *x: slope(f, *x)[0], argnums=(0, 1, 2)))(*arrays),
    ):
        for a, b in zip(derivative(attend), derivative(formula), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
            assert np.abs(b).max() > 1e-3
    assert len(taken) == 2
