"""Byte pairs of published models: their tokens and merges, from the files that hold them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from attnbook.pretrained.files import read_gguf_fields, read_json, reading
from attnbook.train.byte_pairs import GPT2, BytePairs

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
    if kind != "gpt2" or cut not in [*GGUF_PATTERNS]:
        expected = f"gpt2, cut as {' or '.join(GGUF_PATTERNS)}"
        raise ValueError(f"{file}: got tokens of kind {kind}, cut as {cut}, expected {expected}")
    with reading(Path(file), EXPECTED, ValueError, KeyError, TypeError):
        tokens, kinds, merges = (
            fields[f"tokenizer.ggml.{name}"] for name in ("tokens", "token_type", "merges")
        )
        special = [t for t, k in zip(tokens, kinds, strict=True) if k in (CONTROL, DEFINED)]
        return BytePairs(tokens, _pairs(merges), patterns=GGUF_PATTERNS[cut], special=special)


def tokens_from_folder(folder: str | Path) -> BytePairs:
    """The byte pairs in a folder of Hugging Face's, those of GPT-2 or SmolLM2 and their like.

    They are read from `tokenizer.json`. What it says should be put before and after every text is
    not put there.

    Raises:
        FileNotFoundError: it is not there.
        ValueError: a file that is not what it says, or tokens of another kind.
    """
    file = Path(folder) / "tokenizer.json"
    said = read_json(file)
    with reading(file, EXPECTED, ValueError, KeyError, TypeError, AttributeError):
        model, added = said["model"], said.get("added_tokens") or []
        if model.get("type") != "BPE" or said.get("normalizer"):
            got = f"{model.get('type')} after the normaliser {said.get('normalizer')}"
            raise ValueError(f"got {got}, expected BPE of the text as it is")
        changing = ("dropout", "byte_fallback", "ignore_merges", "continuing_subword_prefix")
        odd = [name for name in (*changing, "end_of_word_suffix") if model.get(name)]
        sides = ("lstrip", "rstrip", "single_word")
        odd += [name for name in sides if any(token.get(name) for token in added)]
        if odd:
            raise ValueError(f"got tokens with {', '.join(odd)}, expected none of these")
        special = {token["content"]: token["id"] for token in added}
        numbers = model["vocab"] | special
        tokens = sorted(numbers, key=numbers.__getitem__)
        if [numbers[token] for token in tokens] != list(range(len(tokens))):
            raise ValueError(f"got other numbers of tokens, expected 0 to {len(tokens) - 1}")
        patterns = _patterns(said.get("pre_tokenizer"))
        return BytePairs(tokens, _pairs(model["merges"]), patterns=patterns, special=special)


def _patterns(step: Any) -> list[str]:
    """The patterns by which a text is cut, from steps of the library tokenizers."""
    match step:
        case {"type": "Sequence", "pretokenizers": [*steps]}:
            return [pattern for inner in steps for pattern in _patterns(inner)]
        case {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}:
            return [GPT2]
        case {"type": "Digits", "individual_digits": True}:
            return [DIGIT]
    raise ValueError(f"got text cut by {step}, expected GPT-2's way or digits")


def _pairs(merges: Iterable[str | Sequence[str]]) -> list[tuple[str, str]]:
    """Merges as pairs; each is given as two tokens with a space between, or as a list."""
    found = [tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in merges]
    for pair in found:
        if len(pair) != 2:
            raise ValueError(f"merges: got {pair}, expected two tokens")
    return [(left, right) for left, right in found]
