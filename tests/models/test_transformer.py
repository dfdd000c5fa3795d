"""The three transformers at work: a translation's loop, what must not count, what they write."""

import numpy as np
import pytest
import reference_blocks
import reference_heads
import reference_transformers
from layer_harness import randomized

from attnbook.generate.decoding import greedy
from attnbook.layers.linear import linear
from attnbook.models import transformer

SIZES = {
    "EncoderOnly": {"input_dim": 2, "output_dim": 5, "max_length": 7},
    "DecoderOnly": {"vocab_size": 11, "max_length": 7},
    "Transformer": {"source_vocab": 13, "target_vocab": 11, "max_length": 7},
}
WIDTHS = {"embed_dim": 12, "num_heads": 3, "mlp_dim": 5, "num_layers": 2}
KINDS = [("pre", "gelu"), ("post", "relu"), ("pre", "swiglu")]
kinds = pytest.mark.parametrize(("norm", "activation"), KINDS)
LENGTHS = np.array([3, 6])  # words of the two sentences
REAL = np.arange(7) < LENGTHS[:, None]


@pytest.fixture
def vectors(rng):
    return rng.normal(size=(2, 5, 2))


@pytest.fixture
def tokens(rng):
    return rng.integers(0, 11, size=(2, 7))


@pytest.fixture
def source(rng):
    return rng.integers(0, 13, size=(2, 7))


def make(library, name, norm="pre", activation="gelu", **how):
    """The model, what it was made with, and its parameters."""
    sizes = SIZES[name] | WIDTHS | {"norm": norm, "activation": activation} | how
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


@kinds
def test_transformer_equals_the_loop(library, source, tokens, norm, activation):
    """A sentence at a time, of its words alone; written for a length of its own.

    With the padding before the words it is the same.
    """
    model, sizes, parameters = make(library, "Transformer", norm, activation, num_layers=3)
    written = tokens[:, :5]
    out, weights = library.call(model, source, REAL, written, True)
    assert out.shape == (2, 5, 11)
    assert [w.shape for w in weights] == [(2, 3, 5, 7)] * 3
    for b, n in enumerate(LENGTHS):
        alone = parameters, sizes, source[b, :n], np.ones((1, n), bool), written[b]
        right, shares = reference_transformers.transformer(*alone)
        assert_close(out[b], right)
        for ours, theirs in zip(weights, shares, strict=True):
            assert_close(ours[b, ..., :n], theirs)
            assert not ours[b, ..., n:].any()
    assert_close(library.call(model, source, REAL, written), out, 1e-12)
    behind = np.stack([np.roll(row, 7 - n) for row, n in zip(source, LENGTHS, strict=True)])
    assert_close(library.call(model, behind, REAL[:, ::-1], written), out, 1e-10)


def test_without_weights_there_are_none(library, vectors, tokens, source):
    """The stream alone, and nothing is kept that was not asked for."""
    model = make(library, "EncoderOnly")[0]
    x = library.moved(vectors)
    assert library.returned(transformer.encoder_only(model, x)).shape[:2] == vectors.shape[:2]
    embedded = linear(model.embedding, x)
    assert transformer.run_blocks(model.encoder, model.encoder_norm, embedded, None)[1] == []
    model = make(library, "DecoderOnly")[0]
    out = library.returned(transformer.decoder_only(model, library.moved(tokens)))
    assert out.shape[:2] == tokens.shape
    model = make(library, "Transformer")[0]
    given = map(library.moved, (source, REAL, tokens))
    assert library.returned(transformer.encoder_decoder(model, *given)).shape[:2] == tokens.shape


def test_leading_axes(library, rng):
    tokens, vectors = rng.integers(0, 11, size=(2, 3, 7)), rng.normal(size=(2, 3, 5, 2))
    for name, given in (("DecoderOnly", tokens), ("EncoderOnly", vectors)):
        model = compiled(library, make(library, name)[0])
        out = library.call(model, given)
        for i, j in np.ndindex(2, 3):
            assert_close(library.call(model, given[i, j]), out[i, j])


def test_what_must_not_count_counts_exactly_0(library, source, tokens):
    """Later tokens, and words behind the mask; their neighbours do count."""
    for name, read in (("DecoderOnly", ()), ("Transformer", (source, REAL))):
        model = make(library, name)[0]
        before = library.call(model, *read, tokens)
        for t in (1, 4, 6):
            other = np.where(np.arange(7) >= t, (tokens + 5) % 11, tokens)
            after = library.call(model, *read, other)
            np.testing.assert_array_equal(after[:, :t], before[:, :t])
            assert np.all(np.abs(after[:, t] - before[:, t]).max(-1) > 0.01)
    for planted in (0, 12):
        other = np.where(REAL, source, planted)
        np.testing.assert_array_equal(library.call(model, other, REAL, tokens), before)
    for b, n in enumerate(LENGTHS):
        other = source.copy()
        other[b, n - 1] = (source[b, n - 1] + 5) % 13
        moved = np.abs(library.call(model, other, REAL, tokens) - before).max((1, 2))
        assert (moved[b] > 0.01, moved[1 - b]) == (True, 0)


