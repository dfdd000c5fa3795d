"""The recurrent encoder–decoder: PyTorch's GRU, the loop, padding, causality, what it writes."""

import numpy as np
import pytest
import reference_recurrent
from layer_harness import Library, distinct_starts, randomized, with_parameters
from reference_recurrent import SCORES, SIZES, M, run, sample, translator, with_weights

from attnbook.generate.decoding import beam, greedy
from attnbook.models import losses
from attnbook.train import training

by_score = pytest.mark.parametrize("score", SCORES)
CELL = reference_recurrent.cell_shapes("", 5, 11)


def assert_close(out, expected, tolerance=1e-12):
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)


def test_gru_equals_pytorchs(library, rng):
    """And torch.nn.GRUCell's numbers are those of the twin in JAX."""
    parameters = reference_recurrent.random_parameters(CELL)
    x, state = rng.normal(size=(2, 3, 5)), rng.normal(size=(2, 3, 11))
    torch = Library("torch").backend.xp
    theirs = torch.nn.GRUCell(5, 11, dtype=torch.float64)
    short = {"weight_ih": "input.weight", "weight_hh": "hidden.weight"}
    short |= {"bias_ih": "input.bias", "bias_hh": "hidden.bias"}
    theirs.load_state_dict({n: torch.from_numpy(parameters[ours]) for n, ours in short.items()})
    expected = theirs(*(torch.from_numpy(a).reshape(6, -1) for a in (x, state)))
    cell = with_parameters(library, library.make("GRUCell", 5, 11), parameters)
    assert_close(run(library, cell, x, state).reshape(6, 11), expected.detach())


@by_score
def test_equals_the_loop(library, rng, score):
    """Two sentences of 5 and 7 words: every parameter by its name, logits, and weights."""
    layer, arrays = translator(library, score), sample(rng)
    parameters = library.parameters(layer)
    assert {n: a.shape for n, a in parameters.items()} == reference_recurrent.shapes(score)
    expected = reference_recurrent.translations(parameters, score, *arrays)
    outs = run(library, with_weights(layer), *arrays)
    for out, right in zip(outs, expected, strict=True):
        assert_close(out, right, 1e-11)
    assert_close(run(library, layer, *arrays), outs[0])
    nested = run(library, layer, *(np.stack([a, a[::-1], a]) for a in arrays))
    assert_close(nested, np.stack([outs[0], outs[0][::-1], outs[0]]), 1e-11)


