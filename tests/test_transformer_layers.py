"""The three transformers as layers: names, sizes, starts, and what they refuse."""

import numpy as np
import pytest
from library import Library
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
    expected = "'gelu', 'relu' or 'swiglu'"
    for activation in ("tanh", None):
        with pytest.raises(ValueError, match=f"activation: got {activation!r}, expected {expected}"):  # fmt: skip
            library.make(name, **good, activation=activation)


def made(library, name):
    return library.make(name, **SIZES[name], **WIDTHS)


def test_an_encoder_refuses(library):
    model = made(library, "EncoderOnly")
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
    model, wrong = made(library, "DecoderOnly"), np.array(given)
    with pytest.raises(ValueError, match=f"tokens: {message}"):
        library.call(model, wrong)
    with pytest.raises(ValueError, match=message):
        model.step(model.empty(2), library.moved(wrong[0] if wrong.ndim else wrong))


def test_too_many_tokens(library):
    """Lengths are known under jit too."""
    model = made(library, "DecoderOnly")
    with pytest.raises(ValueError, match="tokens: got 8 of them, expected at most 7"):
        library.call(model, np.zeros((2, 8), int))
    if library.name == "jax":
        import equinox as eqx

        with pytest.raises(ValueError, match="tokens: got 8 of them, expected at most 7"):
            eqx.filter_jit(model)(library.moved(np.zeros((2, 8), int)))


def test_bad_steps(library):
    model = made(library, "DecoderOnly")
    with pytest.raises(ValueError, match=r"token: got shape \(3,\), expected \(2,\), one a row of"):
        model.step(model.empty(2), library.moved(np.zeros(3, int)))
    for batch in (0, -1, 2.5):
        with pytest.raises(ValueError, match=f"batch: got {batch}, expected an integer"):
            model.empty(batch)
    model = made(library, "Transformer")
    memory, cache = model.encode(*map(library.moved, (np.zeros((2, 3), int), np.ones((2, 3), bool))))  # fmt: skip
    assert library.returned(cache.length).tolist() == [0, 0]
    with pytest.raises(ValueError, match="token: got 0 to 11, expected 0 to 10"):
        model.step(memory, cache, library.moved(np.array([0, 11])))
    with pytest.raises(ValueError, match=r"token: got shape \(1,\), expected \(2,\), one a row of"):
        model.step(memory, cache, library.moved(np.array([0])))


WORDS = {"source": np.array([[0, 12]]), "mask": np.array([[True, True]]), "written": np.array([[10]])}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("source", [[0, 13]], "source: got 0 to 13, expected 0 to 12"),
        ("mask", [[False, False]], "mask: got a sentence without a word, expected at least"),
        ("source", [[0] * 8], "source: got 8 tokens, expected at most 7"),
        ("written", [[11]], "written: got 11 to 11, expected 0 to 10"),
        ("written", [[1] * 8], "written: got 8 tokens, expected at most 7"),
    ],
)
def test_bad_sentences(library, name, wrong, message):
    """Both ways in look at what comes."""
    model = made(library, "Transformer")
    library.call(model, *WORDS.values())
    given = WORDS | {name: np.array(wrong)}
    if given["source"].shape[1] == 8:
        given["mask"] = np.ones((1, 8), bool)
    with pytest.raises(ValueError, match=message):
        library.call(model, *given.values())
    if name != "written":
        with pytest.raises(ValueError, match=message):
            model.encode(library.moved(given["source"]), library.moved(given["mask"]))
