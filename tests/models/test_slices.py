"""Slices of a layer sum to the layer: heads, shared heads, hidden units."""

from __future__ import annotations

import copy
import importlib

import numpy as np
import pytest
from layer_harness import Library

LAYERS = {
    "heads": ("MultiHeadAttention", (24, 4), {}),
    "shared heads": ("MultiHeadAttention", (24, 4), {"num_kv_heads": 2}),
    "turned heads": ("MultiHeadAttention", (24, 4), {"rotary_base": 100.0}),
    "no bias": ("MultiHeadAttention", (24, 4), {"bias": False}),
    "shared heads, turned": (
        "MultiHeadAttention",
        (16, 8),
        {"num_kv_heads": 4, "bias": False, "rotary_base": 50.0},
    ),
    "gelu": ("MLP", (24, 36), {}),
    "swiglu": ("MLP", (24, 36, "swiglu"), {}),
    "MLP without a bias": ("MLP", (24, 36), {"bias": False}),
    "swiglu without a bias": ("MLP", (6, 12, "swiglu"), {"bias": False}),
}
WORLDS = [
    *(("heads", 2), ("heads", 4), ("shared heads", 2), ("turned heads", 2), ("no bias", 4)),
    *(("shared heads, turned", 2), ("shared heads, turned", 4), ("gelu", 2), ("gelu", 3)),
    *(("gelu", 4), ("swiglu", 4), ("MLP without a bias", 2)),
    *(("swiglu without a bias", 2), ("swiglu without a bias", 4)),
]


def made(library, name):
    layer, args, how = LAYERS[name]
    return library.make(layer, *args, **how)


def slice_of(library, *given):
    return importlib.import_module(f"attnbook.{library.name}.slices").slice_of(*given)


def options(layer):
    return {"causal": True} if type(layer).__name__ == "MultiHeadAttention" else {}


@pytest.fixture
def torch():
    """PyTorch with new numbers in float64, where it is among the back ends of this run."""
    found = Library("torch").backend.xp
    before = found.get_default_dtype()
    found.manual_seed(7)
    found.set_default_dtype(found.float64)
    yield found
    found.set_default_dtype(before)


@pytest.mark.parametrize(("name", "world"), WORLDS)
def test_the_sum_of_the_slices_is_the_layer(library, rng, name, world):
    layer = made(library, name)
    x = rng.normal(size=(3, 5, layer.embed_dim))
    slices = [slice_of(library, layer, rank, world) for rank in range(world)]
    assert {type(part) for part in slices} == {type(layer)}
    called = [*slices, layer]
    if library.name == "jax":
        called = map(importlib.import_module("equinox").filter_jit, called)
    *found, expected = (library.call(part, x, **options(layer)) for part in called)
    np.testing.assert_allclose(sum(found), expected, rtol=0, atol=1e-14)

    def count(part):
        return sum(a.size for a in library.parameters(part).values())

    assert sum(map(count, slices)) == count(layer)  # every number is with one rank


@pytest.mark.parametrize(("name", "world"), WORLDS)
def test_gradients_of_the_slices_are_those_of_the_layer(torch, name, world):
    """With respect to x, and to the parameters of every slice."""
    layer = made(Library("torch"), name).train()
    slices = [slice_of(Library("torch"), layer, rank, world) for rank in range(world)]
    x = torch.randn(3, 5, layer.embed_dim)
    here, there = x.clone().requires_grad_(), x.clone().requires_grad_()
    found = sum(part(here, **options(layer)) for part in slices)
    expected = layer(there, **options(layer))
    g = torch.randn_like(expected)
    found.backward(g), expected.backward(g)
    torch.testing.assert_close(here.grad, there.grad, rtol=0, atol=1e-13)
    for child, whole in layer.named_parameters():
        parts = [
            dict(part.named_parameters())[child].grad
            for part in slices[: 1 if child == "output.bias" else None]
        ]
        axis = 1 if child == "output.weight" else 0
        torch.testing.assert_close(torch.cat(parts, axis), whole.grad, rtol=0, atol=1e-13)


