"""Byte pairs of published models: their tokens and merges, from the files that hold them."""

from pathlib import Path
from typing import Any

from attnbook.pretrained.files import existing, read_gguf_fields, read_json, reading
from attnbook.train.byte_pairs import FORMS, GPT2, BytePairs

DIGIT = r"\p{N}"
GGUF_PATTERNS = {"gpt-2": (GPT2,), "smollm": (DIGIT, GPT2)}
CONTROL, DEFINED = 3, 4  # the types of tokens in a GGUF file that no merge makes
EXPECTED = "tokens and merges of byte pairs"


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
    folder = Path(folder)
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
