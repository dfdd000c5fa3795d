"""What every layer owes, from its row: the oracle in both libraries, gradients, properties, refusals."""

import importlib

import backends
import numpy as np
import pytest
from contracts.layers import IN_MODELS, LAYERS
from contracts.table import SIZES, Domain
from layer_harness import Library, part, randomized

from attnbook import convert

CLOSE = {"rtol": 0, "atol": 1e-11}  # some hundred roundings of numbers below 100
each = pytest.mark.parametrize("row", LAYERS, ids=lambda row: row.name)


def holding(what):
    return pytest.mark.parametrize(
        "row", [r for r in LAYERS if what in r.holds], ids=lambda row: row.name
    )


def made(library, row):
    return randomized(library, row.name.split(",")[0], *row.sizes, **row.how)


def called(library, row, layer, **arrays):
    """In JAX compiled at once."""
    if library.name == "torch":
        found = library.call(layer, **arrays, **row.fixed)
    else:
        import equinox as eqx

        given = {name: library.moved(a) for name, a in arrays.items()}
        compiled = eqx.filter_jit(lambda layer, given: layer(**given, **row.fixed))
        found = library.returned(compiled(layer, given))
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_every_layer_has_a_row(name):
    module = importlib.import_module(f"attnbook.{name}")
    assert set(module.__all__) - IN_MODELS == {row.name.split(",")[0] for row in LAYERS}


@each
def test_equals_the_oracle(library, row):
    layer, arrays = made(library, row), row.arrays()
    expected = row.oracle(library.parameters(layer), **arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = called(library, row, layer, **arrays)
    for ours, right in zip(found, expected, strict=True):
        assert ours.shape == right.shape
        np.testing.assert_allclose(ours, right, **CLOSE)
    if "return_weights" in row.fixed:  # the faster ways give no weights
        rest = {name: value for name, value in row.fixed.items() if name != "return_weights"}
        alone = library.call(layer, **arrays, **rest)
        np.testing.assert_allclose(alone, expected[0], **CLOSE)


@each
def test_both_libraries_learn_alike(row):
    """The gradient of every parameter and of the inputs, PyTorch's and that of its twin in JAX."""
    torch, jax = Library("torch"), Library("jax")
    import equinox as eqx

    layer, arrays = made(torch, row), row.arrays()
    moving = {name: a for name, a in arrays.items() if a.dtype == float}
    still = {name: a for name, a in arrays.items() if name not in moving}

    def output(library, layer, moving):
        found = layer(**moving, **{n: library.moved(a) for n, a in still.items()}, **row.fixed)
        return found[0] if isinstance(found, tuple) else found

    leaves = {name: torch.moved(a).requires_grad_() for name, a in moving.items()}
    out = output(torch, layer, leaves)
    known = ~np.isnan(out.detach().numpy())  # a query without a neighbour has no number
    weight = np.random.default_rng(0).normal(size=out.shape)
    (out * torch.moved(weight))[torch.moved(known)].sum().backward()

    def loss(both):
        total = output(jax, *both) * jax.moved(weight)
        return jax.backend.xp.where(jax.moved(known), total, 0.0).sum()

    twin = convert.torch_to_jax(layer), {name: jax.moved(a) for name, a in moving.items()}
    of_layer, of_inputs = eqx.filter_jit(eqx.filter_grad(loss))(twin)
    pairs = [(p.grad, part(of_layer, name), name) for name, p in layer.named_parameters()]
    pairs += [(leaves[name].grad, of_inputs[name], name) for name in moving]
    for ours, theirs, name in pairs:
        size = max(1.0, np.abs(theirs).max())
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10 * size)
        assert np.isfinite(theirs).all()
        # the keys' shift is the same for all tokens: the softmax does not see it
        assert np.abs(theirs).max() > 1e-6 or name == "key.bias", name


@holding("causal")
def test_no_later_token_counts_at_all(library, row):
    layer, arrays = made(library, row), row.arrays()
    ((name, x),) = arrays.items()
    other = np.where(np.arange(7)[:, None] < 4, x, 2 - x)
    one, after = (called(library, row, layer, **{name: a})[0] for a in (x, other))
    np.testing.assert_array_equal(one[:, :4], after[:, :4])
    assert (np.abs(one[:, 4:] - after[:, 4:]).max(-1) > 1e-3).all()


@holding("tokens")
def test_the_order_of_tokens_is_that_of_the_outputs(library, row):
    layer, arrays = made(library, row), row.arrays()
    ((name, x),) = arrays.items()
    order = np.random.default_rng(1).permutation(7)
    one, moved = (called(library, row, layer, **{name: a})[0] for a in (x, x[:, order]))
    np.testing.assert_allclose(moved, one[:, order], **CLOSE)


def wrong_inputs(row):
    for name, words in row.domains.items():
        domain = Domain.of(words)
        good = row.arrays()[name]
        if domain.letters[-1] == "e" and domain.kind == "data":
            yield name, np.ones((*good.shape[:-1], SIZES["e"] + 1))
            yield name, good[0, 0]
            yield name, good.astype(int)
        if name == "mask":
            yield name, np.ones((2, 2, *good.shape[1:]), bool)
            yield name, good.astype(float)
            yield name, good[..., :-1]
        if domain.kind == "labels":
            yield name, good.astype(float)
            yield name, good + SIZES["e"]


@pytest.mark.parametrize(
    ("row", "name", "wrong"),
    [pytest.param(r, *w, id=f"{r.name}-{w[0]}") for r in LAYERS for w in wrong_inputs(r)],
)
def test_what_is_outside_the_domain_is_refused(library, row, name, wrong):
    if row.name.endswith("Regression") and wrong.ndim > 2 and wrong.dtype == bool:
        pytest.skip("a mask's leading axes become the output's")
    layer = made(library, row)
    with pytest.raises(ValueError, match=rf"\b{name}\b.*: got (.|\n)*, expected "):
        library.call(layer, **row.arrays() | {name: wrong}, **row.fixed)
    other = backends.load_or_skip("numpy").array(row.arrays()[name])
    given = {n: library.moved(a) for n, a in row.arrays().items()} | {name: other}
    with pytest.raises(TypeError, match=r"expected one library|expected a torch"):
        layer(**given, **row.fixed)
