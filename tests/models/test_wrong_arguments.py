"""The mistakes that people make with models: the message names the argument, and what was expected."""

import numpy as np
import pytest
from layer_harness import Library

BLOCK = {"embed_dim": 12, "num_heads": 4, "mlp_dim": 5}
MODEL = BLOCK | {"num_layers": 1, "max_length": 7}
VOCABULARIES = {"source_vocab": 5, "target_vocab": 11}
SIZES = {
    "MLP": {"embed_dim": 12, "mlp_dim": 5},
    "EncoderBlock": BLOCK,
    "DecoderBlock": BLOCK,
    "EncoderOnly": MODEL | {"input_dim": 2, "output_dim": 5},
    "DecoderOnly": MODEL | {"vocab_size": 11},
    "Transformer": MODEL | VOCABULARIES,
    "AttentionOnly": {"vocab_size": 11, "max_length": 7, "embed_dim": 12, "num_heads": 4},
    "GRUCell": {"input_dim": 3, "hidden_dim": 5},
    "EncoderDecoder": VOCABULARIES | {"embed_dim": 3, "hidden_dim": 4},
}
MADE = [  # a layer, what is wrong with its arguments, and the message
    *(
        (name, {size: 0}, f"{size}: got 0, expected an integer")
        for name in SIZES
        for size in SIZES[name]
    ),
    ("EncoderBlock", {"num_heads": 5}, "num_heads: got 5, expected a divisor of 12"),
    ("DecoderOnly", {"num_kv_heads": 3}, "num_kv_heads: got 3, expected a divisor of 4"),
    ("MLP", {"activation": "tanh"}, "activation: got 'tanh', expected 'gelu', "),
    ("EncoderBlock", {"norm": "before"}, "norm: got 'before', expected 'pre' or 'post'"),
    ("DecoderBlock", {"dropout": 1.0}, "dropout: got 1.0, expected a share from 0 to"),
    ("DecoderOnly", {"rotary_base": 0.0}, "rotary_base: got 0.0, expected a number above 0"),
    (
        "DecoderOnly",
        {"num_heads": 12, "rotary_base": 20.0},
        "rotary_base: got 20.0 for heads of width 1, expected an even width",
    ),
    ("EncoderBlock", {"attention": "gated"}, "attention: got 'gated', expected 'softmax'"),
    (
        "EncoderBlock",
        {"attention": "linear", "num_heads": 2, "rotary_base": 9.0},
        "rotary_base: got 9.0 with attention='linear', expected None",
    ),
    ("EncoderDecoder", {"score": "Dot"}, "score: got 'Dot', expected 'additive', 'general'"),
    ("EncoderDecoder", {"hidden_dim": 5}, "hidden_dim: got .*5, expected an even"),
]
X, TOKENS = np.ones((2, 5, 12)), np.ones((2, 5), int)
WORDS = {"source": TOKENS, "mask": TOKENS > 0, "target": TOKENS}
LONG = np.ones((2, 8), int)
CALLED = [  # a layer, what it is called with, and the message
    ("MLP", {"x": X[..., :7]}, r"x: got shape \(2, 5, 7\), expected \(..., n, 12\)"),
    ("EncoderBlock", {"x": X[..., :7]}, r"x: got shape \(2, 5, 7\), expected \(..., n, 12\)"),
    (
        "EncoderBlock",
        {"x": X, "mask": np.ones((2, 1, 1, 5), bool)},
        r"mask: got shape \(2, 1, 1, 5\), expected no more axes",
    ),
    (
        "DecoderBlock",
        {"x": X, "memory": X[..., :7]},
        r"memory: got shape \(2, 5, 7\), expected \(..., n, 12\)",
    ),
    (
        "DecoderBlock",
        {"x": X, "memory": X[:, :4], "memory_mask": np.ones((5, 5), bool)},
        r"mask: got shape \(5, 5\), expected one that fits \(2, 5, 4\)",
    ),
    ("EncoderOnly", {"x": X}, r"x: got shape \(2, 5, 12\), expected \(..., n, 2\)"),
    ("EncoderOnly", {"x": np.ones((2, 8, 2))}, "x: got 8 tokens, expected at most 7"),
    ("DecoderOnly", {"tokens": TOKENS + 10}, "tokens: got 11 to 11, expected 0 to 10"),
    ("DecoderOnly", {"tokens": TOKENS / 2}, "tokens: got dtype .*float64, .* expected integers"),
    ("DecoderOnly", {"tokens": LONG}, "tokens: got 8 of them, expected at most 7"),
    (
        "DecoderOnly",
        {"tokens": TOKENS, "mask": np.ones((5, 5), bool)},
        r"mask: got .*expected bool of shape \(2, 5\)",
    ),
    *(
        (name, WORDS | wrong, message)
        for name in ("EncoderDecoder", "Transformer")
        for wrong, message in (
            ({"source": TOKENS + 4}, "source: got 5 to 5, expected 0 to 4"),
            ({"mask": TOKENS < 0}, "mask: got a sentence without a word, expected at least"),
            ({"target": TOKENS + 10}, "target: got 11 to 11, expected 0 to 10"),
        )
    ),
    ("Transformer", WORDS | {"target": LONG}, "target: got 8 tokens, expected at most 7"),
    (
        "Transformer",
        WORDS | {"source": LONG, "mask": LONG > 0},
        "source: got 8 tokens, expected at most 7",
    ),
    (
        "GRUCell",
        {"inputs": X[..., :4], "state": X[..., :5]},
        r"inputs: got shape \(2, 5, 4\), expected \(..., 3\)",
    ),
]


