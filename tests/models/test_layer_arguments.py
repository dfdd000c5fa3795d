"""One rule for what every layer is given: its library, the numbers' dtype, tokens, masks."""

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
PAIRS = {"EncoderDecoder": (5, 11, 3, 4), "Transformer": (5, 11, 7, 6, 2, 5, 1)}
EPSILON = {"bfloat16": 2.0**-7, "float32": 2.0**-22, "float64": 1e-14}


@pytest.fixture(params=["torch", "jax"])
def library(request):
    return Library(request.param)


def cast(library, layer, dtype):
    if library.name == "torch":
        return layer.to(getattr(library.backend.xp, dtype))
    jax = library.backend.jax
    return jax.tree.map(lambda a: a.astype(dtype) if hasattr(a, "astype") else a, layer)


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


@pytest.mark.parametrize("wrong", ["no", 1, None])
def test_yes_or_no(library, wrong):
    with pytest.raises(ValueError, match=f"bias: got {wrong!r}, expected True or False"):
        library.make("MultiHeadAttention", 6, 2, bias=wrong)
    message = f"return_weights: got {wrong!r}, expected True or False"
    tokens, source = np.ones((2, 3), int), np.ones((2, 5), int)
    for name in ("AttentionOnly", "AttentionPooling"):
        with pytest.raises(ValueError, match=message):
            library.call(library.make(name, *TOKENS[name]), tokens, return_weights=wrong)
    layer = library.make("EncoderDecoder", *PAIRS["EncoderDecoder"])
    with pytest.raises(ValueError, match=message):
        library.call(layer, source, source > 0, source, return_weights=wrong)


@pytest.mark.parametrize("wrong", ["yes", 1, None])
def test_double_is_yes_or_no(wrong):
    from attnbook import devices

    pytest.importorskip("torch")
    with pytest.raises(ValueError, match=f"double: got {wrong!r}, expected True or False"):
        devices.torch_device(double=wrong)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
@pytest.mark.parametrize("name", [*TOKENS, *PAIRS])
def test_small_integers_in_a_large_vocabulary(library, name, dtype):
    """The numbers that they can hold, of a vocabulary that they cannot."""
    tokens = np.array([[3, 100, 127]])
    sizes = (70_000, *TOKENS[name][1:]) if name in TOKENS else (70_000, 70_000, *PAIRS[name][2:])
    layer = library.make(name, *sizes)

    def given(a):
        return [a] if name in TOKENS else [a, a > 0, a]

    expected = library.call(layer, *given(tokens))
    np.testing.assert_array_equal(library.call(layer, *given(tokens.astype(dtype))), expected)


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
