"""Byte pair encoding: text as numbers of tokens, as GPT-2 and its like read and write it.

A text is cut into words by patterns. The bytes of a word are its first tokens. Then the two
neighbours that stand first in the list of merges become one token, until no two neighbours stand
in the list:

    h e l l o  →  h e ll o  →  he ll o  →  hell o  →  hello

Source: Gage (1994); for translation Sennrich, Haddow and Birch (2016); on bytes Radford, Wu,
Child, Luan, Amodei and Sutskever (2019).
"""

import itertools
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from attnbook._validation import options
from attnbook._validation.tokens import token_list
from attnbook.pretrained.files import existing, read_gguf_fields, read_json, reading

# a word with the space before it, a number, signs, and the spaces that are left
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DIGIT = r"\p{N}"
GGUF_PATTERNS = {"gpt-2": (GPT2,), "smollm": (DIGIT, GPT2)}
FORMS = ("NFC", "NFKC", "NFD", "NFKD")
CONTROL, DEFINED = 3, 4  # the types of tokens in a GGUF file that no merge makes
EXPECTED = "tokens and merges of byte pairs"


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
        special: tokens that are cut out of a text before anything else.
        normal_form: of Unicode, into which a text is brought first, if any.

    Raises:
        ValueError: tokens that are no list of different strings, a pair whose parts or whole are no
            tokens, a special token that is none, a pattern or a normal form that there is not.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        merges: Iterable[tuple[str, str]],
        *,
        patterns: Sequence[str] = (GPT2,),
        special: Iterable[str] = (),
        normal_form: Literal["NFC", "NFKC", "NFD", "NFKD"] | None = None,
    ) -> None:
        # knows letters and numbers of every script, as re does not
        import regex  # type: ignore[import-untyped, unused-ignore]

        self.tokens, self.normal_form = _strings(tokens=tokens), normal_form
        if normal_form is not None:
            options.one_of(FORMS, normal_form=normal_form)
        self.number = {token: number for number, token in enumerate(self.tokens)}
        self.rank = {pair: rank for rank, pair in enumerate(map(_two_strings, merges))}
        special = _strings(special=special)
        self.special = sorted(special, key=len, reverse=True)  # the longest that fits is taken
        self._check()
        self._patterns = [_compiled(regex, one) for one in _strings(patterns=patterns)]
        self._cut = regex.compile(f"({'|'.join(map(regex.escape, self.special))})")
        self._numbers = lru_cache(maxsize=2**16)(self._unremembered)

    def encode(self, text: str) -> list[int]:
        """The numbers of a text's tokens.

        Raises:
            ValueError: a byte for which there is no token, half of a surrogate pair.
        """
        if not isinstance(text, str):
            raise ValueError(f"text: got a {type(text).__name__}, expected a string")
        if self.normal_form is not None:
            text = unicodedata.normalize(self.normal_form, text)
        found: list[int] = []
        for i, piece in enumerate(self._cut.split(text) if self.special else [text]):
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
        try:
            parts = [SIGNS[byte] for byte in word.encode()]
        except UnicodeEncodeError as error:
            raise ValueError(f"text: got {word!r}, expected characters of Unicode") from error
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

    def _check(self) -> None:
        if len(self.number) < len(self.tokens):
            twice = next(t for i, t in enumerate(self.tokens) if self.number[t] != i)
            raise ValueError(f"tokens: got {twice!r} twice, expected different ones")
        for first, second in self.rank:
            for part in (first, second, first + second):
                if part not in self.number:
                    raise ValueError(f"merges: got {part!r} in a pair, expected tokens")
        for token in self.special:
            if not token or token not in self.number:
                raise ValueError(f"special: got {token!r}, expected one of the tokens")


def _strings(**argument: Any) -> list[str]:
    """Strings, of which there may be any number; one string is not taken for its letters."""
    ((name, given),) = argument.items()
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ValueError(f"{name}: got {given!r}, expected a list of strings")
    found = list(given)
    for one in found:
        if not isinstance(one, str):
            raise ValueError(f"{name}: got {one!r} among them, expected strings")
    return found


def _two_strings(pair: Any) -> tuple[str, str]:
    if not isinstance(pair, tuple | list) or [type(part) for part in pair] != [str, str]:
        raise ValueError(f"merges: got {pair!r}, expected pairs of strings")
    return pair[0], pair[1]


def _compiled(regex: Any, pattern: str) -> Any:
    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise ValueError(f"patterns: got {pattern!r}, expected a pattern ({error})") from error


def tokens_from_gguf(file: str | Path) -> BytePairs:
    """The byte pairs that a GGUF file holds.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: no GGUF file, tokens of another kind, or cut by patterns that are unknown.
    """
    fields = read_gguf_fields(file)
    kind, cut = (fields.get(f"tokenizer.ggml.{name}") for name in ("model", "pre"))
    if kind != "gpt2" or not isinstance(cut, str) or cut not in GGUF_PATTERNS:
        expected = f"gpt2, cut as {' or '.join(GGUF_PATTERNS)}"
        raise ValueError(f"{file}: got tokens of kind {kind}, cut as {cut}, expected {expected}")
    with reading(Path(file), EXPECTED, ValueError, KeyError, TypeError):
        tokens, kinds, merges = (
            fields[f"tokenizer.ggml.{name}"] for name in ("tokens", "token_type", "merges")
        )
        for name, given in (("tokens", tokens), ("token_type", kinds), ("merges", merges)):
            if not isinstance(given, list):
                raise ValueError(f"tokenizer.ggml.{name}: got {given!r}, expected an array")
        special = [t for t, k in zip(tokens, kinds, strict=True) if k in (CONTROL, DEFINED)]
        return BytePairs(tokens, map(_pair, merges), patterns=GGUF_PATTERNS[cut], special=special)


