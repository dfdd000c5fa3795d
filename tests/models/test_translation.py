"""Translators at work: PyTorch and JAX agree, learn the same, and write what they decode."""

import numpy as np
import pytest
from layer_harness import Library, randomized
from reference_recurrent import SCORES, SIZES, M, run, sample, translator, with_weights

from attnbook.generate.decoding import beam, greedy
from attnbook.models import losses
from attnbook.train import training

by_score = pytest.mark.parametrize("score", SCORES)


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


def loss(layer, source, mask, written):
    return losses.cross_entropy(layer(source, mask, written[:, :-1]), written[:, 1:])


@by_score
def test_torch_and_jax_learn_the_same(rng, score):
    """Twenty steps of clipped gradients; the libraries' clips differ by a millionth."""
    torch, jax = Library("torch"), Library("jax")
    layer, twin = translator(torch, score), translator(jax, score)
    batches = list(training.minibatches(sample(rng), size=2, steps=20, seed=0))
    how = {"learning_rate": 0.01, "clip": 0.5}
    ours = torch.module.train(layer, loss, batches, **how)[1].losses
    with jax.backend.jax.numpy_dtype_promotion("standard"):  # as optax is written
        learnt, history = jax.module.train(twin, loss, batches, **how)
    np.testing.assert_allclose(ours, history.losses, rtol=1e-5)
    assert ours[-1] < 0.5 * ours[0]
    found = jax.parameters(learnt)
    for name, parameter in torch.parameters(layer).items():
        np.testing.assert_allclose(parameter, found[name], atol=1e-4)


def transformer(library):
    widths = {"embed_dim": 12, "num_heads": 3, "mlp_dim": 5, "num_layers": 2}
    return randomized(library, "Transformer", SIZES["source_vocab"], 5, 11, **widths)


WRITERS = [("additive", "uint8", 2), (None, "int64", 2)]
WRITERS += [("Transformer", "int64", 2), ("Transformer", "int64", 3)]  # which writes no 3


@pytest.mark.parametrize(("name", "dtype", "end"), WRITERS)
def test_what_is_written_is_the_most_probable(library, rng, name, dtype, end):
    """The argmax of the logits that a model gives when it is forced to write that."""
    backend = library.backend
    layer = transformer(library) if name == "Transformer" else translator(library, name)
    words, mask, _ = sample(rng)
    words = words.astype(dtype)
    how = {"start": 1, "end": end, "limit": 11}
    written, read = greedy(layer, backend.array(words), backend.array(mask), **how)
    fed = np.concatenate([np.full((2, 1), 1), written[:, :-1]], axis=1)
    logits, weights = run(library, with_weights(layer), words, mask, fed)
    if name == "Transformer":
        weights = weights[-1].mean(1)
    before_the_end = np.cumsum(fed == end, axis=1) == 0
    np.testing.assert_array_equal(logits.argmax(-1)[before_the_end], written[before_the_end])
    np.testing.assert_allclose(read, weights, rtol=1e-10, atol=1e-12)
    for row in range(2):
        found = beam(layer, backend.array(words)[row], backend.array(mask)[row], **how, width=3)
        for tokens, probability in found:
            fed = np.array([[1, *tokens[:-1]]])
            (out,) = run(library, layer, words[row : row + 1], mask[row : row + 1], fed)
            likely = out - np.log(np.exp(out).sum(-1, keepdims=True))
            expected = likely[np.arange(len(tokens)), tokens].sum()
            np.testing.assert_allclose(probability, expected, rtol=1e-10)
