"""Both blocks against torch.nn.TransformerEncoderLayer and torch.nn.TransformerDecoderLayer."""

import backends
import numpy as np
import pytest

from attnbook import convert

torch = backends.load_or_skip("torch").xp

import attnbook.torch  # noqa: E402

F = torch.nn.functional
KINDS = {"EncoderBlock": "TransformerEncoderLayer", "DecoderBlock": "TransformerDecoderLayer"}
NORMS = {"EncoderBlock": {"attention_norm": "norm1", "mlp_norm": "norm2"}}
NORMS["DecoderBlock"] = {"attention_norm": "norm1", "cross_norm": "norm2", "mlp_norm": "norm3"}
ATTENTIONS = {"EncoderBlock": {"attention": "self_attn"}}
ATTENTIONS["DecoderBlock"] = {"attention": "self_attn", "cross_attention": "multihead_attn"}
kinds = pytest.mark.parametrize("name", KINDS)
norm_first = pytest.mark.parametrize("first", [True, False], ids=["pre", "post"])
activated = pytest.mark.parametrize("activation", ["relu", "gelu"])
masks = pytest.mark.parametrize("which", ["", "mask", "key_padding_mask", "mask key_padding_mask"])
CLOSE = {"rtol": 0, "atol": 1e-9}


def peer(name, activation="relu", first=False, **how):
    """A layer of torch's, of 4 heads of width 3; its norms and biases are not those of its start."""
    torch.manual_seed(11)
    how = {"dtype": torch.float64, "batch_first": True, "dropout": 0.0} | how
    made = getattr(torch.nn, KINDS[name])(12, 4, 7, activation=activation, norm_first=first, **how)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(0.6 * torch.randn(parameter.shape))
    return made


def ours(name, original):
    return getattr(attnbook.torch, name).from_pytorch(original)


def inputs(name, rng):
    x, memory = (torch.from_numpy(rng.normal(size=(2, n, 12))) for n in (5, 7))
    return [x, memory] if name == "DecoderBlock" else [x]


def masked(name, rng, which):
    """Torch's masks by its names, True = may not attend, and ours; every query has a key."""
    theirs, allowed = {}, []
    for prefix, n in (("tgt", 5), ("memory", 7)) if name == "DecoderBlock" else (("src", 5),):
        mask = torch.ones(2, 5, n, dtype=torch.bool)
        for kind in which.split():
            shut = torch.from_numpy(rng.random((5, n) if kind == "mask" else (2, n)) < 0.4)
            shut[:, 0] = False
            theirs[f"{prefix}_{kind}"] = shut
            mask &= ~shut if kind == "mask" else ~shut[:, None, :]
        allowed.append(mask if which else None)
    return theirs, allowed


@masks
@norm_first
@activated
@kinds
def test_equals_pytorch(rng, name, activation, first, which):
    assert_equals_pytorch(rng, name, peer(name, activation, first), which)


def assert_equals_pytorch(rng, name, original, which):
    """Without gradients too, where torch may take another path; and in JAX."""
    given = inputs(name, rng)
    theirs, allowed = masked(name, rng, which)
    layer = ours(name, original)
    expected, out = original(*given, **theirs), layer(*given, *allowed)
    torch.testing.assert_close(out, expected, **CLOSE)
    with torch.no_grad():
        original.eval()
        torch.testing.assert_close(layer(*given, *allowed), original(*given, **theirs), **CLOSE)
    with_weights, *_ = layer(*given, *allowed, return_weights=True)
    torch.testing.assert_close(with_weights, out, **CLOSE)
    if "jax" in backends.chosen():
        pytest.importorskip("equinox")
        jnp = backends.load("jax").xp
        arrays = [None if a is None else jnp.asarray(a.numpy()) for a in (*given, *allowed)]
        found = convert.torch_to_jax(layer)(*arrays)
        np.testing.assert_allclose(found, expected.detach(), **CLOSE)