def test_padding_does_not_count_in_a_step(library, source, tokens):
    model = make(library, "Transformer")[0]
    outs = []
    for planted in (0, 12):
        given = np.where(REAL, source, planted)
        memory, cache = model.encode(*map(library.moved, (given, REAL)))
        for t in range(3):
            cache, logits, weights = model.step(memory, cache, library.moved(tokens[:, t]))
        outs.append((library.returned(logits), library.returned(weights)))
    for one, other in zip(*outs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_encoder_without_positions_sees_a_set(library, vectors):
    """Tokens in another order: the same is said, in that order; with positions it is not."""
    order = [3, 0, 4, 1, 2]
    for max_length in (None, 7):
        model = make(library, "EncoderOnly", max_length=max_length)[0]
        out, moved = library.call(model, vectors), library.call(model, vectors[:, order])
        if max_length is None:
            assert_close(moved, out[:, order])
            assert np.abs(library.call(model, vectors[:, :4]) - out[:, :4]).max() > 0.01
        else:
            assert np.all(np.abs(moved - out[:, order]).max(-1) > 0.01)


@kinds
def test_the_cache_of_a_translation_equals_the_full_pass(library, source, tokens, norm, activation):
    """Logits, and the mean of the last layer's heads."""
    model = make(library, "Transformer", norm, activation)[0]
    full, weights = library.call(model, source, REAL, tokens, True)

    def stepped(model, source, mask, tokens):
        (memory, cache), found = model.encode(source, mask), []
        for t in range(7):
            cache, *out = model.step(memory, cache, tokens[:, t])
            found.append(tuple(out))
        return cache, tuple(found)

    for function in {stepped, compiled(library, stepped)}:
        cache, found = function(model, *map(library.moved, (source, REAL, tokens)))
        pairs = zip(*library.returned(found), strict=True)
        logits, read = (np.stack(each, axis=1) for each in pairs)
        assert_close(logits, full, 1e-12)
        assert_close(read, weights[-1].mean(1), 1e-12)
        assert library.returned(cache.length).tolist() == [7, 7]


def test_what_a_cache_holds(library, tokens):
    """Projected keys and values of the first layer in their places, 0 behind them; the old one stays."""
    model, _, parameters = make(library, "DecoderOnly")
    first = model.empty(2)
    assert tuple(first.keys.shape) == tuple(first.values.shape) == (2, 2, 3, 7, 4)
    assert "float64" in str(first.keys.dtype)
    assert "int32" in str(first.length.dtype)
    cache = first
    for t in range(3):
        cache, _ = model.step(cache, library.moved(tokens[:, t]))
    for b in range(2):
        table = parameters["embedding.weight"], parameters["position"]
        x = reference_transformers.embedded(*table, tokens[b, :3])
        x = reference_blocks.normed(parameters, "decoder.0.attention_norm", x)
        for kept, name in ((cache.keys, "key"), (cache.values, "value")):
            right = reference_heads.projected(parameters, f"decoder.0.attention.{name}", x)
            found = library.returned(kept)[b]
            assert_close(found[0, :, :3], np.array(right).reshape(3, 3, 4).swapaxes(0, 1))
            assert np.abs(found[1, :, :3]).min() > 0
            assert not found[:, :, 3:].any()
    for array in (first.keys, first.values, first.length):
        assert not library.returned(array).any()
    assert library.returned(cache.length).tolist() == [3, 3]


def test_a_full_cache_is_an_error(library, tokens, source):
    model = make(library, "DecoderOnly", max_length=2)[0]
    cache, token = model.empty(2), library.moved(tokens[:, 0])
    for _ in range(2):
        cache, _ = model.step(cache, token)
    with pytest.raises(ValueError, match="cache: got 2 tokens, expected fewer: it is full"):
        model.step(cache, token)
    model = make(library, "Transformer", max_length=2)[0]
    memory, cache = model.encode(*map(library.moved, (source[:, :2], REAL[:, :2])))
    for _ in range(2):
        cache, *_ = model.step(memory, cache, token)
    with pytest.raises(ValueError, match="cache: got 2 tokens, expected fewer: it is full"):
        model.step(memory, cache, token)


def test_no_more_is_written_than_there_is_room_for(library, source):
    model = make(library, "Transformer", target_vocab=5)[0]
    given = [*map(library.moved, (source, REAL))]
    ends = {e: greedy(model, *given, start=1, end=e, limit=7)[0] for e in range(5)}
    never = next(e for e, rows in ends.items() if e not in rows)
    with pytest.raises(ValueError, match="cache: got 7 tokens, expected fewer"):
        greedy(model, *given, start=1, end=never, limit=8)
