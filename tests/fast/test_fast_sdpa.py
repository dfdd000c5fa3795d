"""The fast ways of attend, PyTorch's fused kernel and JAX's compiled formula, give the formula."""

import math

import backends
import numpy as np
import pytest
import reference
from fused_calls import noted
from processes import run_python

from attnbook import attend, causal_mask
from attnbook._fast import sdpa
from attnbook.attention import weighted_average

torch = backends.load_or_skip("torch").xp
Dropout = pytest.importorskip("attnbook.torch").attention.Dropout
fused_kernel = torch.nn.functional.scaled_dot_product_attention

SHAPES = {  # of a mask, for b = 5 sequences, m = 3 queries, n = 7 keys
    "none": None,
    "(n,)": (7,),
    "(1, n)": (1, 7),
    "(m, 1)": (3, 1),
    "(m, n)": (3, 7),
    "(b, 1, n)": (5, 1, 7),
    "(b, m, n)": (5, 3, 7),
    "(2, b, m, n)": (2, 5, 3, 7),
    "(2, 1, 1, n)": (2, 1, 1, 7),
}
WIDTHS = {"values wider": (2, 13), "keys wider": (13, 2), "as wide": (5, 5)}
SIZES = {"small": 2**20, "large": 0}


@pytest.fixture
def calls(monkeypatch):
    """The shapes with which the fused kernel was called; every size is large enough for it."""
    monkeypatch.setattr(sdpa, "MIN_WEIGHTS", 0)
    monkeypatch.setattr(sdpa, "MIN_MASKED_WEIGHTS", 0)
    return noted(monkeypatch, lambda *args, **_: tuple(args[0].shape))


def sample(rng, *lead, m=3, n=7, d=2, p=5, dtype=torch.float64):
    shapes = (m, d), (n, d), (n, p)
    return [torch.from_numpy(rng.normal(size=(*lead, *shape))).to(dtype) for shape in shapes]


def formula(*arrays, mask=None):
    """The plain way, which the weights always take."""
    return attend(*arrays, mask=mask, return_weights=True)[0]


