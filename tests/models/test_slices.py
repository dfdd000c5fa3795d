"""Slices of a layer sum to the layer: heads, shared heads, hidden units."""

from __future__ import annotations

import numpy as np
import pytest
from layer_harness import Library

pytest.importorskip("torch")

from attnbook.torch.slices import slice_of, split_block

LAYERS = {  # a layer, and among how many it is divided
    "heads": ("MultiHeadAttention", (24, 4), {}, 4),
    "shared heads, turned": (
        "MultiHeadAttention",
        (16, 8),
        {"num_kv_heads": 4, "bias": False, "rotary_base": 50.0},
        2,
    ),
    "gelu": ("MLP", (24, 36), {}, 3),
    "swiglu without a bias": ("MLP", (6, 12, "swiglu"), {"bias": False}, 4),
}
each = pytest.mark.parametrize("name", LAYERS)


def made(library, name):
    layer, args, how, _ = LAYERS[name]
    return library.make(layer, *args, **how)


@pytest.fixture
def library():
    return Library("torch")


@each
def test_the_sum_of_the_slices_is_the_layer(library, rng, name):
    """Output, and the gradient of the input; every number is with one rank."""
    layer, (*_, world) = made(library, name), LAYERS[name]
    slices = [slice_of(layer, rank, world) for rank in range(world)]
    how = {"causal": True} if "heads" in name else {}
    x, g = rng.normal(size=(2, 3, 5, layer.embed_dim))

    def output_and_slope(called):
        def total(a):
            return (called(a) * library.moved(g)).sum()

        slope = library.backend.gradient(total, x)[0]
        return library.returned(called(library.moved(x))), slope

    found = output_and_slope(lambda a: sum(part(a, **how) for part in slices))
    for ours, right in zip(found, output_and_slope(lambda a: layer(a, **how)), strict=True):
        np.testing.assert_allclose(ours, right, rtol=0, atol=1e-13)
    counts = [sum(a.size for a in library.parameters(part).values()) for part in (*slices, layer)]
    assert sum(counts[:-1]) == counts[-1]


def test_a_slice_is_of_its_own(library):
    """It has these heads, shares no memory with the layer, and keeps the mode."""
    layer = made(library, "shared heads, turned")
    part, whole = slice_of(layer, 1, 2), library.parameters(layer)
    assert (part.embed_dim, part.num_heads, part.num_kv_heads) == (16, 4, 2)
    found = library.parameters(part)
    np.testing.assert_array_equal(found["query.weight"], whole["query.weight"][8:])
    np.testing.assert_array_equal(found["value.weight"], whole["value.weight"][4:])
    np.testing.assert_array_equal(found["output.weight"], whole["output.weight"][:, 8:])
    before = {n: a.copy() for n, a in whole.items()}
    with library.backend.xp.no_grad():
        for parameter in part.parameters():
            parameter.zero_()
    assert not part.training
    for n, a in library.parameters(layer).items():
        np.testing.assert_array_equal(a, before[n])


@pytest.mark.parametrize(
    ("name", "rank", "world", "words"),
    [
        ("heads", 0, 3, "world: got 3, expected a divisor of 4, the heads"),
        ("shared heads, turned", 0, 8, "world: got 8, expected a divisor of 4, the heads of keys"),
        ("gelu", 0, 5, "world: got 5, expected a divisor of 36, the hidden units"),
        ("gelu", 2, 2, "rank: got 2, expected 0 to 1"),
    ],
)
def test_slices_that_cannot_be(library, name, rank, world, words):
    with pytest.raises(ValueError, match=words):
        slice_of(made(library, name), rank, world)


def test_other_layers_are_refused(library):
    words = "layer: got a SelfAttention, expected a MultiHeadAttention or an MLP"
    with pytest.raises(TypeError, match=words):
        slice_of(library.make("SelfAttention", 4), 0, 2)
    words = "block: got a MLP, expected an EncoderBlock or a DecoderBlock"
    with pytest.raises(TypeError, match=words):
        split_block(library.make("MLP", 24, 36))
    with pytest.raises(RuntimeError, match=r"torch\.distributed: got no process group"):
        split_block(library.make("EncoderBlock", 8, 2, 16))
