"""The recurrent encoder–decoder: the loop, the libraries' own GRUs, padding, causality."""

import numpy as np
import pytest
import reference_recurrent
from layer_harness import Library, with_parameters
from reference_recurrent import LENGTHS, SCORES, SIZES, M, run, sample, translator, with_weights

from attnbook import attend, scores
from attnbook.models import recurrent

by_score = pytest.mark.parametrize("score", SCORES)
CELL = reference_recurrent.cell_shapes("", 5, 11)


@pytest.fixture
def parameters():
    return reference_recurrent.random_parameters(CELL)


@pytest.fixture
def inputs(rng):
    return rng.normal(size=(2, 3, 5)), rng.normal(size=(2, 3, 11))


def gru_cell(library, parameters):
    return with_parameters(library, library.make("GRUCell", 5, 11), parameters)


def test_gru_equals_the_loop(library, parameters, inputs):
    out = run(library, gru_cell(library, parameters), *inputs)
    expected = np.empty((2, 3, 11))
    for index in np.ndindex(2, 3):
        x, state = (a[index].tolist() for a in inputs)
        expected[index] = reference_recurrent.gru(parameters, "", x, state)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-14)
    assert np.abs(expected - inputs[1]).mean() > 0.3
    formula = recurrent.gru(gru_cell(library, parameters), *map(library.moved, inputs))
    np.testing.assert_allclose(library.returned(formula), expected, rtol=1e-12, atol=1e-14)


def test_gru_equals_pytorchs(parameters, inputs):
    library = Library("torch")
    torch = library.backend.xp
    theirs = torch.nn.GRUCell(5, 11, dtype=torch.float64)
    names = {"weight_ih": "input.weight", "weight_hh": "hidden.weight", "bias_ih": "input.bias"}
    names["bias_hh"] = "hidden.bias"
    theirs.load_state_dict({n: torch.from_numpy(parameters[ours]) for n, ours in names.items()})
    x, state = (torch.from_numpy(a).reshape(6, -1) for a in inputs)
    expected = theirs(x, state).detach().numpy()
    out = run(library, gru_cell(library, parameters), *inputs)
    np.testing.assert_allclose(out.reshape(6, 11), expected, rtol=1e-12, atol=1e-14)


def test_gru_equals_equinoxs(parameters, inputs):
    """Which adds the two biases of a gate beforehand, and keeps the candidate's second apart."""
    library = Library("jax")
    import equinox as eqx

    jax = library.backend.jax
    given, kept = parameters["input.bias"], parameters["hidden.bias"]
    theirs = eqx.tree_at(
        lambda cell: (cell.weight_ih, cell.weight_hh, cell.bias, cell.bias_n),
        eqx.nn.GRUCell(5, 11, key=jax.random.key(0)),
        (
            jax.numpy.asarray(parameters["input.weight"]),
            jax.numpy.asarray(parameters["hidden.weight"]),
            jax.numpy.asarray(given + np.where(np.arange(33) < 22, kept, 0)),
            jax.numpy.asarray(kept[22:]),
        ),
    )
    expected = run(library, lambda *arrays: jax.vmap(jax.vmap(theirs))(*arrays), *inputs)
    out = run(library, gru_cell(library, parameters), *inputs)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-14)


def test_gru_by_hand(library):
    """Biases alone: z = ½ halves the state, a large z keeps it, a small z takes tanh(b + r d)."""
    state = np.linspace(-1, 1, 11)
    for z, r, expected in (
        (0, 0, state / 2 + np.tanh(1 + 3 / 2) / 2),
        (1e6, 0, state),
        (-1e6, 1e6, np.full(11, np.tanh(4))),
        (-1e6, -1e6, np.full(11, np.tanh(1))),
    ):
        parameters = {name: np.zeros(shape) for name, shape in CELL.items()}
        parameters["input.bias"] = np.repeat([r, z, 1.0], 11)
        parameters["hidden.bias"] = np.repeat([0.0, 0.0, 3.0], 11)
        out = run(library, gru_cell(library, parameters), np.ones(5), state)
        few = 4 * np.finfo(float).eps  # libraries differ by some units in the tanh's last place
        np.testing.assert_allclose(out, expected, rtol=few, atol=few)


