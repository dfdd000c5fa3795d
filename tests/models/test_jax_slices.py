"""A rank's share of a layer: the outputs of all shares add up to the layer's."""

from __future__ import annotations

import backends
import numpy as np
import pytest

pytest.importorskip("equinox")
if "jax" not in backends.chosen():
    pytest.skip("jax is not among the back ends of this run", allow_module_level=True)
jax = backends.load("jax").jax

import equinox as eqx  # noqa: E402

from attnbook.jax import MLP, MultiHeadAttention, SelfAttention  # noqa: E402
from attnbook.jax.slices import slice_of  # noqa: E402

KEY = jax.random.key(3)
ATTENTION = {
    "plain": MultiHeadAttention(8, 4, key=KEY),
    "shared heads, turned": MultiHeadAttention(
        16, 8, num_kv_heads=4, bias=False, rotary_base=50.0, key=KEY
    ),
}
MLPS = {
    "gelu": MLP(6, 8, key=KEY),
    "swiglu": MLP(6, 12, "swiglu", 0.0, False, key=KEY),
}


def double(layer):
    return jax.tree.map(lambda a: a.astype("float64") if eqx.is_array(a) else a, layer)


@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("layer", [*ATTENTION.values(), *MLPS.values()], ids=[*ATTENTION, *MLPS])
def test_the_shares_add_up(rng, layer, world):
    layer = double(layer)
    x = jax.numpy.asarray(rng.normal(size=(2, 5, layer.embed_dim)))
    how = {"causal": True} if isinstance(layer, MultiHeadAttention) else {}
    shares = [slice_of(layer, rank, world) for rank in range(world)]
    assert {type(share) for share in shares} == {type(layer)}
    outputs = [eqx.filter_jit(part)(x, **how) for part in (*shares, layer)]
    np.testing.assert_allclose(sum(outputs[:-1]), outputs[-1], atol=1e-14)
    count = lambda part: sum(a.size for a in jax.tree.leaves(part) if eqx.is_array(a))  # noqa: E731
    assert sum(map(count, shares)) == count(layer)  # every number is with one rank


def test_a_share_has_these_heads():
    layer = ATTENTION["shared heads, turned"]
    share = slice_of(layer, 1, 2)
    assert (share.embed_dim, share.num_heads, share.num_kv_heads) == (16, 4, 2)
    np.testing.assert_array_equal(share.query.weight, layer.query.weight[8:])
    np.testing.assert_array_equal(share.value.weight, layer.value.weight[4:])
    np.testing.assert_array_equal(share.output.weight, layer.output.weight[:, 8:])
    assert share.query.out_features == share.output.in_features == 8
    assert slice_of(MLPS["gelu"], 3, 4).mlp_dim == 2


@pytest.mark.parametrize(
    ("layer", "rank", "world", "message"),
    [
        (ATTENTION["plain"], 0, 3, "world: got 3, expected a divisor of 4, the heads"),
        (ATTENTION["shared heads, turned"], 0, 8, "a divisor of 4, the heads of keys and values"),
        (MLPS["gelu"], 0, 3, "world: got 3, expected a divisor of 8, the hidden units"),
        (MLPS["gelu"], 2, 2, "rank: got 2, expected 0 to 1"),
        (MLPS["gelu"], 0, 0, "world: got 0, expected an integer, 1 or more"),
    ],
)
def test_shares_that_cannot_be(layer, rank, world, message):
    with pytest.raises(ValueError, match=message):
        slice_of(layer, rank, world)


def test_torchs_shares_are_these():
    """The slices of the twin, where PyTorch is there: every parameter bit for bit."""
    pytest.importorskip("torch")
    from attnbook import convert
    from attnbook.torch import distributed

    for layer in (*ATTENTION.values(), *MLPS.values()):
        for rank in (0, 1):
            part = slice_of(layer, rank, 2)
            named = dict(
                distributed.slice_of(convert.jax_to_torch(layer), rank, 2).named_parameters()
            )
            found = {
                jax.tree_util.keystr(path, simple=True, separator="."): a
                for path, a in jax.tree_util.tree_leaves_with_path(eqx.filter(part, eqx.is_array))
            }
            assert found.keys() == named.keys()
            for name, array in found.items():
                np.testing.assert_array_equal(array, named[name].detach().numpy())


def test_another_layer_is_refused():
    with pytest.raises(TypeError, match="layer: got a SelfAttention, expected a MultiHead"):
        slice_of(SelfAttention(4, key=KEY), 0, 2)
