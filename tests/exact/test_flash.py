"""Attention in blocks, forward and backward, is attention; and which blocks a mask leaves."""

import functools
import tracemalloc

import backends
import numpy as np
import pytest

from attnbook import attend
from attnbook.exact import flash

LEADS = {"one": ((), (), ()), "several": ((3, 1), (2,), (3, 2)), "shared": ((2, 4), (2, 1), (1,))}
SIZES = {  # m, n, block
    "divides": (4, 4, 2, "one"),
    "rest": (3, 5, 2, "several"),
    "larger than all": (5, 7, 64, "shared"),
    "one at a time": (2, 3, 1, "one"),
    "no query": (0, 5, 4, "several"),
}


def arrays(rng, lead, m, n):
    return [
        rng.normal(size=(*axes, rows, width))
        for axes, rows, width in zip(lead, (m, n, n), (5, 5, 3), strict=True)
    ]


def log_sum_exp(q, k, causal=False):
    found = np.exp(q @ k.mT / np.sqrt(q.shape[-1]))
    return np.log((np.tril(found) if causal else found).sum(-1))


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_forward_is_attend(backend, rng, sizes):
    m, n, block, lead = sizes
    if lead != "several":
        backends.skip_op_by_op(backend)
    q, k, v = arrays(rng, LEADS[lead], m, n)
    output, logs = backend.call(flash.forward, q, k, v, block=block)
    np.testing.assert_allclose(output, attend(q, k, v), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(logs, log_sum_exp(q, k), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("block", [2, 64])
def test_causal_is_attend(backend, rng, block):
    if block == 2:
        backends.skip_op_by_op(backend)
    q, k, v = arrays(rng, ((2, 1), (3,), ()), 5, 5)
    output, logs = backend.call(flash.forward, q, k, v, block=block, causal=True)
    np.testing.assert_allclose(output, attend(q, k, v, causal=True), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(logs, log_sum_exp(q, k, causal=True), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("causal", [False, True])
def test_no_key_gives_no_value(backend, rng, causal):
    m = 0 if causal else 5
    q, k, v = arrays(rng, ((2,), (), (3, 1)), m, 0)
    output, logs = backend.call(flash.forward, q, k, v, causal=causal)
    np.testing.assert_array_equal(output, np.zeros((3, 2, m, 3)))
    np.testing.assert_array_equal(logs, np.full((2, m), -np.inf))
    found = backend.call(flash.backward, output, q, k, v, output, logs, causal=causal)
    for gradient, a in zip(found, (q, k, v), strict=True):
        np.testing.assert_array_equal(gradient, np.zeros(a.shape))


def test_large_scores_do_not_overflow(backend, rng):
    """Nor do those that causal attention hides, however large they are."""
    backends.skip_op_by_op(backend)
    q, k, v = arrays(rng, ((), (), ()), 4, 4)
    k[3] = 1e4
    for causal in (False, True):
        output, logs = backend.call(flash.forward, 900 * q, k, v, block=2, causal=causal)
        expected = attend(900 * q, k, v, causal=causal)
        np.testing.assert_allclose(output, expected, rtol=1e-9, atol=1e-12)
        found = backend.call(flash.backward, v, 900 * q, k, v, output, logs, block=2, causal=causal)
        assert all(np.isfinite(gradient).all() for gradient in found)


@pytest.mark.parametrize(("lead", "causal"), [("one", True), ("several", False), ("shared", True)])
def test_backward_is_that_of_attend(differentiable, rng, lead, causal):
    """Where a leading axis was broadcast, the gradient is summed over it."""
    backends.skip_op_by_op(differentiable)
    q, k, v = arrays(rng, LEADS[lead], 3, 3 if causal else 5)
    g = rng.normal(size=attend(q, k, v).shape)

    def loss(*given):
        return (attend(*given, causal=causal) * differentiable.array(g)).sum()

    expected = differentiable.gradient(loss, q, k, v)
    found = differentiable.call(both, g, q, k, v, block=2, causal=causal)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)


def both(g, q, k, v, **how):
    return flash.backward(g, q, k, v, *flash.forward(q, k, v, **how), **how)


@pytest.mark.parametrize("name", ["numpy", "strict"])
def test_backward_is_that_of_differences(rng, name):
    """Along a random direction, against the difference of two outputs."""
    given, ways = arrays(rng, ((2,), (), ()), 5, 7), arrays(rng, ((2,), (), ()), 5, 7)
    g = rng.normal(size=(2, 5, 3))
    found = backends.load_or_skip(name).call(both, g, *given, block=3)
    ahead, behind = (
        flash.forward(*(a + step * way for a, way in zip(given, ways, strict=True)))[0]
        for step in (1e-5, -1e-5)
    )
    slope = sum((gradient * way).sum() for gradient, way in zip(found, ways, strict=True))
    np.testing.assert_allclose(slope, (g * (ahead - behind)).sum() / 2e-5, rtol=1e-8)


def test_a_gradient_need_not_be_contiguous(rng):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(a).requires_grad_() for a in arrays(rng, ((2,),) * 3, 130, 130))
    g = torch.from_numpy(rng.normal(size=(2, 3, 130))).mT
    assert not g.is_contiguous()
    for causal in (False, True):
        outputs = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        expected = torch.autograd.grad(outputs, (q, k, v), g)
        found = both(g, *(a.detach() for a in (q, k, v)), block=32, causal=causal)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-13)


def test_autograd_goes_through_forward(differentiable, rng):
    backends.skip_op_by_op(differentiable)
    q, k, v = arrays(rng, ((), (), ()), 3, 3)

    def loss(function, *given):
        return (function(*given, causal=True) ** 2).sum()

    def in_blocks(*given, causal):
        return flash.forward(*given, block=2, causal=causal)[0]

    expected = differentiable.gradient(functools.partial(loss, attend), q, k, v)
    found = differentiable.gradient(functools.partial(loss, in_blocks), q, k, v)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_half_precision_is_computed_in_float32(backend, rng, dtype):
    """In parts of one key: the running sum of 300 ones would stop at 256 in bfloat16."""
    if dtype != "float32" and dtype not in backend.half:
        pytest.skip("not a dtype of this library")
    if backend.name == "jax-jit":
        pytest.skip("jax runs the same: nothing is compiled here")
    q, k, v, g = (np.ones((1, 2)), np.zeros((300, 2)), np.ones((300, 3)), np.ones((1, 3)))
    v[:, 0] = rng.integers(0, 2, size=300)
    given = [backend.cast(backend.array(a), dtype) for a in (q, k, v, g)]
    output, logs = flash.forward(*given[:3], block=1)
    assert (backend.dtype(output), backend.dtype(logs)) == (dtype, "float32")
    found = [float(output[0, c]) for c in range(3)]
    np.testing.assert_allclose(found, v.mean(0), rtol=4e-3 if dtype == "bfloat16" else 5e-4)
    np.testing.assert_allclose(float(logs[0]), np.log(300), rtol=1e-6)
    gradients = flash.backward(given[3], *given[:3], output, logs, block=300)
    assert {backend.dtype(a) for a in gradients} == {dtype}
    np.testing.assert_allclose(float(gradients[2][3, 1]), 1 / 300, rtol=1e-2)


@pytest.mark.parametrize(("dtype", "last"), [("float16", 2.0**-10), ("bfloat16", 2.0**-7)])
def test_delta_is_summed_in_float32(backend, dtype, last):
    """With one key o = v and gᵀv = δ, so no score has a gradient; a rounded g² would give it one."""
    if dtype not in backend.half or backend.name == "jax-jit":
        pytest.skip("not a dtype of this library, or compiled: jax runs the same")
    of_values = np.array([[1 + last, 1 + 2 * last]])  # (1 + u)² = 1 + 2u + u², exact in float32
    given = np.array([[1 + last, -1.0]]), np.zeros((1, 1)), np.full((1, 1), 1024.0), of_values
    g, q, k, v = (backend.cast(backend.array(a), dtype) for a in given)
    dq, _, _ = both(g, q, k, v)
    assert float(dq[0, 0]) == 0


def test_autocast_rounds_no_sum():
    """The gradients are those of the same numbers outside autocast, to the last digit."""
    torch = pytest.importorskip("torch")
    q, k = torch.zeros(1, 4), torch.zeros(3000, 4)
    v, g = torch.linspace(0, 1, 3000)[:, None], torch.full((1, 1), 1 / 3)
    expected = both(g, q, k, v, block=500)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output, logs = flash.forward(q.bfloat16(), k, v, block=10)
        found = flash.backward(g, q.bfloat16(), k, v, output, logs, block=500)
    assert (output.dtype, logs.dtype, found[0].dtype) == (v.dtype, v.dtype, torch.bfloat16)
    np.testing.assert_allclose(output, [[0.5]], rtol=1e-5)
    np.testing.assert_allclose(logs, [np.log(3000)], rtol=1e-6)
    for one, other in zip(found[1:], expected[1:], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-9)


def test_memory_is_linear_in_the_length(rng):
    peaks = []
    for n in (512, 1024):
        q, k, v = arrays(rng, ((), (), ()), n, n)
        output, logs = flash.forward(q, k, v)
        calls = (
            lambda given=(q, k, v): flash.forward(*given),
            lambda given=(v, q, k, v, output, logs): flash.backward(*given),
        )
        peaks.append([peak(call) for call in calls])
    for once, twice in zip(*peaks, strict=True):
        assert twice < 2.2 * once
        assert twice < 1024 * 1024 * 8 / 10


def peak(call):
    tracemalloc.start()
    call()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


MASKS = {
    "causal": (lambda i, j: j <= i, 0.53125),
    "window": (lambda i, j: (j <= i) & (i - j < 128), 45 / 256),
    "sinks and window": (lambda i, j: (j <= i) & ((i - j < 128) | (j < 4)), 58 / 256),
    "documents": (lambda i, j: (j <= i) & (i // 256 == j // 256), 40 / 256),
    "prefix": (lambda i, j: (j <= i) | (j < 256), 142 / 256),
    "keys alone": (lambda i, j: j < 100, 32 / 256),
    "all": (lambda i, j: True, 1.0),
}


@pytest.mark.parametrize("name", MASKS)
def test_kinds_of_blocks(name):
    allowed, share = MASKS[name]
    kinds = flash.block_kinds(allowed, 1024, 1024, 64)
    assert np.issubdtype(kinds.dtype, np.integer)
    i, j = np.arange(1024)[:, None], np.arange(1024)
    mask = np.broadcast_to(allowed(i, j), (1024, 1024))
    for r, c in np.ndindex(16, 16):
        tile = mask[64 * r : 64 * r + 64, 64 * c : 64 * c + 64]
        assert kinds[r, c] == (2 if tile.all() else 1 if tile.any() else 0)
    assert (kinds > 0).mean() == share


def test_kinds_of_blocks_where_they_do_not_divide():
    found = flash.block_kinds(lambda i, j: j <= i, 130, 70, 64)
    np.testing.assert_array_equal(found, [[1, 0], [2, 1], [2, 2]])
    asked = []
    found = flash.block_kinds(lambda i, j: asked.append(i.max()) or i + j < 9, 5, 5, 4)
    np.testing.assert_array_equal(found, [[2, 2], [2, 2]])  # all pairs there are
    assert max(asked) == 4  # no query beyond the last
    assert flash.block_kinds(lambda i, j: j <= i, 0, 5, 2).shape == (0, 3)
    assert flash.block_kinds(lambda i, j: j <= i, 5, 0, 2).shape == (3, 0)


Q, K, V, G = np.ones((2, 5, 4)), np.ones((7, 4)), np.ones((7, 3)), np.ones((2, 5, 3))
L = np.ones((2, 5))
WRONG = {
    "widths": (lambda: flash.forward(Q, V, V), "k: got 3 coordinates, expected 4 as in q"),
    "rows of values": (lambda: flash.forward(Q, K, V[:6]), "^v: got 6 rows, expected 7"),
    "values of one axis": (lambda: flash.forward(Q, K, V[:, 0]), r"^v: got shape \(7,\)"),
    "leads": (lambda: flash.forward(Q, K, np.ones((3, 7, 3))), "q, k, v: .* broadcast"),
    "causal, other lengths": (
        lambda: flash.forward(Q, K, V, causal=True),
        "causal: got 5 queries and 7 keys, expected as many of both",
    ),
    "causal backward": (
        lambda: flash.backward(G, Q, K, V, G, L, causal=True),
        "causal: got 5 queries and 7 keys",
    ),
    "causal as a number": (lambda: flash.forward(Q, K, V, causal=1), "causal: got 1, expected"),
    "no block": (lambda: flash.forward(Q, K, V, block=0), "block: got 0"),
    "no block, backward": (lambda: flash.backward(G, Q, K, V, G, L, block=0), "block: got 0"),
    "half a block": (lambda: flash.forward(Q, K, V, block=2.5), "block: got 2.5"),
    "gradient": (lambda: flash.backward(V, Q, K, V, G, L), r"g: got shape \(7, 3\), expected \(2"),
    "output": (lambda: flash.backward(G, Q, K, V, V, L), r"output: got shape \(7, 3\), expected"),
    "logs": (lambda: flash.backward(G, Q, K, V, G, G), r"log_sum_exp: .* expected \(2, 5\)"),
    "integers": (lambda: flash.backward(G, Q, K, V, G, L.astype(int)), "log_sum_exp: got dtype"),
    "logs in single": (
        lambda: flash.backward(G, Q, K, V, G, L.astype("f4")),
        "log_sum_exp: got dtype float32, expected float64, as forward gives it",
    ),
    "two dtypes": (lambda: flash.backward(G.astype("f4"), Q, K, V, G, L), "g: got dtype float32"),
    "no function": (lambda: flash.block_kinds(True, 5, 5, 2), "allowed: got True, expected a func"),
    "numbers": (lambda: flash.block_kinds(lambda i, j: i - j, 5, 5, 2), "allowed: got int64 of"),
    "a mask's shape": (
        lambda: flash.block_kinds(lambda i, j: np.ones(3, bool), 5, 5, 2),
        r"allowed: got bool of shape \(3,\), expected truth values that fit \(2, 5\)",
    ),
    "sizes": (lambda: flash.block_kinds(lambda i, j: j <= i, -1, 5, 2), "m: got -1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls(name):
    call, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_another_library():
    array = backends.load_or_skip("torch").array
    with pytest.raises(TypeError, match="expected one library"):
        flash.backward(array(G), Q, K, V, G, L)
    with pytest.raises(TypeError, match=r"^allowed: gave a Tensor, expected truth values"):
        flash.block_kinds(lambda i, j: array(j <= i), 5, 5, 2)
