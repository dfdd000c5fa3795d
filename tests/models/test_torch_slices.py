"""Slices of a layer sum to the layer: heads, shared heads, hidden units."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

from attnbook.torch import MLP, GatedDelta, MultiHeadAttention  # noqa: E402
from attnbook.torch.slices import slice_of, split_block  # noqa: E402
from attnbook.torch.transformer import DecoderOnly  # noqa: E402

LAYERS = {
    "heads": (lambda: MultiHeadAttention(24, 4), 4),
    "shared heads": (lambda: MultiHeadAttention(24, 4, num_kv_heads=2), 2),
    "turned heads": (lambda: MultiHeadAttention(24, 4, rotary_base=100.0), 2),
    "no bias": (lambda: MultiHeadAttention(24, 4, bias=False), 4),
    "gelu": (lambda: MLP(24, 36), 3),
    "swiglu": (lambda: MLP(24, 36, "swiglu"), 4),
    "MLP without a bias": (lambda: MLP(24, 36, bias=False), 2),
}


@pytest.fixture(autouse=True)
def _double():
    before = torch.get_default_dtype()
    torch.manual_seed(7)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.parametrize("name", LAYERS)
def test_the_sum_of_the_slices_is_the_layer(name):
    """Its output, its gradient with respect to x, and every slice's gradients are the layer's."""
    make, world = LAYERS[name]
    layer, x = make(), torch.randn(3, 5, 24)
    slices = [slice_of(layer, rank, world) for rank in range(world)]
    assert {type(part) for part in slices} == {type(layer)}
    how = {"causal": True} if isinstance(layer, MultiHeadAttention) else {}
    here, there = x.clone().requires_grad_(), x.clone().requires_grad_()
    found, expected = sum(part(here, **how) for part in slices), layer(there, **how)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-14)
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
    sizes = [sum(p.numel() for p in part.parameters()) for part in slices]
    assert sum(sizes) == sum(p.numel() for p in layer.parameters())


def test_a_slice_is_of_its_own():
    """It shares no memory with the layer, says its own sizes, draws no numbers, and keeps the mode."""
    layer = MultiHeadAttention(24, 4, num_kv_heads=2).eval()
    before, state = copy.deepcopy(layer.state_dict()), torch.get_rng_state()
    part = slice_of(layer, 1, 2)
    assert torch.equal(torch.get_rng_state(), state)
    assert (part.num_heads, part.num_kv_heads, part.embed_dim) == (2, 1, 24)
    assert (layer.num_heads, layer.num_kv_heads) == (4, 2)
    assert part.output.bias is None and not part.training and not part.query.training
    with torch.no_grad():
        for parameter in part.parameters():
            parameter.zero_()
    for name, value in layer.state_dict().items():
        assert torch.equal(value, before[name])
    assert slice_of(MLP(4, 6), 2, 3).mlp_dim == 2
    frozen = MLP(4, 6).requires_grad_(False)
    assert not any(p.requires_grad for p in slice_of(frozen, 0, 2).parameters())


HEADS, SHARED, HIDDEN = (LAYERS[name][0] for name in ("heads", "shared heads", "gelu"))


@pytest.mark.parametrize(
    ("make", "rank", "world", "words"),
    [
        (HEADS, 0, 3, "world: got 3, expected a divisor of 4, the heads"),
        (SHARED, 0, 4, "world: got 4, expected a divisor of 2, the heads of keys and values"),
        (HIDDEN, 0, 5, "world: got 5, expected a divisor of 36, the hidden units"),
        (HIDDEN, 2, 2, "rank: got 2, expected 0 to 1"),
        (HIDDEN, 0, 0, "world: got 0, expected an integer, 1 or more"),
    ],
)
def test_slices_that_cannot_be(make, rank, world, words):
    with pytest.raises(ValueError, match=words):
        slice_of(make(), rank, world)


def test_layers_that_are_refused():
    with pytest.raises(
        TypeError, match="layer: got a GatedDelta, expected a MultiHeadAttention or an MLP"
    ):
        slice_of(GatedDelta(24, 4), 0, 2)
    with pytest.raises(
        TypeError, match="block: got a MLP, expected an EncoderBlock or a DecoderBlock"
    ):
        split_block(MLP(24, 36))
    words = "torch.distributed: got no process group, expected one"
    with pytest.raises(RuntimeError, match=words):
        split_block(DecoderOnly(5, 6, 8, 2, 16).decoder[0])


def test_a_matrix_that_is_no_linear_layer():
    layer = MLP(4, 6)
    layer.hidden = torch.nn.Identity()
    words = r"layer\.hidden: got a Identity, expected a torch\.nn\.Linear"
    with pytest.raises(TypeError, match=words):
        slice_of(layer, 0, 2)
