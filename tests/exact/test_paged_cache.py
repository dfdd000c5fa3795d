"""A cache in pages gives what attend gives, shares what is equal, and says when it is full."""

import backends
import numpy as np
import pytest

from attnbook import attend
from attnbook.exact.paged_cache import Pool, Sequence

D, P = 5, 3
# Averages of at most 15 values of size 3 or less, from scores of D terms of size 9 or less: some
# (15 + 9 D) roundings of each value, 60 · 1.1e-16 · 3. An average near 0 has no more right digits.
ROUNDING = {"rtol": 0, "atol": 2e-14}


@pytest.fixture(params=["numpy", "torch"])
def library(request):
    return backends.load_or_skip(request.param)


def pool_of(library, pages=8, page_size=4):
    return Pool(pages, page_size, D, P, like=library.array(np.zeros(1)))


def written(rng, library, pool, n):
    """A sequence of n tokens, and its keys and values as NumPy has them."""
    keys, values = rng.normal(size=(n, D)), rng.normal(size=(n, P))
    sequence = Sequence(pool)
    write(library, sequence, keys, values)
    return sequence, keys, values


def write(library, sequence, keys, values):
    for key, value in zip(keys, values, strict=True):
        sequence.write(library.array(key), library.array(value))


def ask(library, sequence, query):
    return library.numpy(sequence.attend(library.array(query)))


@pytest.mark.parametrize("n", [3, 9])
def test_attend_is_attend(library, rng, n):
    """Beside another sequence, which takes pages in between."""
    pool, query = pool_of(library), rng.normal(size=(2, 2, D))
    first, keys, values = written(rng, library, pool, n)
    second, other_keys, other_values = written(rng, library, pool, 5)
    keys, values = (np.concatenate([a, rng.normal(size=(6, a.shape[1]))]) for a in (keys, values))
    write(library, first, keys[n:], values[n:])
    for sequence, k, v in ((first, keys, values), (second, other_keys, other_values)):
        found = ask(library, sequence, query)
        np.testing.assert_allclose(found, attend(query, k, v), **ROUNDING)
        np.testing.assert_allclose(ask(library, sequence, query[0, 1]), found[0, 1], **ROUNDING)
    assert first.length == n + 6
    assert len(first.table) == -(-(n + 6) // 4)


def test_a_fork_copies_one_page(library, rng):
    """When it writes, and the last page alone; each goes on as if the other were not there."""
    pool, query = pool_of(library), rng.normal(size=(1, D))
    parent, keys, values = written(rng, library, pool, 6)
    child = parent.fork()
    assert len(pool.unused) == 6
    assert child.table == parent.table
    ways = []
    for sequence in (child, parent):
        more = rng.normal(size=(3, D)), rng.normal(size=(3, P))
        write(library, sequence, *more)
        ways.append([np.concatenate(pair) for pair in zip((keys, values), more, strict=True)])
    assert len(pool.unused) == 3  # one copied, and a new one for each
    assert child.table[0] == parent.table[0]
    assert not set(child.table[1:]) & set(parent.table[1:])
    for sequence, (k, v) in zip((child, parent), ways, strict=True):
        np.testing.assert_allclose(ask(library, sequence, query), attend(query, k, v), **ROUNDING)


def test_pages_come_back_when_the_last_reader_goes(rng):
    library = backends.load("numpy")
    pool = pool_of(library)
    parent, keys, values = written(rng, library, pool, 6)
    children = [parent.fork(), parent.fork()]
    parent.free()
    children[0].free()
    assert len(pool.unused) == 6
    query = rng.normal(size=(1, D))
    np.testing.assert_allclose(
        ask(library, children[1], query), attend(query, keys, values), **ROUNDING
    )
    taken = list(children[1].table)
    write(library, children[1], np.ones((1, D)), np.ones((1, P)))  # nobody else reads: no copy
    assert children[1].table == taken
    children[1].free()
    assert sorted(pool.unused) == list(range(8))
    assert not any(pool.readers)


def test_a_full_pool_says_so_and_changes_nothing(rng):
    library = backends.load("numpy")
    pool = pool_of(library, pages=2)
    parent, keys, values = written(rng, library, pool, 6)
    child = parent.fork()
    late = Sequence(pool)
    for sequence in (child, late):
        with pytest.raises(RuntimeError, match="pool: got no free page of 2, expected one"):
            sequence.write(np.ones(D), np.ones(P))
    query = rng.normal(size=(1, D))
    expected = attend(query, keys, values)
    np.testing.assert_allclose(ask(library, child, query), expected, **ROUNDING)
    assert (child.length, late.length, late.table, pool.readers) == (6, 0, [], [2, 2])
    parent.free()
    child.write(np.ones(D), np.ones(P))


def test_nothing_written_gives_nothing(library):
    for pages in (0, 2):
        sequence = Sequence(pool_of(library, pages=pages))
        np.testing.assert_array_equal(ask(library, sequence, np.ones((2, D))), np.zeros((2, P)))


def test_in_jax_each_place_is_written(rng):
    library = backends.load_or_skip("jax")
    sequence, keys, values = written(rng, library, pool_of(library), 5)
    child, query = sequence.fork(), rng.normal(size=(1, D))
    write(library, child, np.ones((1, D)), np.ones((1, P)))
    np.testing.assert_allclose(
        ask(library, sequence, query), attend(query, keys, values), **ROUNDING
    )


def test_half_precision_is_computed_in_float32():
    pool = Pool(300, 1, 2, 1, like=np.zeros(1, np.float16))
    sequence = Sequence(pool)
    for _ in range(300):
        sequence.write(np.zeros(2, np.float16), 400 * np.ones(1, np.float16))
    found = sequence.attend(np.ones((1, 2), np.float16))  # the sum of the values is above 65,504
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, [[400]])


@pytest.mark.parametrize("call", ["write", "attend", "fork", "free"])
def test_a_freed_sequence_is_not_used(call):
    sequence = Sequence(Pool(2, 2, D, P))
    sequence.free()
    args = {"write": (np.ones(D), np.ones(P)), "attend": (np.ones((1, D)),)}.get(call, ())
    with pytest.raises(RuntimeError, match="sequence: got one that was freed"):
        getattr(sequence, call)(*args)


WRONG = {
    r"key: got shape \(4,\), exp": lambda s: s.write(np.ones(4), np.ones(P)),
    r"value: got shape \(1,\)": lambda s: s.write(np.ones(D), np.ones(1)),
    "key: got dtype float32, expected float64": lambda s: s.write(np.ones(D, "f4"), np.ones(P)),
    "key: got a list": lambda s: s.write([1.0] * D, np.ones(P)),
    r"query: got shape \(1, 4\)": lambda s: s.attend(np.ones((1, 4))),
    "page_size: got 0": lambda s: Pool(1, 0, D, P),
    "head_dim: got 0": lambda s: Pool(1, 1, 0, P),
    "like: got dtype int": lambda s: Pool(1, 1, D, P, like=np.ones(1, int)),
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_calls(message):
    sequence = Sequence(Pool(2, 2, D, P))
    with pytest.raises((ValueError, TypeError), match=message):
        WRONG[message](sequence)
    assert sequence.length == 0
    assert not sequence.table
