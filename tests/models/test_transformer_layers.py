"""The three transformers as layers: names, sizes, starts, and what they refuse."""

import re

import numpy as np
import pytest
from layer_harness import Library
from test_transformer import SIZES, WIDTHS

SCALE = 0.3  # of first embeddings and positions
models = pytest.mark.parametrize("name", SIZES)
DEFAULTS = {
    "EncoderOnly": {"max_length": None, "embed_dim": 64, "num_heads": 4, "mlp_dim": 128, "num_layers": 3},
    "DecoderOnly": {"embed_dim": 128, "num_heads": 4, "mlp_dim": 512, "num_layers": 2},
    "Transformer": {"embed_dim": 64, "num_heads": 4, "mlp_dim": 256, "num_layers": 2},
}  # fmt: skip
OF_BLOCKS = {"EncoderOnly": "encoder", "DecoderOnly": "decoder"}


@pytest.fixture(params=["torch", "jax"])
def library(request):
    return Library(request.param)


def block_shapes(start, attentions, e, mlp_dim):
    parts = ("query", "key", "value", "output")
    weights = {f"{a}.{p}": (e, e) for a in attentions for p in parts}
    weights |= {"mlp.hidden": (mlp_dim, e), "mlp.output": (e, mlp_dim)}
    norms = [f"{a.replace('attention', '').strip('_') or 'attention'}_norm" for a in attentions]
    shapes = {f"{n}.weight": shape for n, shape in weights.items()}
    shapes |= {f"{n}.bias": shape[:1] for n, shape in weights.items()}
    shapes |= {f"{n}.{k}": (e,) for n in (*norms, "mlp_norm") for k in ("weight", "bias")}
    return {start + n: shape for n, shape in shapes.items()}


def stack_shapes(name, layers, e, mlp_dim, attentions=("attention",)):
    shapes = {f"{name}_norm.{kind}": (e,) for kind in ("weight", "bias")}
    for number in range(layers):
        shapes |= block_shapes(f"{name}.{number}.", attentions, e, mlp_dim)
    return shapes


@pytest.mark.parametrize("layers", [1, 3])
def test_names_and_shapes(library, layers):
    """Every parameter's shape, and no other."""
    how = {"embed_dim": 12, "num_heads": 3, "mlp_dim": 5, "num_layers": layers}
    expected = {
        "EncoderOnly": {"embedding.weight": (12, 2), "embedding.bias": (12,), "position": (7, 12)}
        | {"readout.weight": (5, 12), "readout.bias": (5,)}
        | stack_shapes("encoder", layers, 12, 5),
        "DecoderOnly": {"embedding.weight": (11, 12), "position": (7, 12)}
        | {"readout.weight": (11, 12), "readout.bias": (11,)}
        | stack_shapes("decoder", layers, 12, 5),
        "Transformer": {"source_embedding.weight": (13, 12), "target_embedding.weight": (11, 12)}
        | {"source_position": (7, 12), "target_position": (7, 12)}
        | {"output.weight": (11, 12), "output.bias": (11,)}
        | stack_shapes("encoder", layers, 12, 5)
        | stack_shapes("decoder", layers, 12, 5, ("attention", "cross_attention")),
    }
    for name, shapes in expected.items():
        model = library.make(name, **SIZES[name], **how)
        assert {n: a.shape for n, a in library.parameters(model).items()} == shapes
    model = library.make("EncoderOnly", 2, 5, **how)
    assert model.position is None
    del expected["EncoderOnly"]["position"]
    assert {n: a.shape for n, a in library.parameters(model).items()} == expected["EncoderOnly"]


