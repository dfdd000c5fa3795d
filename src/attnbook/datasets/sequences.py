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
    digits = _generator(n, seed).integers(0, 10, size=(n, positive_int(length=length)))
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
    rng = _generator(n, seed)
    digits = rng.integers(0, 10, size=(n, positive_int(length=length)))
    while (odd := np.all(digits % 2 == 1, axis=1)).any():
        digits[odd] = rng.integers(0, 10, size=(odd.sum(), length))
    even = digits % 2 == 0
    means = np.sum(digits * even, axis=1) / np.sum(even, axis=1)
    return digits, means.astype(np.float32)


def repeated_sequences(n: int, *, seed: int = 0) -> tuple[Int[Array, "n 48"], Bool[Array, "n 48"]]:
    """Rows of 48 random tokens that repeat after a random period, and where they can be predicted.

    Args:
        n: the number of rows. Each has its own period, from 8 to 24, in which no token comes twice,
            so that the token before tells which one follows.
        seed: of NumPy's default generator.

    Returns:
        Tokens from 0 to 63, int64, of shape (n, 48); a mask of the same shape, True where a token
        repeats the one a period before.

    Raises:
        ValueError: a number or a seed that is no integer of at least 0.
    """
    rng = _generator(n, seed)
    period = rng.integers(8, 25, size=(n, 1))
    fresh = np.argsort(rng.random((n, 64)), axis=1)  # a random order of all tokens
    position = np.arange(48)
    return np.take_along_axis(fresh, position % period, axis=1), position >= period


def _generator(n: int, seed: int) -> np.random.Generator:
    """The generator of n rows, once both are checked."""
    nonnegative_int(n=n)
    return np.random.default_rng(nonnegative_int(seed=seed))
