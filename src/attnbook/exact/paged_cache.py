"""A cache in pages: keys and values in pieces of one size, and a table that says which are whose.

A sequence takes a page when it needs one, so that nothing is reserved for what may never be
written. Sequences that begin alike share their pages until one of them writes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import device, is_jax_array
from jaxtyping import Float

from attnbook._types import Array
from attnbook._validation import (
    check_floating,
    nonnegative_int,
    positive_int,
    upcast_half,
)
from attnbook.attention import scores
from attnbook.exact import online_softmax


class Pool:
    """Pages of keys and values, and how many sequences read each.

    Args:
        pages: how many there are, 0 or more.
        page_size: how many tokens a page holds.
        head_dim: d, the width of a key.
        value_dim: p, the width of a value.
        like: an array whose library, dtype and device the pages take; without one they are NumPy's
            float64. JAX copies its arrays at every write, unless the write is compiled.

    Attributes:
        keys: of shape (pages, page_size, d).
        values: of shape (pages, page_size, p).
        readers: how many sequences have a page in their table, a number per page.
        unused: the numbers of the pages that nobody has.

    Source: Kwon et al. (2023), section 4.
    """

    def __init__(
        self,
        pages: int,
        page_size: int,
        head_dim: int,
        value_dim: int,
        *,
        like: Array | None = None,
    ) -> None:
        given = np.zeros(()) if like is None else like
        xp = check_floating(like=given)
        shape = (nonnegative_int(pages=pages), positive_int(page_size=page_size))
        widths = positive_int(head_dim=head_dim), positive_int(value_dim=value_dim)
        self.page_size = shape[1]
        self.keys, self.values = (
            xp.zeros((*shape, width), dtype=given.dtype, device=device(given)) for width in widths
        )
        self.readers = [0] * shape[0]
        self.unused = list(reversed(range(shape[0])))

    def take(self) -> int:
        """The number of a page that nobody has; a RuntimeError if every page is in use."""
        if not self.unused:
            pages = len(self.readers)
            raise RuntimeError(f"pool: got no free page of {pages}, expected one: free a sequence")
        page = self.unused.pop()
        self.readers[page] = 1
        return page

    def drop(self, page: int) -> None:
        """One reader less; without any, the page is free."""
        self.readers[page] -= 1
        if self.readers[page] == 0:
            self.unused.append(page)


class Sequence:
    """What has been written of one sequence: a table of pages, and how many tokens they hold.

    Args:
        pool: where its pages come from.

    Attributes:
        table: the numbers of its pages, in order.
        length: how many tokens were written.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.table: list[int] = []
        self.length = 0
        self.freed = False

    def write(self, key: Float[Array, " d"], value: Float[Array, " p"]) -> None:
        """Write a token: into a new page if the last one is full, into a copy if others read it.

        Args:
            key: of shape (d,).
            value: of shape (p,).

        Raises:
            ValueError: a key or a value of another width or dtype than the pool's.
            RuntimeError: no page is free, and the sequence is as before; or it was freed.
        """
        self._check_in_use()
        pool, slot = self.pool, self.length % self.pool.page_size
        check_floating(pool=pool.keys, key=key, value=value)
        for name, row, stored in (("key", key, pool.keys), ("value", value, pool.values)):
            if tuple(row.shape) != tuple(stored.shape[2:]):
                expected = tuple(stored.shape[2:])
                raise ValueError(f"{name}: got shape {tuple(row.shape)}, expected {expected}")
        if slot == 0:
            self.table.append(pool.take())
        elif pool.readers[self.table[-1]] > 1:
            old, new = self.table[-1], pool.take()  # a page of its own
            pool.keys = _with_row(pool.keys, (new,), pool.keys[old, ...])
            pool.values = _with_row(pool.values, (new,), pool.values[old, ...])
            pool.drop(old)
            self.table[-1] = new
        page = self.table[-1]
        pool.keys = _with_row(pool.keys, (page, slot), key)
        pool.values = _with_row(pool.values, (page, slot), value)
        self.length += 1

    def fork(self) -> Sequence:
        """A second sequence that begins with the same tokens; no page is copied yet."""
        self._check_in_use()
        twin = Sequence(self.pool)
        twin.table, twin.length = list(self.table), self.length
        for page in self.table:
            self.pool.readers[page] += 1
        return twin

    def free(self) -> None:
        """Give the pages back; those that others read stay theirs."""
        self._check_in_use()
        for page in self.table:
            self.pool.drop(page)
        self.table, self.length, self.freed = [], 0, True

    def attend(self, query: Float[Array, "... d"]) -> Float[Array, "... p"]:
        """Attention of queries to all that was written, combined from the parts of the pages.

        Args:
            query: of shape (..., d), one query or many.

        Returns:
            The averages, of shape (..., p), 0 if nothing was written. float16 and bfloat16 are
            computed in float32.

        Raises:
            ValueError: queries of another width or dtype than the pool's keys.
            RuntimeError: the sequence was freed.
        """
        self._check_in_use()
        pool, size = self.pool, self.pool.page_size
        xp = check_floating(pool=pool.keys, query=query)
        d = pool.keys.shape[-1]
        if query.ndim == 0 or query.shape[-1] != d:
            raise ValueError(f"query: got shape {tuple(query.shape)}, expected (..., {d})")
        rows, p = xp.reshape(query, (-1, d)), pool.values.shape[-1]
        part = online_softmax.empty(rows.shape[0], p, *upcast_half(xp, rows))
        for number, page in enumerate(self.table):
            end = min(size, self.length - number * size)
            held = rows, pool.keys[page, :end, :], pool.values[page, :end, :]
            q, k, v = upcast_half(xp, *held)
            here = online_softmax.unchecked_partial(scores.unchecked_scaled_dot(q, k), v, None)
            part = online_softmax.unchecked_combine(part, here)
        average, _ = online_softmax.unchecked_finish(part)
        shape = (*query.shape[:-1], p)
        return xp.astype(xp.reshape(average, shape), query.dtype, copy=False)

    def _check_in_use(self) -> None:
        if self.freed:
            raise RuntimeError("sequence: got one that was freed, expected one in use")


def _with_row(array: Any, where: tuple[int, ...], row: Array) -> Array:
    """An array with a row written: in place, and in JAX, which has no such thing, as a new one."""
    if is_jax_array(array):
        return array.at[where].set(row)
    array[(*where, ...)] = row
    return array
