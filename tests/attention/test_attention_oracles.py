"""Multi-head attention against torch.nn.MultiheadAttention and equinox.nn.MultiheadAttention."""

import functools

import backends
import layer_harness
import numpy as np
import pytest

from attnbook import convert

torch = backends.load_or_skip("torch").xp

import attnbook.torch  # noqa: E402

PARTS = ("query", "key", "value")
with_bias = pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
MASKS = ["", "attn_mask", "key_padding_mask", "attn_mask key_padding_mask"]
masks = pytest.mark.parametrize("which", MASKS)


def peer(bias=True, **how):
    """A torch.nn.MultiheadAttention of 4 heads of width 3; its biases are not the zeros of its start."""
    torch.manual_seed(11)
    how = {"dtype": torch.float64, "batch_first": True} | how
    made = torch.nn.MultiheadAttention(12, 4, bias=bias, **how)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(0.6 * torch.randn(parameter.shape))
    return made


def sequences(rng, cross):
    """Queries, keys and values: three sequences, or one three times."""
    q = torch.from_numpy(rng.normal(size=(2, 5, 12)))
    return [q, *torch.from_numpy(rng.normal(size=(2, 2, 7, 12)))] if cross else [q, q, q]


def masked(rng, which, n):
    """PyTorch's masks, True = may not attend, and ours; every query has a key."""
    shut = {"attn_mask": rng.random((5, n)) < 0.4, "key_padding_mask": rng.random((2, n)) < 0.4}
    shut = {name: torch.from_numpy(shut[name]) for name in which.split()}
    for array in shut.values():
        array[:, 0] = False
    mask = torch.ones(2, 5, n, dtype=torch.bool)
    for name, array in shut.items():
        mask &= ~array if name == "attn_mask" else ~array[:, None, :]
    return shut, mask if which else None


@pytest.mark.parametrize("cross", [False, True], ids=["self", "cross"])
@masks
@with_bias
def test_equals_pytorch(rng, bias, which, cross):
    """Output and the weights of every head, to 1e-10; in JAX too."""
    original, given = peer(bias), sequences(rng, cross)
    shut, mask = masked(rng, which, 7 if cross else 5)
    layer = attnbook.torch.MultiHeadAttention.from_pytorch(original)
    expected, shares = original(*given, **shut, average_attn_weights=False)
    fused, _ = original(*given, **shut, need_weights=False)
    for out, right in (
        *zip(layer(*given, mask=mask, return_weights=True), (expected, shares), strict=True),
        (layer(*given, mask=mask), expected),
        (layer(*given, mask=mask), fused),
    ):
        assert out.shape == right.shape
        torch.testing.assert_close(out, right, rtol=0, atol=1e-10)
    assert (shares.amax(-1) - shares.amin(-1)).max() > 0.5
    if "jax" in backends.chosen():
        pytest.importorskip("equinox")
        jnp = backends.load("jax").xp
        twin = convert.torch_to_jax(layer)
        arrays = [jnp.asarray(a.numpy()) for a in given]
        allowed = None if mask is None else jnp.asarray(mask.numpy())
        out, weights = twin(*arrays, mask=allowed, return_weights=True)
        np.testing.assert_allclose(out, expected.detach(), rtol=0, atol=1e-10)
        np.testing.assert_allclose(weights, shares.detach(), rtol=0, atol=1e-10)


@masks
@with_bias
def test_gradients_equal_pytorch(rng, bias, which):
    """In queries, keys, values and every parameter."""
    original, given = peer(bias), [a.requires_grad_() for a in sequences(rng, True)]
    shut, mask = masked(rng, which, 7)
    layer = attnbook.torch.MultiHeadAttention.from_pytorch(original)
    cotangent = torch.from_numpy(rng.normal(size=(2, 5, 12)))
    slopes = []
    for out in (original(*given, **shut)[0], layer(*given, mask=mask)):
        (out * cotangent).sum().backward()
        slopes.append([a.grad.clone() for a in given])
        for a in given:
            a.grad = None
    torch.testing.assert_close(*slopes, rtol=0, atol=1e-10)
    for kind in ("weight", "bias") if bias else ("weight",):
        found = [layer.get_parameter(f"{p}.{kind}").grad for p in (*PARTS, "output")]
        together = getattr(original, f"in_proj_{kind}").grad
        torch.testing.assert_close(torch.cat(found[:3]), together, rtol=0, atol=1e-10)
        output = getattr(original.out_proj, kind).grad
        torch.testing.assert_close(found[3], output, rtol=0, atol=1e-10)


