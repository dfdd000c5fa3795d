"""Byte pair merging of a word, the right way and the usual wrong ones."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

FIRST_MERGE = 256  # the token that the merge of rank 0 makes; those below are bytes
Choice = Callable[[list[tuple[int, int]]], tuple[int, int]]


def merged(
    word: np.ndarray,
    merges: np.ndarray,
    choose: Choice = min,
    first: int = FIRST_MERGE,
    most: int = 99,
) -> list[int]:
    """The tokens of a word: merge, each time, one of the pairs (rank, place) that can be.

    Args:
        word: bytes (n,).
        merges: pairs of tokens (m, 2); row r is the merge of rank r.
        choose: the next one; by default the lowest rank, and of its copies the left one.
        first: the token that rank 0 makes.
        most: merges at most.
    """
    parts = [int(token) for token in word]
    ranks = {tuple(pair): rank for rank, pair in enumerate(merges.tolist())}
    for _ in range(most):
        found = [(ranks[pair], i) for i, pair in enumerate(pairwise(parts)) if pair in ranks]
        if not found:
            break
        rank, i = choose(found)
        parts[i : i + 2] = [first + rank]
    return parts


def wrongly_merged(word: np.ndarray, merges: np.ndarray) -> Iterator[tuple[list[int], str]]:
    """Wrong answers for this word, each with what leads to it."""
    yield _longest(word, merges), "That is the longest token from the left: merge pairs by rank."
    yield (
        merged(word, merges, lambda found: min(found, key=lambda one: one[1])),
        "You merge the first pair that can be: the lowest rank in the whole word comes first.",
    )
    yield (
        merged(word, merges, lambda found: max(found, key=lambda one: (one[0], -one[1]))),
        "The highest rank comes first: it should be the lowest.",
    )
    yield (
        merged(word, merges, lambda found: min(found, key=lambda one: (one[0], -one[1]))),
        "Of equal pairs that overlap, the left one is merged.",
    )
    yield merged(word, merges, first=0), "The merge of rank r makes the token 256 + r."
    yield merged(word, merges, first=FIRST_MERGE + 1), "Ranks count from 0."
    yield [int(token) for token in word], "Nothing is merged."
    yield merged(word, merges, most=1), "You merge once: begin again, until no pair can be merged."
    yield _one_each(word, merges), "A pair may be there more than once: merge all its copies."
    yield merged(word, merges)[:-1], "The last token of the word is lost."
    yield merged(word, merges)[::-1], "The order is turned round."


def _one_each(word: np.ndarray, merges: np.ndarray) -> list[int]:
    """Each merge in turn, at its first place alone."""
    parts = [int(token) for token in word]
    for rank, pair in enumerate(merges.tolist()):
        places = [i for i in range(len(parts)) if parts[i : i + 2] == pair]
        if places:
            parts[places[0] : places[0] + 2] = [FIRST_MERGE + rank]
    return parts


def _longest(word: np.ndarray, merges: np.ndarray) -> list[int]:
    """From the left, each time the longest token that fits."""
    spelt = {token: [token] for token in range(FIRST_MERGE)}
    for rank, (left, right) in enumerate(merges.tolist()):
        spelt[FIRST_MERGE + rank] = spelt[left] + spelt[right]
    rest, parts = [int(token) for token in word], []
    while rest:
        fits = [token for token, letters in spelt.items() if rest[: len(letters)] == letters]
        parts.append(max(fits, key=lambda token: len(spelt[token])))
        rest = rest[len(spelt[parts[-1]]) :]
    return parts