def tokens_from_folder(folder: str | Path) -> BytePairs:
    """The byte pairs in a folder of Hugging Face's.

    They are read from `tokenizer.json`, else from GPT-2's `vocab.json` and `merges.txt`. What a
    folder says should be put before and after every text is not put there.

    Raises:
        FileNotFoundError: neither is there.
        ValueError: a file that is not what it says, or tokens of another kind.
    """
    folder = options.path(folder=folder)
    if (folder / "tokenizer.json").is_file():
        return _from_json(folder / "tokenizer.json")
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        return _from_merges(folder)
    raise FileNotFoundError(f"{folder}: expected tokenizer.json, or vocab.json and merges.txt")


def _from_merges(folder: Path) -> BytePairs:
    """GPT-2's own two files, a line for each merge in the second."""
    settings = folder / "tokenizer_config.json"
    kind = read_json(settings).get("tokenizer_class") if settings.is_file() else None
    if kind not in (None, "GPT2Tokenizer", "GPT2TokenizerFast"):
        raise ValueError(f"{settings}: got a {kind}, expected GPT2Tokenizer, or a tokenizer.json")
    tokens = _by_number(read_json(folder / "vocab.json"), folder / "vocab.json")
    with reading(folder / "merges.txt", EXPECTED, ValueError):
        lines = existing(folder / "merges.txt").read_text(encoding="utf-8").split("\n")
        merges = [_pair(line) for line in lines if line and not line.startswith("#version")]
        return BytePairs(tokens, merges, special={"<|endoftext|>"} & {*tokens})


def _from_json(file: Path) -> BytePairs:
    """What the library tokenizers wrote, if it is byte pair encoding as GPT-2's."""
    said = read_json(file)
    model, added = (
        _entry(file, said, "model", dict, {}),
        _entry(file, said, "added_tokens", list, []),
    )
    for token in added:
        if not isinstance(token, dict):
            raise ValueError(f"{file}: added_tokens: got {token!r}, expected objects")
    _check_plain(file, model, added)
    form = _entry(file, said, "normalizer", dict, {}).get("type")
    if form is not None and form not in FORMS:
        raise ValueError(f"{file}: got the normaliser {form}, expected a form of Unicode")
    patterns = _patterns(file, _entry(file, said, "pre_tokenizer", dict, {}))
    vocab, pairs = _entry(file, model, "vocab", dict), _entry(file, model, "merges", list)
    with reading(file, EXPECTED, ValueError, KeyError, TypeError):
        special = {token["content"]: token["id"] for token in added}
        tokens = _by_number(vocab | special, file)
        merges = map(_pair, pairs)
        return BytePairs(tokens, merges, patterns=patterns, special=special, normal_form=form)


def _entry(file: Path, of: dict[str, Any], name: str, kind: type, default: Any = None) -> Any:
    """An entry of an object in JSON, which is an object or a list itself."""
    found = default if of.get(name) is None else of[name]
    if not isinstance(found, kind):
        got, expected = type(found).__name__, "an object" if kind is dict else "a list"
        raise ValueError(f"{file}: {name}: got a {got}, expected {expected}")
    return found


def _check_plain(file: Path, model: dict[str, Any], added: list[dict[str, Any]]) -> None:
    """Refuse tokens of another kind than GPT-2's, and what would change them."""
    if model.get("type") != "BPE":
        raise ValueError(f"{file}: got tokens of kind {model.get('type')}, expected BPE")
    affixes = ("continuing_subword_prefix", "end_of_word_suffix")
    odd = [n for n in ("dropout", "byte_fallback", "ignore_merges", *affixes) if model.get(n)]
    sides = ("lstrip", "rstrip", "single_word")
    odd += [name for name in sides if any(token.get(name) for token in added)]
    if odd:
        raise ValueError(f"{file}: got tokens with {', '.join(odd)}, expected none of these")


def _patterns(file: Path, step: dict[str, Any]) -> list[str]:
    """The patterns by which a text is cut, from steps of the library tokenizers."""
    match step:
        case {"type": "Sequence", "pretokenizers": [*steps]}:
            return [pattern for inner in steps for pattern in _patterns(file, inner)]
        case {"type": "ByteLevel", "add_prefix_space": False}:
            return [GPT2] if step.get("use_regex", True) else []
        case {"type": "Digits", "individual_digits": True}:
            return [DIGIT]
        case {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}:
            if not step.get("invert") and isinstance(pattern, str):
                return [pattern]
    raise ValueError(f"{file}: got text cut by {step}, expected GPT-2's way, digits or a pattern")


def _by_number(numbers: dict[str, int], file: Path) -> list[str]:
    """The tokens in the order of their numbers, which leave out none."""
    for token, number in numbers.items():
        if type(number) is not int:
            raise ValueError(
                f"{file}: got {number!r} as the number of {token!r}, expected integers"
            )
    tokens = sorted(numbers, key=numbers.__getitem__)
    if [numbers[token] for token in tokens] != list(range(len(tokens))):
        raise ValueError(f"{file}: got other numbers of tokens, expected 0 to {len(tokens) - 1}")
    return tokens


def _pair(merge: str | list[str]) -> tuple[str, str]:
    """A merge as a pair; it is given as two tokens with a space between, or as a list."""
    parts = merge.split(" ") if isinstance(merge, str) else merge
    if not isinstance(parts, list) or len(parts) != 2:
        raise ValueError(f"merges: got {merge!r}, expected two tokens")
    return parts[0], parts[1]


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