@norm_first
@kinds
def test_a_mask_and_the_place_of_the_norm_matter(rng, name, first):
    """What the test above compares differs from mask to mask, and from place to place."""
    given = inputs(name, rng)
    layers = [ours(name, peer(name, "gelu", place)) for place in (first, not first)]
    _, allowed = masked(name, rng, "mask")
    open_to_all = layers[0](*given)
    other = ours(name, peer(name, "relu", first))
    for out in (layers[1](*given), layers[0](*given, *allowed), other(*given)):
        assert (out - open_to_all).abs().max() > 0.1


def by_our_names(name, original, get):
    """What get says of every parameter; torch has the rows of three projections in one."""
    found = {}
    for part, theirs in ATTENTIONS[name].items():
        attention = original.get_submodule(theirs)
        for kind in ("weight", "bias"):
            chunks = get(getattr(attention, f"in_proj_{kind}")).chunk(3)
            rows = zip(("query", "key", "value"), chunks, strict=True)
            found |= {f"{part}.{p}.{kind}": g for p, g in rows}
            found[f"{part}.output.{kind}"] = get(getattr(attention.out_proj, kind))
    pairs = NORMS[name] | {"mlp.hidden": "linear1", "mlp.output": "linear2"}
    for part, theirs in pairs.items():
        for kind in ("weight", "bias"):
            found[f"{part}.{kind}"] = get(original.get_parameter(f"{theirs}.{kind}"))
    return found


@norm_first
@activated
@kinds
def test_gradients_equal_pytorch(rng, name, activation, first):
    """In the stream, the memory and every parameter."""
    original = peer(name, activation, first)
    theirs, allowed = masked(name, rng, "mask key_padding_mask")
    layer = ours(name, original)
    cotangent, given = torch.from_numpy(rng.normal(size=(2, 5, 12))), inputs(name, rng)
    slopes = []
    for module, seen in ((original, theirs), (layer, {})):
        leaves = [a.clone().requires_grad_() for a in given]
        out = module(*leaves, **seen) if seen else module(*leaves, *allowed)
        (out * cotangent).sum().backward()
        slopes.append([a.grad for a in leaves])
    for right, found in zip(*slopes, strict=True):
        torch.testing.assert_close(found, right, **CLOSE)
    expected = by_our_names(name, original, lambda parameter: parameter.grad)
    assert set(expected) == set(dict(layer.named_parameters()))
    for path, parameter in layer.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[path], **CLOSE)
        assert (parameter.grad.abs().max() > 1e-6) == (not path.endswith("key.bias")), path


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
@norm_first
@kinds
def test_from_pytorch_copies(name, first, dtype):
    """Bit for bit, in the dtype it has; what one of them learns the other does not see."""
    original = peer(name, "gelu", first, dtype=getattr(torch, dtype))
    before = {n: a.clone() for n, a in original.state_dict().items()}
    layer = ours(name, original)
    assert type(layer) is getattr(attnbook.torch, name)
    sizes = layer.embed_dim, layer.num_heads, layer.mlp_dim, layer.norm, layer.activation
    assert sizes == (12, 4, 7, "pre" if first else "post", "gelu")
    expected = by_our_names(name, original, lambda parameter: parameter.detach().clone())
    copied = dict(layer.named_parameters())
    assert set(copied) == set(expected)
    assert all(torch.equal(copied[path], expected[path]) for path in copied)
    with torch.no_grad():
        for parameter in layer.parameters():
            assert parameter.requires_grad
            assert parameter.dtype == getattr(torch, dtype)
            parameter.zero_()
    after = original.state_dict()
    assert set(after) == set(before)
    assert all(torch.equal(after[n], before[n]) for n in before)