@models
def test_sizes_are_kept_and_parts_are_told(library, name):
    """What a conversion reads; norm and activation reach every block."""
    how = SIZES[name] | WIDTHS | {"norm": "post", "activation": "swiglu"}
    model = library.make(name, **how)
    assert {n: getattr(model, n) for n in how} == how
    for stack in ("encoder", "decoder") if name == "Transformer" else (OF_BLOCKS[name],):
        blocks = list(getattr(model, stack))
        assert len(blocks) == 2
        for block in blocks:
            told = block.norm, block.activation, block.num_heads, block.mlp_dim, block.dropout
            assert told == ("post", "swiglu", 3, 5, 0.0)
    needed = {n: v for n, v in SIZES[name].items() if n not in DEFAULTS[name]}
    plain = library.make(name, **needed)
    defaults = DEFAULTS[name] | {"norm": "pre", "activation": "gelu"}
    assert {n: getattr(plain, n) for n in defaults} == defaults


@models
def test_starts_differ_from_part_to_part(library, name):
    """No two numbers alike; embeddings and positions of their scale; another seed, another model."""
    how = SIZES[name] | WIDTHS | {"activation": "swiglu"}
    for long in ("vocab_size", "source_vocab", "target_vocab", "max_length"):
        how |= {long: 101} if long in how else {}
    one, same, other = (library.parameters(library.make(name, **how, seed=s)) for s in (0, 0, 1))
    learned = [n for n in one if "norm" not in n]
    for n in learned:
        np.testing.assert_array_equal(one[n], same[n])
        assert np.mean(one[n] != other[n]) > 0.999  # torch draws in float32
    drawn = np.concatenate([one[n].ravel() for n in learned])
    assert len(np.unique(drawn)) > 0.999 * len(drawn)
    small = [n for n in learned if "position" in n or ("embedding" in n and one[n].shape[0] == 101)]
    assert len(small) == {"EncoderOnly": 1, "DecoderOnly": 2, "Transformer": 4}[name]
    for n in small:
        assert abs(one[n].mean()) < 0.12 * SCALE
        assert abs(one[n].std() / SCALE - 1) < 0.1
    for n in set(one) - set(learned):
        np.testing.assert_array_equal(one[n], np.full(12, n.endswith("weight")))


@models
def test_bad_sizes(library, name):
    good = SIZES[name] | WIDTHS
    for size in good:
        for wrong in (0, -1, 2.5, None):
            if (size, wrong) == ("max_length", None) and name == "EncoderOnly":
                continue
            with pytest.raises(ValueError, match=f"{size}: got {wrong}, expected an integer"):
                library.make(name, **(good | {size: wrong}))
    with pytest.raises(ValueError, match="num_heads: got 5, expected a divisor of 12, the width"):
        library.make(name, **(good | {"num_heads": 5}))
    for norm in ("before", None):
        with pytest.raises(ValueError, match=f"norm: got {norm!r}, expected 'pre' or 'post'"):
            library.make(name, **good, norm=norm)
    expected = "'gelu', 'gelu_tanh', 'relu' or 'swiglu'"
    for activation in ("tanh", None):
        with pytest.raises(ValueError, match=f"activation: got {activation!r}, expected {expected}"):  # fmt: skip
            library.make(name, **good, activation=activation)


def make(library, name):
    return library.make(name, **SIZES[name], **WIDTHS)


def test_an_encoder_refuses(library):
    model = make(library, "EncoderOnly")
    with pytest.raises(ValueError, match=r"x: got shape \(2, 5, 3\), expected \(\.\.\., n, 2\)"):
        library.call(model, np.zeros((2, 5, 3)))
    with pytest.raises(ValueError, match="x: got 8 tokens, expected at most 7"):
        library.call(model, np.zeros((2, 8, 2)))
    with pytest.raises(ValueError, match=r"mask: got shape \(3, 5\), expected one that fits"):
        library.call(model, np.zeros((2, 5, 2)), np.ones((3, 5), bool))
    free = library.make("EncoderOnly", **(SIZES["EncoderOnly"] | {"max_length": None}), **WIDTHS)
    assert library.call(free, np.zeros((1, 31, 2))).shape == (1, 31, 5)


