"""Blocks of queries: which there are, and that nothing but memory depends on them."""

import backends
import numpy as np
import pytest

from attnbook import kernels, nadaraya_watson
from attnbook.kernel import chunked


def averages(sizes):
    """A stand-in for the weighted average that notes how many queries each block has."""

    def average(queries, extra, keys, values, kernel):
        sizes.append(queries.shape[-2])
        return kernel((queries @ keys.mT) @ values) + (0 if extra is None else extra)

    return average


def double(x):
    return 2 * x


@pytest.mark.parametrize("name", ["numpy", "strict", "torch"])
def test_blocks_by_hand(request, monkeypatch, name):
    """Seven queries in blocks of three: 3, 3 and the remainder 1; the extra row goes along."""
    backend = backends.load_or_skip(name)
    q, k, v = np.arange(14.0).reshape(7, 2), np.eye(2), np.ones((2, 1))
    expected = 2 * q.sum(1, keepdims=True)
    extra = np.arange(7.0)[:, None]
    monkeypatch.setattr(chunked, "TORCH_CHUNKS", 1)
    for bytes_, blocks in (
        (3 * 2 * 8, [3, 3, 1]),
        (4 * 2 * 8 - 1, [3, 3, 1]),
        (7 * 2 * 8, [7]),
        (7 * 2 * 8 - 1, [6, 1]),
        (1, [1] * 7),
    ):
        monkeypatch.setattr(chunked, "CHUNK_BYTES", bytes_)
        for more in (None, extra):
            sizes = []
            moving = (backend.array(q), None if more is None else backend.array(more))
            shared = backend.array(k), backend.array(v)
            out = chunked.map_query_chunks(averages(sizes), moving, shared, double)
            assert sizes == blocks
            np.testing.assert_array_equal(
                backend.numpy(out), expected + (0 if more is None else more)
            )


def test_leading_axes_count(monkeypatch):
    """Five sequences fill a block five times as fast; an extra with one row goes to every block."""
    monkeypatch.setattr(chunked, "CHUNK_BYTES", 2 * 5 * 3 * 8)
    q, k, v = np.ones((5, 1, 3, 2)), np.ones((3, 2)), np.ones((3, 1))
    sizes = []
    extra = np.full((1, 1), 100.0)
    out = chunked.map_query_chunks(averages(sizes), (q, extra), (k, v), double)
    assert sizes == [2, 1]
    np.testing.assert_array_equal(out, np.full((5, 1, 3, 1), 112.0))


@pytest.mark.parametrize(("larger", "blocks"), [(1, [2, 2, 2, 1]), (3, [6, 1])])
def test_torch_has_larger_blocks(monkeypatch, larger, blocks):
    """Its threads meet after every step, and wait there while others use the processor."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(chunked, "CHUNK_BYTES", 2 * 2 * 8)
    monkeypatch.setattr(chunked, "TORCH_CHUNKS", larger)
    q, k, v = (torch.ones(shape, dtype=torch.float64) for shape in ((7, 2), (2, 2), (2, 1)))
    sizes = []
    out = chunked.map_query_chunks(averages(sizes), (q, None), (k, v), double)
    assert sizes == blocks
    np.testing.assert_array_equal(out.numpy(), np.full((7, 1), 8.0))


def test_few_steps_for_a_large_average_in_torch(monkeypatch):
    """10,000 queries and keys take at most 100 blocks, so that threads seldom meet."""
    torch = pytest.importorskip("torch")
    rows = torch.ones(10_000, 1)
    sizes = []

    def average(queries, extra, keys, values, kernel):
        sizes.append(queries.shape[-2])
        return queries

    chunked.map_query_chunks(average, (rows, None), (rows, rows), double)
    assert 10 <= len(sizes) <= 100


def test_float32_blocks_have_twice_the_rows(monkeypatch):
    monkeypatch.setattr(chunked, "CHUNK_BYTES", 2 * 2 * 8)
    q, k, v = (np.ones(shape, np.float32) for shape in ((7, 2), (2, 2), (2, 1)))
    sizes = []
    chunked.map_query_chunks(averages(sizes), (q, None), (k, v), double)
    assert sizes == [4, 3]


def test_jax_goes_in_blocks(monkeypatch):
    """JAX maps over blocks in one compiled loop; the remainder is a block of its own."""
    backend = backends.load_or_skip("jax")
    monkeypatch.setattr(chunked, "CHUNK_BYTES", 3 * 2 * 4)
    monkeypatch.setattr(chunked, "JAX_CHUNKS", 2)
    q, k, v = np.arange(14.0).reshape(7, 2), np.eye(2), np.ones((2, 1))
    sizes = []
    average = averages(sizes)

    def run(q, k, v, extra):
        return chunked.map_query_chunks(average, (q, extra), (k, v), double)

    extra = np.arange(7.0)[:, None]
    expected = 2 * q.sum(1, keepdims=True) + extra
    arrays = [backend.array(a) for a in (q, k, v, extra)]
    np.testing.assert_array_equal(backend.numpy(run(*arrays)), expected)
    text = str(backend.jax.make_jaxpr(run)(*arrays))
    assert "scan" in text
    assert "length=2" in text  # two whole blocks of three
    assert "f64[7,2] = dot" not in text


def test_a_boxcar_has_no_slope_in_blocks_either(differentiable, small_blocks):
    """Its weights are constants: slope 0 for queries and keys, and their share for the values."""
    q, k = np.array([[0.1], [1.2], [2.3]]), np.arange(5.0)[:, None]
    v = np.array([[1.0], [2.0], [4.0], [8.0], [16.0]])

    def loss(*given):
        return nadaraya_watson(*given, kernel=kernels.boxcar, bandwidth=1).sum()

    dq, dk = differentiable.gradient(lambda q, k: loss(q, k, differentiable.array(v)), q, k)
    np.testing.assert_array_equal(dq, np.zeros((3, 1)))
    np.testing.assert_array_equal(dk, np.zeros((5, 1)))
    (dv,) = differentiable.gradient(
        lambda v: loss(differentiable.array(q), differentiable.array(k), v), v
    )
    # query 0.1 sees keys 0 and 1, query 1.2 keys 1 and 2, query 2.3 keys 2 and 3
    np.testing.assert_allclose(dv[:, 0], [0.5, 1, 1, 0.5, 0], rtol=1e-15)
