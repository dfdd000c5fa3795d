"""Numbers in words, English to German or French: a translation task whose truth is known."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Int

from attnbook._validation import nonnegative_int, one_of, positive_int, token_list

Array = np.ndarray

PAD, START, END = 0, 1, 2  # of every vocabulary
SPECIAL = ["·", "<", ">"]  # how they are shown
LARGEST = 999_999  # where no number of digits is asked for


@dataclass(frozen=True)
class Pairs:
    """Numbers, and their words in two languages as padded rows of token numbers.

    Args:
        numbers: of shape (pairs,).
        source: English words, a row as "twenty one" is [w, w, PAD, …].
        target: characters between START and END, then PAD.
    """

    numbers: Int[Array, " pairs"]
    source: Int[Array, "pairs words"]
    target: Int[Array, "pairs characters"]


@dataclass(frozen=True)
class Translation:
    """A translation task: pairs to learn from, pairs held out, and both vocabularies.

    Args:
        train: no number of it is held out.
        held_out: never seen in training.
        source_vocabulary: the English word of every token number.
        target_vocabulary: the character of every token number.
    """

    train: Pairs
    held_out: Pairs
    source_vocabulary: list[str]
    target_vocabulary: list[str]

    def read(self, tokens: Sequence[int]) -> list[str]:
        """The English words of a row of the source, without padding."""
        tokens = token_list(len(self.source_vocabulary), tokens=tokens)
        return [self.source_vocabulary[t] for t in tokens if t != PAD]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of a row of the target, up to END."""
        rows = token_list(len(self.target_vocabulary), tokens=tokens)
        ends = rows.index(END) if END in rows else len(rows)
        return "".join(self.target_vocabulary[t] for t in rows[:ends] if t not in (PAD, START))

    def is_correct(
        self, written: Int[Array, "pairs any"], target: Int[Array, "pairs characters"]
    ) -> Bool[Array, " pairs"]:
        """Whether what was written is the target, token by token from after START to END."""
        lengths = np.sum(target != PAD, axis=1) - 1  # without START
        rows = zip(written, target, lengths, strict=True)
        return np.array([np.array_equal(said[:n], true[1 : n + 1]) for said, true, n in rows])


def number_words(
    language: Literal["de", "fr"] = "de",
    *,
    train: int = 20_000,
    held_out: int = 2_000,
    seed: int = 0,
    digits: int | None = None,
) -> Translation:
    """English number words and their translation, as the library num2words writes them.

    With ``digits`` the numbers have 1, 2, … digits up to that many, each equally often, and short
    ones come again in training. At most three tenths of the numbers of a length are held out; what
    is missing there is shared by the longer ones. Without it the numbers lie between 0 and 999,999,
    and none comes twice: a tenth of the draws falls below 1000, a tenth below 10,000, the rest
    anywhere. Of English the hyphens and commas are dropped.

    Args:
        language: of the target, "de" for German or "fr" for French.
        train: how many numbers to learn from.
        held_out: how many others to judge on.
        seed: of NumPy's default generator.
        digits: of the longest numbers, at most 9.

    Raises:
        ValueError: another language, a count below 1, more than 300,000 numbers, a seed that
            is no integer of at least 0, digits not from 1 to 9, too few numbers of so many digits.
    """
    one_of(("de", "fr"), language=language)
    total = positive_int(train=train) + positive_int(held_out=held_out)
    if total > 300_000:
        raise ValueError(f"train, held_out: got {train}, {held_out}, expected 300000 in all")
    rng = np.random.default_rng(nonnegative_int(seed=seed))
    drawn = _drawn(total, rng) if digits is None else _of_lengths(train, held_out, digits, rng)
    source = [_words(int(n), "en").replace(",", "").replace("-", " ").split() for n in drawn]
    target = [list(_words(int(n), language)) for n in drawn]
    source_vocabulary, target_vocabulary = _vocabulary(source), _vocabulary(target)
    sources = _rows(source, source_vocabulary)
    targets = _rows([[SPECIAL[START], *t, SPECIAL[END]] for t in target], target_vocabulary)
    return Translation(
        Pairs(drawn[:train], sources[:train], targets[:train]),
        Pairs(drawn[train:], sources[train:], targets[train:]),
        source_vocabulary,
        target_vocabulary,
    )


def _drawn(total: int, rng: np.random.Generator) -> Array:
    """Different numbers in random order, some of them small."""
    below = rng.choice([1_000, 10_000, LARGEST + 1], size=2 * total, p=[0.1, 0.1, 0.8])
    numbers = np.floor(rng.random(2 * total) * below).astype(np.int64)
    _, first = np.unique(numbers, return_index=True)
    return rng.permutation(numbers[np.sort(first)][:total])  # or the small ones would come first


def _of_lengths(train: int, held_out: int, digits: int, rng: np.random.Generator) -> Array:
    """Numbers to learn from, then those held out, every number of digits equally often."""
    if positive_int(digits=digits) > 9:
        raise ValueError(f"digits: got {digits}, expected 1 to 9")
    if held_out > (most := 10**digits * 3 // 10):
        raise ValueError(f"held_out: got {held_out}, expected at most {most} of {digits} digits")
    learned: list[int] = []
    kept: list[int] = []
    for length in range(1, digits + 1):
        low, high, shares = 10 ** (length - 1) * (length > 1), 10**length, digits + 1 - length
        count = min((high - low) * 3 // 10, (held_out - len(kept)) // shares)
        here = low + rng.choice(high - low, size=count, replace=False)
        numbers = rng.integers(low, high, size=(train - len(learned)) // shares)
        while (held := np.isin(numbers, here)).any():
            numbers[held] = rng.integers(low, high, size=held.sum())
        learned.extend(numbers)
        kept.extend(here)
    return np.concatenate([rng.permutation(learned), rng.permutation(kept)])


def _words(number: int, language: str) -> str:
    """What num2words writes, put together from its words for millions, thousands and the rest."""
    for unit, german in ((1_000_000, " "), (1000, "")):
        above, rest = divmod(number, unit)
        if above and rest:
            between = {"en": " and " if rest < 100 else ", ", "de": german, "fr": " "}[language]
            return _words(number - rest, language) + between + _words(rest, language)
    return _as_num2words(number, language)


@functools.cache  # a billion numbers consist of 3,000 pieces, and each piece takes 0.2 ms
def _as_num2words(number: int, language: str) -> str:
    from num2words import num2words

    return str(num2words(number, lang=language))


def _vocabulary(sentences: list[list[str]]) -> list[str]:
    """The special tokens, then all others in alphabetical order."""
    return SPECIAL + sorted({token for sentence in sentences for token in sentence})


def _rows(sentences: list[list[str]], vocabulary: list[str]) -> Array:
    """Token numbers, padded to the longest sentence."""
    number_of = {token: number for number, token in enumerate(vocabulary)}
    rows = np.full((len(sentences), max(map(len, sentences))), PAD)
    for row, sentence in zip(rows, sentences, strict=True):
        row[: len(sentence)] = [number_of[token] for token in sentence]
    return rows
