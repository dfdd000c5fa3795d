"""Sequences: rows of digits, repeated tokens."""

import numpy as np
from jaxtyping import Bool, Float, Int

from attnbook._validation import nonnegative_int, positive_int

Array = np.ndarray


def digit_comparisons(
    n: int, *, seed: int = 0, length: int = 10
) -> tuple[Int[Array, "n length"], Float[Array, " n"]]:
    """Rows of random digits, and whether a row has more 4s than 2s.

    Args:
        n: the number of rows.
        seed: of NumPy's default generator.
        length: of a row.

    Returns:
        Digits from 0 to 9, int64, of shape (n, length); labels, 1.0 or 0.0, float32, of shape (n,).

    Raises:
        ValueError: a number or a seed that is no integer of at least 0, a length below 1.
    """
    shape = nonnegative_int(n=n), positive_int(length=length)
    nonnegative_int(seed=seed)
    digits = np.random.default_rng(seed).integers(0, 10, size=shape)
    more = np.sum(digits == 4, axis=1) > np.sum(digits == 2, axis=1)
    return digits, more.astype(np.float32)


def means_of_even(
    n: int, *, seed: int = 0, length: int = 10
) -> tuple[Int[Array, "n length"], Float[Array, " n"]]:
    """Rows of random digits, and the mean of a row's even digits, 0 among them.

    Args:
        n: the number of rows.
        seed: of NumPy's default generator.
        length: of a row. A row without an even digit has no such mean and is drawn again.

    Returns:
        Digits from 0 to 9, int64, of shape (n, length); means from 0 to 8, float32, of shape (n,).

    Raises:
        ValueError: a number or a seed that is no integer of at least 0, a length below 1.
    """
    shape = nonnegative_int(n=n), positive_int(length=length)
    nonnegative_int(seed=seed)
    rng = np.random.default_rng(seed)
    digits = rng.integers(0, 10, size=shape)
    while (odd := np.all(digits % 2 == 1, axis=1)).any():
        digits[odd] = rng.integers(0, 10, size=(odd.sum(), length))
    even = digits % 2 == 0
    means = np.sum(digits * even, axis=1) / np.sum(even, axis=1)
    return digits, means.astype(np.float32)


def repeated_sequences(
    n: int,
    *,
    seed: int = 0,
    length: int = 48,
    vocab_size: int = 64,
    periods: tuple[int, int] = (8, 24),
) -> tuple[Int[Array, "n length"], Bool[Array, "n length"]]:
    """Rows of random tokens that repeat after a random period, and where they can be predicted.

    Args:
        n: the number of rows.
        seed: of NumPy's default generator.
        length: of a row.
        vocab_size: tokens are 0 to vocab_size − 1. In a period none comes twice, so that the token
            before tells which one follows.
        periods: the shortest and the longest; every row has its own.

    Returns:
        Tokens, int64, of shape (n, length); a mask of the same shape, True where a token repeats
        the one a period before.

    Raises:
        ValueError: numbers that are no integers, periods that are not 1 or more, in order, below
            the length and at most vocab_size.
    """
    nonnegative_int(n=n)
    nonnegative_int(seed=seed)
    positive_int(length=length)
    positive_int(vocab_size=vocab_size)
    largest = min(length - 1, vocab_size)
    ends = np.asarray(periods)
    whole = ends.shape == (2,) and np.issubdtype(ends.dtype, np.integer)
    least, most = ends.tolist() if whole else (0, 0)
    if not 1 <= least <= most <= largest:
        raise ValueError(f"periods: got {periods}, expected two from 1 to {largest}, in order")
    rng = np.random.default_rng(seed)
    period = rng.integers(least, most + 1, size=(n, 1))
    fresh = np.argsort(rng.random((n, vocab_size)), axis=1)  # a random order of all tokens
    position = np.arange(length)
    return np.take_along_axis(fresh, position % period, axis=1), position >= period
