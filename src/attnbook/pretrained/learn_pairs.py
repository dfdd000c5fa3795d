"""Byte pairs learned from a text: which neighbours become one token, and in which order."""

import itertools
from collections import Counter
from collections.abc import Sequence

from attnbook._validation import numbers
from attnbook.pretrained.tokens import GPT2, SIGNS, BytePairs, _joined

Pair = tuple[str, str]


def learn_pairs(text: str, vocabulary: int = 512) -> BytePairs:
    """The byte pairs of a text: of all neighbours in its words the most frequent, again and again.

    Of pairs that are as frequent the one that comes first in the order of signs is taken, so that
    a text has one list of merges. There may be fewer tokens than asked for: a pair that occurs
    once is no pair.

    Args:
        text: of any length.
        vocabulary: tokens, the 256 bytes among them.

    Raises:
        ValueError: a text that is none, a vocabulary below 256.

    Source: Sennrich, Haddow and Birch (2016), algorithm 1.
    """
    if not isinstance(text, str):
        raise ValueError(f"text: got a {type(text).__name__}, expected a string")
    numbers.nonnegative_int(least=len(SIGNS), vocabulary=vocabulary)
    counts = Counter(BytePairs(SIGNS, []).words(text))
    words = [[SIGNS[byte] for byte in word.encode()] for word in counts]
    tokens, merges = _merged(words, [*counts.values()], vocabulary)
    return BytePairs(tokens, merges, patterns=(GPT2,))


def _merged(
    words: list[list[str]], counts: Sequence[int], vocabulary: int
) -> tuple[list[str], list[Pair]]:
    """The tokens and the merges, in order; only words that hold a merged pair are counted anew."""
    frequency: Counter[Pair] = Counter()
    holders: dict[Pair, set[int]] = {}
    for number in range(len(words)):
        _count(words[number], number, counts[number], frequency, holders)
    tokens, merges = dict.fromkeys(SIGNS), []  # two pairs may make the same token
    while len(tokens) < vocabulary and frequency:
        pair = min(frequency, key=lambda found: (-frequency[found], found))
        if frequency[pair] < 2:
            break
        merges.append(pair)
        tokens[pair[0] + pair[1]] = None
        for number in sorted(holders[pair]):
            _count(words[number], number, -counts[number], frequency, holders)
            words[number] = _joined(words[number], pair)
            _count(words[number], number, counts[number], frequency, holders)
    return list(tokens), merges


def _count(
    word: list[str],
    number: int,
    times: int,
    frequency: Counter[Pair],
    holders: dict[Pair, set[int]],
) -> None:
    """Add the pairs of a word so many times, or with a negative number take them away."""
    for pair in itertools.pairwise(word):
        frequency[pair] += times
        if frequency[pair] == 0:
            del frequency[pair]
        if times > 0:
            holders.setdefault(pair, set()).add(number)
        else:
            holders[pair].discard(number)
