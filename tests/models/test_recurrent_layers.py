"""The recurrent layers in both back ends: sizes, starts, what they refuse, conversion."""

import operator

import backends
import numpy as np
import pytest
import reference_recurrent
from reference_recurrent import SCORES, SIZES, make, run, translator

from attnbook import convert
from attnbook._validation import numbers
from attnbook.models import recurrent

by_score = pytest.mark.parametrize("score", SCORES)


@pytest.fixture(params=["torch", "jax"])
def library(request):
    reference_recurrent.skip_unless(request.param)
    return request.param


@pytest.fixture
def both():
    reference_recurrent.skip_unless("torch", "jax")
    return backends.load("torch"), backends.load("jax")


def values_of(layer, name):
    return np.asarray(operator.attrgetter(name)(layer).tolist())


@pytest.mark.parametrize("score", ["additive", "general", "dot", None])
def test_known_scores(score):
    assert recurrent.decoder_score(score) is score


@pytest.mark.parametrize("score", ["Additive", "scaled_dot", "", 0, False, "None"])
def test_unknown_scores(library, score):
    expected = "'additive', 'general', 'dot' or None"
    with pytest.raises(ValueError, match=f"score: got {score!r}, expected {expected}"):
        recurrent.decoder_score(score)
    with pytest.raises(ValueError, match=f"score: got {score!r}, expected {expected}"):
        make(library, "EncoderDecoder", **SIZES, score=score)


def test_two_halves():
    for given in (2, 22, np.int64(4)):
        out = numbers.even(width=given)
        assert (type(out), out) == (int, given)
    for odd in (1, 3, 21):
        with pytest.raises(ValueError, match=f"width: got {odd}, expected an even number"):
            numbers.even(width=odd)
    for wrong in (0, -2, 2.0, None):
        with pytest.raises(ValueError, match=f"width: got {wrong!r}, expected an integer"):
            numbers.even(width=wrong)


def test_limits():
    for given in (None, 1, 0.1, np.float32(2)):
        assert numbers.positive_or_none(clip=given) is given
    for wrong in (0, 0.0, -1.0, float("nan"), float("inf"), -float("inf")):
        with pytest.raises(ValueError, match=f"clip: got {wrong!r}, expected a number above 0"):
            numbers.positive_or_none(clip=wrong)


@by_score
def test_sizes_and_their_names(library, score):
    """Every parameter's shape, and no other; the sizes that a conversion reads."""
    layer, shapes = (
        make(library, "EncoderDecoder", **SIZES, score=score),
        reference_recurrent.shapes(score),
    )
    assert {n: tuple(operator.attrgetter(n)(layer).shape) for n in shapes} == shapes
    assert {n: getattr(layer, n) for n in (*SIZES, "score")} == SIZES | {"score": score}
    if library == "torch":
        assert {n for n, _ in layer.named_parameters()} == set(shapes)
    else:
        assert len(backends.load("jax").jax.tree.leaves(layer)) == len(shapes)
    plain = make(library, "EncoderDecoder", 13, 17)
    assert (plain.embed_dim, plain.hidden_dim, plain.score) == (64, 128, "additive")
    cell = make(library, "GRUCell", 5, 11)
    assert (cell.input_dim, cell.hidden_dim) == (5, 11)
    for name, shape in reference_recurrent.cell_shapes("", 5, 11).items():
        assert tuple(operator.attrgetter(name)(cell).shape) == shape


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("size", [0, -2, 2.5, None])
def test_bad_sizes(library, name, size):
    with pytest.raises(ValueError, match=f"{name}: got {size}, expected an integer"):
        make(library, "EncoderDecoder", **(SIZES | {name: size}))
    cell = {"input_dim": 5, "hidden_dim": 11}
    if name in ("embed_dim", "hidden_dim"):
        name = {"embed_dim": "input_dim"}.get(name, name)
        with pytest.raises(ValueError, match=f"{name}: got {size}, expected an integer"):
            make(library, "GRUCell", **(cell | {name: size}))


def test_an_odd_state_has_no_halves(library):
    with pytest.raises(ValueError, match="hidden_dim: got 21, expected an even number, half for"):
        make(library, "EncoderDecoder", **(SIZES | {"hidden_dim": 21}))


