"""One rule for what every layer is given: its library, the numbers' dtype, tokens, masks."""

import inspect
import re

import numpy as np
import pytest
from layer_harness import Library

from attnbook.generate import decoding

FLOATING = {  # a layer, what makes it, the shapes of what it is given
    "SelfAttention": ((6, 5), [(7, 6)]),
    "MultiHeadAttention": ((6, 2), [(7, 6)]),
    "LinearAttention": ((6, 2), [(7, 6)]),
    "MLP": ((6, 5), [(7, 6)]),
    "EncoderBlock": ((6, 2, 5), [(7, 6)]),
    "DecoderBlock": ((6, 2, 5), [(7, 6), (3, 6)]),
    "EncoderOnly": ((3, 2, 7, 6, 2, 5, 1), [(7, 3)]),
    "GRUCell": ((3, 5), [(7, 3), (7, 5)]),
    "KernelRegression": ((0.7,), [(3, 2), (7, 2), (7, 1)]),
}
TOKENS = {
    "AttentionOnly": (5, 7, 6, 2, 1),
    "AttentionPooling": (5, 3, 2, 4),
    "DecoderOnly": (5, 7, 6, 2, 5, 1),
}
WIDTHS = {"embed_dim": 12, "num_heads": 4}
BLOCK = WIDTHS | {"mlp_dim": 5}
MODEL = BLOCK | {"max_length": 7, "num_layers": 2}
VOCABULARIES = {"source_vocab": 13, "target_vocab": 11}
MADE = {  # every layer that has sizes, by the names of its arguments
    "SelfAttention": {"embed_dim": 12, "head_dim": 5},
    "MultiHeadAttention": WIDTHS,
    "LinearAttention": WIDTHS,
    "GatedDelta": WIDTHS,
    "MLP": {"embed_dim": 12, "mlp_dim": 5},
    "EncoderBlock": BLOCK,
    "DecoderBlock": BLOCK,
    "EncoderOnly": MODEL | {"input_dim": 2, "output_dim": 5},
    "DecoderOnly": MODEL | {"vocab_size": 11},
    "Transformer": MODEL | VOCABULARIES,
    "AttentionOnly": WIDTHS | {"vocab_size": 11, "max_length": 7, "num_layers": 2},
    "AttentionPooling": {"vocab_size": 11, "embed_dim": 2, "key_dim": 3, "hidden_dim": 5},
    "GRUCell": {"input_dim": 5, "hidden_dim": 11},
    "EncoderDecoder": VOCABULARIES | {"embed_dim": 3, "hidden_dim": 22},
}
WRONG_SIZES = (0, -1, 2.0, 2.5, "2", None), "an integer"
FLAGS = ("bias", "rms_norm", "last_norm", "tied", "gate", "delta")
REFUSED = dict.fromkeys(FLAGS, ((1, "no", None), "True or False")) | {
    "norm": (("before", None), "'pre' or 'post'"),
    "activation": (("tanh", "GELU", None), "'gelu', 'gelu_tanh', 'relu' or 'swiglu'"),
    "dropout": ((1.0, 1.5, -0.1, float("nan"), "0.1"), "a share from 0 to"),
    "eps": ((0, None), "a number above 0"),
    "rotary_base": ((0.0, "20"), "a number above 0, or None"),
    "attention": (("gated", None), "'softmax', 'linear', 'delta'"),
    "score": (
        ("Additive", "scaled_dot", "", 0, False, "None"),
        "'additive', 'general', 'dot' or None",
    ),
}
PAIRS = {"EncoderDecoder": (5, 11, 3, 4), "Transformer": (5, 11, 7, 6, 2, 5, 1)}
SIZES = TOKENS | PAIRS
STREAMS = [name for name, (_, shapes) in FLOATING.items() if shapes[0] == (7, 6)]
NO_STREAM = [
    (np.ones((2, 7, 5)), ValueError, r"got shape \(2, 7, 5\), expected \(\.\.\., n, 6\)"),
    (np.ones(6), ValueError, r"got shape \(6,\), expected"),
    (np.ones((7, 6), int), ValueError, "got dtype .*int64, expected a floating one"),
    ([[1.0] * 6], TypeError, "got a list, expected a NumPy, PyTorch or JAX"),
]
NO_MASKS = [
    (np.ones((3, 7), bool), r"got shape \(3, 7\), expected one that fits"),
    (np.ones((7, 7)), "got dtype .*, expected bool, True = may"),
]
NO_TOKENS = [
    ([[0, 5]], "got 0 to 5, expected 0 to 4"),
    ([[-1, 3]], "got -1 to 3, expected 0 to 4"),
    ([[0.0, 1.0]], r"got dtype .*float64, shape \(1, 2\), expected integers"),
    ([[True, False]], r"got dtype .*bool, shape \(1, 2\), expected integers"),
    (3, r"got dtype .*int64, shape \(\), expected integers of shape"),
]
WORDS = {"source": np.array([[0, 4]]), "mask": np.ones((1, 2), bool), "target": np.array([[10]])}
NO_SENTENCES = [  # what is in the place of these words, of the vocabularies 0 to 4 and 0 to 10
    ({"source": [[0, 5]]}, "source: got 0 to 5, expected 0 to 4"),
    ({"mask": [[False, False]]}, "mask: got a sentence without a word, expected at least"),
    ({"target": [[11]]}, "target: got 11 to 11, expected 0 to 10"),
]
TOO_LONG = [
    ({"source": [[0] * 8], "mask": [[True] * 8]}, "source: got 8 tokens, expected at most 7"),
    ({"target": [[1] * 8]}, "target: got 8 tokens, expected at most 7"),
]
EPSILON = {"bfloat16": 2.0**-7, "float32": 2.0**-22, "float64": 1e-14}


