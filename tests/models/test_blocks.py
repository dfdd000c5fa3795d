"""Norms, the MLP, the residual step and both blocks as functions: by hand, and against their loops."""

from types import SimpleNamespace

import backends
import numpy as np
import pytest
import reference_blocks

from attnbook.layers import norms
from attnbook.models import blocks

OWNERS = [0, 1, 2]
NORMS = {"layer": norms.layer_norm, "rms": norms.rms_norm}
each_norm = pytest.mark.parametrize("name", NORMS)


def assert_close(out, expected, atol=1e-12):
    np.testing.assert_allclose(out, expected, rtol=1e-11, atol=atol)


def apply_layer_norm(name, x, weight=None, bias=None, eps=1e-5):
    """The loop's answer, token by token."""
    weight = np.ones(x.shape[-1]) if weight is None else weight
    bias = np.zeros(x.shape[-1]) if bias is None else bias
    given = {"norm.weight": weight, "norm.bias": bias}
    return reference_blocks.normed(given, "norm", x, name == "rms", eps)


def test_layer_norm_by_hand(backend):
    """Mean 4 and variance 1, with ε = 3 a root of 2; equal entries are 0."""
    x, g, b = np.array([[3.0, 5], [4, 4], [13, 15]]), np.array([2.0, 3]), np.array([10.0, 20])
    out = backend.call(norms.layer_norm, x, eps=3)
    np.testing.assert_array_equal(out, [[-0.5, 0.5], [0, 0], [-0.5, 0.5]])
    out = backend.call(norms.layer_norm, x, g, b, eps=3)
    np.testing.assert_array_equal(out, [[9, 21.5], [10, 20], [9, 21.5]])
    out = backend.call(norms.layer_norm, x, None, b, eps=3)
    np.testing.assert_array_equal(out, [[9.5, 20.5], [10, 20], [9.5, 20.5]])


def test_rms_norm_by_hand(backend):
    """Squares 1 and 49 have the mean 25, with ε = 11 a root of 6; the mean stays."""
    x, g = np.array([[1.0, 7], [5, 5], [0, 0]]), np.array([2.0, 3])
    out = backend.call(norms.rms_norm, x, eps=11)
    assert_close(out, [[1 / 6, 7 / 6], [5 / 6, 5 / 6], [0, 0]])
    assert_close(backend.call(norms.rms_norm, x, g, eps=11), [[1 / 3, 3.5], [5 / 3, 2.5], [0, 0]])


@pytest.mark.parametrize("lead", [(), (5,), (2, 3)])
@each_norm
def test_norms_equal_the_loop(backend, rng, name, lead):
    x = 1.5 + 3 * rng.normal(size=(*lead, 7))
    weight, bias = rng.normal(size=(2, 7))
    for given in ((), (weight,), *([(weight, bias), (None, bias)] if name == "layer" else [])):
        for how in ({}, {"eps": 0.7}):
            out = backend.call(NORMS[name], x, *given, **how)
            assert out.shape == x.shape
            assert_close(out, apply_layer_norm(name, x, *given, **how))


@each_norm
def test_norms_equal_pytorch(rng, name):
    """Forward and in the gradients of tokens, weight and bias."""
    torch = backends.load_or_skip("torch").xp
    shapes = (5, 7), 7, 7, (5, 7)
    x, weight, bias, cotangent = (torch.from_numpy(rng.normal(size=s)) for s in shapes)
    given = [a.requires_grad_() for a in ([x, weight, bias] if name == "layer" else [x, weight])]
    theirs = getattr(torch.nn.functional, f"{name}_norm")
    for eps in (1e-5, 0.3):
        out, expected = NORMS[name](*given, eps=eps), theirs(x, (7,), *given[1:], eps=eps)
        torch.testing.assert_close(out, expected, rtol=0, atol=1e-12)
        gradients = (torch.autograd.grad((a * cotangent).sum(), given) for a in (out, expected))
        for ours, right in zip(*gradients, strict=True):
            torch.testing.assert_close(ours, right, rtol=0, atol=1e-12)
    ours, right = NORMS[name](x), theirs(x, (7,), eps=1e-5)
    torch.testing.assert_close(ours, right, rtol=0, atol=1e-12)