@pytest.mark.parametrize("fewest", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("widths", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_equals_the_loop_and_torch(rng, calls, monkeypatch, shape, widths, fewest):
    """Random masks of every shape, below and above the threshold; empty rows are 0."""
    monkeypatch.setattr(sdpa, "MIN_WEIGHTS", fewest)
    monkeypatch.setattr(sdpa, "MIN_MASKED_WEIGHTS", fewest)
    q, k, v = (a.requires_grad_() for a in sample(rng, 5, d=widths[0], p=widths[1]))
    mask = None if shape is None else torch.from_numpy(rng.random(shape) < 0.5)
    out = attend(q, k, v, mask=mask)
    assert len(calls) == (1 if fewest == 0 else 0)
    q, k, v, out = (a.detach() for a in (q, k, v, out))
    arrays = (a.numpy() for a in (q, k, v))
    expected, weights = reference.attend(*arrays, mask=None if mask is None else mask.numpy())
    assert out.shape == expected.shape
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(out.numpy()[~weights.any(-1)], 0)
    theirs = fused_kernel(q.expand(*out.shape[:-2], -1, -1), k, v, attn_mask=mask)
    torch.testing.assert_close(out, theirs, rtol=1e-10, atol=1e-12)


def test_the_threshold_counts_weights_of_all_sequences(rng, calls, monkeypatch):
    """MIN_WEIGHTS is met by batch · m · n, leading axes broadcast: 2 · 5 · 3 · 7 = 210."""
    q, k, v = torch.ones(2, 1, 3, 2).requires_grad_(), torch.ones(5, 7, 2), torch.ones(7, 2)
    mask = torch.ones(3, 7, dtype=torch.bool)
    for border, how in (("MIN_WEIGHTS", {}), ("MIN_MASKED_WEIGHTS", {"mask": mask})):
        for fewest, taken in ((211, 0), (210, 1)):
            calls.clear()
            monkeypatch.setattr(sdpa, border, fewest)
            attend(q, k, v, **how)
            assert len(calls) == taken


def test_at_the_real_thresholds(rng, calls, monkeypatch):
    """They are for gradients: without one, and where the kernel is causal, it is always taken."""
    monkeypatch.undo()
    for m, n in ((61, 67), (64, 64), (509, 512), (512, 512)):
        given = sample(rng, m=m, n=n)
        mask = torch.from_numpy(rng.random((m, n)) < 0.5)
        assert sdpa.is_applicable(*given)
        assert weighted_average.fused_repays(*given, None, False)
        assert weighted_average.fused_repays(*given, mask, False)
        plain = formula(*given, mask=mask)
        given[1].requires_grad_()
        assert weighted_average.fused_repays(*given, None, False) == (m * n >= 2**18)
        assert weighted_average.fused_repays(*given, mask, False) == (m * n >= 2**12)
        assert weighted_average.fused_repays(*given, None, True)
        torch.testing.assert_close(attend(*given, mask=mask), plain, rtol=1e-10, atol=1e-12)
    assert not sdpa.is_applicable(*sample(rng, n=0))


def test_leading_axes_broadcast(rng, calls):
    """Of queries, keys, values and the mask, each with an axis that the others lack."""
    q = torch.from_numpy(rng.normal(size=(2, 1, 1, 3, 5)))
    k = torch.from_numpy(rng.normal(size=(1, 3, 1, 7, 5)))
    v = torch.from_numpy(rng.normal(size=(5, 7, 2)))
    mask = torch.from_numpy(rng.random((11, 1, 1, 1, 3, 7)) < 0.5)
    for how in (None, mask):
        out = attend(q, k, v, mask=how)
        arrays = (a.numpy() for a in (q, k, v))
        expected, _ = reference.attend(*arrays, mask=None if how is None else how.numpy())
        assert out.shape == expected.shape == (*(() if how is None else (11,)), 2, 3, 5, 3, 2)
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-10, atol=1e-12)
    assert len(calls) == 2


def test_only_the_default_goes_through_it(rng, calls):
    from attnbook import scores

    q, k, v = sample(rng)
    numbers = [a.numpy() for a in (q, k, v)]
    attend(q, k, v, score=scores.dot)
    attend(q, k, v, score=lambda a, b: scores.scaled_dot(a, b))
    attend(q, k, v, return_weights=True)
    attend(*numbers)
    assert not calls
    attend(q, k, v)
    assert len(calls) == 1


def test_no_sequences_and_no_columns(rng, calls):
    """None of the values or of the mask alone, and a gradient with respect to no columns."""
    q, k, v = sample(rng)
    assert attend(q, k, v.expand(0, 7, 5)).shape == (0, 3, 5)
    assert attend(q, k, v, mask=torch.ones(0, 3, 7, dtype=torch.bool)).shape == (0, 3, 5)
    for leaf in (q, k, v):
        leaf.requires_grad_()
    attend(q, k, v[:, :0]).sum().backward()
    assert v.grad is not None and not v.grad.any()


@pytest.mark.parametrize("masked", [False, True])
def test_memory_layout_does_not_matter(rng, calls, masked):
    """Transposed, strided and broadcast tensors, and a subclass, give what their copies give."""
    q, k, v = sample(rng, 5)
    mask = torch.from_numpy(rng.random((5, 3, 7)) < 0.5) if masked else None
    expected = formula(q, k, v, mask=mask)
    views = [
        q.mT.contiguous().mT,
        k.repeat_interleave(2, 1)[:, ::2],
        torch.stack([v, v], -1)[..., 0],
    ]
    assert not any(a.is_contiguous() for a in views)
    seen = None if mask is None else torch.stack([mask, ~mask], -1)[..., 0]
    torch.testing.assert_close(attend(*views, mask=seen), expected, rtol=1e-11, atol=1e-13)

    class Named(torch.Tensor):
        pass

    named = (a.as_subclass(Named) for a in (q, k, v))
    out = attend(*named, mask=mask).as_subclass(torch.Tensor)
    torch.testing.assert_close(out, expected, rtol=1e-11, atol=1e-13)
    same = attend(q[:1].expand(5, -1, -1), k, v, mask=mask)
    torch.testing.assert_close(same, formula(q[:1], k, v, mask=mask), rtol=1e-11, atol=1e-13)
    assert len(calls) == 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_keeps_the_dtype(rng, calls, dtype):
    q, k, v = sample(rng, d=5, p=2, dtype=dtype)
    out = attend(q, k, v)
    assert calls and out.dtype == dtype
    expected, _ = reference.attend(*(a.double().numpy() for a in (q, k, v)))
    tolerance = max(1e-6, torch.finfo(dtype).eps)
    np.testing.assert_allclose(out.double().numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_does_not_overflow_nor_stall(calls, dtype):
    """300 · 300 is beyond float16; a mean of 4099 ones stops at 256 where sums are bfloat16."""
    q, k, v = (
        torch.tensor(a, dtype=dtype) for a in ([[300.0]], [[300.0], [200.0]], [[3.0], [5.0]])
    )
    assert attend(q, k, v).item() == 3
    q, k, v = (torch.ones(shape, dtype=dtype) for shape in ((1, 2), (4099, 2), (4099, 1)))
    assert attend(q, k, v).item() == 1
    assert len(calls) == 2


@pytest.mark.parametrize("size", [1.0, 1e6, 1e30])
def test_the_future_and_the_padding_do_not_count_at_all(rng, calls, size):
    """Keys and values behind the mask, however large, move the output by exactly 0."""
    q, k, v = sample(rng, 5, m=67, n=67)
    for mask in (causal_mask(67, like=q), torch.arange(67) < 31):
        before = attend(q, k, v, mask=mask)
        k2, v2 = k.clone(), v.clone()
        k2[:, 31:], v2[:, 31:] = size, -size
        after = attend(q, k2, v2, mask=mask)
        rows = slice(31) if mask.ndim == 2 else slice(None)
        torch.testing.assert_close(after[:, rows], before[:, rows], rtol=0, atol=0)
    assert len(calls) == 4


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("way", ["by a gradient", "in half precision", "dropped", "hidden"])
def test_a_key_behind_the_mask_may_be_nan(rng, calls, monkeypatch, way, bad):
    """Where the kernel was asked: it adds −∞ to NaN. Numbers are hidden while torch compiles."""
    dtype = torch.bfloat16 if way == "in half precision" else torch.float64
    q, k, v = sample(rng, 5, dtype=dtype)
    mask = torch.arange(7) < torch.tensor([[7], [5], [3], [1], [0]])
    mask = mask[:, None, :].expand(5, 3, 7)
    expected = formula(q, k, v, mask=mask)
    k[~mask[:, 0]] = bad
    q.requires_grad_(way == "by a gradient")
    if way == "hidden":
        monkeypatch.setattr(sdpa, "is_hidden", lambda tensor: True)
    drop = Dropout(1e-12) if way == "dropped" else None
    out = weighted_average.fast_average(q, k, v, mask, False, drop)
    assert calls
    tolerance = 1e-9 if dtype == torch.float64 else 2e-2
    torch.testing.assert_close(out, expected, rtol=tolerance, atol=tolerance)


def test_nothing_is_computed_again_where_all_is_nan(rng, calls, monkeypatch):
    """A training that went astray is not stopped by the memory that all weights would take."""
    q, k, v = (a + math.nan for a in sample(rng, n=3))
    monkeypatch.setattr(weighted_average, "attention_weights", None)
    assert attend(q, k, v, causal=True).isnan().all()
    assert attend(q, k, v, mask=torch.ones(3, 3, dtype=torch.bool)).isnan().all()


def test_inputs_are_left_as_they_are(rng, calls):
    given = [*sample(rng, 5), torch.from_numpy(rng.random((5, 3, 7)) < 0.5)]
    copies = [a.clone() for a in given]
    leaves = [a.requires_grad_() for a in given[:3]]
    attend(*leaves, mask=given[3]).sum().backward()
    for a, b in zip(given, copies, strict=True):
        torch.testing.assert_close(a.detach(), b, rtol=0, atol=0)
    assert calls


def test_jax_imports_no_torch():
    pytest.importorskip("jax")
    run_python(
        "import sys, jax.numpy as jnp, attnbook\n"
        "x = jnp.linspace(0.0, 1.0, 134).reshape(67, 2)\n"
        "out = attnbook.attend(x, x, x, mask=attnbook.causal_mask(67, x))\n"
        "assert jnp.allclose(out[0], x[0])\n"
        "assert 'torch' not in sys.modules"
    )
