"""The recurrent layers in both back ends: sizes, starts, their loop."""

import numpy as np
import pytest
import reference_recurrent
from layer_harness import distinct_starts
from reference_recurrent import SCORES, SIZES

by_score = pytest.mark.parametrize("score", SCORES)


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