@by_score
def test_equals_the_loop(library, rng, score):
    """Two sentences of 5 and 7 words: logits, weights, and the logits alone."""
    layer, arrays = translator(library, score), sample(rng)
    parameters = reference_recurrent.random_parameters(reference_recurrent.shapes(score))
    expected = reference_recurrent.translations(parameters, score, *arrays)
    outs = run(library, with_weights(layer), *arrays)
    assert [out.shape for out in outs] == [(2, M, 17), (2, M, 7 if score else 1)]
    for out, right in zip(outs, expected, strict=True):
        np.testing.assert_allclose(out, right, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(run(library, layer, *arrays), outs[0], rtol=1e-12, atol=1e-13)
    assert np.ptp(expected[1], axis=1).max() > 0.1 or score is None  # every step reads elsewhere
    np.testing.assert_allclose(outs[1].sum(-1), 1, rtol=1e-12)


@by_score
def test_masked_words_in_between(library, rng, score):
    """Before the first word, between words and behind the last: as if they were not there."""
    layer, (source, mask, written) = translator(library, score), sample(rng)
    mask[:] = np.array([[0, 1, 1, 0, 1, 0, 0], [1, 0, 0, 1, 1, 1, 1]], dtype=bool)
    logits, weights = run(library, with_weights(layer), source, mask, written)
    for row, real in enumerate(mask):
        cut = source[row, real], np.ones(real.sum(), dtype=bool), written[row]
        alone = run(library, with_weights(layer), *cut)
        np.testing.assert_allclose(logits[row], alone[0], rtol=1e-11, atol=1e-13)
        own = weights[row][:, real] if score else weights[row]
        np.testing.assert_allclose(own, alone[1], rtol=1e-11)
        assert score is None or not weights[row][:, ~real].any()


@by_score
def test_padding_does_not_count_at_all(library, rng, score):
    """Other tokens in it: the same bits; four more places of it: the same to rounding."""
    layer, (source, mask, written) = translator(library, score), sample(rng)
    logits, weights = run(library, with_weights(layer), source, mask, written)
    other = np.where(mask, source, (source + 5) % 13)
    assert (other != source).sum() == 7 - min(LENGTHS)
    same = run(library, with_weights(layer), other, mask, written)
    np.testing.assert_array_equal(same[0], logits)
    np.testing.assert_array_equal(same[1], weights)
    longer = np.pad(source, ((0, 0), (0, 4)), constant_values=3), np.pad(mask, ((0, 0), (0, 4)))
    padded = run(library, with_weights(layer), *longer, written)
    np.testing.assert_allclose(padded[0], logits, rtol=1e-12, atol=1e-12)
    if score:
        np.testing.assert_allclose(padded[1][..., :7], weights, rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(padded[1][..., 7:], 0)


def test_the_encoder_equals_pytorchs(rng):
    """torch.nn.GRU in both directions over packed sequences; its last states are the summary."""
    library = Library("torch")
    torch = library.backend.xp
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    layer, (source, mask, _) = translator(library, "additive"), sample(rng)
    theirs = torch.nn.GRU(3, 11, batch_first=True, bidirectional=True, dtype=torch.float64)
    state = {}
    for cell, suffix in ((layer.forward_cell, ""), (layer.backward_cell, "_reverse")):
        for part, short in ((cell.input, "ih"), (cell.hidden, "hh")):
            state[f"weight_{short}_l0{suffix}"] = part.weight
            state[f"bias_{short}_l0{suffix}"] = part.bias
    theirs.load_state_dict(state)
    embedded = layer.source_embedding(torch.from_numpy(source))
    packed = pack_padded_sequence(embedded, list(LENGTHS), True, enforce_sorted=False)
    out, last = theirs(packed)
    expected, _ = pad_packed_sequence(out, batch_first=True)
    real = torch.from_numpy(mask)
    states, summary = recurrent.bidirectional_states(layer, torch.from_numpy(source), real)
    torch.testing.assert_close(states[real], expected[real], rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(summary, torch.cat([last[0], last[1]], -1), rtol=1e-12, atol=1e-13)


@by_score
def test_a_step_asks_with_the_state_before(library, rng, score):
    """attend with that state as the query; then the GRU takes what was written beside the answer."""
    backend, layer = library.backend, translator(library, score)
    source, mask, _ = sample(rng)
    given = backend.array(source), backend.array(mask)
    memory, start = layer.encode(*given)
    states, summary = recurrent.bidirectional_states(layer, *given)
    read = states if score else summary[:, None]
    np.testing.assert_array_equal(backend.numpy(memory.values), backend.numpy(read))
    written = backend.array(rng.normal(size=(2, 3)))
    new, (kept, context, weights) = recurrent.step(layer, memory, start, written)

    def similarity(q, k):
        """From the states themselves, with W_k in the score."""
        if score == "additive":
            return scores.additive(q, k, layer.query.weight, layer.key.weight, layer.combine)
        return scores.general(q, k, layer.key.weight) if score == "general" else scores.dot(q, k)

    mask = given[1][:, None] if score else None
    how = {"score": similarity, "mask": mask, "return_weights": True}
    expected, asked = attend(start[:, None], read, memory.values, **how)
    both = backend.xp.concatenate([written, context], -1)
    seen = backend.xp.concatenate([new, context], -1)
    logits = seen @ layer.output.weight.T + layer.output.bias
    for ours, right in (
        (context, expected[:, 0]),
        (weights, asked[:, 0]),
        (new, recurrent.gru(layer.decoder_cell, both, start)),
        (kept, new),
        (recurrent.logits(layer, new, context), logits),
    ):
        ours, right = map(backend.numpy, (ours, right))
        np.testing.assert_allclose(ours, right, rtol=1e-12, atol=1e-13)


@by_score
def test_teacher_forcing_is_writing_step_by_step(library, rng, score):
    """The same characters fed one by one: the same logits, weights, and no others."""
    backend, layer, arrays = library.backend, translator(library, score), sample(rng)
    logits, weights = run(library, with_weights(layer), *arrays)
    source, mask, written = map(backend.array, arrays)
    memory, state = layer.encode(source, mask)
    direct = recurrent.decode_step(layer, memory, state, written[:, 0])
    for i in range(M):
        state, one, asked = layer.step(memory, state, written[:, i])
        np.testing.assert_allclose(backend.numpy(one), logits[:, i], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(backend.numpy(asked), weights[:, i], rtol=1e-12, atol=1e-13)
        if i == 0:
            for a, b in zip(direct, (state, one, asked), strict=True):
                np.testing.assert_allclose(backend.numpy(a), backend.numpy(b), rtol=1e-12)


@by_score
def test_no_logit_sees_what_is_written_later(library, rng, score):
    layer, (source, mask, written) = translator(library, score), sample(rng)
    before = run(library, with_weights(layer), source, mask, written)
    changed = written.copy()
    changed[:, 11:] = (changed[:, 11:] + 1) % 17
    after = run(library, with_weights(layer), source, mask, changed)
    np.testing.assert_array_equal(after[0][:, :11], before[0][:, :11])
    np.testing.assert_array_equal(after[1][:, :12], before[1][:, :12])  # the state before asks
    assert np.all(np.abs(after[0][:, 11:] - before[0][:, 11:]).max(-1) > 1e-6)


def test_without_attention_there_is_the_summary_alone(library, rng):
    """Weights of 1, and two sentences of one summary would be translated alike."""
    backend, layer = library.backend, translator(library, None)
    source, mask, written = sample(rng)
    given = backend.array(source), backend.array(mask)
    memory, _ = layer.encode(*given)
    _, summary = recurrent.bidirectional_states(layer, *given)
    assert memory.mask is None
    assert tuple(memory.keys.shape) == tuple(memory.values.shape) == (2, 1, SIZES["hidden_dim"])
    np.testing.assert_array_equal(backend.numpy(memory.keys[:, 0]), backend.numpy(summary))
    _, weights = run(library, with_weights(layer), source, mask, written)
    np.testing.assert_array_equal(weights, np.ones((2, M, 1)))
