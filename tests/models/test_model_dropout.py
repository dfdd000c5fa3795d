"""Dropout of a DecoderOnly: of the first stream and in every block, and nowhere without training."""

import numpy as np
import pytest

TOKENS = np.array([[1, 4, 2, 0, 3], [0, 0, 1, 2, 4]])
SIZES = (5, 7, 8, 2, 12, 2)


def test_torch_by_its_parts() -> None:
    torch = pytest.importorskip("torch")
    layers = pytest.importorskip("attnbook.torch")
    torch.manual_seed(0)
    model, tokens = layers.DecoderOnly(*SIZES, dropout=0.3).double(), torch.tensor(TOKENS)
    torch.manual_seed(1)
    found = model(tokens)
    torch.manual_seed(1)
    x = torch.nn.functional.dropout(model.embedding(tokens) + model.position[:5], 0.3)
    for block in model.decoder:
        assert block.dropout == 0.3
        x = block(x, causal=True)
    expected = model.readout(model.decoder_norm(x))
    np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-12, atol=1e-14)
    model.eval()
    plain = layers.DecoderOnly(*SIZES).double()
    plain.load_state_dict(model.state_dict())
    np.testing.assert_allclose(model(tokens).detach(), plain(tokens).detach(), rtol=1e-12)


def test_jax_by_its_parts() -> None:
    jax = pytest.importorskip("jax")
    layers = pytest.importorskip("attnbook.jax")
    from attnbook.jax.dropout import make_dropout

    model = layers.DecoderOnly(*SIZES, dropout=0.3, key=jax.random.key(0))
    tokens = jax.numpy.asarray(TOKENS)
    found = model(tokens, key=jax.random.key(1))
    first, rest = jax.random.split(jax.random.key(1))
    x = model.embedding.weight[tokens] + model.position[:5]
    x = make_dropout(model, first)(x)
    for block, key in zip(model.decoder, jax.random.split(rest, 2), strict=True):
        x = block(x, causal=True, key=key)
    x = jax.vmap(jax.vmap(model.decoder_norm))(x)
    expected = x @ model.readout.weight.T + model.readout.bias
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    plain = layers.DecoderOnly(*SIZES, key=jax.random.key(0))
    np.testing.assert_allclose(model(tokens), plain(tokens), rtol=1e-5, atol=1e-6)