BAD = {
    "too large": ([[0, 11]], "got 0 to 11, expected 0 to 10"),
    "negative": ([[-1, 3]], "got -1 to 3, expected 0 to 10"),
    "floats": ([[0.0, 1.0]], r"got dtype .*float64, shape \(.*2,?\), expected integers"),
    "a number": (3, r"got dtype .*int64, shape \(\), expected integers of shape"),
}


@pytest.mark.parametrize(("given", "message"), BAD.values(), ids=BAD)
def test_bad_tokens(library, given, message):
    model, wrong = make(library, "DecoderOnly"), np.array(given)
    with pytest.raises(ValueError, match=f"tokens: {message}"):
        library.call(model, wrong)
    with pytest.raises(ValueError, match=message):
        model.step(model.empty(2), library.moved(wrong[0] if wrong.ndim else wrong))


def test_too_many_tokens(library):
    """Lengths are known under jit too."""
    model = make(library, "DecoderOnly")
    with pytest.raises(ValueError, match="tokens: got 8 of them, expected at most 7"):
        library.call(model, np.zeros((2, 8), int))
    if library.name == "jax":
        import equinox as eqx

        with pytest.raises(ValueError, match="tokens: got 8 of them, expected at most 7"):
            eqx.filter_jit(model)(library.moved(np.zeros((2, 8), int)))


def test_bad_steps(library):
    model = make(library, "DecoderOnly")
    with pytest.raises(
        ValueError, match=r"token: got shape \(3,\), expected \(2,\), one per row of"
    ):
        model.step(model.empty(2), library.moved(np.zeros(3, int)))
    for batch in (0, -1, 2.5):
        with pytest.raises(ValueError, match=f"batch: got {batch}, expected an integer"):
            model.empty(batch)
    model = make(library, "Transformer")
    memory, cache = model.encode(*map(library.moved, (np.zeros((2, 3), int), np.ones((2, 3), bool))))  # fmt: skip
    assert library.returned(cache.length).tolist() == [0, 0]
    with pytest.raises(ValueError, match="token: got 0 to 11, expected 0 to 10"):
        model.step(memory, cache, library.moved(np.array([0, 11])))
    with pytest.raises(
        ValueError, match=r"token: got shape \(1,\), expected \(2,\), one per row of"
    ):
        model.step(memory, cache, library.moved(np.array([0])))


WORDS = {"source": np.array([[0, 12]]), "mask": np.array([[True, True]]), "target": np.array([[10]])}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("source", [[0, 13]], "source: got 0 to 13, expected 0 to 12"),
        ("mask", [[False, False]], "mask: got a sentence without a word, expected at least"),
        ("source", [[0] * 8], "source: got 8 tokens, expected at most 7"),
        ("target", [[11]], "target: got 11 to 11, expected 0 to 10"),
        ("target", [[1] * 8], "target: got 8 tokens, expected at most 7"),
    ],
)
def test_bad_sentences(library, name, wrong, message):
    """Both ways in look at what comes."""
    model = make(library, "Transformer")
    library.call(model, *WORDS.values())
    given = WORDS | {name: np.array(wrong)}
    if given["source"].shape[1] == 8:
        given["mask"] = np.ones((1, 8), bool)
    with pytest.raises(ValueError, match=message):
        library.call(model, *given.values())
    if name != "target":
        with pytest.raises(ValueError, match=message):
            model.encode(library.moved(given["source"]), library.moved(given["mask"]))


@pytest.mark.parametrize("shape", [(3,), (2, 2, 3), (0, 3)])
def test_a_source_is_a_batch(library, shape):
    """Three words are not three rows of a cache."""
    model, source = make(library, "Transformer"), library.moved(np.zeros(shape, int))
    got = re.escape(str(shape))
    with pytest.raises(
        ValueError, match=rf"^source: got shape {got}, expected \(b, n\), one row or"
    ):
        model.encode(source, source == 0)


