"""Text that every Python installation carries: the help topics of the language reference."""

import json
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from jaxtyping import Int

from attnbook._validation import fraction, nonnegative_int, token_list

CHARACTERS = "\n" + "".join(map(chr, range(32, 127)))  # the token numbers of a character: its place
PART = 4_000  # characters
PLAIN = str.maketrans("’‘“”–—…", "''\"\"--.")


@dataclass(frozen=True)
class Text:
    """A text to learn from and one held out, as numbers of characters.

    Args:
        train: of shape (characters,).
        held_out: of shape (others,); no paragraph of it stands in train.
        vocabulary: the character of every number.
    """

    train: Int[np.ndarray, " characters"]
    held_out: Int[np.ndarray, " others"]
    vocabulary: str

    def decode(self, tokens: Int[np.ndarray, " n"]) -> str:
        """The text of a row of numbers."""
        return "".join(self.vocabulary[t] for t in token_list(len(self.vocabulary), tokens=tokens))


def python_reference(*, held_out: float = 0.1, seed: int = 0) -> Text:
    """Help topics of the Python language reference, in a training and a held-out part.

    A fifth of the text stands there more than once, as topics share sections; every paragraph is
    kept where it comes first. Quotation marks and dashes become ASCII's, other characters are
    dropped. The text is that of Python 3.11.7, on any Python: other versions differ a little.

    Args:
        held_out: the share that is held out, of parts of about PART characters each.
        seed: of NumPy's default generator, which draws what is held out.

    Raises:
        ValueError: a share that is not above 0 and below 1, a seed that is no integer.

    Source: pydoc_data.topics, of the standard library.
    """
    fraction(held_out=held_out)
    nonnegative_int(seed=seed)
    topics, seen = _topics(), set[str]()
    kept = [one for name in sorted(topics) for one in _unseen(topics[name], seen)]
    texts = [_tokens("".join(part)) for part in _parts(kept)]
    drawn = np.random.default_rng(seed).permutation(len(texts))
    total = np.cumsum([len(texts[i]) for i in drawn])
    out = set(drawn[: 1 + int(np.searchsorted(total, held_out * total[-1]))].tolist())
    return Text(
        np.concatenate([text for i, text in enumerate(texts) if i not in out]),
        np.concatenate([text for i, text in enumerate(texts) if i in out]),
        CHARACTERS,
    )


def _topics() -> dict[str, str]:
    """The help topics by their names."""
    file = files("attnbook").joinpath("datasets", "python_topics.json")
    topics: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))["topics"]
    return topics


def _unseen(topic: str, seen: set[str]) -> list[str]:
    """The paragraphs that have not come before, each ending in an empty line."""
    kept = []
    for paragraph in topic.split("\n\n"):
        if paragraph.strip() and paragraph.strip() not in seen:
            seen.add(paragraph.strip())
            kept.append(paragraph.strip("\n") + "\n\n")
    return kept


def _parts(paragraphs: list[str]) -> list[list[str]]:
    """Paragraphs that follow each other, PART characters or a little more together."""
    parts: list[list[str]] = [[]]
    for paragraph in paragraphs:
        if sum(map(len, parts[-1])) >= PART:
            parts.append([])
        parts[-1].append(paragraph)
    return parts


def _tokens(text: str) -> Int[np.ndarray, " n"]:
    known = [CHARACTERS.find(character) for character in text.translate(PLAIN)]
    return np.array([number for number in known if number >= 0], dtype=np.int64)