@pytest.mark.parametrize("shape", [None, (5, 7)], ids=["no mask", "mask"])
@with_bias
def test_equals_equinox(rng, bias, shape):
    """The same parameters under Equinox's names; forward and in the gradient of the queries."""
    made = layer_harness.Library("jax")
    import equinox as eqx

    jax, jnp = made.backend.jax, made.backend.xp
    layer = made.scaled_up("MultiHeadAttention", 12, 4, bias=bias)
    used = {f"use_{part}_bias": bias for part in (*PARTS, "output")}
    original = eqx.nn.MultiheadAttention(4, 12, **used, key=jax.random.key(0))
    for path, array in made.parameters(layer).items():
        where = functools.partial(layer_harness.part, name=path.replace(".", "_proj."))
        original = eqx.tree_at(where, original, jnp.asarray(array))
    q, k, v = (jnp.asarray(rng.normal(size=(n, 12))) for n in (5, 7, 7))
    mask = None if shape is None else jnp.asarray(rng.random(shape) < 0.6).at[:, 0].set(True)
    expected = original(q, k, v, mask=mask)
    np.testing.assert_allclose(layer(q, k, v, mask=mask), expected, rtol=0, atol=1e-10)
    ours = jax.grad(lambda q: (layer(q, k, v, mask=mask) ** 2).sum())(q)
    theirs = jax.grad(lambda q: (original(q, k, v, mask=mask) ** 2).sum())(q)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)
    assert np.abs(ours).max() > 0.01


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@with_bias
def test_from_pytorch_copies(bias, dtype):
    """Bit for bit, in the dtype it has; what one of them learns the other does not see."""
    original = peer(bias, dtype=getattr(torch, dtype))
    layer = attnbook.torch.MultiHeadAttention.from_pytorch(original)
    assert type(layer) is attnbook.torch.MultiHeadAttention
    assert (layer.embed_dim, layer.num_heads, layer.num_kv_heads, layer.bias) == (12, 4, 4, bias)
    kinds = ("weight", "bias") if bias else ("weight",)
    names = {f"{p}.{k}" for k in kinds for p in (*PARTS, "output")}
    assert set(dict(layer.named_parameters())) == names
    for kind in kinds:
        copied = [getattr(getattr(layer, part), kind) for part in PARTS]
        kept = getattr(original, f"in_proj_{kind}").detach().clone()
        torch.testing.assert_close(torch.cat(copied), kept, rtol=0, atol=0)
        output = getattr(layer.output, kind)
        torch.testing.assert_close(output, getattr(original.out_proj, kind), rtol=0, atol=0)
        with torch.no_grad():
            for parameter in (*copied, output):
                assert parameter.requires_grad
                parameter.zero_()
        torch.testing.assert_close(getattr(original, f"in_proj_{kind}"), kept, rtol=0, atol=0)
        assert getattr(original.out_proj, kind).abs().min() > 0


@pytest.mark.parametrize("training", [True, False])
def test_from_pytorch_keeps_mode_and_dropout(training):
    original = peer(dropout=0.3).train(training)
    layer = attnbook.torch.MultiHeadAttention.from_pytorch(original)
    assert layer.dropout == 0.3
    assert [m.training for m in layer.modules()] == [training] * 5
    assert original.training == training
    x = torch.ones(1, 3, 12, dtype=torch.float64)
    torch.manual_seed(0)
    assert torch.equal(layer(x), layer(x)) == (not training)


def test_from_pytorch_takes_sequences_first_too(rng):
    """batch_first says how the other layer is called; ours has the batch first."""
    original, (x, _, _) = peer(batch_first=False), sequences(rng, False)
    layer = attnbook.torch.MultiHeadAttention.from_pytorch(original)
    expected = original(*[x.transpose(0, 1)] * 3)[0].transpose(0, 1)
    torch.testing.assert_close(layer(x), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("option", ["kdim", "vdim", "add_bias_kv", "add_zero_attn"])
@with_bias
def test_from_pytorch_refuses(option, bias):
    how = {option: True if option.startswith("add") else 7}
    original = torch.nn.MultiheadAttention(12, 4, bias=bias, **how)
    with pytest.raises(ValueError, match="original: got kdim, vdim, add_bias_kv or add_zero_attn"):
        attnbook.torch.MultiHeadAttention.from_pytorch(original)


@pytest.mark.parametrize("stranger", [None, 3, torch.nn.Linear(2, 3)])
def test_from_pytorch_refuses_strangers(stranger):
    message = rf"original: got {type(stranger).__name__}, expected a torch.nn.MultiheadAttention"
    with pytest.raises(TypeError, match=message):
        attnbook.torch.MultiHeadAttention.from_pytorch(stranger)