def test_steps_take_what_their_own_model_gave(library):
    """None, a cache of other layers, heads, widths or lengths, a memory of other rows."""
    token = library.moved(np.zeros(2, int))
    writer, translator = make(library, "DecoderOnly"), make(library, "Transformer")
    source = library.moved(np.zeros((2, 3), int))
    memory, cache = translator.encode(source, source == 0)
    for wrong, kind in ((None, "NoneType"), (memory, "Memory"), (tuple(cache), "tuple")):
        with pytest.raises(
            TypeError, match=f"cache: got a {kind}, expected what empty of the model"
        ):
            writer.step(wrong, token)
        with pytest.raises(
            TypeError, match=f"cache: got a {kind}, expected what encode of the model"
        ):
            translator.step(memory, wrong, token)
    for wrong, kind in ((None, "NoneType"), (cache, "Cache")):
        with pytest.raises(
            TypeError, match=f"memory: got a {kind}, expected what encode of the model"
        ):
            translator.step(wrong, cache, token)
    for size, number in (("num_layers", 1), ("num_layers", 3), ("num_heads", 2), ("embed_dim", 6), ("max_length", 9)):  # fmt: skip
        other = library.make("DecoderOnly", **(SIZES["DecoderOnly"] | WIDTHS | {size: number}))
        foreign = other.empty(2)
        for step in (lambda c=foreign: writer.step(c, token), lambda c=foreign: translator.step(memory, c, token)):  # fmt: skip
            with pytest.raises(
                ValueError, match=r"cache: got keys of shape .*, expected \(2, 2, 3, 7"
            ):
                step()
    mixed = cache._replace(values=cache.values[:, :1])
    with pytest.raises(
        ValueError, match=r"cache: got values of shape \(2, 1, .*, expected \(2, 2,"
    ):
        translator.step(memory, mixed, token)
    longer = library.moved(np.zeros((3, 3), int))
    with pytest.raises(ValueError, match="memory: got 3 rows, expected 1, or 2 as in cache"):
        translator.step(translator.encode(longer, longer == 0)[0], cache, token)


@pytest.mark.parametrize("wrong", ["no", 1, None])
@models
def test_weights_are_asked_for_by_a_flag(library, name, wrong):
    given = {"EncoderOnly": [np.zeros((2, 5, 2))], "DecoderOnly": [np.zeros((2, 5), int)], "Transformer": [*WORDS.values()]}  # fmt: skip
    with pytest.raises(ValueError, match=f"return_weights: got {wrong!r}, expected True or False"):
        library.call(make(library, name), *given[name], return_weights=wrong)


@models
def test_parts_are_compared_as_one(name):
    """Without its arrays a JAX model is a key: equal to another of its kind, and compiled once."""
    library = Library("jax")
    import equinox as eqx

    one, other = (eqx.partition(make(library, name), eqx.is_array)[1] for _ in range(2))
    assert hash(one) == hash(other)
    assert one == other
    stacks = ("encoder", "decoder") if name == "Transformer" else (OF_BLOCKS[name],)
    assert all(type(getattr(make(library, name), stack)) is tuple for stack in stacks)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
@pytest.mark.parametrize("vocab", [256, 70_000])
def test_small_integers_are_not_wrapped(library, dtype, vocab):
    """A vocabulary that their dtype does not hold: the same as for int64."""
    model = library.make("DecoderOnly", vocab, 9, 6, 2, 5, 1)
    tokens = np.array([[37, 100, 127, 0]]) + (122 if dtype == "uint8" else 0)
    expected = library.call(model, tokens)
    np.testing.assert_array_equal(library.call(model, tokens.astype(dtype)), expected)
    token = library.moved(tokens[0, :1].astype(dtype))
    logits = library.returned(model.step(model.empty(1), token)[1])
    np.testing.assert_allclose(logits, expected[:, 0], rtol=1e-10, atol=1e-10)
