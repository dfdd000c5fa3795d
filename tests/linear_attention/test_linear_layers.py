"""LinearAttention and GatedDelta: loops in NumPy, both back ends, in blocks, and what they refuse."""

import functools

import numpy as np
import pytest
from layer_harness import Library, randomized

from attnbook.linear_attention import linear_heads
from attnbook.models.config import GATES

KINDS = ("linear", "delta", "decay", "gated_delta")
SEEN = np.array([True, False, True, True, False, True])
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


# JAX has the same formulas, and compiles long
each_kind = pytest.mark.parametrize(
    ("library", "kind"),
    [("torch", kind) for kind in KINDS] + [("jax", "linear"), ("jax", "gated_delta")],
    indirect=["library"],
)


@pytest.fixture
def x(rng):
    return rng.normal(size=(2, 6, 4))


@functools.cache
def compiled():
    """JAX's layers called at once: token by token, every operation compiles alone."""
    eqx = pytest.importorskip("equinox")
    return eqx.filter_jit(lambda layer, args, how: layer(*args, **how))


def called(library, layer, *args, **how):
    if library.name == "torch":
        return library.call(layer, *args, **how)
    arrays, named = [*map(library.moved, args)], {n: library.moved(a) for n, a in how.items()}
    return library.returned(compiled()(layer, arrays, named))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def made(library, kind):
    """A layer of width 4 with two heads, and its parameters."""
    name = "LinearAttention" if kind == "linear" else "GatedDelta"
    gates = dict(zip(("gate", "delta"), GATES.get(kind, ()), strict=False))
    layer = randomized(library, name, 4, 2, **gates)
    return layer, library.parameters(layer)


def projected(parameters, name, x):
    return x @ parameters[f"{name}.weight"].T + parameters[f"{name}.bias"]


def loop(parameters, kind, x, seen, causal=True):
    """One sequence: every head's output token by token, and its weights by what writes one hot."""
    n, heads, d = len(x), 2, 2
    names = "query", "key", "value"
    q, k, v = (projected(parameters, name, x).reshape(n, heads, d) for name in names)
    known = [name for name in ("decay", "beta") if f"{name}.weight" in parameters]
    joined, shares = np.zeros((n, heads, d)), np.zeros((heads, n, n))
    for h in range(heads):
        if kind == "linear":
            shares[h] = positive(q[:, h], k[:, h], seen, causal)
            joined[:, h] = shares[h] @ v[:, h]
        else:
            one = {name: sigmoid(projected(parameters, name, x))[:, h] for name in known}
            shares[h] = state(q[:, h], k[:, h], np.eye(n), seen, **one)
            found = state(q[:, h], k[:, h], v[:, h], seen, **one)
            size = np.sqrt(np.mean(found**2, axis=-1, keepdims=True) + 1e-5)
            joined[:, h] = found / size * parameters["head_norm.weight"]
    return projected(parameters, "output", joined.reshape(n, -1)), shares


def positive(q, k, seen, causal):
    feature = lambda x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))  # noqa: E731
    products = feature(q) @ feature(k).T * seen
    products = np.tril(products) if causal else products
    total = products.sum(-1, keepdims=True)
    return np.divide(products, total, out=np.zeros_like(products), where=total > 0)


def state(q, k, v, seen, decay=None, beta=None):
    unit = lambda x: x / np.sqrt(np.sum(x**2) + 1e-6)  # noqa: E731
    s, outputs = np.zeros((q.shape[-1], v.shape[-1])), []
    for t in range(len(q)):
        if seen[t]:
            key = unit(k[t] * sigmoid(k[t]))
            s = s if decay is None else decay[t] * s
            u = v[t] if beta is None else beta[t] * (v[t] - s.T @ key)
            s = s + np.outer(key, u)
        outputs.append(s.T @ unit(q[t] * sigmoid(q[t])))
    return np.array(outputs)