@by_score
def test_padding_and_what_is_written_later_count_exactly_0(library, rng, score):
    """Other tokens there: the same bits before; masked words in between are as if not there."""
    layer, (source, mask, written) = translator(library, score), sample(rng)
    logits, weights = run(library, with_weights(layer), source, mask, written)
    other = np.where(mask, source, (source + 5) % 13)
    same = run(library, with_weights(layer), other, mask, written)
    np.testing.assert_array_equal(same[0], logits)
    np.testing.assert_array_equal(same[1], weights)
    changed = np.where(np.arange(M) < M // 2, written, (written + 1) % 17)
    after, asked = run(library, with_weights(layer), source, mask, changed)
    np.testing.assert_array_equal(after[:, : M // 2], logits[:, : M // 2])
    np.testing.assert_array_equal(asked[:, : M // 2 + 1], weights[:, : M // 2 + 1])
    assert np.all(np.abs(after - logits)[:, M // 2 :].max(-1) > 1e-6)
    mask[:] = np.array([[0, 1, 1, 0, 1, 0, 0], [1, 0, 0, 1, 1, 1, 1]], dtype=bool)
    holes = run(library, layer, source, mask, written)
    for row, real in enumerate(mask):
        cut = source[row, real], np.ones(real.sum(), dtype=bool), written[row]
        assert_close(holes[row], run(library, layer, *cut))


@by_score
def test_teacher_forcing_is_writing_step_by_step(library, rng, score):
    backend, layer, arrays = library.backend, translator(library, score), sample(rng)
    logits, weights = run(library, with_weights(layer), *arrays)
    source, mask, written = map(backend.array, arrays)
    memory, state = layer.encode(source, mask)
    for i in range(5):
        state, one, asked = layer.step(memory, state, written[:, i])
        assert_close(backend.numpy(one), logits[:, i])
        assert_close(backend.numpy(asked), weights[:, i])


@pytest.mark.parametrize("end", [2, 3])
@pytest.mark.parametrize("name", ["additive", None, "Transformer"])
def test_what_is_written_is_the_most_probable(library, rng, name, end):
    """The argmax of the logits when a model is forced to write that; and a beam's probabilities."""
    if name == "Transformer":
        layer = randomized(library, name, SIZES["source_vocab"], 5, 7, 12, 3, 5, 2)
    else:
        layer = translator(library, name)
    words, mask, _ = sample(rng)
    how = {"start": 1, "end": end, "limit": 7}
    given = library.moved(words), library.moved(mask)
    written, read = greedy(layer, *given, **how)
    fed = np.concatenate([np.full((2, 1), 1), written[:, :-1]], axis=1)
    logits, weights = run(library, with_weights(layer), words, mask, fed)
    weights = weights[-1].mean(1) if name == "Transformer" else weights
    open_ = np.cumsum(fed == end, axis=1) == 0
    np.testing.assert_array_equal(logits.argmax(-1)[open_], written[open_])
    np.testing.assert_allclose(read, weights, rtol=1e-10, atol=1e-12)
    for tokens, probability in beam(layer, given[0][1], given[1][1], **how, width=3):
        fed = np.array([[1, *tokens[:-1]]])
        (out,) = run(library, layer, words[1:], mask[1:], fed)
        likely = out - np.log(np.exp(out).sum(-1, keepdims=True))
        expected = likely[np.arange(len(tokens)), tokens].sum()
        np.testing.assert_allclose(probability, expected, rtol=1e-10)


def test_torch_and_jax_learn_the_same(rng):
    """Ten steps of clipped gradients; the libraries' clips differ by a millionth."""
    torch, jax = Library("torch"), Library("jax")
    layer, twin = translator(torch, "additive"), translator(jax, "additive")
    batches = list(training.minibatches(sample(rng), size=2, steps=10, seed=0))

    def loss(layer, source, mask, written):
        return losses.cross_entropy(layer(source, mask, written[:, :-1]), written[:, 1:])

    how = {"learning_rate": 0.01, "clip": 0.5}
    ours = torch.module.train(layer, loss, batches, **how)[1].losses
    with jax.backend.jax.numpy_dtype_promotion("standard"):  # as optax is written
        learnt, history = jax.module.train(twin, loss, batches, **how)
    np.testing.assert_allclose(ours, history.losses, rtol=1e-5)
    assert ours[-1] < 0.8 * ours[0]
    found = jax.parameters(learnt)
    for name, parameter in torch.parameters(layer).items():
        np.testing.assert_allclose(parameter, found[name], atol=1e-4)


def test_starts_differ_from_part_to_part(library):
    """They are uniform, as in torch.nn.GRUCell, and the update gate's bias lies one higher."""
    starts = distinct_starts(library, "EncoderDecoder", **SIZES, share=0.999)
    for name, limit in (("forward_cell", 11), ("backward_cell", 11), ("decoder_cell", 22)):
        for part in ("input.weight", "input.bias", "hidden.weight", "hidden.bias"):
            drawn = starts[f"{name}.{part}"]
            if part == "input.bias":
                drawn = drawn - np.repeat([0, 1, 0], len(drawn) // 3)  # of r, z and c
            rounding = 1e-6 if part == "input.bias" else 0  # of the one, added and taken off
            assert 0.8 < np.abs(drawn).max() * limit**0.5 <= 1 + rounding, (name, part)
    assert 0.5 < starts["combine"].std() * 22**0.5 < 1.5
