"""What GPT-2, Llama and BERT have each their own of: the options of blocks and of models of them."""

import types

import numpy as np
import pytest
import reference_heads
import reference_transformers
from layer_harness import Library, part, randomized, with_parameters
from test_transformer import compiled

from attnbook import convert
from attnbook.attention import heads, positions
from attnbook.layers import norms
from attnbook.models import kv_cache

BLOCK = {"embed_dim": 16, "num_heads": 4, "mlp_dim": 5}
SIZES = BLOCK | {"num_layers": 2}
MODELS = {
    "EncoderOnly": SIZES | {"input_dim": 2, "output_dim": 5},
    "DecoderOnly": SIZES | {"vocab_size": 11, "max_length": 7},
}
DEFAULTS = {"bias": True, "rms_norm": False, "eps": 1e-5, "rotary_base": None}
LLAMA = {
    "bias": False,
    "rms_norm": True,
    "activation": "swiglu",
    "num_kv_heads": 2,
    "eps": 0.1,
    "rotary_base": 20.0,
}
OPTIONS = {
    "num_kv_heads": {"num_kv_heads": 2},
    "bias": {"bias": False},
    "rms_norm": {"rms_norm": True},
    "eps": {"eps": 0.1, "norm": "post"},
    "rotary_base": {"rotary_base": 20.0},
    "gelu_tanh": {"activation": "gelu_tanh"},
    "as in Llama": LLAMA,
}
KINDS = {
    "pre, gelu": {},
    "post, relu": {"norm": "post", "activation": "relu"},
    "pre, swiglu": {"activation": "swiglu"},
}
TIED = {"tied": {"tied": True}, "as in Llama, tied": LLAMA | {"tied": True}}


def each(cases, *in_jax):
    """A library, and what a model is made with; JAX has the same formulas, and compiles long."""
    pairs = {f"torch, {name}": ("torch", how) for name, how in cases.items()}
    pairs |= {f"jax, {name}": ("jax", cases[name]) for name in in_jax}
    names = "library", "how"
    return pytest.mark.parametrize(names, pairs.values(), ids=pairs, indirect=["library"])


encoders = each(KINDS | OPTIONS, *KINDS, "as in Llama")
decoders = each(KINDS | OPTIONS | TIED, *KINDS, "bias", "as in Llama, tied")
MASKS = {"no mask": None, "one for all": (5, 5), "padding": (2, 1, 5), "one per pair": (2, 5, 5)}
LENGTHS = np.array([2, 5])
REAL = np.arange(7) < LENGTHS[:, None]  # of two rows of tokens


@pytest.fixture
def x(rng):
    return rng.normal(size=(2, 5, 12))


@pytest.fixture
def tokens(rng):
    return rng.integers(0, 11, size=(2, 7))


def assert_close(out, expected, tolerance=1e-11):
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)


def make(library, name, **how):
    """A model, what it was made with, and its parameters."""
    sizes = MODELS[name] | {"norm": "pre", "activation": "gelu"} | how
    model = randomized(library, name, **sizes)
    return model, sizes, library.parameters(model)


def others(sizes, how):
    """What it was made with, but for one option that the parameters do not show."""
    seen = {"eps": 1e-5, "rotary_base": 10_000.0, "activation": "gelu", "rms_norm": False}
    wrong = {name: seen[name] for name in how if name in seen}
    wrong = wrong if how.get("activation") != "swiglu" else wrong | {"activation": "swiglu"}
    return [sizes | {name: value} for name, value in wrong.items() if sizes[name] != value]


@pytest.mark.parametrize("num_layers", [1, 3])
@decoders
def test_decoder_only_equals_the_loop(library, tokens, how, num_layers):
    """Logits and weights; with another option in its place the loop gives something else."""
    model, sizes, parameters = make(library, "DecoderOnly", **how, num_layers=num_layers)
    assert ("readout.weight" in parameters) == ("tied" not in how)
    assert ("position" in parameters) == ("rotary_base" not in how)
    out, weights = library.call(model, tokens[:, :5], True)
    assert (type(weights), len(weights)) == (list, num_layers)
    for b in range(2):
        right, shares = reference_transformers.decoder_only(parameters, sizes, tokens[b, :5])
        assert_close(out[b], right)
        assert_close(np.array(weights)[:, b], np.array(shares))
    assert_close(library.call(model, tokens[:, :5]), out, 1e-12)
    assert np.ptp(out) > 1
    for wrong in others(sizes, how):
        other, _ = reference_transformers.decoder_only(parameters, wrong, tokens[0, :5])
        assert np.abs(other - out[0]).max() > 1e-4