@pytest.mark.parametrize("training", [True, False])
@kinds
def test_from_pytorch_keeps_mode_and_dropout(rng, name, training):
    original = peer(name, dropout=0.3).train(training)
    layer = ours(name, original)
    parts = [layer, layer.mlp, *(layer.get_submodule(a) for a in ATTENTIONS[name])]
    assert [p.dropout for p in parts] == [0.3] * len(parts)
    assert {m.training for m in layer.modules()} == {training}
    assert {m.training for m in original.modules()} == {training}
    given = inputs(name, rng)
    torch.manual_seed(0)
    assert torch.equal(layer(*given), layer(*given)) == (not training)


@kinds
def test_from_pytorch_takes_sequences_first_too(rng, name):
    """batch_first says how the other layer is called; ours has the batch first."""
    original, given = peer(name, batch_first=False), inputs(name, rng)
    expected = original(*[a.transpose(0, 1) for a in given]).transpose(0, 1)
    torch.testing.assert_close(ours(name, original)(*given), expected, **CLOSE)


OTHERS = {"no bias": {"bias": False}, "another eps": {"layer_norm_eps": 1e-2}}
OTHERS["both"] = OTHERS["no bias"] | OTHERS["another eps"]


@norm_first
@pytest.mark.parametrize("how", OTHERS.values(), ids=OTHERS)
@kinds
def test_equals_pytorch_without_biases_and_with_another_eps(rng, name, how, first):
    """Which is no small thing: with 1e-5 in its place the output is another one."""
    original = peer(name, "gelu", first, **how)
    layer = ours(name, original)
    assert (layer.bias, layer.eps) == (how.get("bias", True), how.get("layer_norm_eps", 1e-5))
    assert any(n.endswith("bias") for n, _ in layer.named_parameters()) == layer.bias
    assert_equals_pytorch(rng, name, original, "mask key_padding_mask")
    given = inputs(name, rng)
    expected = layer(*given)
    if "layer_norm_eps" in how:
        for part in NORMS[name]:
            layer.get_submodule(part).eps = 1e-5
    assert ((layer(*given) - expected).abs().max() > 1e-4) == ("layer_norm_eps" in how)


SPELT = {
    "relu": (F.relu, torch.nn.ReLU()),
    "gelu": (F.gelu, torch.nn.GELU()),
    "gelu_tanh": (torch.nn.GELU(approximate="tanh"),),
}


@pytest.mark.parametrize("activation", SPELT)
@kinds
def test_every_spelling_of_an_activation(rng, name, activation):
    given = inputs(name, rng)
    for spelling in SPELT[activation]:
        original = peer(name, spelling)
        layer = ours(name, original)
        assert layer.activation == activation
        torch.testing.assert_close(layer(*given), original(*given), **CLOSE)


@kinds
def test_from_pytorch_refuses(name):
    for wrong in (F.silu, torch.nn.Tanh(), torch.tanh):
        with pytest.raises(ValueError, match=r"original: got activation .*, expected relu or gelu"):
            ours(name, peer(name, wrong))
    original = peer(name)
    original.get_submodule(list(NORMS[name].values())[-1]).eps = 1e-3
    message = "original: got norms of eps 1e-05 and 0.001, expected the same in all"
    with pytest.raises(ValueError, match=message):
        ours(name, original)
    for part in ("linear1", "linear2", *NORMS[name].values(), *ATTENTIONS[name].values()):
        original, other = peer(name), peer(name, bias=False)
        setattr(original, part, other.get_submodule(part))
        with pytest.raises(ValueError, match="original: got biases in a part of it, expected them"):
            ours(name, original)


@pytest.mark.parametrize("stranger", [None, 3, torch.nn.Linear(2, 3)])
@kinds
def test_from_pytorch_refuses_strangers(name, stranger):
    other = peer(next(n for n in KINDS if n != name))
    for given in (stranger, other, torch.nn.MultiheadAttention(12, 3)):
        message = f"original: got {type(given).__name__}, expected a torch.nn.{KINDS[name]}"
        with pytest.raises(TypeError, match=message):
            ours(name, given)