def test_starts_differ_from_part_to_part(library):
    """Another seed gives another layer, the same seed the same; no two parts begin alike."""
    names = reference_recurrent.shapes("additive")
    one, same, other = (
        [values_of(make(library, "EncoderDecoder", **SIZES, seed=seed), n) for n in names]
        for seed in (0, 0, 1)
    )
    for a, b, c in zip(one, same, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.all(a != c)
    firsts = [a.ravel()[0] for a in one]
    assert len(np.unique(firsts)) == len(firsts)
    starts = dict(zip(names, one, strict=True))
    for name, limit in (("forward_cell", 11), ("backward_cell", 11), ("decoder_cell", 22)):
        for part in ("input.weight", "input.bias", "hidden.weight", "hidden.bias"):
            largest = np.abs(starts[f"{name}.{part}"]).max() * limit**0.5
            assert 0.8 < largest <= 1, (name, part)  # uniform, as in torch.nn.GRUCell
    assert 0.5 < starts["combine"].std() * 22**0.5 < 1.5


@pytest.mark.parametrize(
    ("place", "wrong", "message"),
    [
        (0, np.array([[0, 13]]), "source: got 0 to 13, expected 0 to 12"),
        (1, np.array([[False, False]]), "mask: got a sentence without a word, expected at least"),
        (2, np.array([[17]]), "target: got 17 to 17, expected 0 to 16"),
    ],
)
def test_bad_sentences(library, place, wrong, message):
    """Both ways in look at what comes; what is wrong in which way is test_validation_tokens.py's matter."""
    backend, layer = backends.load(library), translator(library, "dot")
    arrays = [np.array([[0, 12]]), np.array([[True, True]]), np.array([[16]])]
    run(library, layer, *arrays)
    arrays[place] = wrong
    with pytest.raises(ValueError, match=message):
        layer(*map(backend.array, arrays))
    if place < 2:
        with pytest.raises(ValueError, match=message):
            layer.encode(*map(backend.array, arrays[:2]))


def test_unroll_is_a_loop(library):
    """Sums on the way, of one series and of two; the last carry comes back."""
    backend, layer = backends.load(library), make(library, "EncoderDecoder", **SIZES)
    x, y = np.arange(1.0, 8).reshape(7, 1), np.arange(7.0) ** 2
    both = tuple(map(backend.array, (x, y)))
    start = backend.array(np.zeros(1))
    carry, sums = layer.unroll(lambda c, at: (c + at[0], c + at[0]), start, both[:1])
    np.testing.assert_array_equal(backend.numpy(sums), np.cumsum(x)[:, None])
    assert float(carry[0]) == 28
    carry, outs = layer.unroll(lambda c, at: (c + at[1], (c, at[0] * at[1])), start, both)
    assert isinstance(outs, tuple)
    np.testing.assert_array_equal(backend.numpy(outs[0])[:, 0], np.cumsum(y) - y)
    np.testing.assert_array_equal(backend.numpy(outs[1])[:, 0], x[:, 0] * y)
    assert float(carry[0]) == y.sum()


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@by_score
def test_conversion_is_exact(both, score, dtype):
    """There and back bit for bit; sizes and score too; the twin of another score has no parameter."""
    torch, layer = both[0].xp, make("torch", "EncoderDecoder", **SIZES, score=score, seed=3)
    layer = layer.to(getattr(torch, dtype))
    twin = convert.torch_to_jax(layer)
    back = convert.jax_to_torch(twin)
    assert back.state_dict().keys() == layer.state_dict().keys()
    for one in (twin, back):
        assert {n: getattr(one, n) for n in (*SIZES, "score")} == SIZES | {"score": score}
    assert (twin.key is None, twin.query is None) == (score in ("dot", None), score != "additive")
    for name, original in layer.named_parameters():
        carried = operator.attrgetter(name)(twin)
        assert str(carried.dtype) == dtype
        exact = original.detach().double().numpy()
        np.testing.assert_array_equal(np.asarray(carried, dtype=np.float64), exact, strict=True)
        torch.testing.assert_close(back.get_parameter(name), original, rtol=0, atol=0)