def sentences(name, tokens):
    """What a model of tokens is given: a source, its mask and a target, or the tokens alone."""
    return [tokens, np.ones(tokens.shape, bool), tokens] if name in PAIRS else [tokens]


def cast(library, layer, dtype):
    if library.name == "torch":
        return layer.to(getattr(library.backend.xp, dtype))
    jax = library.backend.jax
    return jax.tree.map(lambda a: a.astype(dtype) if hasattr(a, "astype") else a, layer)


@pytest.mark.parametrize("name", MADE)
def test_wrong_arguments(library, name):
    """Of every argument of every layer; None is right where it is the default."""
    arguments = inspect.signature(getattr(library.module, name)).parameters.values()
    for argument in [a for a in arguments if a.name != "key"]:
        wrongs, words = REFUSED.get(argument.name, WRONG_SIZES)
        for wrong in wrongs:
            if wrong is None and argument.default is None:
                continue
            message = f"^{argument.name}: got {re.escape(repr(wrong))}, expected {words}"
            with pytest.raises(ValueError, match=message):
                library.make(name, **MADE[name] | {argument.name: wrong})


@pytest.mark.parametrize("name", MADE)
def test_a_layer_is_made_with_numpys_integers(library, name):
    """Equinox warns of sizes that are NumPy's, and a warning fails a test."""
    sizes = {size: np.int64(number) for size, number in MADE[name].items()}
    plain, made = library.make(name, **MADE[name]), library.make(name, **sizes)
    shapes = [{n: p.shape for n, p in library.parameters(one).items()} for one in (plain, made)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", [name for name in MADE if "num_heads" in MADE[name]])
def test_numbers_of_heads_that_do_not_fit(library, name):
    names = inspect.signature(getattr(library.module, name)).parameters
    wrong = [({"num_heads": 5}, "num_heads: got 5, expected a divisor of 12, the width")]
    if "num_kv_heads" in names:
        message = "num_kv_heads: got {}, expected a divisor of 4, the heads"
        wrong += [({"num_kv_heads": shared}, message.format(shared)) for shared in (3, 8)]
    if "rotary_base" in names:
        message = "rotary_base: got 20.0 for heads of width 1, expected an even width"
        wrong += [({"num_heads": 12, "rotary_base": 20.0}, message)]
    for how, message in wrong:
        with pytest.raises(ValueError, match=f"^{message}"):
            library.make(name, **MADE[name] | how)


@pytest.mark.parametrize("given", EPSILON)
@pytest.mark.parametrize("kept", EPSILON)
@pytest.mark.parametrize("name", FLOATING)
def test_a_layer_computes_in_the_dtype_it_is_given(library, rng, name, kept, given):
    sizes, shapes = FLOATING[name]
    layer, arrays = library.make(name, *sizes), [rng.normal(size=shape) for shape in shapes]
    expected = library.call(layer, *arrays)
    layer = cast(library, layer, kept)
    out = layer(*(library.backend.cast(library.moved(a), given) for a in arrays))
    assert library.backend.dtype(out) == given
    error = np.abs(library.backend.numpy(library.backend.cast(out, "float64")) - expected).max()
    assert error <= 20 * max(EPSILON[kept], EPSILON[given]) * max(1, np.abs(expected).max())


@pytest.mark.parametrize("name", FLOATING)
def test_numbers_of_another_library(library, name):
    sizes, shapes = FLOATING[name]
    layer = library.make(name, *sizes)
    with pytest.raises(TypeError, match=r"^\w+, .*: got arrays of .*numpy.*, expected one library"):
        layer(*map(np.ones, shapes))


@pytest.mark.parametrize("name", TOKENS)
def test_tokens_of_another_library(library, name):
    layer = library.make(name, *TOKENS[name])
    with pytest.raises(TypeError, match=r"^tokens, weight: got arrays of numpy, \w+, expected one"):
        layer(np.ones((2, 5), int))


@pytest.mark.parametrize("name", PAIRS)
def test_sentences_of_another_library(library, name):
    layer, source = library.make(name, *PAIRS[name]), np.ones((2, 5), int)
    message = r"^source, weight: got arrays of numpy, \w+, expected one library"
    with pytest.raises(TypeError, match=message):
        layer(source, source > 0, source)
    with pytest.raises(TypeError, match=message):
        layer.encode(source, source > 0)


@pytest.mark.parametrize("name", STREAMS)
def test_what_is_no_stream(library, name):
    sizes, (shape, *others) = FLOATING[name]
    layer, others = library.make(name, *sizes), [np.ones(other) for other in others]
    called = "queries" if name in ("MultiHeadAttention", "LinearAttention") else "x"
    for wrong, error, words in NO_STREAM:
        with pytest.raises(error, match=f"^{called}: {words}"):
            library.call(layer, wrong, *others)
    for mask, words in NO_MASKS if name not in ("MLP", "LinearAttention") else ():
        with pytest.raises(ValueError, match=f"^mask: {words}"):
            library.call(layer, np.ones(shape), *others, mask=mask)


@pytest.mark.parametrize("name", TOKENS)
def test_what_is_no_token(library, name):
    """Of the vocabulary 0 to 4."""
    layer = library.make(name, *TOKENS[name])
    for given, message in NO_TOKENS:
        with pytest.raises(ValueError, match=f"^tokens: {message}"):
            library.call(layer, np.array(given))
    with pytest.raises(TypeError, match="tokens: got a list, expected a NumPy, PyTorch or JAX"):
        layer([1, 2])


@pytest.mark.parametrize("name", ["AttentionOnly", "DecoderOnly"])
def test_too_many_tokens(library, name):
    """Lengths are known under jit too, where values are not."""
    layer = library.make(name, *TOKENS[name])
    ways = [layer]
    if library.name == "jax":
        import equinox as eqx

        ways.append(eqx.filter_jit(layer))
    for way in ways:
        with pytest.raises(ValueError, match="tokens: got 8 of them, expected at most 7"):
            way(library.moved(np.zeros((2, 8), int)))


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_no_sentence(library, name):
    """Both ways in look at what comes."""
    layer = library.make(name, *PAIRS[name])
    library.call(layer, *WORDS.values())
    for wrong, message in NO_SENTENCES + (TOO_LONG if name == "Transformer" else []):
        given = WORDS | {part: np.array(words) for part, words in wrong.items()}
        with pytest.raises(ValueError, match=message):
            library.call(layer, *given.values())
        if "target" not in wrong:
            with pytest.raises(ValueError, match=message):
                layer.encode(library.moved(given["source"]), library.moved(given["mask"]))


def test_what_a_cell_is_given(library, rng):
    layer, x, state = library.make("GRUCell", 3, 5), rng.normal(size=3), rng.normal(size=5)
    assert library.call(layer, x, state).shape == (5,)
    with pytest.raises(ValueError, match=r"inputs: got shape \(7, 5\), expected \(\.\.\., 3\)"):
        library.call(layer, np.ones((7, 5)), np.ones((7, 5)))
    with pytest.raises(ValueError, match=r"state: got shape \(3,\), expected \(\.\.\., 5\)"):
        library.call(layer, x, x)
    with pytest.raises(
        ValueError, match=r"state: got dtype .*float32, expected .*float64 as in inputs"
    ):
        library.call(layer, x, state.astype(np.float32))


@pytest.mark.parametrize("token", [-1, 11, 99])
def test_tokens_that_do_not_exist(library, token):
    """PyTorch takes −1 for the last one, JAX takes the nearest that exists."""
    layer, source = library.make("EncoderDecoder", 5, 11, 3, 4), library.moved(np.ones((2, 5), int))
    memory, state = layer.encode(source, source > 0)
    message = f"token: got {token} to {token}, expected 0 to 10"
    with pytest.raises(ValueError, match=message):
        layer.step(memory, state, library.moved(np.array([token, token])))
    with pytest.raises(ValueError, match=message):
        decoding.greedy(layer, source, source > 0, start=token, end=0, limit=3)


def test_a_step_of_other_rows(library):
    layer, source = library.make("EncoderDecoder", 5, 11, 3, 4), library.moved(np.ones((2, 5), int))
    memory, state = layer.encode(source, source > 0)
    with pytest.raises(
        ValueError, match=r"token: got shape \(1,\), expected \(2,\), one per row of"
    ):
        layer.step(memory, state, library.moved(np.array([3])))
    memory, state = layer.encode(source[0], source[0] > 0)
    assert layer.step(memory, state, library.moved(np.array(3)))[1].shape == (11,)


@pytest.mark.parametrize("shape", [(2, 1, 1, 5), (2, 1, 5, 5), (2, 2, 5, 5)])
@pytest.mark.parametrize("name", ["MultiHeadAttention", "EncoderBlock"])
def test_a_mask_has_no_axis_for_heads(library, name, shape):
    layer = library.make(name, *FLOATING[name][0])
    message = rf"mask: got shape \({', '.join(map(str, shape))}\), expected no more axes than the"
    with pytest.raises(ValueError, match=message):
        library.call(layer, np.ones((2, 5, 6)), mask=np.ones(shape, bool))
    with pytest.raises(
        ValueError, match=r"mask: got shape .*, expected no more axes than the tokens"
    ):
        library.call(layer, np.ones((5, 6)), mask=np.ones((2, 5, 5), bool))
    assert library.call(layer, np.ones((2, 5, 6)), mask=np.ones((2, 1, 5), bool)).shape == (2, 5, 6)


MASKED = [name for name in STREAMS if name != "MLP"] + ["EncoderOnly", "AttentionPooling"]


@pytest.mark.parametrize(
    ("name", "called"), [(name, "mask") for name in MASKED] + [("DecoderBlock", "memory_mask")]
)
def test_a_mask_makes_no_text_more(library, name, called):
    """One text, two heads: torch.nn's masks, (b · heads, m, n), would make two texts of it."""
    if name == "AttentionPooling":
        layer, given = library.make(name, *TOKENS[name]), [np.ones((1, 7), int)]
    else:
        sizes, shapes = FLOATING[name]
        layer, given = library.make(name, *sizes), [np.ones((1, *shape)) for shape in shapes]
    m, n = 7, 3 if called == "memory_mask" else 7
    if name in ("AttentionPooling", "LinearAttention"):
        m = 1
    target = r"\(1, 7, 7\)" if name == "LinearAttention" else rf"\(1, {m}, {n}\)"
    message = rf"^{called}: got shape \(2, {m}, {n}\), expected no more .* sequences: {target}, or"
    with pytest.raises(ValueError, match=message):
        library.call(layer, *given, **{called: np.ones((2, m, n), bool)})
    expected = library.call(layer, *given)
    for shape in ((m, n), (1, m, n), (1, n)):
        found = library.call(layer, *given, **{called: np.ones(shape, bool)})
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_a_cell_of_other_rows(library):
    layer = library.make("GRUCell", 3, 5)
    with pytest.raises(
        ValueError, match=r"state: got shape \(6, 5\), expected \(7, 5\) as in inputs"
    ):
        library.call(layer, np.ones((7, 3)), np.ones((6, 5)))
    one = library.call(layer, np.ones(3), np.ones((6, 5)))  # an input for all rows
    np.testing.assert_allclose(one, library.call(layer, np.ones((6, 3)), np.ones((6, 5))))


def test_a_step_of_what_encode_did_not_give(library):
    layer, source = library.make("EncoderDecoder", 5, 11, 3, 4), library.moved(np.ones((2, 5), int))
    memory, state = layer.encode(source, source > 0)
    token = library.moved(np.array([3, 3]))
    for wrong in (None, tuple(memory), state):
        with pytest.raises(
            TypeError, match=r"memory: got a \w+, expected what encode of the model"
        ):
            layer.step(wrong, state, token)
    with pytest.raises(TypeError, match="state: got a NoneType, expected a NumPy, PyTorch or JAX"):
        layer.step(memory, None, token)
    with pytest.raises(ValueError, match=r"state: got shape \(2, 3\), expected \(\.\.\., 4\)"):
        layer.step(memory, state[:, :3], token)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32"])
@pytest.mark.parametrize("vocab", [256, 70_000])
@pytest.mark.parametrize("name", [*TOKENS, *PAIRS])
def test_small_integers_in_a_large_vocabulary(library, name, vocab, dtype):
    """The numbers that they can hold, of a vocabulary that they cannot; step by step too."""
    vocabularies = [vocab, vocab] if name in PAIRS else [vocab]
    layer = library.make(name, *vocabularies, *SIZES[name][len(vocabularies) :])
    tokens = np.array([[37, 100, 127, 0]]) + (122 if dtype == "uint8" else 0)
    small = tokens.astype(dtype)
    expected = library.call(layer, *sentences(name, tokens))
    np.testing.assert_array_equal(library.call(layer, *sentences(name, small)), expected)
    if hasattr(layer, "step"):
        source = map(library.moved, sentences(name, small)[:2])
        before = layer.encode(*source) if name in PAIRS else [layer.empty(1)]
        _, logits, *_ = layer.step(*before, library.moved(small[:, 0]))
        np.testing.assert_allclose(library.returned(logits), expected[:, 0], rtol=1e-10, atol=1e-10)


def test_tensors_on_the_device_meta():
    """Shapes go through every model; there are no values to look at."""
    library = Library("torch")
    torch = library.backend.xp
    with torch.device("meta"):
        tokens = torch.zeros((2, 3), dtype=torch.int64)
        mask = torch.ones((2, 3), dtype=torch.bool)
        for name in TOKENS:
            out = getattr(library.module, name)(*TOKENS[name])(tokens)
            assert out.is_meta
            assert out.shape[0] == 2
        for name in PAIRS:
            model = getattr(library.module, name)(*PAIRS[name])
            assert model(tokens, mask, tokens).shape == (2, 3, 11)
            memory, state = model.encode(tokens, mask)
            assert model.step(memory, state, tokens[:, 0])[1].shape == (2, 11)
