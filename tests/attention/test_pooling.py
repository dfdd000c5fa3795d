"""Attention pooling: token by token, padded, and what is no token."""

import operator
from types import SimpleNamespace

import backends
import numpy as np
import pytest
import reference

from attnbook import convert, padding_mask
from attnbook.attention.pooling import pool

SIZES = {"embed_dim": 2, "key_dim": 3, "hidden_dim": 5}
LINEAR = {"key": (3, 2), "value_hidden": (5, 2), "value_out": (1, 5), "head_hidden": (5, 1)}
SHAPES = {"embedding.weight": (11, 2), "query": (1, 3)}
for name, shape in (LINEAR | {"head_out": (1, 5)}).items():
    SHAPES |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


class Plain(SimpleNamespace):
    """A layer that is only its parameters."""

    def __call__(self, tokens, mask=None, return_weights=False):
        return pool(self, tokens, mask, return_weights)


class Pooling:
    """A layer of one library as a function of NumPy arrays, and its parameters."""

    def __init__(self, name):
        if name.partition("-")[0] not in backends.chosen():
            pytest.skip(f"{name} is not among the back ends of this run")
        self.backend = backends.load(name)
        self.layer = self.run = getattr(self, name.partition("-")[0])()
        if name == "jax-jit":
            import equinox

            self.run = equinox.filter_jit(self.layer)
        found = {n: operator.attrgetter(n)(self.layer) for n in SHAPES}
        self.parameters = {n: self.backend.numpy(p) for n, p in found.items()}

    def numpy(self):
        rng, layer = np.random.default_rng(5), Plain(vocab_size=11)
        for name, shape in SHAPES.items():
            owner, _, last = name.rpartition(".")
            part = vars(layer).setdefault(owner, SimpleNamespace()) if owner else layer
            setattr(part, last, rng.normal(size=shape))
        return layer

    def torch(self):
        module = pytest.importorskip("attnbook.torch")
        self.backend.xp.manual_seed(5)
        layer = module.AttentionPooling(11, **SIZES).double()
        with self.backend.xp.no_grad():  # so that weights and logits are far from even
            for parameter in layer.parameters():
                parameter.mul_(2)
        return layer

    def jax(self):
        module, jax = pytest.importorskip("attnbook.jax"), self.backend.jax
        layer = module.AttentionPooling(11, **SIZES, key=jax.random.key(5))
        return jax.tree.map(lambda x: 2 * x, layer)

    def __call__(self, tokens, mask=None, **how):
        mask = None if mask is None else self.backend.array(mask)
        out = self.run(self.backend.array(np.array(tokens)), mask, **how)
        return (
            tuple(map(self.backend.numpy, out))
            if isinstance(out, tuple)
            else self.backend.numpy(out)
        )


@pytest.fixture(scope="module", params=["numpy", "torch", "jax", "jax-jit"])
def call(request):
    return Pooling(request.param)


@pytest.fixture(scope="module", params=["torch", "jax"])
def layer(request):
    return Pooling(request.param)


@pytest.fixture(params=["torch", "jax"])
def make(request):
    """AttentionPooling of a library, with a random key that JAX takes."""
    if request.param not in backends.chosen():
        pytest.skip(f"{request.param} is not among the back ends of this run")
    backend, module = backends.load(request.param), pytest.importorskip(f"attnbook.{request.param}")

    def function(seed=0, **how):
        if request.param == "jax":
            return module.AttentionPooling(**how, key=backend.jax.random.key(seed))
        backend.xp.manual_seed(seed)
        return module.AttentionPooling(**how)

    return function


def loop(parameters, tokens, mask):
    """Logits, weights and values of every sequence."""
    results = [
        reference.attention_pooling(parameters, row, allowed)
        for row, allowed in zip(tokens.tolist(), mask.tolist(), strict=True)
    ]
    return [np.array([r[i] for r in results]) for i in range(3)]


@pytest.mark.parametrize("lengths", [[7, 7, 7], [7, 1, 0]])
def test_equals_the_loop(call, rng, lengths):
    """With a padding mask too; a sequence of no token has weights 0, and the head's value at 0."""
    tokens = rng.integers(0, 11, size=(3, 7))
    mask = padding_mask(np.array(lengths), 7)
    expected = loop(call.parameters, tokens, mask[:, 0, :])
    outs = call(tokens, None if min(lengths) == 7 else mask, return_weights=True)
    for out, right in zip(outs, expected, strict=True):
        assert out.shape == right.shape
        np.testing.assert_allclose(out, right, rtol=1e-11, atol=1e-13)
    alone = call(tokens, mask)
    np.testing.assert_allclose(alone, expected[0], rtol=1e-11, atol=1e-13)
    assert np.ptp(expected[1][0]) > 0.01
    assert np.ptp(expected[0]) > 0.01


def test_one_sequence_and_a_batch_of_batches(call, rng):
    """(n,) gives a number, (2, 3, n) gives (2, 3): each sequence by itself."""
    tokens = rng.integers(0, 11, size=(2, 3, 7))
    out = call(tokens)
    assert out.shape == (2, 3)
    for i, j in np.ndindex(2, 3):
        one, weights, values = call(tokens[i, j], return_weights=True)
        assert (one.shape, weights.shape, values.shape) == ((), (7,), (7,))
        np.testing.assert_allclose(one, out[i, j], rtol=1e-12)


