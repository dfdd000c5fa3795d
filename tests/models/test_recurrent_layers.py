"""The recurrent layers in both back ends: sizes, starts, what they refuse, conversion."""

import numpy as np
import pytest
import reference_recurrent
from layer_harness import distinct_starts
from reference_recurrent import SCORES, SIZES, run, translator

from attnbook._validation import numbers
from attnbook.models import recurrent

by_score = pytest.mark.parametrize("score", SCORES)


@by_score
def test_known_scores(score):
    assert recurrent.decoder_score(score) is score


@pytest.mark.parametrize("score", ["Additive", "scaled_dot", "", 0, False, "None"])
def test_unknown_scores(library, score):
    expected = "'additive', 'general', 'dot' or None"
    with pytest.raises(ValueError, match=f"score: got {score!r}, expected {expected}"):
        recurrent.decoder_score(score)
    with pytest.raises(ValueError, match=f"score: got {score!r}, expected {expected}"):
        library.make("EncoderDecoder", **SIZES, score=score)


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
    layer = library.make("EncoderDecoder", **SIZES, score=score)
    shapes = {n: a.shape for n, a in library.parameters(layer).items()}
    assert shapes == reference_recurrent.shapes(score)
    assert {n: getattr(layer, n) for n in (*SIZES, "score")} == SIZES | {"score": score}
    plain = library.make("EncoderDecoder", 13, 17)
    assert (plain.embed_dim, plain.hidden_dim, plain.score) == (64, 128, "additive")
    cell = library.make("GRUCell", 5, 11)
    assert (cell.input_dim, cell.hidden_dim) == (5, 11)
    shapes = {n: a.shape for n, a in library.parameters(cell).items()}
    assert shapes == reference_recurrent.cell_shapes("", 5, 11)


def test_an_odd_state_has_no_halves(library):
    with pytest.raises(ValueError, match="hidden_dim: got 21, expected an even number, half for"):
        library.make("EncoderDecoder", **(SIZES | {"hidden_dim": 21}))


def test_starts_differ_from_part_to_part(library):
    starts = distinct_starts(library, "EncoderDecoder", **SIZES, share=0.999)
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
    backend, layer = library.backend, translator(library, "dot")
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
    backend, layer = library.backend, library.make("EncoderDecoder", **SIZES)
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
