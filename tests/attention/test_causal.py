"""attend(..., causal=True) is attend with the causal mask, and PyTorch builds no mask for it."""

import backends
import numpy as np
import pytest
import reference
from fused_calls import noted

from attnbook import attend, causal_mask, scores
from attnbook.attention import heads

LEADS = {"one": ((), (), ()), "several": ((3, 1), (2,), (3, 2))}


@pytest.mark.parametrize("length", [None, 5])
@pytest.mark.parametrize("lead", LEADS.values(), ids=LEADS)
@pytest.mark.parametrize("score", [scores.scaled_dot, scores.gaussian_score])
def test_equals_the_mask_and_the_loop(backend, rng, lead, score, length):
    q, k, v = (rng.normal(size=(*axes, 7, 5)) for axes in lead)
    mask, padding = np.tril(np.ones((7, 7), bool)), np.arange(7) < (length or 7)
    both, given = mask & padding, {"mask": padding} if length else {}
    weighted = {"score": score, "return_weights": True}
    out, weights = backend.call(attend, q, k, v, causal=True, **given, **weighted)
    expected, expected_weights = backend.call(attend, q, k, v, mask=both, **weighted)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-12, atol=1e-14)
    assert not weights[..., ~mask].any()
    alone = backend.call(attend, q, k, v, score=score, causal=True, **given)
    np.testing.assert_allclose(alone, expected, rtol=1e-10, atol=1e-12)
    if score is scores.scaled_dot:
        np.testing.assert_allclose(alone, reference.attend(q, k, v, mask=both)[0], rtol=1e-10)


def test_a_token_changes_no_earlier_one(backend, rng):
    q, k, v = (rng.normal(size=(2, 7, 3)) for _ in range(3))
    before = backend.call(attend, q, k, v, causal=True)
    for a in (q, k, v):
        a[:, 4:] = rng.normal(size=(2, 3, 3))
    after = backend.call(attend, q, k, v, causal=True)
    np.testing.assert_array_equal(before[:, :4], after[:, :4])
    assert (before[:, 4:] != after[:, 4:]).all()


def test_gradients_are_those_of_the_mask(differentiable, rng):
    q, k, v, c = (rng.normal(size=(2, 80, 3)) for _ in range(4))
    mask = np.tril(np.ones((80, 80), bool))

    def causal(q, k, v):
        return (attend(q, k, v, causal=True) * differentiable.array(c)).sum()

    def masked(q, k, v):
        here = attend(q, k, v, mask=differentiable.array(mask))
        return (here * differentiable.array(c)).sum()

    slopes = (differentiable.gradient(loss, q, k, v) for loss in (causal, masked))
    for ours, expected in zip(*slopes, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12)


def test_other_numbers_of_queries_and_keys(backend):
    with pytest.raises(ValueError, match="causal: got 3 queries and 7 keys, expected as many"):
        backend.call(attend, np.ones((3, 2)), np.ones((7, 2)), np.ones((7, 2)), causal=True)


def test_self_attention(backend, rng):
    x, mask = rng.normal(size=(2, 5, 4)), np.tril(np.ones((5, 5), bool))
    w = [rng.normal(size=(3, 4)) for _ in range(3)]
    out = backend.call(heads.self_attention, x, *w, causal=True)
    expected = backend.call(heads.self_attention, x, *w, mask=mask)
    np.testing.assert_allclose(out, expected, rtol=1e-12)


each_layer = pytest.mark.parametrize(
    ("name", "how", "inputs"),
    [
        ("SelfAttention", (6, 4), 1),
        ("MultiHeadAttention", (6, 2), 1),
        ("EncoderBlock", (6, 2, 5), 1),
        ("DecoderBlock", (6, 2, 5), 2),
    ],
)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("seed", [None, 3], ids=["evaluated", "trained"])
@each_layer
def test_layers(library, name, how, inputs, seed, weights):
    """Also with dropout: the same weights are left out."""
    dropout = {} if name == "SelfAttention" else {"dropout": 0.3}
    layer = library.scaled_up(name, *how, **dropout)
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(2, 5, 6)) for _ in range(inputs)]
    random = None if name == "SelfAttention" else seed
    mask = np.tril(np.ones((5, 5), bool))
    more = {"return_weights": weights}
    found = library.call(layer, *given, seed=random, causal=True, **more)
    expected = library.call(layer, *given, seed=random, mask=mask, **more)
    unmasked = library.call(layer, *given, seed=random, **more)
    pairs = zip(found, expected, strict=True) if weights else [(found, expected)]
    for ours, right in pairs:
        np.testing.assert_allclose(ours, right, rtol=1e-9, atol=1e-12)
    assert not np.allclose(found[0], unmasked[0])


@each_layer
def test_layers_take_a_mask_too(library, name, how, inputs):
    layer = library.scaled_up(name, *how)
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(2, 5, 6)) for _ in range(inputs)]
    mask = (np.arange(5) < np.array([[5], [3]]))[:, None, :]
    found = library.call(layer, *given, mask=mask, causal=True)
    both = mask & np.tril(np.ones((5, 5), bool))
    np.testing.assert_allclose(found, library.call(layer, *given, mask=both), rtol=1e-9, atol=1e-12)
    for one in ({"mask": mask}, {"causal": True}):
        assert not np.allclose(found, library.call(layer, *given, **one))


@pytest.fixture
def kernel_calls(monkeypatch):
    backends.load_or_skip("torch")
    return noted(monkeypatch, lambda *_, **how: (how["is_causal"], how["attn_mask"] is not None))


@pytest.mark.parametrize("learning", [False, True])
def test_torchs_causal_kernel_is_called_and_nothing_as_large_as_a_mask_made(kernel_calls, learning):
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):
        entries = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            for a in out if isinstance(out, tuple | list) else (out,):
                if isinstance(a, torch.Tensor):
                    self.entries = max(self.entries, a.numel())
            return out

    n, d = 512, 4
    q, k, v = (torch.randn(n, d, requires_grad=learning) for _ in range(3))
    with Largest() as seen:
        out = attend(q, k, v, causal=True)
        if learning:
            out.sum().backward()
    assert seen.entries <= 4 * n * d
    assert kernel_calls == [(True, False)]
    with Largest() as seen:
        attend(q, k, v, mask=causal_mask(n, q))
    assert seen.entries >= n * n  # the measure sees a mask


def test_a_mask_beside_it_goes_to_the_kernel_as_one_mask(kernel_calls):
    import torch

    q, k, v = (torch.randn(2, 97, 4, dtype=torch.float64) for _ in range(3))
    padding = torch.arange(97) < 80
    for mask in (padding, padding[None, None, :].expand(2, 1, 97)):
        out = attend(q, k, v, mask=mask, causal=True)
        both = causal_mask(97, q) & mask
        torch.testing.assert_close(out, attend(q, k, v, mask=both, return_weights=True)[0])
    assert kernel_calls == [(False, True)] * 2