@each_kind
def test_equals_the_loop(library, x, kind):
    """Outputs with and without weights, and the weights; hidden keys write nothing."""
    layer, parameters = made(library, kind)
    for seen in (np.ones(6, bool), SEEN):
        right, shares = zip(*(loop(parameters, kind, row, seen) for row in x), strict=True)
        mask = None if seen.all() else seen[None, :]
        out, weights = called(library, layer, x, mask=mask, return_weights=True, causal=True)
        np.testing.assert_allclose(out, right, **CLOSE)
        np.testing.assert_allclose(weights, shares, **CLOSE)
        out = called(library, layer, x, mask=mask, causal=True)
        np.testing.assert_allclose(out, right, **CLOSE)
    one_each = np.stack([SEEN, ~SEEN])  # a row of them for every sequence
    right = [loop(parameters, kind, x[b], one_each[b])[0] for b in (0, 1)]
    out = called(library, layer, x, mask=one_each[:, None, :], causal=True)
    np.testing.assert_allclose(out, right, **CLOSE)


def test_linear_attention_in_both_directions(library, x):
    """All tokens at once, of which a mask hides some; nothing in sight gives heads of 0."""
    layer, parameters = made(library, "linear")
    for seen in (np.ones(6, bool), SEEN, np.zeros(6, bool)):
        each = [loop(parameters, "linear", row, seen, causal=False) for row in x]
        right, shares = zip(*each, strict=True)
        out, weights = called(library, layer, x, mask=seen, return_weights=True)
        np.testing.assert_allclose(out, right, **CLOSE)
        np.testing.assert_allclose(weights, shares, **CLOSE)
        np.testing.assert_allclose(called(library, layer, x, mask=seen), right, **CLOSE)
    assert np.all(weights == 0)


@pytest.mark.parametrize(
    ("library", "kind"),
    [("torch", kind) for kind in KINDS] + [("jax", "gated_delta")],
    indirect=["library"],
)
def test_a_writer_with_it(library, rng, kind):
    """It has a model's options; later tokens and padding do not count; a block's twin is known."""
    sizes = {"embed_dim": 8, "num_heads": 2, "mlp_dim": 5, "num_layers": 2}
    model = randomized(library, "DecoderOnly", 11, 7, attention=kind, **sizes)
    tokens = rng.integers(0, 11, size=(2, 7))
    out, weights = called(library, model, tokens, True)
    assert [w.shape for w in weights] == 2 * [(2, 2, 7, 7)]
    assert all(np.all(np.triu(w, 1) == 0) for w in weights)
    sums = np.array([np.abs(w.sum(axis=-1) - 1).max() for w in weights])
    assert np.all(sums < 1e-12 if kind == "linear" else sums > 0.05)
    np.testing.assert_allclose(called(library, model, tokens), out, **CLOSE)
    np.testing.assert_allclose(called(library, model, tokens[:, :4]), out[:, :4], **CLOSE)
    real = np.arange(7) < np.array([[4], [7]])
    padded = called(library, model, np.where(real, tokens, 3), mask=real)
    np.testing.assert_allclose(padded[real], out[real], **CLOSE)
    other = called(library, model, (tokens + np.array([[1], [0]])) % 11)
    assert np.abs(other[0] - out[0]).max() > 1e-3
    with pytest.raises(ValueError, match=f"model: got one with attention='{kind}', expected 'soft"):
        model.empty(2)


@pytest.mark.parametrize("kind", ["linear", "decay"])
def test_a_block_and_its_twin(rng, kind):
    convert = pytest.importorskip("attnbook.convert")
    torch_library, jax_library = Library("torch"), Library("jax")
    block = randomized(torch_library, "EncoderBlock", 4, 2, 5, attention=kind, dropout=0.3)
    assert block.config.attention == block.attention.attention_name == kind
    twin = convert.torch_to_jax(block)
    back = convert.jax_to_torch(twin)
    assert type(back.attention) is type(block.attention)
    x = rng.normal(size=(2, 6, 4))
    expected = torch_library.call(block, x, causal=True)
    for layer, library in ((twin, jax_library), (back, torch_library)):
        np.testing.assert_allclose(library.call(layer, x, causal=True), expected, **CLOSE)
        assert np.abs(library.call(layer, x, causal=True, seed=1) - expected).max() > 1e-3
    assert np.ptp(expected) > 0.1


