"""The three transformers as layers: names, sizes, starts, and what they refuse."""

import re

import numpy as np
import pytest
from layer_harness import Library, distinct_starts
from test_transformer import SIZES, WIDTHS

SCALE = 0.3  # of first embeddings and positions
models = pytest.mark.parametrize("name", SIZES)
DEFAULTS = {
    "EncoderOnly": {"embed_dim": 64, "num_heads": 4, "mlp_dim": 128, "num_layers": 3},
    "DecoderOnly": {"embed_dim": 128, "num_heads": 4, "mlp_dim": 512, "num_layers": 2},
    "Transformer": {"embed_dim": 64, "num_heads": 4, "mlp_dim": 256, "num_layers": 2},
}
DEFAULTS["EncoderOnly"]["max_length"] = None
OF_BLOCKS = {"EncoderOnly": "encoder", "DecoderOnly": "decoder"}


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
    """Embeddings and positions of their scale; norms change nothing."""
    how = SIZES[name] | WIDTHS | {"activation": "swiglu"}
    for long in ("vocab_size", "source_vocab", "target_vocab", "max_length"):
        how |= {long: 101} if long in how else {}
    starts = distinct_starts(library, name, share=0.999, **how)
    small = [n for n in starts if "position" in n or ("embedding" in n and len(starts[n]) == 101)]
    assert len(small) == {"EncoderOnly": 1, "DecoderOnly": 2, "Transformer": 4}[name]
    for n in small:
        assert abs(starts[n].mean()) < 0.12 * SCALE
        assert abs(starts[n].std() / SCALE - 1) < 0.1
    for n in [n for n in starts if "norm" in n]:
        np.testing.assert_array_equal(starts[n], np.full(12, n.endswith("weight")))


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


def test_bad_steps(library):
    model = make(library, "DecoderOnly")
    with pytest.raises(ValueError, match="token: got 0 to 11, expected 0 to 10"):
        model.step(model.empty(2), library.moved(np.array([0, 11])))
    message = r"token: got shape \({},\), expected \(2,\), one per row of"
    with pytest.raises(ValueError, match=message.format(3)):
        model.step(model.empty(2), library.moved(np.zeros(3, int)))
    for batch in (0, -1, 2.5):
        with pytest.raises(ValueError, match=f"batch: got {batch}, expected an integer"):
            model.empty(batch)
    model, source = make(library, "Transformer"), library.moved(np.zeros((2, 3), int))
    memory, cache = model.encode(source, source == 0)
    assert library.returned(cache.length).tolist() == [0, 0]
    with pytest.raises(ValueError, match="token: got 0 to 11, expected 0 to 10"):
        model.step(memory, cache, library.moved(np.array([0, 11])))
    with pytest.raises(ValueError, match=message.format(1)):
        model.step(memory, cache, library.moved(np.array([0])))


@pytest.mark.parametrize("shape", [(3,), (2, 2, 3), (0, 3)])
def test_a_source_is_a_batch(library, shape):
    """Three words are not three rows of a cache."""
    model, source = make(library, "Transformer"), library.moved(np.zeros(shape, int))
    message = rf"^source: got shape {re.escape(str(shape))}, expected \(b, n\), one row or"
    with pytest.raises(ValueError, match=message):
        model.encode(source, source == 0)


def test_steps_take_what_their_own_model_gave(library):
    """None, a cache of other layers, heads, widths or lengths, a memory of other rows."""
    token = library.moved(np.zeros(2, int))
    writer, translator = make(library, "DecoderOnly"), make(library, "Transformer")
    source = library.moved(np.zeros((2, 3), int))
    memory, cache = translator.encode(source, source == 0)
    message = "{}: got a {}, expected what {} of the model"
    for wrong, kind in ((None, "NoneType"), (memory, "Memory"), (tuple(cache), "tuple")):
        with pytest.raises(TypeError, match=message.format("cache", kind, "empty")):
            writer.step(wrong, token)
        with pytest.raises(TypeError, match=message.format("cache", kind, "encode")):
            translator.step(memory, wrong, token)
    for wrong, kind in ((None, "NoneType"), (cache, "Cache")):
        with pytest.raises(TypeError, match=message.format("memory", kind, "encode")):
            translator.step(wrong, cache, token)
    others = {"num_layers": 1, "num_heads": 2, "embed_dim": 6, "max_length": 9}
    for size, number in (*others.items(), ("num_layers", 3)):
        other = library.make("DecoderOnly", **(SIZES["DecoderOnly"] | WIDTHS | {size: number}))
        message = r"cache: got keys of shape .*, expected \(2, 2, 3, 7"
        with pytest.raises(ValueError, match=message):
            writer.step(other.empty(2), token)
        with pytest.raises(ValueError, match=message):
            translator.step(memory, other.empty(2), token)
    mixed = cache._replace(values=cache.values[:, :1])
    message = r"cache: got values of shape \(2, 1, .*, expected \(2, 2,"
    with pytest.raises(ValueError, match=message):
        translator.step(memory, mixed, token)
    longer = library.moved(np.zeros((3, 3), int))
    with pytest.raises(ValueError, match="memory: got 3 rows, expected 1, or 2 as in cache"):
        translator.step(translator.encode(longer, longer == 0)[0], cache, token)


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