def test_a_slice_has_these_heads(library):
    layer = made(library, "shared heads, turned")
    part = slice_of(library, layer, 1, 2)
    assert (part.embed_dim, part.num_heads, part.num_kv_heads) == (16, 4, 2)
    found, whole = library.parameters(part), library.parameters(layer)
    np.testing.assert_array_equal(found["query.weight"], whole["query.weight"][8:])
    np.testing.assert_array_equal(found["value.weight"], whole["value.weight"][4:])
    np.testing.assert_array_equal(found["output.weight"], whole["output.weight"][:, 8:])
    assert part.query.out_features == part.output.in_features == 8
    assert slice_of(library, library.make("MLP", 6, 8), 3, 4).mlp_dim == 2


@pytest.mark.parametrize("name", LAYERS)
def test_slices_are_the_same_in_both_libraries(name):
    """Every parameter bit for bit."""
    torch, jax = Library("torch"), Library("jax")
    convert = pytest.importorskip("attnbook.convert")
    layer = made(jax, name)
    for rank in (0, 1):
        found = jax.parameters(slice_of(jax, layer, rank, 2))
        expected = torch.parameters(slice_of(torch, convert.jax_to_torch(layer), rank, 2))
        assert found.keys() == expected.keys()
        for path, array in found.items():
            np.testing.assert_array_equal(array, expected[path])


def test_a_slice_is_of_its_own(torch):
    """It shares no memory with the layer, draws no numbers, and keeps the mode."""
    from attnbook.torch import MLP, MultiHeadAttention
    from attnbook.torch.slices import slice_of

    layer = MultiHeadAttention(24, 4, num_kv_heads=2).eval()
    before, state = copy.deepcopy(layer.state_dict()), torch.get_rng_state()
    part = slice_of(layer, 1, 2)
    assert torch.equal(torch.get_rng_state(), state)
    assert (layer.num_heads, layer.num_kv_heads) == (4, 2)
    assert part.output.bias is None and not part.training and not part.query.training
    with torch.no_grad():
        for parameter in part.parameters():
            parameter.zero_()
    for name, value in layer.state_dict().items():
        assert torch.equal(value, before[name])
    frozen = MLP(4, 6).requires_grad_(False)
    assert not any(p.requires_grad for p in slice_of(frozen, 0, 2).parameters())


@pytest.mark.parametrize(
    ("name", "rank", "world", "words"),
    [
        ("heads", 0, 3, "world: got 3, expected a divisor of 4, the heads"),
        ("shared heads", 0, 4, "world: got 4, expected a divisor of 2, the heads of keys and val"),
        ("gelu", 0, 5, "world: got 5, expected a divisor of 36, the hidden units"),
        ("gelu", 2, 2, "rank: got 2, expected 0 to 1"),
        ("gelu", 0, 0, "world: got 0, expected an integer, 1 or more"),
    ],
)
def test_slices_that_cannot_be(library, name, rank, world, words):
    with pytest.raises(ValueError, match=words):
        slice_of(library, made(library, name), rank, world)


@pytest.mark.parametrize("layer", ["GatedDelta", "SelfAttention"])
def test_other_layers_are_refused(library, layer):
    words = f"layer: got a {layer}, expected a MultiHeadAttention or an MLP"
    with pytest.raises(TypeError, match=words):
        slice_of(library, library.make(layer, *((4, 2) if layer == "GatedDelta" else (4,))), 0, 2)


def test_blocks_that_are_refused(torch):
    from attnbook.torch import MLP, DecoderOnly
    from attnbook.torch.slices import split_block

    words = "block: got a MLP, expected an EncoderBlock or a DecoderBlock"
    with pytest.raises(TypeError, match=words):
        split_block(MLP(24, 36))
    words = "torch.distributed: got no process group, expected one"
    with pytest.raises(RuntimeError, match=words):
        split_block(DecoderOnly(5, 6, 8, 2, 16).decoder[0])


def test_a_matrix_that_is_no_linear_layer(torch):
    library = Library("torch")
    layer = library.make("MLP", 4, 6)
    layer.hidden = torch.nn.Identity()
    words = r"layer\.hidden: got a Identity, expected a torch\.nn\.Linear"
    with pytest.raises(TypeError, match=words):
        slice_of(library, layer, 0, 2)