def test_decay_starts_near_one(library):
    """So a state lasts for some twenty tokens at first."""
    layer = library.make("GatedDelta", 8, 2)
    np.testing.assert_array_equal(library.parameters(layer)["decay.bias"], [3, 3])
    assert linear_heads.DECAY_START == 3
    assert np.ptp(library.parameters(layer)["beta.bias"]) > 0
    plain = library.make("GatedDelta", 8, 2, gate=False, delta=False, bias=False)
    names = {"query.weight", "key.weight", "value.weight", "output.weight", "head_norm.weight"}
    assert library.parameters(plain).keys() == names


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns(kind):
    """Sixty steps: what stood one place before is told, from the table of what was written."""
    torch = Library("torch").backend.xp
    from attnbook import torch as layers
    from attnbook.models.losses import cross_entropy

    torch.manual_seed(0)
    model = layers.DecoderOnly(5, 12, 16, 2, 16, 1, attention=kind)
    tokens = torch.randint(0, 5, (32, 12))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    found = []
    for _ in range(60):
        loss = cross_entropy(model(tokens)[:, 1:], tokens[:, :-1])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        found.append(loss.item())
    assert found[-1] < 0.5 * found[0]
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def test_half_precision(library, x):
    """Outputs of bfloat16 tokens are near those of float64; decays have float32's digits."""
    for kind in ("linear", "gated_delta"):
        layer, parameters = made(library, kind)
        right = np.array([loop(parameters, kind, row, np.ones(6, bool))[0] for row in x])
        half = library.backend.cast(library.moved(x), "bfloat16")
        if library.name == "torch":
            out = layer(half, causal=True)
        else:
            out = compiled()(layer, (half,), {"causal": True})
        assert library.backend.dtype(out) == "bfloat16"
        near = library.backend.numpy(library.backend.cast(out, "float64"))
        np.testing.assert_allclose(near, right, atol=0.1 * np.abs(right).max())


def test_hooks_act():
    """In PyTorch the projections and the layer are called, so that adapters and hooks act."""
    library = Library("torch")
    block = library.make("EncoderBlock", 4, 2, 5, attention="gated_delta")
    called = []
    for name, module in block.named_modules():
        module.register_forward_hook(lambda *_, name=name: called.append(name))
    block(library.backend.xp.ones(3, 4).double(), causal=True)
    names = {f"attention.{n}" for n in ("query", "key", "value", "output", "decay", "beta")}
    assert names | {"attention", "attention.head_norm"} <= set(called)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"keys": np.ones((2, 6, 4))}, "keys: got other tokens than the queries, expected None"),
        ({"values": np.ones((2, 6, 4))}, "values: got other tokens than the queries"),
        ({"mask": np.ones((6, 6), bool)}, r"mask: got shape \(6, 6\), expected \(..., 1, n\)"),
        ({"mask": np.ones((1, 5), bool)}, r"mask: got shape \(1, 5\), expected one that fits"),
        ({"causal": 1}, "causal: got 1, expected True or False"),
    ],
)
def test_what_a_state_cannot_do(library, x, how, words):
    for kind in ("linear", "delta"):
        with pytest.raises(ValueError, match=words):
            library.call(made(library, kind)[0], x, **{"causal": True} | how)
    with pytest.raises(ValueError, match="causal: got False, expected True: a state is written in"):
        library.call(made(library, "decay")[0], x)
    layer = made(library, "linear")[0]
    x = library.moved(x)
    layer(x, x, x)  # the same tokens are no others


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"attention": "delta", "num_kv_heads": 1}, "num_kv_heads: got 1 with attention='delta'"),
        ({"attention": "linear", "rotary_base": 10.0}, "rotary_base: got 10.0 with attention='lin"),
    ],
)
def test_options_that_do_not_fit(library, how, words):
    for name, sizes in (("EncoderBlock", (4, 2, 5)), ("DecoderOnly", (11, 7, 4, 2, 5))):
        with pytest.raises(ValueError, match=words):
            library.make(name, *sizes, **how)