@pytest.mark.parametrize(("name", "wrong", "message"), MADE)
def test_a_layer_that_cannot_be_made(library, name, wrong, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        library.make(name, **SIZES[name] | wrong)


@pytest.mark.parametrize(("name", "given", "message"), CALLED)
def test_a_call_that_does_not_fit(library, name, given, message):
    layer = library.make(name, **SIZES[name])
    with pytest.raises(ValueError, match=message):
        library.call(layer, **given)


@pytest.mark.parametrize(("name", "given"), [("MLP", X), ("DecoderOnly", TOKENS)])
def test_arrays_of_another_library_and_lists(library, name, given):
    layer = library.make(name, **SIZES[name])
    with pytest.raises(TypeError, match=r"^\w+, .*: got arrays of .*numpy.*, expected one library"):
        layer(given)
    with pytest.raises(
        TypeError, match=r"(x|tokens): got a list, expected a NumPy, PyTorch or JAX"
    ):
        layer(given.tolist())


@pytest.mark.parametrize(
    ("name", "argument", "ours"),
    [
        ("EncoderBlock", "src_mask", "mask, whose True = may attend"),
        ("EncoderBlock", "src_key_padding_mask", r"mask=~padding\[:, None, :\]"),
        ("DecoderBlock", "memory_key_padding_mask", r"memory_mask=~padding\[:, None, :\]"),
        ("MultiHeadAttention", "need_weights", "return_weights"),
    ],
)
def test_arguments_of_torchs_own_layers_are_told_ours(name, argument, ours):
    library = Library("torch")
    sizes = {"embed_dim": 12, "num_heads": 4} if name == "MultiHeadAttention" else BLOCK
    x = library.moved(X)
    with pytest.raises(TypeError, match=f"{argument}: got an argument of torch.nn's layer.*{ours}"):
        library.make(name, **sizes)(x, x, **{argument: None})


def test_a_step(library):
    """A token out of range or of other rows, no cache, a memory that is none, an attention without one."""
    writer, reader, recurrent = (
        library.make(name, **SIZES[name])
        for name in ("DecoderOnly", "Transformer", "EncoderDecoder")
    )
    words, token = library.moved(TOKENS), library.moved(np.array([0, 3]))
    far, three = library.moved(np.array([0, 11])), library.moved(np.zeros(3, int))
    read, heard = (model.encode(words, words > 0) for model in (reader, recurrent))
    cache, rows = writer.empty(2), r"token: got shape \(3,\), expected \(2,\), one per row of"
    outside = "token: got 0 to 11, expected 0 to 10"
    for error, message, model, given in (
        (ValueError, outside, writer, (cache, far)),
        (ValueError, rows, writer, (cache, three)),
        (ValueError, outside, reader, (*read, far)),
        (ValueError, rows, reader, (*read, three)),
        (ValueError, outside, recurrent, (*heard, far)),
        (ValueError, rows, recurrent, (*heard, three)),
        (TypeError, "cache: got a NoneType, expected what empty of", writer, (None, token)),
        (
            TypeError,
            "memory: got a NoneType, expected what encode of",
            reader,
            (None, cache, token),
        ),
    ):
        with pytest.raises(error, match=message):
            model.step(*given)
    with pytest.raises(ValueError, match=r"source: got shape \(5,\), expected \(b, n\), one row"):
        reader.encode(words[0], words[0] > 0)
    state = library.make("DecoderOnly", **SIZES["DecoderOnly"], attention="linear")
    with pytest.raises(ValueError, match="model: got one with attention='linear', expected 'soft"):
        state.empty(1)
