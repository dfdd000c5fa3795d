"""The encoder–decoder at work: PyTorch and JAX agree, learn the same, and write what they decoder_only."""

import operator

import backends
import numpy as np
import pytest
import reference_recurrent
from reference_recurrent import SCORES, M, run, sample, translator, with_weights

from attnbook.generate.decoding import beam, greedy
from attnbook.models import losses
from attnbook.train import training

by_score = pytest.mark.parametrize("score", SCORES)


@pytest.fixture(params=["torch", "jax"])
def library(request):
    reference_recurrent.skip_unless(request.param)
    return request.param


@pytest.fixture
def both():
    reference_recurrent.skip_unless("torch", "jax")
    return backends.load("torch"), backends.load("jax")


def numbers(layer, name):
    return np.asarray(operator.attrgetter(name)(layer).tolist())


@by_score
def test_one_sentence_and_a_batch_of_batches(library, rng, score):
    layer, arrays = translator(library, score), sample(rng)
    nested = run(library, with_weights(layer), *(np.stack([a, a[::-1], a]) for a in arrays))
    assert nested[0].shape == (3, 2, M, 17)
    for i in range(2):
        alone = run(library, with_weights(layer), *(a[i] for a in arrays))
        assert alone[0].shape == (M, 17)
        for one, many in zip(alone, nested, strict=True):
            np.testing.assert_allclose(one, many[0, i], rtol=1e-11, atol=1e-12)
            np.testing.assert_allclose(one, many[1, 1 - i], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32"])
def test_every_kind_of_integer(library, rng, dtype):
    layer, (source, mask, written) = translator(library, "additive"), sample(rng)
    backend, cast = backends.load(library), lambda a: a.astype(dtype)
    expected = run(library, layer, source, mask, written)
    out = run(library, layer, cast(source), mask, cast(written))
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-13)
    memory, state = layer.encode(backend.array(cast(source)), backend.array(mask))
    _, logits, _ = layer.step(memory, state, backend.array(cast(written[:, 0])))
    np.testing.assert_allclose(backend.numpy(logits), expected[:, 0], rtol=1e-12, atol=1e-13)


def loss(layer, source, mask, written):
    return losses.cross_entropy(layer(source, mask, written[:, :-1]), written[:, 1:])


@by_score
def test_torch_and_jax_agree(both, rng, score):
    """Logits, weights and the gradients of all parameters; a word only in the padding has none."""
    import equinox as eqx

    torch, jax = both
    layer, twin = translator("torch", score), translator("jax", score)
    source, mask, written = sample(rng)
    source[source == 12] = 0
    source[~mask] = 12
    arrays = source, mask, written
    for ours, theirs in zip(
        run("torch", with_weights(layer), *arrays), run("jax", with_weights(twin), *arrays),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
    value = loss(layer, *map(torch.array, arrays))
    shapes = reference_recurrent.shapes(score)
    ours = torch.xp.autograd.grad(value, [layer.get_parameter(n) for n in shapes])
    slopes = eqx.filter_jit(eqx.filter_grad(loss))(twin, *map(jax.array, arrays))
    for name, gradient in zip(shapes, ours, strict=True):
        expected = operator.attrgetter(name)(slopes)
        np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-10, atol=1e-13)
        assert gradient.abs().max() > 1e-5, name
    assert not ours[0][12].any()


@by_score
def test_torch_and_jax_learn_the_same(both, rng, score):
    """Twenty steps of clipped gradients; the libraries' clips differ by a millionth."""
    import attnbook.jax
    import attnbook.torch

    layer, twin = translator("torch", score), translator("jax", score)
    batches = list(training.minibatches(sample(rng), size=2, steps=20, seed=0))
    how = {"learning_rate": 0.01, "clip": 0.5}
    ours = attnbook.torch.train(layer, loss, batches, **how)[1].losses
    with both[1].jax.numpy_dtype_promotion("standard"):  # as optax is written
        learnt, history = attnbook.jax.train(twin, loss, batches, **how)
    np.testing.assert_allclose(ours, history.losses, rtol=1e-5)
    assert ours[-1] < 0.5 * ours[0]
    for name in reference_recurrent.shapes(score):
        np.testing.assert_allclose(numbers(layer, name), numbers(learnt, name), atol=1e-4)


@pytest.mark.parametrize(("score", "dtype"), [("additive", "uint8"), (None, "int64")])
def test_the_encoder_decoder_decodes(library, rng, score, dtype):
    """What it writes is the argmax of the logits it gives when forced to write that."""
    backend = backends.load(library)
    layer, (words, mask, _) = translator(library, score), sample(rng)
    words = words.astype(dtype)
    how = {"start": 1, "end": 2, "limit": 11}
    written, read = greedy(layer, backend.array(words), backend.array(mask), **how)
    fed = np.concatenate([np.full((2, 1), 1), written[:, :-1]], axis=1)
    logits, weights = run(library, with_weights(layer), words, mask, fed)
    before_the_end = np.cumsum(fed == 2, axis=1) == 0
    np.testing.assert_array_equal(logits.argmax(-1)[before_the_end], written[before_the_end])
    np.testing.assert_allclose(read, weights, rtol=1e-10, atol=1e-12)
    for row in range(2):
        found = beam(layer, backend.array(words)[row], backend.array(mask)[row], **how, width=3)
        for tokens, probability in found:
            fed = np.array([1, *tokens[:-1]])
            out = run(library, layer, words[row], mask[row], fed)
            likely = out - np.log(np.exp(out).sum(-1, keepdims=True))
            expected = likely[np.arange(len(tokens)), tokens].sum()
            np.testing.assert_allclose(probability, expected, rtol=1e-10)
