"""The transformers: their loops with every option, the cache, what must not count, dropout."""

import numpy as np
import pytest
import reference_heads
import reference_transformers
from layer_harness import distinct_starts, randomized, with_parameters

from attnbook.models import kv_cache

WIDTHS = {"embed_dim": 12, "num_heads": 2, "mlp_dim": 5, "num_layers": 2}
SIZES = {
    "EncoderOnly": WIDTHS | {"input_dim": 2, "output_dim": 5, "max_length": 7},
    "DecoderOnly": WIDTHS | {"vocab_size": 11, "max_length": 7},
    "Transformer": WIDTHS | {"source_vocab": 13, "target_vocab": 11, "max_length": 7},
}
LLAMA = {
    "activation": "swiglu",
    "num_kv_heads": 1,
    "bias": False,
    "rms_norm": True,
    "eps": 0.1,
    "rotary_base": 20.0,
}
OPTIONS = {
    "plain": {"num_layers": 3},
    "post, relu": {"norm": "post", "activation": "relu"},
    "swiglu, no bias": {"activation": "swiglu", "bias": False},
    "shared heads, rotary": {"num_kv_heads": 1, "rotary_base": 20.0},
    "Llama": LLAMA,
}
TIED = {"tied": {"tied": True}, "Llama, tied": LLAMA | {"tied": True}}


def each(cases, *in_jax):
    """A library and options; JAX has the same formulas, and compiles long: a part of them."""
    pairs = {f"torch, {name}": ("torch", how) for name, how in cases.items()}
    pairs |= {f"jax, {name}": ("jax", cases[name]) for name in in_jax}
    names = "library", "how"
    return pytest.mark.parametrize(names, pairs.values(), ids=pairs, indirect=["library"])


encoders = each(OPTIONS, "plain", "Llama")
decoders = each(OPTIONS | TIED, "plain", "post, relu", "Llama, tied")
kinds = pytest.mark.parametrize(("norm", "activation"), [("pre", "gelu"), ("post", "swiglu")])
LENGTHS = np.array([3, 6])
REAL = np.arange(7) < LENGTHS[:, None]  # of two rows of tokens


@pytest.fixture
def vectors(rng):
    return rng.normal(size=(2, 5, 2))


@pytest.fixture
def tokens(rng):
    return rng.integers(0, 11, size=(2, 7))


@pytest.fixture
def source(rng):
    return rng.integers(0, 13, size=(2, 7))


def make(library, name, **how):
    """A model, what it was made with, and its parameters."""
    sizes = SIZES[name] | {"norm": "pre", "activation": "gelu"} | how
    model = randomized(library, name, **sizes)
    return model, sizes, library.parameters(model)


def assert_close(out, expected, tolerance=1e-11):
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)


def compiled(library, function):
    """In JAX under jit, where a model is an argument like others."""
    if library.name == "torch":
        return function
    import equinox as eqx

    return eqx.filter_jit(function)


# the loops


@decoders
def test_decoder_only_equals_the_loop(library, tokens, how):
    """Logits and every layer's weights; and the logits alone."""
    model, sizes, parameters = make(library, "DecoderOnly", **how)
    assert ("readout.weight" in parameters) == ("tied" not in how)
    assert ("position" in parameters) == ("rotary_base" not in how)
    out, weights = library.call(model, tokens[:, :5], True)
    for b in range(2):
        right, shares = reference_transformers.decoder_only(parameters, sizes, tokens[b, :5])
        assert_close(out[b], right)
        assert_close(np.array(weights)[:, b], np.array(shares))
    assert_close(library.call(model, tokens[:, :5]), out, 1e-12)


@pytest.mark.parametrize("max_length", [7, None])
@encoders
def test_encoder_only_equals_the_loop(library, rng, vectors, how, max_length):
    """With a mask for every pair; learned positions stay beside rotary ones; a last norm or none."""
    mask, last = rng.random((2, 5, 5)) < 0.7, max_length is None
    model, sizes, parameters = make(
        library, "EncoderOnly", **how, max_length=max_length, last_norm=last
    )
    assert ("position" in parameters) == (max_length == 7)
    assert ("encoder_norm.weight" in parameters) == last
    out, weights = library.call(model, vectors, mask, True)
    for b in range(2):
        right, shares = reference_transformers.encoder_only(parameters, sizes, vectors[b], mask[b])
        assert_close(out[b], right)
        assert_close(np.array(weights)[:, b], np.array(shares))
    assert_close(library.call(model, vectors, mask), out, 1e-12)


