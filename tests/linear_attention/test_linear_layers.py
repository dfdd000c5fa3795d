"""LinearAttention and GatedDelta: hidden tokens, a writer with them, and what they refuse."""

import numpy as np
import pytest
from layer_harness import Library, randomized

KINDS = ("linear", "delta", "decay", "gated_delta")
SEEN = np.array([True, False, True, True, False, True])
CLOSE = {"rtol": 0, "atol": 1e-10}


@pytest.fixture
def x(rng):
    return rng.normal(size=(2, 6, 4))


@pytest.fixture
def torch_library():
    """JAX has the same formulas, which the contract shows, and compiles long."""
    return Library("torch")


def made(library, kind):
    if kind == "linear":
        return randomized(library, "LinearAttention", 4, 2)
    how = {"delta": (False, True), "decay": (True, False), "gated_delta": (True, True)}[kind]
    return randomized(library, "GatedDelta", 4, 2, gate=how[0], delta=how[1])


@pytest.mark.parametrize("kind", KINDS)
def test_a_hidden_token_writes_nothing_and_lets_nothing_decay(torch_library, x, kind):
    """Those that are seen read as if it had never been there; a row of them for every sequence."""
    layer = made(torch_library, kind)
    mask = np.stack([SEEN, np.ones(6, bool)])[:, None, :]
    out, weights = torch_library.call(layer, x, mask=mask, causal=True, return_weights=True)
    np.testing.assert_allclose(torch_library.call(layer, x, mask=mask, causal=True), out, **CLOSE)
    alone = torch_library.call(layer, x[0, SEEN], causal=True)
    np.testing.assert_allclose(out[0, SEEN], alone, **CLOSE)
    np.testing.assert_allclose(out[1], torch_library.call(layer, x[1], causal=True), **CLOSE)
    assert not weights[0][..., ~SEEN].any()
    assert not np.triu(weights, 1).any()


def test_nothing_in_sight_gives_heads_of_0(torch_library, x):
    layer = made(torch_library, "linear")
    how = {"mask": np.zeros((1, 6), bool), "return_weights": True}
    out, weights = torch_library.call(layer, x, **how)
    assert not weights.any()
    bias = torch_library.parameters(layer)["output.bias"]
    np.testing.assert_allclose(out, np.broadcast_to(bias, out.shape), **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_with_it(torch_library, rng, kind):
    """It has a model's options; later tokens and padding do not count."""
    sizes = {"embed_dim": 8, "num_heads": 2, "mlp_dim": 5, "num_layers": 2}
    model = randomized(torch_library, "DecoderOnly", 11, 7, attention=kind, **sizes)
    tokens = rng.integers(0, 11, size=(2, 7))
    out, weights = torch_library.call(model, tokens, True)
    assert [w.shape for w in weights] == 2 * [(2, 2, 7, 7)]
    np.testing.assert_allclose(torch_library.call(model, tokens[:, :4]), out[:, :4], **CLOSE)
    real = np.arange(7) < np.array([[4], [7]])
    padded = torch_library.call(model, np.where(real, tokens, 3), mask=real)
    np.testing.assert_allclose(padded[real], out[real], **CLOSE)
    with pytest.raises(ValueError, match=f"model: got one with attention='{kind}', expected 'soft"):
        model.empty(2)


def test_decay_starts_near_one(library):
    """σ(3) = 0.95: a state lasts for some twenty tokens at first."""
    layer = library.make("GatedDelta", 8, 2)
    np.testing.assert_array_equal(library.parameters(layer)["decay.bias"], [3, 3])
    plain = library.make("GatedDelta", 8, 2, gate=False, delta=False, bias=False)
    names = {"query.weight", "key.weight", "value.weight", "output.weight", "head_norm.weight"}
    assert library.parameters(plain).keys() == names


@pytest.mark.parametrize("kind", ["linear", "gated_delta"])
def test_half_precision(torch_library, x, kind):
    """Outputs of bfloat16 tokens are near those of float64; decays have float32's digits."""
    layer = made(torch_library, kind)
    right = torch_library.call(layer, x, causal=True)
    half = torch_library.backend.cast(torch_library.moved(x), "bfloat16")
    out = layer.bfloat16()(half, causal=True)
    assert torch_library.backend.dtype(out) == "bfloat16"
    near = torch_library.backend.numpy(torch_library.backend.cast(out, "float64"))
    np.testing.assert_allclose(near, right, atol=0.1 * np.abs(right).max())


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"keys": np.ones((2, 6, 4))}, "keys: got other tokens than the queries, expected None"),
        ({"mask": np.ones((6, 6), bool)}, r"mask: got shape \(6, 6\), expected \(..., 1, n\)"),
        ({"mask": np.ones((1, 5), bool)}, r"mask: got shape \(1, 5\), expected one that fits"),
    ],
)
def test_what_a_state_cannot_do(torch_library, x, how, words):
    for kind in ("linear", "delta"):
        with pytest.raises(ValueError, match=words):
            torch_library.call(made(torch_library, kind), x, **{"causal": True} | how)
    with pytest.raises(ValueError, match="causal: got False, expected True: a state is written in"):
        torch_library.call(made(torch_library, "decay"), x)
