"""Attention in blocks where the contract does not reach: no key, large scores, memory, kinds of blocks."""

import tracemalloc

import backends
import numpy as np
import pytest

from attnbook import attend
from attnbook.exact import flash

BACKENDS = ("numpy", "strict", "torch")  # JAX compiles every block for itself


def arrays(rng, lead, m, n):
    return [
        rng.normal(size=(*axes, rows, width))
        for axes, rows, width in zip(lead, (m, n, n), (5, 5, 3), strict=True)
    ]


def both(g, q, k, v, **how):
    return flash.backward(g, q, k, v, *flash.forward(q, k, v, **how), **how)


@pytest.mark.parametrize("block", [1, 2, 3, 64])
@pytest.mark.parametrize("causal", [False, True])
def test_the_length_of_blocks_does_not_matter(backend, rng, block, causal):
    """Blocks that divide, that leave a rest, of one and of all; the gradient of one that wants one."""
    q, k, v = arrays(rng, ((2, 1), (3,), ()), 4, 4)
    output, logs = backend.call(flash.forward, q, k, v, block=block, causal=causal)
    np.testing.assert_allclose(output, attend(q, k, v, causal=causal), rtol=0, atol=1e-13)
    whole = backend.call(flash.backward, output, q, k, v, output, logs, block=4, causal=causal)
    found = backend.call(flash.backward, output, q, k, v, output, logs, block=block, causal=causal)
    for ours, right in zip(found, whole, strict=True):
        np.testing.assert_allclose(ours, right, rtol=0, atol=1e-13)


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
    q, k, v = arrays(rng, ((), (), ()), 4, 4)
    k[3] = 1e4
    for causal in (False, True):
        output, logs = backend.call(flash.forward, 900 * q, k, v, block=2, causal=causal)
        expected = attend(900 * q, k, v, causal=causal)
        np.testing.assert_allclose(output, expected, rtol=1e-9, atol=1e-12)
        found = backend.call(flash.backward, v, 900 * q, k, v, output, logs, block=2, causal=causal)
        assert all(np.isfinite(gradient).all() for gradient in found)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32(dtype):
    """In parts of one key: the running sum of 300 ones would stop at 256 in bfloat16."""
    backend = backends.load_or_skip("torch")
    given = np.ones((1, 2)), np.zeros((300, 2)), np.ones((300, 3)), np.ones((1, 3))
    q, k, v, g = (backend.cast(backend.array(a), dtype) for a in given)
    output, logs = flash.forward(q, k, v, block=1)
    assert (backend.dtype(output), backend.dtype(logs)) == (dtype, "float32")
    assert output.tolist() == [[1.0] * 3]
    np.testing.assert_allclose(float(logs[0]), np.log(300), rtol=1e-6)
    gradients = flash.backward(g, q, k, v, output, logs, block=300)
    assert {backend.dtype(a) for a in gradients} == {dtype}
    np.testing.assert_allclose(float(gradients[2][3, 1]), 1 / 300, rtol=1e-2)


@pytest.mark.parametrize(("dtype", "last"), [("float16", 2.0**-10), ("bfloat16", 2.0**-7)])
def test_delta_is_summed_in_float32(dtype, last):
    """With one key o = v and gᵀv = δ, so no score has a gradient; a rounded g² would give it one."""
    backend = backends.load_or_skip("torch")
    of_values = np.array([[1 + last, 1 + 2 * last]])  # (1 + u)² = 1 + 2u + u², exact in float32
    given = np.array([[1 + last, -1.0]]), np.zeros((1, 1)), np.full((1, 1), 1024.0), of_values
    dq, _, _ = both(*(backend.cast(backend.array(a), dtype) for a in given))
    assert float(dq[0, 0]) == 0


def test_memory_is_linear_in_the_length(rng):
    peaks = []
    for n in (512, 1024):
        q, k, v = arrays(rng, ((), (), ()), n, n)
        output, logs = flash.forward(q, k, v)
        peaks.append(
            [
                peak(lambda given=(q, k, v): flash.forward(*given)),
                peak(lambda given=(v, q, k, v, output, logs): flash.backward(*given)),
            ]
        )
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
    "documents": (lambda i, j: (j <= i) & (i // 256 == j // 256), 40 / 256),
    "keys alone": (lambda i, j: j < 100, 32 / 256),
    "all": (lambda i, j: True, 1.0),
}


@pytest.mark.parametrize("name", MASKS)
def test_kinds_of_blocks(name):
    allowed, share = MASKS[name]
    kinds = flash.block_kinds(allowed, 1024, 1024, 64)
    i, j = np.arange(1024)[:, None], np.arange(1024)
    mask = np.broadcast_to(allowed(i, j), (1024, 1024))
    for r, c in np.ndindex(16, 16):
        tile = mask[64 * r : 64 * r + 64, 64 * c : 64 * c + 64]
        assert kinds[r, c] == (2 if tile.all() else 1 if tile.any() else 0)
    assert (kinds > 0).mean() == share


def test_kinds_of_blocks_where_they_do_not_divide():
    found = flash.block_kinds(lambda i, j: j <= i, 130, 70, 64)
    np.testing.assert_array_equal(found, [[1, 0], [2, 1], [2, 2]])
    assert flash.block_kinds(lambda i, j: j <= i, 0, 5, 2).shape == (0, 3)
    assert flash.block_kinds(lambda i, j: j <= i, 5, 0, 2).shape == (3, 0)


Q, K, V, G = np.ones((2, 5, 4)), np.ones((7, 4)), np.ones((7, 3)), np.ones((2, 5, 3))
L = np.ones((2, 5))
WRONG = {
    "causal: got 5 queries and 7 keys": lambda: flash.backward(G, Q, K, V, G, L, causal=True),
    "block: got 0": lambda: flash.backward(G, Q, K, V, G, L, block=0),
    r"g: got shape \(7, 3\), expected \(2": lambda: flash.backward(V, Q, K, V, G, L),
    "allowed: gave int64, expected truth": lambda: flash.block_kinds(lambda i, j: i - j, 5, 5, 2),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_calls(message):
    with pytest.raises(ValueError, match=message):
        WRONG[message]()
