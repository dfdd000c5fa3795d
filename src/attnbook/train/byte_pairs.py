"""Byte pair encoding: text as numbers of tokens, as GPT-2 and its like read and write it.

A text is cut into words by patterns. The bytes of a word are its first tokens. Then the two
neighbours that stand first in the list of merges become one token, until no two neighbours stand
in the list:

    h e l l o  →  h e ll o  →  he ll o  →  hell o  →  hello

Source: Gage (1994); for translation Sennrich, Haddow and Birch (2016); on bytes Radford, Wu,
Child, Luan, Amodei and Sutskever (2019).
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from attnbook._validation import nonnegative_int, token_list

Pair = tuple[str, str]
# a word with the space before it, a number, signs, and the spaces that are left
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def _byte_signs() -> list[str]:
    """A sign for every byte that can be seen in print: its own, else one from 256 upwards."""
    shown = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("ÿ") + 1)} - {0xAD}
    others = itertools.count(256)
    return [chr(byte) if byte in shown else chr(next(others)) for byte in range(256)]


SIGNS = _byte_signs()
BYTES = {sign: byte for byte, sign in enumerate(SIGNS)}


class BytePairs:
    """Byte pair encoding with the tokens and merges of a trained model.

    Args:
        tokens: by their numbers; a byte is written as a sign, a space as Ġ.
        merges: pairs of tokens that become one, the first to be merged first.
        patterns: regular expressions, each of which cuts what those before it left whole; of the
            library regex.
        special: tokens that are cut out of a text before anything else, where encode is told to.

    Raises:
        ValueError: a token or a merge twice, a pair whose parts or whole are no tokens, a special
            token that is none.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        merges: Iterable[tuple[str, str]],
        *,
        patterns: Sequence[str] = (GPT2,),
        special: Iterable[str] = (),
    ) -> None:
        # knows letters and numbers of every script, as re does not
        import regex  # type: ignore[import-untyped, unused-ignore]

        self.tokens, self.patterns = list(tokens), list(patterns)
        self.number = {token: number for number, token in enumerate(self.tokens)}
        pairs = [(first, second) for first, second in merges]
        self.rank = {pair: rank for rank, pair in enumerate(pairs)}
        self.special = sorted(special, key=len, reverse=True)  # the longest that fits is taken
        self._check(pairs)
        self._patterns = [regex.compile(one) for one in self.patterns]
        self._cut = regex.compile(f"({'|'.join(map(regex.escape, self.special))})")
        self._numbers = lru_cache(maxsize=2**16)(self._unremembered)

    def encode(self, text: str, *, split_special_tokens: bool | None = None) -> list[int]:
        """The numbers of a text's tokens.

        Args:
            text: of any length.
            split_special_tokens: where a special token stands in the text, True takes it as text,
                as where people type; False as the token, as in the form of a chat: whoever types it
                then ends a text or speaks for the model. Without the one or the other it is
                refused.

        Raises:
            ValueError: a byte for which there is no token, a special token that is not expected.
        """
        whole = split_special_tokens or not self.special
        pieces = [text] if whole else self._cut.split(text)
        if split_special_tokens is None and len(pieces) > 1:
            raise ValueError(
                f"text: got the special token {pieces[1]!r}, expected split_special_tokens=True if "
                "it is text, False if it is the token"
            )
        found: list[int] = []
        for i, piece in enumerate(pieces):
            if i % 2:  # between two pieces of text a special token
                found.append(self.number[piece])
            else:
                for word in self.words(piece):
                    found += self._numbers(word)
        return found

    def decode(self, numbers: Iterable[int]) -> str:
        """The text of some tokens; � where their bytes are no whole character.

        Args:
            numbers: a list, or an array of any library, of shape (n,).

        Raises:
            ValueError: what is no row of integers, a number that is no token's.
        """
        found = bytearray()
        for number in token_list(len(self.tokens), numbers=numbers):
            found += self._bytes(self.tokens[number])
        return found.decode(errors="replace")

    def words(self, text: str) -> list[str]:
        """The words into which a text is cut before its bytes are merged."""
        pieces = [text]
        for pattern in self._patterns:
            pieces = [part for piece in pieces for part in _cut(pattern, piece)]
        return pieces

    def merges(self, word: str) -> Iterator[list[str]]:
        """A word's tokens after each merge, from single bytes to the tokens that are kept."""
        parts = [SIGNS[byte] for byte in word.encode()]
        yield parts
        while pairs := [pair for pair in itertools.pairwise(parts) if pair in self.rank]:
            parts = _joined(parts, min(pairs, key=self.rank.__getitem__))
            yield parts

    def _unremembered(self, word: str) -> list[int]:
        *_, parts = self.merges(word)
        for part in parts:
            if part not in self.number:
                got = f"byte 0x{BYTES[part]:02x} in {word!r}"
                raise ValueError(f"text: got {got}, expected bytes for which there is a token")
        return [self.number[part] for part in parts]

    def _bytes(self, token: str) -> bytes:
        """The bytes that a token stands for; of a special token its own letters'."""
        if token in self.special or not all(sign in BYTES for sign in token):
            return token.encode()
        return bytes(BYTES[sign] for sign in token)

    def _check(self, pairs: list[Pair]) -> None:
        if len(self.number) < len(self.tokens):
            twice = next(t for i, t in enumerate(self.tokens) if self.number[t] != i)
            raise ValueError(f"tokens: got {twice!r} twice, expected different ones")
        if len(self.rank) < len(pairs):
            (pair, _), *_ = Counter(pairs).most_common(1)
            raise ValueError(f"merges: got {pair!r} twice, expected different pairs")
        needed = {part for pair in pairs for part in (*pair, "".join(pair))}
        if missing := sorted({*needed, *self.special} - self.number.keys()):
            raise ValueError(f"merges, special: got {missing[0]!r}, expected one of the tokens")