def test_padding_does_not_count_at_all(call, rng):
    """Any tokens in the padding: exactly the same logit; cut off: the same to rounding."""
    tokens = rng.integers(0, 11, size=(3, 7))
    mask = padding_mask(np.array([5, 3, 1]), 7)
    before, weights, _ = call(tokens, mask, return_weights=True)
    other = np.where(mask[:, 0, :], tokens, (tokens + 5) % 11)
    assert (other != tokens).sum() == 2 + 4 + 6
    np.testing.assert_array_equal(call(other, mask), before)
    np.testing.assert_array_equal(weights[~mask[:, 0, :]], 0)
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-12)
    for row, length, logit in zip(tokens, (5, 3, 1), before, strict=True):
        np.testing.assert_allclose(call(row[:length]), logit, rtol=1e-11)


def test_the_order_of_tokens_does_not_matter(call, rng):
    tokens = rng.integers(0, 11, size=(3, 7))
    order = rng.permutation(7)
    before, weights, values = call(tokens, return_weights=True)
    after, moved, _ = call(tokens[:, order], return_weights=True)
    np.testing.assert_allclose(after, before, rtol=1e-12)
    np.testing.assert_allclose(moved, weights[:, order], rtol=1e-12)
    for row in range(3):  # the same token has the same value wherever it stands
        for token in np.unique(tokens[row]):
            assert np.ptp(values[row][tokens[row] == token]) < 1e-14


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_every_kind_of_integer(call, rng, dtype):
    tokens = rng.integers(0, 11, size=(3, 7))
    assert (tokens.min(), tokens.max()) == (0, 10)
    np.testing.assert_array_equal(call(tokens.astype(dtype)), call(tokens))


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([[0, 11]], "tokens: got 0 to 11, expected 0 to 10"),
        ([[-1, 3]], "tokens: got -1 to 3, expected 0 to 10"),
        ([[0.0, 1.0]], r"tokens: got dtype .*float64, shape \(1, 2\), expected integers"),
        ([[True, False]], r"tokens: got dtype .*bool, shape \(1, 2\), expected integers"),
        (3, r"tokens: got dtype .*int64, shape \(\), expected integers of shape"),
    ],
)
def test_bad_tokens(layer, tokens, message):
    with pytest.raises(ValueError, match=message):
        layer(np.array(tokens))
    with pytest.raises(TypeError, match="tokens: got a list, expected a NumPy, PyTorch or JAX"):
        layer.layer([1, 2])


def test_a_mask_must_fit(layer, rng):
    tokens = rng.integers(0, 11, size=(3, 7))
    with pytest.raises(ValueError, match=r"mask: got shape \(3, 7\), expected one that fits"):
        layer(tokens, np.ones((3, 7), dtype=bool))


@pytest.mark.parametrize("name", ["vocab_size", "embed_dim", "key_dim", "hidden_dim"])
@pytest.mark.parametrize("size", [0, -1, 2.5, None])
def test_bad_sizes(make, name, size):
    how = {"vocab_size": 11, **SIZES, name: size}
    with pytest.raises(ValueError, match=f"{name}: got {size}, expected an integer"):
        make(**how)


def test_sizes_and_their_names(make):
    """Every parameter's shape, and the sizes that a conversion reads."""
    layer = make(vocab_size=11, **SIZES)
    for name, shape in SHAPES.items():
        assert tuple(operator.attrgetter(name)(layer).shape) == shape, name
    assert (layer.vocab_size, layer.embed_dim, layer.key_dim, layer.hidden_dim) == (11, 2, 3, 5)
    assert {n: getattr(make(vocab_size=13), n) for n in SIZES} == dict(
        embed_dim=16, key_dim=32, hidden_dim=32
    )


def test_starts_differ_from_part_to_part(make):
    """Another seed gives another layer, the same seed the same; no two parts begin alike."""
    how = dict(vocab_size=3, embed_dim=3, key_dim=3, hidden_dim=3)
    one, same, other = (
        [np.asarray(operator.attrgetter(n)(make(seed, **how)).tolist()) for n in SHAPES]
        for seed in (0, 0, 1)
    )
    for a, b, c in zip(one, same, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.all(a != c)
    drawn = np.concatenate([a.ravel() for a in one])
    assert len(np.unique(drawn)) == len(drawn)
    assert 0.1 < np.abs(drawn).mean() < 1


def test_gradients_agree(rng):
    """Of every parameter, torch = JAX; those of tokens that do not occur are 0."""
    jax_layer, torch = Pooling("jax").layer, Pooling("torch").backend.xp
    import equinox as eqx

    tokens = rng.integers(0, 7, size=(3, 7))
    layer = convert.jax_to_torch(jax_layer)
    loss = (layer(torch.from_numpy(tokens)) ** 2).sum()
    ours = torch.autograd.grad(loss, [layer.get_parameter(n) for n in SHAPES])
    seen = Pooling("jax").backend.array(tokens)
    theirs = eqx.filter_jit(eqx.filter_grad(lambda layer: (layer(seen) ** 2).sum()))(jax_layer)
    for name, gradient in zip(SHAPES, ours, strict=True):
        expected = operator.attrgetter(name)(theirs)
        np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-9, atol=1e-12)
        # the keys' shift is the same for all tokens: the softmax does not see it
        assert (gradient.abs().max() > 1e-6) == (name != "key.bias"), name
    assert not ours[0][7:].any()