@pytest.mark.parametrize("shape", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("last_norm", [True, False])
@encoders
def test_encoder_only_equals_the_loop(library, rng, how, last_norm, shape):
    """What is said and the weights of every layer; learned positions stay beside rotary ones."""
    vectors, mask = rng.normal(size=(2, 5, 2)), None if shape is None else rng.random(shape) < 0.7
    for max_length in (7, None):
        given = how | {"last_norm": last_norm, "max_length": max_length}
        model, sizes, parameters = make(library, "EncoderOnly", **given)
        assert ("encoder_norm.weight" in parameters) == last_norm
        assert ("position" in parameters) == (max_length == 7)
        out, weights = library.call(model, vectors, mask, True)
        assert type(weights) is list
        for b in range(2):
            one = reference_heads.of_each(mask, b)
            right, shares = reference_transformers.encoder_only(parameters, sizes, vectors[b], one)
            assert_close(out[b], right)
            assert_close(np.array(weights)[:, b], np.array(shares))
        assert_close(library.call(model, vectors, mask), out, 1e-12)


@decoders
def test_the_cache_equals_the_full_pass(library, tokens, how):
    """Step by step to the last place; in JAX the whole loop under jit as well."""
    model, sizes, _ = make(library, "DecoderOnly", **how)
    full = library.call(model, tokens)

    def stepped(model, tokens):
        cache, found = model.empty(2), []
        for t in range(7):
            cache, logits = model.step(cache, tokens[:, t])
            found.append(logits)
        return cache, tuple(found)

    for function in {stepped, compiled(library, stepped)}:
        cache, found = function(model, library.moved(tokens))
        assert_close(np.stack(library.returned(found), axis=1), full, 1e-12)
        assert library.returned(cache.length).tolist() == [7, 7]
    shape = (2, 2, sizes.get("num_kv_heads", 4), 7, 4)
    assert tuple(cache.keys.shape) == tuple(cache.values.shape) == shape


@decoders
def test_rows_of_different_lengths(library, tokens, how):
    """A batch of one row with two tokens and one with five: each goes on as if alone."""
    model, _, _ = make(library, "DecoderOnly", **how)
    full, caches = library.call(model, tokens), []
    for b, n in enumerate(LENGTHS):
        cache = model.empty(1)
        for t in range(n):
            cache, _ = model.step(cache, library.moved(tokens[b : b + 1, t]))
        caches.append(cache)
    xp = library.backend.xp
    both = kv_cache.Cache(*(xp.concatenate(parts) for parts in zip(*caches, strict=True)))
    cache, logits = model.step(both, library.moved(tokens[[0, 1], LENGTHS]))
    assert_close(library.returned(logits), full[[0, 1], LENGTHS], 1e-12)
    assert library.returned(cache.length).tolist() == [3, 6]


@pytest.mark.parametrize("side", ["behind", "before"])
@each(OPTIONS, "bias", "as in Llama")
def test_padding_does_not_count(library, tokens, how, side):
    """A row with padding equals the row without, whatever stands there; and the padding matters.

    Learned positions are counted from the first token on, rotary ones turn by differences.
    """
    model, _, _ = make(library, "DecoderOnly", **how)
    real = REAL if side == "behind" else REAL[:, ::-1]
    out = library.call(model, tokens, mask=real)
    other = np.where(real, tokens, (tokens + 5) % 11)
    np.testing.assert_array_equal(library.call(model, other, mask=real)[real], out[real])
    for b in range(len(tokens)):
        alone = library.call(model, tokens[b : b + 1, real[b]])[0]
        assert_close(out[b, real[b]], alone, 1e-10)
    if side == "before":
        assert np.abs(out - library.call(model, tokens))[real].max() > 0.01


@pytest.mark.parametrize("num_kv_heads", [2, 4])
def test_rotary_attention_by_hand(library, x, rng, num_kv_heads):
    """Queries and keys of a layer without positions, turned by positions.rotary; and the loop."""
    how = {"num_kv_heads": num_kv_heads}
    plain = library.scaled_up("MultiHeadAttention", 16, 4, **how)
    layer = library.make("MultiHeadAttention", 16, 4, **how, rotary_base=20.0)
    parameters = library.parameters(plain)
    layer, wide = with_parameters(library, layer, parameters), np.tile(x, 2)[..., :16]
    memory = rng.normal(size=(2, 7, 16))
    q, k, v = heads.project(plain, *map(library.moved, (wide, memory, memory)))
    turned = library.returned(heads.project(layer, *map(library.moved, (wide, memory, memory))))
    place = [library.moved(np.arange(n)) for n in (5, 7)]
    expected = positions.rotary(q, place[0], 20.0), positions.rotary(k, place[1], 20.0), v
    for found, right in zip(turned, library.returned(expected), strict=True):
        assert_close(found, right, 1e-12)
    out, weights = library.call(layer, wide, memory, return_weights=True)
    score = reference_heads.turned(20.0)
    owners = [h * num_kv_heads // 4 for h in range(4)]
    for b in range(2):
        given = wide[b], memory[b], memory[b]
        right = reference_heads.multi_head_attention(parameters, owners, *given, score=score)
        assert_close(out[b], right[0])
        assert_close(weights[b], right[1])
    assert_close(library.call(layer, wide, memory), out, 1e-12)  # by the fastest way there is


def test_a_row_of_places_for_every_sequence(library, x):
    """Places of one's own in each row: those of queries and of keys, and not of values."""
    layer = library.scaled_up("MultiHeadAttention", 12, 3, num_kv_heads=1, rotary_base=20.0)
    places = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
    given = [library.moved(x)] * 3
    out = library.returned(heads.project(layer, *given, library.moved(places), shared=True))
    assert [a.shape for a in out] == [(2, 3, 5, 4), (2, 1, 5, 4), (2, 1, 5, 4)]
    plain = library.returned(heads.project(layer, *given, library.moved(0 * places), shared=True))
    for b, h, i in np.ndindex(2, 3, 5):
        for found, unturned in zip(out[:2], plain[:2], strict=True):
            if h < found.shape[1]:
                right = reference_heads.rotary(places[b, i], unturned[b, h, i].tolist(), 20.0)
                assert_close(found[b, h, i], right)
    np.testing.assert_array_equal(out[2], plain[2])


@pytest.mark.parametrize("name", ["EncoderBlock", "DecoderBlock"])
def test_shared_heads_are_full_heads_with_repeated_rows(library, x, rng, name):
    """A block of 2 key heads and one of 4 whose neighbours are copies."""
    shared = library.scaled_up(name, 12, 4, 5, num_kv_heads=2, seed=7)
    parameters = library.parameters(shared)
    for path in [n for n in parameters if "key" in n.split(".") or "value" in n.split(".")]:
        rows = parameters[path].reshape(2, 3, -1)
        parameters[path] = np.repeat(rows, 2, axis=0).reshape(12, *parameters[path].shape[1:])
    full = with_parameters(library, library.make(name, 12, 4, 5), parameters)
    given = (x, rng.normal(size=(2, 7, 12))) if name == "DecoderBlock" else (x,)
    assert_close(library.call(shared, *given), library.call(full, *given), 1e-11)
    assert shared.num_kv_heads == shared.attention.num_kv_heads == 2
    assert full.num_kv_heads == 4


def loss_and_gradients(library, model, tokens):
    """Of the mean square of the logits, by the names of the parameters."""
    if library.name == "torch":
        (model(library.moved(tokens)) ** 2).mean().backward()
        return {n: p.grad.numpy() for n, p in model.named_parameters()}
    import equinox as eqx

    slopes = eqx.filter_grad(lambda m: (m(library.moved(tokens)) ** 2).mean())(model)
    return library.parameters(slopes)


def test_a_tied_readout_learns_with_the_embedding(library, tokens):
    """Its gradient is the sum of both uses; after a step the two are still one matrix."""
    model, sizes, parameters = make(library, "DecoderOnly", tied=True)
    loose, _, _ = make(library, "DecoderOnly", bias=True)
    readout = {"readout.weight": parameters["embedding.weight"], "readout.bias": np.zeros(11)}
    loose = with_parameters(library, loose, parameters | readout)
    assert_close(library.call(model, tokens), library.call(loose, tokens), 1e-12)
    tied, untied = (loss_and_gradients(library, m, tokens) for m in (model, loose))
    expected = untied["embedding.weight"] + untied["readout.weight"]
    assert_close(tied["embedding.weight"], expected, 1e-12)
    assert np.abs(untied["readout.weight"]).max() > 0.01
    stepped = {n: p - 0.1 * tied[n] for n, p in parameters.items()}
    model = with_parameters(library, model, stepped)
    right, _ = reference_transformers.decoder_only(stepped, sizes, tokens[0])
    assert_close(library.call(model, tokens)[0], right)
    if library.name == "torch":
        assert model.readout.weight is model.embedding.weight
        assert model.readout.bias is None
        assert "readout.weight" in model.state_dict()
    else:
        assert model.readout is None


def test_a_step_of_an_optimiser_keeps_the_tie(tokens):
    torch = pytest.importorskip("torch")
    library = Library("torch")
    model, sizes, _ = make(library, "DecoderOnly", **LLAMA, tied=True)
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.1)
    loss_and_gradients(library, model, tokens)
    before = model.embedding.weight.detach().clone()
    optimiser.step()
    assert model.readout.weight is model.embedding.weight
    assert (model.embedding.weight - before).abs().max() > 0.05
    right, _ = reference_transformers.decoder_only(library.parameters(model), sizes, tokens[0])
    assert_close(library.call(model, tokens)[0], right)


@pytest.mark.parametrize("name", ["EncoderBlock", "DecoderBlock", *MODELS])
def test_what_parts_are_told(library, name):
    """By default what they have been from the beginning; else every attention, MLP and norm."""
    sizes = MODELS.get(name, BLOCK)
    plain = library.make(name, **sizes)
    rotary = {} if name == "DecoderBlock" else {"rotary_base": 20}
    given = {"num_kv_heads": 1, "bias": False, "rms_norm": True, "eps": 0.5} | rotary
    layer = library.make(name, **sizes, **given)
    for option, value in given.items():
        assert getattr(layer, option) == value
        if option != "num_kv_heads":
            assert getattr(plain, option) == DEFAULTS[option]
    assert plain.num_kv_heads == 4
    assert (type(layer.eps), type(layer.num_kv_heads)) == (float, int)
    names = library.parameters(layer)
    unbiased = {n for n in names if n.endswith("bias")}
    assert unbiased == ({"embedding.bias", "readout.bias"} if name == "EncoderOnly" else set())
    kinds = {type(part(layer, n.removesuffix(".weight"))).__name__ for n in names if "norm" in n}
    assert kinds == {"RMSNorm"}
    norms = [n.removesuffix(".weight") for n in names if n.endswith("norm.weight")]
    assert {part(layer, n).eps for n in norms} == {0.5}
    assert len(norms) == {"EncoderBlock": 2, "DecoderBlock": 3}.get(name, 5)


def test_a_subclass_of_a_norm_is_that_norm(rng):
    """Under whatever name: a module of PyTorch is called, of Equinox's the formula is."""
    import equinox
    import jax.numpy as jnp
    import torch

    x = rng.normal(size=(3, 5)).astype(np.float32) + 2
    for name, formula in (("RMSNorm", norms.rms_norm), ("LayerNorm", norms.layer_norm)):
        in_jax = types.new_class("Scaled", (getattr(equinox.nn, name),))(5)
        in_torch = types.new_class("Scaled", (getattr(torch.nn, name),))(5, eps=1e-5)
        for norm, given in ((in_jax, jnp.asarray(x)), (in_torch, torch.tensor(x))):
            found = convert.to_numpy(norms.apply_norm(norm, given))
            np.testing.assert_allclose(found, formula(x), rtol=1e-5, atol=1e-6)
    assert np.abs(norms.rms_norm(x) - norms.layer_norm(x)).max() > 0.5


def test_a_cache_has_the_dtype_of_the_embedding(library):
    model = library.make("DecoderOnly", **MODELS["DecoderOnly"], rotary_base=20.0)
    assert "float64" in str(model.empty(2).keys.dtype)
    if library.name == "torch":
        assert "bfloat16" in str(model.bfloat16().empty(2).keys.dtype)


def test_wrong_masks(library, tokens):
    model = library.make("DecoderOnly", **MODELS["DecoderOnly"])
    for wrong in (REAL[0], REAL[:, :5], REAL[:, None, :], REAL.astype(int)):
        message = r"mask: got dtype .*, expected bool of shape \(2, 7\)"
        with pytest.raises(ValueError, match=message):
            library.call(model, tokens, mask=wrong)
    with pytest.raises(TypeError, match="mask: got a list, expected a NumPy, PyTorch or JAX array"):
        library.call(model, tokens, mask=REAL.tolist())
