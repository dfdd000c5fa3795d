"""What the contract of the layers leaves: their starts, PyTorch's weights, dropout, scores of one's own."""

import numpy as np
import pytest
import reference_heads
from array_api_compat import array_namespace
from layer_harness import distinct_starts

from attnbook import scores
from attnbook.attention import positions


@pytest.fixture
def x(rng):
    return rng.normal(size=(2, 7, 12))


@pytest.mark.parametrize("args", [("SelfAttention", 12, 12), ("MultiHeadAttention", 12, 4)])
def test_starts_differ_from_part_to_part(library, args):
    """As wide as torch.nn.Linear's, 1/√e."""
    for drawn in distinct_starts(library, *args).values():
        assert 0.7 / np.sqrt(12) < np.abs(drawn).max() <= 1 / np.sqrt(12)


def test_keys_and_values_that_are_left_out(library, x, rng):
    """Without keys they are the queries, without values the keys."""
    layer, k = (
        library.scaled_up("MultiHeadAttention", 12, 4, num_kv_heads=2),
        rng.normal(size=x.shape),
    )
    for given, meant in (((x,), (x, x, x)), ((x, k), (x, k, k)), ((x, None, k), (x, x, k))):
        found, expected = library.call(layer, *given), library.call(layer, *meant)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("weights", [False, True])
def test_scores_that_are_biased(library, x, weights):
    """Linear biases come in with a score of queries and keys with heads: a slope a head."""
    layer, bias = library.scaled_up("MultiHeadAttention", 12, 4), positions.alibi(4, 7)

    def score(q, k):
        return scores.scaled_dot(q, k) + array_namespace(q).asarray(bias)

    def biased(h, i, j, q, k):
        return reference_heads.plain(h, i, j, q, k) - abs(i - j) / 4 ** (h + 1)

    out = library.call(layer, x, score=score, return_weights=weights)
    parameters = library.parameters(layer)
    for b in range(2):
        expected = reference_heads.multi_head_attention(
            parameters, range(4), *[x[b]] * 3, score=biased
        )
        for ours, right in zip(out if weights else (out,), expected, strict=False):
            np.testing.assert_allclose(ours[b], right, rtol=0, atol=1e-11)


# dropout


@pytest.mark.parametrize("rate", [0.2, 0.7])
def test_a_weight_is_left_out_or_grows(library, rng, rate):
    """With one key the weight is 1: head by head the output has 0, or the value over 1 − rate."""
    layer, draws = library.scaled_up("MultiHeadAttention", 6, 2, dropout=rate), 2003
    x = rng.normal(size=(1, 1, 6))
    own = library.parameters(layer)
    value = x[0, 0] @ own["value.weight"].T + own["value.bias"]
    out = library.call(layer, np.tile(x, (draws, 1, 1)), seed=3)[:, 0]
    merged = np.linalg.solve(own["output.weight"], (out - own["output.bias"]).T).T
    kept = np.abs(merged[:, [0, 3]]) > 1e-9  # head 0 has columns 0 to 2, head 1 the others
    grown = np.repeat(kept, 3, axis=1) * value / (1 - rate)
    np.testing.assert_allclose(merged, grown, rtol=1e-9, atol=1e-11)
    four_errors = 4 * np.sqrt(rate * (1 - rate) / draws)
    assert np.all(np.abs(kept.mean(0) - (1 - rate)) < four_errors)
    both = (kept[:, 0] & kept[:, 1]).mean()  # the heads are drawn apart
    assert abs(both - (1 - rate) ** 2) < four_errors


def test_what_is_left_out_is_settled_by_the_seed(library, x):
    """Another seed leaves out others; at rest nothing is; returned weights are those before."""
    layer, plain = (
        library.scaled_up("MultiHeadAttention", 12, 4, dropout=rate) for rate in (0.3, 0.0)
    )
    mask = np.tri(7, dtype=bool)
    rest, shares = library.call(layer, x, mask=mask, return_weights=True)
    one, again, other = (library.call(layer, x, mask=mask, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one, again)
    assert np.all(np.abs(one - other).max(-1)[:, 1:] > 1e-6)
    assert np.all(np.abs(one - rest).max(-1)[:, 1:] > 1e-6)
    for still in (library.call(layer, x, mask=mask), library.call(plain, x, mask=mask, seed=3)):
        np.testing.assert_allclose(still, rest, rtol=0, atol=1e-12)
    out, weights = library.call(layer, x, mask=mask, return_weights=True, seed=3)
    np.testing.assert_allclose(weights, shares, rtol=0, atol=1e-13)
    np.testing.assert_allclose(out, one, rtol=0, atol=1e-11)
    causal = library.call(layer, x, causal=True, seed=3)  # the same weights are left out
    np.testing.assert_allclose(causal, one, rtol=0, atol=1e-11)


# from PyTorch's own layer


@pytest.fixture
def peer():
    torch = pytest.importorskip("torch")
    return lambda **how: torch.nn.MultiheadAttention(12, 4, **{"batch_first": True} | how)


@pytest.mark.parametrize(
    "how", [{"bias": True}, {"bias": False, "dropout": 0.3}, {"batch_first": False}]
)
def test_from_pytorch(rng, peer, how):
    """Its numbers, mode and dropout, copied: what one learns the other does not see."""
    torch = pytest.importorskip("torch")
    from attnbook.torch import MultiHeadAttention

    original = peer(dtype=torch.float64, **how).eval()
    for parameter in original.parameters():
        torch.nn.init.normal_(parameter)
    layer = MultiHeadAttention.from_pytorch(original)
    assert (layer.dropout, layer.training) == (how.get("dropout", 0.0), False)
    x = torch.tensor(rng.normal(size=(2, 5, 12)))
    given = x if original.batch_first else x.transpose(0, 1)
    expected = original(given, given, given)[0]
    expected = expected if original.batch_first else expected.transpose(0, 1)
    torch.testing.assert_close(layer(x), expected, rtol=0, atol=1e-11)
    torch.nn.init.zeros_(layer.output.weight)
    assert original.out_proj.weight.abs().min() > 0


@pytest.mark.parametrize("option", [{"kdim": 7}, {"add_bias_kv": True}, {"add_zero_attn": True}])
def test_from_pytorch_refuses(peer, option):
    from attnbook.torch import MultiHeadAttention

    with pytest.raises(ValueError, match="original: got kdim, vdim, add_bias_kv or add_zero_attn"):
        MultiHeadAttention.from_pytorch(peer(**option))
    with pytest.raises(TypeError, match=r"original: got int, expected a torch\.nn"):
        MultiHeadAttention.from_pytorch(3)