def learn_pairs(text: str, vocabulary: int = 512) -> BytePairs:
    """The byte pairs of a text: of all neighbours in its words the most frequent, again and again.

    Of pairs that are as frequent the one that comes first in the order of signs is taken, so that
    a text has one list of merges. There may be fewer tokens than asked for: a pair that occurs
    once is no pair.

    Args:
        text: of any length.
        vocabulary: tokens, the 256 bytes among them.

    Raises:
        ValueError: a vocabulary below 256.

    Source: Sennrich, Haddow and Birch (2016), algorithm 1.
    """
    nonnegative_int(least=len(SIGNS), vocabulary=vocabulary)
    counts = Counter(BytePairs(SIGNS, []).words(text))
    words = [[SIGNS[byte] for byte in word.encode()] for word in counts]
    tokens, merges = _merged(words, [*counts.values()], vocabulary)
    return BytePairs(tokens, merges, patterns=(GPT2,))


def _merged(
    words: list[list[str]], counts: Sequence[int], vocabulary: int
) -> tuple[list[str], list[Pair]]:
    """The tokens and the merges, in order; only words that hold a merged pair are counted anew."""
    frequency: Counter[Pair] = Counter()
    holders: defaultdict[Pair, set[int]] = defaultdict(set)

    def count(number: int, times: int) -> None:
        for pair in itertools.pairwise(words[number]):
            frequency[pair] += times
            holders[pair].add(number)

    for number, times in enumerate(counts):
        count(number, times)
    # two pairs may make the same token; a pair that came to be once more would keep its place
    tokens, merges = dict.fromkeys(SIGNS), dict[Pair, None]()
    while len(tokens) < vocabulary and frequency:
        pair = min(frequency, key=lambda found: (-frequency[found], found))
        if frequency[pair] < 2:
            break
        merges[pair] = None
        tokens[pair[0] + pair[1]] = None
        for number in sorted(holders[pair]):
            count(number, -counts[number])
            words[number] = _joined(words[number], pair)
            count(number, counts[number])
    return list(tokens), list(merges)


def _cut(pattern: Any, text: str) -> Iterator[str]:
    """What a pattern finds in a text, and what lies between, in order."""
    end = 0
    for match in pattern.finditer(text):
        if match.start() > end:
            yield text[end : match.start()]
        if match[0]:
            yield match[0]
        end = match.end()
    if end < len(text):
        yield text[end:]


def _joined(parts: list[str], pair: tuple[str, str]) -> list[str]:
    """The parts with each occurrence of a pair as one."""
    found: list[str] = []
    rest = iter(range(len(parts)))
    for i in rest:
        if tuple(parts[i : i + 2]) == pair:
            found.append(pair[0] + pair[1])
            next(rest)
        else:
            found.append(parts[i])
    return found