@kinds
def test_transformer_equals_the_loop(library, source, tokens, norm, activation):
    """A sentence at a time, of its words alone; with the padding before the words it is the same."""
    model, sizes, parameters = make(library, "Transformer", norm=norm, activation=activation)
    written = tokens[:, :5]
    out, weights = library.call(model, source, REAL, written, True)
    for b, n in enumerate(LENGTHS):
        alone = parameters, sizes, source[b, :n], np.ones((1, n), bool), written[b]
        right, shares = reference_transformers.transformer(*alone)
        assert_close(out[b], right)
        for ours, theirs in zip(weights, shares, strict=True):
            assert_close(ours[b, ..., :n], theirs)
            assert not ours[b, ..., n:].any()
    assert_close(library.call(model, source, REAL, written), out, 1e-12)
    before = np.stack([np.roll(row, 7 - n) for row, n in zip(source, LENGTHS, strict=True)])
    assert_close(library.call(model, before, REAL[:, ::-1], written), out, 1e-10)


@pytest.mark.parametrize("num_kv_heads", [1, 2])
def test_attention_only_equals_the_loop(library, tokens, num_kv_heads):
    model = library.scaled_up("AttentionOnly", 11, 7, 12, 2, 3, num_kv_heads)
    parameters, owners = library.parameters(model), [h * num_kv_heads // 2 for h in range(2)]
    out, weights = library.call(model, tokens, True)
    for b in range(2):
        right, shares = reference_heads.attention_only(parameters, owners, 3, tokens[b])
        assert_close(out[b], right)
        assert_close(np.array(weights)[:, b], np.array(shares))
    assert_close(library.call(model, tokens), out, 1e-12)


def test_leading_axes_and_lengths(library, rng):
    """A batch of batches, each row by itself; the first tokens alone have the same logits."""
    tokens = rng.integers(0, 11, size=(2, 3, 7))
    attention_only = library.scaled_up("AttentionOnly", 11, 7, 12, 2)
    for model in (make(library, "DecoderOnly")[0], attention_only):
        out = library.call(model, tokens)
        for (i, j), n in zip(np.ndindex(2, 3), (1, 2, 3, 4, 5, 7), strict=True):
            assert_close(library.call(model, tokens[i, j, :n]), out[i, j, :n])


@pytest.mark.parametrize("name", [*SIZES, "AttentionOnly"])
def test_starts(library, name):
    """All numbers are drawn; first embeddings and positions have a deviation of 0.3, or 1."""
    long = {"vocab_size": 101, "source_vocab": 101, "target_vocab": 101, "max_length": 101}
    sizes = SIZES.get(name, {"vocab_size": 101, "max_length": 101, "embed_dim": 12})
    sizes = sizes | {size: n for size, n in long.items() if size in sizes}
    starts = distinct_starts(library, name, share=0.999, **sizes)
    small = [n for n, drawn in starts.items() if drawn.shape == (101, 12) and "out" not in n]
    assert len(small) == {"EncoderOnly": 1, "Transformer": 4}.get(name, 2)
    scale = 1 if name == "AttentionOnly" else 0.3
    for n in small:
        assert abs(starts[n].mean()) < 0.12 * scale
        assert abs(starts[n].std() / scale - 1) < 0.1


# what must not count


def test_what_must_not_count_counts_exactly_0(library, source, tokens):
    """Later tokens, and words behind the mask; their neighbours do count."""
    attention_only = library.scaled_up("AttentionOnly", 11, 7, 12, 2)
    models = [make(library, name)[0] for name in ("DecoderOnly", "Transformer")]
    for model, read in ((attention_only, ()), (models[0], ()), (models[1], (source, REAL))):
        before = library.call(model, *read, tokens)
        for t in (1, 6):
            other = np.where(np.arange(7) >= t, (tokens + 5) % 11, tokens)
            after = library.call(model, *read, other)
            np.testing.assert_array_equal(after[:, :t], before[:, :t])
            assert np.all(np.abs(after[:, t] - before[:, t]).max(-1) > 0.01)
    planted = library.call(models[1], np.where(REAL, source, 12), REAL, tokens)
    np.testing.assert_array_equal(planted, before)
    other = source.copy()
    other[1, 5] = (source[1, 5] + 5) % 13  # its last word
    moved = np.abs(library.call(models[1], other, REAL, tokens) - before).max((1, 2))
    assert (moved[0], moved[1] > 0.01) == (0, True)


@pytest.mark.parametrize("side", ["behind", "before"])
@each({"learned": {}, "rotary": LLAMA}, "learned", "rotary")
def test_padding_does_not_count(library, tokens, how, side):
    """A row with padding equals the row without, whatever stands there; and the mask matters.

    Learned positions are counted from the first token on, rotary ones turn by differences.
    """
    model, _, _ = make(library, "DecoderOnly", **how)
    real = REAL if side == "behind" else REAL[:, ::-1]
    out = library.call(model, tokens, mask=real)
    other = np.where(real, tokens, (tokens + 5) % 11)
    np.testing.assert_array_equal(library.call(model, other, mask=real)[real], out[real])
    for b in range(2):
        assert_close(out[b, real[b]], library.call(model, tokens[b, real[b]]), 1e-10)
    if side == "before":
        assert np.abs(out - library.call(model, tokens))[real].max() > 0.01


# the cache


@decoders
def test_the_cache_equals_the_full_pass(library, tokens, how):
    """Step by step to the last place, and then it is full; in JAX the whole loop under jit."""
    model, sizes, _ = make(library, "DecoderOnly", **how)

    def stepped(model, tokens):
        cache, found = model.empty(2), []
        for t in range(7):
            cache, logits = model.step(cache, tokens[:, t])
            found.append(logits)
        return cache, tuple(found)

    cache, found = compiled(library, stepped)(model, library.moved(tokens))
    assert_close(np.stack(library.returned(found), axis=1), library.call(model, tokens), 1e-12)
    assert library.returned(cache.length).tolist() == [7, 7]
    shape = (2, sizes["num_layers"], sizes.get("num_kv_heads", 2), 7, 6)
    assert tuple(cache.keys.shape) == tuple(cache.values.shape) == shape
    with pytest.raises(ValueError, match="cache: got 7 tokens, expected fewer: it is full"):
        model.step(cache, library.moved(tokens[:, 0]))


@each({"learned": {}, "rotary": LLAMA}, "learned", "rotary")
def test_rows_of_different_lengths(library, tokens, how):
    """A batch of one row with three tokens and one with six: each goes on as if alone."""
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
    assert library.returned(cache.length).tolist() == [4, 7]


@kinds
def test_the_cache_of_a_translation_equals_the_full_pass(library, source, tokens, norm, activation):
    """Logits, and the mean of the last layer's heads; padding of the source counts exactly 0."""
    model = make(library, "Transformer", norm=norm, activation=activation)[0]
    full, weights = library.call(model, source, REAL, tokens, True)

    def stepped(model, source, mask, tokens):
        (memory, cache), found = model.encode(source, mask), []
        for t in range(7):
            cache, *out = model.step(memory, cache, tokens[:, t])
            found.append(tuple(out))
        return tuple(found)

    function, outs = compiled(library, stepped), []
    for words in (source, np.where(REAL, source, 12)):
        found = library.returned(function(model, *map(library.moved, (words, REAL, tokens))))
        outs.append([np.stack(each, axis=1) for each in zip(*found, strict=True)])
    (logits, read), padded = outs
    assert_close(logits, full, 1e-12)
    assert_close(read, weights[-1].mean(1), 1e-12)
    np.testing.assert_array_equal(padded[0], logits)
    np.testing.assert_array_equal(padded[1], read)


# tied, and dropout


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
    loose, _, _ = make(library, "DecoderOnly")
    readout = {"readout.weight": parameters["embedding.weight"], "readout.bias": np.zeros(11)}
    loose = with_parameters(library, loose, parameters | readout)
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


def test_what_a_decoder_leaves_out(library):
    """Without blocks' parts the stream is the first one: entries of it are 0, or grow, by a share."""
    model = library.make("DecoderOnly", 11, 7, 12, 2, 5, 1, dropout=0.3, norm="post", rms_norm=True)
    silent = {n: 0 * p for n, p in library.parameters(model).items() if "output" in n}
    reads = {"readout.weight": np.eye(11, 12), "readout.bias": np.zeros(11)}
    reads |= {"embedding.weight": np.ones((11, 12)), "position": np.zeros((7, 12))}
    model = with_parameters(library, model, silent | reads)
    tokens = np.zeros((301, 7), int)
    found = library.call(model, tokens, seed=2)
    kept = found > 0.5
    error = np.sqrt(0.3 * 0.7 / kept.size)
    assert abs(kept.mean() - 0.7) < 4 * error
    np.testing.assert_array_equal(found, library.call(model, tokens, seed=2))
    assert_close(library.call(model, tokens), 1, 1e-4)