@each_norm
def test_gradients_by_hand(differentiable, rng, name):
    """With n = x̂, the slope in x is (c − mean(c) − n mean(c n)) / root; rms norm has no mean(c)."""
    x, weight, bias = rng.normal(size=(5, 7)), *rng.normal(size=(2, 7))
    cotangent = rng.normal(size=(5, 7))
    move = differentiable.array
    arrays = (x, weight, bias) if name == "layer" else (x, weight)
    out = differentiable.gradient(
        lambda *a: (NORMS[name](*a, eps=0.3) * move(cotangent)).sum(), *arrays
    )
    n, c = apply_layer_norm(name, x, eps=0.3), cotangent * weight
    centred = x - x.mean(-1, keepdims=True) if name == "layer" else x
    root = np.sqrt((centred**2).mean(-1, keepdims=True) + 0.3)
    slope = c - n * (c * n).mean(-1, keepdims=True)
    slope -= c.mean(-1, keepdims=True) if name == "layer" else 0
    expected = slope / root, (cotangent * n).sum(0), cotangent.sum(0)
    for ours, right in zip(out, expected, strict=False):
        assert_close(ours, right)


def test_what_norms_do_not_see(backend, rng):
    """Layer norm neither shift nor scale; rms norm no scale; and no token sees another."""
    x = rng.normal(size=(5, 7))
    layer, rms = (backend.call(f, x, eps=1e-30) for f in (norms.layer_norm, norms.rms_norm))
    assert_close(backend.call(norms.layer_norm, 3 * x + 5, eps=1e-30), layer)
    assert_close(backend.call(norms.rms_norm, 3 * x, eps=1e-30), rms)
    assert np.abs(backend.call(norms.rms_norm, x + 5, eps=1e-30) - rms).max() > 0.5
    assert_close(layer.mean(-1), 0)
    assert_close((layer**2).mean(-1), 1)
    assert_close((rms**2).mean(-1), 1)
    assert_close(backend.call(norms.rms_norm, x - x.mean(-1, keepdims=True), eps=1e-30), layer)
    other = x.copy()
    other[3] = 1e3
    for function in NORMS.values():
        before, after = (backend.call(function, a) for a in (x, other))
        np.testing.assert_array_equal(np.delete(after, 3, 0), np.delete(before, 3, 0))


@each_norm
def test_half_precision(backend, rng, name):
    """Squares of 3000 overflow float16, and means of 101 of them lose their digits in it."""
    for dtype in ("float32", *backend.half):
        drawn = 100 + 3000 * rng.normal(size=(5, 101)), *(1 + 0.1 * rng.normal(size=(2, 101)))
        x, weight, bias = (backend.cast(backend.array(a), dtype) for a in drawn)
        given = (x, weight, bias) if name == "layer" else (x, weight)
        out = NORMS[name](*given)
        assert backend.dtype(out) == dtype
        exact = [backend.numpy(backend.cast(a, "float64")) for a in given]
        unit = {"float32": 2.0**-22, "float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
        out = backend.numpy(backend.cast(out, "float64"))
        np.testing.assert_allclose(out, apply_layer_norm(name, *exact), rtol=unit, atol=unit)


def test_float64_weights_of_float32_tokens(backend, rng):
    x, weight, bias = rng.normal(size=(5, 7)).astype(np.float32), *rng.normal(size=(2, 7))
    for function, given in ((norms.layer_norm, (x, weight, bias)), (norms.rms_norm, (x, weight))):
        assert backend.call(function, *given).dtype == np.float32


@each_norm
def test_norms_bad_input(backend, name):
    function, x = NORMS[name], np.ones((5, 7))
    for eps in (0, -1e-5, float("nan")):
        with pytest.raises(ValueError, match=f"eps: got {eps}, expected a number above 0"):
            backend.call(function, x, eps=eps)
    for wrong, shape in ((x[:, :0], r"\(5, 0\)"), (np.array(1.0), r"\(\)")):
        message = rf"x: got shape {shape}, expected \(\.\.\., e\) with e of"
        with pytest.raises(ValueError, match=message):
            backend.call(function, wrong)
    with pytest.raises(ValueError, match=r"x: got dtype .*int64, expected a floating one"):
        backend.call(function, np.ones((5, 7), int))
    with pytest.raises(TypeError, match="x: got a list, expected a NumPy, PyTorch or JAX array"):
        function([[1.0, 2.0]])
    for argument in ("weight", "bias") if name == "layer" else ("weight",):
        for wrong in (np.ones(5), np.ones((5, 7)), np.ones((1, 7)), np.array(1.0)):
            with pytest.raises(ValueError, match=rf"{argument}: got shape \(.*\), expected \(7,\)"):
                backend.call(function, x, **{argument: wrong})
        message = rf"{argument}: got dtype .*int64, expected a floating"
        with pytest.raises(ValueError, match=message):
            backend.call(function, x, **{argument: np.ones(7, int)})
        with pytest.raises(TypeError, match=f"{argument}: got a list, expected a NumPy, PyTorch"):
            function(backend.array(x), **{argument: [1.0] * 7})
        if backend.name != "numpy":
            message = f"x, {argument}: got arrays of .*, expected one library"
            with pytest.raises(TypeError, match=message):
                function(backend.array(x), **{argument: np.ones(7)})


SIZES = {"attention_norm": (12,), "cross_norm": (12,), "mlp_norm": (12,)}
ATTENTIONS, PARTS = ("attention", "cross_attention"), ("query", "key", "value", "output")
SIZES |= {f"{a}.{p}": (12, 12) for a in ATTENTIONS for p in PARTS}
SIZES |= {"mlp.hidden": (5, 12), "mlp.gate": (5, 12), "mlp.output": (12, 5)}


@pytest.fixture
def parameters(rng):
    """Of a decoder block with a gate; an encoder block and another MLP take a part of them."""
    drawn = {}
    for name, shape in SIZES.items():
        drawn[f"{name}.weight"] = rng.normal(size=shape) / (1 if len(shape) == 1 else 2)
        drawn[f"{name}.bias"] = rng.normal(size=shape[0])
    return drawn


def layer_of(parameters, **how):
    """A layer that is nothing but its parameters."""
    heads = {"embed_dim": 12, "num_heads": 3, "num_kv_heads": 3}
    attentions = {name: SimpleNamespace(**heads) for name in ATTENTIONS}
    layer = SimpleNamespace(**attentions, mlp=SimpleNamespace(**how), **how)
    for path in SIZES:
        *owner, name = path.split(".")
        owned = getattr(layer, owner[0]) if owner else layer
        weight, bias = parameters[f"{path}.weight"], parameters[f"{path}.bias"]
        setattr(owned, name, SimpleNamespace(weight=weight, bias=bias, eps=1e-5))
    return layer


def run(backend, parameters, function, *arrays, **how):
    """function(layer, *arrays), with the layer's parameters in the library's arrays."""
    names = tuple(parameters)

    def called(*given):
        tensors, rest = given[: len(names)], given[len(names) :]
        return function(layer_of(dict(zip(names, tensors, strict=True)), **how), *rest)

    return backend.call(called, *parameters.values(), *arrays)


def test_mlp_by_hand(backend):
    """W₁ x + b₁ = (−1, 2, 0) of x = (1, −2): relu keeps the 2; a gate of 40 is the line."""
    matrices = {
        "hidden": ([[1.0, 1], [0, -1], [2, 1]], [0.0, 0, 0]),
        "gate": ([[0.0, 0]] * 3, [40.0, -1000, 40]),
        "output": ([[1.0, 10, 100], [0, 5, 0]], [0.5, 0.25]),
    }
    for activation, expected in (("relu", [20.5, 10.25]), ("swiglu", [-39.5, 0.25])):

        def function(x, *given, activation=activation):
            pairs = zip(given[::2], given[1::2], strict=True)
            linear = (SimpleNamespace(weight=w, bias=b) for w, b in pairs)
            parts = dict(zip(matrices, linear, strict=True))
            return blocks.mlp(SimpleNamespace(activation=activation, **parts), x)

        arrays = [np.array(a) for pair in matrices.values() for a in pair]
        assert_close(backend.call(function, np.array([1.0, -2]), *arrays), expected)


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu", "swiglu"])
def test_mlp_equals_the_loop(backend, rng, parameters, activation):
    """And what drops sees the hidden layer: with all of it dropped the bias is left."""
    x, own = rng.normal(size=(2, 7, 12)), reference_blocks.own(parameters, "mlp")
    seen = []

    def function(layer, x, *drop):
        return blocks.mlp(layer.mlp, x, *drop)

    def drop(hidden):
        seen.append(hidden.shape)
        return 0 * hidden

    out = run(backend, parameters, function, x, activation=activation)
    assert_close(out, reference_blocks.rows(lambda r: reference_blocks.mlp(own, activation, r), x))
    out = run(backend, parameters, function, x, drop, activation=activation)
    assert_close(out, np.broadcast_to(own["output.bias"], (2, 7, 12)))
    assert seen == [(2, 7, 5)]


def test_residual_by_hand(backend):
    """x = (3, 5), doubled. Before: n = (−1, 1)/2 is read. After: (9, 15) has mean 12, variance 9."""

    def run_it(placement, eps, drop=None, weight=None, bias=None):
        norm = SimpleNamespace(weight=weight, bias=bias, eps=eps)
        return lambda x: blocks.residual(norm, placement, lambda x: 2 * x, x, drop)

    x = np.array([[3.0, 5]])
    assert_close(backend.call(run_it("pre", 3), x), [[2, 6]])
    assert_close(backend.call(run_it("post", 16), x), [[-0.6, 0.6]])
    assert_close(backend.call(run_it("pre", 3, lambda a: 10 * a), x), [[-7, 15]])
    assert_close(backend.call(run_it("post", 3, lambda a: 0 * a), x), [[-0.5, 0.5]])

    def scaled(placement, eps):
        return lambda x, g, b: run_it(placement, eps, None, g, b)(x)

    given = x, np.array([2.0, 3]), np.array([10.0, 20])
    assert_close(backend.call(scaled("pre", 3), *given), [[3 + 18, 5 + 43]])
    assert_close(backend.call(scaled("post", 16), *given), [[10 - 1.2, 20 + 1.8]])


@pytest.mark.parametrize("activation", ["gelu", "gelu_tanh", "relu", "swiglu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("cross", [False, True], ids=["encoder", "decoder"])
def test_blocks_equal_the_loop(backend, rng, parameters, cross, norm, activation):
    """With the weights of an AttentionSublayer that keeps them; one that does not has none."""
    x, mask = rng.normal(size=(2, 5, 12)), np.tril(np.ones((5, 5), bool))
    memory, memory_mask = rng.normal(size=(2, 7, 12)), rng.random((2, 1, 7)) < 0.6

    def function(layer, x, mask, memory, memory_mask, return_weights=True):
        how = {"return_weights": True} if return_weights else {}
        own = blocks.AttentionSublayer(layer.attention, mask=mask, **how)
        if not cross:
            out = blocks.encoder_block(layer, x, own)
            return (out, own.weights) if return_weights else out
        other = blocks.AttentionSublayer(layer.cross_attention, memory, memory_mask, return_weights)
        out = blocks.decoder_block(layer, x, own, other)
        assert (own.weights is None) is (other.weights is None) is (not return_weights)
        return (out, own.weights, other.weights) if return_weights else out

    given, config = (x, mask, memory, memory_mask), {"norm": norm, "activation": activation}
    found = run(backend, parameters, function, *given, **config)
    for b in range(2):
        read = (memory[b], memory_mask[b]) if cross else ()
        how = OWNERS, norm, activation
        expected = reference_blocks.block(parameters, *how, x[b], mask, *read)
        for ours, right in zip(found, expected, strict=True):
            assert_close(ours[b], right, 1e-11)
    alone = run(
        backend, parameters, lambda *a: function(*a, return_weights=False), *given, **config
    )
    assert_close(alone, found[0])


def test_what_drops_is_told_every_part(backend, rng, parameters):
    """Attention's weights, what it adds, the hidden layer, what the MLP adds: in this order."""
    x, memory = rng.normal(size=(2, 5, 12)), rng.normal(size=(2, 7, 12))
    seen = []

    def drop(a):
        seen.append(a.shape)
        return 0 * a

    def encoder(layer, x, memory):
        own = blocks.AttentionSublayer(layer.attention, drop=drop)
        return blocks.encoder_block(layer, x, own, drop)

    def decoder(layer, x, memory):
        own = blocks.AttentionSublayer(layer.attention, drop=drop)
        cross = blocks.AttentionSublayer(layer.cross_attention, memory, drop=drop)
        return blocks.decoder_block(layer, x, own, cross, drop)

    stream, ours, theirs, hidden = (2, 5, 12), (2, 3, 5, 5), (2, 3, 5, 7), (2, 5, 5)
    for function, expected in (
        (encoder, [ours, stream, hidden, stream]),
        (decoder, [ours, stream, theirs, stream, hidden, stream]),
    ):
        seen.clear()
        out = run(backend, parameters, function, x, memory, norm="pre", activation="gelu")
        np.testing.assert_array_equal(out, x)  # nothing was added to the stream
        assert seen == expected
